//! The order in which a VM's memory goes out.
//!
//! **Rule.** What a wake needs last goes out first, and what it needs at once goes out last, each
//! in the order of addresses: so what is needed at once lies together on the swap device, and is
//! the last to go if swap is too small. One call takes at most [`OUT_BATCH`]: the kernel gives
//! a call's pages slots in a row.

use super::granules::{GRANULE, GranuleSet};
use super::record::{Heat, WakeRecord};
use crate::ByteRange;

/// What goes out in one call, in bytes: long enough for a disk to be in order, and short enough
/// for a guest that wakes to wait for no more.
pub const OUT_BATCH: u64 = 2 << 20;

/// How much of swap is left free: the kernel gives slots of its own accord as well, and one that
/// finds none has the host kill a process.
pub const SWAP_LEFT: u64 = 64 << 20;

/// The batches in which granules go out, the first one first. Offsets count from the start of the
/// VM's memory. If the record's hot part is to stay, it is left out.
pub fn batches(
    present: &GranuleSet,
    record: &WakeRecord,
    hot_stays: bool,
) -> Vec<ByteRange> {
    let mut all = Vec::new();
    for heat in Heat::ALL.into_iter().rev() {
        if heat == Heat::Hot && hot_stays {
            continue;
        }
        let mut last: Option<ByteRange> = None;
        for granule in present.iter().filter(|it| record.heat(*it) == heat) {
            let offset = u64::from(granule) * GRANULE;
            match &mut last {
                Some(batch) if batch.end() == offset && batch.len < OUT_BATCH => {
                    batch.len += GRANULE;
                }
                _ => all.extend(last.replace(ByteRange::new(offset, GRANULE))),
            }
        }
        all.extend(last);
    }
    all
}

/// The first of these batches, with so many bytes in all at most.
pub fn at_most(batches: Vec<ByteRange>, bytes: u64) -> Vec<ByteRange> {
    let mut left = bytes / GRANULE * GRANULE;
    let mut some = Vec::new();
    for batch in batches {
        let len = batch.len.min(left);
        if len == 0 {
            break;
        }
        some.push(ByteRange::new(batch.offset, len));
        left -= len;
    }
    some
}
