//! A disk is served over NBD, and the clients that people use agree that it is
//! a disk.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use sterna_tests::clients::{Fio, nbdsh, nbdsh_without_sizes, writes_and_reads};
use sterna_tests::images::identical;
use sterna_tests::places::TinyFs;
use sterna_tests::programs::{attempt, command, have, json, run, sterna};
use sterna_tests::wait::seconds;
use sterna_tests::{CheckerOptions, Daemon, MIB, Scratch, Stage, checker, until};

#[test]
fn nbdinfo_sees_the_size_and_what_the_disk_can_do() {
    let Some(stage) = Stage::given(&["nbdinfo"]) else { return };
    let uri = stage.disk("a", 100 * MIB + 512);
    assert_eq!(run("nbdinfo", ["--size", &uri]).trim(), "104858112");
    for ability in ["flush", "fua", "trim", "zero", "multi-conn", "df", "cache"] {
        let (can, text) = attempt("nbdinfo", ["--can", ability, &uri]);
        assert!(can, "the disk should be able to {ability}: {text}");
    }
    let (read_only, _) = attempt("nbdinfo", ["--is", "read-only", &uri]);
    assert!(!read_only, "the disk should be writable");
    let info = json("nbdinfo", ["--json", &uri]);
    assert_eq!(info["structured"], true);
    let export = &info["exports"][0];
    assert!(export["block_size_minimum"].as_u64() <= Some(512), "{export:#}");
    assert!(export["block_size_preferred"].as_u64() >= Some(4096), "{export:#}");
    let contexts = export["contexts"].to_string();
    assert!(contexts.contains("base:allocation"), "{contexts}");
}

#[test]
fn every_disk_is_an_export_and_nothing_else_is() {
    let Some(stage) = Stage::given(&["nbdinfo"]) else { return };
    stage.disk("a", MIB);
    stage.disk("b", 2 * MIB);
    let list = json("nbdinfo", ["--list", "--json", &stage.daemon.uri("")]);
    let exports = list["exports"].as_array().expect("a list").iter();
    let mut names: Vec<&str> =
        exports.filter_map(|export| export["export-name"].as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["a", "b"]);
    let (found, _) = attempt("nbdinfo", [stage.daemon.uri("c")]);
    assert!(!found, "an unknown export should be refused");
    stage.daemon.sterna("disk remove b").ok();
    let (found, _) = attempt("nbdinfo", [stage.daemon.uri("b")]);
    assert!(!found, "a removed disk should not be served");
}

#[test]
fn the_map_tells_data_from_holes() {
    let Some(stage) = Stage::given(&["nbdinfo", "qemu-io"]) else { return };
    let uri = stage.disk("a", 64 * MIB);
    run("qemu-io", ["-f", "raw", "-c", "write -P 1 16M 1M", &uri]);
    let map = json("nbdinfo", ["--map", "--json", &uri]);
    let extents: Vec<(u64, u64, u64)> = map
        .as_array()
        .expect("a list")
        .iter()
        .map(|extent| {
            let number = |name: &str| extent[name].as_u64().expect("a number");
            (number("offset"), number("length"), number("type"))
        })
        .collect();
    let data: u64 =
        extents.iter().filter(|extent| extent.2 == 0).map(|extent| extent.1).sum();
    let all: u64 = extents.iter().map(|extent| extent.1).sum();
    assert_eq!((data, all), (MIB, 64 * MIB), "{extents:?}");
    // Type 3 is "a hole that reads as zeroes".
    assert_eq!(extents[0], (0, 16 * MIB, 3), "{extents:?}");
}

#[test]
fn nbdcopy_brings_a_disk_in_and_out_unchanged() {
    let Some(stage) = Stage::given(&["nbdcopy", "qemu-img"]) else { return };
    let image = stage.image_file("in.raw", 96 * MIB, 40 * MIB);
    let out = stage.scratch.path("out.raw").display().to_string();
    let uri = stage.disk("a", 96 * MIB);
    run("nbdcopy", [&image, &uri]);
    run("nbdcopy", [&uri, &out]);
    identical(&image, &out);
    identical(&image, &uri);
}

#[test]
fn nbdsh_reads_what_it_wrote() {
    let Some(stage) = Stage::given(&["nbdsh"]) else { return };
    nbdsh(
        &stage.disk("a", 8 * MIB),
        r#"
assert h.pread(4096, 0) == bytes(4096), "a new disk reads as zeroes"
h.pwrite(b"x" * 512, 512)
h.pwrite(b"y" * 4096, 4096, nbd.CMD_FLAG_FUA)
h.flush()
assert h.pread(1024, 0) == bytes(512) + b"x" * 512
whole = h.pread_structured(4096, 4096, lambda *chunk: 0, nbd.CMD_FLAG_DF)
assert whole == b"y" * 4096
h.zero(512, 512)
assert h.pread(1024, 0) == bytes(1024)
h.pwrite(b"z" * 1048576, 1048576)
h.zero(1048576, 1048576, nbd.CMD_FLAG_NO_HOLE | nbd.CMD_FLAG_FUA)
assert h.pread(1048576, 1048576) == bytes(1048576)
h.pwrite(b"z" * 65536, 65536)
h.trim(65536, 65536)
assert h.pread(65536, 65536) in (bytes(65536), b"z" * 65536)
h.cache(65536, 0)
last = h.get_size() - 512
h.pwrite(b"e" * 512, last)
assert h.pread(512, last) == b"e" * 512
"#,
    );
}

#[test]
fn a_client_that_does_not_ask_for_block_sizes_reads_and_writes_any_bytes() {
    let Some(stage) = Stage::given(&["nbdsh"]) else { return };
    let uri = stage.disk("a", 8 * MIB);
    nbdsh_without_sizes(
        &uri,
        r#"
h.pwrite(b"abc", 510)
assert h.pread(5, 509) == b"\0abc\0"
model = bytearray(4 << 20)
model[510:513] = b"abc"
import random
dice = random.Random(1)
for step in range(300):
    length = 1 + dice.randrange(dice.choice([5, 900, 70000, 1500000]))
    offset = dice.randrange(len(model) - length)
    fua = dice.choice([0, nbd.CMD_FLAG_FUA])
    if dice.randrange(3):
        data = dice.randbytes(length)
        h.pwrite(data, offset, fua)
    else:
        data = bytes(length)
        h.zero(length, offset, fua)
    model[offset:offset + length] = data
    length = 1 + dice.randrange(200000)
    offset = dice.randrange(len(model) - length)
    assert h.pread(length, offset) == model[offset:offset + length], step
h.trim(100, 4500000)
h.cache(3, 77)
assert h.pread(len(model), 0) == model
"#,
    );
    nbdsh(
        &uri,
        r#"
h.set_strict_mode(0)
try:
    h.pwrite(b"abc", 510)
except nbd.Error as error:
    assert error.errno == "EINVAL", error
else:
    raise AssertionError("it has asked for the block sizes")
"#,
    );
}

#[test]
fn illegal_requests_get_their_errors_and_the_connection_goes_on() {
    let Some(stage) = Stage::given(&["nbdsh"]) else { return };
    nbdsh(
        &stage.disk("a", 8 * MIB),
        r#"
import errno
h.set_strict_mode(0)
size = h.get_size()
h.pwrite(b"k" * 4096, 0)

def refused(what, number, do):
    try:
        do()
    except nbd.Error as error:
        assert error.errnum in number, (what, error.errnum, error.string)
    else:
        raise AssertionError(what + " was not refused")
    assert h.pread(4096, 0) == b"k" * 4096, "after " + what

EINVAL, ENOSPC, EOVERFLOW = errno.EINVAL, errno.ENOSPC, errno.EOVERFLOW
refused("a read past the end", [EINVAL], lambda: h.pread(4096, size))
refused("a read over the end", [EINVAL], lambda: h.pread(4096, size - 512))
refused("a read that wraps around", [EINVAL], lambda: h.pread(4096, 2**64 - 4096))
refused("a write past the end", [ENOSPC], lambda: h.pwrite(b"w" * 4096, size))
refused("a write over the end", [ENOSPC], lambda: h.pwrite(b"w" * 4096, size - 512))
refused("zeroes past the end", [ENOSPC, EINVAL], lambda: h.zero(4096, size))
refused("a trim past the end", [EINVAL], lambda: h.trim(4096, size))
refused("a cache past the end", [EINVAL], lambda: h.cache(4096, size))
refused("an empty read", [EINVAL], lambda: h.pread(0, 0))
refused("an empty write", [EINVAL], lambda: h.pwrite(b"", 0))
refused("an empty trim", [EINVAL], lambda: h.trim(0, 0))
refused("a status of nothing", [EINVAL], lambda: h.block_status(0, 0, lambda *a: 0))
refused("unknown flags", [EINVAL], lambda: h.pread(4096, 0, 1 << 9))
refused("DF on a write", [EINVAL], lambda: h.pwrite(b"w" * 4096, 0, nbd.CMD_FLAG_DF))
"#,
    );
}

/// What the server sends before it closes, or for half a second.
fn answer_to(daemon: &Daemon, bytes: &[u8]) -> Vec<u8> {
    let mut socket = UnixStream::connect(daemon.nbd_socket()).expect("connect");
    socket.set_read_timeout(Some(Duration::from_millis(500))).expect("a time limit");
    let _ = socket.write_all(bytes);
    let mut answer = Vec::new();
    let _ = socket.read_to_end(&mut answer);
    answer
}

#[test]
fn garbage_and_silence_harm_nobody_else() {
    let Some(stage) = Stage::given(&["nbdsh"]) else { return };
    let uri = stage.disk("a", 8 * MIB);
    let mut silent: Vec<UnixStream> = Vec::new();
    for _ in 0..32 {
        silent.push(UnixStream::connect(stage.daemon.nbd_socket()).expect("connect"));
    }
    let client_flags = [0, 0, 0, 3];
    // An option of four gigabytes, in the name of LIST.
    let mut long = client_flags.to_vec();
    long.extend(b"IHAVEOPT");
    long.extend(3_u32.to_be_bytes());
    long.extend(u32::MAX.to_be_bytes());
    let mut wrong = client_flags.to_vec();
    wrong.extend(b"IHAVENOT and a good deal more, none of it right");
    let mut unknown = client_flags.to_vec();
    unknown.extend(0xffff_ffff_u32.to_be_bytes());
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &long, &wrong, &unknown] {
        let greeting = answer_to(&stage.daemon, bytes);
        assert!(greeting.starts_with(b"NBDMAGICIHAVEOPT"), "{greeting:?}");
    }
    writes_and_reads(&uri);
    drop(silent);
}

#[test]
fn qemu_img_converts_compares_and_describes() {
    let Some(stage) = Stage::given(&["qemu-img"]) else { return };
    let image = stage.image_file("in.raw", 64 * MIB, 20 * MIB);
    let uri = stage.disk("a", 64 * MIB);
    run("qemu-img", ["convert", "-n", "-f", "raw", "-O", "raw", &image, &uri]);
    identical(&image, &uri);
    let info = json("qemu-img", ["info", "--output=json", &uri]);
    assert_eq!(info["virtual-size"], 64 * MIB);
}

#[test]
fn qemu_io_finds_its_patterns_again() {
    let Some(stage) = Stage::given(&["qemu-io"]) else { return };
    let uri = stage.disk("a", 64 * MIB);
    let commands = [
        "write -P 0xab 1M 64k",
        "aio_write -P 0xcd 2M 1M",
        "aio_write -P 0xef 4M 512",
        "aio_flush",
        "write -z 1M 32k",
        "write -z -u 3M 64k",
        "discard 8M 1M",
        "flush",
        "read -P 0 1M 32k",
        "read -P 0xab 1081344 32k",
        "read -P 0xcd 2M 1M",
        "read -P 0xef 4M 512",
        "read -P 0 4194816 512",
        "read -P 0 8M 1M",
    ];
    let mut args = vec!["-f", "raw"];
    args.extend(commands.iter().flat_map(|command| ["-c", command]));
    args.push(&uri);
    let text = run("qemu-io", args);
    assert!(!text.contains("verification failed"), "{text}");
}

#[test]
fn fio_verifies_every_block_it_wrote() {
    let Some(stage) = Stage::given(&["fio"]) else { return };
    let uri = stage.disk("a", 64 * MIB);
    for settings in [
        "rw=randwrite\nbs=4k\niodepth=16\nsize=64m\nverify=crc32c\nverify_fatal=1\n\
         do_verify=1",
        "rw=randrw\nbssplit=512/20:4k/40:64k/30:256k/10\nblockalign=512\niodepth=32\n\
         size=64m\nverify=crc32c\nverify_fatal=1\nverify_backlog=64",
    ] {
        Fio::start(&uri, settings).finish();
    }
}

#[test]
fn the_checker_finds_every_acknowledged_write_over_four_connections() {
    let stage = Stage::new();
    stage.disk("a", 64 * MIB);
    for block in [512, 4096] {
        let options = CheckerOptions::hard(64)
            .with("--block", block)
            .with("--connections", 4)
            .with("--trims", 5)
            .with("--zeroes", 5)
            .with("--seconds", 2);
        stage.checker("a", &options).finish_and_verify();
    }
}

#[test]
fn a_client_that_vanishes_leaves_its_acknowledged_writes() {
    let stage = Stage::new();
    let uri = stage.disk("a", 64 * MIB);
    let options = CheckerOptions::hard(32).flag("--blank");
    let mut client = stage.checker("a", &options);
    client.wait_for_intervals(5);
    client.kill();
    checker::verify(&uri, &stage.checked("a"));
}

#[test]
fn the_thread_pool_serves_like_the_ring() {
    let stage = Stage::with_threads();
    let status = stage.daemon.json("status");
    assert_eq!(status["io"]["engine"], "threads", "{status:#}");
    stage.disk("a", 64 * MIB);
    let options = CheckerOptions::hard(32).with("--seconds", 2).flag("--blank");
    stage.checker("a", &options).finish_and_verify();
}

/// A TCP port that was free a moment ago.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address").port()
}

#[test]
fn disks_are_served_over_tcp_where_that_is_asked_for() {
    if !have(&["nbdsh"]) {
        return;
    }
    let port = free_port();
    let listen = format!("--listen 127.0.0.1:{port}");
    let stage = Stage::with(|daemon| daemon.arguments(&listen));
    stage.disk("a", 8 * MIB);
    let uri = format!("nbd://127.0.0.1:{port}/a");
    let text = stage.daemon.sterna("disk uri a").ok().stdout;
    assert!(text.contains(&uri), "`disk uri` should name {uri}:\n{text}");
    writes_and_reads(&uri);
}

/// Parts of a block and the whole block, at once, with FUA: none of them fails.
const PARTS: &str = r#"
import random
dice = random.Random(7)
for turn in range(300):
    at = dice.randrange(64) * 4096
    cookies = []
    for _ in range(8):
        part, length = dice.randrange(8) * 512, 512
        if dice.random() < .5: part, length = 0, 4096
        flags = nbd.CMD_FLAG_FUA if dice.random() < .3 else 0
        bytes = nbd.Buffer.from_bytearray(bytearray(b"p" * length))
        cookies.append(h.aio_pwrite(bytes, at + part, flags=flags))
    while cookies:
        cookies = [it for it in cookies if not h.aio_command_completed(it)]
        if cookies: h.poll(-1)
    h.flush()
"#;

#[test]
fn an_image_on_xfs_that_was_cloned_takes_parts_of_blocks_without_an_error() {
    let Some(stage) = Stage::given_root(&["losetup", "mkfs.xfs"]) else { return };
    let (file, mount) = (stage.scratch.path("xfs.img"), stage.scratch.path("xfs"));
    let place = TinyFs::xfs(&file, &mount, 400 * MIB);
    stage.datastore("xfs", place.dir().display());
    stage.daemon.sterna("disk create a --size 8M --on xfs").ok();
    nbdsh(&stage.daemon.uri("a"), "h.pwrite(b'a' * (8 << 20), 0); h.flush()");
    let image = place.dir().join("a.raw");
    for round in 0..4 {
        let clone = place.dir().join(format!("clone-{round}"));
        run("cp", ["--reflink=always".as_ref(), image.as_os_str(), clone.as_os_str()]);
        nbdsh(&stage.daemon.uri("a"), PARTS);
    }
}

/// Starts the daemon as systemd's socket activation does: with a listening
/// socket as descriptor 3.
const ACTIVATE: &str = r#"
import os, socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
os.dup2(listener.fileno(), 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()), LISTEN_FDNAMES="nbd")
os.execv(sys.argv[2], sys.argv[2:])
"#;

#[test]
fn a_socket_from_systemd_is_used() {
    if !have(&["nbdsh", "python3"]) {
        return;
    }
    let scratch = Scratch::new();
    let (listen, api) = (scratch.socket("activated"), scratch.socket("api.sock"));
    let mut child = command("python3")
        .args(["-c", ACTIVATE])
        .arg(&listen)
        .arg(sterna())
        .arg("--socket")
        .arg(&api)
        .arg("serve")
        .arg("--state")
        .arg(scratch.path("state"))
        .stderr(File::create(scratch.path("daemon.log")).expect("make its log"))
        .spawn()
        .expect("start python3");
    let does = |line: &str| {
        std::process::Command::new(sterna())
            .args(line.split_whitespace())
            .env("STERNA_SOCKET", &api)
            .output()
            .is_ok_and(|output| output.status.success())
    };
    until("the activated daemon", seconds(10), || does("status").then_some(()));
    let dir = scratch.dir("here");
    assert!(does(&format!("datastore add here {}", dir.display())));
    assert!(does("disk create a --size 8M --on here"));
    let uri = format!("nbd+unix:///a?socket={}", listen.display());
    writes_and_reads(&uri);
    child.kill().expect("kill the daemon");
    child.wait().expect("wait for the daemon");
}

#[test]
fn two_disks_on_a_shaped_datastore_share_its_shape() {
    if !have(&["nbdsh"]) {
        return;
    }
    let stage = Stage::new();
    let dir = stage.scratch.dir("slow");
    let line = format!("datastore add slow {} --shape iops=100", dir.display());
    stage.daemon.sterna(&line).ok();
    for disk in ["a", "b"] {
        stage.daemon.sterna(&format!("disk create {disk} --size 1M --on slow")).ok();
    }
    let script = format!(
        "other = nbd.NBD(); other.connect_uri('{}')\n\
         for _ in range(75): h.pread(512, 0); other.pread(512, 0)",
        stage.daemon.uri("b")
    );
    let began = std::time::Instant::now();
    nbdsh(&stage.daemon.uri("a"), &script);
    let took = began.elapsed().as_secs_f64();
    // 150 reads at 100 a second, less the first two, which the burst pays for. Each
    // disk by itself would have needed half of it.
    assert!(took > 1.47, "150 reads at 100 a second took only {took:.2} s");
}

#[test]
fn a_client_that_does_not_read_its_answers_is_told_of_and_its_datastore_is_not_blamed() {
    let Some(stage) = Stage::given(&["/usr/bin/python3"]) else { return };
    let uri = stage.disk("d", 16 * MIB);
    let over = stage.scratch.path("over");
    let script = format!(
        "
import os, time
buffers = [nbd.Buffer(1 << 20) for _ in range(120)]
for buffer in buffers: h.aio_pread(buffer, 0)
while not os.path.exists({:?}): time.sleep(0.01)
while h.aio_in_flight(): h.poll(-1)
",
        over.display().to_string()
    );
    let client = std::thread::spawn(move || nbdsh(&uri, &script));
    let told = until("the client to be told of", seconds(30), || {
        stage.daemon.warnings("disk d").pop()
    });
    assert!(told.contains("a client reads no answers"), "{told}");
    // A disk is hurt after two steps of 5 s.
    std::thread::sleep(Duration::from_secs(6));
    let hurt = stage.daemon.json("status")["hurt"].clone();
    assert_eq!(hurt.as_array().map(Vec::len), Some(0), "{hurt:#}");
    std::fs::write(&over, "").expect("have it read on");
    client.join().expect("the client");
    until("nothing to be told", seconds(10), || {
        stage.daemon.warnings("disk d").is_empty().then_some(())
    });
    // What its requests waited for it is not what they took.
    std::thread::sleep(Duration::from_secs(6));
    let status = stage.daemon.json("status");
    let hurt = &status["hurt"];
    assert_eq!(hurt.as_array().map(Vec::len), Some(0), "{hurt:#}");
}
