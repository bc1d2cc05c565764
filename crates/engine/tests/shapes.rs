//! A shaped datastore, as the clients of its disks see it.

mod common;

use std::fs::File;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use common::{Client, on_both};
use sterna_core::DiskId;
use sterna_engine::{Budget, Config, DiskSpec, Engine, ImageSpec, IoChoice, Listener};
use sterna_nbd::Command;
use tempfile::TempDir;

const SIZE: u64 = 1 << 20;
const WATCHED: Duration = Duration::from_secs(1);

/// The disks of one shaped datastore, a reactor for each.
struct Stage {
    /// Serves as long as it lives.
    engine: Engine,
    directory: TempDir,
}

impl Stage {
    fn new(io: IoChoice, shape: &str, disks: [&str; 2]) -> Stage {
        let directory = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let config = Config { reactors: disks.len(), io, ..Config::default() };
        let engine = Engine::start(&config).unwrap();
        let budget = Arc::new(Budget::new(shape.parse().unwrap()));
        for (number, name) in disks.into_iter().enumerate() {
            let path = directory.path().join(name);
            File::create(&path).unwrap().set_len(SIZE).unwrap();
            let spec = DiskSpec {
                id: DiskId(number as u128),
                name: name.into(),
                size: SIZE,
                image: ImageSpec::File { path, direct: true },
                budget: Arc::clone(&budget),
                unnamed: false,
                keeps_room: false,
                account: None,
            };
            engine.attach(spec).unwrap();
        }
        let stage = Stage { engine, directory };
        let listener = UnixListener::bind(stage.socket()).unwrap();
        stage.engine.listen(Listener::Unix(listener)).unwrap();
        stage
    }

    fn socket(&self) -> PathBuf {
        self.directory.path().join("nbd.sock")
    }
}

/// Reads pieces of `len` bytes, `depth` at a time, until `end`; gives how many.
fn read_until(socket: &Path, disk: &str, len: u32, depth: usize, end: Instant) -> usize {
    let mut client = Client::connect_to(socket, disk, true);
    let mut count = 0;
    while Instant::now() < end {
        for _ in 0..depth {
            client.send(Command::Read { offset: 0, len, df: false }, &[]);
        }
        count += client.receive_all(depth).len();
    }
    count
}

#[test]
fn the_disks_of_a_datastore_share_its_shape_whatever_their_depth() {
    // Both allow 400 reads a second of the length that is read.
    for (shape, len) in [("iops=400", 512), ("mbps=26.2144", 65536)] {
        on_both(|io| {
            let stage = Stage::new(io, shape, ["a", "b"]);
            let socket = stage.socket();
            let start = Instant::now();
            let end = start + WATCHED;
            let (a, b) = thread::scope(|scope| {
                let a = scope.spawn(|| read_until(&socket, "a", len, 8, end));
                let b = scope.spawn(|| read_until(&socket, "b", len, 1, end));
                (a.join().unwrap(), b.join().unwrap())
            });
            // The burst is 4; and the request of each that takes the bucket below
            // zero, or is under way.
            let most = 400.0 * start.elapsed().as_secs_f64() + 4.0 + 2.0;
            let total = (a + b) as f64;
            assert!(total <= most, "{shape}: {a} + {b} reads, at most {most}");
            // Half the rate, as the machine may have other things to do.
            assert!(total >= most / 2.0, "{shape}: {a} + {b} reads of {most}");
            // A turn each, so it is half the total but for who waits for whom.
            assert!(a.min(b) * 3 >= a + b, "{shape}: {a} and {b} reads");
        });
    }
}
