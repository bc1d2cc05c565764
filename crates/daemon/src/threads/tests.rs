//! What tests need whose daemon gets no threads for its moves.

use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use sterna_api::{Error, Result};
use sterna_os::lock;
use sterna_state::Store;

use crate::{IoChoice, Log, Running, Settings};

/// Names of threads that are refused: those that begin so.
static REFUSED: Mutex<Vec<&str>> = Mutex::new(Vec::new());

/// As the system would.
pub(super) fn refuse(name: &str) -> Result<()> {
    match lock(&REFUSED).iter().any(|refused| name.starts_with(refused)) {
        true => Err(Error::internal("cannot start a thread: none is left")),
        false => Ok(()),
    }
}

/// From now on there are no threads of that name.
pub(crate) fn deny(name: &'static str) {
    lock(&REFUSED).push(name);
}

/// And now there are.
pub(crate) fn allow(name: &str) {
    lock(&REFUSED).retain(|refused| *refused != name);
}

/// Starts a daemon on a state.
pub(crate) fn start(place: &Path) -> Running {
    let settings = Settings {
        state: place.join("state"),
        socket: place.join("sterna.sock"),
        nbd_socket: place.join("nbd.sock"),
        listen: Vec::new(),
        io: IoChoice::Auto,
        log: Log::to(std::io::sink()).expect("a log"),
    };
    Running::start(settings).expect("the daemon starts all the same")
}

/// The state that a daemon will find there.
pub(crate) fn state(place: &Path) -> Store {
    std::fs::create_dir(place.join("state")).expect("a directory");
    Store::open(&place.join("state/state.db")).expect("a state")
}

/// Looks again and again until it is so.
#[track_caller]
pub(crate) fn until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
