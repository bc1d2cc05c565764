//! Worlds that make a mistake on purpose, and are caught by what they lose: else the worlds are
//! too kind to find a real one.

use std::panic::AssertUnwindSafe;

use sterna_core::Nanos;

use crate::mistake::Mistake;
use crate::random::Random;
use crate::setup::Setup;
use crate::world::World;
use crate::{
    CASES, forgetful, meddled_with, with_a_dropping_source, with_a_forgetful_source,
    with_a_source_that_cannot_write, with_others, with_others_at_commits,
    with_others_in_pauses, with_others_in_unwatched_pauses,
};

/// Worlds of a kind that is used with a mistake, run without one: that a world fails says
/// something only if it does not fail otherwise.
const WITHOUT: u64 = 50;

/// What a world that loses something says.
const LOST: [&str; 3] = ["differs at the commit", " not in [", "a read of block"];

/// Runs worlds that make `mistake` until one is caught by a check that says one of these.
fn is_caught(mistake: Mistake, by: &[&str], setup: impl Fn(&mut Random) -> Setup) {
    let world = |seed: u64, mistake| {
        let mut random = Random::new(seed ^ 0x5eed);
        let setup = Setup { mistake, ..setup(&mut random) };
        World::new(setup, random).run()
    };
    for seed in 0..WITHOUT {
        world(seed, None);
    }
    let caught = (0..CASES).find_map(|seed| {
        let world = || world(seed, Some(mistake));
        std::panic::catch_unwind(AssertUnwindSafe(world)).err()
    });
    let caught = caught.unwrap_or_else(|| panic!("no world shows {mistake:?}"));
    let said = caught.downcast_ref::<String>().map(String::as_str);
    let said = said.or(caught.downcast_ref().copied()).unwrap_or("something");
    assert!(by.iter().any(|by| said.contains(by)), "{mistake:?} is caught by: {said}");
}

#[test]
fn a_flush_that_is_acknowledged_early_is_caught() {
    // With much time between answer and truth, a destination that forgets often, and no kill,
    // after which much is compared.
    is_caught(Mistake::FlushAcknowledgedEarly, &LOST, |random| Setup {
        destination_slow: true,
        destination_fails: 0,
        reconnects: 20,
        flush_every: Nanos::from_millis(2),
        verify: false,
        kills: 0,
        meddling: 0,
        ..forgetful(random)
    });
}

#[test]
fn trust_after_a_fault_is_caught() {
    is_caught(Mistake::TrustAfterFault, &LOST, forgetful);
}

#[test]
fn a_job_that_a_loss_does_not_void_is_caught() {
    is_caught(Mistake::JobNotVoided, &LOST, forgetful);
}

#[test]
fn a_map_that_is_believed_after_others_wrote_is_caught() {
    is_caught(Mistake::ForeignWriteBelieved, &LOST, with_others);
}

#[test]
fn a_write_of_somebody_else_that_is_taken_for_a_loss_is_caught() {
    is_caught(Mistake::ForeignWriteTakenForLoss, &LOST, |random| Setup {
        reads_zero: true,
        scan: true,
        ..meddled_with(random)
    });
}

#[test]
fn what_others_write_beneath_a_commit_and_nobody_is_told_is_caught() {
    is_caught(Mistake::WritesAtCommitsForgotten, &LOST, |random| Setup {
        meddling: 400,
        slow_commits: 2,
        kills: 0,
        verify: false,
        ..with_others_at_commits(random)
    });
}

#[test]
fn a_loss_of_the_source_that_is_not_told_is_caught() {
    is_caught(Mistake::SourceLossNotTold, &LOST, with_a_forgetful_source);
}

#[test]
fn a_commit_without_a_flush_of_the_source_is_caught() {
    is_caught(Mistake::SourceNotFlushed, &LOST, with_a_source_that_cannot_write);
}

#[test]
fn a_loss_that_was_not_compared_and_is_not_told_after_the_commit_is_caught() {
    is_caught(Mistake::OwedNotTold, &LOST, |random| Setup {
        writeback_fails: 10,
        kills: 0,
        ..with_a_source_that_cannot_write(random)
    });
}

#[test]
fn a_loss_that_was_not_compared_and_that_a_kill_hides_is_caught() {
    // So seldom that not each kill is followed by a loss, which has all of it compared.
    is_caught(Mistake::OwedForgottenAtKill, &LOST, |random| Setup {
        writeback_fails: 60,
        kills: 500,
        chaos_steps: 1500,
        guest_depth: 1,
        source_slow: false,
        source_hangs: 0,
        blocks: 40 + random.below(60),
        verify: false,
        ..with_a_source_that_cannot_write(random)
    });
}

#[test]
fn a_loss_that_was_not_compared_and_that_a_kill_in_the_commit_hides_is_caught() {
    is_caught(Mistake::OwedForgottenInCommit, &LOST, |random| Setup {
        writeback_fails: 10,
        kills: 0,
        kills_at_commits: 3,
        ..with_a_source_that_cannot_write(random)
    });
}

#[test]
fn a_source_that_dropped_writes_at_a_kill_and_is_believed_is_caught() {
    is_caught(Mistake::DroppedSourceBelieved, &LOST, with_a_dropping_source);
}

#[test]
fn a_pause_in_which_others_write_unseen_is_caught() {
    is_caught(Mistake::WritesWhilePausedForgotten, &LOST, |random| Setup {
        pauses: 100,
        foreign_while_paused: 100,
        rate: Some(4 << 20),
        ..with_others_in_pauses(random)
    });
}

#[test]
fn a_comparison_that_is_believed_after_a_pause_that_nobody_watched_is_caught() {
    is_caught(Mistake::UnwatchedPauseBelieved, &LOST, |random| Setup {
        pauses: 60,
        foreign_while_paused: 20,
        guest_depth: 1,
        rate: None,
        ..with_others_in_unwatched_pauses(random)
    });
}

#[test]
fn a_backup_that_is_put_back_over_the_source_in_a_pause_and_not_seen_is_caught() {
    is_caught(Mistake::SourceWritesWhilePausedUnseen, &LOST, |random| Setup {
        pauses: 100,
        foreign_while_paused: 0,
        backups: 30,
        rate: Some(4 << 20),
        ..with_others_in_pauses(random)
    });
}

#[test]
fn a_guest_that_hides_what_others_write_in_a_pause_is_caught() {
    is_caught(Mistake::WritesWhilePausedHidden, &LOST, |random| Setup {
        kills: 500,
        ..with_others_in_pauses(random)
    });
}

#[test]
fn a_sector_that_is_taken_for_zeroes_because_it_cannot_be_read_is_caught() {
    is_caught(Mistake::UnreadableTakenForZeroes, &LOST, |random| Setup {
        bad: 10,
        skips_bad: true,
        ..Setup::calm(random)
    });
}

#[test]
fn a_seal_without_a_look_at_the_destination_is_caught() {
    let by = ["the destination was astray when it was sealed", "differs at the commit"];
    is_caught(Mistake::SealedWithoutLook, &by, meddled_with);
}

#[test]
fn a_source_that_is_removed_without_a_look_at_the_destination_is_caught() {
    let by = ["the destination has no name, and the source is removed"];
    is_caught(Mistake::RemovedWithoutLook, &by, meddled_with);
}

#[test]
fn a_source_that_is_freed_before_the_commit_is_durable_is_caught() {
    // Long enough for the end to come in the middle of the chaos, on a small disk.
    is_caught(Mistake::SourceFreedEarly, &LOST, |random| Setup {
        blocks: 4 + random.below(20),
        chaos_steps: 5000,
        destination_fails: 8,
        kills: 300,
        ..Setup::calm(random)
    });
}
