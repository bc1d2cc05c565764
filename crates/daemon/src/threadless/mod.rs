//! A daemon to which the system gives no threads for moves of VMs.

mod transfers;
mod vm_moves;

use std::path::Path;
use std::time::{Duration, Instant};

use sterna_state::Store;

use crate::{IoChoice, Log, Notes, Running, Settings};

/// Starts a daemon on a state.
fn start(place: &Path) -> Running {
    let settings = Settings {
        state: place.join("state"),
        socket: place.join("sterna.sock"),
        nbd_socket: place.join("nbd.sock"),
        listen: Vec::new(),
        io: IoChoice::Auto,
        dashboard: None,
        notes: Notes::default(),
        log: Log::to(std::io::sink()).expect("a log"),
    };
    Running::start(settings).expect("the daemon starts all the same")
}

/// The state that a daemon will find there.
fn state(place: &Path) -> Store {
    std::fs::create_dir(place.join("state")).expect("a directory");
    Store::open(&place.join("state/state.db")).expect("a state")
}

/// Looks again and again until it is so.
#[track_caller]
fn until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
