//! What a well-behaved client gets.

mod common;

use std::os::unix::fs::{FileExt, MetadataExt};

use common::{Client, DISK, Random, Stage, on_both};
use sterna_engine::{Config, IoChoice};
use sterna_nbd::{Command, NbdError, TransmissionFlags};

const MIB: u64 = 1 << 20;

#[test]
fn a_disk_keeps_what_is_written_whatever_the_sizes() {
    on_both(|io| {
        for (structured, direct) in [(true, true), (false, true), (true, false)] {
            random_work(io, structured, direct, 150);
        }
    });
}

/// Random commands of all kinds, each compared with a model in memory.
fn random_work(io: IoChoice, structured: bool, direct: bool, steps: u32) {
    let config =
        Config { reactors: 1, io, memory: 8 << 20, keep: None, ..Config::default() };
    let stage = Stage::with(&config, 16 * MIB, direct);
    let mut client = Client::connect(&stage.socket(), structured);
    let mut model = vec![0u8; 16 << 20];
    let seed = u64::from(std::process::id());
    eprintln!("seed {seed}");
    let mut random = Random(seed);
    for _ in 0..steps {
        let most = [8, 256, 2048, 10_000][random.below(4) as usize];
        let len = (1 + random.below(most)) * 512;
        let offset = random.below((16 * MIB - len) / 512 + 1) * 512;
        let fua = random.below(4) == 0;
        let range = offset as usize..(offset + len) as usize;
        let length = len as u32;
        match random.below(6) {
            0 | 1 => {
                let bytes = random.bytes(len as usize);
                let command = Command::Write { offset, len: length, fua };
                assert_eq!(client.call(command, &bytes).result, Ok(()));
                model[range].copy_from_slice(&bytes);
            }
            2 => {
                let command = match random.below(2) {
                    0 => Command::Trim { offset, len: length, fua },
                    _ => Command::WriteZeroes {
                        offset,
                        len: length,
                        fua,
                        no_hole: random.below(2) == 0,
                        fast_zero: false,
                    },
                };
                assert_eq!(client.call(command, &[]).result, Ok(()));
                model[range].fill(0);
            }
            _ => {
                let df = structured && random.below(2) == 0;
                let reply = client.call(Command::Read { offset, len: length, df }, &[]);
                assert_eq!(reply.result, Ok(()));
                assert!(reply.data == model[range], "at {offset}, {len} bytes");
            }
        }
    }
    assert_eq!(client.call(Command::Flush, &[]).result, Ok(()));
    let file = std::fs::read(stage.file()).unwrap();
    assert!(file == model);
}

#[test]
fn what_was_cut_off_a_file_is_an_error_and_its_last_bytes_are_not() {
    on_both(|io| {
        for direct in [true, false] {
            let config = Config {
                reactors: 1,
                io,
                memory: 8 << 20,
                keep: None,
                ..Config::default()
            };
            let stage = Stage::with(&config, 2 * MIB, direct);
            let mut client = Client::connect(&stage.socket(), true);
            let file =
                std::fs::OpenOptions::new().write(true).open(stage.file()).unwrap();
            let mut read = |offset, len| {
                client.call(Command::Read { offset, len, df: false }, &[]).result
            };
            assert_eq!(read(2 * MIB - 512, 512), Ok(()));
            file.set_len(MIB + 512).unwrap();
            assert_eq!(read(MIB, 512), Ok(()));
            for (offset, len) in [(MIB + 512, 512), (MIB, 4096), (2 * MIB - 4096, 4096)] {
                assert_eq!(read(offset, len), Err(NbdError::Io), "{offset}, {len}");
            }
            let status = Command::BlockStatus { offset: MIB, len: 8192, req_one: false };
            assert_eq!(client.call(status, &[]).result, Err(NbdError::Io));
        }
    });
}

#[test]
fn a_burst_of_commands_is_answered_whole() {
    on_both(|io| {
        let stage = Stage::new(io, 64 * MIB);
        let mut client = stage.client();
        let mut random = Random(3);
        let blocks: Vec<Vec<u8>> = (0..100).map(|_| random.bytes(4096)).collect();
        let mut burst = Vec::new();
        for (block, offset) in blocks.iter().zip((0..).step_by(4096)) {
            burst.extend(client.encode(Command::Write { offset, len: 4096, fua: false }));
            burst.extend(block);
        }
        std::io::Write::write_all(&mut client.stream, &burst).unwrap();
        let replies = client.receive_all(100);
        assert!(replies.values().all(|reply| reply.result == Ok(())));

        let mut burst = Vec::new();
        for offset in (0..100 * 4096).step_by(4096) {
            let command = Command::Read { offset, len: 4096, df: false };
            burst.extend(client.encode(command));
        }
        std::io::Write::write_all(&mut client.stream, &burst).unwrap();
        let replies = client.receive_all(100);
        for (at, block) in blocks.iter().enumerate() {
            assert!(replies[&(101 + at as u64)].data == *block);
        }
    });
}

#[test]
fn clients_that_write_one_place_are_all_answered_however_many_wait() {
    on_both(|io| {
        // What waits may hold less than a megabyte; together they send five.
        let config = Config { reactors: 1, io, memory: 8 << 20, ..Config::default() };
        let stage = Stage::with(&config, MIB, true);
        let mut clients: Vec<Client> = (0..4).map(|_| stage.client()).collect();
        std::thread::scope(|scope| {
            for client in &mut clients {
                scope.spawn(|| {
                    let write = Command::Write { offset: 0, len: 16 << 10, fua: false };
                    for _ in 0..80 {
                        client.send(write, &[1; 16 << 10]);
                    }
                    let replies = client.receive_all(80);
                    assert!(replies.values().all(|reply| reply.result == Ok(())));
                });
            }
        });
    });
}

#[test]
fn long_and_short_reads_at_once_do_not_mix_up() {
    on_both(|io| {
        for structured in [true, false] {
            let stage = Stage::new(io, 64 * MIB);
            let contents = Random(11).bytes(64 << 20);
            std::fs::write(stage.file(), &contents).unwrap();
            let mut client = Client::connect(&stage.socket(), structured);
            let mut random = Random(5);
            let ranges: Vec<(u64, u32)> = (0..24)
                .map(|n| {
                    let len = if n % 3 == 0 { 5 << 20 } else { 8192 };
                    (random.below((64 * MIB - len) / 512) * 512, len as u32)
                })
                .collect();
            let mut burst = Vec::new();
            for &(offset, len) in &ranges {
                burst.extend(client.encode(Command::Read { offset, len, df: false }));
            }
            std::io::Write::write_all(&mut client.stream, &burst).unwrap();
            let replies = client.receive_all(ranges.len());
            for ((offset, len), cookie) in ranges.iter().zip(1..) {
                let range = *offset as usize..*offset as usize + *len as usize;
                assert!(replies[&cookie].data == contents[range]);
            }
        }
    });
}

#[test]
fn the_largest_request_works_with_the_smallest_memory() {
    on_both(|io| {
        let stage = Stage::with(
            &Config { reactors: 1, io, memory: 0, keep: None, ..Config::default() },
            64 * MIB,
            true,
        );
        let mut client = stage.client();
        let bytes = Random(1).bytes(32 << 20);
        client.write(512, &bytes);
        assert!(client.read(512, 32 << 20) == bytes);
    });
}

#[test]
fn holes_are_reported_and_discards_make_them() {
    on_both(|io| {
        let stage = Stage::new(io, 16 * MIB);
        let mut client = stage.client();
        client.write(4 * MIB, &vec![1; 2 << 20]);
        let status = |client: &mut Client| {
            let command =
                Command::BlockStatus { offset: 0, len: 16 << 20, req_one: false };
            let extents = client.call(command, &[]).extents;
            extents
                .iter()
                .map(|e| (e.len, e.state.hole && e.state.zero))
                .collect::<Vec<_>>()
        };
        let holes = [(4 * MIB, true), (2 * MIB, false), (10 * MIB, true)];
        assert_eq!(status(&mut client), holes);
        let used = stage.file().metadata().unwrap().blocks();
        let trim = Command::Trim { offset: 4 * MIB, len: 2 << 20, fua: true };
        assert_eq!(client.call(trim, &[]).result, Ok(()));
        assert_eq!(status(&mut client), [(16 * MIB, true)]);
        assert!(stage.file().metadata().unwrap().blocks() < used);
        let zero = Command::WriteZeroes {
            offset: 0,
            len: 1 << 20,
            fua: false,
            no_hole: true,
            fast_zero: true,
        };
        assert_eq!(client.call(zero, &[]).result, Ok(()));
        assert!(stage.file().metadata().unwrap().blocks() * 512 >= MIB);
    });
}

#[test]
fn wrong_requests_get_their_error_and_the_connection_goes_on() {
    on_both(|io| {
        let stage = Stage::new(io, MIB);
        for structured in [true, false] {
            let mut client = Client::connect(&stage.socket(), structured);
            let payload = vec![7; 4096];
            let past = Command::Write { offset: MIB - 512, len: 4096, fua: false };
            assert_eq!(client.call(past, &payload).result, Err(NbdError::NoSpc));
            let past = Command::Read { offset: MIB, len: 512, df: false };
            assert_eq!(client.call(past, &[]).result, Err(NbdError::Inval));
            let crooked = Command::Read { offset: 1, len: 512, df: false };
            assert_eq!(client.call(crooked, &[]).result, Err(NbdError::Inval));
            let crooked = Command::Write { offset: 0, len: 100, fua: false };
            assert_eq!(
                client.call(crooked, &payload[..100]).result,
                Err(NbdError::Inval)
            );
            assert_eq!(client.read(0, 4096), [0; 4096]);
        }
    });
}

#[test]
fn the_export_says_what_it_can_do() {
    on_both(|io| {
        let stage = Stage::new(io, MIB);
        let session = stage.client().session;
        let expected = TransmissionFlags::SEND_FLUSH
            | TransmissionFlags::SEND_FUA
            | TransmissionFlags::SEND_TRIM
            | TransmissionFlags::SEND_WRITE_ZEROES
            | TransmissionFlags::SEND_FAST_ZERO
            | TransmissionFlags::SEND_CACHE
            | TransmissionFlags::SEND_DF
            | TransmissionFlags::CAN_MULTI_CONN;
        assert!(session.flags.has(expected));
        let sizes = session.block_sizes;
        assert_eq!(
            (sizes.minimum(), sizes.preferred(), sizes.maximum()),
            (512, 4096, 32 << 20)
        );
        assert_eq!(session.size, MIB);
    });
}

#[test]
fn writes_of_one_connection_are_read_by_another() {
    on_both(|io| {
        let stage = Stage::new(io, MIB);
        let (mut one, mut other) = (stage.client(), stage.client());
        one.write(8192, &[9; 4096]);
        assert_eq!(other.call(Command::Flush, &[]).result, Ok(()));
        assert_eq!(other.read(8192, 4096), [9; 4096]);
        let mut bytes = [0; 4096];
        let file = std::fs::File::open(stage.file()).unwrap();
        file.read_exact_at(&mut bytes, 8192).unwrap();
        assert_eq!(bytes, [9; 4096]);
    });
}

#[test]
fn requests_are_counted_and_timed() {
    on_both(|io| {
        let stage = Stage::new(io, MIB);
        let mut client = stage.client();
        for n in 0..10 {
            client.write(n * 4096, &[1; 4096]);
        }
        client.read(0, 8192);
        client.call(Command::Flush, &[]);
        client.call(Command::Trim { offset: 0, len: 512, fua: false }, &[]);
        let stats = stage.engine.stats(DISK).unwrap();
        assert_eq!((stats.write.operations, stats.write.bytes), (10, 40960));
        assert_eq!((stats.read.operations, stats.read.bytes), (1, 8192));
        assert_eq!((stats.flushes, stats.zeroes, stats.errors), (1, 1, 0));
        assert_eq!((stats.connections, stats.in_flight), (1, 0));
        let profile = stage.engine.profile(DISK).unwrap();
        let times = [profile.write, profile.read].map(|kind| kind.unwrap().times);
        assert_eq!(times.each_ref().map(|times| times.response().len()), [10, 1]);
        assert!(times[0].response().max() < 10_000_000_000);
    });
}
