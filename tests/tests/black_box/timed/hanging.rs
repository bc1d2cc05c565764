//! A datastore that hangs, whatever it is: everybody else goes on, whoever asks is
//! answered, a move that is stuck with it can be given up, and the daemon can be stopped
//! and started meanwhile.
//!
//! How much of its speed a disk keeps is measured by the same client right before, in
//! the same run: what the host does to everybody is thereby not held against us.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sterna_tests::clients::{Fio, writes_and_reads};
use sterna_tests::places::Loop;
use sterna_tests::servers::{Bindfs, Nbdkit};
use sterna_tests::vms::{Vm, write_guest};
use sterna_tests::wait::seconds;
use sterna_tests::{MIB, Stage, programs, until};

const SIZE: u64 = 32 * MIB;
/// A second counts as an answer; the rest is for a host that is busy with other things.
const ANSWERED: Duration = seconds(3);
/// Of their speed, disks that have nothing to do with what hangs keep at least this much.
/// They keep all of it where nothing else is going on.
const KEPT: f64 = 0.5;
/// A move to what hangs pauses after 10 s.
const PAUSES: Duration = seconds(20);
/// A move of a VM's disk asks QEMU twice, and the datastore once, each for 4 s.
const GIVEN_UP: Duration = seconds(30);

/// A disk `well` on `here`, `sick` on the datastore `hung`, and two that are on their way
/// there.
struct Scene {
    stage: Stage,
    moves: [u64; 2],
    /// The move of `sick` to `here`, if there is one.
    away: Option<u64>,
}

impl Scene {
    #[track_caller]
    fn on(stage: Stage) -> Scene {
        for disk in ["well", "beside"] {
            stage.disk(disk, SIZE);
        }
        stage.daemon.sterna("disk create sick --size 16M --on hung").ok();
        Scene { stage, moves: [0; 2], away: None }
    }

    /// Two moves there begin.
    #[track_caller]
    fn with_moves(mut self) -> Scene {
        for (at, disk) in ["one", "two"].into_iter().enumerate() {
            self.stage.disk_with_data(disk, SIZE, SIZE);
            let line = format!("{disk} --to hung --rate 2M");
            let id = self.stage.daemon.migrate(&line);
            self.stage.daemon.wait_for_bytes(id, MIB);
            self.moves[at] = id;
        }
        self
    }

    /// The disk there is on its way from it, slowly.
    #[track_caller]
    fn with_a_move_away(mut self) -> Scene {
        let id = self.stage.daemon.migrate("sick --to here --rate 256K");
        self.stage.daemon.wait_for_bytes(id, MIB / 4);
        self.away = Some(id);
        self
    }

    /// What a client of a disk gets, in IO/s.
    #[track_caller]
    fn speed_of(&self, disk: &str) -> f64 {
        self.speed_over(disk, 1)
    }

    #[track_caller]
    fn speed_over(&self, disk: &str, seconds: u32) -> f64 {
        let job = format!(
            "rw=randwrite\nbs=4k\niodepth=4\nsize=16m\ntime_based=1\nruntime={seconds}"
        );
        let job = job.as_str();
        let figures = Fio::start(&self.stage.daemon.uri(disk), job).finish();
        figures["write"]["iops"].as_f64().expect("a figure")
    }

    /// Somebody writes to the disk that hangs, and goes on waiting.
    fn clients_of_the_sick_one(&self) -> std::process::Child {
        let script = "import time\n\
            b = nbd.Buffer.from_bytearray(bytearray(262144))\n\
            hs = []\n\
            for i in range(16):\n\
            \x20 c = nbd.NBD(); c.connect_uri(URI); hs.append(c)\n\
            \x20 for j in range(16): c.aio_pwrite(b, (i * 16 + j) % 64 * 262144)\n\
            while True:\n\
            \x20 for c in hs: c.poll(0)\n\
            \x20 time.sleep(0.05)\n";
        let uri = self.stage.daemon.uri("sick");
        let script = format!("import nbd\nURI = '{uri}'\n{script}");
        let mut command = std::process::Command::new("/usr/bin/python3");
        command.args(["-c", &script]).spawn().expect("start clients")
    }

    #[track_caller]
    fn answers_in_time(&self, line: &str) -> String {
        let asked = Instant::now();
        let said = self.stage.daemon.sterna(line).ok().stdout;
        assert!(asked.elapsed() < ANSWERED, "`{line}` took {:?}", asked.elapsed());
        said
    }

    /// It hangs now. Everybody else goes on, and whoever asks is answered.
    #[track_caller]
    fn nobody_else_stands_still(&self, hang: impl FnOnce()) {
        let before = ["well", "beside"].map(|disk| self.speed_of(disk));
        hang();
        let mut clients = self.clients_of_the_sick_one();
        // They must have asked for something before it counts.
        until("requests to hang", seconds(10), || {
            let sick = self.stage.daemon.disk("sick");
            (sick["activity"]["in_flight"].as_u64() > Some(8)).then_some(())
        });
        let after = ["well", "beside"].map(|disk| self.speed_of(disk));
        println!("IO/s before {before:.0?}, while another datastore hangs {after:.0?}");
        // Of both together: one second of one disk says little on a busy host.
        let [before, after] = [before, after].map(|both| both.into_iter().sum::<f64>());
        assert!(after > before * KEPT, "{before:.0} IO/s before, {after:.0} after");
        // Somebody new gets in, and on.
        let asked = Instant::now();
        writes_and_reads(&self.stage.daemon.uri("well"));
        assert!(asked.elapsed() < ANSWERED, "a new client took {:?}", asked.elapsed());
        for line in ["disk list", "status", "datastore list", "migration list"] {
            self.answers_in_time(line);
        }
        let shown = self.answers_in_time("datastore show hung");
        assert!(shown.contains("does not answer"), "{shown}");
        clients.kill().and_then(|()| clients.wait()).expect("end the clients");
        if let Some(away) = self.away {
            self.answers_in_time(&format!("migration cancel {away}"));
            let shown = self.answers_in_time(&format!("migration show {away}"));
            assert!(shown.contains("the copy has stopped"), "{shown}");
            assert_eq!(self.stage.daemon.disk("sick")["datastore"], "hung");
        }
    }

    /// One move is given up at once, the other pauses by itself, and says why.
    #[track_caller]
    fn moves_stand_still_and_can_be_given_up(&self) {
        let [one, two] = self.moves;
        self.answers_in_time(&format!("migration cancel {one}"));
        let paused = self.stage.daemon.wait_for(two, "paused", PAUSES);
        let reason = paused["reason"].as_str().unwrap_or_default();
        assert!(reason.contains("not answered"), "{reason}");
        let asked = Instant::now();
        let refused = self.stage.daemon.sterna(&format!("migration resume {two}"));
        refused.fails_with(&["datastore hung", "does not answer", "migration cancel"]);
        assert!(asked.elapsed() < ANSWERED, "the refusal took {:?}", asked.elapsed());
        // That holds nobody from giving it up.
        self.answers_in_time(&format!("migration cancel {two}"));
        writes_and_reads(&self.stage.daemon.uri("two"));
    }

    /// The daemon is stopped and started while it hangs; the disk there comes up when it
    /// goes on.
    #[track_caller]
    fn a_restart_waits_for_nobody(&mut self, go_on: impl FnOnce()) {
        let left = self.stage.daemon.leave(seconds(20));
        let began = Instant::now();
        self.stage.daemon.restart();
        assert!(began.elapsed() < seconds(8), "the start took {:?}", began.elapsed());
        for disk in ["well", "beside"] {
            writes_and_reads(&self.stage.daemon.uri(disk));
        }
        go_on();
        until("the disk to be served again", seconds(30), || {
            self.stage.daemon.disk("sick")["served"].as_bool().filter(|served| *served)
        });
        writes_and_reads(&self.stage.daemon.uri("sick"));
        if let Some(away) = self.away {
            self.stage.daemon.wait_for(away, "cancelled", PAUSES);
            assert_eq!(self.stage.daemon.disk("sick")["datastore"], "hung");
        }
        drop(left);
    }
}

/// Has a file system go on before anybody waits for what hangs there: also when a test
/// fails.
struct Awake<'a>(&'a Bindfs);

impl Drop for Awake<'_> {
    fn drop(&mut self) {
        self.0.go_on();
    }
}

fn given_fuse() -> Option<(Stage, Bindfs)> {
    let stage = Stage::given_root(&["bindfs", "fio"])?;
    let fuse = Bindfs::new(&stage.scratch, "fuse");
    Some((stage, fuse))
}

#[test]
fn a_file_system_in_user_space_hangs_and_nobody_else() {
    let Some((stage, fuse)) = given_fuse() else { return };
    stage.datastore("hung", fuse.dir().display());
    let mut scene = Scene::on(stage).with_moves();
    let _awake = Awake(&fuse);
    scene.nobody_else_stands_still(|| fuse.hang());
    scene.moves_stand_still_and_can_be_given_up();
    scene.a_restart_waits_for_nobody(|| fuse.go_on());
}

#[test]
fn a_move_from_what_hangs_already_is_refused_at_once() {
    let Some((stage, fuse)) = given_fuse() else { return };
    stage.datastore("hung", fuse.dir().display());
    let scene = Scene::on(stage);
    let _awake = Awake(&fuse);
    fuse.hang();
    let asked = Instant::now();
    let refused = scene.stage.daemon.sterna("migrate sick --to here --detach");
    assert!(asked.elapsed() < seconds(10), "it took {:?}", asked.elapsed());
    assert_ne!(refused.code, 0);
    assert!(refused.stderr.contains("does not answer"), "{}", refused.stderr);
    assert_eq!(scene.stage.daemon.json("migration list"), serde_json::json!([]));
    fuse.go_on();
    until("the move to be taken", seconds(20), || {
        (scene.stage.daemon.sterna("migrate sick --to here").code == 0).then_some(())
    });
}

#[test]
fn a_command_that_names_a_path_on_what_hangs_is_answered() {
    let Some((stage, fuse)) = given_fuse() else { return };
    stage.datastore("hung", fuse.dir().display());
    let scene = Scene::on(stage);
    let _awake = Awake(&fuse);
    fuse.hang();
    let below = |name: &str| fuse.dir().join(name).display().to_string();
    for line in [
        format!("datastore add more {}", below("more")),
        format!("disk import db --on hung {}", below("db.raw")),
    ] {
        let asked = Instant::now();
        let refused = scene.stage.daemon.sterna(&line);
        assert!(asked.elapsed() < seconds(20), "it took {:?}", asked.elapsed());
        refused.fails_with(&["not answer"]);
    }
}

#[test]
fn so_it_is_without_io_uring() {
    if !(programs::root() && programs::have(&["bindfs", "fio"])) {
        return;
    }
    let stage = Stage::with_threads();
    let fuse = Bindfs::new(&stage.scratch, "fuse");
    stage.datastore("hung", fuse.dir().display());
    let mut scene = Scene::on(stage).with_a_move_away();
    let _awake = Awake(&fuse);
    scene.nobody_else_stands_still(|| fuse.hang());
    scene.a_restart_waits_for_nobody(|| fuse.go_on());
}

#[test]
fn a_device_hangs_and_nobody_else() {
    let Some((stage, fuse)) = given_fuse() else { return };
    let file = fuse.dir().join("device.img");
    let device = Loop::new(&file, 32 * MIB);
    stage.datastore("hung", device.device().display());
    let mut scene = Scene::on(stage).with_a_move_away();
    let _awake = Awake(&fuse);
    scene.nobody_else_stands_still(|| fuse.hang());
    scene.a_restart_waits_for_nobody(|| fuse.go_on());
}

#[test]
fn a_server_hangs_and_nobody_else() {
    let Some(stage) = Stage::given(&["nbdkit", "fio"]) else { return };
    let server: Nbdkit = stage.nbd_server("hung", 32 * MIB, &[]);
    let mut scene = Scene::on(stage).with_a_move_away();
    scene.nobody_else_stands_still(|| server.hang());
    scene.a_restart_waits_for_nobody(|| server.go_on());
}

#[test]
fn a_move_of_a_vm_to_what_hangs_is_given_up_and_put_away_when_it_goes_on() {
    let needs = ["bindfs", "qemu-system-x86_64"];
    let Some(stage) = Stage::given_root(&needs) else { return };
    let fuse = Bindfs::new(&stage.scratch, "fuse");
    stage.datastore("hung", fuse.dir().display());
    let image = stage.here.join("web.raw");
    write_guest(&image, 64 * MIB, 32 * MIB);
    let vm = Vm::start(&stage.scratch, "web", &image, "raw", &[]);
    let _awake = Awake(&fuse);
    let socket = vm.socket().display();
    stage.daemon.sterna(&format!("vm add web --qmp {socket}")).ok();
    let moving = stage.daemon.json("vm move web vda --to hung --rate 2M --detach");
    let id = moving["id"].as_u64().expect("a number");
    stage.daemon.wait_for_bytes(id, MIB);
    let new = fuse.dir().join(format!("web-vda-{id}.raw"));
    assert!(new.exists());
    fuse.hang();
    stage.daemon.sterna(&format!("migration cancel {id}")).ok();
    stage.daemon.wait_for(id, "cancelled", GIVEN_UP);
    fuse.go_on();
    until("the copy to be removed", seconds(60), || (!new.exists()).then_some(()));
    let again = stage.daemon.json("vm move web vda --to there");
    assert_eq!(again["state"], "completed", "{again:#}");
}

/// Of their IO/s, what others keep while something hangs, by the median of [`TURNS`].
const KEPT_ALONE: f64 = 0.9;
const TURNS: usize = 5;

impl Scene {
    /// In turns, without and with it.
    #[track_caller]
    fn others_keep(&self, what: &str, hang: impl Fn(), go_on: impl Fn()) {
        let mut kept: Vec<f64> = (0..TURNS)
            .map(|_| {
                let before = self.speed_over("well", 4);
                hang();
                let mut clients = self.clients_of_the_sick_one();
                until("requests to hang", seconds(10), || {
                    let sick = self.stage.daemon.disk("sick");
                    (sick["activity"]["in_flight"].as_u64() > Some(8)).then_some(())
                });
                let asked = Instant::now();
                self.stage.daemon.sterna("disk list").ok();
                let answered = asked.elapsed();
                let after = self.speed_over("well", 4);
                clients.kill().and_then(|()| clients.wait()).expect("end the clients");
                go_on();
                until("nothing to hang", seconds(60), || {
                    let sick = self.stage.daemon.disk("sick");
                    (sick["activity"]["in_flight"].as_u64() == Some(0)).then_some(())
                });
                println!(
                    "{what}: {before:.0} IO/s, {after:.0} while it hangs; {answered:.1?}"
                );
                after / before
            })
            .collect();
        kept.sort_by(f64::total_cmp);
        let median = kept[TURNS / 2];
        println!("{what} hangs: others keep {:.0} % ({kept:.2?})", median * 100.0);
        assert!(median >= KEPT_ALONE, "{what}: {median:.2}");
    }
}

/// `cargo test --release -p sterna-tests --test black_box timed::hanging -- --ignored --nocapture`
#[test]
#[ignore = "a measurement: it wants the host for itself"]
fn how_much_others_keep() {
    {
        let Some((stage, fuse)) = given_fuse() else { return };
        stage.datastore("hung", fuse.dir().display());
        let scene = Scene::on(stage);
        let _awake = Awake(&fuse);
        scene.others_keep("a file system in user space", || fuse.hang(), || fuse.go_on());
    }
    {
        let Some((stage, fuse)) = given_fuse() else { return };
        let device = Loop::new(&fuse.dir().join("device.img"), 32 * MIB);
        stage.datastore("hung", device.device().display());
        let scene = Scene::on(stage);
        let _awake = Awake(&fuse);
        scene.others_keep("a device", || fuse.hang(), || fuse.go_on());
    }
    let Some(stage) = Stage::given(&["nbdkit", "fio"]) else { return };
    let server: Nbdkit = stage.nbd_server("hung", 32 * MIB, &[]);
    let scene = Scene::on(stage);
    scene.others_keep("a server", || server.hang(), || server.go_on());
}

#[test]
fn strangers_who_say_nothing_keep_nobody_out() {
    let stage = Stage::new();
    stage.disk("a", SIZE);
    let socket: &Path = stage.daemon.nbd_socket();
    let strangers: Vec<UnixStream> =
        (0..1000).filter_map(|_| UnixStream::connect(socket).ok()).collect();
    assert!(strangers.len() > 900, "{} strangers", strangers.len());
    let asked = Instant::now();
    writes_and_reads(&stage.daemon.uri("a"));
    assert!(asked.elapsed() < ANSWERED, "a client took {:?}", asked.elapsed());
}

/// Clients that a script makes at a socket, once it says that they are there.
fn clients_of(script: &str, socket: &Path) -> Child {
    let mut clients = Command::new("/usr/bin/python3")
        .args(["-c", script])
        .arg(socket)
        .stdout(Stdio::piped())
        .spawn()
        .expect("start clients");
    let stdout = clients.stdout.take().expect("it is piped");
    let (lines, _) = sterna_tests::lines::Lines::collect(stdout);
    until("the clients to be there", seconds(30), || (lines.count() > 0).then_some(()));
    clients
}

/// Clients that have announced much and send a byte a second: each has moved something lately.
const TRICKLE: &str = "
import socket, struct, sys, time

def exactly(s, n):
    got = b''
    while len(got) < n:
        got += s.recv(n - len(got))
    return got

def connected():
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    exactly(s, 18)
    name = struct.pack('>I', 1) + b'a' + struct.pack('>H', 0)
    s.sendall(struct.pack('>I', 3) + b'IHAVEOPT' + struct.pack('>II', 7, len(name)) + name)
    while True:
        _, _, kind, length = struct.unpack('>QIII', exactly(s, 20))
        exactly(s, length)
        if kind == 1:
            break
    s.sendall(struct.pack('>IHHQQI', 0x25609513, 0, 1, 1, 0, 8 << 20))
    s.setblocking(False)
    return s

all = [connected() for _ in range(100)]
print('ready', flush=True)
end = time.time() + 120
while time.time() < end:
    time.sleep(1)
    for s in list(all):
        try:
            s.send(b'x')
        except BlockingIOError:
            pass
        except OSError:
            all.remove(s)
";

#[test]
fn clients_that_send_a_byte_now_and_then_keep_nobody_out_for_long() {
    let Some(stage) = Stage::given(&["/usr/bin/python3", "fio"]) else { return };
    stage.disk("a", SIZE);
    let mut slow = clients_of(TRICKLE, stage.daemon.nbd_socket());
    let asked = Instant::now();
    writes_and_reads(&stage.daemon.uri("a"));
    // They are left alone for half a minute.
    assert!(asked.elapsed() < seconds(60), "a client of a: {:?}", asked.elapsed());
    slow.kill().and_then(|()| slow.wait()).expect("end the clients");
}

#[test]
fn clients_that_stall_keep_nobody_out() {
    let Some(stage) = Stage::given(&["fio"]) else { return };
    let uri = stage.disk("a", SIZE);
    stage.disk("b", SIZE);
    // They ask for much, and take nothing of it.
    let script = format!(
        "import nbd, time\n\
        hs = []\n\
        for i in range(48):\n\
        \x20 c = nbd.NBD(); c.connect_uri('{uri}'); hs.append(c)\n\
        \x20 for j in range(16): c.aio_pread(nbd.Buffer(1048576), 0)\n\
        print('ready', flush=True)\n\
        time.sleep(60)\n"
    );
    let mut stalled = clients_of(&script, stage.daemon.nbd_socket());
    for disk in ["a", "b"] {
        let asked = Instant::now();
        writes_and_reads(&stage.daemon.uri(disk));
        assert!(asked.elapsed() < ANSWERED, "a client of {disk}: {:?}", asked.elapsed());
    }
    stalled.kill().and_then(|()| stalled.wait()).expect("end the clients");
}
