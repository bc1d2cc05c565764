//! Requests of any offset and length, from clients that have not asked for block sizes.

mod common;

use std::io::Write;
use std::ops::Range;
use std::thread;

use common::{Client, DISK, Random, Stage, on_both};
use sterna_engine::{Config, IoChoice};
use sterna_nbd::{Command, NbdError};

const MIB: u64 = 1 << 20;
const BLOCK: u64 = 512;

fn small(io: IoChoice) -> Config {
    Config { reactors: 1, io, memory: 8 << 20, ..Config::default() }
}

/// Mostly parts of a few blocks, sometimes more than two pieces.
fn range(random: &mut Random, size: u64) -> Range<u64> {
    let most = [3, 700, 5000, 200_000, 3 * MIB][random.below(5) as usize];
    let len = 1 + random.below(most);
    let start = random.below(size - len + 1);
    start..start + len
}

fn indices(range: &Range<u64>) -> Range<usize> {
    range.start as usize..range.end as usize
}

/// One request after the other, beside an array that must stay the same as the disk.
fn compare_with_an_array(stage: &Stage, structured: bool, seed: u64) {
    let size = stage.engine.stats(DISK).map(|_| 8 * MIB).unwrap();
    let mut client = Client::connect_without_sizes(&stage.socket(), structured);
    let mut model = std::fs::read(stage.file()).unwrap();
    let mut random = Random(seed);
    for _ in 0..150 {
        let range = range(&mut random, size);
        let (offset, len) = (range.start, (range.end - range.start) as u32);
        let fua = random.below(4) == 0;
        match random.below(6) {
            0 | 1 => {
                let bytes = random.bytes(len as usize);
                let write = Command::Write { offset, len, fua };
                assert_eq!(client.call(write, &bytes).result, Ok(()));
                model[indices(&range)].copy_from_slice(&bytes);
            }
            2 => {
                let (no_hole, fast_zero) = (random.below(2) == 0, false);
                let zero = Command::WriteZeroes { offset, len, fua, no_hole, fast_zero };
                assert_eq!(client.call(zero, &[]).result, Ok(()));
                model[indices(&range)].fill(0);
            }
            3 => {
                let trim = Command::Trim { offset, len, fua };
                assert_eq!(client.call(trim, &[]).result, Ok(()));
                let start = offset.next_multiple_of(BLOCK);
                let end = (range.end / BLOCK * BLOCK).max(start);
                model[indices(&(start..end))].fill(0);
            }
            4 if structured => {
                let status = Command::BlockStatus { offset, len, req_one: fua };
                let reply = client.call(status, &[]);
                assert_eq!(reply.result, Ok(()));
                let mut at = offset;
                for extent in reply.extents {
                    let end = (at + extent.len).min(range.end);
                    let zeroes = model[indices(&(at..end))].iter().all(|it| *it == 0);
                    assert!(zeroes || !extent.state.zero, "at {at}, {}", extent.len);
                    at += extent.len;
                }
                assert!(at > offset && at <= range.end, "{at} of {range:?}");
            }
            4 => {
                let cache = Command::Cache { offset, len };
                assert_eq!(client.call(cache, &[]).result, Ok(()));
            }
            _ => {
                let df = structured && random.below(2) == 0;
                let reply = client.call(Command::Read { offset, len, df }, &[]);
                assert_eq!(reply.result, Ok(()));
                assert!(reply.data == model[indices(&range)], "{range:?}, seed {seed}");
            }
        }
    }
    assert!(client.read(0, size as u32) == model, "seed {seed}");
    assert_eq!(client.call(Command::Flush, &[]).result, Ok(()));
    assert!(std::fs::read(stage.file()).unwrap() == model, "seed {seed}");
}

#[test]
fn any_range_is_read_and_written_as_an_array_is() {
    on_both(|io| {
        for (direct, structured, seed) in
            [(true, true, 1), (true, false, 2), (false, true, 3)]
        {
            let stage = Stage::with(&small(io), 8 * MIB, direct);
            std::fs::write(stage.file(), Random(seed).bytes(8 << 20)).unwrap();
            compare_with_an_array(&stage, structured, seed);
        }
    });
}

/// Clients in the test below, and the bytes that each of them has in turn.
const CLIENTS: u64 = 5;
const STRIPE: u64 = 37;
const STRIPED: u64 = 64 * 1024;
const ROUNDS: u8 = 8;

/// Writes all stripes of a client, again and again, with many under way.
fn write_stripes(client: &mut Client, number: u64) {
    for round in 1..=ROUNDS {
        let own = (0..STRIPED / STRIPE).filter(|stripe| stripe % CLIENTS == number);
        for stripes in own.collect::<Vec<_>>().chunks(60) {
            let mut burst = Vec::new();
            for stripe in stripes {
                let offset = stripe * STRIPE;
                let zeroes = (stripe + u64::from(round)).is_multiple_of(7);
                let (len, fua) = (STRIPE as u32, false);
                if zeroes {
                    let (no_hole, fast_zero) = (false, false);
                    burst.extend(client.encode(Command::WriteZeroes {
                        offset,
                        len,
                        fua,
                        no_hole,
                        fast_zero,
                    }));
                } else {
                    burst.extend(client.encode(Command::Write { offset, len, fua }));
                    burst.extend([round; STRIPE as usize]);
                }
            }
            client.stream.write_all(&burst).unwrap();
            let replies = client.receive_all(stripes.len());
            assert!(replies.values().all(|reply| reply.result == Ok(())));
        }
    }
}

#[test]
fn no_write_to_a_part_of_a_block_undoes_that_of_another_part() {
    on_both(|io| {
        let stage = Stage::with(&small(io), MIB, true);
        thread::scope(|scope| {
            for number in 0..CLIENTS {
                let mut client = Client::connect_without_sizes(&stage.socket(), true);
                scope.spawn(move || write_stripes(&mut client, number));
            }
        });
        let disk = stage.client().read(0, STRIPED as u32);
        for (stripe, bytes) in disk.chunks_exact(STRIPE as usize).enumerate() {
            let zeroes = (stripe as u64 + u64::from(ROUNDS)).is_multiple_of(7);
            let expected = if zeroes { 0 } else { ROUNDS };
            assert!(bytes.iter().all(|byte| *byte == expected), "stripe {stripe}");
        }
    });
}

#[test]
fn a_write_waits_for_what_its_own_client_writes_to_the_block() {
    on_both(|io| {
        let stage = Stage::with(&small(io), 4 * MIB, true);
        let mut client = Client::connect_without_sizes(&stage.socket(), true);
        for round in 1..=20u8 {
            // Whole blocks, then parts of some of them, and all at once.
            let mut burst =
                client.encode(Command::Write { offset: 0, len: MIB as u32, fua: false });
            burst.extend(vec![round; MIB as usize]);
            for part in 0..50u64 {
                let offset = part * 20_011 + 3;
                burst.extend(client.encode(Command::Write {
                    offset,
                    len: 5,
                    fua: false,
                }));
                burst.extend([round ^ 0x80; 5]);
            }
            let (one, other) = burst.split_at(burst.len() / 2);
            thread::scope(|scope| {
                let mut stream = client.stream.try_clone().unwrap();
                scope.spawn(move || {
                    stream.write_all(one).unwrap();
                    stream.write_all(other).unwrap();
                });
                let replies = client.receive_all(51);
                assert!(replies.values().all(|reply| reply.result == Ok(())));
            });
            let mut expected = vec![round; MIB as usize];
            for part in 0..50 {
                let at = part * 20_011 + 3;
                expected[at..at + 5].fill(round ^ 0x80);
            }
            assert!(client.read(0, MIB as u32) == expected, "round {round}");
        }
    });
}

#[test]
fn a_write_of_whole_blocks_waits_for_its_own_clients_earlier_write_to_a_part() {
    const PAIRS: u64 = 100;
    on_both(|io| {
        let stage = Stage::with(&small(io), MIB, true);
        let mut client = Client::connect_without_sizes(&stage.socket(), true);
        for round in 1..=10u8 {
            let mut burst = Vec::new();
            for pair in 0..PAIRS {
                let part = pair * BLOCK + 3;
                let part = Command::Write { offset: part, len: 5, fua: false };
                burst.extend(client.encode(part));
                burst.extend([round ^ 0x80; 5]);
                let (offset, len) = (pair * BLOCK, BLOCK as u32);
                burst.extend(client.encode(Command::Write { offset, len, fua: false }));
                burst.extend([round; BLOCK as usize]);
            }
            client.stream.write_all(&burst).unwrap();
            let replies = client.receive_all(2 * PAIRS as usize);
            assert!(replies.values().all(|reply| reply.result == Ok(())));
            let disk = client.read(0, (PAIRS * BLOCK) as u32);
            assert!(disk.iter().all(|byte| *byte == round), "round {round}");
        }
    });
}

#[test]
fn what_finds_no_room_behind_writes_that_wait_for_each_other_comes_in_when_they_go_on() {
    // All go to one place, so all but one wait; and an eighth of 8 MiB is soon full.
    const WRITES: usize = 64;
    const LEN: u32 = 64 << 10;
    on_both(|io| {
        let stage = Stage::with(&small(io), MIB, true);
        let mut client = Client::connect_without_sizes(&stage.socket(), true);
        let mut burst = Vec::new();
        for number in 1..=WRITES as u8 {
            burst.extend(client.encode(Command::Write {
                offset: 1,
                len: LEN,
                fua: false,
            }));
            burst.extend([number; LEN as usize]);
        }
        thread::scope(|scope| {
            let mut stream = client.stream.try_clone().unwrap();
            scope.spawn(move || stream.write_all(&burst).unwrap());
            let replies = client.receive_all(WRITES);
            assert!(replies.values().all(|reply| reply.result == Ok(())));
        });
        assert!(client.read(1, LEN).iter().all(|byte| *byte == WRITES as u8));
    });
}

#[test]
fn a_block_that_cannot_be_read_is_not_written_in_part() {
    on_both(|io| {
        let stage = Stage::with(&small(io), 2 * MIB, false);
        let mut client = Client::connect_without_sizes(&stage.socket(), true);
        client.write(0, &[1; 100]);
        let file = std::fs::OpenOptions::new().write(true).open(stage.file()).unwrap();
        file.set_len(MIB).unwrap();
        let write = Command::Write { offset: MIB + 7, len: 100, fua: true };
        assert_eq!(client.call(write, &[2; 100]).result, Err(NbdError::Io));
        let zero = Command::WriteZeroes {
            offset: MIB + 7,
            len: 100,
            fua: false,
            no_hole: false,
            fast_zero: false,
        };
        assert_eq!(client.call(zero, &[]).result, Err(NbdError::Io));
        assert_eq!(file.metadata().unwrap().len(), MIB, "nothing was written");
        // The others at that place, and the connection, go on.
        let mut other = Client::connect_without_sizes(&stage.socket(), true);
        other.write(MIB, &[3; 512]);
        assert_eq!(client.read(MIB + 1, 5), [3; 5]);
        assert_eq!(client.read(0, 101)[98..], [1, 1, 0]);
        assert_eq!(stage.engine.stats(DISK).unwrap().in_flight, 0);
    });
}

#[test]
fn what_is_past_the_end_or_too_long_is_refused_as_ever() {
    on_both(|io| {
        let stage = Stage::with(&small(io), MIB, true);
        let mut client = Client::connect_without_sizes(&stage.socket(), true);
        let past = Command::Write { offset: MIB - 3, len: 4, fua: false };
        assert_eq!(client.call(past, &[1; 4]).result, Err(NbdError::NoSpc));
        client.write(MIB - 3, &[1; 3]);
        let past = Command::Read { offset: MIB - 1, len: 2, df: false };
        assert_eq!(client.call(past, &[]).result, Err(NbdError::Inval));
        assert_eq!(client.read(MIB - 4, 4), [0, 1, 1, 1]);
    });
}

#[test]
fn parts_of_blocks_count_as_blocks() {
    on_both(|io| {
        let stage = Stage::with(&small(io), MIB, true);
        let mut client = Client::connect_without_sizes(&stage.socket(), true);
        client.write(510, &[1; 4]);
        client.read(513, 1);
        let stats = stage.engine.stats(DISK).unwrap();
        assert_eq!((stats.write.operations, stats.write.bytes), (1, 1024));
        assert_eq!((stats.read.operations, stats.read.bytes), (1, 512));
    });
}
