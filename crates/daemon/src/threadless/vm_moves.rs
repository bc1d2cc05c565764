//! A daemon to which the system gives no threads for moves.

use std::path::Path;
use std::sync::Arc;

use sterna_api::{Application, Guard};
use sterna_machines::Machines;
use sterna_moves::Mover;
use sterna_runtime::threads::refusals::{allow, deny};
use sterna_state::{Reach, Step, Store, VmMoveKind, VmMoveRecord, VmRecord};

use super::{start, state, until};

fn web() -> VmRecord {
    let reach = Reach::Qmp("/nosuch/web.qmp".into());
    VmRecord { name: "web".into(), reach, added: 1 }
}

fn a_move(device: &str) -> VmMoveRecord {
    VmMoveRecord {
        id: 0,
        kind: VmMoveKind::Move,
        vm: "web".into(),
        device: device.into(),
        size: 1 << 20,
        format: "raw".into(),
        from: "fast".into(),
        source: "/nosuch/web.raw".into(),
        source_file: None,
        to: "slow".into(),
        destination: String::new(),
        destination_file: None,
        rate: None,
        guard: Guard::default(),
        step: Step::Created,
        paused: false,
        cancel: false,
        started: 1,
        ended: None,
        note: None,
        application: Application::default(),
        report: None,
        unclear: false,
    }
}

fn step_of(store: &Store, id: u64) -> Step {
    store.vm_move(id).expect("the state").expect("the move").step
}

fn moves_without_threads(place: &Path) {
    const NAME: &str = "sterna-vm-";
    deny(NAME);
    let store = state(place);
    store.add_vm(web()).expect("a VM");
    let name = |id: u64| format!("/nosuch/web-{id}.raw");
    let left = store.add_vm_move(a_move("vda"), name).expect("a move");
    drop(store);
    let running = start(place);
    let machines: &Arc<Machines> = &running.daemon.machines;
    let state = &running.daemon.storage.store;
    assert!(!machines.is_under_way(left), "nobody carries it out");
    assert_eq!(step_of(state, left), Step::Created, "it may be anywhere");
    // A new one has ended before it began, and another may.
    for _ in 0..2 {
        let begun = machines.begin_vm_move(&web(), a_move("vdb"), name);
        let refused = begun.expect_err("there is no thread").to_string();
        assert!(refused.contains("cannot start a thread"), "{refused}");
        let last = state.vm_moves().expect("the state").pop().expect("the move");
        let note = last.note.unwrap_or_default();
        assert!(last.step == Step::Cancelled && note.contains("thread"), "{note}");
        assert!(!machines.is_under_way(last.id));
    }
    machines.resume_stranded_moves().expect("the state");
    assert_eq!(step_of(state, left), Step::Created, "there is no thread yet");
    allow(NAME);
    machines.resume_stranded_moves().expect("the state");
    until("its machine to be found gone", || step_of(state, left).ended());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_without_a_thread_has_ended_and_one_that_was_left_waits_for_it() {
    let scratch = tempfile::tempdir().expect("a directory");
    let place = scratch.path().to_owned();
    let test = tokio::task::spawn_blocking(move || moves_without_threads(&place));
    test.await.expect("it holds");
}
