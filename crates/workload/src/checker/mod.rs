//! The checker: an application that remembers what it was promised.
//!
//! The disk is divided into *blocks* (512 or 4096 bytes). Every write covers
//! whole blocks and carries one *version*; the bytes of a block follow from
//! seed, block and version, so a block found on the disk says by itself which
//! write it came from, and a block that is torn or misplaced is recognised.
//!
//! The rules, which [`Model`] keeps:
//!
//! - A block has at most one request outstanding. Within that, anything goes:
//!   neighbours, mixed sizes, several connections, any depth.
//! - What was acknowledged must be read until it is overwritten. Not flushed
//!   does not matter: the tests kill processes, they do not cut the power.
//! - A write that was sent and not acknowledged leaves its blocks *in doubt*:
//!   each may hold the old or the new version. The first read that sees a
//!   block settles it: it must not change its mind afterwards.
//! - A trimmed block may hold zeroes or what it held before, for ever (the
//!   protocol promises no more). A block written with zeroes holds zeroes.
//!
//! The [`Ledger`] is the model's memory. A write is entered before it is sent
//! and entered again when it was acknowledged, so whichever side is killed at
//! whatever moment, replaying the file gives a model that asks for everything
//! that was promised and for nothing else.
//!
//! When a connection breaks the checker does what QEMU does with
//! `reconnect-delay`: it connects again and sends what was not answered. The
//! time a request spends waiting for that counts as its latency.

mod content;
mod ledger;
mod mix;
mod model;
mod run;
mod stats;
mod verify;

pub use content::{Found, Version};
pub use ledger::{Entry, Header, Ledger, LedgerError, Mark};
pub use mix::{Effect, Intent, Mix, Sizes};
pub use model::{Model, Wrong};
pub use run::{Event, Outcome, RunOptions, run};
pub use stats::{Interval, Summary};
pub use verify::{Verdict, VerifyOptions, verify};
