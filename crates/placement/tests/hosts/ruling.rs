//! Rules: those that must hold and those that should.

use sterna_placement::hosts::{
    Because, Clash, Goal, Inventory, Kind, Rule, Vm, advise, clash,
};

use super::building::{ask, eager, host, inventory, moves, refusal, rule, vm};

fn with(rules: &[Rule], vms: &[Vm], hosts: usize) -> Inventory {
    let hosts = vec![host(16.0, 64.0); hosts];
    Inventory { rules: rules.into(), ..inventory(&hosts, vms) }
}

#[test]
fn a_rule_that_must_hold_is_put_right_first() {
    let machines = [vm(0, 1.0, 4.0), vm(0, 1.0, 2.0), vm(0, 9.0, 30.0), vm(1, 1.0, 1.0)];
    let apart = rule(Kind::AntiAffinity, &[0, 1], true);
    let advice = ask(&with(&[apart], &machines, 2));
    let first = &advice.moves[0];
    assert_eq!((first.goal, first.priority), (Goal::Must(0), 1), "{advice:#?}");
    // Of the two, the one with less memory.
    assert_eq!((first.vm, first.to), (1, 1));
}

#[test]
fn each_kind_of_rule_is_put_right() {
    let machines = [vm(0, 0.5, 2.0), vm(1, 0.5, 2.0), vm(1, 0.5, 2.0)];
    for (kind, vms, expected) in [
        (Kind::Affinity, vec![0, 1, 2], (0, 1)),
        (Kind::AntiAffinity, vec![0, 1, 2], (1, 2)),
        (Kind::On(vec![2]), vec![0], (0, 2)),
        (Kind::NotOn(vec![0, 1]), vec![0], (0, 2)),
    ] {
        for must in [true, false] {
            let one = rule(kind.clone(), &vms, must);
            let advice = ask(&with(&[one], &machines, 3));
            assert_eq!(moves(&advice), [expected], "{kind:?}: {advice:#?}");
            assert_eq!(advice.moves[0].priority, if must { 1 } else { 3 });
        }
    }
}

#[test]
fn no_rule_is_broken_to_even_loads_out() {
    for must in [true, false] {
        let machines = [vm(0, 6.0, 8.0), vm(0, 6.0, 8.0)];
        let together = rule(Kind::Affinity, &[0, 1], must);
        let advice = ask(&with(&[together], &machines, 2));
        assert!(advice.moves.is_empty(), "{advice:#?}");
        assert_eq!(refusal(&advice, 0), Because::Rule(0));
    }
}

#[test]
fn one_that_should_hold_gives_way_to_one_that_must() {
    let machines = [vm(0, 1.0, 4.0), vm(0, 1.0, 4.0)];
    let rules =
        [rule(Kind::Affinity, &[0, 1], false), rule(Kind::AntiAffinity, &[0, 1], true)];
    let advice = ask(&with(&rules, &machines, 2));
    assert_eq!(advice.moves.len(), 1, "{advice:#?}");
    // And it rests there.
    let mut moved = with(&rules, &machines, 2);
    moved.vms[advice.moves[0].vm].host = 1;
    let advice = ask(&moved);
    assert!(advice.moves.is_empty(), "{advice:#?}");
    assert_eq!(refusal(&advice, 0), Because::Rule(1));
}

#[test]
fn a_rule_that_cannot_be_kept_says_why() {
    // The only host that it may be on is full.
    let machines = [vm(0, 1.0, 10.0), vm(1, 1.0, 60.0)];
    let on = rule(Kind::On(vec![1]), &[0], true);
    let advice = advise(&with(&[on], &machines, 2), &eager());
    assert!(advice.moves.is_empty(), "{advice:#?}");
    assert_eq!(advice.refused[0].goal, Goal::Must(0));
    assert!(matches!(refusal(&advice, 0), Because::Full(..)), "{advice:#?}");
}

#[test]
fn what_cannot_hold_together_is_found() {
    let together = |vms: &[usize]| rule(Kind::Affinity, vms, true);
    let apart = |vms: &[usize]| rule(Kind::AntiAffinity, vms, true);
    let on = |host, vm| rule(Kind::On(vec![host]), &[vm], true);
    let found = |rules: &[Rule]| clash(rules, 4, 3);
    let chain = [together(&[0, 1]), together(&[1, 2]), apart(&[0, 2])];
    assert_eq!(found(&chain), Some(Clash::Apart { rule: 2, vms: [0, 2] }));
    assert_eq!(found(&chain[..2]), None);
    let many = [apart(&[0, 1, 2, 3])];
    assert_eq!(found(&many), Some(Clash::TooMany { rule: 0, hosts: 3 }));
    let nowhere = [together(&[0, 1]), on(0, 0), on(1, 1)];
    assert!(matches!(found(&nowhere), Some(Clash::Nowhere { .. })));
    let denied = [rule(Kind::NotOn(vec![0, 1, 2]), &[3], true)];
    assert_eq!(found(&denied), Some(Clash::Nowhere { vm: 3 }));
    // Of those that should hold, one gives way to another ...
    let should = |it: &Rule| Rule { must: false, ..it.clone() };
    let wishes: Vec<Rule> = chain.iter().map(should).collect();
    assert_eq!(found(&wishes), None);
    assert_eq!(found(&[should(&many[0])]), None, "as far apart as they go");
    // ... and one that never can hold beside those that must is refused, whichever it is.
    for at in 0..3 {
        let mut one = chain.clone();
        one[at] = should(&one[at]);
        assert_eq!(found(&one), Some(Clash::Apart { rule: 2, vms: [0, 2] }), "{at}");
    }
    let here = [on(0, 0), rule(Kind::NotOn(vec![0]), &[0], false)];
    assert_eq!(found(&here), Some(Clash::Nowhere { vm: 0 }));
    let both = rule(Kind::On(vec![0, 1]), &[0, 1, 2], true);
    let three = rule(Kind::AntiAffinity, &[0, 1, 2], false);
    assert_eq!(found(&[both, three]), Some(Clash::TooMany { rule: 1, hosts: 2 }));
}
