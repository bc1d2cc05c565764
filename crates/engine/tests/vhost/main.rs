//! A disk as a virtual machine's own driver sees it.

#[path = "../common/mod.rs"]
mod common;
mod machine;

use std::fs;
use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use common::{DISK, Stage, eventually, on_both};
use machine::{DATA, Machine, Memory, Stretch, is_turned_away};
use sterna_core::qos::{ClassId, Limit, Terms};
use sterna_engine::{Config, DiskSpec, Engine, ImageSpec};
use virtio_driver::{
    VhostUser, VirtioBlkFeatureFlags, VirtioBlkQueue, VirtioBlkTransport,
    VirtioFeatureFlags,
};

const MIB: usize = 1 << 20;
const SIZE: u64 = 8 << 20;

const READ: u32 = 0;
const WRITE: u32 = 1;
const FLUSH: u32 = 4;
const NAME: u32 = 8;
const DISCARD: u32 = 11;
const ZEROES: u32 = 13;

const OK: u8 = 0;
const ERROR: u8 = 1;
const UNSUPPORTED: u8 = 2;

fn serve(stage: &Stage) -> PathBuf {
    let socket = stage.directory.path().join("machine.sock");
    let _ = fs::remove_file(&socket);
    stage.engine.serve(DISK, UnixListener::bind(&socket).unwrap()).unwrap();
    socket
}

/// Bytes of which no two sectors are the same.
fn pattern(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|at| (at / 512) as u8 ^ (at as u8).wrapping_mul(31) ^ seed).collect()
}

#[test]
fn what_the_guest_writes_it_reads_again() {
    on_both(|io| {
        let stage = Stage::new(io, SIZE);
        let socket = serve(&stage);
        let memory = Memory::new();
        let mut machine = Machine::connect(&socket, &memory, None);
        assert_eq!(machine.size(), SIZE);
        let bytes = pattern(2 * MIB, 1);
        memory.put(DATA, &bytes);
        let from = Stretch(DATA, 2 * MIB as u32, false);
        assert_eq!(machine.ask(WRITE, 16, &[from]), OK);
        assert_eq!(machine.ask(FLUSH, 0, &[]), OK);
        let to = Stretch(DATA + 4 * MIB as u64, 2 * MIB as u32, true);
        assert_eq!(machine.ask(READ, 16, &[to]), OK);
        assert!(memory.get(to.0, 2 * MIB) == bytes);
        let mut on_disk = vec![0; bytes.len()];
        let file = fs::File::open(stage.file()).unwrap();
        file.read_exact_at(&mut on_disk, 16 * 512).unwrap();
        assert!(on_disk == bytes, "it is in the file as well");
    });
}

/// Writes from stretches of the guest's memory, reads into them, and compares.
fn write_and_read(machine: &mut Machine, memory: &Memory, places: &[(u64, usize)]) {
    let bytes = pattern(places.iter().map(|(_, len)| len).sum(), places.len() as u8);
    let mut rest = &bytes[..];
    for (place, len) in places {
        let (these, others) = rest.split_at(*len);
        memory.put(*place, these);
        rest = others;
    }
    let stretches = |write| {
        let all = places.iter().map(|(at, len)| Stretch(*at, *len as u32, write));
        all.collect::<Vec<_>>()
    };
    assert_eq!(machine.ask(WRITE, 8, &stretches(false)), OK);
    for (place, len) in places {
        memory.put(*place, &vec![0; *len]);
    }
    assert_eq!(machine.ask(READ, 8, &stretches(true)), OK);
    let mut rest = &bytes[..];
    for (place, len) in places {
        let (these, others) = rest.split_at(*len);
        assert!(memory.get(*place, *len) == these, "{len} bytes at {place}");
        rest = others;
    }
}

/// Of whole sectors, of whole pages, so many that they come to more than one piece, and
/// in parts of sectors.
fn places() -> [Vec<(u64, usize)>; 4] {
    let pages = |count: u64, len: usize| {
        let at = |number: u64| DATA + (count - number) * 2 * len as u64;
        (0..count).map(|number| (at(number), len)).collect()
    };
    [
        vec![(DATA + 512, 512), (DATA + 102_400, 7168), (DATA + 51_200, 4608)],
        pages(64, 4096),
        pages(100, 16384),
        vec![(DATA + 4, 5000), (DATA + 100_000, 7000), (DATA + 50_001, 288)],
    ]
}

#[test]
fn data_in_pieces_and_tables_of_their_own_are_understood() {
    on_both(|io| {
        let stage = Stage::new(io, SIZE);
        let socket = serve(&stage);
        let memory = Memory::new();
        let mut machine = Machine::connect(&socket, &memory, None);
        for places in places() {
            machine.indirect = true;
            write_and_read(&mut machine, &memory, &places);
            // The queue itself has room for few.
            machine.indirect = places.len() > 3;
            write_and_read(&mut machine, &memory, &places);
        }
    });
}

#[test]
fn a_disk_behind_an_nbd_server_is_a_disk_as_well() {
    on_both(|io| {
        let far = Stage::new(io, SIZE);
        let engine = Engine::start(&Config { io, ..Config::default() }).unwrap();
        let image = ImageSpec::Nbd(far.uri().parse().unwrap());
        let budget = std::sync::Arc::default();
        let name = "near".into();
        engine
            .attach(DiskSpec {
                id: DISK,
                name,
                size: SIZE,
                image,
                budget,
                unnamed: false,
                keeps_room: false,
                account: None,
            })
            .unwrap();
        let socket = far.directory.path().join("machine.sock");
        engine.serve(DISK, UnixListener::bind(&socket).unwrap()).unwrap();
        let memory = Memory::new();
        let mut machine = Machine::connect(&socket, &memory, None);
        for len in [512, 4096, MIB] {
            memory.put(DATA, &pattern(len, 7));
            let from = Stretch(DATA, len as u32, false);
            assert_eq!(machine.ask(WRITE, 8, &[from]), OK);
            let to = Stretch(DATA + 2 * MIB as u64, len as u32, true);
            assert_eq!(machine.ask(READ, 8, &[to]), OK);
            assert!(memory.get(to.0, len) == pattern(len, 7), "{len} bytes");
        }
        machine.indirect = true;
        for places in places() {
            write_and_read(&mut machine, &memory, &places);
        }
    });
}

#[test]
fn a_request_that_is_longer_than_any_is_refused() {
    let stage = Stage::new(sterna_engine::IoChoice::Auto, 64 << 20);
    let socket = serve(&stage);
    let memory = Memory::new();
    let mut machine = Machine::connect(&socket, &memory, None);
    let long = Stretch(DATA, 17 << 20, true);
    assert_eq!(machine.ask(READ, 0, &[long]), ERROR);
    assert_eq!(machine.ask(FLUSH, 0, &[]), OK);
}

#[test]
fn what_is_discarded_or_zeroed_reads_as_zeroes() {
    on_both(|io| {
        let stage = Stage::new(io, SIZE);
        let socket = serve(&stage);
        let memory = Memory::new();
        let mut machine = Machine::connect(&socket, &memory, None);
        for (kind, flags) in [(DISCARD, 0_u32), (ZEROES, 0), (ZEROES, 1)] {
            memory.put(DATA, &pattern(MIB, 3));
            assert_eq!(machine.ask(WRITE, 0, &[Stretch(DATA, MIB as u32, false)]), OK);
            let mut range = 8_u64.to_le_bytes().to_vec();
            range.extend(16_u32.to_le_bytes());
            range.extend(flags.to_le_bytes());
            memory.put(DATA + 2 * MIB as u64, &range);
            let ranges = Stretch(DATA + 2 * MIB as u64, 16, false);
            assert_eq!(machine.ask(kind, 0, &[ranges]), OK);
            assert_eq!(machine.ask(READ, 0, &[Stretch(DATA, MIB as u32, true)]), OK);
            let mut expected = pattern(MIB, 3);
            expected[8 * 512..24 * 512].fill(0);
            assert!(memory.get(DATA, MIB) == expected, "kind {kind}, flags {flags}");
        }
    });
}

#[test]
fn requests_that_make_no_sense_are_refused_and_the_others_go_on() {
    on_both(|io| {
        let stage = Stage::new(io, SIZE);
        let socket = serve(&stage);
        let memory = Memory::new();
        let mut machine = Machine::connect(&socket, &memory, None);
        let to = Stretch(DATA, 4096, true);
        assert_eq!(machine.ask(READ, SIZE / 512 - 7, &[to]), ERROR, "behind the end");
        assert_eq!(machine.ask(READ, u64::MAX, &[to]), ERROR);
        assert_eq!(
            machine.ask(READ, 0, &[Stretch(DATA, 100, true)]),
            ERROR,
            "no sectors"
        );
        assert_eq!(machine.ask(WRITE, 0, &[Stretch(1 << 40, 512, false)]), ERROR);
        assert_eq!(machine.ask(99, 0, &[to]), UNSUPPORTED);
        assert_eq!(machine.ask(NAME, 0, &[Stretch(DATA, 20, true)]), OK);
        assert_eq!(&memory.get(DATA, 5), b"disk\0");
        assert_eq!(machine.ask(READ, 0, &[to]), OK);
    });
}

#[test]
fn a_chain_that_goes_in_circles_comes_to_an_end() {
    let stage = Stage::new(sterna_engine::IoChoice::Auto, SIZE);
    let socket = serve(&stage);
    let memory = Memory::new();
    let mut machine = Machine::connect(&socket, &memory, None);
    machine.write_descriptor(0x1000, 60, DATA, 512, 1, 61);
    machine.write_descriptor(0x1000, 61, DATA, 512, 1, 60);
    machine.offer(60);
    machine.kick();
    machine.wait();
    assert_eq!(machine.ask(FLUSH, 0, &[]), OK);
}

#[test]
fn a_queue_that_makes_no_sense_harms_nobody_else() {
    let stage = Stage::new(sterna_engine::IoChoice::Auto, SIZE);
    let socket = serve(&stage);
    let memory = Memory::new();
    let mut machine = Machine::connect(&socket, &memory, None);
    machine.offer(40_000);
    machine.kick();
    // It stands still, and can be stopped.
    machine.stop();
    let mut client = stage.client();
    client.write(0, &[7; 512]);
    assert_eq!(client.read(0, 512), vec![7; 512]);
}

#[test]
fn a_driver_of_another_make_reads_what_it_has_written() {
    let stage = Stage::new(sterna_engine::IoChoice::Auto, SIZE);
    let socket = serve(&stage);
    let features = VirtioFeatureFlags::VERSION_1
        | VirtioFeatureFlags::RING_EVENT_IDX
        | VirtioFeatureFlags::RING_INDIRECT_DESC;
    let features = features.bits() | VirtioBlkFeatureFlags::MQ.bits();
    let socket = socket.to_str().unwrap();
    // It gives its memory region by region.
    let mut device: Box<VirtioBlkTransport> =
        Box::new(VhostUser::new(socket, features).unwrap());
    assert_eq!(u64::from(device.get_config().unwrap().capacity) * 512, SIZE);
    let memory = Memory::new();
    let (start, len) = (memory.host(0), memory.len());
    device.map_mem_region(start as usize, len, memory.fd(), 0).unwrap();
    let mut queues = VirtioBlkQueue::setup_queues(&mut *device, 2, 64).unwrap();
    let (out, back) = (pattern(MIB, 3), DATA + 2 * MIB as u64);
    memory.put(DATA, &out);
    for (number, queue) in queues.iter_mut().enumerate() {
        let kick = device.get_submission_notifier(number);
        for (writes, at) in [(true, DATA), (false, back)] {
            let place = (number * MIB) as u64;
            let buffer = memory.host(at) as *mut u8;
            // SAFETY: it is in the memory, which nobody else touches meanwhile.
            unsafe {
                match writes {
                    true => queue.write_raw(place, buffer, MIB, ()).unwrap(),
                    false => queue.read_raw(place, buffer, MIB, ()).unwrap(),
                }
            }
            kick.notify().unwrap();
            // A queue that starts is woken once for nothing.
            let mut answers = Vec::new();
            eventually("an answer", || {
                answers.extend(queue.completions().map(|it| it.ret));
                !answers.is_empty()
            });
            assert_eq!(answers, [0], "queue {number}, {writes}");
        }
        assert!(memory.get(back, MIB) == out, "queue {number}");
        memory.put(back, &vec![0; MIB]);
    }
}

#[test]
fn memory_that_changes_is_there_all_the_time() {
    let stage = Stage::new(sterna_engine::IoChoice::Auto, SIZE);
    let socket = serve(&stage);
    let memory = Memory::new();
    let mut machine = Machine::connect(&socket, &memory, None);
    machine.waits_for_answers();
    let data = [Stretch(DATA, MIB as u32, false)];
    let len = memory.len() as u64;
    // It is taken away, and added in parts, but for a page.
    machine.take_memory(0..len).expect("take it away");
    assert_eq!(machine.ask(WRITE, 0, &data), OK);
    machine.add_memory(0..len / 2).expect("add a half");
    assert_eq!(machine.ask(WRITE, 0, &data), OK);
    let behind = [Stretch(len - MIB as u64, MIB as u32, false)];
    assert_eq!(machine.ask(WRITE, 0, &behind), OK);
    machine.add_memory(len / 2 + 4096..len).expect("add most of the other");
    assert_eq!(machine.ask(WRITE, 0, &behind), OK);
    assert!(machine.add_memory(0..len).is_err(), "it is there already");
    assert!(machine.frontend_is_gone(), "what makes no sense ends the connection");
}

#[test]
fn memory_that_was_taken_away_is_let_go_when_no_queue_is_in_it() {
    let stage = Stage::new(sterna_engine::IoChoice::Auto, SIZE);
    let socket = serve(&stage);
    let memory = Memory::new();
    let mut machine = Machine::connect(&socket, &memory, None);
    machine.waits_for_answers();
    let mapped = || {
        let inode = format!(" {} ", memory.inode());
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        maps.lines().filter(|line| line.contains(&inode)).count()
    };
    // Ours and the daemon's, which is in the same process here.
    eventually("the mapping", || mapped() == 2);
    let (len, page) = (memory.len() as u64, 4096);
    // The last page is of its own.
    machine.take_memory(0..len).expect("take all of it away");
    machine.add_memory(0..len - page).expect("add most of it");
    machine.take_memory(0..len - page).expect("take that away, too");
    assert_eq!(mapped(), 3);
    eventually("the page to go", || mapped() == 2);
    assert_eq!(machine.ask(FLUSH, 0, &[]), OK);
    machine.stop();
    machine.add_memory(len - page..len).expect("add the page");
    eventually("all but the page to go", || mapped() == 2);
    // What the machine asks for without any memory does not keep it from leaving.
    machine.put(FLUSH, 0, &[]);
    machine.kick();
    drop(machine);
    let start = Instant::now();
    drop(stage);
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

#[test]
fn a_stopped_queue_says_where_it_was_and_goes_on_from_there() {
    on_both(|io| {
        let stage = Stage::new(io, SIZE);
        let socket = serve(&stage);
        let memory = Memory::new();
        let mut machine = Machine::connect(&socket, &memory, None);
        for _ in 0..3 {
            assert_eq!(machine.ask(FLUSH, 0, &[]), OK);
        }
        assert_eq!(machine.stop(), 3);
        drop(machine);
        let mut again = Machine::connect(&socket, &memory, None);
        assert_eq!(again.ask(FLUSH, 0, &[]), OK);
        assert_eq!(again.stop(), 4);
    });
}

#[test]
fn a_queue_that_is_to_stop_waits_for_no_limit() {
    on_both(|io| {
        let stage = Stage::new(io, SIZE);
        let socket = serve(&stage);
        let memory = Memory::new();
        let mut machine = Machine::connect(&socket, &memory, None);
        memory.put(DATA, &pattern(4096, 5));
        assert_eq!(machine.ask(WRITE, 8, &[Stretch(DATA, 4096, false)]), OK);
        // Two seconds a request.
        let limit = Limit { bytes: Some(2048), ..Limit::default() };
        let terms = Terms { limit, ..Terms::default() };
        stage.engine.set_terms(ClassId(7), Some(terms)).unwrap();
        stage.engine.set_class(DISK, Some(ClassId(7))).unwrap();
        let to = |at: u64| Stretch(DATA + (1 + at) * 4096, 4096, true);
        let slots: Vec<_> = (0..8).map(|at| machine.put(READ, 8, &[to(at)])).collect();
        machine.kick();
        let in_flight = || stage.engine.stats(DISK).unwrap().in_flight;
        eventually("all but the first to wait", || (5..8).contains(&in_flight()));
        let start = Instant::now();
        assert_eq!(machine.stop(), 9);
        assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
        machine.wait();
        for (at, slot) in slots.into_iter().enumerate() {
            assert_eq!(machine.status(slot), OK);
            assert!(memory.get(to(at as u64).0, 4096) == pattern(4096, 5));
        }
        // They have counted for nothing, save the one whose turn came next.
        drop(machine);
        let start = Instant::now();
        let mut again = Machine::connect(&socket, &memory, None);
        assert_eq!(again.ask(READ, 8, &[to(0)]), OK);
        assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
    });
}

#[test]
fn requests_of_a_guest_that_is_slow_at_asking_are_found_without_a_word() {
    on_both(|io| {
        let stage = Stage::new(io, SIZE);
        let socket = serve(&stage);
        let memory = Memory::new();
        let mut machine = Machine::connect(&socket, &memory, None);
        let to = |at: u64| Stretch(DATA + at * 4096, 4096, true);
        // A request takes a millisecond, so that there are always some under way.
        let limit = Limit { bytes: Some(4 << 20), ..Limit::default() };
        let terms = Terms { limit, ..Terms::default() };
        stage.engine.set_terms(ClassId(7), Some(terms)).unwrap();
        stage.engine.set_class(DISK, Some(ClassId(7))).unwrap();
        let spared = (0..20_000).any(|_| {
            machine.wait_for_room(2);
            // Each takes it 60 us, and both are found together.
            for at in 0..2 {
                let start = Instant::now();
                machine.put(READ, 8, &[to(at)]);
                while start.elapsed() < Duration::from_micros(60) {}
            }
            let is_spared = !machine.is_to_kick(2);
            if !is_spared {
                machine.kick();
            }
            is_spared
        });
        machine.wait();
        stage.engine.set_class(DISK, None).unwrap();
        assert!(spared, "it has to tell of each request");
        // It is seen to be fast, and tells of each again.
        eventually("a kick to be asked for", || {
            let slots: Vec<_> =
                (0..7).map(|at| machine.put(READ, 8, &[to(at)])).collect();
            let is_to_kick = machine.is_to_kick(7);
            machine.kick();
            machine.wait();
            assert!(slots.into_iter().all(|slot| machine.status(slot) == OK));
            is_to_kick
        });
    });
}

#[test]
fn what_was_under_way_when_the_daemon_died_is_carried_out_by_the_next() {
    on_both(|io| {
        let stage = Stage::new(io, SIZE);
        let socket = serve(&stage);
        let memory = Memory::new();
        let mut machine = Machine::connect(&socket, &memory, None);
        let (area, file) = machine.area();
        drop(machine);
        let mut machine = Machine::connect(&socket, &memory, Some((&area, &file)));
        assert_eq!(machine.ask(FLUSH, 0, &[]), OK);
        assert_eq!(machine.stop(), 1);
        // A daemon that dies has taken this one, and not answered it: it is marked in
        // the area, and the queue is past it.
        memory.put(DATA, &pattern(4096, 9));
        let slot = machine.put(WRITE, 8, &[Stretch(DATA, 4096, false)]);
        let mark = area.mmap_offset + 16 + 16 * u64::from(slot) * 8;
        file.write_all_at(&[1], mark).unwrap();
        file.write_all_at(&5_u64.to_le_bytes(), mark + 8).unwrap();
        drop(machine);
        let mut next = Machine::connect(&socket, &memory, Some((&area, &file)));
        next.wait();
        assert_eq!(next.status(slot), OK);
        assert_eq!(next.ask(READ, 8, &[Stretch(DATA + 8192, 4096, true)]), OK);
        assert!(memory.get(DATA + 8192, 4096) == pattern(4096, 9));
        let mut marks = [0; 1];
        file.read_exact_at(&mut marks, mark).unwrap();
        assert_eq!(marks, [0], "nothing is under way any more");
    });
}

#[test]
fn the_disk_goes_when_the_machine_is_still_there() {
    on_both(|io| {
        let stage = Stage::new(io, SIZE);
        let socket = serve(&stage);
        let memory = Memory::new();
        let mut machine = Machine::connect(&socket, &memory, None);
        assert_eq!(machine.ask(FLUSH, 0, &[]), OK);
        let engine: &Engine = &stage.engine;
        engine.detach(DISK).unwrap();
        assert!(machine.frontend_is_gone());
    });
}

/// The end of a server does not wait for a datastore that hangs, and the machine finds the
/// socket again and repeats what it had no answer to.
#[test]
fn a_write_that_hangs_does_not_land_on_what_is_written_after_the_disk_is_back() {
    let io = sterna_engine::IoChoice::Auto;
    let far = Stage::new(io, SIZE);
    let engine = Engine::start(&Config { io, ..Config::default() }).unwrap();
    let image = ImageSpec::Nbd(far.uri().parse().unwrap());
    let (budget, name) = (std::sync::Arc::default(), "near".into());
    let disk = DiskSpec {
        id: DISK,
        name,
        size: SIZE,
        image,
        budget,
        unnamed: false,
        keeps_room: false,
        account: None,
    };
    engine.attach(disk).unwrap();
    let socket = far.directory.path().join("machine.sock");
    engine.serve(DISK, UnixListener::bind(&socket).unwrap()).unwrap();
    let memory = Memory::new();
    let mut machine = Machine::connect(&socket, &memory, None);
    memory.put(DATA, &pattern(4096, 1));
    // Minutes a request, but for the first.
    let limit = Limit { bytes: Some(16), ..Limit::default() };
    far.engine.set_terms(ClassId(7), Some(Terms { limit, ..Terms::default() })).unwrap();
    far.engine.set_class(DISK, Some(ClassId(7))).unwrap();
    for _ in 0..4 {
        machine.put(WRITE, 8, &[Stretch(DATA, 4096, false)]);
    }
    machine.kick();
    eventually("them to be under way", || engine.stats(DISK).unwrap().in_flight > 0);
    engine.unserve(DISK);
    fs::remove_file(&socket).unwrap();
    engine.serve(DISK, UnixListener::bind(&socket).unwrap()).unwrap();
    assert!(engine.stats(DISK).unwrap().in_flight > 0);
    assert!(is_turned_away(&socket), "what it has written has not landed");
    far.engine.set_terms(ClassId(7), Some(Terms::default())).unwrap();
    eventually("all to have landed", || engine.stats(DISK).unwrap().in_flight == 0);
    drop(machine);
    let memory = Memory::new();
    let mut again = Machine::connect(&socket, &memory, None);
    memory.put(DATA, &pattern(4096, 2));
    assert_eq!(again.ask(WRITE, 8, &[Stretch(DATA, 4096, false)]), OK);
    assert_eq!(again.ask(READ, 8, &[Stretch(DATA + 8192, 4096, true)]), OK);
    assert!(memory.get(DATA + 8192, 4096) == pattern(4096, 2));
}

#[test]
fn machines_that_wait_do_not_hold_up_the_end() {
    let stage = Stage::new(sterna_engine::IoChoice::Auto, SIZE);
    let socket = serve(&stage);
    let memory = Memory::new();
    let mut machine = Machine::connect(&socket, &memory, None);
    assert_eq!(machine.ask(FLUSH, 0, &[]), OK);
    let _waiting = UnixStream::connect(&socket).unwrap();
    stage.engine.detach(DISK).unwrap();
}
