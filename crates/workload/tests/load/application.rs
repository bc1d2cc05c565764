//! Applications on a disk of nbdkit, whose speed is known.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sterna_core::measure::Window;
use sterna_core::{Bytes, Nanos};
use sterna_workload::load::{Application, Lengths, Profile};

/// Longer than anything here takes, on a machine that has much else to do.
const PATIENCE: Duration = Duration::from_secs(30);

/// A disk in memory, 64 MiB.
struct Disk {
    dir: PathBuf,
    child: Child,
}

impl Disk {
    /// nbdkit with these arguments before its plugin, and those behind it; nothing
    /// where there is none.
    fn new(name: &str, before: &[&str], behind: &[&str]) -> Option<Disk> {
        let dir =
            std::env::temp_dir().join(format!("sterna-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("make a directory");
        let spawned = Command::new("nbdkit")
            .args(["--foreground", "--exit-with-parent", "--unix"])
            .arg(dir.join("s"))
            .args(before)
            .args(["memory", "64M"])
            .args(behind)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(child) = spawned else {
            let _ = std::fs::remove_dir(&dir);
            let _ = writeln!(io::stderr(), "\nskipped: {name}: nbdkit is not installed");
            return None;
        };
        let disk = Disk { dir, child };
        // Its socket is there a moment before it listens.
        wait("nbdkit to listen", || UnixStream::connect(disk.dir.join("s")).is_ok());
        Some(disk)
    }

    fn uri(&self) -> String {
        format!("nbd+unix:///?socket={}", self.dir.join("s").display())
    }

    fn start(&self, profile: &Profile) -> anyhow::Result<Application> {
        Application::start(&self.uri(), profile, 1)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

#[track_caller]
fn wait(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < end, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Everything until so many requests were answered.
#[track_caller]
fn until(application: &mut Application, operations: u64) -> Window {
    let mut sum = Window::default();
    wait("answers", || {
        sum.extend(&application.take().expect("it goes on"));
        sum.total().operations >= operations
    });
    sum
}

#[test]
fn a_closed_loop_gets_what_its_depth_and_the_disks_time_allow() {
    let slow = ["rdelay=20ms", "wdelay=20ms"];
    let Some(disk) = Disk::new("closed", &["--threads=32", "--filter=delay"], &slow)
    else {
        return;
    };
    let mut oltp = disk.start(&Profile::oltp()).expect("start");
    let window = until(&mut oltp, 800);
    let total = window.total();
    // 16 under way for at least 20 ms each: 800 a second at the very most.
    assert!(window.iops() <= 820.0, "{}", window.iops());
    assert!(window.response.quantile(0.01) >= Some(Nanos::from_millis(19)));
    assert_eq!(total.bytes, total.operations * 8192);
    let reads = window.read.operations as f64 / total.operations as f64;
    assert!((0.6..0.8).contains(&reads), "{reads}");
    let outstanding = window.outstanding();
    assert!((12.0..17.0).contains(&outstanding), "{outstanding}");
    let rest = oltp.stop().expect("it ends in good order").total();
    assert!(rest.operations >= 1, "what was under way is answered and counted");
}

#[test]
fn an_open_loop_asks_at_its_rate_and_counts_no_waiting_on_a_fast_disk() {
    let Some(disk) = Disk::new("open", &[], &[]) else { return };
    let profile = Profile::random_reader().at_rate(200.0);
    let mut reader = disk.start(&profile).expect("start");
    let window = until(&mut reader, 400);
    assert!((150.0..250.0).contains(&window.iops()), "{}", window.iops());
    assert!(window.response.quantile(0.5) < Some(Nanos::from_millis(50)));
}

#[test]
fn an_open_loop_that_is_behind_counts_its_waiting() {
    // One request after the other, 20 ms each: 50 a second, and 1000 are asked.
    let one = ["--threads=1", "--filter=delay"];
    let Some(disk) = Disk::new("behind", &one, &["rdelay=20ms"]) else { return };
    let profile = Profile::random_reader().at_rate(1000.0);
    let mut reader = disk.start(&profile).expect("start");
    let window = until(&mut reader, 300);
    // The 300th was due after 0.3 s and answered after 6 s.
    assert!(window.response.max() > Nanos::from_secs(4), "{}", window.response.max());
    // No more than 256 are sent; the others wait in the application.
    assert!(window.total().queue > Nanos(0));
}

#[test]
fn sizes_flushes_and_spans_reach_the_disk_as_asked() {
    let Some(disk) = Disk::new("sizes", &[], &[]) else { return };
    let profile = Profile::log().within(Bytes(1 << 20));
    let mut log = disk.start(&profile).expect("start");
    let window = until(&mut log, 1000);
    assert_eq!(window.read.operations, 0);
    // Half of them are flushes, which have no bytes; the writes have 32 KiB on average.
    let mean = window.write.bytes / window.write.operations;
    assert!((14 << 10..18 << 10).contains(&mean), "{mean}");
    log.stop().expect("it ends in good order");
}

#[test]
fn large_reads_come_in_whole() {
    let Some(disk) = Disk::new("large", &[], &[]) else { return };
    let large = Profile { lengths: Lengths::always(8 << 20), ..Profile::backup() };
    let mut backup = disk.start(&large).expect("start");
    let total = until(&mut backup, 32).total();
    assert_eq!(total.bytes, total.operations * (8 << 20));
}

#[test]
fn an_application_whose_disk_is_gone_says_so() {
    let Some(mut disk) = Disk::new("gone", &[], &[]) else { return };
    let mut oltp = disk.start(&Profile::oltp()).expect("start");
    until(&mut oltp, 10);
    disk.child.kill().expect("kill nbdkit");
    let mut said = String::new();
    wait("the application to notice", || match oltp.take() {
        Ok(_) => false,
        Err(error) => {
            said = format!("{error:#}");
            true
        }
    });
    assert!(said.contains("the disk is lost"), "{said}");
}

#[test]
fn an_application_whose_request_fails_says_which() {
    let error = ["error=EIO", "error-pread-rate=100%", "error-pwrite-rate=0"];
    let Some(disk) = Disk::new("error", &["--filter=error"], &error) else { return };
    let mut reader = disk.start(&Profile::random_reader()).expect("start");
    let mut said = String::new();
    wait("the application to notice", || match reader.take() {
        Ok(_) => false,
        Err(error) => {
            said = format!("{error:#}");
            true
        }
    });
    assert!(said.contains("a Read of 65536 bytes at"), "{said}");
}

#[test]
fn a_disk_that_does_not_fit_the_application_is_refused() {
    let Some(disk) = Disk::new("fit", &["--readonly"], &[]) else { return };
    let refused = |profile: &Profile| match disk.start(profile) {
        Ok(_) => panic!("{profile:?} was started"),
        Err(error) => format!("{error:#}"),
    };
    let said = refused(&Profile::oltp());
    assert!(said.contains("read-only"), "{said}");
    let said = refused(&Profile::backup().within(Bytes(1 << 30)));
    assert!(said.contains("the first 1.00 GiB of a disk of 64.0 MiB"), "{said}");
}
