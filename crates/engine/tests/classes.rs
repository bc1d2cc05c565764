//! Classes with terms, as the clients of their disks see them.

mod common;

use std::fs::File;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::{Client, eventually, on_both};
use sterna_core::DiskId;
use sterna_core::qos::{ClassId, Limit, Rate, Terms};
use sterna_engine::{Budget, Config, DiskSpec, Engine, ImageSpec, IoChoice, Listener};
use sterna_nbd::Command;
use tempfile::TempDir;

const SIZE: u64 = 8 << 20;
const BLOCK: u32 = 4096;
const CLASS: ClassId = ClassId(7);

/// Two disks of one datastore, a reactor for each.
struct Stage {
    engine: Engine,
    directory: TempDir,
    datastore: Arc<Budget>,
}

impl Stage {
    fn new(io: IoChoice, shape: &str) -> Stage {
        let config = Config { reactors: 2, io, ..Config::default() };
        Stage::with(&config, [shape; 1], env!("CARGO_TARGET_TMPDIR"), true)
    }

    /// With datastores of these shapes, which take turns to get a disk.
    fn with<const N: usize>(
        config: &Config,
        shapes: [&str; N],
        place: &str,
        direct: bool,
    ) -> Stage {
        let directory = TempDir::new_in(place).unwrap();
        let engine = Engine::start(config).unwrap();
        let datastores =
            shapes.map(|shape| Arc::new(Budget::new(shape.parse().unwrap())));
        for disk in 0..2u128 {
            let name = format!("disk{disk}");
            let path = directory.path().join(&name);
            File::create(&path).unwrap().set_len(SIZE).unwrap();
            let image = ImageSpec::File { path, direct };
            let (id, budget) = (DiskId(disk), Arc::clone(&datastores[disk as usize % N]));
            engine
                .attach(DiskSpec {
                    id,
                    name,
                    size: SIZE,
                    image,
                    budget,
                    unnamed: false,
                    keeps_room: false,
                    account: None,
                })
                .unwrap();
        }
        let datastore = Arc::clone(&datastores[0]);
        let stage = Stage { engine, directory, datastore };
        let listener = UnixListener::bind(stage.socket()).unwrap();
        stage.engine.listen(Listener::Unix(listener)).unwrap();
        stage
    }

    fn socket(&self) -> PathBuf {
        self.directory.path().join("nbd.sock")
    }

    /// A client that keeps so many reads in flight until it is dropped.
    fn reader(&self, disk: usize, depth: usize) -> Reader {
        self.reader_of(disk, depth, BLOCK)
    }

    fn reader_of(&self, disk: usize, depth: usize, len: u32) -> Reader {
        let (stop, count) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let reader = Reader { stop, count, thread: None };
        let (stop, count) = (Arc::clone(&reader.stop), Arc::clone(&reader.count));
        let socket = self.socket();
        let run = move || {
            let mut client = Client::connect_to(&socket, &format!("disk{disk}"), true);
            let read = Command::Read { offset: 0, len, df: true };
            for _ in 0..depth {
                client.send(read, &[]);
            }
            while !stop.load(Ordering::Relaxed) {
                client.receive_all(1);
                count.fetch_add(1, Ordering::Relaxed);
                client.send(read, &[]);
            }
        };
        Reader { thread: Some(thread::spawn(run)), ..reader }
    }
}

struct Reader {
    stop: Arc<AtomicBool>,
    count: Arc<AtomicUsize>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Reader {
    fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    fn end(mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

/// How many each of them reads from now on, and how long it took.
fn watch<const N: usize>(readers: [&Reader; N], span: Duration) -> ([f64; N], f64) {
    let before = readers.map(Reader::count);
    let start = Instant::now();
    // Time is what is measured here; there is no event to wait for.
    thread::sleep(span);
    let (after, took) = (readers.map(Reader::count), start.elapsed().as_secs_f64());
    (std::array::from_fn(|at| (after[at] - before[at]) as f64 / took), took)
}

const SECOND: Duration = Duration::from_secs(1);

fn limited(requests: u64) -> Terms {
    Terms {
        limit: Limit { requests: Some(requests), ..Limit::default() },
        ..Terms::default()
    }
}

#[test]
fn a_limit_holds_for_all_disks_of_a_class_from_the_moment_it_is_set() {
    on_both(|io| {
        let stage = Stage::new(io, "none");
        let readers = [stage.reader(0, 8), stage.reader(1, 8)];
        eventually("both to read", || readers.iter().all(|one| one.count() > 0));
        for disk in 0..2 {
            stage.engine.set_class(DiskId(disk), Some(CLASS)).unwrap();
        }
        stage.engine.set_terms(CLASS, Some(limited(200))).unwrap();
        let ([a, b], took) = watch([&readers[0], &readers[1]], SECOND);
        // The burst is 2; 16 may have been on their way to the clients.
        assert!(a + b <= 200.0 + 18.0 / took, "{a} and {b}");
        assert!(a + b >= 100.0 && a.min(b) * 3.0 >= a + b, "{a} and {b}");
        stage.engine.set_terms(CLASS, None).unwrap();
        let ([a, b], _) = watch([&readers[0], &readers[1]], SECOND);
        assert!(a.min(b) > 400.0, "lifted: {a} and {b}");
        readers.into_iter().for_each(Reader::end);
    });
}

#[test]
fn a_response_time_is_held_and_a_disk_in_no_class_is_free() {
    on_both(|io| {
        let stage = Stage::new(io, "none");
        let response = Some(sterna_core::Nanos::from_millis(20));
        let limit = Limit { response, ..Limit::default() };
        let terms = Terms { limit, ..Terms::default() };
        stage.engine.set_terms(CLASS, Some(terms)).unwrap();
        stage.engine.set_class(DiskId(0), Some(CLASS)).unwrap();
        let (held, free) = (stage.reader(0, 4), stage.reader(1, 4));
        eventually("both to read", || held.count() > 8 && free.count() > 8);
        let ([slow, fast], _) = watch([&held, &free], SECOND);
        // Four in flight, each 20 ms.
        assert!((100.0..=204.0).contains(&slow), "{slow}");
        assert!(fast > 400.0, "{fast}");
        held.end();
        free.end();
    });
}

#[test]
fn a_datastore_with_a_window_is_shared_by_shares_and_reservations() {
    on_both(|io| {
        // A device of 4 places and 8 ms: 500 reads per second.
        let stage = Stage::new(io, "latency=8ms");
        stage.engine.set_window(&stage.datastore, Some(4)).unwrap();
        let shares = |shares| Terms { shares, ..Terms::default() };
        stage.engine.set_class(DiskId(0), Some(CLASS)).unwrap();
        stage.engine.set_terms(CLASS, Some(shares(3000))).unwrap();
        let (many, few) = (stage.reader(0, 16), stage.reader(1, 16));
        eventually("both to read", || many.count() > 20 && few.count() > 20);
        let ([a, b], _) = watch([&many, &few], 2 * SECOND);
        assert!((2.0..4.5).contains(&(a / b)), "3 to 1: {a} and {b}");
        let reservation = Some(Rate::Requests(300));
        let terms = Terms { reservation, ..shares(10) };
        stage.engine.set_terms(CLASS, Some(terms)).unwrap();
        let ([a, b], _) = watch([&many, &few], 2 * SECOND);
        let part = a / (a + b);
        assert!((0.45..0.85).contains(&part), "300 of 500: {a} and {b}");
        many.end();
        few.end();
    });
}

#[test]
fn zeroes_that_are_written_out_and_what_is_read_ahead_count_as_bytes() {
    const LEN: u32 = 8 << 20;
    on_both(|io| {
        // A file system in memory makes holes, and has to write all other zeroes.
        let config = Config { reactors: 1, io, ..Config::default() };
        let stage = Stage::with(&config, ["none"], "/dev/shm", false);
        let mut client = Client::connect_to(&stage.socket(), "disk0", true);
        let mut took = |command| {
            let start = Instant::now();
            assert_eq!(client.call(command, &[]).result, Ok(()));
            start.elapsed()
        };
        let zeroes = |len, no_hole| {
            let (fua, fast_zero) = (false, false);
            Command::WriteZeroes { offset: 0, len, fua, no_hole, fast_zero }
        };
        // That it has to is known once it was tried.
        took(zeroes(BLOCK, true));
        let limit = Limit { bytes: Some(LEN.into()), ..Limit::default() };
        let terms = Terms { limit, ..Terms::default() };
        stage.engine.set_terms(CLASS, Some(terms)).unwrap();
        stage.engine.set_class(DiskId(0), Some(CLASS)).unwrap();
        for _ in 0..3 {
            assert!(took(zeroes(LEN, false)) < SECOND / 2, "holes");
        }
        // The first of eight pieces goes at once, and the next command pays the last.
        assert!(took(zeroes(LEN, true)) > SECOND * 3 / 4, "written out");
        assert!(took(Command::Cache { offset: 0, len: LEN }) > SECOND * 3 / 4, "read");
    });
}

#[test]
fn what_waits_for_its_turn_on_one_disk_leaves_memory_to_the_others() {
    on_both(|io| {
        let config =
            Config { reactors: 1, io, memory: 32 << 20, keep: None, ..Config::default() };
        let place = env!("CARGO_TARGET_TMPDIR");
        let stage = Stage::with(&config, ["latency=2ms"], place, true);
        let limit = Limit { bytes: Some(8 << 20), ..Limit::default() };
        let terms = Terms { limit, ..Terms::default() };
        stage.engine.set_terms(CLASS, Some(terms)).unwrap();
        stage.engine.set_class(DiskId(0), Some(CLASS)).unwrap();
        // 512 of 1 MiB are asked for, and there are 32 MiB.
        let held: Vec<_> = (0..8).map(|_| stage.reader_of(0, 64, 1 << 20)).collect();
        let free = stage.reader_of(1, 8, 1 << 20);
        let all = |least| held.iter().all(|one| one.count() >= least);
        for round in 1..=3 {
            eventually("all connections to have their turns", || all(round));
            let waits = stage.engine.stats(DiskId(0)).unwrap().in_flight;
            assert!((1..=6).contains(&waits), "less than a ninth: {waits}");
        }
        assert!(free.count() > 50, "{}", free.count());
        stage.engine.set_terms(CLASS, None).unwrap();
        eventually("all connections to go on without a limit", || all(20));
        held.into_iter().for_each(Reader::end);
        free.end();
    });
}

#[test]
fn what_clients_that_are_gone_had_asked_for_holds_up_nobody() {
    on_both(|io| {
        let stage = Stage::new(io, "none");
        stage.engine.set_class(DiskId(0), Some(CLASS)).unwrap();
        let connect = || Client::connect_to(&stage.socket(), "disk0", true);
        let in_flight = || stage.engine.stats(DiskId(0)).unwrap().in_flight;
        // Once they would wait for ten seconds, and once for a minute, and not all of
        // them have found memory.
        let bytes = Limit { bytes: Some(1 << 20), ..Limit::default() };
        let slow = Terms { limit: bytes, ..Terms::default() };
        for (terms, len, waits) in [(limited(10), BLOCK, 64), (slow, 1 << 20, 1)] {
            stage.engine.set_terms(CLASS, Some(terms)).unwrap();
            let mut clients = [(); 4].map(|()| connect());
            for client in &mut clients {
                for _ in 0..25 {
                    client.send(Command::Read { offset: 0, len, df: true }, &[]);
                }
            }
            eventually("most of them to wait", || in_flight() >= waits);
            drop(clients);
            let start = Instant::now();
            connect().read(0, BLOCK);
            assert!(start.elapsed() < 4 * SECOND, "{:?}", start.elapsed());
            eventually("all of them to be dropped", || in_flight() == 0);
            assert!(start.elapsed() < 5 * SECOND, "{:?}", start.elapsed());
        }
    });
}

#[test]
fn the_disks_of_a_class_take_turns_in_its_queue_depth() {
    fn share<const N: usize>(io: IoChoice, reactors: usize, shapes: [&str; N]) {
        let config = Config { reactors, io, ..Config::default() };
        let stage = Stage::with(&config, shapes, env!("CARGO_TARGET_TMPDIR"), true);
        let terms = Terms { depth: Some(2), ..Terms::default() };
        stage.engine.set_terms(CLASS, Some(terms)).unwrap();
        for disk in 0..2 {
            stage.engine.set_class(DiskId(disk), Some(CLASS)).unwrap();
        }
        let greedy = stage.reader(0, 16);
        eventually("it to read", || greedy.count() > 100);
        let modest = stage.reader(1, 1);
        eventually("the other one to read", || modest.count() > 0);
        let ([a, b], _) = watch([&greedy, &modest], SECOND);
        assert!(b > (a + b) / 8.0, "{a} and {b}");
        greedy.end();
        modest.end();
    }
    on_both(|io| {
        share(io, 2, ["latency=2ms"]);
        share(io, 1, ["latency=2ms"; 2]);
    });
}

#[test]
fn a_disk_that_leaves_drops_what_waits_for_its_turn() {
    on_both(|io| {
        let stage = Stage::new(io, "none");
        stage.engine.set_terms(CLASS, Some(limited(1))).unwrap();
        stage.engine.set_class(DiskId(0), Some(CLASS)).unwrap();
        let mut client = Client::connect_to(&stage.socket(), "disk0", true);
        for _ in 0..32 {
            client.send(Command::Read { offset: 0, len: BLOCK, df: false }, &[]);
        }
        let waiting = || stage.engine.stats(DiskId(0)).unwrap().in_flight > 16;
        eventually("most of them to wait", waiting);
        let start = Instant::now();
        stage.engine.detach(DiskId(0)).unwrap();
        assert!(start.elapsed() < 5 * SECOND, "{:?}", start.elapsed());
    });
}
