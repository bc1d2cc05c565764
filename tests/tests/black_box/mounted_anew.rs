//! A file system that is mounted anew while no daemon is there. What clients were answered and
//! had not flushed may be gone then: each is told, and nobody is told without a need.

use sterna_tests::clients::{Clients, nbdsh};
use sterna_tests::places::TinyFs;
use sterna_tests::wait::seconds;
use sterna_tests::{MIB, Stage, until};

const SIZE: u64 = 16 * MIB;

/// How the daemon ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Killed,
    Stopped,
}

/// What becomes of the file system meanwhile.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    /// It fails before the daemon ends, and is mounted anew.
    Fails,
    /// It is unmounted in good order.
    Unmounted,
    /// It stays.
    Stays,
}

/// Two clients that write, of which nothing is flushed unless `flushes`; what becomes of their
/// flushes, and of that of a third one that comes later, at the next daemon.
#[track_caller]
fn told(
    make: &str,
    end: End,
    fate: Fate,
    flushes: bool,
) -> Option<(Vec<String>, String)> {
    let mut stage = Stage::given_root(&["losetup", make, "/usr/bin/python3"])?;
    let (file, mount) = (stage.scratch.path("fast.img"), stage.scratch.path("fast"));
    let fast = match make {
        "mkfs.xfs" => TinyFs::xfs(&file, &mount, 320 * MIB),
        _ => TinyFs::new(&file, &mount, 128 * MIB),
    };
    stage.datastore("fast", mount.display());
    stage.daemon.sterna(&format!("disk create d --size {SIZE} --on fast")).ok();
    let uri = stage.daemon.uri("d");
    nbdsh(&uri, "h.pwrite(b'-' * (1 << 20), 0); h.flush()");
    let flush = if flushes { "; a.flush()" } else { "" };
    let writes = format!(
        "a, b = connect(), connect(); a.pwrite(b'x' * (1 << 20), 8 << 20){flush}"
    );
    let then = "a, b = connect(), connect(); flushes(a); flushes(b); flushes(connect())";
    let clients = Clients::start(&stage.scratch, &uri, &writes, then);
    if fate == Fate::Fails {
        fast.shut_down();
    }
    match end {
        End::Killed => stage.daemon.kill(),
        End::Stopped => stage.daemon.stop(),
    }
    if fate != Fate::Stays {
        until("the file system not to be in use", seconds(10), || {
            fast.unmounted().then_some(())
        });
        fast.come_back();
    }
    stage.daemon.restart();
    let heard = clients.go_on();
    let warning = stage.daemon.warnings("disk d").pop().unwrap_or_default();
    Some((heard, warning))
}

const EACH: [&str; 6] = ["EIO", "ok", "EIO", "ok", "ok", "ok"];
const NOBODY: [&str; 6] = ["ok"; 6];

#[test]
fn what_a_failed_file_system_did_not_keep_each_client_is_told() {
    for (make, end) in [
        ("mkfs.ext4", End::Killed),
        ("mkfs.ext4", End::Stopped),
        ("mkfs.xfs", End::Killed),
        ("mkfs.xfs", End::Stopped),
    ] {
        let Some((heard, warning)) = told(make, end, Fate::Fails, false) else { return };
        assert_eq!(heard, EACH, "{make} {end:?}");
        let why = match end {
            End::Killed => "mounted anew",
            End::Stopped => "a flush of its image failed",
        };
        assert!(warning.contains(why), "{make} {end:?}: {warning}");
    }
}

#[test]
fn nobody_is_told_of_what_was_flushed_or_is_still_there() {
    for (end, fate, flushes) in [
        (End::Killed, Fate::Fails, true),
        (End::Stopped, Fate::Fails, true),
        (End::Stopped, Fate::Unmounted, false),
        (End::Killed, Fate::Stays, false),
        (End::Stopped, Fate::Stays, false),
    ] {
        let Some((heard, warning)) = told("mkfs.ext4", end, fate, flushes) else {
            return;
        };
        assert_eq!(heard, NOBODY, "{end:?} {fate:?} {flushes}: {warning}");
    }
}
