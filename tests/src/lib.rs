//! Black-box tests: real programs against the real binary.
//!
//! A test here starts `sterna serve` on a directory of its own, talks to it
//! with the command line and with clients that people use (libnbd, QEMU, fio),
//! and breaks things: it kills the daemon, fills a file system, stops a
//! storage server. What is compared are bytes, exit codes and words.
//!
//! The house rules:
//!
//! - Nothing waits for a length of time; everything waits for a condition,
//!   with a generous limit after which the test fails and says what it was
//!   waiting for.
//! - A program that is not there, or a right that we do not have, is a skip
//!   with its reason on stderr, where `make test` collects it.
//! - What is random prints its seed. `STERNA_TEST_SEED` sets it.
//! - A failing test shows the end of its daemon's log.

pub mod between;
pub mod checker;
pub mod cli;
pub mod clients;
pub mod daemon;
pub mod forgetful;
pub mod guest;
pub mod http;
pub mod images;
pub mod libvirt;
pub mod lines;
pub mod metrics;
mod migration;
pub mod parts;
pub mod places;
pub mod plans;
pub mod postgres;
pub mod programs;
pub mod random;
pub mod scratch;
pub mod servers;
pub mod stage;
pub mod steps;
pub mod terminal;
pub mod transfer;
pub mod tunnel;
pub mod vms;
pub mod wait;

pub use checker::{Checker, Options as CheckerOptions};
pub use cli::Answer;
pub use daemon::Daemon;
pub use forgetful::Forgetful;
pub use guest::Guest;
pub use postgres::Postgres;
pub use scratch::Scratch;
pub use stage::{MIB, Stage};
pub use terminal::Terminal;
pub use wait::until;
