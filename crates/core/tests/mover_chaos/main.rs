//! The mover against chaos.
//!
//! A world of a QEMU with a mirror job, a monitor whose connections break, a libvirt that
//! may be away and refuse, two images made of blocks, a guest that writes, a state with
//! durable steps, and somebody with a monitor of his own. QEMU hangs, dies, is started
//! anew, answers late and says what is not so; the daemon is killed between any two steps.
//! What must hold is checked where it could be broken: at each removal, at the word to
//! switch over, at the verdict, and at the end, when the world has been calm for a while.
//!
//! `STERNA_CHAOS_SEED` runs one seed, and tells its story; `STERNA_CHAOS_CASES` says how many
//! cases a test runs. A failure prints the seed.

mod driver;
mod images;
mod machine;
mod people;
#[path = "../random/mod.rs"]
mod random;
mod setup;
mod store;
mod world;

use std::panic::AssertUnwindSafe;

use random::Random;
use setup::{Mutation, Setup};
use sterna_core::mover::{Owner, Place};
use world::{Ran, World};

/// Cases of each kind that `cargo test` runs.
const CASES: u64 = 400;

fn one(seed: u64, setup: &dyn Fn(&mut Random) -> Setup) -> std::thread::Result<Ran> {
    std::panic::catch_unwind(AssertUnwindSafe(|| {
        let mut random = Random::new(seed ^ 0x5eed);
        let setup = setup(&mut random);
        World::new(setup, random).run()
    }))
}

/// Runs `cases` worlds and prints the seed of one that fails. Gives what was seen of all.
fn run(name: &str, setup: impl Fn(&mut Random) -> Setup) -> Ran {
    let from_env =
        |key: &str| std::env::var(key).ok().and_then(|v| v.parse::<u64>().ok());
    let seeds = match from_env("STERNA_CHAOS_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..from_env("STERNA_CHAOS_CASES").unwrap_or(CASES),
    };
    let mut all = Ran { steps: 0, deaths_since: 0 };
    for seed in seeds {
        match one(seed, &setup) {
            Ok(ran) => {
                all.steps += ran.steps;
                all.deaths_since += ran.deaths_since;
            }
            Err(panic) => {
                eprintln!("{name}: run it again with STERNA_CHAOS_SEED={seed}");
                std::panic::resume_unwind(panic);
            }
        }
    }
    println!("{name}: {} steps", all.steps);
    all
}

/// A driver that does this wrong is found out, and by what is checked for that.
fn is_caught(words: &str, setup: impl Fn(&mut Random) -> Setup) {
    for seed in 0..CASES * 10 {
        let Err(panic) = one(seed, &setup) else { continue };
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

#[test]
fn a_calm_move_ends_at_the_destination() {
    run("calm", Setup::calm);
}

#[test]
fn a_machine_that_dies_hangs_and_answers_late_loses_nothing() {
    run("deaths", |random| Setup {
        deaths: 150,
        hangs: 100,
        cuts: 30,
        late: 40,
        ..Setup::calm(random)
    });
}

#[test]
fn kills_of_the_daemon_at_any_step_lose_nothing() {
    run("kills", |random| Setup {
        kills: 60,
        stops: 200,
        cuts: 60,
        deaths: if random.one_in(2) { 300 } else { 0 },
        ..Setup::calm(random)
    });
}

#[test]
fn wishes_at_any_moment_are_heard_in_time_or_come_too_late() {
    run("wishes", |random| Setup {
        wishes: 40,
        kills: if random.one_in(2) { 200 } else { 0 },
        cuts: 60,
        deaths: if random.one_in(3) { 300 } else { 0 },
        ..Setup::calm(random)
    });
}

#[test]
fn people_with_a_monitor_of_their_own_are_found_out() {
    run("people", |random| Setup {
        people: 60,
        completes: 60,
        kills: if random.one_in(3) { 200 } else { 0 },
        cuts: 100,
        wishes: if random.one_in(3) { 100 } else { 0 },
        ..Setup::calm(random)
    });
}

#[test]
fn a_disk_that_is_unplugged_resized_or_another_is_not_lost() {
    run("unplugging", |random| Setup {
        owner: Owner::Qemu,
        unplugs: 60,
        kills: if random.one_in(3) { 200 } else { 0 },
        cuts: 100,
        deaths: if random.one_in(3) { 300 } else { 0 },
        ..Setup::calm(random)
    });
}

#[test]
fn a_disk_that_is_unplugged_in_a_calm_world_leaves_nothing() {
    run("unplugged", |random| Setup {
        owner: Owner::Qemu,
        unplugs: 40,
        plugs_again: false,
        ..Setup::calm(random)
    });
}

#[test]
fn a_machine_that_says_what_is_not_so_is_asked_again() {
    run("lies", |random| Setup {
        lies: 10,
        deaths: if random.one_in(2) { 300 } else { 0 },
        kills: if random.one_in(3) { 200 } else { 0 },
        ..Setup::calm(random)
    });
}

#[test]
fn a_state_that_does_not_take_steps_loses_nothing() {
    run("state", |random| Setup {
        store_fails: 4,
        image_fails: 8,
        kills: if random.one_in(2) { 150 } else { 0 },
        wishes: if random.one_in(3) { 100 } else { 0 },
        ..Setup::calm(random)
    });
}

#[test]
fn a_libvirt_that_is_away_refuses_or_starts_anew_loses_nothing() {
    run("libvirt", |random| Setup {
        owner: Owner::Libvirt,
        hangs: 60,
        deaths: 200,
        late: 40,
        refusals: 30,
        wishes: 80,
        kills: if random.one_in(2) { 200 } else { 0 },
        ..Setup::calm(random)
    });
}

#[test]
fn files_that_others_put_in_the_way_are_left_alone() {
    run("files", |random| Setup {
        place: Place::File,
        replaces: 60,
        deaths: if random.one_in(2) { 300 } else { 0 },
        wishes: 80,
        ..Setup::calm(random)
    });
}

#[test]
fn files_that_others_put_in_the_way_while_no_daemon_runs_are_left_alone() {
    run("renamed", |random| Setup {
        place: Place::File,
        replaces: 20,
        kills: 60,
        stops: 150,
        wishes: 40,
        deaths: if random.one_in(3) { 300 } else { 0 },
        store_fails: if random.one_in(3) { 6 } else { 0 },
        forgets_files: random.one_in(4),
        ..Setup::calm(random)
    });
}

#[test]
fn a_file_that_was_there_before_the_move_is_left_alone_though_nothing_is_in_it() {
    run("occupied", |random| Setup {
        place: Place::File,
        occupied: true,
        wishes: 40,
        cuts: 60,
        deaths: if random.one_in(2) { 300 } else { 0 },
        kills: if random.one_in(2) { 40 } else { 0 },
        ..Setup::calm(random)
    });
}

#[test]
fn much_goes_wrong_after_somebody_has_had_qemu_switch_over() {
    let ran = run("by hand", |random| Setup {
        owner: Owner::Qemu,
        completes: 3,
        deaths: 40,
        hangs: 300,
        cuts: 100,
        store_fails: 4,
        ..Setup::calm(random)
    });
    let is_one = std::env::var_os("STERNA_CHAOS_SEED").is_some();
    assert!(is_one || ran.deaths_since > 0, "nothing has gone wrong after that");
}

#[test]
fn a_guest_that_is_on_the_destination_after_all_is_known_to_be_there() {
    run("after all", |random| Setup {
        completes: 4,
        hangs: 100,
        late: 20,
        deaths: if random.one_in(2) { 100 } else { 0 },
        kills: if random.one_in(2) { 100 } else { 0 },
        image_fails: if random.one_in(2) { 4 } else { 0 },
        ..Setup::calm(random)
    });
}

#[test]
fn a_guest_on_an_image_that_is_no_copy_of_ours_is_known_to_be_there() {
    run("another's", |random| Setup {
        place: Place::Disk,
        owner: Owner::Qemu,
        replaces: 10,
        completes: 4,
        hangs: if random.one_in(2) { 100 } else { 0 },
        kills: if random.one_in(2) { 100 } else { 0 },
        ..Setup::calm(random)
    });
}

#[test]
fn everything_at_once_loses_nothing() {
    run("everything", |random| Setup {
        deaths: 400,
        hangs: 300,
        cuts: 60,
        late: 100,
        kills: 200,
        stops: 500,
        wishes: 120,
        people: 300,
        completes: 100,
        unplugs: 400,
        store_fails: 15,
        image_fails: 20,
        refusals: 100,
        ..Setup::calm(random)
    });
}

#[test]
fn a_driver_that_removes_by_name_is_caught() {
    is_caught("somebody else's", |random| Setup {
        place: Place::File,
        owner: Owner::Qemu,
        replaces: 20,
        wishes: 40,
        mutation: Some(Mutation::RemovesByName),
        ..Setup::calm(random)
    });
}

#[test]
fn a_driver_that_knows_the_copy_by_its_name_after_a_restart_is_caught() {
    is_caught("somebody else's", |random| Setup {
        place: Place::File,
        replaces: 20,
        kills: 60,
        wishes: 40,
        mutation: Some(Mutation::KnowsByName),
        ..Setup::calm(random)
    });
}

#[test]
fn a_driver_that_takes_a_job_that_vanished_for_a_move_is_caught() {
    is_caught("moved", |random| Setup {
        owner: Owner::Qemu,
        deaths: 100,
        people: 60,
        mutation: Some(Mutation::VanishedIsMoved),
        ..Setup::calm(random)
    });
}

#[test]
fn a_driver_that_tells_qemu_before_that_is_durable_is_caught() {
    is_caught("durable", |random| Setup {
        mutation: Some(Mutation::TellsBeforeItIsDurable),
        ..Setup::calm(random)
    });
}
