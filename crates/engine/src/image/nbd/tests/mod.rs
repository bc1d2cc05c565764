//! Images on real servers: nbdkit with its filters, and qemu-nbd.

mod another;
mod hostile;
mod lacking;
mod restart;
mod rig;

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::*;
use crate::image::{Done, ImageOp};
use crate::io::IoChoice;
use rig::{Place, Random, Rig, Server, file, place};

const MIB: usize = 1 << 20;

/// Random operations, several in flight, against the image and against memory.
/// Operations that are in flight together do not overlap.
fn like_memory(rig: &mut Rig, size: usize, steps: usize, seed: u64) {
    let mut random = Random(seed);
    let mut model = rig.read(0, size.min(4 * MIB));
    let blocks = model.len() as u64 / 512;
    for _ in 0..steps {
        let mut waiting = Vec::new();
        // Eight lanes of the disk, one operation in each.
        for lane in 0..8 {
            let lane_blocks = blocks / 8;
            let first = random.below(lane_blocks);
            let count = 1 + random.below((lane_blocks - first).min(300));
            let offset = (lane * lane_blocks + first) * 512;
            let (at, len) = (offset as usize, (count * 512) as usize);
            let fua = random.below(4) == 0;
            let unmap = random.below(2) == 0;
            let op = match random.below(5) {
                0 | 1 => {
                    let buf = rig.buffer(len);
                    buf.with_mut(|bytes| {
                        bytes.iter_mut().for_each(|byte| *byte = random.below(256) as u8);
                    });
                    model[at..at + len].copy_from_slice(&buf.bytes());
                    ImageOp::Write { offset, buf, fua }
                }
                2 => {
                    model[at..at + len].fill(0);
                    let len = len as u64;
                    ImageOp::Zero { offset, len, unmap, fua, fast: false }
                }
                3 => ImageOp::Flush,
                _ => ImageOp::Read { offset, buf: rig.buffer(len) },
            };
            waiting.push((rig.submit(op.clone()), op));
        }
        for (id, op) in waiting {
            assert_eq!(rig.wait(id), Ok(Done::Ok), "seed {seed}: {op:?}");
            if let ImageOp::Read { offset, buf } = op {
                let at = offset as usize;
                assert!(buf.bytes()[..] == model[at..at + buf.len()], "seed {seed}");
            }
        }
    }
    assert!(rig.read(0, model.len()) == model, "seed {seed}");
}

/// Servers that offer more and less.
const SERVERS: [&[&str]; 7] = [
    &["memory", "16M"],
    &["--no-sr", "memory", "16M"],
    &["--filter=nozero", "memory", "16M"],
    &["--filter=fua", "memory", "16M"],
    &["--filter=multi-conn", "memory", "16M", "multi-conn-mode=disable"],
    &[
        "--filter=noextents",
        "--filter=noparallel",
        "memory",
        "16M",
        "serialize=all-requests",
    ],
    &[
        "--filter=blocksize-policy",
        "memory",
        "16M",
        "blocksize-maximum=64K",
        "blocksize-preferred=4K",
        "blocksize-minimum=1",
        "blocksize-error-policy=error",
    ],
];

#[test]
fn an_image_is_like_memory_whatever_the_server_offers() {
    for (number, arguments) in SERVERS.into_iter().enumerate() {
        let place = place();
        let _server = Server::nbdkit(&place.socket, arguments);
        for choice in [IoChoice::Auto, IoChoice::Threads] {
            let mut rig = Rig::open(choice, &place.uri);
            assert_eq!(rig.image.info().size, 16 << 20);
            like_memory(&mut rig, 16 * MIB, 40, number as u64);
            rig.close();
        }
    }
}

#[test]
fn an_image_on_qemu_nbd_is_like_memory() {
    let place = place();
    let image = file(&place, 16 << 20);
    let _server = Server::qemu_nbd(&place.socket, &image);
    let mut rig = Rig::open(IoChoice::Auto, &place.uri);
    like_memory(&mut rig, 16 * MIB, 60, 11);
    rig.close();
}

#[test]
fn an_image_over_tcp_is_like_memory() {
    let port = 20000 + std::process::id() % 20000;
    let arguments = ["-f", "-i", "127.0.0.1", "-p", &port.to_string(), "memory", "16M"];
    let _server = Server::start_tcp("nbdkit", &arguments, port as u16);
    let mut rig = Rig::open(IoChoice::Auto, &format!("nbd://127.0.0.1:{port}/"));
    like_memory(&mut rig, 16 * MIB, 40, 21);
    rig.close();
}

#[test]
fn holes_are_found_where_the_server_tells_them() {
    let place = place();
    let image = file(&place, 16 << 20);
    for qemu in [false, true] {
        let _server = if qemu {
            Server::qemu_nbd(&place.socket, &image)
        } else {
            Server::nbdkit(&place.socket, &["file", image.to_str().unwrap()])
        };
        let mut rig = Rig::open(IoChoice::Auto, &place.uri);
        assert!(rig.image.info().finds_holes);
        assert_eq!(rig.write(4 << 20, &[1; 4096], true), Ok(Done::Ok));
        let extents = |rig: &mut Rig, limit| {
            let op = ImageOp::Extents { offset: 0, len: 16 << 20, limit };
            match rig.call(op) {
                Ok(Done::Extents(extents)) => extents,
                other => panic!("{other:?}"),
            }
        };
        let found = extents(&mut rig, 100);
        assert!(found[0].hole && found[0].zero && found[0].range.len == 4 << 20);
        assert!(!found[1].hole && found[1].range.offset == 4 << 20);
        let covered: u64 = found.iter().map(|extent| extent.range.len).sum();
        assert!(covered <= 16 << 20);
        assert_eq!(extents(&mut rig, 1).len(), 1);
        rig.close();
    }
}

#[test]
fn a_server_that_tells_more_than_it_was_asked_is_believed_as_far_as_that() {
    // nbdkit passes on an extent that begins where the range ends.
    let place = place();
    let plugin = [
        "eval",
        "get_size=echo 16M",
        "can_extents=exit 0",
        "extents=echo 0 4M; echo 4M 4M hole,zero; echo 8M 8M",
        "pread=head -c $3 /dev/zero",
        "can_write=exit 0",
        "pwrite=cat >/dev/null",
        "can_flush=exit 0",
        "flush=exit 0",
    ];
    let _server = Server::nbdkit(&place.socket, &plugin);
    let mut rig = Rig::open(IoChoice::Auto, &place.uri);
    for _ in 0..20 {
        let op = ImageOp::Extents { offset: 0, len: 4 << 20, limit: 9 };
        let Ok(Done::Extents(found)) = rig.call(op) else { panic!("no extents") };
        assert_eq!((found.len(), found[0].range.len, found[0].hole), (1, 4 << 20, false));
    }
    assert_eq!(rig.read(0, 4096), vec![0; 4096], "no request has failed");
    rig.close();
}

#[test]
fn without_block_status_everything_is_data() {
    let place = place();
    let _server = Server::nbdkit(&place.socket, &["--no-sr", "memory", "16M"]);
    let mut rig = Rig::open(IoChoice::Auto, &place.uri);
    let op = ImageOp::Extents { offset: 512, len: 1 << 20, limit: 9 };
    let Ok(Done::Extents(found)) = rig.call(op) else { panic!("no extents") };
    assert_eq!(found.len(), 1);
    assert!(!found[0].hole && !found[0].zero && found[0].range.len == 1 << 20);
    rig.close();
}

#[test]
fn requests_are_under_way_together() {
    // 64 reads that take 100 ms each: 6.4 s one after the other. nbdkit has 16
    // threads on each of four connections, so all together take little more
    // than 100 ms.
    let place = place();
    let arguments = ["--filter=delay", "memory", "16M", "delay-read=100ms"];
    let _server = Server::nbdkit(&place.socket, &arguments);
    let mut rig = Rig::open(IoChoice::Auto, &place.uri);
    rig.run_for(Duration::from_millis(300));
    let start = Instant::now();
    let ids: Vec<u64> = (0..64)
        .map(|n| {
            let buf = rig.buffer(4096);
            rig.submit(ImageOp::Read { offset: n * 4096, buf })
        })
        .collect();
    for id in ids {
        assert_eq!(rig.wait(id), Ok(Done::Ok));
    }
    let took = start.elapsed();
    assert!(took >= Duration::from_millis(100), "{took:?}");
    assert!(took < Duration::from_millis(2000), "{took:?}");
    rig.close();
}

#[test]
fn an_error_of_the_server_is_the_answer_and_the_next_request_goes_on() {
    let place = place();
    let trigger = place.directory.path().join("fail");
    let error_file = format!("error-file={}", trigger.display());
    let arguments =
        ["--filter=error", "memory", "16M", "error=ENOSPC", "error-rate=100%"];
    let arguments = [&arguments[..], &[error_file.as_str()]].concat();
    let _server = Server::nbdkit(&place.socket, &arguments);
    let mut rig = Rig::open(IoChoice::Auto, &place.uri);
    assert_eq!(rig.write(0, &[7; 4096], false), Ok(Done::Ok));
    std::fs::write(&trigger, "").unwrap();
    assert_eq!(rig.write(0, &[8; 4096], false), Err(Errno(libc::ENOSPC)));
    let buf = rig.buffer(4096);
    let read = rig.call(ImageOp::Read { offset: 0, buf });
    assert_eq!(read, Err(Errno(libc::ENOSPC)));
    std::fs::remove_file(&trigger).unwrap();
    assert_eq!(rig.read(0, 4096), [7; 4096]);
    rig.close();
}

#[test]
fn an_export_that_no_disk_can_live_on_is_refused_with_the_reason() {
    let refused = |arguments: &[&str], reason: &str| {
        let Place { directory: _directory, socket, uri } = place();
        let _server = Server::nbdkit(&socket, arguments);
        let error = OpenedNbd::open(&uri.parse().unwrap(), &Arc::default())
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains(reason), "{error}");
    };
    refused(&["-r", "memory", "16M"], "read-only");
    let large = ["--filter=blocksize-policy", "memory", "16M", "blocksize-minimum=4K"];
    refused(&large, "blocks of 4096 bytes");
    let nobody = place();
    let error = OpenedNbd::open(&nobody.uri.parse().unwrap(), &Arc::default())
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("is the server running?"), "{error}");
}

#[test]
fn fast_zeroes_are_not_promised_where_they_cannot_be() {
    for unable in [&["zeromode=none"][..], &["zeromode=emulate", "fastzeromode=none"]] {
        let place = place();
        let arguments = [&["--filter=nozero", "memory", "16M"], unable].concat();
        let _server = Server::nbdkit(&place.socket, &arguments);
        let mut rig = Rig::open(IoChoice::Auto, &place.uri);
        assert!(!rig.image.info().fast_zero, "{unable:?}");
        let op =
            |fast| ImageOp::Zero { offset: 0, len: 4096, unmap: false, fua: false, fast };
        assert_eq!(rig.call(op(true)), Err(Errno(libc::EOPNOTSUPP)));
        assert_eq!(rig.call(op(false)), Ok(Done::Ok));
        rig.close();
    }
}

#[test]
fn connections_to_servers_leave_the_newcomers_their_memory() {
    let place = place();
    let _server = Server::nbdkit(&place.socket, &["memory", "16M"]);
    let mut rig = Rig::open(IoChoice::Auto, &place.uri);
    // More than the links have: the rest comes out of what all share.
    let taken: Vec<_> = std::iter::from_fn(|| rig.cx.links.get(4096)).collect();
    let (newcomers, common) = (rig.cx.newcomers.budget(), rig.cx.buffers.free());
    rig.run_until(|rig| rig.cx.buffers.free() < common);
    assert_eq!(rig.cx.newcomers.free(), newcomers);
    drop(taken);
    assert_eq!(rig.read(0, 512), [0; 512]);
    rig.close();
}
