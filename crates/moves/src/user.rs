//! The services around moves: those that use them, and those that carry some out.

use sterna_api::{AskGuard, Migration, Result};

/// A service that uses moves. What it does not care about it leaves out.
pub trait MoveUser: Send + Sync {
    /// A move has ended, or stands still.
    fn changed(&self) {}

    /// Adds what the service knows to what people see of a move.
    fn complete(&self, _view: &mut Migration) {}
}

/// A service that carries out moves of its own, under numbers of the same series. It
/// answers nothing if a number is not one of its moves.
pub trait Mover: Send + Sync {
    /// All its moves.
    fn list(&self) -> Result<Vec<Migration>>;

    /// One move.
    fn show(&self, id: u64) -> Result<Option<Migration>>;

    /// Whether a move has not ended, by what is in memory.
    fn is_under_way(&self, id: u64) -> bool;

    /// Pauses a move, or has it go on.
    fn pause(&self, id: u64, paused: bool) -> Result<Option<Migration>>;

    /// Gives a move up.
    fn cancel(&self, id: u64) -> Result<Option<Migration>>;

    /// Limits a move, in bytes per second.
    fn set_rate(&self, id: u64, rate: Option<u64>) -> Result<Option<Migration>>;

    /// Changes what must hold for the application while the disk moves.
    fn set_guard(&self, id: u64, asked: &AskGuard) -> Result<Option<Migration>>;
}
