//! Servers that come back and can do less.

use sterna_core::durability::Lack;

use super::*;
use crate::io::Errno;

const SIZE: u64 = 16 << 20;

/// How a server is started, and what it lacks.
type Case<'a> = (&'a [&'a str], fn(Lack) -> bool);

fn lack(rig: &Rig) -> Option<Lack> {
    rig.image.lacks().map(|(_, lack)| lack)
}

/// What is asked of a server that can do all of it, and finds it gone.
fn ask_all(rig: &mut Rig) -> Vec<(u64, Slice)> {
    let ones = rig.buffer(MIB);
    ones.with_mut(|bytes| bytes.fill(1));
    let none = rig.buffer(512);
    let whole = rig.buffer(MIB);
    let at = |mib: u64| mib * MIB as u64;
    let (unmap, fua) = (true, true);
    let ops = [
        ImageOp::Write { offset: at(1), buf: ones.clone(), fua },
        ImageOp::Zero { offset: at(2), len: at(1), unmap, fua, fast: true },
        ImageOp::Zero { offset: at(4), len: at(1), unmap, fua: false, fast: false },
        ImageOp::Extents { offset: 0, len: SIZE, limit: 8 },
        ImageOp::Cache { offset: 0, len: SIZE },
        ImageOp::Read { offset: at(8), buf: whole.clone() },
        ImageOp::Flush,
    ];
    let buffers =
        [ones, none.clone(), none.clone(), none.clone(), none.clone(), whole, none];
    ops.into_iter().map(|op| rig.submit(op)).zip(buffers).collect()
}

#[test]
fn what_is_a_convenience_is_done_without_also_for_requests_that_wait() {
    let place = place();
    let path = file(&place, SIZE);
    std::fs::write(&path, vec![7; SIZE as usize]).unwrap();
    // It takes fast zeroes, which nbdkit does not.
    let server = Server::qemu_nbd(&place.socket, &path);
    let mut rig = Rig::open(IoChoice::Auto, &place.uri);
    assert_eq!(rig.call(ImageOp::Flush), Ok(Done::Ok));
    assert!(rig.image.info().fast_zero);
    server.kill();
    rig.run_until(|rig| !rig.image.is_in_reach());
    let waiting = ask_all(&mut rig);
    let filters = ["nozero", "nocache", "blocksize-policy"];
    let filters = filters.map(|name| format!("--filter={name}"));
    let mut arguments: Vec<&str> = filters.iter().map(String::as_str).collect();
    arguments.extend(["file", path.to_str().unwrap(), "blocksize-error-policy=error"]);
    arguments.extend(["blocksize-minimum=1", "blocksize-preferred=4K"]);
    arguments.push("blocksize-maximum=64K");
    let less = Server::nbdkit(&place.socket, &arguments);
    for (at, (id, _)) in waiting.iter().enumerate() {
        let result = rig.wait(*id);
        assert!(result.is_ok(), "operation {at}: {result:?}");
    }
    assert!(waiting[5].1.bytes().iter().all(|byte| *byte == 7));
    drop(waiting);
    assert_eq!(lack(&rig), None);
    assert!(!rig.image.info().fast_zero);
    let (offset, len) = (0, 4096);
    let fast = ImageOp::Zero { offset, len, unmap: true, fua: false, fast: true };
    assert_eq!(rig.call(fast), Err(Errno(libc::EOPNOTSUPP)));
    // They are not relied on again: what was sent without them may be under way.
    less.kill();
    let _server = Server::qemu_nbd(&place.socket, &path);
    for (at, byte) in [(0, 7), (1, 1), (2, 0), (3, 7), (4, 0), (5, 7)] {
        assert_eq!(rig.read(at * MIB as u64, MIB), vec![byte; MIB], "MiB {at}");
    }
    assert!(!rig.image.info().fast_zero);
    rig.close();
}

#[test]
fn a_server_that_lacks_what_is_relied_on_is_told_of_and_the_right_one_waited_for() {
    let place = place();
    let server = Server::nbdkit(&place.socket, &["memory", "16M"]);
    let mut rig = Rig::open(IoChoice::Auto, &place.uri);
    assert_eq!(rig.call(ImageOp::Flush), Ok(Done::Ok));
    server.kill();
    rig.run_until(|rig| !rig.image.is_in_reach());
    let flush = rig.submit(ImageOp::Flush);
    let alone = ["--filter=multi-conn", "memory", "16M", "multi-conn-mode=disable"];
    let [size, read, write] =
        ["get_size=echo 16M", "pread=head -c $3 /dev/zero", "pwrite=cat >/dev/null"];
    let unflushed = ["eval", size, read, write];
    let table: [Case<'_>; 4] = [
        (&["-r", "memory", "16M"], |lack| lack == Lack::Writable),
        (&["memory", "8M"], |lack| matches!(lack, Lack::Size { .. })),
        (&alone, |lack| lack == Lack::Sharing),
        (&unflushed, |lack| lack == Lack::Flush),
    ];
    for (arguments, is_it) in table {
        let news = rig.news;
        let server = Server::nbdkit(&place.socket, arguments);
        rig.run_until(|rig| lack(rig).is_some_and(is_it));
        assert!(rig.news > news, "somebody is told");
        assert!(rig.take(flush).is_none() && !rig.image.is_in_reach());
        server.kill();
    }
    let _server = Server::nbdkit(&place.socket, &["memory", "16M"]);
    assert_eq!(rig.wait(flush), Ok(Done::Ok));
    assert_eq!(lack(&rig), None);
    rig.close();
}
