//! Rules about disks: repaired first, and kept by what is moved for other reasons.

use proptest::prelude::*;
use sterna_placement::storage::{Wish, conflict};

use super::inventories::*;
use super::*;

#[test]
fn disks_that_must_be_apart_leave_each_other() {
    let stores =
        [datastore(50, NO_TRAFFIC), datastore(50, NO_TRAFFIC), datastore(79, NO_TRAFFIC)];
    let apart = rule(Wish::Apart, Strength::Must, &[0, 1]);
    let advice =
        with_rules(&stores, &[idle(0, 9), idle(0, 4)], std::slice::from_ref(&apart));
    assert_eq!(moves(&advice), [(1, 1)], "the smaller one: {advice:#?}");
    let one = &advice.moves[0];
    assert_eq!((one.why, one.priority), (Why::Rule(0), 1));
    // Where there is no room for either, both are told why they stay.
    let advice = with_rules(&[stores[0], stores[2]], &[idle(0, 9), idle(0, 4)], &[apart]);
    let refused: Vec<usize> = advice.refused.iter().map(|it| it.disk).collect();
    assert_eq!((moves(&advice), refused), (vec![], vec![0, 1]));
    assert!(matches!(advice.refused[0].because, Because::Full(_)), "{advice:#?}");
    assert_eq!(advice.refused[0].why, Why::Rule(0));
}

#[test]
fn disks_that_must_be_together_come_together_where_that_copies_least() {
    let stores =
        [datastore(50, NO_TRAFFIC), datastore(50, NO_TRAFFIC), datastore(10, NO_TRAFFIC)];
    let together = rule(Wish::Together, Strength::Must, &[0, 1, 2]);
    let disks = [idle(0, 20), idle(1, 3), idle(1, 4)];
    let advice = with_rules(&stores, &disks, std::slice::from_ref(&together));
    assert_eq!(moves(&advice), [(1, 0), (2, 0)], "{advice:#?}");
    // All or none: half of them elsewhere would help nobody.
    let stores = [datastore(76, NO_TRAFFIC), datastore(70, NO_TRAFFIC)];
    let advice = with_rules(&stores, &disks, &[together]);
    assert_eq!(moves(&advice), [], "{advice:#?}");
    let refused: Vec<usize> = advice.refused.iter().map(|it| it.disk).collect();
    assert_eq!(refused, [0, 2], "disk 1 alone could have gone: {advice:#?}");
}

#[test]
fn disks_that_must_be_together_move_together() {
    let stores = [datastore(95, NO_TRAFFIC), datastore(10, NO_TRAFFIC)];
    let disks = [idle(0, 6), idle(0, 30), idle(0, 10)];
    let together = rule(Wish::Together, Strength::Must, &[0, 2]);
    let advice = with_rules(&stores, &disks, &[together]);
    assert_eq!(moves(&advice), [(0, 1), (2, 1)], "{advice:#?}");
    let steps: Vec<usize> = advice.moves.iter().map(|it| it.step).collect();
    assert_eq!(steps, [0, 0]);
    assert!((advice.moves[0].after[0].taken - 0.79).abs() < 1e-9);
}

#[test]
fn a_bound_breaks_no_rule_that_must_hold_and_bends_one_that_should_last() {
    let stores = [datastore(90, NO_TRAFFIC), datastore(10, NO_TRAFFIC)];
    let disks = [idle(0, 12), idle(1, 5)];
    let must = rule(Wish::Apart, Strength::Must, &[0, 1]);
    assert_eq!(refusal(&with_rules(&stores, &disks, &[must])), Because::Rule(0));
    let should = rule(Wish::Apart, Strength::Should, &[0, 1]);
    let advice = with_rules(&stores, &disks, std::slice::from_ref(&should));
    assert_eq!(moves(&advice), [(0, 1)], "it gives way");
    // With another place to go it need not.
    let stores = [stores[0], stores[1], datastore(30, NO_TRAFFIC)];
    assert_eq!(moves(&with_rules(&stores, &disks, &[should])), [(0, 2)]);
}

#[test]
fn rules_that_cannot_both_hold_are_found() {
    let must = |wish, disks: &[usize]| rule(wish, Strength::Must, disks);
    let chain = [must(Wish::Together, &[0, 1]), must(Wish::Together, &[1, 2])];
    assert_eq!(conflict(&chain), None);
    let [one, other] = chain;
    let found = conflict(&[one.clone(), must(Wish::Apart, &[0, 2]), other.clone()]);
    let found = found.expect("they cannot");
    assert_eq!((found.apart, found.disks), (1, [0, 2]));
    assert!([0, 2].contains(&found.together));
    // One that should hold, and never can beside those that must, is refused as well,
    // whichever it is. Of two that should, one gives way.
    let should = |rule: &Rule| Rule { strength: Strength::Should, ..rule.clone() };
    let apart = must(Wish::Apart, &[0, 2]);
    assert!(conflict(&[one.clone(), should(&apart), other.clone()]).is_some());
    assert!(conflict(&[should(&one), apart.clone(), other.clone()]).is_some());
    assert_eq!(conflict(&[should(&one), apart, should(&other)]), None);
    let beside = must(Wish::Apart, &[0, 3]);
    assert_eq!(conflict(&[one, should(&beside), other]), None);
}

prop_compose! {
    fn any_rule(disks: usize)(
        together in any::<bool>(),
        must in proptest::bool::weighted(0.7),
        chosen in proptest::sample::subsequence((0..disks).collect::<Vec<_>>(), 2..=4.min(disks)),
    ) -> Rule {
        let wish = if together { Wish::Together } else { Wish::Apart };
        rule(wish, if must { Strength::Must } else { Strength::Should }, &chosen)
    }
}

fn any_ruled() -> impl Strategy<Value = Inventory> {
    any_inventory().prop_filter("two disks", |it| it.disks.len() >= 2).prop_flat_map(
        |it| {
            let rules = proptest::collection::vec(any_rule(it.disks.len()), 1..4);
            let fit = rules
                .prop_filter("rules that can hold", |rules| conflict(rules).is_none());
            fit.prop_map(move |rules| Inventory { rules, ..it.clone() })
        },
    )
}

fn at(inventory: &Inventory) -> Vec<usize> {
    inventory.disks.iter().map(|disk| disk.datastore).collect()
}

/// Pairs of disks that break rules that must hold.
fn broken_pairs(inventory: &Inventory) -> usize {
    let musts = inventory.rules.iter().filter(|it| it.strength == Strength::Must);
    let pairs = musts.flat_map(|it| {
        let all = it.disks.iter().enumerate();
        all.flat_map(move |(n, one)| {
            it.disks[n + 1..].iter().map(move |other| (it, *one, *other))
        })
    });
    let at = at(inventory);
    pairs
        .filter(|(it, one, other)| (at[*one] == at[*other]) == (it.wish == Wish::Apart))
        .count()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn rules_are_broken_less_and_less_and_it_comes_to_rest(mut inventory in any_ruled()) {
        let bounds = Bounds::default();
        let mut rounds = 0;
        loop {
            let advice = advise(&inventory, &bounds);
            if advice.moves.is_empty() {
                break;
            }
            for one in &advice.moves {
                prop_assert!(one.after[1].taken <= bounds.space, "{one:?}");
                prop_assert!(
                    !over_latency(one.after[1].latency, &bounds)
                        || over_latency(one.before[1].latency, &bounds),
                    "{one:?}"
                );
            }
            let were = broken_pairs(&inventory);
            make(&mut inventory, &advice);
            let mends = advice.moves.iter().any(|one| matches!(one.why, Why::Rule(_)));
            let are = broken_pairs(&inventory);
            prop_assert!(are <= were && (are < were || !mends), "{were} to {are}: {advice:#?}");
            rounds += 1;
            prop_assert!(rounds <= 12 + inventory.disks.len(), "it goes on and on");
        }
        // What is broken in the end is explained.
        let advice = advise(&inventory, &bounds);
        for (number, one) in inventory.rules.iter().enumerate() {
            let broken = one.strength == Strength::Must && one.is_broken(&at(&inventory));
            let said = advice.refused.iter().any(|it| it.why == Why::Rule(number));
            prop_assert_eq!(broken, said, "rule {}", number);
        }
    }
}
