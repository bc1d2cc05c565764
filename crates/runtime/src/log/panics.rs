//! What a thread says as it panics.
//!
//! The program mostly ends right after that: so it is waited for, but not for long. Nothing
//! here may panic or wait by itself.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::{self, PanicHookInfo};
use std::thread;
use std::time::Duration;

use jiff::Timestamp;

use super::Log;

/// How long the program's last words may take.
const LAST_WORDS: Duration = Duration::from_millis(500);

impl Log {
    /// Has panics of all threads go here.
    pub fn take_panics(&self) {
        let log = self.clone();
        panic::set_hook(Box::new(move |info| {
            log.say(words(info).as_bytes());
            log.settle(LAST_WORDS);
        }));
    }
}

/// A line, and below it the way there if that is asked for (`RUST_BACKTRACE`).
fn words(info: &PanicHookInfo<'_>) -> String {
    let current = thread::current();
    let thread = current.name().unwrap_or("?");
    let at = info.location().map(ToString::to_string).unwrap_or_default();
    let payload = info.payload();
    let literal = payload.downcast_ref::<&str>().copied();
    let why = literal.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let why = why.unwrap_or("?");
    let now = Timestamp::now();
    let mut text =
        format!("{now:.6} ERROR panicked thread={thread:?} at={at:?} why={why:?}\n");
    let way = Backtrace::capture();
    if way.status() == BacktraceStatus::Captured {
        text.push_str(&format!("{way}\n"));
    }
    text
}
