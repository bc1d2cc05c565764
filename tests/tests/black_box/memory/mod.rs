//! The memory of VMs goes out to swap, and comes back as it was.
//!
//! Swap is the whole host's: these tests take turns. QEMU itself puts data into the guest's
//! memory and reads it, so that no guest system is needed.

mod balloon;
mod counting;
mod of_libvirt;
mod sharing;
mod waking;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::fs::{FlockOperation, flock};
use serde_json::{Value, json};

use sterna_tests::images::write_image;
use sterna_tests::places::Loop;
use sterna_tests::random::Random;
use sterna_tests::vms::{Vm, ask, write_guest};
use sterna_tests::wait::seconds;
use sterna_tests::{MIB, Stage, programs, until};

/// What of the guest's memory has data, and where that begins.
const DATA: u64 = 48 * MIB;
const DATA_AT: u64 = 64 * MIB;

/// More than the memory of the VM.
const TIER: &str = "--on here --size 512M";

/// A control group of its own (version 1), of which the kernel can be told to free memory.
struct ControlGroup(PathBuf);

impl ControlGroup {
    /// Where this machine has none, the test is skipped.
    fn new(name: &str) -> Option<ControlGroup> {
        let place = Path::new("/sys/fs/cgroup/memory");
        if !programs::root() {
            return None;
        }
        if !place.join("tasks").exists() {
            programs::skip("no memory controller of control groups, version 1");
            return None;
        }
        let group = ControlGroup(place.join(name));
        std::fs::create_dir_all(&group.0).expect("make a control group");
        Some(group)
    }

    /// Programs that `start` starts are in the group.
    fn with<T>(&self, start: impl FnOnce() -> T) -> T {
        let thread = rustix::thread::gettid().as_raw_nonzero().to_string();
        let enter = |group: &Path| {
            std::fs::write(group.join("tasks"), &thread).expect("enter a control group");
        };
        enter(&self.0);
        let started = start();
        enter(self.0.parent().expect("the root"));
        started
    }

    /// Frees what can be freed.
    fn empty(&self) {
        std::fs::write(self.0.join("memory.force_empty"), "0").expect("empty the group");
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// Waits until no other test swaps, of this process or of another one: until the file is closed.
pub(crate) fn turn() -> File {
    let file = File::create(std::env::temp_dir().join("sterna-tests-swap"));
    let file = file.expect("make the file of turns");
    flock(&file, FlockOperation::LockExclusive).expect("wait for a turn");
    file
}

/// A daemon, a swap tier, and a VM with data in its memory.
struct Scene {
    vm: Vm,
    data: Vec<u8>,
    stage: Stage,
    _turn: File,
}

impl Scene {
    /// Sets it, if that can be done here; else the test is skipped.
    fn set() -> Option<Scene> {
        Scene::set_with(|stage, disk, more| {
            Vm::start(&stage.scratch, "db", disk, "raw", more)
        })
    }

    /// The same with a VM that is started so, on this image and with more arguments.
    fn set_with(start: impl FnOnce(&Stage, &Path, &[&str]) -> Vm) -> Option<Scene> {
        let turn = turn();
        let mut others = swap_in(Path::new("/"));
        others.retain(|file| file.to_string_lossy().contains("sterna-swap-"));
        assert!(others.is_empty(), "another test's swap is in use: {others:?}");
        let stage = Stage::given_root(&["qemu-system-x86_64", "mkswap", "swapon"])?;
        if !can_swap(&stage.scratch.path("probe")) {
            programs::skip("this machine lets nobody add swap");
            return None;
        }
        let disk = stage.scratch.path("vm.raw");
        write_guest(&disk, 8 * MIB, MIB);
        let mut random = Random::of_this_run();
        let data: Vec<u8> =
            (0..DATA / 8).flat_map(|_| random.word().to_le_bytes()).collect();
        let file = stage.scratch.path("data");
        std::fs::write(&file, &data).expect("write the data");
        let loader =
            format!("loader,file={},addr={DATA_AT},force-raw=on", file.display());
        let more = ["-m", "192", "-device", &loader];
        let vm = start(&stage, &disk, &more);
        let socket = vm.socket().display().to_string();
        stage.daemon.sterna(&format!("vm add db --qmp {socket}")).ok();
        stage.daemon.sterna(&format!("swap add fast {TIER}")).ok();
        Some(Scene { vm, data, stage, _turn: turn })
    }

    fn memory(&self) -> Value {
        self.stage.daemon.json("memory show db")
    }

    fn out(&self) -> u64 {
        self.memory()["out"].as_u64().expect("bytes")
    }

    /// The guest's memory is what it was.
    #[track_caller]
    fn memory_is_whole(&self) {
        assert!(self.read(DATA) == self.data, "the guest's memory has changed");
    }

    /// The first bytes of the data, which QEMU reads as its guest would.
    fn read(&self, bytes: u64) -> Vec<u8> {
        let file = self.stage.scratch.path("seen");
        let saved = json!({ "execute": "pmemsave", "arguments": {
            "val": DATA_AT, "size": bytes, "filename": file.display().to_string(),
        }});
        ask(self.vm.socket(), &saved);
        std::fs::read(&file).expect("read what was saved")
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        // What is out comes back to memory slowly otherwise.
        self.vm.kill();
        drop(SwapEnds(&self.stage));
    }
}

/// Removes a stage's tier `fast` when it is dropped.
struct SwapEnds<'s>(&'s Stage);

impl Drop for SwapEnds<'_> {
    fn drop(&mut self) {
        let removed = self.0.daemon.sterna("swap remove fast");
        // Swap that stays takes half of what the next test sends out.
        for left in swap_in(&self.0.scratch.path("")) {
            eprintln!("{} is still swapped to: {removed:?}", left.display());
            programs::run("swapoff", [&left]);
        }
    }
}

#[test]
fn a_vms_memory_goes_out_and_comes_back_as_it_was() {
    let Some(scene) = Scene::set() else { return };
    let slept = scene.stage.daemon.sterna("memory sleep db").ok().stdout;
    assert!(slept.contains("VM db is asleep"), "{slept}");
    let asleep = scene.memory();
    let (out, resident) = (scene.out(), asleep["resident"].as_u64().expect("bytes"));
    assert!(out >= DATA && resident < 8 * MIB, "{asleep}");
    assert_eq!(asleep["out_on"][0]["tier"], "fast", "{asleep}");
    assert!(asleep["wake_all_s"].as_f64().is_some_and(|time| time > 0.0), "{asleep}");
    // Fresh swap, and addresses in order: few pieces.
    let runs = asleep["out_on"][0]["runs"].as_u64().expect("a number");
    assert!(runs <= 2 * out / MIB, "{runs} runs of {out} bytes");
    let woke = scene.stage.daemon.sterna("memory wake db").ok().stdout;
    assert!(woke.contains("all its memory is back"), "{woke}");
    assert_eq!(scene.out(), 0);
    scene.memory_is_whole();
}

#[test]
fn a_vm_that_needs_its_memory_wakes_by_itself() {
    let Some(group) = ControlGroup::new("sterna-test-wakes") else { return };
    let Some(scene) = group.with(Scene::set) else { return };
    scene.stage.daemon.sterna("memory sleep db --all").ok();
    assert!(scene.out() >= DATA);
    // Until somebody needs the room, the kernel has what is out in memory as well.
    group.empty();
    // A third of it is asked for, and all comes back.
    scene.read(DATA / 3);
    until("the VM to be woken", seconds(20), || {
        let memory = scene.memory();
        (memory["state"] == "waking" && memory["out"] == 0).then_some(())
    });
    scene.memory_is_whole();
}

#[test]
fn a_daemon_that_is_killed_leaves_a_vm_that_lives_and_the_next_one_wakes_it() {
    let Some(mut scene) = Scene::set() else { return };
    scene.stage.daemon.sterna("memory sleep db --all").ok();
    scene.stage.daemon.kill();
    scene.memory_is_whole();
    scene.stage.daemon.restart();
    let memory = scene.memory();
    assert!(memory["asleep_since"].is_u64(), "{memory}");
    scene.stage.daemon.sterna("memory wake db").ok();
    assert_eq!(scene.out(), 0);
    scene.memory_is_whole();
}

#[test]
fn a_tier_that_is_removed_gives_back_what_was_there() {
    let Some(scene) = Scene::set() else { return };
    scene.stage.daemon.sterna("memory sleep db --all").ok();
    let file = PathBuf::from(tier(&scene)["path"].as_str().expect("a path"));
    assert!(file.exists());
    scene
        .stage
        .daemon
        .sterna("datastore remove here")
        .fails_with(&["swap tier fast is on"]);
    scene.stage.daemon.sterna("swap remove fast").ok();
    assert!(!file.exists());
    assert_eq!(scene.out(), 0);
    scene.memory_is_whole();
    scene.stage.daemon.sterna("memory sleep db").fails_with(&["there is no swap tier"]);
    scene.stage.daemon.sterna(&format!("swap add fast {TIER}")).ok();
}

#[test]
fn what_cannot_be_swapped_to_is_refused_and_nothing_stays() {
    let Some(scene) = Scene::set() else { return };
    let (daemon, scratch) = (&scene.stage.daemon, &scene.stage.scratch);
    daemon.sterna(&format!("swap add fast {TIER}")).fails_with(&["already"]);
    daemon.sterna("swap add other --on here --size 1M").fails_with(&["too small"]);
    daemon.sterna("swap add other --on nowhere --size 1G").fails_with(&["nowhere"]);
    daemon
        .sterna("swap add other --on here --size 900T")
        .fails_with(&["cannot make the swap file"]);
    daemon.sterna("swap add other --device /dev/null").fails_with(&["no block device"]);
    daemon.sterna("memory sleep nobody").fails_with(&["nobody"]);
    daemon.sterna("memory wake db --hold 1min").fails_with(&["too long"]);
    let memory = tempfile::tempdir_in("/dev/shm").expect("a directory in memory");
    daemon.sterna(&format!("datastore add shm {}", memory.path().display())).ok();
    daemon.sterna("swap add other --on shm --size 64M").fails_with(&["in memory"]);
    assert_eq!(daemon.json("swap list").as_array().map(Vec::len), Some(1));
    let left = |at: &Path| std::fs::read_dir(at).into_iter().flatten().flatten().count();
    assert_eq!(left(memory.path()), 1, "the datastore's mark");
    assert!(!scratch.path("here").join("sterna-swap-other").exists());
}

#[test]
fn a_device_is_a_tier_if_nothing_is_on_it() {
    let Some(scene) = Scene::set() else { return };
    if !programs::have(&["losetup", "mkfs.ext4", "wipefs"]) {
        return;
    }
    let (daemon, scratch) = (&scene.stage.daemon, &scene.stage.scratch);
    let device = Loop::new(&scratch.path("device.img"), 128 * MIB);
    let path = device.device().to_str().expect("a plain path").to_owned();
    programs::run("mkfs.ext4", ["-q", &path]);
    let add = format!("swap add raw --device {path}");
    daemon.sterna(&add).fails_with(&["has something on it: ext4"]);
    programs::run("wipefs", ["--all", &path]);
    daemon.sterna(&format!("datastore add store {path}")).ok();
    daemon.sterna(&add).fails_with(&["datastore store"]);
    daemon.sterna("datastore remove store").ok();
    // A name of a volume is a link, and the kernel lists what it leads to.
    let link = scratch.path("volume");
    std::os::unix::fs::symlink(&path, &link).expect("make a link");
    daemon.sterna(&format!("swap add raw --device {}", link.display())).ok();
    let tiers = daemon.json("swap list");
    let all = tiers.as_array().expect("tiers");
    let is_used = |tier: &Value| tier["priority"].is_number();
    assert!(all.len() == 2 && all.iter().all(is_used), "{tiers}");
    daemon.sterna("swap remove raw").ok();
}

#[test]
fn a_file_that_somebody_has_put_in_a_tiers_place_is_neither_used_nor_removed() {
    let Some(mut scene) = Scene::set() else { return };
    let file = PathBuf::from(tier(&scene)["path"].as_str().expect("a path"));
    scene.stage.daemon.kill();
    // As after a restart of the host.
    programs::run("swapoff", [&file]);
    let away = scene.stage.scratch.path("away");
    std::fs::rename(&file, &away).expect("move the tier's file away");
    std::fs::write(&file, vec![7; MIB as usize]).expect("write another file");
    scene.stage.daemon.restart();
    until("the daemon to look at its tiers", seconds(20), || {
        scene.stage.daemon.log().contains("swap tier is not in use").then_some(())
    });
    assert!(tier(&scene)["priority"].is_null());
    scene.stage.daemon.sterna("swap remove fast").ok();
    assert_eq!(std::fs::read(&file).expect("it is there"), vec![7; MIB as usize]);
    std::fs::remove_file(&file).expect("remove it");
    scene.stage.daemon.sterna(&format!("swap add fast {TIER}")).ok();
}

#[test]
fn a_tier_without_room_takes_nothing_and_all_stays() {
    let Some(scene) = Scene::set() else { return };
    let daemon = &scene.stage.daemon;
    daemon.sterna("swap remove fast").ok();
    daemon.sterna("swap add fast --on here --size 64M").ok();
    daemon.sterna("memory sleep db --all").fails_with(&["do not fit", "room for"]);
    assert_eq!(scene.out(), 0);
    assert_eq!(scene.memory()["state"], "awake");
    scene.memory_is_whole();
}

#[test]
fn the_second_time_nothing_is_written_that_has_not_changed() {
    let Some(scene) = Scene::set() else { return };
    scene.stage.daemon.sterna("memory sleep db --all").ok();
    scene.stage.daemon.sterna("memory wake db").ok();
    let used = tier(&scene)["used"].as_u64().expect("bytes");
    let began = Instant::now();
    scene.stage.daemon.sterna("memory sleep db --all").ok();
    println!("the second time it took {:?}", began.elapsed());
    // The slots of before are used again.
    let now = tier(&scene)["used"].as_u64().expect("bytes");
    assert!(now <= used + 8 * MIB, "{now} bytes are in use, and {used} were");
}

/// Whether the kernel swaps to a file here: in a container it may not.
fn can_swap(file: &Path) -> bool {
    write_image(file, MIB, MIB);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(file, mode).expect("make it private");
    let run = |program| programs::command(program).arg(file).output();
    let is_done = |program| run(program).is_ok_and(|output| output.status.success());
    is_done("mkswap") && is_done("swapon") && is_done("swapoff")
}

/// The files below this directory that the kernel swaps to.
fn swap_in(directory: &Path) -> Vec<PathBuf> {
    let table = std::fs::read_to_string("/proc/swaps").expect("the kernel's table");
    let files = table.lines().filter_map(|line| line.split_whitespace().next());
    files.map(PathBuf::from).filter(|file| file.starts_with(directory)).collect()
}

fn tier(scene: &Scene) -> Value {
    scene.stage.daemon.json("swap list")[0].clone()
}

#[test]
fn what_qemu_itself_has_out_comes_back_as_well() {
    let Some(group) = ControlGroup::new("sterna-test-own") else { return };
    let Some(scene) = group.with(Scene::set) else { return };
    let daemon = &scene.stage.daemon;
    let out = || daemon.json("top --by vm --count 1")["vms"][0]["out"].as_u64();
    until("the VM's process to be seen", seconds(30), || out().filter(|out| *out == 0));
    daemon.sterna("memory sleep db --all").ok();
    let of_guest = scene.out();
    // This takes out all that the processes of the group can do without, of a QEMU that stands
    // still all.
    scene.vm.hang();
    group.empty();
    until("QEMU's own memory to be out", seconds(20), || {
        out().filter(|out| *out > of_guest + MIB)
    });
    scene.vm.go_on();
    daemon.sterna("memory wake db").ok();
    until("QEMU's own memory to be back", seconds(30), || {
        out().filter(|out| *out < of_guest + MIB)
    });
    scene.memory_is_whole();
}
