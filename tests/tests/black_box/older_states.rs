//! The state directories of earlier versions: each is opened by this one, and nothing that
//! was in it is lost. `tests/states/keep` has made them, one for each release.
//!
//! Their images have been copied since, as after a restore from a backup: other files than
//! their sidecars know. The disks are there nevertheless, with what was written to them.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::Value;
use sterna_tests::clients::nbdsh;
use sterna_tests::programs::{self, command};
use sterna_tests::scratch::Scratch;
use sterna_tests::{Daemon, MIB};

/// Where the datastores of all kept states were.
const ROOT: &str = "/var/tmp/sterna-older-state";

/// A state directory that an earlier version has left.
struct Kept {
    daemon: Daemon,
    /// What its lists said when it was kept.
    expected: Value,
    _root: Root,
    _scratch: Scratch,
}

/// The place that paths in the state lead to; one test has it at a time.
struct Root(#[expect(dead_code, reason = "it is locked while it is open")] File);

impl Root {
    fn at(directory: &Path) -> Root {
        let lock = File::create(format!("{ROOT}.lock")).expect("make the lock");
        lock.lock().expect("wait for the lock");
        let _ = fs::remove_file(ROOT);
        symlink(directory, ROOT).expect("lead there");
        Root(lock)
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let _ = fs::remove_file(ROOT);
    }
}

impl Kept {
    fn open(archive: &Path) -> Kept {
        let scratch = Scratch::new();
        let place = scratch.path("");
        let unpacked =
            command("tar").arg("-xJf").arg(archive).arg("-C").arg(&place).status();
        assert!(
            unpacked.expect("start tar").success(),
            "cannot unpack {}",
            archive.display()
        );
        let expected = fs::read_to_string(scratch.path("expected.json"));
        let expected = expected.expect("read what is expected");
        let root = Root::at(&place);
        let mut daemon = Daemon::prepare(&scratch);
        daemon.restart();
        let expected = serde_json::from_str(&expected).expect("it is JSON");
        Kept { daemon, expected, _root: root, _scratch: scratch }
    }

    /// What a list says now of each thing that it said something of when it was kept, under
    /// this key, in these fields.
    #[track_caller]
    fn has(&self, key: &str, list: &str, fields: &[&str]) {
        let of = |all: &Value| -> Vec<Vec<Value>> {
            let rows = all.as_array().unwrap_or_else(|| panic!("{list}: {all}"));
            rows.iter()
                .map(|row| fields.iter().map(|field| row[*field].clone()).collect())
                .collect()
        };
        let now = self.daemon.json(list);
        assert_eq!(of(&now), of(&self.expected[key]), "{list}");
        assert!(!of(&now).is_empty(), "{list} has nothing to compare");
    }

    /// Whether a disk reads as this byte, from its beginning to its end.
    #[track_caller]
    fn reads(&self, disk: &str, byte: u8, size: u64) {
        let script = format!("print(h.pread({size}, 0) == bytes([{byte}]) * {size})");
        assert_eq!(nbdsh(&self.daemon.uri(disk), &script).trim(), "True", "{disk}");
    }
}

fn archives() -> Vec<PathBuf> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/states");
    let mut all: Vec<PathBuf> = fs::read_dir(directory)
        .expect("list the kept states")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|it| it == "xz"))
        .collect();
    all.sort();
    assert!(!all.is_empty(), "no state is kept in {directory}");
    all
}

#[test]
fn the_state_of_each_release_is_opened_with_all_that_is_in_it() {
    if !programs::have(&["tar", "xz", "nbdsh"]) {
        return;
    }
    for archive in archives() {
        println!("{}", archive.display());
        let mut kept = Kept::open(&archive);
        for _ in 0..2 {
            kept.has(
                "datastores",
                "datastore list",
                &["name", "location", "disks", "problem"],
            );
            kept.has(
                "disks",
                "disk list",
                &["name", "id", "size", "datastore", "provision"],
            );
            kept.has(
                "migrations",
                "migration list",
                &["id", "disk", "from", "to", "size"],
            );
            kept.has("classes", "class list", &["name", "shares", "disks"]);
            kept.has("policies", "policy list", &["id", "class", "goal", "schedule"]);
            kept.has(
                "rules",
                "storage-drs rule list",
                &["name", "wish", "strength", "disks"],
            );
            kept.has("hosts", "host list", &["name"]);
            kept.has("pools", "drs pool list", &["name"]);
            kept.has("plans", "plan list", &["id", "state", "datastore"]);
            kept.reads("db", b'A', 4 * MIB);
            kept.reads("log", b'B', 2 * MIB);
            kept.reads("moved", b'C', 2 * MIB);
            // What was brought up to date once is so at the next start, too.
            kept.daemon.stop();
            kept.daemon.restart();
        }
        // The move that stood still can be given up; its disk stays what it was.
        kept.daemon.json("migration cancel db");
        kept.reads("db", b'A', 4 * MIB);
    }
}
