//! The file system of the state directory fails while nothing is to be recorded, and a state
//! database that is only half there.

use std::fs;
use std::process::Command;

use sterna_tests::programs;
use sterna_tests::wait::seconds;
use sterna_tests::{MIB, Stage, until};

#[test]
fn a_state_directory_whose_file_system_has_failed_is_warned_of_before_it_is_needed() {
    let Some((mut stage, tiny)) = Stage::given_tiny_state(64 * MIB) else { return };
    stage.disk("a", MIB);
    assert_eq!(stage.daemon.warnings("state"), Vec::<String>::new());
    tiny.shut_down();
    let warned = until("a warning", seconds(20), || {
        stage.daemon.warnings("state").into_iter().next_back()
    });
    assert!(warned.contains("takes no changes"), "{warned}");
    stage.daemon.kill();
    // Whoever begins anew elsewhere has a daemon that knows no disk.
    let started = Command::new(programs::sterna())
        .args(["serve", "--config", "/dev/null", "--state"])
        .arg(stage.daemon.state())
        .arg("--socket")
        .arg(stage.scratch.path("other-api"))
        .arg("--nbd-socket")
        .arg(stage.scratch.path("other-nbd"))
        .output()
        .expect("run sterna serve");
    let said = String::from_utf8_lossy(&started.stderr);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(!started.status.success(), "{said}");
    assert!(said.contains("repair and mount the file system"), "{said}");
    assert!(!said.contains("--state DIR"), "{said}");
}

#[test]
fn a_state_database_without_its_log_is_warned_of() {
    let mut stage = Stage::new();
    stage.disk("a", MIB);
    stage.daemon.kill();
    let state = stage.daemon.state().to_owned();
    for file in ["state.db-wal", "state.db-shm"] {
        fs::remove_file(state.join(file)).expect("it is there");
    }
    stage.daemon.restart();
    let warned = stage.daemon.warnings("state");
    let words = "the state database knows no disk, but accounts in";
    assert!(warned.iter().any(|it| it.contains(words)), "{warned:?}");
    assert!(stage.daemon.log().contains(words), "{}", stage.daemon.log());
}
