//! A real libvirt, and a VM that it owns.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};

use crate::programs;
use crate::scratch::Scratch;
use crate::wait::{seconds, until};

/// The libvirt that tests use.
pub const URI: &str = "qemu:///system";

/// Where libvirt's helper for the output of VMs listens.
const LOG_SOCKET: &str = "/run/libvirt/virtlogd-sock";

/// Starts libvirt with VMs that run as root, wherever that is not so already. Where
/// root may use KVM and libvirt's own user may not, libvirt does not believe what it found
/// out about QEMU, and looks again each time it is asked, which takes it minutes.
const AS_ROOT: &str = r#"
    conf=/etc/libvirt/qemu.conf
    ours=$(mktemp) &&
        cat "$conf" >"$ours" &&
        printf '%s\n' 'user = "+0"' 'group = "+0"' >>"$ours" &&
        mount --bind "$ours" "$conf" &&
        rm "$ours" &&
        exec libvirtd "$0" "$@"
"#;

/// What we started, because it was not there, and connections to libvirt's helper: it ends
/// by itself when nobody is connected, and libvirt does not start it again. Libvirt itself
/// ends when no test has used it for a while, and is started anew for the next. Whoever starts a
/// VM holds this, too.
static KEPT: Mutex<(Vec<Child>, Vec<UnixStream>)> = Mutex::new((Vec::new(), Vec::new()));

/// Whether there is a libvirt that we may use; started, if it does not run. If there is
/// none, the test is skipped.
#[track_caller]
pub fn have() -> bool {
    let needed = ["libvirtd", "virtlogd", "virsh", "unshare", "qemu-system-x86_64"];
    if !(programs::root() && programs::have(&needed)) {
        return false;
    }
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let (children, helpers) = &mut *kept;
    let helper = || UnixStream::connect(LOG_SOCKET).ok();
    helpers.push(helper().unwrap_or_else(|| {
        children.push(start("virtlogd", []));
        until("libvirt's helper to answer", seconds(30), helper)
    }));
    if !answers() {
        let as_root = ["--mount", "--propagation", "slave", "sh", "-c", AS_ROOT];
        children.push(start("unshare", as_root));
        until("libvirt to answer", seconds(30), || answers().then_some(()));
    }
    true
}

/// Starts one of libvirt's daemons. It ends by itself when it is not used for a while.
#[track_caller]
fn start<'a>(name: &str, args: impl IntoIterator<Item = &'a str>) -> Child {
    let mut command = programs::command(name);
    command
        .args(args)
        .args(["--timeout", "120"])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().unwrap_or_else(|error| panic!("start {name}: {error}"))
}

fn answers() -> bool {
    programs::attempt("virsh", ["-c", URI, "list"]).0
}

/// A VM of libvirt's, there until it is dropped.
pub struct Domain {
    name: String,
}

impl Domain {
    /// Defines and starts one with a disk `vda`.
    #[track_caller]
    pub fn start(scratch: &Scratch, image: &Path, format: &str) -> Domain {
        let source = format!("<source file='{}'/>", image.display());
        Domain::start_with(scratch, "file", &source, format)
    }

    /// Defines and starts one whose disk `vda` is of this kind and has this source.
    #[track_caller]
    pub fn start_with(
        scratch: &Scratch,
        kind: &str,
        source: &str,
        format: &str,
    ) -> Domain {
        Domain::start_from(
            scratch,
            "",
            &format!(
                "<disk type='{kind}' device='disk'><driver name='qemu' type='{format}'/>
             {source}<target dev='vda' bus='virtio'/></disk>"
            ),
        )
    }

    /// Defines and starts one whose disk `vda` is behind this vhost-user socket.
    #[track_caller]
    pub fn start_over_vhost_user(scratch: &Scratch, socket: &Path) -> Domain {
        // As docs/manual/qemu.md gives it.
        let memory = "<memoryBacking><source type='memfd'/><access mode='shared'/>
                      </memoryBacking>";
        let disk = format!(
            "<disk type='vhostuser' device='disk'><driver name='qemu' type='raw'/>
             <source type='unix' path='{}'><reconnect enabled='yes' timeout='1'/></source>
             <target dev='vda' bus='virtio'/></disk>",
            socket.display()
        );
        Domain::start_from(scratch, memory, &disk)
    }

    #[track_caller]
    fn start_from(scratch: &Scratch, memory: &str, disk: &str) -> Domain {
        static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let name = format!("sterna-test-{}-{number}", std::process::id());
        // As root, because the test's directories are ours alone.
        let xml = format!(
            "<domain type='qemu'><name>{name}</name><memory unit='MiB'>64</memory>
             {memory}<os><type arch='x86_64' machine='q35'>hvm</type><boot dev='hd'/></os>
             <devices><emulator>/usr/bin/qemu-system-x86_64</emulator>
             {disk}</devices>
             <seclabel type='static' model='dac' relabel='no'><label>+0:+0</label>
             </seclabel></domain>"
        );
        let file = scratch.path("domain.xml");
        std::fs::write(&file, xml).expect("write the domain's XML");
        let domain = Domain { name };
        domain.virsh(&["define", &file.display().to_string()]);
        // The first one makes the control groups of all, which a second one beside it finds half
        // made.
        let turn = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        domain.virsh(&["start", &domain.name]);
        drop(turn);
        // A libvirt that has just started looks at what QEMU can do, and answers late.
        until("libvirt to answer at once", seconds(60), || {
            let asked = Instant::now();
            domain.virsh(&["checkpoint-list", &domain.name]);
            (asked.elapsed() < seconds(1)).then_some(())
        });
        domain
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How libvirt would start it the next time.
    #[track_caller]
    pub fn kept(&self) -> String {
        self.virsh(&["dumpxml", "--inactive", &self.name])
    }

    /// Somebody has libvirt copy `vda`, slowly.
    #[track_caller]
    pub fn begin_copy(&self, to: &Path) {
        let to = to.display().to_string();
        let what = ["blockcopy", &self.name, "vda", "--dest", &to, "--format", "raw"];
        let how = ["--transient-job", "--bytes", "--bandwidth", "65536"];
        self.virsh(&[&what[..], &how[..]].concat());
    }

    /// What libvirt does with `vda`.
    #[track_caller]
    pub fn job(&self) -> String {
        self.virsh(&["blockjob", &self.name, "vda", "--info"])
    }

    /// Where libvirt keeps the number of its process.
    pub fn pid_file(&self) -> PathBuf {
        Path::new("/run/libvirt/qemu").join(format!("{}.pid", self.name))
    }

    /// It goes on where it stopped.
    #[track_caller]
    pub fn go_on(&self) {
        let pid = std::fs::read_to_string(self.pid_file()).expect("read its number");
        let pid = pid.trim().parse().ok().and_then(Pid::from_raw).expect("a number");
        kill_process(pid, Signal::CONT).expect("send a signal");
    }

    /// It starts anew, without that its QEMU ends.
    #[track_caller]
    pub fn reset(&self) {
        self.virsh(&["reset", &self.name]);
    }

    /// It goes off, as if the plug was pulled.
    #[track_caller]
    pub fn destroy(&self) {
        self.virsh(&["destroy", &self.name]);
    }

    /// It is started again.
    #[track_caller]
    pub fn start_again(&self) {
        self.virsh(&["start", &self.name]);
    }

    #[track_caller]
    fn virsh(&self, args: &[&str]) -> String {
        programs::run("virsh", [&["-q", "-c", URI], args].concat())
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        for what in ["destroy", "undefine"] {
            let _ = programs::attempt("virsh", ["-q", "-c", URI, what, &self.name]);
        }
    }
}
