//! The destination's file, where we make it: as the source's, to the one who opens it.
//! Where there is no file to go by, it is whose QEMU is.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, chown};

use crate::error::DaemonError;
use crate::store::VmMoveRecord;

/// Makes the file, which must not be there: raw images have their size, others are to
/// be filled.
pub(super) fn make(
    record: &VmMoveRecord,
    qemu: Option<(u32, u32)>,
) -> Result<(), DaemonError> {
    let path = &record.destination;
    let failed = |error: std::io::Error| {
        DaemonError::unavailable(format!("cannot make {path}: {error}"))
    };
    let source = std::fs::metadata(&record.source).ok();
    let mode = source.as_ref().map_or(0o600, |source| source.mode() & 0o666);
    let mut new = OpenOptions::new();
    let file: File =
        new.write(true).create_new(true).mode(mode).open(path).map_err(failed)?;
    if record.format == "raw"
        && let Err(error) = file.set_len(record.size)
    {
        // It is ours, and of no use to anybody.
        let _ = std::fs::remove_file(path);
        return Err(failed(error));
    }
    let owner = source.map(|source| (source.uid(), source.gid())).or(qemu);
    if let Some((user, group)) = owner {
        // Without the right to do so, QEMU must be able to open it as it is.
        let _ = chown(path, Some(user), Some(group));
    }
    Ok(())
}

/// Whether there is no such file yet.
pub(super) fn is_free(record: &VmMoveRecord) -> Result<(), DaemonError> {
    let path = &record.destination;
    match std::fs::exists(path) {
        Ok(false) => Ok(()),
        Ok(true) => Err(DaemonError::in_use(format!("{path} exists already"))),
        Err(error) => {
            Err(DaemonError::unavailable(format!("cannot look for {path}: {error}")))
        }
    }
}

/// Whether it is there, or may be.
pub(super) fn is_there(record: &VmMoveRecord) -> bool {
    std::fs::exists(&record.destination).unwrap_or(true)
}

/// Removes it; that it is gone already is fine. Says what is in the way.
pub(super) fn remove(record: &VmMoveRecord) -> Result<(), String> {
    match std::fs::remove_file(&record.destination) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("{} could not be removed: {error}", record.destination))
        }
        _ => Ok(()),
    }
}

/// What it takes.
pub(super) fn allocated(record: &VmMoveRecord) -> Option<u64> {
    std::fs::metadata(&record.destination).ok().map(|found| found.blocks() * 512)
}
