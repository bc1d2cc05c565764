//! A round from what was seen to what is advised, without VMs or a state.

use std::time::{Duration, Instant};

use sterna_api::DrsSettings;
use sterna_core::Nanos;
use sterna_placement::hosts::Goal;
use sterna_qemu::Usage;
use sterna_state::{HostRecord, SeatRecord};

use super::*;

const GIB: u64 = 1 << 30;
/// A round's time.
const MINUTE: Duration = Duration::from_secs(60);

/// Two hosts with 8 processors each.
fn registry(assignments: &[(&str, &str)]) -> Registry {
    let host = |name: &str| HostRecord {
        name: name.into(),
        cpu: 8.0,
        memory: 64 * GIB,
        program: None,
        added: 0,
    };
    let assignment = |(vm, host): &(&str, &str)| SeatRecord {
        vm: (*vm).into(),
        host: Some((*host).into()),
        pool: None,
        history: None,
    };
    Registry {
        hosts: vec![host("left"), host("right")],
        pools: Vec::new(),
        assignments: assignments.iter().map(assignment).collect(),
        rules: Vec::new(),
        transfers: Vec::new(),
        settings: DrsSettings { hold: 2, ..DrsSettings::default() },
    }
}

/// Rounds of VMs that use so many processors all the time.
struct Rounds {
    state: State,
    began: Instant,
    rounds: u32,
}

impl Rounds {
    fn new() -> Rounds {
        Rounds { state: State::default(), began: Instant::now(), rounds: 0 }
    }

    fn round(&mut self, registry: &Registry, uses: &[(&str, u32)]) -> Judged {
        let passed = MINUTE * self.rounds;
        self.rounds += 1;
        self.state.settle(registry);
        for (vm, processors) in uses {
            let usage = Usage {
                processors: 8,
                memory: 4 * GIB,
                busy: passed * *processors,
                held: GIB,
            };
            self.state.look((*vm).into(), self.began + passed, Ok((usage, None)));
        }
        self.state.judge(registry, Nanos::from(passed))
    }
}

fn moves(judged: &Judged) -> Vec<(&str, &str)> {
    let Judged { scene, advice, .. } = judged;
    let names = |one: &sterna_placement::hosts::Recommended| {
        (scene.vms[one.vm].as_str(), scene.hosts[one.to].as_str())
    };
    advice.moves.iter().map(names).collect()
}

#[test]
fn a_vm_leaves_a_host_that_has_too_little_once_it_was_seen_often_enough() {
    let registry = registry(&[("a", "left"), ("b", "left"), ("c", "right")]);
    let uses = [("a", 6), ("b", 5), ("c", 1)];
    let mut rounds = Rounds::new();
    let first = rounds.round(&registry, &uses);
    assert_eq!(moves(&first), []);
    let why = first.scene.stays[0].as_deref();
    assert_eq!(why, Some("the VM was not checked often enough yet"));
    let advised = (0..4).map(|_| rounds.round(&registry, &uses)).last().expect("rounds");
    let [(vm, "right")] = moves(&advised)[..] else { panic!("{:?}", moves(&advised)) };
    assert!(vm == "a" || vm == "b");
    assert!(matches!(advised.advice.moves[0].goal, Goal::Relieve(_)));
    assert!(advised.held, "it was so for more than two rounds");
}

#[test]
fn a_vm_that_cannot_be_asked_or_sent_stays_and_the_reason_is_given() {
    let registry = registry(&[("a", "left"), ("b", "left"), ("c", "right")]);
    let mut rounds = Rounds::new();
    for _ in 0..4 {
        rounds.round(&registry, &[("a", 6), ("b", 5), ("c", 1)]);
    }
    let state = &mut rounds.state;
    state.look("a".into(), Instant::now(), Err("QEMU does not answer".into()));
    let usage = Usage { processors: 8, memory: 4 * GIB, busy: MINUTE, held: GIB };
    let stuck = Some("it has a device of the host".into());
    state.look("b".into(), Instant::now(), Ok((usage, stuck)));
    let judged = state.judge(&registry, Nanos::from(MINUTE * 5));
    assert_eq!(moves(&judged), []);
    let stays: Vec<_> = judged.scene.stays.iter().map(Option::as_deref).collect();
    let reasons =
        [Some("QEMU does not answer"), Some("it has a device of the host"), None];
    assert_eq!(stays, reasons);
}

#[test]
fn hosts_that_are_even_are_left_alone() {
    let registry = registry(&[("a", "left"), ("b", "right")]);
    let mut rounds = Rounds::new();
    let judged = (0..6).map(|_| rounds.round(&registry, &[("a", 2), ("b", 2)])).last();
    let judged = judged.expect("rounds");
    assert_eq!(moves(&judged), []);
    assert!(!judged.held);
}
