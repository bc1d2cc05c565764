//! Guests that have their disk over vhost-user, on a server that loses what nobody has flushed:
//! a guest is told as a client over NBD is.
//!
//! The guest is the virtual machine of the engine's own tests.

#[allow(dead_code, reason = "the engine's tests ask for more")]
#[path = "../../../crates/engine/tests/vhost/machine.rs"]
mod machine;

use std::path::PathBuf;
use std::time::Instant;

use machine::{DATA, Machine, Memory, Stretch};
use sterna_tests::clients::{Clients, flushes, nbdsh};
use sterna_tests::servers::Bindfs;
use sterna_tests::wait::seconds;
use sterna_tests::{Forgetful, MIB, Stage, until};

const SIZE: u64 = 16 * MIB;
/// A disk on a server, with room for its sidecar.
const EXPORT: u64 = SIZE + 65536;

/// Requests of virtio-blk.
const WRITE: u32 = 1;
const FLUSH: u32 = 4;

/// The disk `d` on a server that forgets, with a socket for a guest.
struct Scene {
    stage: Stage,
    server: Forgetful,
    socket: PathBuf,
}

impl Scene {
    #[track_caller]
    fn new(start: fn(&sterna_tests::Scratch, &str, u64) -> Forgetful) -> Option<Scene> {
        let stage = Stage::given(&["/usr/bin/python3"])?;
        let server = start(&stage.scratch, "far", EXPORT);
        stage.datastore("far", server.location());
        stage.daemon.sterna(&format!("disk create d --size {SIZE} --on far")).ok();
        server.wait_for_connections();
        let socket = stage.scratch.socket("guest.sock");
        let attach = format!("disk attach d --vhost-user {}", socket.display());
        stage.daemon.sterna(&attach).ok();
        Some(Scene { stage, server, socket })
    }

    fn uri(&self) -> String {
        self.stage.daemon.uri("d")
    }

    /// The server loses what was not flushed, and the daemon knows.
    #[track_caller]
    fn forgets(&self) {
        assert!(self.server.lose_power() > 0, "there was something to lose");
        until("the loss to be known", seconds(10), || {
            self.stage.daemon.warnings("disk d").pop()
        });
    }
}

/// A guest that has the disk, with its memory.
fn guest<'a>(scene: &Scene, memory: &'a Memory) -> Machine<'a> {
    Machine::connect(&scene.socket, memory, None)
}

/// Writes the first 4 KiB, without a flush.
#[track_caller]
fn write(guest: &mut Machine, memory: &Memory, byte: u8) {
    memory.put(DATA, &[byte; 4096]);
    assert_eq!(guest.ask(WRITE, 0, &[Stretch(DATA, 4096, false)]), 0);
}

/// What becomes of so many flushes.
fn flushed<const N: usize>(guest: &mut Machine) -> [&'static str; N] {
    std::array::from_fn(|_| match guest.ask(FLUSH, 0, &[]) {
        0 => "ok",
        _ => "EIO",
    })
}

#[test]
fn a_guest_s_flush_fails_once_after_its_server_forgot() {
    let Some(scene) = Scene::new(Forgetful::start) else { return };
    let memory = Memory::new();
    let mut first = guest(&scene, &memory);
    write(&mut first, &memory, b'o');
    assert_eq!(flushed(&mut first), ["ok"]);
    write(&mut first, &memory, b'n');
    scene.forgets();
    assert_eq!(flushed(&mut first), ["EIO", "ok", "ok"]);
    assert_eq!(scene.server.durable(0..1), b"o");
    // What is written from then on is as durable as ever.
    write(&mut first, &memory, b'n');
    assert_eq!(flushed(&mut first), ["ok"]);
    assert_eq!(scene.server.durable(0..1), b"n");
    // Whoever comes later has lost nothing.
    assert_eq!(flushes(&scene.uri(), 1), ["ok"]);
    drop(first);
    let memory = Memory::new();
    assert_eq!(flushed(&mut guest(&scene, &memory)), ["ok"]);
}

#[test]
fn a_guest_and_a_client_over_nbd_are_both_told() {
    let Some(scene) = Scene::new(Forgetful::start) else { return };
    let memory = Memory::new();
    let mut guest = guest(&scene, &memory);
    let before = "a = connect(); a.pread(512, 0)";
    let after = "flushes(a); a.pread(512, 0); flushes(connect())";
    let client = Clients::start(&scene.stage.scratch, &scene.uri(), before, after);
    write(&mut guest, &memory, b'n');
    scene.forgets();
    // One that comes when somebody has heard of it is not told.
    assert_eq!(client.go_on(), ["EIO", "ok", "ok", "ok"]);
    assert_eq!(flushed(&mut guest), ["EIO", "ok"]);
    assert_eq!(flushes(&scene.uri(), 1), ["ok"]);
}

#[test]
fn a_guest_that_a_kill_leaves_with_unflushed_writes_is_told_when_it_is_back() {
    let Some(mut scene) = Scene::new(Forgetful::start_dropping) else { return };
    let memory = Memory::new();
    let mut before = guest(&scene, &memory);
    write(&mut before, &memory, b'n');
    scene.stage.daemon.kill();
    scene.server.wait_for_goodbye();
    scene.stage.daemon.restart();
    drop(before);
    let mut back = guest(&scene, &memory);
    assert_eq!(flushed(&mut back), ["EIO", "ok"]);
    // And not once more, if nothing was at stake.
    scene.stage.daemon.kill();
    scene.server.wait_for_goodbye();
    scene.stage.daemon.restart();
    drop(back);
    assert_eq!(flushed(&mut guest(&scene, &memory)), ["ok"]);
}

/// Has the file system go on before anybody waits for what hangs there.
struct Awake<'a>(&'a Bindfs);

impl Drop for Awake<'_> {
    fn drop(&mut self) {
        self.0.go_on();
    }
}

#[test]
fn a_guest_whose_datastore_hangs_holds_up_neither_the_stop_nor_the_next_start() {
    let Some(mut stage) = Stage::given_root(&["bindfs"]) else { return };
    let fuse = Bindfs::new(&stage.scratch, "fuse");
    stage.datastore("hung", fuse.dir().display());
    stage.daemon.sterna(&format!("disk create d --size {SIZE} --on hung")).ok();
    let socket = stage.scratch.socket("guest.sock");
    stage.daemon.sterna(&format!("disk attach d --vhost-user {}", socket.display())).ok();
    let well = stage.disk("well", SIZE);
    nbdsh(&well, "h.pwrite(b'a' * 65536, 0); h.flush()");
    let memory = Memory::new();
    let mut guest = Machine::connect(&socket, &memory, None);
    write(&mut guest, &memory, 1);
    let _awake = Awake(&fuse);
    fuse.hang();
    let request = guest.put(WRITE, 0, &[Stretch(DATA, 4096, false)]);
    guest.offer(request);
    guest.kick();
    until("the request to be under way", seconds(20), || {
        stage.daemon.disk("d")["activity"]["in_flight"].as_u64().filter(|it| *it > 0)
    });
    let began = Instant::now();
    let left = stage.daemon.leave(seconds(20));
    assert!(began.elapsed() < seconds(12), "the stop took {:?}", began.elapsed());
    let log = stage.daemon.log();
    let began = Instant::now();
    stage.daemon.restart();
    assert!(began.elapsed() < seconds(8), "the start took {:?}: {log}", began.elapsed());
    nbdsh(&well, "assert h.pread(65536, 0) == b'a' * 65536");
    fuse.go_on();
    drop(left);
}
