//! A disk is taken from its VM while QEMU copies it: nobody writes to it any more, so
//! the old image is the whole truth, and nothing of the copy is left anywhere.

use std::path::PathBuf;
use std::time::Instant;

use serde_json::{Value, json};
use sterna_tests::vms::{Vm, ask, write_guest};
use sterna_tests::wait::seconds;
use sterna_tests::{MIB, Stage, programs, until};

/// A stage with a VM `web` that has a second disk `sda` of 64 MiB on `here`; and a
/// monitor of the test's own.
struct Unplugging {
    stage: Stage,
    _vm: Vm,
    monitor: PathBuf,
    image: PathBuf,
}

impl Unplugging {
    fn given() -> Option<Unplugging> {
        let stage = Stage::given(&["qemu-system-x86_64", "cmp"])?;
        let (first, image) = (stage.here.join("web.raw"), stage.here.join("data.raw"));
        write_guest(&first, 8 * MIB, MIB);
        write_guest(&image, 64 * MIB, 64 * MIB);
        let monitor = stage.scratch.socket("own.qmp");
        let listens = format!("unix:{},server=on,wait=off", monitor.display());
        let file = format!("driver=file,node-name=file1,filename={}", image.display());
        let more = [
            ["-qmp", &listens],
            ["-blockdev", &file],
            ["-blockdev", "driver=raw,node-name=disk1,file=file1"],
            ["-device", "virtio-scsi-pci"],
            ["-device", "scsi-hd,drive=disk1,id=sda"],
        ];
        let vm = Vm::start(&stage.scratch, "web", &first, "raw", &more.concat());
        let add = format!("vm add web --qmp {}", vm.socket().display());
        stage.daemon.sterna(&add).ok();
        Some(Unplugging { stage, _vm: vm, monitor, image })
    }

    /// Starts something with `sda` that goes on by itself; gives its number.
    fn begins(&self, line: &str) -> u64 {
        let started = self.stage.daemon.json(&format!("{line} --detach"));
        let id = started["id"].as_u64().expect("a number");
        self.stage.daemon.wait_for(id, "copying", seconds(20));
        id
    }

    fn unplug(&self) {
        let arguments = json!({ "id": "sda" });
        ask(&self.monitor, &json!({ "execute": "device_del", "arguments": arguments }));
    }

    /// The move has ended soon, says why, and has left nothing.
    fn ends_and_leaves_nothing(&self, id: u64) {
        let began = Instant::now();
        let ended = self.stage.daemon.wait_for(id, "cancelled", seconds(10));
        assert!(began.elapsed() < seconds(5), "{:?}", began.elapsed());
        let why = ended["reason"].as_str().expect("why");
        let image = self.image.display().to_string();
        assert!(why.contains("removed from web") && why.contains(&image), "{why}");
        assert_eq!(ended["unclear"], Value::Bool(false), "{ended:#}");
        let asks = |command: &str| ask(&self.monitor, &json!({ "execute": command }));
        assert_eq!(asks("query-jobs"), json!([]));
        let nodes = asks("query-named-block-nodes").to_string();
        assert!(!nodes.contains("sterna-"), "{nodes}");
        assert_eq!(self.stage.files_there(), Vec::<String>::new());
        let warned = &self.stage.daemon.json("status")["warnings"];
        assert!(!warned.to_string().contains("web"), "{warned:#}");
    }
}

#[test]
fn a_disk_that_is_unplugged_while_it_moves_ends_its_move() {
    let Some(it) = Unplugging::given() else { return };
    let before = it.stage.scratch.path("before");
    std::fs::copy(&it.image, &before).expect("copy an image");
    let id = it.begins("vm move web sda --to there --rate 4M");
    it.unplug();
    it.ends_and_leaves_nothing(id);
    let [before, image] = [&before, &it.image].map(|path| path.display().to_string());
    programs::run("cmp", [&before, &image]);
}

#[test]
fn a_disk_that_is_unplugged_while_its_copy_waits_for_the_switch_over_ends_its_move() {
    let Some(it) = Unplugging::given() else { return };
    let id = it.begins("vm move web sda --to there --rate 4M");
    it.stage.daemon.pause(id);
    // A limit that somebody else lifts: the copy is whole, and waits.
    let jobs = ask(&it.monitor, &json!({ "execute": "query-jobs" }));
    let arguments = json!({ "device": jobs[0]["id"], "speed": 0 });
    let lift = json!({ "execute": "block-job-set-speed", "arguments": arguments });
    until("both images to be the same", seconds(20), || {
        // The daemon may set its own a moment later.
        ask(&it.monitor, &lift);
        let jobs = ask(&it.monitor, &json!({ "execute": "query-jobs" }));
        (jobs[0]["status"] == "ready").then_some(())
    });
    it.unplug();
    it.ends_and_leaves_nothing(id);
}

#[test]
fn a_disk_that_is_unplugged_while_it_is_adopted_leaves_no_disk_of_sternas() {
    let Some(it) = Unplugging::given() else { return };
    let id = it.begins("vm adopt web sda --on there --rate 4M");
    it.unplug();
    it.ends_and_leaves_nothing(id);
    assert_eq!(it.stage.daemon.json("disk list"), json!([]));
}
