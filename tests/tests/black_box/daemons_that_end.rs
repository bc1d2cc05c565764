//! Daemons that end while a storage server has writes which it has answered and nobody has
//! flushed. Some servers drop these with the connection; then the next daemon says so, by a
//! flush that fails once. Where nothing can be lost, nobody is alarmed.

use std::fs::File;

use sterna_tests::clients::{Clients, flushes, nbdsh};
use sterna_tests::images::identical_files;
use sterna_tests::programs;
use sterna_tests::servers::QemuClient;
use sterna_tests::wait::seconds;
use sterna_tests::{Forgetful, MIB, Stage, until};

const SIZE: u64 = 16 * MIB;
/// A disk on a server, with room for its sidecar.
const EXPORT: u64 = SIZE + 65536;
const PYTHON: &str = "/usr/bin/python3";

/// A disk whose server drops with a connection what was not flushed on it.
struct Scene {
    stage: Stage,
    server: Forgetful,
    uri: String,
}

impl Scene {
    /// Or one whose server does not.
    #[track_caller]
    fn new(drops: bool) -> Option<Scene> {
        let stage = Stage::given(&[PYTHON])?;
        let server = match drops {
            true => Forgetful::start_dropping(&stage.scratch, "far", EXPORT),
            false => Forgetful::start(&stage.scratch, "far", EXPORT),
        };
        stage.datastore("far", server.location());
        stage.daemon.sterna(&format!("disk create d --size {SIZE} --on far")).ok();
        server.wait_for_connections();
        let uri = stage.daemon.uri("d");
        let scene = Scene { stage, server, uri };
        scene.write("old");
        assert_eq!(flushes(&scene.uri, 1), ["ok"]);
        Some(scene)
    }

    /// Writes, without a flush.
    #[track_caller]
    fn write(&self, word: &str) {
        nbdsh(&self.uri, &format!("h.pwrite(b'{word}' * 1024, 0)"));
    }

    /// The daemon is killed, and all its connections with it.
    fn kill(&mut self) {
        self.stage.daemon.kill();
        self.server.wait_for_goodbye();
    }

    fn kill_and_restart(&mut self) {
        self.kill();
        self.restart();
    }

    fn restart(&mut self) {
        self.stage.daemon.restart();
        self.server.wait_for_connections();
    }

    #[track_caller]
    fn warnings(&self) -> Vec<String> {
        self.stage.daemon.warnings("disk d")
    }

    #[track_caller]
    fn nobody_is_alarmed(&self) {
        assert_eq!(self.warnings(), Vec::<String>::new());
        assert_eq!(flushes(&self.uri, 2), ["ok", "ok"]);
    }

    /// A flush fails once, and people are told why.
    #[track_caller]
    fn somebody_is_told(&self, why: &str) {
        let told = self.warnings().pop().unwrap_or_default();
        assert!(told.contains(why), "{told}");
        assert!(told.contains("client that does not know yet fails"), "{told}");
        assert_eq!(flushes(&self.uri, 3), ["EIO", "ok", "ok"]);
        let told = self.warnings().pop().unwrap_or_default();
        assert!(told.contains("a flush has failed since"), "{told}");
    }
}

const ENDED: &str =
    "the daemon before this one ended with writes that no client had flushed";

#[test]
fn after_a_kill_a_flush_fails_once_if_the_server_dropped_what_was_unflushed() {
    let Some(mut scene) = Scene::new(true) else { return };
    scene.write("new");
    scene.kill_and_restart();
    // The server has dropped it.
    nbdsh(&scene.uri, "assert h.pread(512, 0).startswith(b'old')");
    scene.somebody_is_told(ENDED);
    let log = scene.stage.daemon.log();
    assert!(log.contains("these writes may be lost"), "{log}");
    // Nor does it come again, whatever else the daemon lives through.
    scene.kill_and_restart();
    scene.nobody_is_alarmed();
}

/// The account of the only disk, in the memory that a kill leaves, held as a daemon would
/// hold it: no other daemon takes it for left.
#[track_caller]
fn held_account(stage: &Stage) -> File {
    let accounts = std::fs::read_dir(stage.daemon.state().join("accounts"));
    let record = accounts.expect("list the accounts").next().expect("there is one");
    let record = std::fs::read(record.expect("an account").path()).expect("read it");
    let number = u64::from_le_bytes(record[16..24].try_into().expect("eight bytes"));
    let memory = File::open(format!("/dev/shm/sterna-account-{number:016x}"));
    let memory = memory.expect("open its memory");
    memory.lock_shared().expect("hold it");
    memory
}

#[test]
fn a_state_directory_that_is_renamed_after_a_kill_costs_nobody_an_error() {
    let Some(mut scene) = Scene::new(true) else { return };
    scene.kill();
    // Until a daemon has seen the new name, each daemon of this machine would think that the
    // state is gone.
    let held = held_account(&scene.stage);
    scene.stage.daemon.rename_state();
    // The disk comes up later than the daemon looks for what is left.
    scene.server.is_out_of_reach(true);
    scene.stage.daemon.restart();
    drop(held);
    scene.stage.daemon.kill();
    scene.stage.daemon.restart();
    scene.server.is_out_of_reach(false);
    until("the disk to be served", seconds(20), || {
        (scene.stage.daemon.disk("d")["served"] == true).then_some(())
    });
    scene.nobody_is_alarmed();
}

#[test]
fn a_guest_that_lives_on_hears_it() {
    let Some(mut scene) = Scene::new(true) else { return };
    if !programs::have(&["qemu-storage-daemon"]) {
        return;
    }
    let socket = scene.stage.scratch.socket("qemu.sock");
    let qemu = QemuClient::start(&socket, scene.stage.daemon.nbd_socket(), "d");
    nbdsh(&qemu.uri(), "h.pwrite(b'new' * 1024, 0)");
    scene.kill_and_restart();
    assert_eq!(flushes(&qemu.uri(), 2), ["EIO", "ok"]);
}

#[test]
fn each_client_that_was_there_at_a_kill_is_told_when_it_is_back() {
    let Some(mut scene) = Scene::new(true) else { return };
    let clients = Clients::start(
        &scene.stage.scratch,
        &scene.uri,
        "a, b = connect(), connect(); a.pwrite(b'new' * 1024, 0)",
        "b = connect(); flushes(b); a = connect(); flushes(a); flushes(connect())",
    );
    scene.kill_and_restart();
    assert_eq!(clients.go_on(), ["EIO", "ok", "EIO", "ok", "ok", "ok"]);
}

#[test]
fn after_a_kill_no_flush_fails_if_all_was_flushed() {
    let Some(mut scene) = Scene::new(true) else { return };
    scene.write("new");
    assert_eq!(flushes(&scene.uri, 1), ["ok"]);
    scene.kill_and_restart();
    scene.nobody_is_alarmed();
    assert_eq!(scene.server.durable(0..3), b"new");
    // A write that is durable when it is answered needs no flush.
    nbdsh(&scene.uri, "h.pwrite(b'f' * 512, 0, flags=nbd.CMD_FLAG_FUA)");
    scene.kill_and_restart();
    scene.nobody_is_alarmed();
}

#[test]
fn after_a_good_end_no_flush_fails_and_all_is_durable() {
    for drops in [true, false] {
        let Some(mut scene) = Scene::new(drops) else { return };
        scene.write("new");
        scene.stage.daemon.stop();
        assert_eq!(scene.server.durable(0..3), b"new");
        assert_eq!(scene.stage.daemon.memory_of_accounts().len(), 0);
        scene.restart();
        scene.nobody_is_alarmed();
    }
}

#[test]
fn a_good_end_does_not_wait_for_a_server_that_does_not_answer() {
    let Some(mut scene) = Scene::new(true) else { return };
    scene.write("new");
    assert!(scene.server.forget_silently() > 0, "there was something to lose");
    scene.stage.daemon.stop();
    scene.server.break_all_connections();
    scene.restart();
    scene.somebody_is_told(ENDED);
}

#[test]
fn after_a_kill_no_flush_fails_if_all_connections_see_the_same() {
    let Some(mut scene) = Scene::new(false) else { return };
    scene.write("new");
    scene.kill_and_restart();
    scene.nobody_is_alarmed();
    assert_eq!(scene.server.durable(0..3), b"new");
}

#[test]
fn after_a_kill_of_a_daemon_on_nbdkit_no_flush_fails() {
    let Some(mut stage) = Stage::given(&[PYTHON, "nbdkit"]) else { return };
    let _server = stage.nbd_server("far", EXPORT, &[]);
    stage.daemon.sterna(&format!("disk create d --size {SIZE} --on far")).ok();
    nbdsh(&stage.daemon.uri("d"), "h.pwrite(b'new' * 1024, 0)");
    stage.daemon.kill();
    stage.daemon.restart();
    assert_eq!(stage.daemon.warnings("disk d"), Vec::<String>::new());
    assert_eq!(flushes(&stage.daemon.uri("d"), 2), ["ok", "ok"]);
}

#[test]
fn what_a_killed_daemon_left_in_a_server_s_cache_is_watched_by_the_next_one() {
    let Some(mut scene) = Scene::new(false) else { return };
    scene.write("new");
    scene.kill_and_restart();
    scene.kill_and_restart();
    // Nobody has flushed it yet.
    assert!(scene.server.lose_power() > 0, "there was something to lose");
    until("the loss to be known", seconds(10), || scene.warnings().pop());
    scene.somebody_is_told("the NBD server of its image was away");
}

#[test]
fn a_loss_that_nobody_has_heard_of_is_told_by_a_later_daemon() {
    let Some(mut scene) = Scene::new(true) else { return };
    scene.write("new");
    // Two kills, and a good end between them.
    scene.kill_and_restart();
    scene.stage.daemon.stop();
    scene.restart();
    scene.kill_and_restart();
    scene.somebody_is_told(ENDED);
    // And one that a daemon has seen itself.
    scene.write("new");
    assert!(scene.server.lose_power() > 0, "there was something to lose");
    until("the loss to be known", seconds(10), || {
        let told = scene.warnings().pop().unwrap_or_default();
        told.contains("client that does not know yet fails").then_some(())
    });
    scene.kill_and_restart();
    scene.somebody_is_told("the NBD server of its image was away");
}

#[test]
fn an_account_that_is_gone_counts_as_a_loss_where_the_server_drops_writes() {
    for drops in [true, false] {
        let Some(mut scene) = Scene::new(drops) else { return };
        scene.kill();
        // As in a container that is made anew.
        let memory = scene.stage.daemon.memory_of_accounts();
        assert_eq!(memory.len(), 1);
        std::fs::remove_file(&memory[0]).expect("remove the memory");
        scene.restart();
        match drops {
            true => scene.somebody_is_told("Sterna does not know whether"),
            false => scene.nobody_is_alarmed(),
        }
    }
}

#[test]
fn the_account_of_a_disk_goes_with_it() {
    let Some(scene) = Scene::new(true) else { return };
    let accounts = scene.stage.daemon.state().join("accounts");
    let count = || std::fs::read_dir(&accounts).expect("the accounts").count();
    assert_eq!((count(), scene.stage.daemon.memory_of_accounts().len()), (1, 1));
    let memory = scene.stage.daemon.memory_of_accounts();
    scene.stage.daemon.sterna("disk remove d").ok();
    assert_eq!(count(), 0);
    assert!(!memory[0].exists());
}

#[test]
fn a_disk_that_has_moved_owes_what_its_new_place_drops_and_no_more() {
    let Some(mut stage) = Stage::given(&[PYTHON]) else { return };
    let server = Forgetful::start_dropping(&stage.scratch, "far", EXPORT);
    stage.datastore("far", server.location());
    let uri = stage.disk("d", SIZE);
    nbdsh(&uri, "h.pwrite(b'old' * 1024, 0)");
    let id = stage.daemon.migrate("d --to far");
    stage.daemon.completed(id);
    // It was flushed when it became the truth.
    stage.daemon.kill();
    stage.daemon.restart();
    assert_eq!(flushes(&uri, 1), ["ok"]);
    nbdsh(&uri, "h.pwrite(b'new' * 1024, 0)");
    stage.daemon.kill();
    stage.daemon.restart();
    assert_eq!(flushes(&uri, 2), ["EIO", "ok"]);
    // And away again: a file keeps what was written to it.
    nbdsh(&uri, "h.pwrite(b'NEW' * 1024, 0)");
    let id = stage.daemon.migrate("d --to there");
    stage.daemon.completed(id);
    nbdsh(&uri, "h.pwrite(b'New' * 1024, 4096)");
    stage.daemon.kill();
    stage.daemon.restart();
    assert_eq!(flushes(&uri, 1), ["ok"]);
    let read = "assert h.pread(3072, 0) == b'NEW' * 1024";
    nbdsh(&uri, &format!("{read}; assert h.pread(3072, 4096) == b'New' * 1024"));
}

#[test]
fn mirrored_writes_that_a_destination_dropped_are_compared_after_a_kill() {
    let Some(mut stage) = Stage::given(&[PYTHON]) else { return };
    let server = Forgetful::start_dropping(&stage.scratch, "far", EXPORT);
    stage.datastore("far", server.location());
    let uri = stage.disk_with_data("d", SIZE, SIZE);
    let id = stage.daemon.migrate("d --to far --rate 2M --keep-source");
    stage.daemon.wait_for_bytes(id, 4 * MIB);
    // To what is copied, and beyond.
    nbdsh(&uri, "for i in range(128): h.pwrite(b'm' * 4096, i * 128 * 1024)");
    stage.daemon.kill();
    server.wait_for_goodbye();
    stage.daemon.restart();
    assert_eq!(flushes(&uri, 1), ["ok"], "the source has lost nothing");
    stage.daemon.hurry(id);
    stage.daemon.completed(id);
    let image = stage.scratch.path("durable.raw");
    std::fs::write(&image, server.durable(0..SIZE as usize)).expect("keep the image");
    identical_files(&image, &stage.here.join("d.raw"));
    assert_eq!(server.durable(0..1), b"m");
}

#[test]
fn a_source_that_dropped_writes_at_a_kill_and_its_copy_end_equal() {
    let Some(mut scene) = Scene::new(true) else { return };
    let script = "for i in range(16): h.pwrite(b'o' * (1 << 20), i << 20)\nh.flush()";
    nbdsh(&scene.uri, script);
    let id = scene.stage.daemon.migrate("d --to there --rate 2M --keep-source");
    scene.stage.daemon.wait_for_bytes(id, 4 * MIB);
    // Copied, then written on both sides; but never flushed.
    nbdsh(&scene.uri, "h.pwrite(b'n' * 65536, 0)");
    scene.kill_and_restart();
    scene.somebody_is_told(ENDED);
    scene.stage.daemon.hurry(id);
    scene.stage.daemon.completed(id);
    let image = scene.stage.scratch.path("source.raw");
    let durable = scene.server.durable(0..SIZE as usize);
    std::fs::write(&image, &durable).expect("keep the image");
    identical_files(&image, &scene.stage.there.join("d.raw"));
    assert_eq!(durable[0], b'o');
}
