//! A disk as a virtual machine's own driver sees it.

mod changing;
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
