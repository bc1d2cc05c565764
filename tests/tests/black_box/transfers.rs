//! VMs that run go from one QEMU to another: nothing that the guest has
//! written is lost, and whatever ends meanwhile, it runs once at most.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use serde_json::Value;
use sterna_tests::between::{Between, Stop};
use sterna_tests::transfer::{PEOPLE, REPORTED, Setting};
use sterna_tests::vms::{Vm, is_written, number_on, starter, tell, write_guest};
use sterna_tests::wait::seconds;
use sterna_tests::{MIB, programs, until};

#[track_caller]
fn fits(text: &str) {
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

/// What cannot be is refused, and the guest runs on.
#[track_caller]
fn refuses(setting: &Setting) {
    let daemon = &setting.stage.daemon;
    let to = |socket: &Path| format!("drs apply web --qmp {}", socket.display());
    daemon.sterna("drs apply web").fails_with(&["host b has no program", "--qmp"]);
    daemon.sterna("drs apply 7").fails_with(&["no recommendation 7"]);
    daemon.sterna("drs apply other").fails_with(&["there is no VM other"]);
    daemon.sterna("drs apply web --qmp b.qmp").fails_with(&["not an absolute path"]);
    daemon.sterna(&to(setting.source.socket())).fails_with(&["belongs to VM web"]);
    let nobody = setting.stage.scratch.socket("nobody.qmp");
    daemon.sterna(&to(&nobody)).fails_with(&["cannot go to", "-incoming defer"]);
    daemon.sterna("drs migration cancel 5").fails_with(&["there is no transfer 5"]);
    daemon.sterna("host program c /bin/true").fails_with(&["there is no host c"]);
    daemon.sterna("host program b start").fails_with(&["not an absolute path"]);
    for (program, why) in [
        ("/nosuch/program", "cannot be run: No such file"),
        ("/etc/passwd", "is not executable"),
        ("/etc", "is not a file"),
    ] {
        let refused = daemon.sterna(&format!("host program b {program}"));
        refused.fails_with(&[program, why, "give a program that the daemon may run"]);
    }
    assert_eq!(daemon.json("host show b")["program"], Value::Null);
    // One that runs something already.
    let image = setting.stage.scratch.path("other.raw");
    write_guest(&image, MIB * 2, MIB);
    let scratch = &setting.stage.scratch;
    let other = Vm::start(scratch, "other", &image, "raw", &["-S"]);
    daemon.sterna(&to(other.socket())).fails_with(&["does not wait for a guest"]);
    // One with another disk.
    let more = ["-incoming", "defer"];
    let other = Vm::start(scratch, "third", &image, "raw", &more);
    daemon.sterna(&to(other.socket())).fails_with(&["vda is ", "other.raw"]);
    // A program that fails, and one that starts nothing.
    daemon.sterna("host program b /bin/false").ok();
    daemon.sterna("drs apply web").fails_with(&["/bin/false ended with"]);
    let shown = daemon.json("host program b --none");
    assert_eq!(shown["program"], Value::Null, "{shown:#}");
    is_written(&setting.image);
}

#[test]
fn a_guest_that_writes_moves_and_nothing_is_lost() {
    let Some((mut setting, _)) = Setting::new(false) else { return };
    refuses(&setting);
    let there = setting.waiting("web-b");
    let daemon = &setting.stage.daemon;
    // The one that was refused may be ending still.
    until("the advice to migrate the VM", seconds(20), || {
        let words = daemon.sterna("drs recommend").ok().stdout;
        words.contains("sterna drs apply web").then_some(())
    });
    let line = format!("drs apply web --qmp {}", there.socket().display());
    let said = daemon.sterna(&line).ok().stdout;
    assert!(said.contains("web moved from a to b"), "{said}");
    assert!(said.contains("stood still"), "{said}");
    fits(&said);
    setting.runs_on("b", there.socket());
    assert!(setting.source.has_ended(), "the QEMU that it has left ends");
    fits(&setting.stage.daemon.sterna("drs migration list").ok().stdout);
    // It is where it should be.
    let told = setting.stage.daemon.json("drs recommend");
    assert_eq!(told["moves"], Value::from(vec![0; 0]), "{told:#}");
    setting.stage.daemon.sterna("drs apply web").fails_with(&["DRS recommends nothing"]);
    // And it stays known where it is.
    setting.stage.daemon.kill();
    setting.stage.daemon.restart();
    setting.runs_on("b", there.socket());
    setting.watched.went_on();
}

#[test]
fn a_move_is_given_up_and_whatever_becomes_of_the_other_qemu_the_guest_runs_on() {
    let Some((mut setting, _)) = Setting::new(false) else { return };
    let old = setting.source.socket().to_owned();
    let mut there = setting.waiting("first");
    let id = setting.slowly(there.socket());
    let daemon = &setting.stage.daemon;
    // It is for nobody else meanwhile.
    let busy = ["web is being migrated to host b"];
    daemon.sterna("migrate web --to there").fails_with(&busy);
    daemon.sterna("vm remove web").fails_with(&busy);
    daemon.sterna("host assign b web").fails_with(&busy);
    daemon.sterna("host remove b").fails_with(&busy);
    daemon.sterna(&format!("drs migration cancel {id}")).ok();
    let ended = setting.reaches(id, "cancelled", REPORTED);
    assert_eq!(ended["reason"], Value::Null, "{ended:#}");
    setting.runs_on("a", &old);
    until("the QEMU that waited to end", REPORTED, || there.has_ended().then_some(()));
    setting.recommended();
    // The daemon is stopped.
    let there = setting.waiting("stopped");
    let id = setting.slowly(there.socket());
    setting.stage.daemon.stop();
    setting.stage.daemon.restart();
    let ended = setting.transfer(id);
    assert_eq!(ended["state"], "cancelled", "{ended:#}");
    // The other QEMU may be about to end by itself, and then does not answer.
    let why = ended["reason"].as_str().unwrap_or_default();
    assert!(why.starts_with("the daemon was stopped"), "{ended:#}");
    setting.runs_on("a", &old);
    setting.recommended();
    // The other QEMU ends.
    let mut there = setting.waiting("second");
    let id = setting.slowly(there.socket());
    there.kill();
    let ended = setting.reaches(id, "cancelled", REPORTED);
    assert!(ended["reason"].is_string(), "{ended:#}");
    setting.runs_on("a", &old);
    setting.recommended();
    // It hangs.
    let there = setting.waiting("third");
    let id = setting.slowly(there.socket());
    there.hang();
    let ended = setting.reaches(id, "cancelled", REPORTED);
    let why = ended["reason"].as_str().expect("why");
    assert!(why.contains("does not accept the guest"), "{why}");
    there.go_on();
    setting.runs_on("a", &old);
    fits(&setting.stage.daemon.sterna("drs migration list").ok().stdout);
    setting.watched.went_on();
}

#[test]
fn a_guest_whose_own_qemu_hangs_stays_in_it_and_one_whose_qemu_ends_is_gone() {
    let Some((mut setting, _)) = Setting::new(false) else { return };
    let old = setting.source.socket().to_owned();
    let mut there = setting.waiting("first");
    let id = setting.slowly(there.socket());
    setting.source.hang();
    let stuck = until("that to be said", REPORTED, || {
        Some(setting.transfer(id)).filter(|one| one["stuck"] == true)
    });
    let why = stuck["reason"].as_str().expect("why");
    assert!(
        why.contains("does not answer") && why.contains("the VM stays there"),
        "{why}"
    );
    until("the QEMU that waited to end", REPORTED, || there.has_ended().then_some(()));
    setting.source.go_on();
    let ended = setting.reaches(id, "cancelled", seconds(10));
    assert_eq!(ended["reason"], "the first QEMU did not answer", "{ended:#}");
    setting.runs_on("a", &old);
    let mut there = setting.waiting("second");
    let id = setting.slowly(there.socket());
    setting.source.kill();
    let ended = setting.reaches(id, "lost", REPORTED);
    let why = ended["reason"].as_str().expect("why");
    assert!(why.contains("start the VM anew"), "{why}");
    until("the QEMU that waited to end", REPORTED, || there.has_ended().then_some(()));
    setting.watched.went_on();
}

#[test]
fn what_somebody_does_at_a_monitor_of_his_own_is_seen_and_the_guest_stays() {
    let Some(mut setting) = Setting::on_a_file() else { return };
    let old = setting.source.socket().to_owned();
    let people = setting.stage.scratch.socket(PEOPLE);
    let more = ["-incoming", "defer"];
    // The other QEMU ends then, and which of the two is seen first is anybody's guess.
    let cancelled =
        ["another program cancelled QEMU's migration", "does not accept the guest"];
    let paused = ["the guest was stopped during the copy"; 2];
    for (name, word, why) in
        [("first", "migrate_cancel", cancelled), ("second", "stop", paused)]
    {
        let scratch = &setting.stage.scratch;
        let mut there = Vm::start(scratch, name, &setting.image, "raw", &more);
        let id = setting.slowly(there.socket());
        tell(&people, word);
        let ended = setting.reaches(id, "cancelled", REPORTED);
        let said = ended["reason"].as_str().expect("why");
        assert!(why.iter().any(|why| said.contains(why)), "{said}");
        until("the QEMU that waited to end", REPORTED, || {
            there.has_ended().then_some(())
        });
        if word == "stop" {
            assert!(said.contains("does not run on a: QEMU reports paused"), "{said}");
            tell(&people, "cont");
        }
        setting.runs_on("a", &old);
        setting.recommended();
    }
    setting.watched.went_on();
}

/// The moments: QEMU has been told to send, and the daemon knows nothing more; the other
/// one was not told to run the guest, or was, and the daemon does not know.
const MOMENTS: [(&str, Stop); 3] =
    [("\"migrate\"", Stop::After), ("\"cont\"", Stop::Before), ("\"cont\"", Stop::After)];

#[test]
fn a_daemon_that_is_killed_finds_the_guest_and_has_it_run_where_it_has_come() {
    let Some((mut setting, source)) = Setting::new(true) else { return };
    let mut source = source.expect("it is there");
    for (round, (command, when)) in MOMENTS.into_iter().enumerate() {
        let (to, name) = (["b", "a"][round % 2], format!("web{round}"));
        setting.stage.daemon.sterna("drs rule remove pin").ok();
        setting
            .stage
            .daemon
            .sterna(&format!("drs rule host pin web --on {to} --must"))
            .ok();
        setting.recommended();
        let there = setting.waiting(&name);
        let other = Between::start(&setting.stage.scratch, &name, there.socket());
        let spied = if round == 0 { &source } else { &other };
        spied.stop_at(command, when);
        let id = setting.begin(other.socket(), "--detach");
        spied.reached();
        setting.stage.daemon.kill();
        setting.stage.daemon.restart();
        setting.reaches(id, "completed", seconds(20));
        setting.runs_on(to, other.socket());
        assert!(setting.source.has_ended(), "{command}");
        (setting.source, source) = (there, other);
    }
    setting.watched.went_on();
}

#[test]
fn a_guest_that_has_run_at_the_other_qemu_never_goes_on_with_its_older_memory() {
    // It writes also while no daemon is there.
    let Some(mut setting) = Setting::on_a_file() else { return };
    // One whose VM stands still, shut down, when it is reset.
    let scratch = &setting.stage.scratch;
    let monitor = scratch.socket("second.qmp");
    let second = format!("unix:{},server=on,wait=off", monitor.display());
    let more = ["-incoming", "defer", "-qmp", &second, "-no-reboot", "-no-shutdown"];
    let there = Vm::start(scratch, "web-b", &setting.image, "raw", &more);
    let other = Between::start(scratch, "web-b", there.socket());
    other.stop_at("\"cont\"", Stop::After);
    let id = setting.begin(other.socket(), "--detach");
    other.reached();
    setting.stage.daemon.kill();
    is_written(&setting.image);
    tell(&monitor, "system_reset");
    let still = until("the VM to be shut down", seconds(20), || {
        let before = number_on(&setting.image);
        std::thread::sleep(seconds(1));
        (number_on(&setting.image) == before).then_some(before)
    });
    setting.stage.daemon.restart();
    let ended = setting.reaches(id, "completed", seconds(20));
    let why = ended["reason"].as_str().expect("why");
    assert!(why.contains("does not run there: QEMU reports shutdown"), "{why}");
    fits(&setting.stage.daemon.sterna("drs migration list").ok().stdout);
    let shown = setting.stage.daemon.json("vm show web");
    assert_eq!(shown["qmp"], other.socket().display().to_string(), "{shown:#}");
    until("the QEMU that it has left to end", REPORTED, || {
        setting.source.has_ended().then_some(())
    });
    assert_eq!(number_on(&setting.image), still, "nobody runs it");
    setting.watched.went_on();
}

#[test]
fn a_connection_that_breaks_is_no_qemu_that_has_ended() {
    let Some((mut setting, source)) = Setting::new(true) else { return };
    let source = source.expect("it is there");
    // That of the QEMU that sends.
    let mut there = setting.waiting("first");
    let id = setting.slowly(there.socket());
    source.stop_at("\"query-migrate\"", Stop::Cut);
    source.reached();
    source.let_in();
    std::thread::sleep(seconds(3));
    let one = setting.transfer(id);
    assert_eq!((&one["state"], &one["stuck"]), (&"copying".into(), &false.into()));
    setting.stage.daemon.sterna(&format!("drs migration cancel {id}")).ok();
    let ended = setting.reaches(id, "cancelled", REPORTED);
    assert_eq!(ended["reason"], Value::Null, "{ended:#}");
    setting.runs_on("a", source.socket());
    until("the QEMU that waited to end", REPORTED, || there.has_ended().then_some(()));
    // And that of the one that was told to run the guest.
    setting.recommended();
    let there = setting.waiting("second");
    let other = Between::start(&setting.stage.scratch, "second", there.socket());
    other.stop_at("\"cont\"", Stop::Cut);
    let id = setting.begin(other.socket(), "--detach");
    other.reached();
    other.let_in();
    setting.reaches(id, "completed", seconds(20));
    setting.runs_on("b", other.socket());
    setting.watched.went_on();
}

#[test]
fn a_qemu_that_was_started_where_the_other_one_waited_is_left_alone() {
    let Some((mut setting, _)) = Setting::new(false) else { return };
    let old = setting.source.socket().to_owned();
    let mut there = setting.waiting("web-b");
    let other = Between::start(&setting.stage.scratch, "web-b", there.socket());
    other.stop_at("\"stop\"", Stop::Before);
    let id = setting.begin(other.socket(), "--detach");
    other.reached();
    setting.stage.daemon.kill();
    there.kill();
    std::fs::remove_file(there.socket()).expect("remove a socket");
    let scratch = &setting.stage.scratch;
    let image = scratch.path("other.raw");
    write_guest(&image, 2 * MIB, MIB);
    let mut somebodys = Vm::start(scratch, "web-b", &image, "raw", &["-S"]);
    setting.stage.daemon.restart();
    let ended = setting.reaches(id, "cancelled", seconds(20));
    let why = ended["reason"].as_str().expect("why");
    assert!(
        why.contains("before QEMU sent anything") && why.contains("leaves the QEMU"),
        "{why}"
    );
    assert!(!somebodys.has_ended(), "it is nobody's to end");
    setting.runs_on("a", &old);
    setting.watched.went_on();
}

/// Somebody who has a file locked until he is let go, so that no QEMU may begin to write
/// to it.
fn locked(image: &Path) -> Child {
    let script = "import fcntl, sys\n\
                  file = open(sys.argv[1])\n\
                  fcntl.lockf(file, fcntl.LOCK_SH)\n\
                  print('locked', flush=True)\n\
                  sys.stdin.read()\n";
    let mut child = programs::command("python3")
        .args(["-c", script])
        .arg(image)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("start python3");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("it is piped");
    BufReader::new(stdout).read_line(&mut line).expect("it says so");
    assert_eq!(line, "locked\n");
    child
}

#[test]
fn a_guest_that_the_other_qemu_does_not_run_goes_on_where_it_was() {
    let Some(mut setting) = Setting::on_a_file() else { return };
    let old = setting.source.socket().to_owned();
    let more = ["-incoming", "defer"];
    let scratch = &setting.stage.scratch;
    let there = Vm::start(scratch, "first", &setting.image, "raw", &more);
    let mut lock = locked(&setting.image);
    let id = setting.begin(there.socket(), "--detach");
    // Now neither may write.
    let stuck = until("that to be said", seconds(10), || {
        Some(setting.transfer(id)).filter(|one| one["stuck"] == true)
    });
    let why = stuck["reason"].as_str().expect("why");
    assert!(why.contains("does not continue") && why.contains("lock"), "{why}");
    let warned = setting.stage.daemon.sterna("status").ok().stdout;
    assert!(warned.contains("cannot continue"), "{warned}");
    lock.kill().and_then(|()| lock.wait()).expect("end python3");
    let ended = setting.reaches(id, "cancelled", seconds(10));
    assert!(
        ended["reason"].as_str().is_some_and(|why| why.contains("lock")),
        "{ended:#}"
    );
    setting.runs_on("a", &old);
    // And without that it goes.
    setting.recommended();
    let scratch = &setting.stage.scratch;
    let there = Vm::start(scratch, "second", &setting.image, "raw", &more);
    let id = setting.begin(there.socket(), "");
    setting.reaches(id, "completed", REPORTED);
    setting.runs_on("b", there.socket());
    setting.watched.went_on();
}

/// Ends a QEMU that a program has started.
struct Started(PathBuf);

impl Drop for Started {
    fn drop(&mut self) {
        let pid = std::fs::read_to_string(&self.0).unwrap_or_default();
        if let Ok(pid) = pid.trim().parse::<i32>()
            && let Some(pid) = rustix::process::Pid::from_raw(pid)
        {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}

#[test]
fn what_is_recommended_is_moved_by_itself_if_that_is_wished() {
    let Some((mut setting, _)) = Setting::new(false) else { return };
    let daemon = &setting.stage.daemon;
    let script = starter(daemon.nbd_socket(), "web");
    let program = setting.stage.scratch.path("start");
    std::fs::write(&program, script).expect("write a program");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, mode).expect("make it one");
    // One that cannot be: it is not tried again at once, and why is said.
    daemon.sterna("drs set --automation full").ok();
    let why = until("that to be said", seconds(10), || {
        let told = daemon.json("drs explain web");
        told["vm"]["stays"].as_str().map(str::to_owned)
    });
    assert!(why.contains("has failed") && why.contains("no program"), "{why}");
    daemon.sterna("host unassign web").ok();
    daemon.sterna("drs set --automation manual").ok();
    // What is known of its moves goes with it.
    daemon.sterna("vm remove web").ok();
    let socket = setting.source.socket().display().to_string();
    daemon.sterna(&format!("vm add web --qmp {socket}")).ok();
    daemon.sterna(&format!("host program b {}", program.display())).ok();
    daemon.sterna("host assign a web").ok();
    daemon.sterna("drs rule remove pin").ok();
    daemon.sterna("drs rule host pin web --on b --must").ok();
    daemon.sterna("drs set --automation partial").ok();
    let moved = until("it to be moved", seconds(30), || {
        let told = daemon.json("drs migration list");
        Some(told[0].clone()).filter(|one| one["state"] == "completed")
    });
    assert_eq!(moved["automatic"], true, "{moved:#}");
    let there = PathBuf::from(moved["destination"].as_str().expect("a socket"));
    let _started = Started(PathBuf::from(format!("{}.pid", there.display())));
    setting.runs_on("b", &there);
    setting.watched.went_on();
}
