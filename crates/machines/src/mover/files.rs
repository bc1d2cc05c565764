//! The destination's file, if Sterna makes it. The new file gets the source's owner and mode. If
//! the source is no file, it gets the user of the VM's QEMU.
//!
//! Only that very file is removed, however long it takes until it can be: meanwhile
//! somebody may have put another one in its place. So Sterna records which file was made
//! (`VmMoveRecord::destination_file`), and a later daemon knows the file by that, never by its
//! name. Of a move that an older Sterna has begun nothing is recorded: then the file stays.

use std::fs::{File, OpenOptions, Permissions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::Path;
use std::time::Duration;

use sterna_api::Error;
use sterna_engine::datastore::{Known, remove_known};
use sterna_engine::place;
use sterna_engine::{Beside, FileIdentity};
use sterna_state::{MadeFile, VmMoveRecord};

/// What has become of what was to be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Removed {
    /// It is gone.
    Gone,
    /// It was not there, or it is not known whether that is it.
    Kept,
    /// Another one has its name.
    Another,
}

/// What was made.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Made {
    /// What it is known by, if it is there.
    pub(super) known: Option<Known>,
    /// Whether it has all its room, which it is to keep.
    pub(super) thick: bool,
}

/// What the file that is there is known by.
pub(super) fn known(record: &VmMoveRecord) -> Option<FileIdentity> {
    FileIdentity::at(Path::new(&record.destination)).ok()
}

/// What the file is known by that an earlier daemon has made.
pub(super) fn recorded(record: &VmMoveRecord) -> Option<Known> {
    let MadeFile { number, made } = record.destination_file?;
    Some(Known::Beside(Beside { number, made }))
}

/// What is recorded of a file.
pub(super) fn made(file: &FileIdentity) -> MadeFile {
    let Beside { number, made } = file.beside();
    MadeFile { number, made }
}

/// Makes the file, which must not be there: raw images have their size, others are to
/// be filled. Its name is durable then.
pub(super) fn make(
    record: &VmMoveRecord,
    qemu: Option<(u32, u32)>,
) -> Result<Made, Error> {
    make_and(record, qemu, keep_name)
}

/// Makes the name of a new file durable: QEMU makes what is in it so, and a power loss after
/// the switch-over could take a disk by its name.
pub(super) fn keep_name(path: &Path) -> std::io::Result<()> {
    let directory = match File::open(path.parent().unwrap_or(Path::new("."))) {
        Ok(directory) => directory,
        // A server that lets others than its own user only pass through.
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            let path = path.display();
            tracing::warn!(%path, %error, "cannot make the name of an image durable");
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    match directory.sync_all() {
        // Some file systems of servers do not know that of a directory.
        Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => Ok(()),
        synced => synced,
    }
}

fn make_and(
    record: &VmMoveRecord,
    qemu: Option<(u32, u32)>,
    keep_name: impl FnOnce(&Path) -> std::io::Result<()>,
) -> Result<Made, Error> {
    let path = &record.destination;
    let failed = |error: std::io::Error| {
        Error::unavailable(format!("cannot make {path}: {error}"))
    };
    let source = std::fs::metadata(&record.source).ok();
    let mode = source.as_ref().map_or(0o600, |source| source.mode() & 0o666);
    let mut new = OpenOptions::new();
    let file: File =
        new.write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
    // Whatever our umask is. Some file systems know no modes.
    let _ = file.set_permissions(Permissions::from_mode(mode));
    let size = || {
        let full = source.as_ref().is_some_and(|it| it.blocks() * 512 >= record.size);
        let is_raw = record.format == "raw";
        if is_raw { give_size(&file, record.size, full) } else { Ok(false) }
    };
    let sized = size().and_then(|thick| keep_name(Path::new(path)).map(|()| thick));
    let thick = sized.map_err(|error| {
        // It is ours, and of no use to anybody.
        let known = FileIdentity::of(&file).map(Known::File);
        let _ = known.and_then(|known| remove_known(Path::new(path), &known));
        failed(error)
    })?;
    let owner = source.map(|source| (source.uid(), source.gid())).or(qemu);
    if let Some((user, group)) = owner {
        // Without the right to do so, QEMU must be able to open it as it is.
        let _ = fchown(&file, Some(user), Some(group));
    }
    Ok(Made { known: FileIdentity::of(&file).ok().map(Known::File), thick })
}

/// Gives a new file its size, and its room if the source had all of it. Says whether it has
/// that. Where a file system promises no room, there was none at the source either, or there
/// is none to be had.
fn give_size(file: &File, size: u64, thick: bool) -> std::io::Result<bool> {
    let promised = thick && place::keep_in_place(file)?;
    file.set_len(size)?;
    if !promised {
        return Ok(false);
    }
    match place::allocate(file, size) {
        Err(error) if error.kind() == std::io::ErrorKind::Unsupported => Ok(false),
        allocated => allocated.map(|()| true),
    }
}

/// Whether there is no such file yet.
pub(super) fn is_free(record: &VmMoveRecord) -> Result<(), Error> {
    let path = &record.destination;
    match std::fs::exists(path) {
        Ok(false) => Ok(()),
        Ok(true) => Err(Error::in_use(format!("{path} exists already"))),
        Err(error) => Err(Error::unavailable(format!(
            "cannot check whether {path} exists: {error}"
        ))),
    }
}

/// Whether it is there as it is made: since the move was asked for, of its length, and with
/// nothing in it; and the one that is recorded, if one is. Where a file system does not say
/// when, or what is in a file, it is not.
pub(super) fn is_blank(record: &VmMoveRecord) -> bool {
    let path = Path::new(&record.destination);
    let length = if record.format == "raw" { record.size } else { 0 };
    let is_as_made = std::fs::symlink_metadata(path)
        .is_ok_and(|found| found.is_file() && found.len() == length);
    let is_new = || {
        let found = FileIdentity::at(path).ok();
        let made = found.and_then(|found| found.beside().moment());
        made.is_some_and(|made| Duration::from_nanos(made).as_secs() >= record.started)
    };
    let is_recorded = || {
        let found = FileIdentity::at(path).ok();
        recorded(record).is_none_or(|known| found.is_some_and(|found| known.is(&found)))
    };
    let is_empty = || {
        let file = File::open(path);
        file.and_then(|file| place::has_data(&file)).is_ok_and(|has| !has)
    };
    is_as_made && is_new() && is_recorded() && is_empty()
}

/// Whether it is there, or may be.
pub(super) fn is_there(record: &VmMoveRecord) -> bool {
    std::fs::exists(&record.destination).unwrap_or(true)
}

/// Removes it, if that is what is there; that it is not there is fine. Says what has become
/// of it, or what is in the way.
pub(super) fn remove(
    record: &VmMoveRecord,
    known: Option<Known>,
) -> Result<Removed, String> {
    use sterna_engine::datastore::Removed as What;
    let Some(known) = known else { return Ok(Removed::Kept) };
    let path = &record.destination;
    match remove_known(Path::new(path), &known) {
        Ok(What::Gone) => Ok(Removed::Gone),
        Ok(What::Absent) => Ok(Removed::Kept),
        Ok(What::Another) => Ok(Removed::Another),
        Err(why) => Err(format!("Sterna could not remove {path}: {why}")),
    }
}

/// What it takes.
pub(super) fn allocated(record: &VmMoveRecord) -> Option<u64> {
    std::fs::metadata(&record.destination).ok().map(|found| found.blocks() * 512)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;
    use crate::sample::vm_move;

    /// A move from one file of a directory to another.
    fn record(directory: &std::path::Path) -> VmMoveRecord {
        let place = |name: &str| directory.join(name).display().to_string();
        let (old, new) = (place("old.raw"), place("new.raw"));
        VmMoveRecord { size: 1 << 20, ..vm_move(7, &old, &new) }
    }

    #[test]
    fn the_new_file_has_the_old_ones_mode_whatever_our_umask_is() {
        let directory = tempfile::tempdir().unwrap();
        let record = record(directory.path());
        for mode in [0o666, 0o660, 0o600] {
            std::fs::write(&record.source, "bytes").unwrap();
            std::fs::set_permissions(&record.source, Permissions::from_mode(mode))
                .unwrap();
            let known = make(&record, None).unwrap().known;
            let made = std::fs::metadata(&record.destination).unwrap();
            assert_eq!((made.mode() & 0o777, made.len()), (mode, 1 << 20));
            assert_eq!(remove(&record, known), Ok(Removed::Gone));
            assert_eq!(remove(&record, known), Ok(Removed::Kept));
        }
    }

    #[test]
    fn an_image_that_was_allocated_in_full_is_so_at_its_new_place() {
        let directory = tempfile::tempdir().unwrap();
        let record = record(directory.path());
        let source = File::create(&record.source).unwrap();
        source.set_len(record.size).unwrap();
        if place::allocate(&source, record.size).is_err() {
            eprintln!("skipped: this file system allocates nothing");
            return;
        }
        let Made { known, thick } = make(&record, None).unwrap();
        assert!(thick, "nothing of it is to be discarded");
        assert!(allocated(&record).unwrap() >= record.size);
        assert!(is_blank(&record), "nothing is in it");
        remove(&record, known).unwrap();
        source.set_len(0).unwrap();
        source.set_len(record.size).unwrap();
        assert!(!make(&record, None).unwrap().thick);
        assert_eq!(allocated(&record), Some(0));
    }

    #[test]
    fn another_file_of_that_name_is_not_removed() {
        let directory = tempfile::tempdir().unwrap();
        let record = record(directory.path());
        let made = make(&record, None).unwrap().known;
        assert!(made.unwrap().is(&known(&record).unwrap()));
        assert_eq!(remove(&record, None), Ok(Removed::Kept), "nobody knows what it is");
        std::fs::rename(&record.destination, directory.path().join("aside")).unwrap();
        std::fs::write(&record.destination, "somebody's").unwrap();
        assert_eq!(remove(&record, made), Ok(Removed::Another));
        assert_eq!(std::fs::read(&record.destination).unwrap(), b"somebody's");
    }

    #[test]
    fn a_file_is_made_only_if_its_name_is_made_durable() {
        let directory = tempfile::tempdir().unwrap();
        let mut record = record(directory.path());
        for format in ["raw", "qcow2"] {
            record.format = format.into();
            let fails = |path: &Path| {
                assert_eq!(path, Path::new(&record.destination));
                assert!(path.exists(), "there is a name to keep");
                Err(std::io::ErrorKind::Other.into())
            };
            assert!(make_and(&record, None, fails).is_err());
            assert!(is_free(&record).is_ok(), "it is of no use");
            let known = make(&record, None).unwrap().known;
            assert_eq!(remove(&record, known), Ok(Removed::Gone));
        }
    }

    #[test]
    fn a_later_daemon_removes_the_recorded_file_and_no_other_of_its_name() {
        let directory = tempfile::tempdir().unwrap();
        let mut record = record(directory.path());
        let aside = directory.path().join("aside");
        make(&record, None).unwrap();
        assert!(recorded(&record).is_none(), "as an older Sterna leaves it");
        assert_eq!(remove(&record, recorded(&record)), Ok(Removed::Kept));
        record.destination_file = Some(made(&known(&record).unwrap()));
        std::fs::rename(&record.destination, &aside).unwrap();
        let other = File::create(&record.destination).unwrap();
        other.set_len(record.size).unwrap();
        assert_eq!(remove(&record, recorded(&record)), Ok(Removed::Another));
        assert!(!is_blank(&record), "it is not the one that was made");
        std::fs::rename(&aside, &record.destination).unwrap();
        assert!(is_blank(&record));
        assert_eq!(remove(&record, recorded(&record)), Ok(Removed::Gone));
    }

    #[test]
    fn a_file_is_blank_until_something_is_in_it() {
        let directory = tempfile::tempdir().unwrap();
        let record = record(directory.path());
        assert!(!is_blank(&record), "there is none");
        make(&record, None).unwrap();
        assert!(is_blank(&record));
        assert!(make(&record, None).is_err(), "it is there");
        let file = OpenOptions::new().write(true).open(&record.destination).unwrap();
        file.write_all_at(&[1; 8192], 0).unwrap();
        assert!(!is_blank(&record));
    }

    #[test]
    fn a_file_that_is_longer_or_older_than_the_move_is_not_blank() {
        let directory = tempfile::tempdir().unwrap();
        let mut record = record(directory.path());
        make(&record, None).unwrap();
        assert!(is_blank(&record));
        record.size *= 2;
        assert!(!is_blank(&record), "another length");
        record.format = "qcow2".into();
        assert!(!is_blank(&record), "a new qcow2 image has none");
        let file = OpenOptions::new().write(true).open(&record.destination).unwrap();
        file.set_len(0).unwrap();
        assert!(is_blank(&record));
        record.started = sterna_os::clock::now() + 60;
        assert!(!is_blank(&record), "it was there before");
    }
}
