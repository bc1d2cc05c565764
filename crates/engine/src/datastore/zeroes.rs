//! Writing zeroes out: a file or a device, from one end to the other.

use std::fs::OpenOptions;
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::Path;

use super::DatastoreError;
use super::error::failed;

/// How much is written at a time.
const CHUNK: usize = 1 << 20;
/// How much may be dirty before it is waited for: enough to keep a device
/// busy, too little to fill the memory that others need.
const DIRTY: u64 = 64 << 20;

/// Writes zeroes over the first `len` bytes of the file or device at `path`,
/// durably. `progress` hears how many bytes are done and says whether to go on.
pub(super) fn fill(
    path: &Path,
    len: u64,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<(), DatastoreError> {
    // Links lead to devices, and never to images that are files.
    let is_device = path.metadata().is_ok_and(|it| it.file_type().is_block_device());
    let flags = if is_device { 0 } else { libc::O_NOFOLLOW };
    let mut options = OpenOptions::new();
    let file = options.write(true).custom_flags(flags).open(path);
    let file = file.map_err(failed("open", path))?;
    let zeroes = vec![0; CHUNK];
    let mut done = 0;
    while done < len {
        let chunk = (len - done).min(CHUNK as u64);
        file.write_all_at(&zeroes[..chunk as usize], done)
            .map_err(failed("write zeroes to", path))?;
        done += chunk;
        if done % DIRTY == 0 {
            file.sync_data().map_err(failed("write zeroes to", path))?;
        }
        if !progress(done) {
            return Err(DatastoreError::Stopped);
        }
    }
    file.sync_all().map_err(failed("write zeroes to", path))
}
