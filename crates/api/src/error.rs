//! The error that the daemon answers with: a kind for programs, what happened and to what,
//! and what to do next.
//!
//! The API sends it as JSON, and `sterna serve` prints it. Every crate of the daemon
//! returns this type; an error of another crate (the engine's, QEMU's) becomes one where
//! the code knows what the user asked for.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The kind of the error, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// The request makes no sense as it stands.
    Invalid,
    /// There is no such thing.
    NotFound,
    /// The name is taken.
    Exists,
    /// It is in use, or being changed by another request.
    InUse,
    /// The destination has not enough room.
    NoSpace,
    /// A datastore or a disk cannot be reached or is not in order.
    Unavailable,
    /// The migration that was waited for was cancelled. Said by the command line.
    Cancelled,
    /// The migration that was waited for stands still. Said by the command line.
    Paused,
    /// The wait was ended, the migration was not. Said by the command line.
    Interrupted,
    /// An experiment did not show what it should. Said by the command line.
    Unmet,
    /// The daemon itself failed.
    Internal,
}

/// A refusal or a failure, and the body of every answer that is not a success.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Error {
    /// The kind of trouble.
    pub code: ErrorCode,
    /// What happened, and to what.
    pub message: String,
    /// What to do next; may be empty.
    pub hint: String,
}

/// What most calls of the daemon return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of a kind: what happened, and to what.
    pub fn new(code: ErrorCode, message: impl fmt::Display) -> Self {
        Error { code, message: message.to_string(), hint: String::new() }
    }

    /// The request makes no sense as it stands.
    pub fn invalid(message: impl fmt::Display) -> Self {
        Self::new(ErrorCode::Invalid, message)
    }

    /// There is no `what` of that name.
    pub fn not_found(what: &str, name: impl fmt::Display) -> Self {
        let name = name.to_string();
        let noun = noun(what);
        let error = Self::new(ErrorCode::NotFound, format!("there is no {noun} {name}"));
        // A place where a name is wanted: it can get one.
        let is_place = what == "datastore" && name.contains('/');
        error.hint(match is_place {
            true => format!("give the place a name: `sterna datastore add NAME {name}`"),
            false => format!("see `sterna {} list`", command_of(what)),
        })
    }

    /// The name is taken.
    pub fn exists(what: &str, name: &str) -> Self {
        let noun = noun(what);
        let error =
            Self::new(ErrorCode::Exists, format!("there is a {noun} {name} already"));
        let command = command_of(what);
        error.hint(format!("choose another name, or see `sterna {command} show {name}`"))
    }

    /// It is in use.
    pub fn in_use(message: impl fmt::Display) -> Self {
        Self::new(ErrorCode::InUse, message)
    }

    /// It cannot be reached or is not in order.
    pub fn unavailable(message: impl fmt::Display) -> Self {
        Self::new(ErrorCode::Unavailable, message)
    }

    /// The daemon itself failed.
    pub fn internal(message: impl fmt::Display) -> Self {
        Self::new(ErrorCode::Internal, message)
    }

    /// The same error with what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl fmt::Display) -> Self {
        self.hint = hint.to_string();
        self
    }

    /// The same error, whose message begins with what it is about.
    #[must_use]
    pub fn about(mut self, what: &str) -> Self {
        self.message = format!("{what}: {}", self.message);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// What people write for a word that is a name in commands and paths.
pub fn noun(what: &str) -> &str {
    if what == "vm" { "VM" } else { what }
}

/// The command that is about things of that kind.
fn command_of(what: &str) -> &str {
    match what {
        "pool" => "drs pool",
        "rule" => "drs rule",
        "swap tier" => "swap",
        _ => what,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vm_is_a_vm_whatever_its_command_is_called() {
        assert_eq!(Error::exists("vm", "web").message, "there is a VM web already");
        assert_eq!(Error::not_found("vm", "web").message, "there is no VM web");
        assert!(Error::exists("vm", "web").hint.contains("`sterna vm show web`"));
    }

    #[test]
    fn a_path_where_a_datastore_is_wanted_can_get_a_name() {
        let hint = |name| Error::not_found("datastore", name).hint;
        assert!(hint("/mnt/slow").contains("sterna datastore add NAME /mnt/slow"));
        assert!(hint("slow").contains("sterna datastore list"));
    }
}
