//! A daemon to which the system gives no threads for transfers.

use std::path::Path;
use std::sync::Arc;

use sterna_api::TransferState;
use sterna_machines::Machines;
use sterna_runtime::threads::refusals::{allow, deny};
use sterna_state::{Entry, TransferDesign, TransferRecord, TransferStep};

use super::{start, state, until};

fn transfer(vm: &str) -> TransferRecord {
    TransferRecord {
        id: 0,
        vm: vm.into(),
        step: TransferStep::Created,
        design: TransferDesign {
            from: "a".into(),
            to: "b".into(),
            source: format!("/nosuch/{vm}.qmp").into(),
            destination: format!("/nosuch/{vm}-b.qmp").into(),
            program: None,
            disks: Vec::new(),
            rate: None,
            reason: "the hosts' loads differ".into(),
            priority: 3,
            automatic: false,
            receiver: None,
        },
        cancel: false,
        started: 1,
        end: None,
    }
}

fn transfers_without_threads(place: &Path) {
    const LEFT: &str = "sterna-drs-1";
    const SECOND: &str = "sterna-drs-3";
    [LEFT, SECOND].into_iter().for_each(deny);
    let store = state(place);
    store.enter(vec![Entry::Transfer(transfer("left"))]).expect("a transfer");
    drop(store);
    let running = start(place);
    let machines: &Arc<Machines> = &running.daemon.machines;
    let states = || {
        let all = machines.list_vm_migrations().expect("the state");
        all.into_iter().map(|one| one.state).collect::<Vec<_>>()
    };
    assert_eq!(states(), [TransferState::Starting], "nobody carries it out");
    // Two that change places: the second one has no thread, so the first one stays, too.
    let entries = || ["one", "other"].map(transfer).map(Entry::Transfer).to_vec();
    let store = &running.daemon.storage.store;
    store.enter(entries()).expect("transfers");
    let registry = store.registry().expect("the roll");
    let refused =
        machines.start_entered(&registry.transfers[1..]).expect_err("no thread");
    assert!(refused.to_string().contains("cannot start a thread"), "{refused}");
    until("both to stay", || states()[1..] == [TransferState::Cancelled; 2]);
    let all = machines.list_vm_migrations().expect("the state");
    let why = all[2].reason.clone().unwrap_or_default();
    assert!(why.contains("cannot start a thread"), "{why}");
    machines.check_no_vm_migration("one").expect("it is on its way no more");
    machines.check_no_vm_migration("other").expect("it is on its way no more");
    allow(LEFT);
    machines.resume_stranded_vm_migrations().expect("the state");
    until("the one that was left to end", || states()[0] == TransferState::Cancelled);
    allow(SECOND);
}

#[tokio::test(flavor = "multi_thread")]
async fn transfers_without_threads_begin_both_or_neither() {
    let scratch = tempfile::tempdir().expect("a directory");
    let place = scratch.path().to_owned();
    let test = tokio::task::spawn_blocking(move || transfers_without_threads(&place));
    test.await.expect("it holds");
}
