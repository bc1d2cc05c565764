//! The state directory is full, or one of its files is cut short: nothing ends, no guest is held,
//! and what could not be noted is noted once there is room.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sterna_tests::clients::Clients;
use sterna_tests::programs::{self, have};
use sterna_tests::wait::seconds;
use sterna_tests::{CheckerOptions, MIB, Stage, until};

/// A btrfs, mounted.
struct Btrfs {
    mount: PathBuf,
}

impl Btrfs {
    fn new(file: &Path, mount: &Path, size: u64) -> Btrfs {
        std::fs::File::create(file).and_then(|it| it.set_len(size)).expect("a file");
        // It looks at all loop devices, and fails if one goes in that moment.
        let options = ["-q", "-f", "--mixed"].map(AsRef::as_ref);
        until("the file system to be made", seconds(20), || {
            let arguments = options.into_iter().chain([file.as_os_str()]);
            programs::attempt("mkfs.btrfs", arguments).0.then_some(())
        });
        std::fs::create_dir_all(mount).expect("make the mount point");
        programs::run(
            "mount",
            ["-o".as_ref(), "loop".as_ref(), file.as_os_str(), mount.as_os_str()],
        );
        Btrfs { mount: mount.into() }
    }

    fn fill_up(&self) -> [PathBuf; 2] {
        ["64k", "4k"].map(|block| {
            let path = self.mount.join(format!("ballast-{block}"));
            let mut fill = Command::new("dd");
            fill.args(["if=/dev/urandom", &format!("bs={block}")]);
            fill.arg(format!("of={}", path.display())).stderr(Stdio::null());
            let _ = fill.status();
            programs::run("sync", ["-f".as_ref(), self.mount.as_os_str()]);
            path
        })
    }
}

impl Drop for Btrfs {
    fn drop(&mut self) {
        let _ = programs::attempt("umount", ["--lazy".as_ref(), self.mount.as_os_str()]);
    }
}

#[test]
fn a_full_copy_on_write_file_system_under_the_state_ends_nothing() {
    if !(programs::root() && have(&["mkfs.btrfs", "dd"])) {
        return;
    }
    let mut btrfs = None;
    let mut stage = Stage::with(|daemon| {
        let file = daemon.state().with_extension("img");
        btrfs = Some(Btrfs::new(&file, daemon.state(), 160 * MIB));
    });
    let btrfs = btrfs.expect("it was made");
    stage.disk_with_data("a", 2048 * MIB, 64 * MIB);
    let mut checker = stage.checker("a", &CheckerOptions::gentle(200));
    let id = stage.daemon.migrate("a --to there --rate 4M");
    stage.daemon.wait_for_bytes(id, MIB);
    let ballast = btrfs.fill_up();
    // What is written behind, and what is set to be equal, is set in the map all the time.
    for _ in 0..3 {
        programs::run("sync", ["-f".as_ref(), stage.daemon.state().as_os_str()]);
        checker.wait_for_intervals(2);
    }
    stage.daemon.kill();
    stage.daemon.restart();
    checker.wait_for_intervals(2);
    for path in ballast {
        // The second is not made where the first has taken all.
        let _ = std::fs::remove_file(path);
    }
    finish(&stage, id);
    checker.finish_and_verify();
}

/// The migration goes on if it stands still, and ends.
fn finish(stage: &Stage, id: u64) {
    stage.daemon.hurry(id);
    until("the migration to end", seconds(60), || {
        let state = stage.daemon.migration(id)["state"].clone();
        if state == "paused" {
            stage.daemon.resume(id);
        }
        (state == "completed").then_some(())
    });
}

#[test]
fn a_region_map_whose_file_somebody_cuts_short_holds_nothing_up() {
    let stage = Stage::new();
    stage.disk_with_data("a", 64 * MIB, 64 * MIB);
    let mut checker = stage.checker("a", &CheckerOptions::gentle(400));
    let id = stage.daemon.migrate("a --to there --rate 8M");
    stage.daemon.wait_for_bytes(id, MIB);
    let map = stage.daemon.state().join(format!("maps/{id}.map"));
    let file = std::fs::File::options().write(true).open(&map).expect("open the map");
    file.set_len(0).expect("cut it short");
    checker.wait_for_intervals(3);
    finish(&stage, id);
    checker.finish_and_verify();
}

#[test]
fn a_disk_gets_its_account_as_soon_as_the_state_directory_has_room() {
    let Some((mut stage, state)) = Stage::given_tiny_state(64 * MIB) else { return };
    let fast = stage.tiny_fs("fast", 128 * MIB);
    stage.daemon.sterna(&format!("disk create d --size {} --on fast", 16 * MIB)).ok();
    // The daemon finds no account, and cannot make one.
    stage.daemon.kill();
    let accounts = state.dir().join("accounts");
    for account in std::fs::read_dir(&accounts).expect("the accounts") {
        std::fs::remove_file(account.expect("an account").path()).expect("remove it");
    }
    let files = state.use_up_inodes();
    stage.daemon.restart();
    let warnings = stage.daemon.warnings("disk d");
    assert!(warnings[0].contains("cannot note in"), "{warnings:?}");
    let full = stage.daemon.warnings("state");
    assert!(full[0].contains("(inodes)"), "{full:?}");
    let refused = stage.daemon.sterna("disk create e --size 1M --on fast");
    refused.fails_with(&["cannot create disk e", "(inodes)", "make room"]);
    // What the client is answered meanwhile counts, too.
    let writes = "a = connect(); a.pwrite(b'x' * (1 << 20), 8 << 20)";
    let then = "a = connect(); flushes(a)";
    let uri = stage.daemon.uri("d");
    let clients = Clients::start(&stage.scratch, &uri, writes, then);
    for file in files {
        std::fs::remove_file(file).expect("make room");
    }
    until("the account", seconds(30), || {
        stage.daemon.warnings("disk d").is_empty().then_some(())
    });
    fast.shut_down();
    stage.daemon.kill();
    until("the file system not to be in use", seconds(10), || {
        fast.unmounted().then_some(())
    });
    fast.come_back();
    stage.daemon.restart();
    assert_eq!(clients.go_on(), ["EIO", "ok"]);
}

#[test]
fn a_plan_whose_moves_find_no_room_in_the_state_directory_blames_no_datastore() {
    let Some((stage, state)) = Stage::given_tiny_state(64 * MIB) else { return };
    let daemon = &stage.daemon;
    for disk in ["d1", "d2"] {
        daemon.sterna(&format!("disk create {disk} --size 4M --on here")).ok();
    }
    let (id, _) = daemon.plan_evacuation("here --to there --space 100% --at-once 1");
    let files = state.use_up_inodes();
    daemon.sterna(&format!("plan apply {id}")).ok();
    let plan = daemon.wait_for_plan(id, "what is lacking", seconds(20), |plan| {
        plan.to_string().contains("No space left")
    });
    assert!(!plan.to_string().contains("left alone"), "{plan:#}");
    assert_eq!(plan["state"], "running", "{plan:#}");
    let waits = "waits until the state directory takes records again";
    daemon.wait_for_plan(id, "the other move to wait, too", seconds(20), |plan| {
        plan.to_string().contains(waits)
    });
    for file in files {
        std::fs::remove_file(file).expect("make room");
    }
    daemon.wait_for_plan(id, "its end", seconds(60), |plan| plan["state"] == "completed");
}
