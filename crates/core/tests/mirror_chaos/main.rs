//! The mirror against chaos.
//!
//! A world of two images made of blocks, a guest that reads, writes and
//! discards at random, operations that land block by block and complete in any
//! order, faults, hangs, pauses, kills and power losses at any step. What must
//! hold is checked at every read and answer by `guest` (what a read may return,
//! how long an answer may take), and by `world` at the commit (both images agree
//! to the last block) and at the end.
//!
//! `STERNA_CHAOS_SEED` runs one seed; `STERNA_CHAOS_CASES` says how many cases a
//! test runs. A failure prints the seed.

mod guest;
mod history;
mod images;
#[path = "../random/mod.rs"]
mod random;
mod setup;
mod world;

use std::panic::AssertUnwindSafe;

use random::Random;
use setup::Setup;
use sterna_core::mirror::{Allowance, Manner};
use world::World;

/// Cases of each kind that `cargo test` runs.
const CASES: u64 = 400;

/// Runs `cases` worlds and prints the seed of one that fails.
fn run(name: &str, setup: impl Fn(&mut Random) -> Setup) {
    let from_env =
        |key: &str| std::env::var(key).ok().and_then(|v| v.parse::<u64>().ok());
    let seeds = match from_env("STERNA_CHAOS_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..from_env("STERNA_CHAOS_CASES").unwrap_or(CASES),
    };
    let mut steps = 0;
    for seed in seeds {
        let result = std::panic::catch_unwind(AssertUnwindSafe(|| {
            let mut random = Random::new(seed ^ 0x5eed);
            let setup = setup(&mut random);
            World::new(setup, random).run()
        }));
        match result {
            Ok(taken) => steps += taken,
            Err(panic) => {
                eprintln!("{name}: run it again with STERNA_CHAOS_SEED={seed}");
                std::panic::resume_unwind(panic);
            }
        }
    }
    println!("{name}: {steps} steps");
}

#[test]
fn a_calm_migration_of_a_busy_disk_completes_and_both_images_agree() {
    run("calm", |random| Setup { verify: random.one_in(2), ..Setup::calm(random) });
}

#[test]
fn a_failing_destination_never_hurts_the_guest() {
    run("faults", |random| Setup {
        destination_fails: 40,
        hangs: 60,
        outages: 200,
        skips: 10,
        verify: random.one_in(3),
        ..Setup::calm(random)
    });
}

#[test]
fn a_slow_destination_costs_the_guest_no_more_than_patience() {
    run("slow", |random| Setup { destination_slow: true, ..Setup::calm(random) });
}

#[test]
fn a_slow_commit_holds_writes_and_no_reads() {
    run("commits", |random| Setup {
        slow_commits: 1,
        destination_fails: 400,
        kills: if random.one_in(2) { 100 } else { 0 },
        blocks: 4 + random.below(20),
        ..Setup::calm(random)
    });
}

#[test]
fn kills_at_any_step_lose_nothing() {
    run("kills", |random| Setup {
        kills: 150,
        verify: random.one_in(3),
        ..Setup::calm(random)
    });
}

#[test]
fn power_losses_at_any_step_lose_nothing() {
    run("power", |random| Setup { power_losses: 200, hangs: 200, ..Setup::calm(random) });
}

#[test]
fn pauses_cancels_and_failing_sources_lose_nothing() {
    run("control", |random| Setup {
        controls: 50,
        source_fails: 100,
        destination_fails: 200,
        kills: 400,
        verify: random.one_in(2),
        ..Setup::calm(random)
    });
}

#[test]
fn a_copier_that_yields_ends_and_loses_nothing() {
    run("yielding", |random| Setup {
        allowance: Allowance {
            busy: Some([1 << 20, 8 << 20][random.below(2) as usize]),
            idle: random.one_in(3).then_some(16 << 20),
            manner: [Manner::Even, Manner::Short][random.below(2) as usize],
            leaves_gaps: random.one_in(3),
        },
        controls: if random.one_in(2) { 50 } else { 0 },
        destination_fails: 200,
        kills: 400,
        verify: random.one_in(3),
        ..Setup::calm(random)
    });
}

#[test]
fn a_source_whose_writes_fail_half_done_is_copied_as_it_is() {
    run("source", |random| Setup { source_fails: 30, ..Setup::calm(random) });
}

#[test]
fn discards_around_a_slow_copier_leave_zeroes_on_a_thin_destination() {
    run("discards", |random| Setup {
        discards: 2,
        reads_zero: true,
        rate: Some(4 << 20),
        ..Setup::calm(random)
    });
}

#[test]
fn verification_finds_what_a_lying_destination_did_not_keep() {
    run("lies", |random| Setup { lies: 20, verify: true, ..Setup::calm(random) });
}
