//! The destination's file, where we make it: as the source's, to the one who opens it.
//! Where there is no file to go by, it is whose QEMU is.

use std::fs::{File, OpenOptions, Permissions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, chown};

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
        new.write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
    // Whatever our umask is. Some file systems know no modes.
    let _ = file.set_permissions(Permissions::from_mode(mode));
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

/// Whether it is there with nothing in it, as it is made.
pub(super) fn is_blank(record: &VmMoveRecord) -> bool {
    let found = std::fs::symlink_metadata(&record.destination);
    found.is_ok_and(|found| found.is_file() && found.blocks() == 0)
}

/// Whether it is there, or may be.
pub(super) fn is_there(record: &VmMoveRecord) -> bool {
    std::fs::exists(&record.destination).unwrap_or(true)
}

/// Removes it; that it is not there is fine. Says whether it was, or what is in the way.
pub(super) fn remove(record: &VmMoveRecord) -> Result<bool, String> {
    match std::fs::remove_file(&record.destination) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => {
            Err(format!("{} could not be removed: {error}", record.destination))
        }
    }
}

/// What it takes.
pub(super) fn allocated(record: &VmMoveRecord) -> Option<u64> {
    std::fs::metadata(&record.destination).ok().map(|found| found.blocks() * 512)
}

#[cfg(test)]
mod tests {
    use sterna_api::Application;

    use super::*;
    use crate::store::Step;
    use crate::vms::Kind;

    /// A move from one file of a directory to another.
    fn record(directory: &std::path::Path) -> VmMoveRecord {
        let place = |name: &str| directory.join(name).display().to_string();
        VmMoveRecord {
            id: 7,
            kind: Kind::Move,
            vm: "web".into(),
            device: "vda".into(),
            size: 1 << 20,
            format: "raw".into(),
            from: "fast".into(),
            source: place("old.raw"),
            to: "slow".into(),
            destination: place("new.raw"),
            rate: None,
            guard: sterna_api::Guard::default(),
            step: Step::Created,
            paused: false,
            cancel: false,
            started: 9,
            ended: None,
            note: None,
            application: Application::default(),
            report: None,
            unclear: false,
        }
    }

    #[test]
    fn the_new_file_has_the_old_ones_mode_whatever_our_umask_is() {
        let directory = tempfile::tempdir().unwrap();
        let record = record(directory.path());
        for mode in [0o666, 0o660, 0o600] {
            std::fs::write(&record.source, "bytes").unwrap();
            std::fs::set_permissions(&record.source, Permissions::from_mode(mode))
                .unwrap();
            make(&record, None).unwrap();
            let made = std::fs::metadata(&record.destination).unwrap();
            assert_eq!((made.mode() & 0o777, made.len()), (mode, 1 << 20));
            assert!(remove(&record).unwrap() && !remove(&record).unwrap());
        }
    }

    #[test]
    fn a_file_is_blank_until_something_is_in_it() {
        let directory = tempfile::tempdir().unwrap();
        let record = record(directory.path());
        assert!(!is_blank(&record), "there is none");
        make(&record, None).unwrap();
        assert!(is_blank(&record));
        assert!(make(&record, None).is_err(), "it is there");
        std::fs::write(&record.destination, [1; 8192]).unwrap();
        assert!(!is_blank(&record));
    }
}
