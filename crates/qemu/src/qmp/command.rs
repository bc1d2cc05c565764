//! What all commands have in common.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A command of a monitor. What it serializes to are its arguments.
pub trait Command: Serialize {
    /// Its name.
    const NAME: &'static str;
    /// What it gives.
    type Answer: DeserializeOwned;
}

/// What commands give that give nothing: `{}`, or in some versions something that does
/// not matter.
pub(super) type Nothing = serde::de::IgnoredAny;

/// Names a command and what it gives.
macro_rules! command {
    ($command:ty, $name:literal, $answer:ty) => {
        impl $crate::qmp::Command for $command {
            const NAME: &'static str = $name;
            type Answer = $answer;
        }
    };
}
pub(super) use command;
