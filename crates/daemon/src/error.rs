//! What the daemon says when something cannot be done.
//!
//! One type for the API and for `sterna serve`: a kind for programs, what
//! happened and to what, and what to do next. Errors of other rooms become one
//! of these where somebody knows what the user was doing.

use std::fmt;

use sterna_api::{ErrorBody, ErrorCode};

use crate::store::StoreError;

/// A refusal or a failure.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct DaemonError {
    code: ErrorCode,
    message: String,
    hint: String,
}

/// What most of the daemon answers.
pub(crate) type Result<T, E = DaemonError> = std::result::Result<T, E>;

impl DaemonError {
    /// An error of a kind: what happened, and to what.
    pub(crate) fn new(code: ErrorCode, message: impl fmt::Display) -> Self {
        DaemonError { code, message: message.to_string(), hint: String::new() }
    }

    /// The request makes no sense as it stands.
    pub(crate) fn invalid(message: impl fmt::Display) -> Self {
        Self::new(ErrorCode::Invalid, message)
    }

    /// There is no `what` of that name.
    pub(crate) fn not_found(what: &str, name: impl fmt::Display) -> Self {
        let name = name.to_string();
        let error = Self::new(ErrorCode::NotFound, format!("there is no {what} {name}"));
        // A place where a name is wanted: it can get one.
        let is_place = what == "datastore" && name.contains('/');
        error.hint(match is_place {
            true => format!("give the place a name: `sterna datastore add NAME {name}`"),
            false => format!("see `sterna {what} list`"),
        })
    }

    /// The name is taken.
    pub(crate) fn exists(what: &str, name: &str) -> Self {
        let error =
            Self::new(ErrorCode::Exists, format!("there is a {what} {name} already"));
        error.hint(format!("choose another name, or see `sterna {what} show {name}`"))
    }

    /// It is in use.
    pub(crate) fn in_use(message: impl fmt::Display) -> Self {
        Self::new(ErrorCode::InUse, message)
    }

    /// It cannot be reached or is not in order.
    pub(crate) fn unavailable(message: impl fmt::Display) -> Self {
        Self::new(ErrorCode::Unavailable, message)
    }

    /// The daemon itself failed.
    pub(crate) fn internal(message: impl fmt::Display) -> Self {
        Self::new(ErrorCode::Internal, message)
    }

    /// Adds what to do next.
    pub(crate) fn hint(mut self, hint: impl fmt::Display) -> Self {
        self.hint = hint.to_string();
        self
    }

    /// Says in front what it is about.
    pub(crate) fn about(mut self, what: &str) -> Self {
        self.message = format!("{what}: {}", self.message);
        self
    }

    /// What kind of trouble it is.
    pub fn code(&self) -> ErrorCode {
        self.code
    }

    /// The error in the API's form.
    pub fn body(&self) -> ErrorBody {
        ErrorBody {
            code: self.code,
            message: self.message.clone(),
            hint: self.hint.clone(),
        }
    }
}

impl From<StoreError> for DaemonError {
    fn from(error: StoreError) -> Self {
        let (message, hint) = (error.with_cause(), error.hint());
        match error {
            StoreError::Taken { .. } => DaemonError::in_use(message).hint(hint),
            _ => DaemonError::internal(message).hint(hint),
        }
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    #[test]
    fn a_damaged_database_is_not_taken_for_a_full_directory() {
        let hint = |code| {
            let source = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            let error = StoreError::Sqlite { what: "list the disks", source };
            DaemonError::from(error).body().hint
        };
        assert!(hint(ffi::SQLITE_CORRUPT).contains("sterna disk recover"));
        assert!(hint(ffi::SQLITE_FULL).contains("has room"));
    }

    #[test]
    fn a_path_where_a_datastore_is_wanted_can_get_a_name() {
        let hint = |name| DaemonError::not_found("datastore", name).body().hint;
        assert!(hint("/mnt/slow").contains("sterna datastore add NAME /mnt/slow"));
        assert!(hint("slow").contains("sterna datastore list"));
    }
}
