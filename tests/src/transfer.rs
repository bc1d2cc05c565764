//! A guest that goes from one QEMU to another, and somebody who watches it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::between::Between;
use crate::stage::{MIB, Stage};
use crate::vms::{Vm, is_written, number_on, write_guest};
use crate::wait::{seconds, until};

/// What is wrong is said within this.
pub const REPORTED: Duration = seconds(5);

/// So slow that a guest of a few MiB is on its way for a while.
pub const SLOW: &str = "--rate 64K --detach";

/// The monitor that people have of the guest's QEMU.
pub const PEOPLE: &str = "people.qmp";

/// A guest `web` that runs on host `a`, and must be on `b`. Its disk is Sterna's.
pub struct Setting {
    /// Its daemon, and directories.
    pub stage: Stage,
    /// The QEMU that it runs in at first.
    pub source: Vm,
    /// What is seen of what it writes.
    pub watched: Watched,
    /// Its disk.
    pub image: PathBuf,
}

/// Somebody who reads the guest's number all the time: it grows. A guest that went back, or
/// ran twice, would write a smaller one.
pub struct Watched {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Option<(u32, u32)>>>,
}

impl Watched {
    fn start(image: &Path) -> Watched {
        let (image, stop) = (image.to_owned(), Arc::new(AtomicBool::new(false)));
        let stopped = stop.clone();
        let thread = thread::spawn(move || {
            let mut last = 0;
            while !stopped.load(Ordering::SeqCst) {
                let now = number_on(&image);
                if now < last {
                    return Some((last, now));
                }
                last = now;
                thread::sleep(Duration::from_millis(1));
            }
            None
        });
        Watched { stop, thread: Some(thread) }
    }

    /// It never went back.
    #[track_caller]
    pub fn went_on(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let thread = self.thread.take().expect("it was not asked yet");
        assert_eq!(thread.join().expect("it ends"), None, "the guest went back");
    }
}

impl Setting {
    /// With the VM known by its socket, or by one that leads to it.
    pub fn new(between: bool) -> Option<(Setting, Option<Between>)> {
        let stage = Stage::given(&["qemu-system-x86_64"])?;
        let image = stage.here.join("web.raw");
        write_guest(&image, 64 * MIB, 8 * MIB);
        let line = format!("disk import web --on here {}", image.display());
        stage.daemon.sterna(&line).ok();
        let nbd = stage.daemon.nbd_socket();
        let source = Vm::start_on_export(&stage.scratch, "web", nbd, "web", &[]);
        Some(Setting::known(stage, source, image, between))
    }

    /// With a disk that is a file which QEMU opens itself, and a monitor for people.
    pub fn on_a_file() -> Option<Setting> {
        let stage = Stage::given(&["qemu-system-x86_64", "python3"])?;
        let image = stage.scratch.path("web.raw");
        write_guest(&image, 64 * MIB, 8 * MIB);
        let people = stage.scratch.socket(PEOPLE);
        let more = ["-qmp", &format!("unix:{},server=on,wait=off", people.display())];
        let source = Vm::start(&stage.scratch, "web", &image, "raw", &more);
        Some(Setting::known(stage, source, image, false).0)
    }

    /// Once DRS knows of it.
    fn known(
        stage: Stage,
        source: Vm,
        image: PathBuf,
        between: bool,
    ) -> (Setting, Option<Between>) {
        until("the guest to write", seconds(60), || {
            (number_on(&image) > 0).then_some(())
        });
        let between =
            between.then(|| Between::start(&stage.scratch, "a", source.socket()));
        let socket = between.as_ref().map_or(source.socket(), Between::socket);
        stage.daemon.sterna(&format!("vm add web --qmp {}", socket.display())).ok();
        for host in ["a", "b"] {
            stage.daemon.sterna(&format!("host add {host} --cpu 4 --memory 256M")).ok();
        }
        stage.daemon.sterna("drs set --round 1s --hold 1 --cooldown 1s").ok();
        stage.daemon.sterna("host assign a web").ok();
        stage.daemon.sterna("drs rule host pin web --on b --must").ok();
        let watched = Watched::start(&image);
        let setting = Setting { stage, source, watched, image };
        setting.recommended();
        (setting, between)
    }

    /// Waits until it is recommended to move it.
    #[track_caller]
    pub fn recommended(&self) {
        let began = Instant::now();
        until("a move to be recommended", seconds(60), || {
            let told = self.stage.daemon.json("drs recommend");
            let ok = told["moves"][0]["vm"] == "web";
            assert!(ok || began.elapsed() < seconds(30), "{told:#}");
            ok.then_some(())
        });
    }

    /// A QEMU that waits for the guest.
    pub fn waiting(&self, name: &str) -> Vm {
        let nbd = self.stage.daemon.nbd_socket();
        let more = ["-incoming", "defer"];
        Vm::start_on_export(&self.stage.scratch, name, nbd, "web", &more)
    }

    /// Begins to move it to a QEMU that waits; gives the transfer's number.
    #[track_caller]
    pub fn begin(&self, to: &Path, how: &str) -> u64 {
        let line = format!("drs apply web --qmp {} {how}", to.display());
        self.stage.daemon.json(&line)[0]["id"].as_u64().expect("a number")
    }

    /// A transfer, as it is shown.
    pub fn transfer(&self, id: u64) -> Value {
        let all = self.stage.daemon.json("drs migration list");
        let all = all.as_array().expect("a list");
        all.iter().find(|one| one["id"] == id).expect("the transfer").clone()
    }

    /// Waits until a transfer is so far.
    #[track_caller]
    pub fn reaches(&self, id: u64, state: &str, limit: Duration) -> Value {
        until(&format!("transfer {id} to be {state}"), limit, || {
            Some(self.transfer(id)).filter(|one| one["state"] == state)
        })
    }

    /// It has begun to send, slowly.
    #[track_caller]
    pub fn slowly(&self, to: &Path) -> u64 {
        let id = self.begin(to, SLOW);
        until("memory to be copied", seconds(20), || {
            let one = self.transfer(id);
            (one["progress"]["sent"].as_u64() > Some(0)).then_some(())
        });
        id
    }

    /// It is on this host, is reached there, and runs.
    #[track_caller]
    pub fn runs_on(&mut self, host: &str, socket: &Path) {
        let daemon = &self.stage.daemon;
        let shown = daemon.json("vm show web");
        assert_eq!(shown["qmp"], socket.display().to_string(), "{shown:#}");
        assert_eq!(shown["state"], "running", "{shown:#}");
        let shown = daemon.json(&format!("host show {host}"));
        assert_eq!(shown["vms"], Value::from(vec!["web"]), "{shown:#}");
        is_written(&self.image);
    }
}
