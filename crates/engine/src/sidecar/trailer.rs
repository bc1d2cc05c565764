//! The sidecar in the last block of a device or an export.
//!
//! The record is there twice. The second copy is written and flushed first,
//! then the first; so one of them is whole at any time, and the second, if it
//! is whole, is never the older one: it is the one to believe. Should a crash
//! have left the first copy behind the second, it is brought up before the
//! second is touched again, or a torn write would bring the older record back.

use super::{Identity, RECORD_LEN, SidecarError};

/// The length of a trailer: one block, so that writing it needs no reading.
pub const TRAILER_LEN: usize = 4096;
/// Where the second copy starts: another sector, whatever a sector's size.
const SECOND: usize = TRAILER_LEN / 2;

/// The bytes of a trailer.
pub type Trailer = [u8; TRAILER_LEN];

/// Where the trailer starts on a medium of `capacity` bytes, if a disk of
/// `size` bytes leaves room for one.
pub fn offset(capacity: u64, size: u64) -> Option<u64> {
    let offset =
        (capacity - capacity % TRAILER_LEN as u64).checked_sub(TRAILER_LEN as u64)?;
    (offset >= size).then_some(offset)
}

/// What a trailer says. Bytes of somebody else are not damage: `Missing`.
pub fn read(trailer: &Trailer) -> Result<Identity, SidecarError> {
    let first = Identity::decode(&trailer[..RECORD_LEN]);
    match (Identity::decode(&trailer[SECOND..SECOND + RECORD_LEN]), first) {
        (Ok(second), _) => Ok(second),
        (Err(SidecarError::Version(version)), _) => Err(SidecarError::Version(version)),
        (Err(_), Ok(first)) => Ok(first),
        (Err(SidecarError::Missing | SidecarError::Foreign), Err(error))
        | (Err(error), Err(_)) => match error {
            SidecarError::Foreign => Err(SidecarError::Missing),
            error => Err(error),
        },
    }
}

/// The states of the trailer on the way from what it holds (`old`) to `record`.
/// Each is to be written and flushed before the next.
pub fn steps(old: &Trailer, record: &[u8; RECORD_LEN]) -> Vec<Trailer> {
    let mut steps = Vec::with_capacity(3);
    let mut state: Trailer = [0; TRAILER_LEN];
    if let Ok(Ok(truth)) = read(old).map(|identity| identity.encode()) {
        state[..RECORD_LEN].copy_from_slice(&truth);
        state[SECOND..SECOND + RECORD_LEN]
            .copy_from_slice(&old[SECOND..SECOND + RECORD_LEN]);
        if old[..RECORD_LEN] != truth {
            steps.push(state);
        }
    }
    state[SECOND..SECOND + RECORD_LEN].copy_from_slice(record);
    steps.push(state);
    state[..RECORD_LEN].copy_from_slice(record);
    steps.push(state);
    steps
}
