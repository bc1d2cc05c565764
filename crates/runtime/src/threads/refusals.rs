//! Threads that tests have refused, as a system would that has none left.

use std::sync::Mutex;

use sterna_api::{Error, Result};
use sterna_os::lock;

/// Names of threads that are refused: those that begin so.
static REFUSED: Mutex<Vec<&str>> = Mutex::new(Vec::new());

/// Refuses a thread if its name is among the refused ones.
pub(super) fn check(name: &str) -> Result<()> {
    match lock(&REFUSED).iter().any(|refused| name.starts_with(refused)) {
        true => Err(Error::internal("cannot start a thread: none is left")),
        false => Ok(()),
    }
}

/// From now on, no thread whose name begins so is started.
pub fn deny(name: &'static str) {
    lock(&REFUSED).push(name);
}

/// Threads whose names begin so are started again.
pub fn allow(name: &str) {
    lock(&REFUSED).retain(|refused| *refused != name);
}
