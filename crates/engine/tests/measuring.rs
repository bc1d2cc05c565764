//! What disks did, as the engine counts it and as their clients know it.

mod common;

use std::net::Shutdown;
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{Client, DISK, Random, Stage, on_both};
use sterna_core::measure::{Buckets, Window};
use sterna_core::qos::{ClassId, Limit, Terms};
use sterna_core::{DiskId, Nanos};
use sterna_engine::{Config, DiskSpec, Engine, Requests};
use sterna_nbd::Command;

const MIB: u64 = 1 << 20;
const BLOCK: u32 = 4096;

fn read(offset: u64) -> Command {
    Command::Read { offset, len: BLOCK, df: false }
}

/// How many values fell into the bucket that reaches up to `edge`.
fn count(buckets: &Buckets, edge: i64) -> u64 {
    buckets.iter().find(|(to, _)| *to == Some(edge)).map_or(0, |(_, count)| count)
}

fn reads(stage: &Stage) -> Requests {
    *stage.engine.profile(DISK).unwrap().read.expect("there were reads")
}

/// The window of the stage's disk, if there is one.
fn window(engine: &Engine, disk: DiskId) -> Option<Window> {
    let all = engine.take_windows().unwrap().into_iter();
    all.filter(|one| one.disk == disk).map(|one| one.window).next()
}

#[test]
fn a_sequential_reader_and_a_random_one_are_told_apart() {
    on_both(|io| {
        let stage = Stage::new(io, 64 * MIB);
        let mut client = stage.client();
        for at in 0..64 {
            client.call(read(at * u64::from(BLOCK)), &[]);
        }
        let orderly = reads(&stage);
        assert_eq!(count(&orderly.pattern.distance, 0), 63);
        assert_eq!(count(&orderly.pattern.length, i64::from(BLOCK)), 64);
        assert_eq!(count(&orderly.pattern.outstanding, 1), 64);
        let mut random = Random(1);
        for _ in 0..64 {
            client.call(read(random.below(16_000) * u64::from(BLOCK)), &[]);
        }
        let mixed = reads(&stage);
        assert_eq!(mixed.pattern.distance.len(), 127);
        assert!(count(&mixed.pattern.distance, 0) < 67);
        assert_eq!(mixed.pattern.response.len(), 128);
        assert_eq!(mixed.times.response().len(), 128);
    });
}

#[test]
fn requests_that_come_together_are_seen_together() {
    on_both(|io| {
        let stage = Stage::new(io, MIB);
        let terms = |requests| {
            let limit = Limit { requests: Some(requests), ..Limit::default() };
            Some(Terms { limit, ..Terms::default() })
        };
        // A class that lets hardly anything through keeps them there.
        stage.engine.set_terms(ClassId(7), terms(1)).unwrap();
        stage.engine.set_class(DISK, Some(ClassId(7))).unwrap();
        let mut client = stage.client();
        for at in 0..12 {
            client.send(read(at * u64::from(BLOCK)), &[]);
        }
        common::eventually("all to wait", || {
            stage.engine.stats(DISK).unwrap().in_flight >= 10
        });
        let hanging = window(&stage.engine, DISK).expect("they are under way");
        assert!(hanging.in_flight >= 10, "{hanging:?}");
        stage.engine.set_terms(ClassId(7), None).unwrap();
        client.receive_all(12);
        let reads = reads(&stage);
        // Each found one more than the one before, but for those that went at once.
        let most = reads.pattern.outstanding.iter().filter(|(_, n)| *n > 0);
        let highest = most.filter_map(|(edge, _)| edge).max();
        assert!(highest >= Some(12), "{highest:?}");
        // They waited for their turn before the device, and both are counted.
        let queue = reads.times.queue().expect("some have waited");
        assert_eq!((queue.len(), reads.times.service().len()), (12, 12));
        assert!(queue.max() > 0, "nobody has waited");
        let parts = reads.traffic.queue.plus(reads.traffic.service);
        assert_eq!(parts, reads.traffic.response);
    });
}

#[test]
fn what_memory_does_not_hold_yet_is_waited_for_too() {
    const COUNT: u64 = 64;
    const LEN: u32 = 256 << 10;
    on_both(|io| {
        // Of 16 MiB that are asked for, less than 2 can wait for their turn with
        // memory.
        let config =
            Config { reactors: 1, io, memory: 16 << 20, keep: None, ..Config::default() };
        let stage = Stage::with(&config, MIB, true);
        let limit = Limit { bytes: Some(8 << 20), ..Limit::default() };
        let terms = Some(Terms { limit, ..Terms::default() });
        stage.engine.set_terms(ClassId(7), terms).unwrap();
        stage.engine.set_class(DISK, Some(ClassId(7))).unwrap();
        let mut client = stage.client();
        let read = Command::Read { offset: 0, len: LEN, df: false };
        let start = Instant::now();
        for _ in 0..COUNT {
            client.send(read, &[]);
        }
        // It says that no more will come, and must have its answers all the same.
        client.stream.shutdown(Shutdown::Write).unwrap();
        let (mut waited, mut last) = (Duration::ZERO, Duration::ZERO);
        for _ in 0..COUNT {
            client.receive_all(1);
            last = start.elapsed();
            waited += last;
        }
        assert!(last > Duration::from_secs(1), "{last:?} for 16 MiB at 8 a second");
        let reads = reads(&stage);
        let seen = Duration::from_nanos(reads.traffic.response.0);
        assert!(seen > waited * 9 / 10 && seen <= waited, "{seen:?} of {waited:?}");
        let longest = Duration::from_nanos(reads.times.response().max());
        assert!(longest > last * 9 / 10, "{longest:?} of {last:?}");
        let most = reads.pattern.outstanding.iter().filter(|(_, n)| *n > 0);
        let most = most.filter_map(|(edge, _)| edge).max();
        assert!(most >= Some(48), "{most:?} were seen under way");
    });
}

#[test]
fn windows_hold_each_request_once() {
    on_both(|io| {
        let stage = Stage::new(io, MIB);
        let mut client = stage.client();
        assert!(window(&stage.engine, DISK).is_none(), "nothing was yet");
        let (mut operations, mut spans) = (0, Nanos(0));
        for round in 1..=20 {
            for _ in 0..round {
                client.write(0, &[7; BLOCK as usize]);
                client.call(read(0), &[]);
            }
            let window = window(&stage.engine, DISK).expect("there was traffic");
            assert_eq!((window.read.operations, window.write.operations), (round, round));
            assert_eq!(window.read.bytes, round * u64::from(BLOCK));
            assert_eq!(window.response.len(), 2 * round);
            assert!(window.read.response <= window.span, "{window:?}");
            operations += window.total().operations;
            spans = spans.plus(window.span);
        }
        let stats = stage.engine.stats(DISK).unwrap();
        assert_eq!(stats.read.operations + stats.write.operations, operations);
        let sums = stats.read.response.plus(stats.write.response);
        assert!(sums <= spans, "one client, one request at a time");
        // Once more, empty: it has become idle. Then no more.
        let idle = window(&stage.engine, DISK).expect("the last one had traffic");
        assert_eq!((idle.total().operations, idle.in_flight), (0, 0));
        assert!(window(&stage.engine, DISK).is_none());
    });
}

#[test]
fn disks_on_all_reactors_are_heard_of_with_their_datastore() {
    on_both(|io| {
        let stage =
            Stage::with(&Config { reactors: 3, io, ..Config::default() }, MIB, true);
        let here: Arc<sterna_engine::Budget> = Arc::default();
        for disk in 1..=6u128 {
            let path = stage.directory.path().join(format!("{disk}.raw"));
            std::fs::File::create(&path).unwrap().set_len(MIB).unwrap();
            let image = sterna_engine::ImageSpec::File { path, direct: true };
            let (id, name) = (DiskId(disk), format!("d{disk}"));
            let (size, budget) = (MIB, Arc::clone(&here));
            let disk = DiskSpec {
                id,
                name,
                size,
                image,
                budget,
                unnamed: false,
                keeps_room: false,
                account: None,
            };
            stage.engine.attach(disk).unwrap();
        }
        for disk in [2, 3, 5] {
            let name = format!("d{disk}");
            let mut client = Client::connect_to(&stage.socket(), &name, true);
            client.call(read(0), &[]);
        }
        let mut all = stage.engine.take_windows().unwrap();
        all.sort_by_key(|one| one.disk.0);
        let disks: Vec<u128> = all.iter().map(|one| one.disk.0).collect();
        assert_eq!(disks, [2, 3, 5]);
        assert!(all.iter().all(|one| here.is(&one.datastore)));
    });
}
