//! Hosts, pools, rules, and which VM is where.

use sterna_api::{DrsSettings, PoolTerms, RuleKind};
use sterna_placement::hosts::CooldownSettings;

use super::*;

fn vm(store: &Store, name: &str) {
    let reach = Reach::Qmp(format!("/run/{name}.qmp").into());
    store.add_vm(VmRecord { name: name.into(), reach, added: 7 }).unwrap();
}

fn host(name: &str) -> HostRecord {
    HostRecord {
        name: name.into(),
        cpu: 1.5,
        memory: 64 << 30,
        program: Some("/usr/bin/start".into()),
        added: 8,
    }
}

fn pool(name: &str, parent: Option<&str>) -> PoolRecord {
    let cpu = PoolTerms { reservation: 0.5, limit: Some(1.0), shares: 7 };
    PoolRecord {
        name: name.into(),
        parent: parent.map(Into::into),
        cpu,
        memory: PoolTerms::default(),
        created: 9,
    }
}

fn assignment(vm: &str, host: &str) -> SeatRecord {
    let history = History {
        host: host.into(),
        moved: Some(10),
        times: 2,
        foreign: Some(11),
        failed: Some(12),
    };
    SeatRecord {
        vm: vm.into(),
        host: Some(host.into()),
        pool: Some("inner".into()),
        history: Some(history),
    }
}

fn transfer(vm: &str) -> TransferRecord {
    TransferRecord {
        id: 0,
        vm: vm.into(),
        step: TransferStep::Created,
        design: TransferDesign {
            from: "a".into(),
            to: "b".into(),
            source: "/run/web.qmp".into(),
            destination: "/run/web-b.qmp".into(),
            program: Some("/usr/bin/start".into()),
            disks: vec!["4".into()],
            rate: Some(7),
            reason: "the hosts' loads differ".into(),
            priority: 3,
            automatic: true,
            receiver: None,
        },
        cancel: false,
        started: 13,
        end: None,
    }
}

fn rule() -> RuleRecord {
    RuleRecord {
        name: "far".into(),
        kind: RuleKind::AntiAffinity,
        vms: vec!["db".into(), "web".into()],
        hosts: Vec::new(),
        must: true,
        created: 12,
    }
}

/// A store with one of everything.
fn full() -> (TempDir, Store) {
    let (dir, store) = fresh();
    vm(&store, "web");
    vm(&store, "db");
    store
        .enter(vec![
            Entry::Host(host("a")),
            Entry::Pool(pool("outer", None)),
            Entry::Pool(pool("inner", Some("outer"))),
            Entry::Assignment(assignment("web", "a")),
            Entry::AddRule(rule()),
            Entry::Settings(DrsSettings { threshold: 5, ..DrsSettings::default() }),
        ])
        .unwrap();
    (dir, store)
}

#[test]
fn the_registry_comes_back_as_it_was_entered() {
    let (dir, store) = full();
    drop(store);
    let registry = open(&dir).registry().unwrap();
    assert_eq!(registry.hosts, [host("a")]);
    assert_eq!(registry.pools, [pool("outer", None), pool("inner", Some("outer"))]);
    assert_eq!(
        (registry.assignments, registry.rules),
        (vec![assignment("web", "a")], vec![rule()])
    );
    assert_eq!(registry.settings.threshold, 5);
    let (_dir, empty) = fresh();
    assert_eq!(empty.registry().unwrap(), Registry::default());
}

#[test]
fn drs_begins_with_the_cooldown_that_its_decisions_have() {
    let usual = Registry::default().cooldown_settings();
    assert_eq!(usual, CooldownSettings::default());
}

#[test]
fn of_several_entries_all_are_made_or_none() {
    let (_dir, store) = full();
    let before = store.registry().unwrap();
    let wrong =
        vec![Entry::Host(host("b")), Entry::Assignment(assignment("nobody", "a"))];
    assert!(store.enter(wrong).is_err());
    assert_eq!(store.registry().unwrap(), before);
}

#[test]
fn what_is_gone_takes_its_places_with_it() {
    let (_dir, store) = full();
    assert!(store.enter(vec![Entry::RemoveHost("a".into())]).is_err(), "web is on it");
    assert!(store.enter(vec![Entry::RemovePool("outer".into())]).is_err());
    store.enter(vec![Entry::RemovePool("inner".into())]).unwrap();
    assert_eq!(store.registry().unwrap().assignments[0].pool, None);
    store.remove_vm("web").unwrap();
    let registry = store.registry().unwrap();
    assert_eq!(
        (registry.assignments.len(), registry.rules[0].vms.as_slice()),
        (0, &["db".into()][..])
    );
    store.enter(vec![Entry::RemoveRule("far".into())]).unwrap();
    store.enter(vec![Entry::RemoveHost("a".into())]).unwrap();
}

#[test]
fn terms_of_a_pool_change_and_it_stays_where_it_is() {
    let (_dir, store) = full();
    let changed = PoolRecord {
        memory: PoolTerms { shares: 9, ..PoolTerms::default() },
        ..pool("outer", None)
    };
    store.enter(vec![Entry::Pool(changed.clone())]).unwrap();
    let registry = store.registry().unwrap();
    assert_eq!(registry.pools, [changed, pool("inner", Some("outer"))]);
}

#[test]
fn a_transfer_is_on_the_registry_until_it_has_ended() {
    let (dir, store) = full();
    store.enter(vec![Entry::Transfer(transfer("web"))]).unwrap();
    let mut one = store.registry().unwrap().transfers.remove(0);
    assert_eq!(one, TransferRecord { id: 1, ..transfer("web") });
    let reach = Reach::Qmp("/run/web-b.qmp".into());
    (one.step, one.cancel) = (TransferStep::Committed, true);
    let there = Entry::Reach { vm: "web".into(), reach: reach.clone() };
    store.enter(vec![Entry::Transfer(one.clone()), there]).unwrap();
    drop(store);
    let store = open(&dir);
    assert_eq!(store.registry().unwrap().transfers, [one.clone()]);
    assert!(store.vms().unwrap().iter().any(|vm| vm.reach == reach));
    one.step = TransferStep::Completed;
    one.end = Some(TransferEnd { at: 14, note: Some("so it is".into()), report: None });
    store.enter(vec![Entry::Transfer(one.clone())]).unwrap();
    assert_eq!(store.registry().unwrap().transfers, []);
    assert_eq!(store.transfers().unwrap(), [one]);
}

#[test]
fn nobody_is_reached_where_another_machine_is() {
    let (_dir, store) = full();
    let reach = Reach::Qmp("/run/db.qmp".into());
    let there = Entry::Reach { vm: "web".into(), reach };
    assert!(store.enter(vec![Entry::Transfer(transfer("web")), there]).is_err());
    assert_eq!(store.registry().unwrap().transfers, []);
}
