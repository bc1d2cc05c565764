//! A process that is killed while it writes its region map leaves it whole.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use sterna_core::DiskId;
use sterna_core::mirror::{RegionMap, Stored};
use sterna_engine::boot::BootId;
use sterna_engine::mirror::{MapFile, MapKey};

/// Tells the child process, which is this program again, where the map is.
const CHILD: &str = "STERNA_TEST_MAP";
const KEY: MapKey =
    MapKey { migration: 1, disk: DiskId(2), size: 1 << 26, region: 65536 };
const BOOT: BootId = BootId([3; 16]);

/// The child: sets regions as fast as it can, until it is killed.
fn write_forever(path: &Path) {
    let mut map = MapFile::open(path, KEY).unwrap();
    println!("ready");
    for step in 0u64.. {
        let state = Stored::from_bits((step / KEY.regions()) as u8);
        map.set(step * 7 % KEY.regions(), state);
    }
}

#[test]
fn a_kill_at_any_moment_leaves_every_word_whole() {
    if let Some(path) = std::env::var_os(CHILD) {
        return write_forever(Path::new(&path));
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("1.map");
    drop(MapFile::create(&path, KEY, BOOT).unwrap());
    for round in 0..30u64 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "a_kill_at_any_moment_leaves_every_word_whole",
                "--nocapture",
            ])
            .env(CHILD, &path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = child.stdout.take().unwrap();
        let (mut text, mut byte) = (String::new(), [0]);
        while !text.contains("ready") && output.read(&mut byte).unwrap() == 1 {
            text.push(char::from(byte[0]));
        }
        assert!(text.contains("ready"), "the child did not begin: {text}");
        std::thread::sleep(Duration::from_micros(round * 137));
        child.kill().unwrap();
        child.wait().unwrap();
        MapFile::open(&path, KEY).unwrap();
    }
}
