//! Why a monitor does not do what it is asked.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::{NotAMessage, TooLong};

/// What is said of one whose socket another one has.
const TAKEN: &str = ", and has taken the socket from it: the QEMU that lost the socket \
                     can only be ended by hand";

/// Why something could not be had from a monitor. Cheap to clone: all who wait for a
/// connection that breaks are told the same.
#[derive(Clone, Debug, thiserror::Error)]
pub enum QmpError {
    /// The socket is not there, nobody listens to it, or it is not for us.
    #[error("cannot connect to the QMP socket {}: {reason}", .socket.display())]
    Connect {
        /// The socket.
        socket: PathBuf,
        /// What the system says.
        reason: String,
        /// Whether that means that nobody listens there.
        nobody: bool,
    },
    /// Somebody is there and does not greet: it hangs, or talks to somebody else.
    #[error(
        "nothing greets on the QMP socket {} within {after:?}: QEMU hangs, or another \
         program uses this monitor, which takes one at a time",
        .socket.display()
    )]
    NoGreeting {
        /// The socket.
        socket: PathBuf,
        /// How long was waited.
        after: Duration,
    },
    /// A command was not answered.
    #[error("QEMU does not answer: no answer to {command} within {after:?}")]
    Silent {
        /// The command.
        command: &'static str,
        /// How long was waited.
        after: Duration,
    },
    /// The connection has ended.
    #[error("QEMU has closed its monitor: QEMU has ended, or was told to end")]
    Gone,
    /// The connection has ended, and QEMU takes another one: it is there.
    #[error(
        "the connection to QEMU's monitor broke: it is unknown whether QEMU has received \
         the command"
    )]
    Broken,
    /// Another process is there than the one that is known.
    #[error(
        "a different QEMU answers on its socket{}",
        if *.is_there { TAKEN } else { "" }
    )]
    Another {
        /// Whether that one has not ended.
        is_there: bool,
    },
    /// What came is not QMP.
    #[error("this is not a QEMU monitor: {0}")]
    Garbage(String),
    /// The command was refused, or failed.
    #[error("QEMU refuses {command}: {description}")]
    Refused {
        /// The command.
        command: &'static str,
        /// What kind of trouble it is, for programs.
        class: String,
        /// What is wrong.
        description: String,
    },
    /// The answer lacks what we need.
    #[error("QEMU's answer to {command} is not understood: {reason}")]
    NotUnderstood {
        /// The command.
        command: &'static str,
        /// What is missing or wrong.
        reason: String,
    },
}

impl QmpError {
    /// Whether the command came to QEMU and was turned down there.
    pub fn is_refusal(&self) -> bool {
        matches!(self, QmpError::Refused { .. })
    }
}

impl From<NotAMessage> for QmpError {
    fn from(error: NotAMessage) -> Self {
        QmpError::Garbage(error.to_string())
    }
}

impl From<TooLong> for QmpError {
    fn from(error: TooLong) -> Self {
        QmpError::Garbage(error.to_string())
    }
}

impl From<io::Error> for QmpError {
    /// A connection that breaks has ended, whatever the system calls it.
    fn from(_: io::Error) -> Self {
        QmpError::Gone
    }
}
