//! What signals do to the daemon, those of limits among them: none of them ends it without a
//! word.

use rustix::process::{Pid, Signal, kill_process};
use sterna_tests::wait::seconds;
use sterna_tests::{MIB, Stage, until};

fn send(stage: &Stage, signal: Signal) {
    let pid = i32::try_from(stage.daemon.pid()).ok().and_then(Pid::from_raw);
    kill_process(pid.expect("a process"), signal).expect("send a signal");
}

#[track_caller]
fn is_logged(stage: &Stage, words: &str) {
    until(&format!("the log to say: {words}"), seconds(20), || {
        stage.daemon.log().contains(words).then_some(())
    });
}

#[test]
fn a_closed_terminal_stops_the_daemon_in_good_order() {
    // The tests may themselves run under nohup.
    let mut stage = Stage::with(|daemon| daemon.start_under("env --default-signal=HUP"));
    send(&stage, Signal::HUP);
    until("the daemon to end", seconds(20), || stage.daemon.is_over().then_some(()));
    is_logged(&stage, "the terminal was closed (SIGHUP)");
    let log = stage.daemon.log();
    assert!(log.contains("INFO stopped"), "{:?}", log.lines().last());
    stage.daemon.kill();
}

#[test]
fn under_nohup_the_daemon_outlives_its_terminal() {
    let stage = Stage::with(|daemon| daemon.start_under("nohup"));
    send(&stage, Signal::HUP);
    // It is heard after the other one.
    send(&stage, Signal::USR1);
    is_logged(&stage, "SIGUSR1");
    stage.disk("x", MIB);
}

#[test]
fn a_signal_without_a_meaning_is_logged_and_no_more() {
    let mut stage = Stage::new();
    for (signal, name) in [
        (Signal::USR1, "SIGUSR1"),
        (Signal::USR2, "SIGUSR2"),
        (Signal::ALARM, "SIGALRM"),
        (Signal::VTALARM, "SIGVTALRM"),
        (Signal::PROF, "SIGPROF"),
        (Signal::IO, "SIGIO"),
        (Signal::POWER, "SIGPWR"),
    ] {
        send(&stage, signal);
        is_logged(&stage, &format!("signal=\"{name}\""));
    }
    stage.disk("x", MIB);
    stage.daemon.stop();
}

#[test]
fn ctrl_z_and_a_terminal_in_the_foreground_of_others_stop_no_guest() {
    let mut stage = Stage::new();
    for signal in [Signal::TTIN, Signal::TTOU, Signal::TSTP] {
        send(&stage, signal);
    }
    is_logged(&stage, "signal=\"SIGTSTP\"");
    stage.disk("x", MIB);
    stage.daemon.stop();
}

#[test]
fn a_disk_beyond_the_limit_of_a_files_size_is_refused_and_the_others_stay() {
    let mut stage = Stage::with(|daemon| daemon.start_under("prlimit --fsize=41943040"));
    stage.disk("x", 32 * MIB);
    let create = format!("disk create big --size {} --on here", 64 * MIB);
    stage.daemon.sterna(&create).fails_with(&["File too large", "LimitFSIZE="]);
    assert_eq!(stage.daemon.disk("x")["served"], true);
    stage.daemon.stop();
}
