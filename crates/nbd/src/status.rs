//! Block status: which parts of a range are holes, and which read as zeroes.
//!
//! The rule, both ways: extents are consecutive from the request's offset, none is
//! empty, and neighbours with the same state are one. We never report beyond the
//! requested range, which is always allowed and makes `REQ_ONE` the plain case of one
//! extent.
//!
//! # Failure cases
//!
//! A reply must have at least one extent; without any the caller gets `None` and
//! answers with an error. A server that reports nothing, or more than the limits
//! allow, is hostile, and the client drops it.

use crate::codec::{Reader, len32};
use crate::limits::STATUS_EXTENTS_MAX;
use crate::reply::chunk;
use crate::wire;

/// The state of an extent in the context `base:allocation`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Allocation {
    /// Not allocated: a write may fail for want of space.
    pub hole: bool,
    /// Reads as zeroes.
    pub zero: bool,
}

impl Allocation {
    /// Allocated, content unknown: always a safe answer.
    pub const DATA: Self = Self { hole: false, zero: false };
    /// Not allocated, reads as zeroes.
    pub const HOLE: Self = Self { hole: true, zero: true };
    /// Allocated, reads as zeroes.
    pub const ZERO: Self = Self { hole: false, zero: true };

    /// The status word on the wire.
    #[must_use]
    pub const fn bits(self) -> u32 {
        (if self.hole { wire::STATE_HOLE } else { 0 })
            | (if self.zero { wire::STATE_ZERO } else { 0 })
    }

    /// The state of a status word; unknown bits are ignored.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        Self { hole: bits & wire::STATE_HOLE != 0, zero: bits & wire::STATE_ZERO != 0 }
    }
}

/// A stretch of bytes in one state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Extent {
    /// Number of bytes, not zero.
    pub len: u64,
    /// Their state.
    pub state: Allocation,
}

/// A whole block status reply: one chunk, the last of its reply.
///
/// `extents` start at the request's offset; empty ones are skipped, equal neighbours
/// merged, and what lies beyond `requested` bytes or beyond [`STATUS_EXTENTS_MAX`] is
/// left out. The iterator is not read further than needed. `None` if nothing is left.
#[must_use]
pub fn block_status(
    cookie: u64,
    context: u32,
    requested: u32,
    req_one: bool,
    extents: impl IntoIterator<Item = Extent>,
) -> Option<Vec<u8>> {
    let max = if req_one { 1 } else { STATUS_EXTENTS_MAX };
    let merged = merge(u64::from(requested), max, extents);
    if merged.is_empty() {
        return None;
    }
    let payload = 4 + merged.len() * wire::EXTENT_LEN;
    let mut out = Vec::with_capacity(wire::CHUNK_HEAD_LEN + payload);
    out.extend_from_slice(&chunk(wire::REPLY_BLOCK_STATUS, true, cookie, len32(payload)));
    out.extend_from_slice(&context.to_be_bytes());
    for extent in merged {
        // Clipped to `requested`, which has 32 bits.
        let len = u32::try_from(extent.len).unwrap_or(requested);
        out.extend_from_slice(&len.to_be_bytes());
        out.extend_from_slice(&extent.state.bits().to_be_bytes());
    }
    Some(out)
}

fn merge(
    mut left: u64,
    max: usize,
    extents: impl IntoIterator<Item = Extent>,
) -> Vec<Extent> {
    let mut merged: Vec<Extent> = Vec::new();
    for extent in extents {
        let len = extent.len.min(left);
        if len == 0 {
            if left == 0 {
                break;
            }
            continue;
        }
        let full = merged.len() == max;
        match merged.last_mut() {
            Some(last) if last.state == extent.state => last.len += len,
            _ if full => break,
            _ => merged.push(Extent { len, state: extent.state }),
        }
        left -= len;
    }
    merged
}

/// Reads the extents that follow a block status head on the client's side.
///
/// The result covers at most `requested` bytes (a server may say more; it is cut) and
/// at least one. Equal neighbours are merged.
pub fn parse_extents(payload: &[u8], requested: u32) -> Result<Vec<Extent>, BadExtents> {
    if payload.is_empty() || !payload.len().is_multiple_of(wire::EXTENT_LEN) {
        return Err(BadExtents::Length(payload.len()));
    }
    let mut reader = Reader::new(payload);
    let mut extents = Vec::new();
    let mut sum = 0u64;
    while let (Some(len), Some(bits)) = (reader.u32(), reader.u32()) {
        if len == 0 {
            return Err(BadExtents::Empty);
        }
        if sum >= u64::from(requested) {
            // nbdkit passes on what its plugins say of the bytes behind.
            break;
        }
        sum += u64::from(len);
        extents.push(Extent { len: u64::from(len), state: Allocation::from_bits(bits) });
    }
    Ok(merge(u64::from(requested), usize::MAX, extents))
}

/// Why the extents of a server cannot be used. How long they are is known all the same, so the
/// connection can go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadExtents {
    /// The payload is empty or ends within an extent.
    Length(usize),
    /// An extent has no bytes.
    Empty,
}

impl std::fmt::Display for BadExtents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Length(n) => write!(f, "{n} bytes are no list of extents"),
            Self::Empty => f.write_str("the server reported an extent without bytes"),
        }
    }
}

impl std::error::Error for BadExtents {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn extents(list: &[(u64, Allocation)]) -> Vec<Extent> {
        list.iter().map(|&(len, state)| Extent { len, state }).collect()
    }

    #[test]
    fn neighbours_in_the_same_state_become_one_extent() {
        let list = extents(&[
            (512, Allocation::DATA),
            (512, Allocation::DATA),
            (0, Allocation::HOLE),
            (4096, Allocation::HOLE),
        ]);
        let reply = block_status(3, 1, 8192, false, list).unwrap();
        assert_eq!(
            reply,
            [
                0x66, 0x8e, 0x33, 0xef, 0, 1, 0, 5, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 20,
                0, 0, 0, 1, // context
                0, 0, 4, 0, 0, 0, 0, 0, // 1024 bytes of data
                0, 0, 0x10, 0, 0, 0, 0, 3, // 4096 bytes of hole
            ]
        );
    }

    #[test]
    fn req_one_gives_one_extent_within_the_request() {
        let list = extents(&[
            (300, Allocation::ZERO),
            (900, Allocation::ZERO),
            (9, Allocation::DATA),
        ]);
        let reply = block_status(3, 1, 1000, true, list).unwrap();
        assert_eq!(&reply[24..], [0, 0, 3, 0xe8, 0, 0, 0, 2]);
    }

    #[test]
    fn an_endless_list_of_extents_is_cut() {
        let endless = (0..).map(|n| Extent {
            len: 1,
            state: if n % 2 == 0 { Allocation::DATA } else { Allocation::HOLE },
        });
        let reply = block_status(3, 1, u32::MAX, false, endless).unwrap();
        assert_eq!(reply.len(), 24 + STATUS_EXTENTS_MAX * 8);
    }

    #[test]
    fn nothing_to_report_is_not_a_reply() {
        assert_eq!(block_status(3, 1, 512, false, []), None);
    }

    #[test]
    fn hostile_extents_are_refused() {
        assert_eq!(parse_extents(&[], 9), Err(BadExtents::Length(0)));
        assert_eq!(parse_extents(&[0; 7], 9), Err(BadExtents::Length(7)));
        assert_eq!(parse_extents(&[0; 8], 9), Err(BadExtents::Empty));
    }

    #[test]
    fn what_a_server_says_of_the_bytes_behind_the_range_is_left_out() {
        let all = extents(&[(9, Allocation::DATA)]);
        let behind = [0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1];
        assert_eq!(parse_extents(&behind, 9), Ok(all.clone()));
        let beyond = [0, 0, 0, 11, 0, 0, 0, 0];
        assert_eq!(parse_extents(&beyond, 9), Ok(all));
    }

    fn any_extent() -> impl Strategy<Value = Extent> {
        (0u64..5000, any::<bool>(), any::<bool>()).prop_map(|(len, hole, zero)| Extent {
            len,
            state: Allocation { hole, zero },
        })
    }

    proptest! {
        #[test]
        fn what_the_server_reports_the_client_reads(
            list in prop::collection::vec(any_extent(), 1..40),
            requested in 1u32..60_000,
            req_one: bool,
        ) {
            let Some(reply) = block_status(1, 2, requested, req_one, list.clone()) else {
                prop_assert!(list.iter().all(|e| e.len == 0));
                return Ok(());
            };
            let read = parse_extents(&reply[24..], requested).unwrap();
            let sum: u64 = read.iter().map(|e| e.len).sum();
            prop_assert!(sum > 0 && sum <= u64::from(requested));
            if req_one {
                prop_assert_eq!(read.len(), 1);
            } else {
                let all: u64 = list.iter().map(|e| e.len).sum();
                prop_assert_eq!(sum, all.min(u64::from(requested)));
            }
            prop_assert!(read.windows(2).all(|w| w[0].state != w[1].state));
            // Byte for byte the same state.
            let mut want = list.iter().flat_map(|e| (0..e.len).map(|_| e.state));
            for extent in &read {
                for _ in 0..extent.len {
                    prop_assert_eq!(want.next(), Some(extent.state));
                }
            }
        }

        #[test]
        fn any_payload_is_read_or_refused(payload: Vec<u8>, requested: u32) {
            if let Ok(read) = parse_extents(&payload, requested) {
                let sum: u64 = read.iter().map(|e| e.len).sum();
                prop_assert!(sum > 0 && sum <= u64::from(requested));
            }
        }
    }
}
