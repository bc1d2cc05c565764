//! What the API says when something cannot be done.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What kind of trouble it is, for programs.
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

/// The body of every answer that is not a success.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErrorBody {
    /// The kind of trouble.
    pub code: ErrorCode,
    /// What happened, and to what.
    pub message: String,
    /// What to do next; may be empty.
    pub hint: String,
}

impl fmt::Display for ErrorBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ErrorBody {}
