//! A daemon with thousands of disks, clients and strangers: guests get in, and one that works
//! notices nothing.

use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sterna_tests::clients::{nbdsh, writes_and_reads};
use sterna_tests::{Daemon, MIB, Stage, programs};

const DISKS: usize = 2000;
const IDLE: usize = 2000;
const HALF_OPEN: usize = 1000;
/// The hard limit of open files of a service.
const SYSTEMD: u64 = 524_288;
/// As often the working client is measured before and after.
const TIMES: usize = 5;

/// Clients of all disks, which do nothing.
struct Crowd(Child);

impl Crowd {
    #[track_caller]
    fn of(socket: &Path) -> Crowd {
        let script = format!(
            "import nbd, resource, sys\n\
             resource.setrlimit(resource.RLIMIT_NOFILE, (8192, 8192))\n\
             all = []\n\
             for i in range({DISKS}):\n    \
                 c = nbd.NBD(); c.set_export_name(f'd{{i}}'); c.connect_unix({socket:?}); \
                 all.append(c)\n\
             print(len(all)); sys.stdout.flush(); sys.stdin.readline()"
        );
        let mut child = Command::new("/usr/bin/python3")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("start Python");
        let mut said = String::new();
        let out = child.stdout.take().expect("it is piped");
        BufReader::new(out).read_line(&mut said).expect("how many got in");
        assert_eq!(said.trim(), DISKS.to_string());
        Crowd(child)
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The p99 of a client that reads 4 KiB here and there, one after the other, in microseconds.
fn p99(stage: &Stage) -> f64 {
    let script = "
import random, time
took = []
for i in range(4000):
    at = random.randrange(0, 8192) * 4096
    began = time.perf_counter()
    h.pread(4096, at)
    took.append(time.perf_counter() - began)
print(sorted(took)[int(len(took) * .99)] * 1e6)
";
    let said = nbdsh(&stage.daemon.uri("works"), script);
    said.trim().parse().expect("a figure")
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// `cargo test --release -p sterna-tests --test black_box crowded -- --ignored --nocapture`
#[test]
#[ignore = "a measurement: it wants the host for itself"]
fn two_thousand_disks_with_clients_and_three_thousand_strangers_hurt_nobody() {
    assert!(programs::have(&["prlimit", "/usr/bin/python3"]));
    let hard = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: hard, maximum: hard })
        .expect("raise it");
    // As systemd starts it, as far as this machine allows.
    let under = format!("prlimit --nofile=1024:{}", hard.unwrap_or(SYSTEMD).min(SYSTEMD));
    let stage = Stage::with(|daemon: &mut Daemon| daemon.start_under(&under));
    stage.disk("works", 32 * MIB);
    for at in 0..DISKS {
        stage.daemon.sterna(&format!("disk create d{at} --size 1M --on here")).ok();
    }
    let before = median((0..TIMES).map(|_| p99(&stage)).collect());
    let crowd = Crowd::of(stage.daemon.nbd_socket());
    let connect = |path: &Path| UnixStream::connect(path).ok();
    let idle: Vec<_> =
        (0..IDLE).filter_map(|_| connect(stage.daemon.api_socket())).collect();
    let strangers: Vec<_> =
        (0..HALF_OPEN).filter_map(|_| connect(stage.daemon.nbd_socket())).collect();
    assert!(idle.len() > IDLE / 2 && strangers.len() > HALF_OPEN / 2);
    let asked = Instant::now();
    writes_and_reads(&stage.daemon.uri("works"));
    let came_in = asked.elapsed();
    // All that wait to be let in come first.
    stage.daemon.json("status");
    let asked = Instant::now();
    let status = stage.daemon.json("status");
    let answered = asked.elapsed();
    let guests = status["connections"]["guests"].as_u64();
    assert!(guests >= Some(DISKS as u64), "{status:#}");
    let crowded = median((0..TIMES).map(|_| p99(&stage)).collect());
    let (idle_count, stranger_count) = (idle.len(), strangers.len());
    drop((crowd, idle, strangers));
    let after = median((0..TIMES).map(|_| p99(&stage)).collect());
    println!(
        "{DISKS} disks; p99 of a reader: {before:.0} us, then {crowded:.0} us beside {DISKS} \
         clients, {idle_count} idle connections of the API and {stranger_count} half-open \
         handshakes, then {after:.0} us without them; a new client: {came_in:?}, status: \
         {answered:?}"
    );
    assert!(came_in < Duration::from_secs(2), "{came_in:?}");
    assert!(answered < Duration::from_secs(1), "{answered:?}");
    let alone = before.max(after);
    assert!(crowded < 2.0 * alone, "{alone} us alone, {crowded} us beside them");
}
