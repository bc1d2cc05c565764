//! The state directory is removed, or exchanged for an older copy, while the daemon runs.

use std::fs;

use sterna_tests::clients::nbdsh;
use sterna_tests::programs::run;
use sterna_tests::wait::seconds;
use sterna_tests::{MIB, Stage, until};

#[test]
fn nothing_is_done_that_no_next_daemon_would_know_of() {
    let stage = Stage::new();
    stage.disk_with_data("a", 8 * MIB, 8 * MIB);
    let state = stage.daemon.state().to_owned();
    let (away, older) = (state.with_extension("away"), state.with_extension("older"));
    run("cp", ["-a".as_ref(), state.as_os_str(), older.as_os_str()]);
    fs::rename(&state, &away).unwrap();
    let warned = || {
        let mut about_it = stage.daemon.warnings("state").into_iter();
        about_it.rfind(|it| it.contains("removed, unmounted or replaced"))
    };
    for there in [None, Some(&older)] {
        if let Some(there) = there {
            fs::rename(there, &state).unwrap();
        }
        let refused = stage.daemon.sterna("disk create b --size 1M --on here");
        refused
            .fails_with(&["would not know of a change", "Put the state directory back"]);
        until("a warning", seconds(20), warned);
        // Its clients are served all the same.
        nbdsh(&stage.daemon.uri("a"), "h.pwrite(b'x' * 512, 0); h.flush()");
    }
    assert!(
        !stage.scratch.path("here").join("b.raw").exists(),
        "what was made is removed"
    );
    fs::rename(&state, &older).unwrap();
    fs::rename(&away, &state).unwrap();
    stage.daemon.sterna("disk create b --size 1M --on here").ok();
    until("no warning", seconds(20), || warned().is_none().then_some(()));
}
