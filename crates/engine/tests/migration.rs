//! Migrations through the engine's own interface, on real files.

mod common;

use std::fs;
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use common::{Client, Random};
use sterna_core::mirror::{Allowance, Commit, Control, MirrorEnd, Phase, Progress};
use sterna_core::qos::{ClassId, Limit, Terms};
use sterna_core::{DiskId, Nanos};
use sterna_engine::boot::BootId;
use sterna_engine::mirror::{MigrationEvent, MigrationId, MigrationSpec, Options, Start};
use sterna_engine::{Config, DiskSpec, Engine, ImageSpec, IoChoice, Listener};
use sterna_nbd::Command;

const DISK: DiskId = DiskId(7);
const MIB: usize = 1 << 20;
/// No step of a test takes longer, however loaded the machine is.
const LONG: Duration = Duration::from_secs(30);

fn engine(io: IoChoice) -> Engine {
    Engine::start(&Config {
        reactors: 1,
        io,
        memory: 8 << 20,
        keep: None,
        ..Config::default()
    })
    .expect("starts")
}

fn file(path: &Path) -> ImageSpec {
    ImageSpec::File { path: path.into(), direct: true }
}

fn attach(engine: &Engine, path: &Path, size: usize) {
    let image = file(path);
    let size = size as u64;
    let (name, budget) = ("disk".into(), Arc::default());
    let disk = DiskSpec {
        id: DISK,
        name,
        size,
        image,
        budget,
        unnamed: false,
        keeps_room: false,
        account: None,
    };
    engine.attach(disk).expect("attaches");
}

/// A migration to a new sparse file beside the source.
fn spec(folder: &Path, size: usize) -> MigrationSpec {
    let path = folder.join("destination");
    fs::File::create(&path).unwrap().set_len(size as u64).unwrap();
    MigrationSpec {
        id: MigrationId(1),
        disk: DISK,
        source: file(&folder.join("source")),
        destination: file(&path),
        budget: Arc::default(),
        map: folder.join("map"),
        start: Start::Fresh,
        boot: BootId([1; 16]),
        options: Options {
            verify: false,
            rate: None,
            allowance: Allowance::default(),
            paused: false,
            thin: true,
            write_zeroes: false,
            reads_zero: true,
            skip_bad: false,
            allocated: None,
        },
    }
}

/// Answers the steps of the switch-over until the end.
fn run(engine: &Engine, events: &Receiver<MigrationEvent>) -> (MirrorEnd, Progress) {
    let mut ended = None;
    loop {
        match events.recv_timeout(LONG).expect("the migration goes on") {
            MigrationEvent::Prepare(id) => engine.prepared(id, Some(Nanos(0))).unwrap(),
            MigrationEvent::Seal(id) => engine.sealed(id, Ok(())).unwrap(),
            MigrationEvent::Commit(id) => engine.committed(id, Commit::Durable).unwrap(),
            MigrationEvent::Ended(_, end, last) => ended = Some((end, last.0)),
            MigrationEvent::Released(_) => return ended.expect("ended before released"),
            MigrationEvent::Unseal(_) | MigrationEvent::Notice(..) => {}
        }
    }
}

/// Starts the migration and runs it to its end.
fn migrate(engine: &Engine, spec: &MigrationSpec) -> (MirrorEnd, Progress) {
    let (sender, events) = mpsc::channel();
    engine.migrate(spec, sender).expect("starts");
    run(engine, &events)
}

/// Every other MiB is data, the others are holes.
fn content(size: usize) -> Vec<u8> {
    let byte = |at: usize| {
        if (at / MIB).is_multiple_of(2) { (at / 512 % 251) as u8 + 1 } else { 0 }
    };
    (0..size).map(byte).collect()
}

fn write_sparse(path: &Path, content: &[u8]) {
    let file = fs::File::create(path).unwrap();
    file.set_len(content.len() as u64).unwrap();
    for (at, part) in content.chunks(MIB).enumerate() {
        if part.iter().any(|byte| *byte != 0) {
            file.write_all_at(part, (at * MIB) as u64).unwrap();
        }
    }
    file.sync_all().unwrap();
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

#[test]
fn an_idle_disk_moves_and_stays_sparse() {
    for io in [IoChoice::Uring, IoChoice::Threads] {
        let folder = folder();
        let source = folder.path().join("source");
        let content = content(32 * MIB + 512);
        write_sparse(&source, &content);
        let engine = engine(io);
        attach(&engine, &source, content.len());
        let mut spec = spec(folder.path(), content.len());
        spec.options.verify = true;
        let (end, progress) = migrate(&engine, &spec);
        assert_eq!(end, MirrorEnd::Completed);
        assert_eq!(progress.verified, Some(progress.total));
        let destination = folder.path().join("destination");
        assert!(fs::read(&destination).unwrap() == content, "the same bytes");
        let space = fs::metadata(&destination).unwrap().blocks() * 512;
        assert!(space < 18 * MIB as u64, "{space} bytes for 16 MiB of data");
        engine.detach(DISK).expect("the destination is the disk's image now");
    }
}

#[test]
fn a_cancelled_migration_can_be_followed_by_another() {
    let folder = folder();
    let source = folder.path().join("source");
    let content = content(8 * MIB);
    write_sparse(&source, &content);
    let engine = engine(IoChoice::Auto);
    attach(&engine, &source, content.len());
    let mut spec = spec(folder.path(), content.len());
    spec.options.paused = true;
    let (sender, events) = mpsc::channel();
    engine.migrate(&spec, sender).expect("starts");
    let progress = engine.progress(spec.id).expect("under way");
    assert!(matches!(progress.phase, Phase::Paused(_)));
    engine.control(spec.id, Control::Cancel).expect("cancels");
    assert_eq!(run(&engine, &events).0, MirrorEnd::Cancelled);
    assert!(engine.progress(spec.id).is_err(), "it is over");

    spec.id = MigrationId(2);
    spec.options.paused = false;
    assert_eq!(migrate(&engine, &spec).0, MirrorEnd::Completed);
    assert!(fs::read(folder.path().join("destination")).unwrap() == content);
}

#[test]
fn what_somebody_else_wrote_into_a_hole_of_the_copy_is_gone_at_the_end() {
    let folder = folder();
    let source = folder.path().join("source");
    let content = content(8 * MIB);
    write_sparse(&source, &content);
    let engine = engine(IoChoice::Auto);
    attach(&engine, &source, content.len());
    let mut spec = spec(folder.path(), content.len());
    spec.options.paused = true; // Nothing is copied yet.
    let (sender, events) = mpsc::channel();
    engine.migrate(&spec, sender).expect("starts");
    let destination = folder.path().join("destination");
    let other = fs::OpenOptions::new().write(true).open(&destination).unwrap();
    other.write_all_at(&[7; 4096], MIB as u64 + 512).unwrap();
    drop(other);
    engine.distrust(spec.id).expect("it is told");
    engine.control(spec.id, Control::Resume).expect("goes on");
    assert_eq!(run(&engine, &events).0, MirrorEnd::Completed);
    assert!(fs::read(destination).unwrap() == content, "the same bytes");
}

/// The daemon's lists ask for the progress of all that may have begun.
#[test]
fn who_asks_for_a_migration_that_is_just_starting_does_not_end_it() {
    const MOVES: u64 = 200;
    let folder = folder();
    let source = folder.path().join("source");
    write_sparse(&source, &content(MIB));
    let engine = engine(IoChoice::Auto);
    attach(&engine, &source, MIB);
    let mut spec = spec(folder.path(), MIB);
    spec.options.paused = true;
    let (curious, over) = (engine.clone(), Arc::new(AtomicBool::new(false)));
    let stop = over.clone();
    let asks = std::thread::spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            for id in 1..=MOVES {
                let _ = curious.progress(MigrationId(id));
            }
        }
    });
    for id in 1..=MOVES {
        spec.id = MigrationId(id);
        let (sender, events) = mpsc::channel();
        engine.migrate(&spec, sender).expect("starts");
        engine.control(spec.id, Control::Cancel).expect("it is known");
        assert_eq!(run(&engine, &events).0, MirrorEnd::Cancelled);
    }
    over.store(true, Ordering::Relaxed);
    asks.join().expect("asks to the end");
}

#[test]
fn a_migration_is_taken_up_again_where_an_engine_left_it() {
    let folder = folder();
    let source = folder.path().join("source");
    let content = content(16 * MIB);
    write_sparse(&source, &content);
    let mut spec = spec(folder.path(), content.len());
    // So that the first flush of the destination covers most of what there is.
    spec.options.rate = Some(MIB as u64);
    let first = engine(IoChoice::Auto);
    attach(&first, &source, content.len());
    let (sender, events) = mpsc::channel();
    first.migrate(&spec, sender).expect("starts");
    while first.progress(spec.id).unwrap().copied.0 < 6 * MIB as u64 {
        std::thread::sleep(Duration::from_millis(20));
    }
    drop((first, events)); // In the middle of it.

    let second = engine(IoChoice::Auto);
    attach(&second, &source, content.len());
    spec.start = Start::Resume;
    spec.options.rate = None;
    let (end, progress) = migrate(&second, &spec);
    assert_eq!(end, MirrorEnd::Completed);
    let copied = progress.copied.0;
    assert!(copied <= 5 * MIB as u64, "{copied} bytes of the last 3 MiB or so");
    assert!(fs::read(folder.path().join("destination")).unwrap() == content);
}

#[test]
fn after_another_boot_only_what_differs_is_copied() {
    let folder = folder();
    let source = folder.path().join("source");
    let content = content(8 * MIB);
    write_sparse(&source, &content);
    let mut spec = spec(folder.path(), content.len());
    let first = engine(IoChoice::Auto);
    attach(&first, &source, content.len());
    let (sender, events) = mpsc::channel();
    first.migrate(&spec, sender).expect("starts");
    // All is copied; the switch-over is refused, so the source stays the truth.
    while !matches!(events.recv_timeout(LONG).unwrap(), MigrationEvent::Prepare(_)) {}
    first.prepared(spec.id, None).unwrap();
    drop(first);
    // The power failed: one block of the destination had not been written.
    let destination = folder.path().join("destination");
    let file = fs::OpenOptions::new().write(true).open(&destination).unwrap();
    file.write_all_at(&[0; 4096], 2 * MIB as u64).unwrap();
    drop(file);

    let second = engine(IoChoice::Auto);
    attach(&second, &source, content.len());
    spec.start = Start::Resume;
    spec.boot = BootId([2; 16]);
    let (end, progress) = migrate(&second, &spec);
    assert_eq!(end, MirrorEnd::Completed);
    assert_eq!(progress.copied.0, 64 << 10, "one region");
    assert!(fs::read(destination).unwrap() == content);
}

#[test]
fn on_a_file_system_that_shares_blocks_nothing_is_written_twice() {
    let folder = folder();
    let Some(mount) = Btrfs::mount(folder.path()) else { return };
    let source = mount.0.join("source");
    let content = content(64 * MIB + 512);
    write_sparse(&source, &content);
    let engine = engine(IoChoice::Auto);
    attach(&engine, &source, content.len());
    let mut spec = spec(&mount.0, content.len());
    spec.map = folder.path().join("map");
    let before = mount.used();
    assert_eq!(migrate(&engine, &spec).0, MirrorEnd::Completed);
    let grown = mount.used().saturating_sub(before);
    assert!(fs::read(mount.0.join("destination")).unwrap() == content);
    assert!(grown < 8 * MIB as u64, "{grown} bytes more for 32 MiB of data");
    engine.detach(DISK).expect("nothing is in flight");
}

/// A small btrfs on a loop device, gone with the value.
struct Btrfs(std::path::PathBuf);

impl Btrfs {
    fn mount(folder: &Path) -> Option<Btrfs> {
        let image = folder.join("btrfs");
        let mount = folder.join("mount");
        fs::create_dir(&mount).unwrap();
        fs::File::create(&image).unwrap().set_len(512 << 20).unwrap();
        let run = |program: &str, arguments: &[&std::ffi::OsStr]| {
            let output = std::process::Command::new(program).args(arguments).output();
            output.is_ok_and(|output| output.status.success())
        };
        let made = run("mkfs.btrfs", &["-q".as_ref(), image.as_os_str()]);
        let loop_mount: [&std::ffi::OsStr; 4] =
            ["-o".as_ref(), "loop".as_ref(), image.as_os_str(), mount.as_os_str()];
        if made && run("mount", &loop_mount) {
            return Some(Btrfs(mount));
        }
        println!("skipped: mounting a btrfs needs root and btrfs-progs");
        None
    }

    /// Bytes that the file system has in use, everything written out.
    fn used(&self) -> u64 {
        let sync = std::process::Command::new("sync").arg("-f").arg(&self.0).status();
        assert!(sync.unwrap().success());
        let mut df = std::process::Command::new("df");
        let output = df.args(["--output=used", "-B1"]).arg(&self.0).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().nth(1).unwrap().trim().parse().unwrap()
    }
}

impl Drop for Btrfs {
    fn drop(&mut self) {
        let unmounted = std::process::Command::new("umount").arg(&self.0).status();
        assert!(unmounted.unwrap().success(), "something still uses the file system");
    }
}

#[test]
fn a_limit_on_copies_slows_them_until_it_is_lifted() {
    let folder = folder();
    let source = folder.path().join("source");
    let content = content(4 * MIB);
    write_sparse(&source, &content);
    let engine = engine(IoChoice::Auto);
    attach(&engine, &source, content.len());
    // 2 MiB of data are read and written: 4 MiB, which take 16 s.
    let limit = Limit { bytes: Some(MIB as u64 / 4), ..Limit::default() };
    let terms = Terms { limit, ..Terms::default() };
    engine.set_terms(ClassId::MIGRATION, Some(terms)).unwrap();
    let spec = spec(folder.path(), content.len());
    let (sender, events) = mpsc::channel();
    engine.migrate(&spec, sender).expect("starts");
    let notices = |event: &MigrationEvent| matches!(event, MigrationEvent::Notice(..));
    let early = || events.recv_timeout(Duration::from_secs(2));
    let early = std::iter::from_fn(|| early().ok()).find(|event| !notices(event));
    assert!(early.is_none(), "it is held back: {early:?}");
    engine.set_terms(ClassId::MIGRATION, None).unwrap();
    assert_eq!(run(&engine, &events).0, MirrorEnd::Completed);
    assert!(fs::read(folder.path().join("destination")).unwrap() == content);
}

#[test]
fn a_guest_that_waits_for_its_turn_is_not_copied_beside() {
    let folder = folder();
    let source = folder.path().join("source");
    let size = 64 * MIB;
    write_sparse(&source, &content(size));
    let engine = engine(IoChoice::Auto);
    attach(&engine, &source, size);
    let socket = folder.path().join("nbd.sock");
    engine.listen(Listener::Unix(UnixListener::bind(&socket).unwrap())).unwrap();
    let limit = Limit { requests: Some(1), ..Limit::default() };
    let terms = Terms { limit, ..Terms::default() };
    engine.set_terms(ClassId(7), Some(terms)).unwrap();
    engine.set_class(DISK, Some(ClassId(7))).unwrap();
    // The first one has its turn at once, the others after a second each.
    let mut client = Client::connect(&socket, true);
    for _ in 0..6 {
        client.send(Command::Read { offset: 0, len: 4096, df: true }, &[]);
    }
    client.receive_all(1);
    let mut spec = spec(folder.path(), size);
    spec.options.allowance = Allowance::IDLE_ONLY;
    let (sender, events) = mpsc::channel();
    engine.migrate(&spec, sender).expect("starts");
    client.receive_all(1);
    let progress = engine.progress(spec.id).unwrap();
    assert_eq!(progress.copied.0, 0, "others still wait: {progress:?}");
    // Gone with its requests: that ends the wait as well.
    drop(client);
    assert_eq!(run(&engine, &events).0, MirrorEnd::Completed);
}

/// Writes parts of blocks here and there, many at once, until the migration is over; gives
/// what has to be on the disk then.
fn write_parts(client: &mut Client, mut disk: Vec<u8>, over: &AtomicBool) -> Vec<u8> {
    let mut random = Random(9);
    let mut rounds = 0;
    while !over.load(Ordering::SeqCst) || rounds < 20 {
        let mut burst = Vec::new();
        // Apart from each other, though often in one block.
        for part in 0..40 {
            let offset = random.below(disk.len() as u64 / 40 / 2)
                + part * (disk.len() as u64 / 40);
            let len = 1 + random.below(3000);
            let bytes = random.bytes(len as usize);
            let fua = random.below(8) == 0;
            burst.extend(client.encode(Command::Write { offset, len: len as u32, fua }));
            burst.extend(&bytes);
            disk[offset as usize..][..bytes.len()].copy_from_slice(&bytes);
        }
        client.stream.write_all(&burst).unwrap();
        let replies = client.receive_all(40);
        assert!(replies.values().all(|reply| reply.result == Ok(())));
        rounds += 1;
    }
    disk
}

#[test]
fn parts_of_blocks_that_are_written_meanwhile_are_where_the_disk_goes() {
    for io in [IoChoice::Uring, IoChoice::Threads] {
        let folder = folder();
        let source = folder.path().join("source");
        let content = content(32 * MIB);
        write_sparse(&source, &content);
        let engine = engine(io);
        attach(&engine, &source, content.len());
        let socket = folder.path().join("nbd.sock");
        engine.listen(Listener::Unix(UnixListener::bind(&socket).unwrap())).unwrap();
        let mut client = Client::connect_without_sizes(&socket, true);
        let mut spec = spec(folder.path(), content.len());
        spec.options.verify = true;
        spec.options.rate = Some(16 << 20);
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let written = scope.spawn(|| write_parts(&mut client, content, &over));
            let (end, _) = migrate(&engine, &spec);
            over.store(true, Ordering::SeqCst);
            assert_eq!(end, MirrorEnd::Completed);
            let written = written.join().expect("no error");
            let destination = fs::read(folder.path().join("destination")).unwrap();
            assert!(destination == written, "with {io:?}");
        });
    }
}

#[test]
fn a_cancel_does_not_wait_for_copies_that_wait_for_their_turn() {
    let folder = folder();
    let source = folder.path().join("source");
    write_sparse(&source, &content(8 * MIB));
    let engine = engine(IoChoice::Auto);
    attach(&engine, &source, 8 * MIB);
    let limit = Limit { bytes: Some(1), ..Limit::default() };
    let terms = Terms { limit, ..Terms::default() };
    engine.set_terms(ClassId::MIGRATION, Some(terms)).unwrap();
    let spec = spec(folder.path(), 8 * MIB);
    let (sender, events) = mpsc::channel();
    engine.migrate(&spec, sender).expect("starts");
    engine.control(spec.id, Control::Cancel).expect("under way");
    assert_eq!(run(&engine, &events).0, MirrorEnd::Cancelled);
}

#[test]
fn while_a_copy_is_out_of_reach_its_disk_is_reached_as_before() {
    let folder = folder();
    let content = content(MIB);
    let (source, elsewhere) = (folder.path().join("source"), folder.path().join("copy"));
    write_sparse(&source, &content);
    fs::File::create(&elsewhere).unwrap().set_len(MIB as u64).unwrap();
    let server = engine(IoChoice::Auto);
    attach(&server, &elsewhere, MIB);
    let socket = folder.path().join("server");
    server.listen(Listener::Unix(UnixListener::bind(&socket).unwrap())).unwrap();
    let engine = engine(IoChoice::Auto);
    attach(&engine, &source, MIB);
    let before = engine.reach(DISK, false).unwrap();
    assert!(before.is_some() && engine.reach(DISK, true).unwrap().is_none());
    let uri = format!("nbd+unix:///disk?socket={}", socket.display());
    let options = Options { paused: true, ..spec(folder.path(), MIB).options };
    let destination = ImageSpec::Nbd(uri.parse().unwrap());
    let spec = MigrationSpec { destination, options, ..spec(folder.path(), MIB) };
    let (sender, _events) = mpsc::channel();
    engine.migrate(&spec, sender).expect("starts");
    let until = Instant::now() + LONG;
    let waits_for = |is_reached: bool| {
        while engine.reach(DISK, true).unwrap().is_some() != is_reached {
            assert!(Instant::now() < until, "the copy's reach stays the same");
            thread::sleep(Duration::from_millis(10));
        }
    };
    waits_for(true);
    assert_ne!(engine.reach(DISK, true).unwrap(), before, "it is another image");
    drop(server);
    waits_for(false);
    assert_eq!(engine.reach(DISK, false).unwrap(), before);
}
