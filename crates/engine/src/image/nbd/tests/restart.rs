//! Servers that go away and come back.

use std::collections::VecDeque;
use std::time::Duration;

use sterna_core::DiskId;
use sterna_core::durability::Keeper;

use super::*;
use crate::account::{Account, AccountSpec};
use crate::boot::BootId;
use rig::LONG;

/// Writes to random places of a file whose server is stopped by `stop` and
/// started again, four times, under way. Nothing may fail, and in the end
/// everything is there.
fn survives(choice: IoChoice, stop: fn(&mut Rig, Server), seed: u64) {
    let place = place();
    let image = file(&place, 16 << 20);
    let arguments =
        ["--filter=delay", "file", image.to_str().unwrap(), "delay-write=2ms"];
    let mut server = Some(Server::nbdkit(&place.socket, &arguments));
    let mut rig = Rig::open(choice, &place.uri);
    let mut random = Random(seed);
    let mut model = vec![0u8; 16 << 20];
    let mut flights = VecDeque::new();
    for step in 0..800u64 {
        match step % 200 {
            // Requests are under way now, and more come without a server.
            60 => stop(&mut rig, server.take().unwrap()),
            90 => {
                rig.run_for(Duration::from_millis(step / 4));
                server = Some(Server::nbdkit(&place.socket, &arguments));
            }
            _ => {}
        }
        // One of 256 places after the other, so that none is written twice at
        // a time.
        let at = (step % 256) as usize * 65536;
        let len = 512 * (1 + random.below(128)) as usize;
        let byte = random.below(256) as u8;
        let buf = rig.buffer(len);
        buf.with_mut(|bytes| bytes.fill(byte));
        model[at..at + len].fill(byte);
        let op = ImageOp::Write { offset: at as u64, buf, fua: step % 5 == 0 };
        flights.push_back(rig.submit(op));
        while server.is_some() && flights.len() > 40 {
            let id = flights.pop_front().unwrap();
            assert_eq!(rig.wait(id), Ok(Done::Ok), "seed {seed}");
        }
    }
    for id in flights {
        assert_eq!(rig.wait(id), Ok(Done::Ok), "seed {seed}");
    }
    for at in (0..model.len()).step_by(4 * MIB) {
        assert!(rig.read(at as u64, 4 * MIB) == model[at..at + 4 * MIB], "seed {seed}");
    }
    rig.close();
    assert!(std::fs::read(image).unwrap() == model, "seed {seed}");
}

#[test]
fn a_killed_server_is_waited_for_and_nothing_is_lost() {
    survives(IoChoice::Auto, |_, server| server.kill(), 1);
    survives(IoChoice::Threads, |_, server| server.kill(), 2);
}

#[test]
fn a_server_that_shuts_down_is_waited_for_and_nothing_is_lost() {
    // It answers what it has and refuses the rest, until all clients are gone.
    let stop = |rig: &mut Rig, server: Server| {
        server.terminate();
        rig.run_for(Duration::from_millis(150));
        server.kill();
    };
    survives(IoChoice::Auto, stop, 3);
}

#[test]
fn a_server_that_goes_and_comes_is_news_each_time() {
    let place = place();
    let server = Server::nbdkit(&place.socket, &["memory", "16M"]);
    let mut rig = Rig::open(IoChoice::Auto, &place.uri);
    rig.run_for(Duration::from_millis(100));
    rig.news = 0;
    assert_eq!(rig.write(0, &[1; 4096], false), Ok(Done::Ok));
    assert!(rig.image.is_in_reach() && rig.news == 0);
    server.kill();
    rig.run_until(|rig| !rig.image.is_in_reach());
    assert!(rig.image.has_forgotten().is_some(), "the write was not flushed");
    // With the connection that had written, and with the last one: which may be the same.
    let away = rig.news;
    assert!((1..=2).contains(&away), "{away}");
    let _server = Server::nbdkit(&place.socket, &["memory", "16M"]);
    rig.run_until(|rig| rig.image.is_in_reach());
    assert_eq!(rig.news, away + 1);
    rig.close();
}

#[test]
fn a_server_that_was_flushed_has_nothing_to_forget() {
    let place = place();
    let server = Server::nbdkit(&place.socket, &["memory", "16M"]);
    let mut rig = Rig::open(IoChoice::Auto, &place.uri);
    rig.run_for(Duration::from_millis(100));
    for at in 0..16 {
        assert_eq!(rig.write(at * 4096, &[1; 4096], at % 2 == 0), Ok(Done::Ok));
    }
    assert_eq!(rig.call(ImageOp::Flush), Ok(Done::Ok));
    server.kill();
    rig.run_until(|rig| !rig.image.is_in_reach());
    assert!(rig.image.has_forgotten().is_none());
    rig.close();
}

#[test]
fn an_image_that_takes_leave_is_flushed_or_left_after_a_while() {
    for stops in [false, true] {
        let place = place();
        let log = place.directory.path().join("log");
        let logs = format!("logfile={}", log.display());
        let server =
            Server::nbdkit(&place.socket, &["--filter=log", "memory", "16M", &logs]);
        let mut rig = Rig::open(IoChoice::Auto, &place.uri);
        assert_eq!(rig.write(0, &[1; 4096], false), Ok(Done::Ok));
        if stops {
            server.suspend();
        }
        // Nothing of it stays, and nobody is answered.
        rig.take_leave();
        let flushed = std::fs::read_to_string(&log).unwrap().contains("Flush");
        assert_eq!(flushed, !stops);
    }
}

#[test]
fn a_flush_that_a_server_is_at_for_long_is_in_doubt_if_the_daemon_is_killed() {
    let place = place();
    let spec = AccountSpec {
        path: place.directory.path().join("account"),
        boot: BootId([3; 16]),
    };
    let keeper = Some(Keeper::Server { address: 7, shares: true });
    let server = Server::nbdkit(&place.socket, &["memory", "16M"]);
    let (account, line) = Account::take_up(&spec, DiskId(9), keeper).unwrap();
    let mut rig =
        Rig::open_with(IoChoice::Auto, &place.uri, |image| image.keep(line.unwrap()));
    let is_owed = || Account::is_owed(&spec, DiskId(9), keeper);
    assert_eq!(rig.write(0, &[1; 4096], false), Ok(Done::Ok));
    server.suspend();
    let flush = rig.submit(ImageOp::Flush);
    rig.run_for(Duration::from_millis(100));
    assert!(!is_owed());
    rig.run_until(|_| is_owed());
    server.resume();
    assert_eq!(rig.wait(flush), Ok(Done::Ok));
    assert!(!is_owed(), "it has ended well");
    rig.close();
    drop(account);
    spec.remove().unwrap();
}

#[test]
fn a_write_whose_first_part_was_answered_counts_before_it_is_done() {
    let place = place();
    let limits =
        ["blocksize-minimum=1", "blocksize-preferred=4K", "blocksize-maximum=64K"];
    let arguments = ["--filter=blocksize-policy", "--filter=delay", "memory", "16M"];
    let arguments = [&arguments[..], &limits, &["delay-write=1"]].concat();
    let server = Server::nbdkit(&place.socket, &arguments);
    let mut rig = Rig::open(IoChoice::Auto, &place.uri);
    rig.run_for(Duration::from_millis(100));
    // Sixteen parts, of which eight are under way at once: after a second half of them
    // are answered.
    let buf = rig.buffer(1 << 20);
    let id = rig.submit(ImageOp::Write { offset: 0, buf, fua: false });
    rig.run_for(Duration::from_millis(1500));
    assert!(rig.take(id).is_none(), "the other half is not");
    server.kill();
    rig.run_until(|rig| !rig.image.is_in_reach());
    assert!(rig.image.has_forgotten().is_some());
    rig.image.abort(&mut rig.cx);
    assert_eq!(rig.wait(id), Err(Errno(libc::ECANCELED)));
    rig.close();
}

#[test]
fn what_waits_for_a_dead_server_can_be_given_up() {
    let place = place();
    let server = Server::nbdkit(&place.socket, &["memory", "16M"]);
    let mut rig = Rig::open(IoChoice::Auto, &place.uri);
    assert_eq!(rig.write(0, &[1; 4096], false), Ok(Done::Ok));
    server.kill();
    let buf = rig.buffer(1 << 20);
    let ids = [
        rig.submit(ImageOp::Read { offset: 0, buf }),
        rig.submit(ImageOp::Flush),
        rig.submit(ImageOp::Zero {
            offset: 0,
            len: 16 << 20,
            unmap: true,
            fua: true,
            fast: false,
        }),
    ];
    rig.run_for(Duration::from_millis(200));
    assert!(ids.iter().all(|&id| rig.take(id).is_none()), "they wait");
    rig.image.abort(&mut rig.cx);
    for id in ids {
        assert_eq!(rig.wait(id), Err(Errno(libc::ECANCELED)));
    }
    // It goes on looking for its server.
    let _server = Server::nbdkit(&place.socket, &["memory", "16M"]);
    assert_eq!(rig.write(0, &[2; 4096], false), Ok(Done::Ok));
    rig.close();
}

#[test]
fn what_a_slow_server_holds_up_can_be_given_up() {
    let place = place();
    let arguments =
        ["--filter=delay", "memory", "16M", "delay-read=20", "delay-write=20"];
    let _server = Server::nbdkit(&place.socket, &arguments);
    let mut rig = Rig::open(IoChoice::Auto, &place.uri);
    let buffer = rig.buffer(1 << 20);
    let read = rig.submit(ImageOp::Read { offset: 0, buf: buffer.clone() });
    let buf = rig.buffer(1 << 20);
    let write = rig.submit(ImageOp::Write { offset: 0, buf, fua: false });
    rig.run_for(Duration::from_millis(100));
    let start = Instant::now();
    rig.image.abort(&mut rig.cx);
    for id in [read, write] {
        assert_eq!(rig.wait(id), Err(Errno(libc::ECANCELED)));
    }
    assert!(start.elapsed() < Duration::from_secs(5));
    // The kernel is done with the buffer, or this would panic.
    buffer.zero();
    drop(buffer);
    assert_eq!(rig.image.in_flight(), 0);
    rig.close();
}

#[test]
fn a_server_that_shrank_is_not_taken_for_the_old_one() {
    let place = place();
    let server = Server::nbdkit(&place.socket, &["memory", "16M"]);
    let mut rig = Rig::open(IoChoice::Auto, &place.uri);
    server.kill();
    let server = Server::nbdkit(&place.socket, &["memory", "8M"]);
    let flush = rig.submit(ImageOp::Flush);
    rig.run_for(Duration::from_millis(300));
    assert!(rig.take(flush).is_none(), "it waits for the right server");
    server.kill();
    let _server = Server::nbdkit(&place.socket, &["memory", "16M"]);
    assert_eq!(rig.wait(flush), Ok(Done::Ok));
    rig.close();
}

#[test]
fn an_image_without_its_server_can_be_closed() {
    let place = place();
    let server = Server::nbdkit(&place.socket, &["memory", "16M"]);
    let mut rig = Rig::open(IoChoice::Threads, &place.uri);
    server.kill();
    rig.run_for(Duration::from_millis(100));
    let start = Instant::now();
    rig.close();
    assert!(start.elapsed() < LONG / 2);
}
