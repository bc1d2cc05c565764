//! Clients that break the rules, or break down.

mod common;

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use common::client::hung_up;
use common::{Client, DISK, Random, Stage, eventually, on_both};
use sterna_engine::{Config, IoChoice};
use sterna_nbd::Command;

const MIB: u64 = 1 << 20;

fn small(io: IoChoice) -> Stage {
    Stage::with(
        &Config { reactors: 1, io, memory: 8 << 20, keep: None, ..Config::default() },
        64 * MIB,
        true,
    )
}

#[test]
fn a_client_that_does_not_read_its_replies_harms_nobody() {
    on_both(|io| {
        let stage = small(io);
        let mut deaf: Vec<Client> = (0..8).map(|_| stage.client()).collect();
        for client in &mut deaf {
            client.stream.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
            // Until the server stops reading, or far more than its memory.
            for _ in 0..2000 {
                let read =
                    client.encode(Command::Read { offset: 0, len: 1 << 20, df: false });
                if client.stream.write_all(&read).is_err() {
                    break;
                }
            }
        }
        let mut good = stage.client();
        for n in 0..50 {
            good.write(n * MIB, &vec![n as u8; 1 << 20]);
        }
        assert!(good.read(49 * MIB, 1 << 20) == vec![49; 1 << 20]);
        drop(deaf);
        stage.await_connections(1);
    });
}

#[test]
fn clients_that_stop_within_a_payload_leave_memory_for_others() {
    on_both(|io| {
        let stage = small(io);
        let mut stuck: Vec<Client> = (0..30).map(|_| stage.client()).collect();
        for client in &mut stuck {
            let write =
                client.encode(Command::Write { offset: 0, len: 64 << 10, fua: false });
            client.stream.write_all(&write).unwrap();
            client.stream.write_all(&[1; 1000]).unwrap();
        }
        let mut good = stage.client();
        good.write(0, &vec![5; 256 << 10]);
        assert!(good.read(0, 256 << 10) == vec![5; 256 << 10]);
        drop(stuck);
        stage.await_connections(1);
        assert!(
            good.read(0, 256 << 10) == vec![5; 256 << 10],
            "half a payload is no write"
        );
    });
}

#[test]
fn refused_requests_do_not_pile_up() {
    on_both(|io| {
        let stage = small(io);
        let mut client = stage.client();
        client.stream.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
        let wrong = Command::Read { offset: 64 * MIB, len: 512, df: false };
        let burst: Vec<u8> = (0..1000).flat_map(|_| client.encode(wrong)).collect();
        let refused = (0..1000).any(|_| client.stream.write_all(&burst).is_err());
        assert!(refused, "the server stops reading when its replies are not read");
        let mut good = stage.client();
        good.write(0, &[1; 512]);
    });
}

#[test]
fn half_closed_connections_get_their_answers() {
    on_both(|io| {
        let stage = small(io);
        let mut client = stage.client();
        let bytes = Random(2).bytes(3 << 20);
        client.send(Command::Write { offset: 0, len: 3 << 20, fua: true }, &bytes);
        client.send(Command::Read { offset: 8 * MIB, len: 2 << 20, df: false }, &[]);
        client.stream.shutdown(Shutdown::Write).unwrap();
        let replies = client.receive_all(2);
        assert!(replies.values().all(|reply| reply.result == Ok(())));
        assert!(client.is_hung_up());
        stage.await_connections(0);
        assert!(std::fs::read(stage.file()).unwrap()[..3 << 20] == bytes);
    });
}

#[test]
fn after_a_disconnect_the_rest_is_answered_and_then_the_end_comes() {
    on_both(|io| {
        let stage = small(io);
        let mut client = stage.client();
        let mut burst = client.encode(Command::Read { offset: 0, len: 4096, df: false });
        burst.extend(client.encode(Command::Disconnect));
        burst.extend([0xff; 100]);
        client.stream.write_all(&burst).unwrap();
        assert_eq!(client.receive().data, [0; 4096]);
        assert!(client.is_hung_up());
    });
}

#[test]
fn garbage_ends_the_connection_and_nothing_else() {
    on_both(|io| {
        let stage = small(io);
        let mut stranger = UnixStream::connect(stage.socket()).unwrap();
        let _ = stranger.write_all(b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n");
        assert!(hung_up(&mut stranger));

        let mut client = stage.client();
        client.stream.write_all(&[0x55; 28]).unwrap();
        assert!(client.is_hung_up());

        // A payload that nobody will read.
        let mut client = stage.client();
        let huge =
            client.encode(Command::Write { offset: 0, len: 0xffff_fe00, fua: false });
        client.stream.write_all(&huge).unwrap();
        assert!(client.is_hung_up());

        let mut random = Random(4);
        for round in 0..200 {
            let mut client = stage.client();
            client.stream.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
            let mut noise = client.encode(Command::Flush);
            noise[4..].fill_with(|| random.next() as u8);
            noise[6..8].copy_from_slice(&(round % 9u16).to_be_bytes());
            noise.extend(random.bytes(500));
            let _ = client.stream.write_all(&noise);
        }
        let mut good = stage.client();
        good.write(0, &[1; 512]);
        assert_eq!(good.read(0, 512), [1; 512]);
    });
}

#[test]
fn clients_that_vanish_at_any_moment_leave_nothing_behind() {
    on_both(|io| {
        let stage = small(io);
        let mut random = Random(6);
        for _ in 0..60 {
            let mut client = stage.client();
            client.stream.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
            let mut bytes = Vec::new();
            for _ in 0..random.below(20) {
                let len = (1 + random.below(600) as u32) * 512;
                let offset = random.below(4096) * 512;
                if random.below(2) == 0 {
                    bytes.extend(client.encode(Command::Read { offset, len, df: false }));
                } else {
                    bytes.extend(client.encode(Command::Write {
                        offset,
                        len,
                        fua: false,
                    }));
                    bytes.resize(bytes.len() + len as usize, 3);
                }
            }
            let end = random.below(bytes.len() as u64 + 1) as usize;
            let _ = client.stream.write_all(&bytes[..end]);
        }
        stage.await_connections(0);
        eventually("requests to end", || {
            stage.engine.stats(DISK).unwrap().in_flight == 0
        });
        // All memory is back: the largest command finds its buffers.
        stage.client().write(0, &vec![1; 32 << 20]);
    });
}

#[test]
fn who_does_not_shake_hands_is_shown_out() {
    let start = Instant::now();
    let stages = [small(IoChoice::Uring), small(IoChoice::Threads)];
    let mut silent: Vec<UnixStream> =
        stages.iter().map(|stage| UnixStream::connect(stage.socket()).unwrap()).collect();
    for stream in &mut silent {
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut greeting = [0; 18];
        stream.read_exact(&mut greeting).unwrap();
        assert!(hung_up(stream));
    }
    assert!(start.elapsed() > Duration::from_secs(9));
    assert!(start.elapsed() < Duration::from_secs(15));
}

#[test]
fn a_handshake_byte_by_byte_works() {
    on_both(|io| {
        let stage = small(io);
        let mut stream = UnixStream::connect(stage.socket()).unwrap();
        let mut greeting = [0; 18];
        stream.read_exact(&mut greeting).unwrap();
        let mut hello = vec![0, 0, 0, 3];
        hello.extend(b"IHAVEOPT\0\0\0\x01\0\0\0\x04disk");
        hello
            .extend(Command::Read { offset: 0, len: 512, df: false }.request(5).encode());
        for byte in hello {
            stream.write_all(&[byte]).unwrap();
        }
        let mut answer = [0; 10 + 16 + 512];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(answer[..8], (64 * MIB).to_be_bytes());
        assert_eq!(answer[10..18], [0x67, 0x44, 0x66, 0x98, 0, 0, 0, 0]);
    });
}
