//! What a datastore refuses, for people: of which kind it is, what happened, and
//! what to do next, by commands that there are.

use sterna_api::ErrorCode;
use sterna_engine::datastore::DatastoreError;
use sterna_engine::sidecar::SidecarError;

use crate::error::DaemonError;

/// An error of the datastore `name`, for the API.
pub(crate) fn refusal(name: &str, error: &DatastoreError) -> DaemonError {
    let message = match unreadable(error) {
        Some((place, what)) => format!("datastore {name}: {place}: {what}"),
        None => format!("datastore {name}: {error}"),
    };
    DaemonError::new(code(error), message).hint(hint(error))
}

/// The sidecar of a disk's image cannot be read: what to do about that disk. The
/// advice is part of the message, as it is all that `disk show` has to show.
pub(crate) fn lost_sidecar(
    datastore: &str,
    disk: &str,
    file: &str,
    error: &DatastoreError,
) -> Option<DaemonError> {
    let (place, what) = unreadable(error)?;
    let file = if file.is_empty() { place } else { file };
    let message = format!(
        "datastore {datastore}: {place}: {what}; if it is the right image, take it up \
         again: `sterna disk remove {disk} --keep-image`, then `sterna disk import \
         {disk} --on {datastore} {file}`"
    );
    Some(DaemonError::new(code(error), message))
}

/// What is wrong with a sidecar whose image may be right.
fn unreadable(error: &DatastoreError) -> Option<(&str, String)> {
    let DatastoreError::Sidecar { place, source } = error else { return None };
    use SidecarError as E;
    let lost = matches!(source, E::Missing | E::Foreign | E::Damaged(_));
    lost.then(|| (place.as_str(), source.to_string()))
}

fn code(error: &DatastoreError) -> ErrorCode {
    use DatastoreError as E;
    match error {
        E::Full { .. } => ErrorCode::NoSpace,
        E::Exists(_) => ErrorCode::Exists,
        E::Occupied { .. } | E::Mounted { .. } | E::Held { .. } => ErrorCode::InUse,
        E::Io { .. } | E::Remote { .. } | E::Mismatch { .. } | E::Sidecar { .. } => {
            ErrorCode::Unavailable
        }
        _ => ErrorCode::Invalid,
    }
}

/// What to do; nothing where the error itself says it.
fn hint(error: &DatastoreError) -> &'static str {
    match error {
        DatastoreError::Full { .. } => {
            "free some space, or choose a thin image or another datastore"
        }
        DatastoreError::Exists(_) => {
            "make it a disk with `sterna disk import`, remove it, or choose another name"
        }
        error if unreadable(error).is_some() => {
            "if its bytes are a disk, make it one with `sterna disk import`"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_name_commands_that_there_are() {
        let exists = refusal("fast", &DatastoreError::Exists("/a/db.raw".into())).body();
        assert_eq!(exists.code, ErrorCode::Exists);
        assert_eq!(exists.message, "datastore fast: /a/db.raw exists already");
        assert!(exists.hint.contains("sterna disk import"));
        let source = SidecarError::Missing;
        let missing = DatastoreError::Sidecar { place: "/a/db.raw".into(), source };
        let advice = lost_sidecar("fast", "db", "db.raw", &missing).unwrap().to_string();
        assert!(advice.contains("sterna disk remove db --keep-image"), "{advice}");
        assert!(advice.contains("sterna disk import db --on fast db.raw"), "{advice}");
    }
}
