//! What a datastore refuses, for people: of which kind it is, what happened, and
//! what to do next, by commands that there are.

use std::io::ErrorKind;
use std::path::Path;

use sterna_api::{Error, ErrorCode};
use sterna_engine::datastore::DatastoreError;
use sterna_engine::sidecar::{FIRST, Role, SidecarError};
use sterna_os::descriptors::HINT;
use sterna_os::is_no_room;

/// An error of the datastore `name`, for the API.
pub(crate) fn refusal(name: &str, error: &DatastoreError) -> Error {
    let message = match unreadable(error) {
        Some((place, what)) => format!("datastore {name}: {place}: {what}"),
        None => format!("datastore {name}: {error}"),
    };
    Error::new(code(error), message).hint(hint(error))
}

/// The image of a disk cannot be served: what to do about that disk. The advice is
/// part of the message, as it is all that `disk show` has to show.
pub(crate) fn unfit(
    datastore: &str,
    disk: &str,
    file: &str,
    error: &DatastoreError,
) -> Error {
    let with =
        |what: String| Error::new(code(error), format!("datastore {datastore}: {what}"));
    match (error, unreadable(error)) {
        (_, Some((place, _))) if is_absent(place) => {
            with(format!("there is no image {place}; put it back, with its sidecar"))
        }
        (_, Some((place, what))) => {
            // It is at the end of a device or an export.
            let what = match file.is_empty() {
                true => format!(
                    "{what} at its end; if it was made larger, stop the daemon, make it as \
                     large as before, and start the daemon"
                ),
                false => what,
            };
            let file = if file.is_empty() { place } else { file };
            with(format!(
                "{place}: {what}; if it is the right image, import it anew: `sterna disk \
                 remove {disk} --keep-image`, then `sterna disk import {disk} --on \
                 {datastore} {file}`"
            ))
        }
        (DatastoreError::Mismatch { newer: true, .. }, _) => with(format!(
            "{error}: this state is out of date; recover the disk: `sterna disk remove \
             {disk} --keep-image`, then `sterna disk recover`"
        )),
        (DatastoreError::TooSmall { .. }, _) if file.is_empty() => with(format!(
            "{error}: attach the right device or export; the disk is served as soon as it \
             is there"
        )),
        (DatastoreError::TooSmall { .. }, _) => with(format!(
            "{error}: the image was shortened, and data is missing; lengthening the \
             image does not restore the data: restore the disk from a backup"
        )),
        _ => refusal(datastore, error),
    }
}

/// Whether there is surely no file at this place, which may be a URI as well.
fn is_absent(place: &str) -> bool {
    let path = Path::new(place);
    path.is_absolute() && matches!(path.try_exists(), Ok(false))
}

/// What is wrong with a sidecar whose image may be right.
fn unreadable(error: &DatastoreError) -> Option<(&str, String)> {
    let DatastoreError::Sidecar { place, source } = error else { return None };
    use SidecarError as E;
    let lost = matches!(source, E::Missing | E::Foreign | E::Damaged(_));
    lost.then(|| (place.as_str(), source.to_string()))
}

/// What to do where nothing fits any more.
const ROOM: &str = "free some space, or choose another datastore";

/// What to do about a quota.
const QUOTA: &str = "raise the quota there, delete files that count against it, or \
                     choose a thin image or another datastore";

fn code(error: &DatastoreError) -> ErrorCode {
    use DatastoreError as E;
    match error {
        E::Full { .. } | E::NoFiles { .. } | E::Quota { .. } => ErrorCode::NoSpace,
        E::Io { source, .. }
        | E::Sidecar { source: SidecarError::Io { source, .. }, .. }
            if is_no_room(source) =>
        {
            ErrorCode::NoSpace
        }
        E::Exists(_) => ErrorCode::Exists,
        E::Occupied { .. }
        | E::Mounted { .. }
        | E::Held { .. }
        | E::Another(_)
        | E::Unproven(_)
        | E::Rehandled(_) => ErrorCode::InUse,
        E::Elsewhere { .. }
        | E::Io { .. }
        | E::Remote { .. }
        | E::Mismatch { .. }
        | E::Sidecar { .. } => ErrorCode::Unavailable,
        _ => ErrorCode::Invalid,
    }
}

/// Whether the daemon may not open any more files.
fn is_limit(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(libc::EMFILE)
}

/// What to do; nothing where the error itself says it.
fn hint(error: &DatastoreError) -> &'static str {
    match error {
        DatastoreError::Full { .. } => {
            "free some space, or choose a thin image or another datastore"
        }
        DatastoreError::NoFiles { .. } => {
            "remove files there (`df --inodes`), or choose another datastore"
        }
        DatastoreError::Quota { .. } => QUOTA,
        DatastoreError::NoPromise { .. } => {
            "choose a thin image, or a datastore on another file system"
        }
        DatastoreError::Exists(_) => {
            "import it with `sterna disk import`, remove it, or choose another name"
        }
        DatastoreError::Rehandled(_) => {
            "if the file server was exchanged or restored, compare size, dates and content of \
             the file with what you expect there, then go on or remove it by hand; else look \
             for the program that has put its file there"
        }
        DatastoreError::Another(_) | DatastoreError::Unproven(_) => {
            "find out whose file it is before you remove it"
        }
        DatastoreError::Occupied { role: Role::Active, .. } => {
            "choose another place: that disk is in use, perhaps by this daemon, and the \
             place may be the disk's own under another name; `sterna disk recover \
             --dry-run` shows if it is an old image"
        }
        DatastoreError::Occupied { role: Role::Partial, generation: FIRST, .. } => {
            "a disk was being created or adopted there, and that was not finished: if a \
             daemon still does it, choose another place; if it was killed, its next start \
             removes the image within seconds; if its state is lost, overwrite the last \
             8 KiB of the place with zeroes"
        }
        DatastoreError::Occupied { .. } => {
            "remove that image first, or choose another place"
        }
        DatastoreError::TooSmall { .. } => "choose a larger one",
        DatastoreError::Elsewhere { .. } => {
            "mount it; Sterna tries again every few seconds"
        }
        DatastoreError::Remote { .. } => {
            "check that the server runs, and that it permits one more client"
        }
        DatastoreError::Io { source, .. } if is_limit(source) => HINT,
        DatastoreError::Io { source, .. } => match source.kind() {
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                "check that the daemon may write there, and that the place is not \
                 read-only"
            }
            ErrorKind::FileTooLarge => {
                "the file system supports no files of that size, or the daemon has a limit \
                 (`ulimit -f`, `LimitFSIZE=` of its unit): choose a smaller size or another \
                 datastore, or raise the limit and restart the daemon"
            }
            ErrorKind::QuotaExceeded => QUOTA,
            ErrorKind::StorageFull => ROOM,
            _ => "find the storage problem in the kernel's log",
        },
        DatastoreError::Sidecar { source: SidecarError::Io { source, .. }, .. }
            if is_no_room(source) =>
        {
            ROOM
        }
        error if unreadable(error).is_some() => {
            "if it holds a disk, import it with `sterna disk import`"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use sterna_core::Bytes;

    use super::*;

    #[test]
    fn hints_name_commands_that_there_are() {
        let exists = refusal("fast", &DatastoreError::Exists("/a/db.raw".into()));
        assert_eq!(exists.code, ErrorCode::Exists);
        assert_eq!(exists.message, "datastore fast: /a/db.raw exists already");
        assert!(exists.hint.contains("sterna disk import"));
        let read_only = DatastoreError::Io {
            what: "create",
            path: "/a/db.raw".into(),
            source: ErrorKind::ReadOnlyFilesystem.into(),
        };
        assert!(refusal("fast", &read_only).hint.contains("read-only"));
    }

    #[test]
    fn advice_on_an_image_depends_on_what_is_left_of_it() {
        let advice =
            |error: &DatastoreError| unfit("fast", "db", "db.raw", error).to_string();
        let lost = |place: &str| DatastoreError::Sidecar {
            place: place.into(),
            source: SidecarError::Missing,
        };
        let no_sidecar = advice(&lost("/proc/self/exe"));
        assert!(
            no_sidecar.contains("sterna disk remove db --keep-image"),
            "{no_sidecar}"
        );
        assert!(no_sidecar.contains("disk import db --on fast db.raw"), "{no_sidecar}");
        let no_image = advice(&lost("/nowhere/db.raw"));
        assert!(no_image.contains("there is no image /nowhere/db.raw"), "{no_image}");
        assert!(!no_image.contains("remove"), "{no_image}");
        assert!(advice(&lost("nbd://there/db")).contains("sterna disk import"));
        let newer = advice(&DatastoreError::Mismatch {
            place: "/a/db.raw".into(),
            what: "it has generation 4 and not 3".into(),
            newer: true,
        });
        assert!(newer.contains("--keep-image`, then `sterna disk recover`"), "{newer}");
        let shortened = advice(&DatastoreError::TooSmall {
            place: "/a/db.raw".into(),
            capacity: Bytes(1 << 30),
            needed: Bytes(3 << 29),
        });
        assert!(shortened.contains("data is missing"), "{shortened}");
        assert!(!shortened.contains("larger"), "{shortened}");
    }
}
