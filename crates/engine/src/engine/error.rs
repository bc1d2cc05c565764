//! Why a call of the engine fails.

use crate::image::OpenError;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The reactors could not be started.
    #[error("cannot start: {0}")]
    Start(std::io::Error),
    /// A socket cannot be listened on.
    #[error("cannot listen: {0}")]
    Listen(std::io::Error),
    /// The disk is attached already.
    #[error("the disk is attached already")]
    Attached,
    /// Another disk has this name.
    #[error("there is another disk with the name `{0}`")]
    NameTaken(String),
    /// No such disk is attached.
    #[error("the disk is not attached")]
    NotAttached,
    /// The image cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The size is no multiple of 512, or zero.
    #[error("a disk cannot have {0} bytes: its size must be a multiple of 512")]
    BadSize(u64),
    /// The image is smaller than its disk.
    #[error("the image has {image} bytes, its disk {disk}")]
    TooSmall {
        /// Bytes of the image.
        image: u64,
        /// Bytes of the disk.
        disk: u64,
    },
    /// The disk is being migrated.
    #[error("the disk is being migrated")]
    Migrating,
    /// A migration is over, and the disk's source has not answered all that it asked for.
    #[error(
        "its datastore has not answered a request of the migration before: try again when \
         the datastore answers"
    )]
    SourceSilent,
    /// The engine has stopped.
    #[error("the engine has stopped")]
    Stopped,
}
