//! What holds in any hall. Each is made of a seed, which a failure prints.

use proptest::prelude::*;
use sterna_core::Nanos;
use sterna_placement::hosts::Goal;

use super::building::{LOPSIDED, any_hall, ran, read};

const HOUR: Nanos = Nanos::from_secs(3600);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn nothing_is_moved_to_and_fro(seed in any::<u64>()) {
        let text = any_hall(seed);
        let (scenario, outcome) = (read(&text), ran(&text));
        prop_assert_eq!(outcome.with.returned, 0);
        let cooldown = scenario.drs.hold.cooldown;
        for vm in 0..scenario.vms.len() {
            let moves = outcome.with.moves.iter().filter(|one| one.vm == vm);
            let at: Vec<Nanos> = moves.map(|one| one.at).collect();
            for two in at.windows(2) {
                prop_assert!(two[1].since(two[0]) >= cooldown, "{vm}: {at:?}\n{text}");
            }
            // It stays for 10, then 20, then 40 minutes.
            for from in &at {
                let within = at.iter().filter(|it| *it >= from && it.since(*from) < HOUR);
                prop_assert!(within.count() <= 3, "{vm}: {at:?}\n{text}");
            }
        }
    }

    #[test]
    fn machines_on_a_host_never_hold_more_memory_than_it_has(seed in any::<u64>()) {
        let text = any_hall(seed);
        let outcome = ran(&text);
        for side in [&outcome.with, &outcome.without] {
            for sample in &side.samples {
                prop_assert!(sample.fullest <= 1.0 + 1e-9, "{sample:?}\n{text}");
            }
        }
    }

    #[test]
    fn nobody_gets_more_than_he_is_entitled_to(seed in any::<u64>()) {
        let outcome = ran(&any_hall(seed));
        for side in [&outcome.with, &outcome.without] {
            let totals = side.periods.iter().map(|it| it.total).chain([side.total]);
            for total in totals {
                prop_assert!(total.got.cpu <= total.entitled.cpu * (1.0 + 1e-9));
                prop_assert!(total.got.memory <= total.entitled.memory * (1.0 + 1e-9));
                prop_assert!((0.0..=1.0 + 1e-9).contains(&total.least), "{total:?}");
            }
        }
        // What machines are entitled to has nothing to do with where they are.
        let [with, without] = [outcome.with.total, outcome.without.total];
        let (one, other) = (with.entitled.cpu, without.entitled.cpu);
        prop_assert!((one - other).abs() <= 1e-9 * one, "{one} and {other}");
    }

    #[test]
    fn the_same_file_gives_the_same_outcome(seed in any::<u64>()) {
        let text = any_hall(seed);
        prop_assert_eq!(ran(&text), ran(&text));
    }

    #[test]
    fn with_steady_loads_it_comes_to_rest(seed in any::<u64>()) {
        let text = any_hall(seed);
        let steady = |line: &&str| {
            let changes = ["busy", "idle", "hours", "keeps", "varies", "[[failure]]"];
            !changes.iter().any(|key| line.starts_with(key))
        };
        let text = text.split("[[failure]]").next().unwrap_or_default();
        let text: Vec<&str> = text.lines().filter(steady).collect();
        let outcome = ran(&text.join("\n"));
        // Forty machines at most, one after the other.
        let late = outcome.with.moves.iter().filter(|one| one.at > Nanos(4 * HOUR.0));
        prop_assert_eq!(late.count(), 0, "{:?}", outcome.with.moves);
    }
}

#[test]
fn loads_are_evened_out_and_everybody_gets_what_he_asks_for() {
    let outcome = ran(LOPSIDED);
    let [with, without] = [&outcome.with, &outcome.without];
    let last = with.periods.last().expect("hours");
    assert!(last.imbalance[1] < 0.2 && last.imbalance[0] < 0.2, "{last:?}");
    // Six times 2.5 is 15 of 16, so without DRS nobody lacks anything either.
    assert_eq!([with.total.held, without.total.held], [6, 6]);
    let crowded = ran(&LOPSIDED.replace("cpu-demand = 2.5", "cpu-demand = 3.6"));
    assert_eq!(crowded.without.total.held, 0);
    let last = crowded.with.periods.last().expect("hours");
    assert_eq!(last.total.held, 6, "{last:?}");
}

#[test]
fn a_move_takes_as_long_as_its_memory_takes_over_the_slower_link() {
    let slow = "memory = '64G'\nlink = '64M'\n[[profile]]";
    let text = LOPSIDED.replacen("memory = '64G'\n[[profile]]", slow, 1);
    let outcome = ran(&text);
    let one = outcome.with.moves.first().expect("a move");
    assert_eq!(
        (one.bytes, one.took),
        (f64::from(8 << 10) * 1048576.0, Nanos::from_secs(128))
    );
    // At each end a processor works on it.
    let seconds: f64 = outcome.with.moves.iter().map(|it| it.took.as_secs_f64()).sum();
    assert!((outcome.with.total.copier - 2.0 * seconds).abs() < 1e-6);
}

#[test]
fn what_is_not_wished_is_not_done() {
    let text = |automation: &str, more: &str| {
        let drs = format!("[drs]\nautomation = '{automation}'");
        LOPSIDED.replace("[drs]", &drs) + more
    };
    let apart = "[[rule]]\nname = 'far'\nkind = 'anti-affinity'\nvms = ['web-1', 'web-2']\n\
                 must = true\n";
    let manual = ran(&text("manual", apart)).with;
    assert!(manual.moves.is_empty() && !manual.samples.is_empty());
    let partial = ran(&text("partial", apart)).with;
    let goals: Vec<Goal> = partial.moves.iter().map(|one| one.goal).collect();
    assert_eq!(goals, [Goal::Must(0)]);
    assert!(ran(&text("full", apart)).with.moves.len() > 1);
}

#[test]
fn a_host_without_room_for_a_copy_gets_none_and_that_is_counted() {
    // Each has 5 GiB left, and two of 6 would change places.
    let text = "\
        title = 'full'\nlength = '3h'\n[drs]\nthreshold = 5\n\
        [[host]]\nname = 'a'\ncount = 2\ncpu = 16\nmemory = '17G'\n\
        [[profile]]\nname = 'hot'\ncpu = 8\nmemory = '6G'\ncpu-demand = 7\n\
        [[profile]]\nname = 'cold'\ncpu = 8\nmemory = '6G'\ncpu-demand = 0.5\n\
        [[vms]]\nname = 'hot'\nprofile = 'hot'\ncount = 2\non = 'a-1'\n\
        [[vms]]\nname = 'cold'\nprofile = 'cold'\ncount = 2\non = 'a-2'\n";
    let with = ran(text).with;
    assert!(with.moves.is_empty(), "{:?}", with.moves);
    let why = "the host has no room for its memory while it is copied";
    assert!(with.refused.get(why).is_some_and(|times| *times > 0), "{:?}", with.refused);
    let one = ran(&text.replace("memory = '17G'", "memory = '17G'\ncopies = 1")).with;
    let why = "two would change places, and a host moves only one";
    assert!(one.refused.get(why).is_some_and(|times| *times > 0), "{:?}", one.refused);
}
