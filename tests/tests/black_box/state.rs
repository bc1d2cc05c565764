//! The state directory at its worst: killed in the commit, slow in the commit, [full](full). What
//! it says is durable before anybody acts on it, and nothing that goes wrong in it ends
//! the daemon or holds a guest.
//!
//! `strace` stands for a disk that is slow, or for the moment of a kill: it delays or
//! ends the very system call.

mod full;

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use sterna_tests::clients::{Clients, nbdsh, writes_and_reads};
use sterna_tests::forgetful::Forgetful;
use sterna_tests::programs::{self, command, have};
use sterna_tests::servers::Bindfs;
use sterna_tests::steps::{Places, Step, Tracer};
use sterna_tests::wait::seconds;
use sterna_tests::{CheckerOptions, MIB, Stage, until};

/// `strace` at one thread of the daemon.
struct Traced(Child);

impl Traced {
    /// Attaches it, with these arguments, to the thread of that name.
    #[track_caller]
    fn thread(stage: &Stage, name: &str, arguments: &[&str]) -> Traced {
        let tasks = format!("/proc/{}/task", stage.daemon.pid());
        let thread = until("the thread to be there", seconds(10), || {
            let all = std::fs::read_dir(&tasks).expect("list threads").flatten();
            let named = |path: &Path| {
                let comm = std::fs::read_to_string(path.join("comm"));
                comm.is_ok_and(|comm| comm.trim() == name)
            };
            all.map(|task| task.path()).find(|task| named(task))
        });
        let number = thread.file_name().expect("a number");
        let child = command("strace")
            .arg("-p")
            .arg(number)
            .args(["-o", "/dev/null"])
            .args(arguments)
            .stderr(Stdio::null())
            .spawn()
            .expect("start strace");
        until("strace to be attached", seconds(10), || {
            let status = std::fs::read_to_string(thread.join("status"));
            let status = status.unwrap_or_default();
            let tracer = status.lines().find(|line| line.starts_with("TracerPid:"))?;
            (!tracer.ends_with("\t0")).then_some(())
        });
        Traced(child)
    }

    /// Attaches it to the writes of a commit's record. The first makes the file, the
    /// second is measured, the third commits, if that is the first attempt.
    #[track_caller]
    fn record(stage: &Stage, id: u64, third: &str) -> Traced {
        let record = record_of(stage, id).display().to_string();
        let inject = format!("inject=pwrite64:{third}:when=3");
        let arguments = ["-P", &record, "-e", "trace=pwrite64", "-e", &inject];
        Traced::thread(stage, &format!("sterna-job-{id}"), &arguments)
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn record_of(stage: &Stage, id: u64) -> PathBuf {
    stage.daemon.state().join(format!("commits/{id}.commit"))
}

/// Until its record says so.
#[track_caller]
fn wait_for_the_commit(stage: &Stage, id: u64) {
    let record = record_of(stage, id);
    until("the commit", seconds(60), || {
        let says = std::fs::read(&record).ok()?;
        (says.get(12) == Some(&2)).then_some(())
    });
}

/// A disk of 32 MiB whose migration is shortly before its end.
fn about_to_commit(stage: &Stage) -> u64 {
    stage.disk_with_data("a", 32 * MIB, 32 * MIB);
    stage.daemon.migrate("a --to there --rate 16M")
}

#[test]
fn a_commit_that_takes_four_seconds_holds_no_read() {
    if !(programs::root() && have(&["strace", "nbdsh"])) {
        return;
    }
    let stage = Stage::new();
    let id = about_to_commit(&stage);
    let _slow = Traced::record(&stage, id, "delay_enter=4s");
    let script = "\
        import time\n\
        def longest(what, until):\n\
        \x20   worst = 0\n\
        \x20   while time.time() < until:\n\
        \x20       t = time.time(); what(); worst = max(worst, time.time() - t); time.sleep(0.005)\n\
        \x20   return worst\n\
        import threading\n\
        end = time.time() + 9\n\
        w = nbd.NBD(); w.connect_uri(h.get_uri())\n\
        found = {}\n\
        def write(): found['write'] = longest(lambda: w.pwrite(b'x' * 4096, 0), end)\n\
        writer = threading.Thread(target=write); writer.start()\n\
        found['read'] = longest(lambda: h.pread(4096, 1 << 20), end)\n\
        writer.join(); print('%.3f %.3f' % (found['read'], found['write']))";
    let printed = nbdsh(&stage.daemon.uri("a"), script);
    let waits: Vec<f64> =
        printed.split_whitespace().map(|w| w.parse().unwrap()).collect();
    println!("longest read {} s, longest write {} s", waits[0], waits[1]);
    assert!(waits[0] < 1.0, "a read waited for {} s", waits[0]);
    stage.daemon.completed(id);
}

#[test]
fn a_state_database_that_is_slow_in_the_commit_holds_nobody() {
    if !(programs::root() && have(&["strace"])) {
        return;
    }
    let stage = Stage::new();
    let id = about_to_commit(&stage);
    let mut checker = stage.checker("a", &CheckerOptions::gentle(400));
    checker.wait_for_intervals(2);
    let slow = Traced::thread(&stage, "sterna-store", &SLOW_SYNCS);
    stage.daemon.completed(id);
    drop(slow);
    let longest = checker.longest_ms(0);
    assert!(longest < 1000.0, "a request waited for {longest} ms");
    checker.finish_and_verify();
}

const SLOW_SYNCS: [&str; 4] =
    ["-e", "trace=fsync,fdatasync", "-e", "inject=fsync,fdatasync:delay_enter=2s"];
const SLOW_WRITES: [&str; 4] =
    ["-e", "trace=pwrite64", "-e", "inject=pwrite64:delay_enter=2s"];

#[test]
fn a_kill_before_the_record_of_the_commit_leaves_the_source_the_truth() {
    if !(programs::root() && have(&["strace"])) {
        return;
    }
    let mut stage = Stage::new();
    let id = about_to_commit(&stage);
    let _killed = Traced::record(&stage, id, "error=EIO:signal=KILL");
    until("the daemon to be killed", seconds(60), || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", stage.daemon.pid()));
        let stat = stat.unwrap_or_default();
        (stat.is_empty() || stat.contains(") Z ")).then_some(())
    });
    stage.daemon.kill();
    stage.daemon.restart();
    stage.daemon.completed(id);
    assert_eq!(stage.daemon.disk("a")["datastore"], "there");
    writes_and_reads(&stage.daemon.uri("a"));
}

#[test]
fn a_kill_after_the_record_of_the_commit_leaves_the_destination_and_the_record_first() {
    if !(programs::root() && have(&["strace"])) {
        return;
    }
    // The state database has heard of it, in the page cache alone; or it has not.
    for slow in [SLOW_SYNCS, SLOW_WRITES] {
        let mut stage = Stage::new();
        let id = about_to_commit(&stage);
        let slow = Traced::thread(&stage, "sterna-store", &slow);
        wait_for_the_commit(&stage, id);
        stage.daemon.kill();
        drop(slow);
        let log = stage.scratch.path("start.strace");
        let calls = "trace=fsync,fdatasync,pwrite64,rename,renameat,renameat2,accept4";
        let log_name = log.display().to_string();
        stage
            .daemon
            .restart_under(&["strace", "-D", "-f", "-y", "-e", calls, "-o", &log_name]);
        stage.daemon.completed(id);
        assert_eq!(stage.daemon.disk("a")["datastore"], "there");
        writes_and_reads(&stage.daemon.uri("a"));
        let calls = until("the source to be gone", seconds(10), || {
            let calls = std::fs::read_to_string(&log).unwrap_or_default();
            calls.contains("a.raw\"").then_some(calls)
        });
        durable_before_the_source_goes(&calls);
    }
}

/// The source drops what it is given, and says so at each flush. What it has dropped last is told
/// after the commit: if the daemon is killed before that, the next one tells.
#[test]
fn a_kill_after_the_record_of_the_commit_leaves_what_clients_are_still_to_be_told() {
    if !programs::root() || !have(&["strace", "/usr/bin/python3"]) {
        return;
    }
    let mut stage = Stage::new();
    let server = Forgetful::start(&stage.scratch, "far", 40 * MIB);
    stage.datastore("far", server.location());
    stage.disk_with_data("a", 32 * MIB, 32 * MIB);
    stage.daemon.sterna("migrate a --to far").ok();
    server.fails_each_flush();
    let uri = stage.daemon.uri("a");
    // One that hears of each flush that fails: nothing is left to tell it before the commit.
    let busy = "
import threading
def work(h):
    while True:
        try:
            h.pwrite(b'new' * 1024, 0)
            h.flush()
        except nbd.Error as error:
            if error.errno != 'EIO': return
threading.Thread(target=work, args=(connect(),)).start()";
    let busy = Clients::start(&stage.scratch, &uri, busy, "");
    let id = stage.daemon.migrate("a --to there --rate 16M");
    // It is written, and nobody is told so for a while.
    let slow = Traced::record(&stage, id, "delay_exit=4s");
    wait_for_the_commit(&stage, id);
    stage.daemon.kill();
    drop(slow);
    stage.daemon.restart();
    stage.daemon.completed(id);
    busy.go_on();
    let next = "h = connect()";
    let next = Clients::start(&stage.scratch, &uri, next, "flushes(h)");
    let told = next.go_on();
    // If the last that was dropped was compared in time, nobody needs to be told.
    let is = nbdsh(&uri, "print(h.pread(4096, 0).hex())");
    let was: String =
        server.durable(0..4096).iter().map(|it| format!("{it:02x}")).collect();
    let is_same = is.trim() == was;
    assert!(told == ["EIO", "ok"] || is_same && told == ["ok", "ok"], "{told:?}");
}

/// In what a start did, what it has read is made durable before the old image goes.
#[track_caller]
fn durable_before_the_source_goes(calls: &str) {
    let at = |all: &[&str]| {
        calls.lines().position(|line| all.iter().all(|part| line.contains(part)))
    };
    // It gets a private name, to be looked at once more, and goes under that.
    let removed = at(&["rename", "a.raw\""]).expect("the source goes");
    for durable in [["sync(", "state.db-wal>"], ["sync(", "state>"]] {
        assert!(at(&durable).is_some_and(|at| at < removed), "{durable:?}:\n{calls}");
    }
}

#[test]
fn a_record_that_is_there_already_gets_a_durable_name_before_it_says_anything() {
    if !(programs::root() && have(&["strace"])) {
        return;
    }
    let stage = Stage::new();
    let id = about_to_commit(&stage);
    // As a daemon has left it that was killed before it had the name made durable.
    std::fs::write(record_of(&stage, id), [0; 4096]).expect("make a record");
    let log = stage.scratch.path("job.strace");
    let log_name = log.display().to_string();
    let calls = ["-y", "-e", "trace=fsync,pwrite64", "-o", &log_name];
    let traced = Traced::thread(&stage, &format!("sterna-job-{id}"), &calls);
    stage.daemon.completed(id);
    drop(traced);
    let calls = std::fs::read_to_string(&log).expect("what it did");
    let at = |what: &[&str]| {
        calls.lines().position(|line| what.iter().all(|part| line.contains(part)))
    };
    let written = at(&["pwrite64(", ".commit>"]).expect("the record is written");
    let named = at(&["fsync(", "commits>"]);
    assert!(named.is_some_and(|named| named < written), "{calls}");
}

#[test]
fn a_move_that_is_given_up_ends_as_soon_as_the_state_takes_its_end() {
    let Some(stage) = Stage::given_root(&["bindfs", "strace"]) else { return };
    let fuse = Bindfs::new(&stage.scratch, "fuse");
    stage.datastore("hung", fuse.dir().display());
    stage.disk_with_data("a", 32 * MIB, 32 * MIB);
    let id = stage.daemon.migrate("a --to hung --rate 2M");
    stage.daemon.wait_for_bytes(id, MIB);
    // It is told to end, and cannot yet; when it can, the state takes nothing any more.
    fuse.hang();
    stage.daemon.sterna(&format!("migration cancel {id}")).ok();
    let full = Traced::thread(&stage, "sterna-store", &NO_ROOM);
    fuse.go_on();
    let said = until("the end to be refused", seconds(30), || {
        let migration = stage.daemon.migration(id);
        let reason = migration["reason"].as_str().unwrap_or_default();
        reason.contains("cannot record the migration's end").then_some(migration)
    });
    assert_eq!(said["state"], "cancelling", "{said:#}");
    let warned = stage.daemon.sterna("status").ok().stdout;
    assert!(warned.contains("cannot record the migration's end"), "{warned}");
    drop(full);
    stage.daemon.wait_for(id, "cancelled", seconds(30));
    let warned = stage.daemon.sterna("status").ok().stdout;
    assert!(!warned.contains("cannot record the migration's end"), "{warned}");
    // The disk is free.
    let id = stage.daemon.migrate("a --to there");
    stage.daemon.completed(id);
}

#[test]
fn a_move_that_was_committed_is_not_given_up_though_its_record_could_not_be_read() {
    if !(programs::root() && have(&["strace"])) {
        return;
    }
    let mut stage = Stage::new();
    let id = about_to_commit(&stage);
    let slow = Traced::thread(&stage, "sterna-store", &SLOW_WRITES);
    wait_for_the_commit(&stage, id);
    stage.daemon.kill();
    drop(slow);
    // A start can neither read the record nor find the source.
    let record = record_of(&stage, id);
    let aside = record.with_extension("aside");
    std::fs::rename(&record, &aside).expect("put the record aside");
    std::fs::create_dir(&record).expect("put something in its place");
    for file in ["a.raw", "a.raw.sterna"] {
        std::fs::remove_file(stage.here.join(file)).expect("remove the source");
    }
    stage.daemon.restart();
    std::fs::remove_dir(&record).expect("make room for the record");
    std::fs::rename(&aside, &record).expect("put the record back");
    // If the daemon has not looked again by now, this is the first to do so.
    drop(stage.daemon.sterna(&format!("migration cancel {id}")));
    stage.daemon.completed(id);
    assert_eq!(stage.daemon.disk("a")["datastore"], "there");
    writes_and_reads(&stage.daemon.uri("a"));
}

/// Generation and role in a sidecar's newest slot.
#[track_caller]
fn says(sidecar: &Path) -> (u64, u32) {
    let bytes = std::fs::read(sidecar).expect("read a sidecar");
    let at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let newest = if at(288) > at(4096 + 288) { 0 } else { 4096 };
    (at(newest + 40), at(newest + 48) as u32)
}

#[test]
fn a_kill_before_the_copy_begins_leaves_a_kept_image_what_it_was() {
    const RETIRED: u32 = 3;
    let Some(mut stage) = Stage::given_root(&["strace"]) else { return };
    stage.disk_with_data("a", 8 * MIB, 8 * MIB);
    let id = stage.daemon.migrate("a --to there --keep-source");
    stage.daemon.completed(id);
    let kept = stage.here.join("a.raw.sterna");
    let before = says(&kept);
    assert_eq!(before.1, RETIRED);
    // Its sidecar says that it is a copy by now, and the state does not know of it.
    let step = Step {
        file: "here/a.raw.sterna".into(),
        call: "fdatasync".into(),
        thread: String::new(),
        nth: 1,
    };
    let places = Places::new(id + 1, &[("here", &stage.here)]);
    let log = stage.scratch.path("kill.strace");
    let killer = Tracer::kill(&stage.daemon, &log, &step, &places);
    // Nobody answers that.
    drop(stage.daemon.sterna("migrate a --to here --detach"));
    until("the daemon to be killed", seconds(30), || {
        stage.daemon.is_over().then_some(())
    });
    drop(killer);
    assert_ne!(says(&kept), before, "the kill came too early");
    stage.daemon.kill();
    stage.daemon.restart();
    stage.daemon.wait_for(id + 1, "cancelled", seconds(10));
    assert_eq!(says(&kept), before);
    let id = stage.daemon.migrate("a --to here");
    stage.daemon.completed(id);
}

/// Whoever writes to the state database is told that there is no room.
const NO_ROOM: [&str; 4] = ["-e", "trace=pwrite64", "-e", "inject=pwrite64:error=ENOSPC"];
