//! The halls that come with the sources: what DRS brings there.

use sterna_sim::hall::Outcome;

use super::building::ran;

fn shipped(name: &str) -> Outcome {
    let path = format!("{}/../../scenarios/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    ran(&std::fs::read_to_string(&path).expect("a scenario"))
}

#[track_caller]
fn brings(outcome: &Outcome) {
    let [with, without] = [outcome.with.total, outcome.without.total];
    assert!(with.got.cpu >= without.got.cpu, "{with:?}\n{without:?}");
    assert!(
        with.got.memory >= without.got.memory * (1.0 - 1e-9),
        "{with:?}\n{without:?}"
    );
    assert!(with.held >= without.held && with.least >= without.least);
    assert_eq!(outcome.with.returned, 0);
    assert!(!outcome.with.moves.is_empty());
}

#[test]
fn when_load_shifts_machines_get_more_and_it_comes_to_rest() {
    let outcome = shipped("drs-shift");
    brings(&outcome);
    // Offices fill up at eight; from nine on nothing moves until they close.
    let resting = outcome.with.periods.iter().skip(4).take(9);
    assert!(resting.clone().all(|it| it.moves == 0), "{:?}", outcome.with.periods);
    let lacked = |total: &sterna_sim::hall::Total| total.entitled.cpu - total.got.cpu;
    assert!(lacked(&outcome.with.total) < 0.1 * lacked(&outcome.without.total));
}

#[test]
fn when_a_host_is_back_it_gets_its_part_again() {
    let outcome = shipped("drs-host-fails");
    brings(&outcome);
    assert_eq!((outcome.with.down, outcome.without.down), (0, 0));
    let last = |outcome: &sterna_sim::hall::Side| outcome.periods[12].imbalance[1];
    assert!(last(&outcome.with) < 0.1 && last(&outcome.without) > 0.3);
}
