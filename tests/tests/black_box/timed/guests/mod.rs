//! A guest with a database under load, whose disks move: nothing is lost, and nobody
//! complains.
//!
//! The database's data, indexes and log are on a disk each. While customers shop, the
//! disks go to another datastore and back. At the end every order that was acknowledged
//! must be there, and neither the guest's kernel nor its file systems nor PostgreSQL may
//! have anything to say.
//!
//! These tests take turns, and are the longest: `scripts/test` begins them as early as it can.

mod svmotion;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;
use serde_json::Value;
use sterna_tests::daemon::send_signal;
use sterna_tests::guest::DISKS;
use sterna_tests::programs::sterna;
use sterna_tests::wait::{seconds, until};
use sterna_tests::{Answer, Guest, MIB, Stage};

/// How large the disks are, in the order of [`DISKS`].
const SIZES: [u64; 3] = [160 * MIB, 64 * MIB, 128 * MIB];

/// How the guest reaches its disks.
#[derive(Clone, Copy)]
enum Way {
    Nbd,
    VhostUser,
    /// QEMU serves them itself, from files.
    Qemu,
}

/// A store in a guest, with customers.
struct Shop {
    /// Before the guest and the daemon under it.
    customers: Child,
    orders: PathBuf,
    guest: Guest,
    stage: Stage,
}

impl Shop {
    /// Opens one on three disks.
    #[track_caller]
    fn open(way: Way) -> Option<Shop> {
        let stage = Stage::new();
        let mut disks = Vec::new();
        for (name, size) in DISKS.into_iter().zip(SIZES) {
            disks.extend(match way {
                Way::Qemu => served_by_qemu(&stage, name, size),
                Way::Nbd => served(&stage, name, size, "nbd"),
                Way::VhostUser => served(&stage, name, size, "vhost-user"),
            });
        }
        let qmp = stage.scratch.socket("qmp");
        disks.extend([
            "-qmp".into(),
            format!("unix:{},server=on,wait=off", qmp.display()),
        ]);
        let mut guest = Guest::given(&stage.scratch, &disks)?;
        guest.run("database make");
        let uri = guest.uri();
        let spaces = "--data-tablespace data --index-tablespace idx";
        bench(&uri, &format!("--size 1M --minutes 0 {spaces}"));
        let orders = stage.scratch.path("orders");
        let customers = Command::new(sterna())
            .args(["bench", "dvdstore", "--json", "--uri", &uri, "--size", "1M"])
            // They think: an emulated processor that is always busy copies no faster.
            .args("--users 2 --think 0.1 --warm-up 0 --minutes 60".split(' '))
            .args(spaces.split(' '))
            .arg("--acknowledged")
            .arg(&orders)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("start sterna");
        let mut shop = Shop { customers, orders, guest, stage };
        shop.sells();
        Some(shop)
    }

    /// Moves these disks side by side, and sees that the store still sells.
    #[track_caller]
    fn move_to(&mut self, disks: &[&str], to: &str) {
        let daemon = &self.stage.daemon;
        let begin = |disk: &&str| daemon.migrate(&format!("{disk} --to {to}"));
        let moves: Vec<u64> = disks.iter().map(begin).collect();
        for (disk, id) in disks.iter().zip(moves) {
            daemon.completed(id);
            assert_eq!(daemon.disk(disk)["datastore"], to);
        }
        self.sells();
    }

    /// Waits until some more orders are acknowledged.
    #[track_caller]
    fn sells(&mut self) {
        let before = acknowledged(&self.orders);
        until("orders to be acknowledged", seconds(60), || {
            let ended = self.customers.try_wait().expect("ask for sterna");
            assert!(ended.is_none(), "sterna ended: {ended:?}");
            (acknowledged(&self.orders) >= before + 5).then_some(())
        });
    }

    /// The customers leave; all that they bought must be there, and nothing wrong.
    #[track_caller]
    fn close(mut self) {
        send_signal(&self.customers, Signal::INT);
        let output = self.customers.wait_with_output().expect("wait for sterna");
        let report = Answer::new("sterna bench dvdstore".into(), &output).ok().json();
        println!("{} orders, {} a second", report["orders"], report["orders_per_s"]);
        assert_eq!(report["errors"], Value::Array(Vec::new()));
        assert_eq!(report["server"]["durable"], true);
        // Started anew, the server reads from its disks what it had in its memory.
        self.guest.run("database stop");
        self.guest.run("database complaints");
        self.guest.run("database start");
        bench(&self.guest.uri(), &format!("--check {}", self.orders.display()));
        self.guest.run("database verdict");
    }
}

/// QEMU's arguments for a disk of Sterna's on the way of this name, with the disk's name
/// for a serial number.
#[track_caller]
fn served(stage: &Stage, disk: &str, size: u64, name: &str) -> Vec<String> {
    stage.disk(disk, size);
    if name == "vhost-user" {
        let socket = stage.scratch.socket(disk);
        let line = format!("disk attach {disk} --vhost-user {}", socket.display());
        stage.daemon.sterna(&line).ok();
    }
    let ways = stage.daemon.json(&format!("disk qemu-args {disk}"));
    let mut ways = ways.as_array().expect("ways in").iter();
    let found = ways.find(|way| way["way"] == name).expect("the way asked for");
    let words = found["arguments"].as_array().expect("arguments");
    let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
    // The guest's memory is shared once for all of its disks.
    let of_disk = |pair: &&[&str]| !["-object", "-machine"].contains(&pair[0]);
    let word = |word: &&str| match word.starts_with("virtio-blk-pci") {
        // What the daemon says itself on the other way.
        true => format!("{word},serial={disk}"),
        false => (*word).to_owned(),
    };
    words.chunks(2).filter(of_disk).flatten().map(word).collect()
}

/// QEMU's arguments for a disk of its own: a raw file.
#[track_caller]
fn served_by_qemu(stage: &Stage, disk: &str, size: u64) -> Vec<String> {
    let path = stage.scratch.path(&format!("{disk}.raw"));
    let file = File::create(&path).expect("make a disk");
    file.set_len(size).expect("make it large");
    let file = format!("driver=file,node-name={disk}-file,filename={}", path.display());
    let raw = format!("driver=raw,node-name={disk}-raw,file={disk}-file");
    let device = format!("virtio-blk-pci,drive={disk}-raw,id={disk},serial={disk}");
    ["-blockdev", &file, "-blockdev", &raw, "-device", &device].map(str::to_owned).into()
}

/// How many orders are in a file of them.
fn acknowledged(file: &Path) -> usize {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().filter(|line| !line.starts_with('#')).count()
}

/// Runs `sterna bench dvdstore` to its end.
#[track_caller]
fn bench(uri: &str, arguments: &str) {
    let output = Command::new(sterna())
        .args(["bench", "dvdstore", "--uri", uri])
        .args(arguments.split(' '))
        .stdin(Stdio::null())
        .output()
        .expect("start sterna");
    Answer::new(format!("sterna bench dvdstore {arguments}"), &output).ok();
}

#[test]
fn a_database_under_load_survives_moves_of_its_disks() {
    let Some(mut shop) = Shop::open(Way::VhostUser) else { return };
    for disk in DISKS {
        shop.move_to(&[disk], "there");
    }
    shop.move_to(&DISKS, "here");
    for round in 0..10 {
        let to = if round % 2 == 0 { "there" } else { "here" };
        shop.move_to(&["data"], to);
    }
    shop.close();
}

#[test]
fn a_database_under_load_survives_a_daemon_that_is_killed_in_the_middle_of_a_move() {
    for way in [Way::VhostUser, Way::Nbd] {
        let Some(mut shop) = Shop::open(way) else { return };
        let slow = |disk: &&str| format!("{disk} --to there --rate 20M");
        let begin = |disk| shop.stage.daemon.migrate(&slow(disk));
        let moves: Vec<u64> = DISKS.iter().map(begin).collect();
        shop.stage.daemon.wait_for_bytes(moves[0], 8 * MIB);
        shop.stage.daemon.kill();
        shop.stage.daemon.restart();
        for id in moves {
            shop.stage.daemon.hurry(id);
            shop.stage.daemon.completed(id);
        }
        shop.sells();
        shop.close();
    }
}

#[test]
fn a_database_under_load_survives_that_its_disks_are_adopted_moved_and_released() {
    let Some(mut shop) = Shop::open(Way::Qemu) else { return };
    let qmp = shop.stage.scratch.socket("qmp");
    shop.stage.daemon.sterna(&format!("vm add shop --qmp {}", qmp.display())).ok();
    for disk in DISKS {
        shop.stage.daemon.sterna(&format!("vm adopt shop {disk} --on here")).ok();
        shop.sells();
    }
    for round in 0..10 {
        let to = if round % 2 == 0 { "there" } else { "here" };
        shop.move_to(&["shop-data"], to);
    }
    shop.move_to(
        &DISKS.map(|disk| format!("shop-{disk}")).each_ref().map(|it| &**it),
        "there",
    );
    for disk in DISKS {
        let file = shop.stage.scratch.path(&format!("{disk}-again.raw"));
        let line = format!("vm release shop {disk} --to {}", file.display());
        shop.stage.daemon.sterna(&line).ok();
        shop.sells();
    }
    // Its disks are files again, so it does not need the daemon.
    shop.stage.daemon.kill();
    shop.sells();
    shop.close();
}
