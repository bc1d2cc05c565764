//! A transfer against chaos.
//!
//! A world of two QEMUs, with how new the guest's memory is in each and whether it runs
//! there; monitors whose connections break; a state with durable steps; and people with
//! monitors of their own. QEMUs hang, die, are replaced, answer late, refuse and say what
//! is not so; the daemon is killed between any two steps. What must hold is checked where
//! it could be broken: at each word to run a guest, at each that ends a QEMU, at the
//! verdict, in the record after each step, and at the end, when the world has been calm for
//! a while.
//!
//! `STERNA_CHAOS_SEED` runs one seed, and tells its story; `STERNA_CHAOS_CASES` says how many
//! cases a test runs. A failure prints the seed.

mod driver;
mod people;
mod qemu;
#[path = "../random/mod.rs"]
mod random;
mod record;
mod setup;
mod world;

use std::panic::AssertUnwindSafe;

use random::Random;
use setup::{Mutation, Setup};
use world::World;

/// Cases of each kind that `cargo test` runs.
const CASES: u64 = 1_000;

fn one(seed: u64, setup: &dyn Fn(&mut Random) -> Setup) -> std::thread::Result<u64> {
    std::panic::catch_unwind(AssertUnwindSafe(|| {
        let mut random = Random::new(seed ^ 0x5eed);
        let setup = setup(&mut random);
        World::new(setup, random).run()
    }))
}

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
        match one(seed, &setup) {
            Ok(taken) => steps += taken,
            Err(panic) => {
                eprintln!("{name}: run it again with STERNA_CHAOS_SEED={seed}");
                std::panic::resume_unwind(panic);
            }
        }
    }
    println!("{name}: {steps} steps");
}

/// A driver that does this wrong is found out, and by what is checked for that.
fn is_caught(mutation: Mutation, words: &str, setup: impl Fn(&mut Random) -> Setup) {
    let with = |random: &mut Random| Setup { mutation: Some(mutation), ..setup(random) };
    for seed in 0..CASES * 20 {
        let Err(panic) = one(seed, &with) else { continue };
        let said = panic.downcast_ref::<String>().cloned().unwrap_or_else(|| {
            panic
                .downcast_ref::<&str>()
                .map(|said| (*said).to_owned())
                .unwrap_or_default()
        });
        assert!(said.contains(words), "caught, but as: {said}");
        return;
    }
    panic!("nobody has noticed");
}

fn at_times(random: &mut Random, of: u64, trouble: u64) -> u64 {
    if random.one_in(of) { trouble } else { 0 }
}

#[test]
fn a_calm_transfer_ends_at_the_receiver() {
    run("calm", Setup::calm);
}

#[test]
fn qemus_that_die_lose_no_guest_that_has_come() {
    run("deaths", |random| Setup { deaths: 50, cuts: 30, ..Setup::calm(random) });
}

#[test]
fn qemus_that_hang_and_answer_late_run_the_guest_once() {
    run("silence", |random| Setup {
        hangs: 40,
        late: 20,
        cuts: 20,
        deaths: at_times(random, 2, 100),
        ..Setup::calm(random)
    });
}

#[test]
fn kills_of_the_daemon_at_any_step_run_the_guest_once() {
    run("kills", |random| Setup {
        kills: 20,
        stops: at_times(random, 2, 100),
        cuts: 30,
        deaths: at_times(random, 2, 100),
        late: at_times(random, 3, 30),
        ..Setup::calm(random)
    });
}

#[test]
fn wishes_at_any_moment_are_heard_in_time_or_come_too_late() {
    run("wishes", |random| Setup {
        wishes: 30,
        stops: at_times(random, 2, 60),
        kills: at_times(random, 2, 60),
        deaths: at_times(random, 3, 100),
        ..Setup::calm(random)
    });
}

#[test]
fn people_with_monitors_of_their_own_are_found_out() {
    run("people", |random| Setup {
        people: 12,
        kills: at_times(random, 3, 60),
        wishes: at_times(random, 3, 60),
        cuts: at_times(random, 3, 60),
        ..Setup::calm(random)
    });
}

#[test]
fn another_qemu_at_the_same_socket_is_neither_run_nor_ended() {
    run("replaced", |random| Setup {
        hidden: random.one_in(4),
        deaths: 30,
        replaces: 5,
        kills: at_times(random, 2, 60),
        people: at_times(random, 3, 40),
        hangs: at_times(random, 3, 60),
        ..Setup::calm(random)
    });
}

#[test]
fn a_qemu_that_says_what_is_not_so_is_asked_again() {
    run("lies", |random| Setup {
        lies: 6,
        breaks: at_times(random, 2, 3),
        deaths: at_times(random, 2, 100),
        kills: at_times(random, 3, 60),
        ..Setup::calm(random)
    });
}

#[test]
fn a_qemu_that_refuses_has_the_guest_run_at_the_other_one() {
    run("refusals", |random| Setup {
        refusals: 3,
        deaths: at_times(random, 2, 100),
        kills: at_times(random, 2, 60),
        people: at_times(random, 3, 40),
        ..Setup::calm(random)
    });
}

#[test]
fn a_state_that_does_not_take_steps_runs_the_guest_once() {
    run("state", |random| Setup {
        store_fails: 3,
        refusals: at_times(random, 2, 4),
        deaths: at_times(random, 2, 60),
        kills: at_times(random, 2, 40),
        wishes: at_times(random, 3, 60),
        ..Setup::calm(random)
    });
}

#[test]
fn a_qemu_that_fails_in_the_last_moment_keeps_the_guest() {
    run("breaks", |random| Setup {
        breaks: 2,
        kills: at_times(random, 2, 40),
        deaths: at_times(random, 2, 60),
        hangs: at_times(random, 3, 60),
        ..Setup::calm(random)
    });
}

#[test]
fn everything_at_once_runs_the_guest_once() {
    run("everything", |random| Setup {
        hidden: random.one_in(4),
        deaths: 120,
        hangs: 120,
        cuts: 40,
        late: 40,
        lies: 30,
        refusals: 20,
        breaks: 10,
        kills: 60,
        stops: 200,
        wishes: 120,
        people: 40,
        replaces: 30,
        store_fails: 10,
        ..Setup::calm(random)
    });
}

#[test]
fn a_driver_that_has_it_run_there_before_the_commit_is_durable_is_caught() {
    is_caught(Mutation::RunsBeforeTheCommit, "not durable", Setup::calm);
}

#[test]
fn a_driver_that_has_it_run_here_before_that_is_durable_is_caught() {
    is_caught(Mutation::RunsBeforeItIsTakenBack, "not durable", |random| Setup {
        wishes: 40,
        ..Setup::calm(random)
    });
}

#[test]
fn a_driver_that_runs_the_source_after_the_receiver_may_have_run_is_caught() {
    is_caught(Mutation::ForgetsThatItMayHaveRun, "older memory", |random| Setup {
        kills: 15,
        people: 10,
        refusals: 4,
        ..Setup::calm(random)
    });
}

#[test]
fn a_driver_that_takes_a_sending_that_vanished_for_done_is_caught() {
    is_caught(Mutation::VanishedIsDone, "no guest to run", |random| Setup {
        people: 10,
        ..Setup::calm(random)
    });
}

#[test]
fn a_driver_that_goes_by_the_socket_ends_somebody_elses_and_is_caught() {
    is_caught(Mutation::GoesByTheSocket, "somebody else's", |random| Setup {
        by_program: false,
        hidden: true,
        deaths: 20,
        replaces: 4,
        ..Setup::calm(random)
    });
}

#[test]
fn a_driver_that_takes_any_process_ends_somebody_elses_and_is_caught() {
    is_caught(Mutation::TakesAnyProcess, "somebody else's", |random| Setup {
        by_program: false,
        hidden: false,
        deaths: 20,
        replaces: 4,
        ..Setup::calm(random)
    });
}
