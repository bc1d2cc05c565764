//! The mirror against chaos.
//!
//! A world of two images made of blocks, a guest that reads, writes and
//! discards at random, operations that land block by block and complete in any
//! order, faults, hangs, pauses, kills and power losses at any step; and storage that
//! has sectors that cannot be read, or forgets what it was not made to keep, by connection,
//! by mount and by device, a source that forgets as well, images that others write to while
//! no daemon is there or while the migration stands still, and a destination that others
//! remove, replace, shorten or write to. What must hold is checked at every
//! read and answer by `guest` (what a read may return, how long an answer may take), and by
//! `world` at the commit (both images agree to the last block, and the destination is where
//! it was) and at the end.
//!
//! `STERNA_CHAOS_SEED` runs one seed; `STERNA_CHAOS_CASES` says how many cases a
//! test runs. A failure prints the seed.

mod caught;
mod guest;
mod history;
mod images;
mod mistake;
#[path = "../random/mod.rs"]
mod random;
mod setup;
mod world;

use std::panic::AssertUnwindSafe;

use random::Random;
use setup::Setup;
use sterna_core::Nanos;
use sterna_core::mirror::{Allowance, CopyMode};
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
        kills_at_commits: if random.one_in(3) { 10 } else { 0 },
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
            mode: [CopyMode::Even, CopyMode::ShortChunks][random.below(2) as usize],
            leaves_idle_gaps: random.one_in(3),
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

#[test]
fn verification_finds_what_a_slow_and_lying_destination_did_not_keep() {
    run("slow lies", |random| Setup {
        lies: 6 + random.below(20),
        destination_slow: true,
        // What is copied while the switch-over is under way has to wait for its comparison.
        rate: Some(1 << (20 + random.below(3))),
        blocks: 4 + random.below(16),
        chaos_steps: 12_000,
        verify: true,
        ..Setup::calm(random)
    });
}

#[test]
fn a_destination_that_is_removed_replaced_or_shortened_is_never_switched_over_to() {
    run("names", |random| Setup {
        meddling: 30 + random.below(100),
        reopens: true,
        controls: if random.one_in(2) { 100 } else { 0 },
        kills: if random.one_in(2) { 200 } else { 0 },
        destination_fails: if random.one_in(3) { 100 } else { 0 },
        blocks: 4 + random.below(60),
        chaos_steps: 2000,
        verify: random.one_in(3),
        ..Setup::calm(random)
    });
}

/// A world in which the destination forgets in every way that it has.
fn forgetful(random: &mut Random) -> Setup {
    Setup {
        destination_fails: 60,
        reconnects: 60,
        aborts: true,
        reopens: true,
        meddling: if random.one_in(3) { 150 } else { 0 },
        kills: 250,
        foreign: 3,
        verify: random.one_in(2),
        ..Setup::calm(random)
    }
}

#[test]
fn a_server_that_is_gone_for_a_moment_costs_nothing_but_copying() {
    run("by connection", |random| Setup {
        reconnects: 40,
        destination_slow: random.one_in(2),
        kills: if random.one_in(2) { 300 } else { 0 },
        verify: random.one_in(3),
        ..Setup::calm(random)
    });
}

#[test]
fn a_destination_that_is_mounted_anew_after_a_fault_costs_nothing_but_copying() {
    run("by mount", |random| Setup {
        destination_fails: 40,
        aborts: true,
        reopens: true,
        controls: if random.one_in(2) { 100 } else { 0 },
        verify: random.one_in(3),
        ..Setup::calm(random)
    });
}

/// A world in which others do things to the destination's file.
fn meddled_with(random: &mut Random) -> Setup {
    Setup {
        blocks: 4 + random.below(20),
        chaos_steps: 5000,
        meddling: 50,
        ..Setup::calm(random)
    }
}

/// A world in which others write to the images while the daemon is away.
fn with_others(random: &mut Random) -> Setup {
    Setup { kills: 100, foreign: 2, verify: random.one_in(3), ..Setup::calm(random) }
}

/// A world in which others write to the destination while the migration stands still.
fn with_others_in_pauses(random: &mut Random) -> Setup {
    // So slow, and so seldom stopped, that something is copied and flushed before.
    Setup {
        pauses: 1000,
        foreign_while_paused: 300,
        blocks: 30 + random.below(60),
        rate: Some(2 << 20),
        chaos_steps: 8000,
        flush_every: Nanos::from_millis(2),
        ..Setup::calm(random)
    }
}

/// The same where nobody sees it, and both sides are compared before the end.
fn with_others_in_unwatched_pauses(random: &mut Random) -> Setup {
    Setup { unwatched: true, verify: true, pauses: 300, ..with_others_in_pauses(random) }
}

/// A world in which others write to the destination beneath commits that fail.
fn with_others_at_commits(random: &mut Random) -> Setup {
    // So large, and written to so little, that the guest does not write over it all.
    Setup {
        blocks: 40 + random.below(100),
        guest_depth: 1,
        failing_commits: 2,
        meddling: 4000,
        kills: if random.one_in(3) { 1000 } else { 0 },
        chaos_steps: 6000,
        verify: random.one_in(3),
        ..Setup::calm(random)
    }
}

#[test]
fn images_that_others_wrote_to_are_made_equal_again() {
    run("others", with_others);
}

#[test]
fn a_copy_that_others_wrote_to_beneath_a_commit_that_failed_is_made_equal_again() {
    run("others at commits", with_others_at_commits);
}

/// A world in which the source's storage forgets what it was not made to keep.
fn with_a_forgetful_source(random: &mut Random) -> Setup {
    Setup {
        source_forgets: 60,
        destination_slow: random.one_in(3),
        kills: if random.one_in(2) { 200 } else { 0 },
        blocks: 4 + random.below(60),
        chaos_steps: 2000,
        verify: random.one_in(3),
        ..Setup::calm(random)
    }
}

#[test]
fn what_a_source_has_forgotten_the_destination_has_not_either() {
    run("source forgets", with_a_forgetful_source);
}

/// A world in which the source's cache drops what it cannot write.
fn with_a_source_that_cannot_write(random: &mut Random) -> Setup {
    Setup {
        writeback_fails: 60,
        source_slow: random.one_in(3),
        source_hangs: if random.one_in(3) { 20 } else { 0 },
        destination_slow: random.one_in(3),
        kills: if random.one_in(2) { 300 } else { 0 },
        kills_at_commits: if random.one_in(2) { 3 } else { 0 },
        controls: if random.one_in(4) { 100 } else { 0 },
        blocks: 4 + random.below(60),
        chaos_steps: 2000,
        verify: random.one_in(3),
        ..Setup::calm(random)
    }
}

#[test]
fn what_a_sources_cache_has_dropped_a_flush_tells_before_the_switch_over() {
    run("writeback", with_a_source_that_cannot_write);
}

/// A world in which the source's server drops at each kill what nobody had flushed.
fn with_a_dropping_source(random: &mut Random) -> Setup {
    Setup {
        source_forgets: if random.one_in(2) { 200 } else { 0 },
        source_drops: true,
        kills: 100,
        ..with_a_forgetful_source(random)
    }
}

#[test]
fn what_a_source_drops_when_the_daemon_is_killed_its_copy_does_not_keep() {
    run("source drops", with_a_dropping_source);
}

#[test]
fn a_copy_that_others_wrote_to_while_it_stood_still_is_made_equal_again() {
    run("others in pauses", |random| Setup {
        kills: if random.one_in(2) { 500 } else { 0 },
        destination_fails: if random.one_in(3) { 100 } else { 0 },
        reopens: random.one_in(2),
        verify: random.one_in(3),
        backups: if random.one_in(2) { 400 } else { 0 },
        ..with_others_in_pauses(random)
    });
}

#[test]
fn a_copy_that_others_wrote_to_unseen_while_it_stood_still_is_compared_again() {
    run("others in unwatched pauses", with_others_in_unwatched_pauses);
}

#[test]
fn all_that_forgets_together_loses_nothing() {
    run("forgetful", |random| Setup {
        power_losses: 400,
        hangs: 200,
        outages: 300,
        skips: 10,
        source_fails: 200,
        controls: 150,
        ..forgetful(random)
    });
}

#[test]
fn bad_sectors_of_the_source_are_all_that_stays_behind() {
    run("bad sectors", |random| Setup {
        bad: 4 + random.below(40),
        goes_bad: if random.one_in(2) { 60 } else { 0 },
        skips_bad: random.one_in(2),
        kills: if random.one_in(3) { 200 } else { 0 },
        controls: if random.one_in(3) { 60 } else { 0 },
        verify: random.one_in(2),
        ..Setup::calm(random)
    });
}

#[test]
fn bad_sectors_of_a_small_disk_that_goes_on_failing_are_left_behind_knowingly() {
    run("small and bad", |random| Setup {
        blocks: 4 + random.below(24),
        chaos_steps: 3000,
        bad: 4 + random.below(8),
        goes_bad: 30,
        skips_bad: true,
        kills: 200,
        source_fails: if random.one_in(2) { 60 } else { 0 },
        foreign: 3,
        destination_fails: if random.one_in(2) { 100 } else { 0 },
        verify: random.one_in(2),
        ..Setup::calm(random)
    });
}

#[test]
fn bad_sectors_among_all_that_fails_and_forgets_lose_nothing() {
    run("bad and forgetful", |random| Setup {
        bad: 10 + random.below(100),
        goes_bad: 100,
        skips_bad: random.one_in(2),
        source_fails: 100,
        power_losses: 400,
        hangs: 200,
        outages: 300,
        skips: 10,
        controls: 150,
        ..forgetful(random)
    });
}
