//! An engine that serves a file in a scratch directory, and a small client.
//!
//! Every test runs against both ways to the kernel; `on_both` says which one
//! was under test when something fails.
#![allow(dead_code, reason = "each test file uses its part")]

pub(crate) mod client;

use std::fs::File;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sterna_core::DiskId;
use sterna_engine::{Config, DiskSpec, Engine, ImageSpec, IoChoice, Listener};
use tempfile::TempDir;

pub(crate) use client::Client;

/// The disk of a stage.
pub(crate) const DISK: DiskId = DiskId(7);

/// An engine with one disk, `disk`, and a socket.
pub(crate) struct Stage {
    pub engine: Engine,
    pub directory: TempDir,
}

impl Stage {
    /// A disk of `size` bytes over a sparse file.
    pub(crate) fn new(io: IoChoice, size: u64) -> Stage {
        Stage::with(&Config { reactors: 2, io, ..Config::default() }, size, true)
    }

    pub(crate) fn with(config: &Config, size: u64, direct: bool) -> Stage {
        // Not in /tmp, which may know no direct I/O.
        let directory = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let stage = Stage { engine: Engine::start(config).unwrap(), directory };
        File::create(stage.file()).unwrap().set_len(size).unwrap();
        stage.engine.attach(stage.disk(size, direct)).unwrap();
        let listener = UnixListener::bind(stage.socket()).unwrap();
        stage.engine.listen(Listener::Unix(listener)).unwrap();
        stage
    }

    pub(crate) fn disk(&self, size: u64, direct: bool) -> DiskSpec {
        let image = ImageSpec::File { path: self.file(), direct };
        let (name, budget) = ("disk".into(), Arc::default());
        DiskSpec {
            id: DISK,
            name,
            size,
            image,
            budget,
            unnamed: false,
            keeps_room: false,
            account: None,
        }
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.directory.path().join("disk.raw")
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.path().join("nbd.sock")
    }

    pub(crate) fn uri(&self) -> String {
        format!("nbd+unix:///disk?socket={}", self.socket().display())
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(&self.socket(), true)
    }

    /// Waits until so many connections of the disk are open.
    pub(crate) fn await_connections(&self, wanted: u32) {
        eventually("the connections to be as many as expected", || {
            self.engine.stats(DISK).unwrap().connections == wanted
        });
    }
}

/// Runs a test with io_uring and with threads.
pub(crate) fn on_both(test: impl Fn(IoChoice)) {
    for io in [IoChoice::Uring, IoChoice::Threads] {
        eprintln!("with {io:?}:");
        test(io);
    }
}

/// How long anything may take on a busy machine: hundreds of writes of clients that are
/// gone, one after the other because they overlap, at 50 ms each.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for something that must come soon.
pub(crate) fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Numbers that look random; the same for the same seed.
pub(crate) struct Random(pub u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes: Vec<u8> =
            (0..len.div_ceil(8)).flat_map(|_| self.next().to_le_bytes()).collect();
        bytes.truncate(len);
        bytes
    }
}
