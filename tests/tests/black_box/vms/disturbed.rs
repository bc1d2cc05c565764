//! Moves of VMs that die, hang, fall silent or are started anew, of jobs that others end, and
//! daemons that are killed meanwhile.

use std::fs;

use super::*;

#[test]
fn a_vm_that_dies_ends_its_move() {
    let Some((stage, mut vm, old)) = stage() else { return };
    let id = slow_move(&stage);
    let began = Instant::now();
    vm.kill();
    let ended = stage.daemon.wait_for(id, "cancelled", REPORTED);
    assert!(began.elapsed() < REPORTED);
    assert!(ended["reason"].as_str().expect("why").contains("has ended"), "{ended:#}");
    nothing_is_left(&stage);
    assert!(old.exists());
    assert_eq!(stage.daemon.json("vm show web")["state"], "unreachable");
}

#[test]
fn a_vm_that_hangs_ends_its_move_and_is_tidied_up_when_it_is_back() {
    let Some((stage, vm, old)) = stage() else { return };
    let id = slow_move(&stage);
    vm.hang();
    let ended = stage.daemon.wait_for(id, "cancelled", REPORTED);
    let why = ended["reason"].as_str().expect("why");
    assert!(why.contains("not answer") && why.contains("Sterna removes"), "{why}");
    vm.go_on();
    is_written(&old);
    until("the copy to be removed", seconds(30), || {
        stage.files_there().is_empty().then_some(())
    });
    moves_when_it_can(&stage, &old);
}

#[test]
fn a_job_that_somebody_else_gives_up_is_reported() {
    let Some(stage) = Stage::given(&["qemu-system-x86_64", "python3"]) else {
        return;
    };
    let image = stage.here.join("web.raw");
    write_guest(&image, 64 * MIB, 32 * MIB);
    let other = stage.scratch.socket("other.qmp");
    let monitor = format!("unix:{},server=on,wait=off", other.display());
    let vm = Vm::start(&stage.scratch, "web", &image, "raw", &["-qmp", &monitor]);
    add(&stage, "web", &vm);
    let id = slow_move(&stage);
    let script = format!(
        "import socket, json\n\
         s = socket.socket(socket.AF_UNIX); s.connect({:?}); f = s.makefile('rw')\n\
         def call(command, **arguments):\n\
         \x20   f.write(json.dumps(dict(execute=command, arguments=arguments))); f.flush()\n\
         \x20   while True:\n\
         \x20       answer = json.loads(f.readline())\n\
         \x20       if 'return' in answer: return answer['return']\n\
         f.readline(); call('qmp_capabilities')\n\
         call('job-cancel', id=call('query-jobs')[0]['id'])\n",
        other.display().to_string()
    );
    programs::run("python3", ["-c", &script]);
    let ended = stage.daemon.wait_for(id, "cancelled", REPORTED);
    assert!(
        ended["reason"].as_str().expect("why").contains("another program"),
        "{ended:#}"
    );
    nothing_is_left(&stage);
}

#[test]
fn a_daemon_that_is_killed_goes_on_with_the_move() {
    let Some((mut stage, _vm, old)) = stage() else { return };
    let id = slow_move(&stage);
    stage.daemon.kill();
    stage.daemon.restart();
    stage.daemon.wait_for(id, "copying", seconds(20));
    stage.daemon.stop();
    is_written(&old);
    stage.daemon.restart();
    stage.daemon.hurry(id);
    stage.daemon.completed(id);
    is_written(&image(&stage));
}

#[test]
fn a_vm_that_is_started_anew_with_its_old_image_costs_no_write() {
    let Some((mut stage, mut vm, between, old)) = stage_between() else { return };
    between.stop_at("job-complete", Stop::After);
    let id = moving(&stage, "web vda --to there");
    between.reached();
    let new = stage.there.join(format!("web-vda-{id}.raw"));
    until("QEMU to have switched over", seconds(20), || {
        (number_on(&new) > number_on(&old)).then_some(())
    });
    stage.daemon.kill();
    vm.kill();
    std::fs::remove_file(vm.socket()).expect("remove a socket");
    let written = number_on(&new);
    let _vm = Vm::start(&stage.scratch, "web", &old, "raw", &[]);
    stage.daemon.restart();
    let ended = stage.daemon.wait_for(id, "cancelled", seconds(30));
    let why = ended["reason"].as_str().expect("why");
    assert!(why.contains("Sterna keeps both"), "{why}");
    assert_eq!(number_on(&new), written);
    assert_eq!(ended["unclear"], true);
    until("a warning of what it runs with", seconds(20), || {
        stage.daemon.sterna("vm show web").ok();
        let warned = stage.daemon.json("status")["warnings"].to_string();
        (warned.contains("may be in") && warned.contains("the VM runs with"))
            .then_some(())
    });
    let watch = stage.daemon.sterna(&format!("migration watch {id}"));
    watch.fails_with(&["the disk is on here or", "qemu-img compare"]);
}

#[test]
fn a_switch_over_that_does_not_come_can_be_cancelled() {
    let Some((stage, _vm, between, old)) = stage_between() else { return };
    between.stop_at("job-complete", Stop::Lost);
    let id = moving(&stage, "web vda --to there");
    between.reached();
    stage.daemon.sterna(&format!("migration pause {id}")).fails_with(&["switching over"]);
    stage.daemon.sterna(&format!("migration cancel {id}")).ok();
    let ended = stage.daemon.wait_for(id, "cancelled", seconds(20));
    assert_eq!(ended["reason"], Value::Null, "{ended:#}");
    nothing_is_left(&stage);
    assert_eq!(image(&stage), old);
    is_written(&old);
    let again = moving(&stage, "web vda --to there");
    stage.daemon.completed(again);
}

#[test]
fn a_vm_that_falls_silent_at_the_switch_over_is_asked_again() {
    let Some((stage, _vm, between, old)) = stage_between() else { return };
    between.stop_at("job-complete", Stop::Cut);
    let id = moving(&stage, "web vda --to there");
    between.reached();
    let now = until("the silence to be noticed", seconds(20), || {
        let now = stage.daemon.migration(id);
        now["reason"].is_string().then_some(now)
    });
    assert!(now["reason"].to_string().contains("nothing greets"), "{now:#}");
    between.let_in();
    stage.daemon.completed(id);
    assert_ne!(image(&stage), old);
    is_written(&image(&stage));
}

#[test]
fn a_copy_that_ends_while_its_limit_is_changed_says_why_it_has_ended() {
    let Some((stage, _vm, between, old)) = stage_between() else { return };
    let id = slow_move(&stage);
    between.stop_at("block-job-set-speed", Stop::TooLate);
    stage.daemon.sterna(&format!("migration set {id} --rate 2M")).ok();
    let ended = stage.daemon.wait_for(id, "cancelled", seconds(20));
    let why = ended["reason"].as_str().expect("why");
    assert!(why.contains("another program cancelled"), "{why}");
    nothing_is_left(&stage);
    assert_eq!(image(&stage), old);
}

#[test]
fn a_daemon_that_is_killed_while_a_copy_begins_begins_it_anew() {
    for (command, when) in
        [("blockdev-add", Stop::Before), ("blockdev-mirror", Stop::After)]
    {
        let Some((mut stage, _vm, between, _old)) = stage_between() else { return };
        between.stop_at(command, when);
        let id = moving(&stage, "web vda --to there");
        between.reached();
        stage.daemon.kill();
        stage.daemon.restart();
        stage.daemon.completed(id);
        is_written(&image(&stage));
        assert_eq!(stage.files_there(), [format!("web-vda-{id}.raw")]);
    }
}

#[test]
fn what_a_vm_that_hangs_has_of_a_copy_is_given_up_by_the_next_daemon() {
    let Some((mut stage, vm, old)) = stage() else { return };
    let id = slow_move(&stage);
    vm.hang();
    stage.daemon.wait_for(id, "cancelled", REPORTED);
    stage.daemon.kill();
    stage.daemon.restart();
    vm.go_on();
    is_written(&old);
    moves_when_it_can(&stage, &old);
}

/// Kills the daemon while QEMU copies, gives the copy's name to another file, and starts the
/// daemon; gives the move and the name.
fn renamed_while_nobody_looks(stage: &mut Stage) -> (u64, PathBuf) {
    let id = slow_move(stage);
    stage.daemon.kill();
    let copy = stage.there.join(format!("web-vda-{id}.raw"));
    fs::rename(&copy, stage.scratch.path("aside")).expect("rename the copy");
    fs::write(&copy, "somebody's").expect("write another file");
    (id, copy)
}

#[test]
fn a_file_that_gets_the_copys_name_while_no_daemon_runs_outlives_a_cancel() {
    let Some((mut stage, _vm, old)) = stage() else { return };
    let (id, copy) = renamed_while_nobody_looks(&mut stage);
    stage.daemon.restart();
    stage.daemon.wait_for(id, "copying", seconds(20));
    stage.daemon.cancel(id);
    assert_eq!(fs::read(&copy).expect("it is there"), b"somebody's");
    assert_eq!(image(&stage), old);
    is_written(&old);
}

#[test]
fn the_copy_of_a_move_that_an_older_sterna_began_is_kept_and_that_is_said() {
    if !programs::have(&["sqlite3"]) {
        return;
    }
    let Some((mut stage, _vm, old)) = stage() else { return };
    let (id, copy) = renamed_while_nobody_looks(&mut stage);
    let state = stage.daemon.state().join("state.db").display().to_string();
    programs::run("sqlite3", [&state, "UPDATE vm_moves SET destination_file = NULL"]);
    stage.daemon.restart();
    stage.daemon.wait_for(id, "copying", seconds(20));
    stage.daemon.cancel(id);
    let why = stage.daemon.migration(id)["reason"].to_string();
    assert!(why.contains("Sterna kept") && why.contains("not recorded"), "{why}");
    assert_eq!(fs::read(&copy).expect("it is there"), b"somebody's");
    assert_eq!(image(&stage), old);
}
