//! The daemon is killed while clients write parts of blocks, with bytes of other clients
//! around them: these are never lost, and no part is torn.

use std::time::Duration;

use sterna_tests::parts::Sharers;
use sterna_tests::random::Random;
use sterna_tests::{MIB, Stage};

const KILLS: u32 = 20;
/// Writes of each client after a kill, before the next: some of the bytes in each block.
const WRITES: u64 = 100;

/// Kills it again and again. Gives how many writes were under way then.
fn kill_often(stage: &mut Stage, between: &mut dyn FnMut(&Stage)) -> u64 {
    let mut moments = Random::of_this_run();
    let sharers = Sharers::start(stage.daemon.nbd_socket(), "a", &mut moments);
    for _ in 0..KILLS {
        sharers.wait_for_writes(WRITES);
        // The one place where time is the point: any moment is a good one.
        std::thread::sleep(Duration::from_millis(moments.below(100)));
        stage.daemon.kill();
        stage.daemon.restart();
        between(stage);
    }
    sharers.wait_for_writes(WRITES);
    sharers.finish()
}

#[test]
fn at_twenty_random_moments_no_neighbour_is_lost_and_no_part_torn() {
    let mut stage = Stage::new();
    stage.disk("a", MIB);
    let unanswered = kill_often(&mut stage, &mut |_| {});
    println!("{unanswered} writes were under way");
    assert!(unanswered > 0, "the daemon was killed while nothing was under way");
}

#[test]
fn while_the_disk_moves_neither() {
    let mut stage = Stage::new();
    stage.disk_with_data("a", 64 * MIB, 64 * MIB);
    let mut moves = 0;
    let mut to = "there";
    let mut id = stage.daemon.migrate("a --to there --rate 10M");
    let unanswered = kill_often(&mut stage, &mut |stage| {
        if stage.daemon.migration(id)["state"] == "completed" {
            moves += 1;
            to = if to == "there" { "here" } else { "there" };
            id = stage.daemon.migrate(&format!("a --to {to} --rate 10M"));
        }
    });
    stage.daemon.hurry(id);
    stage.daemon.completed(id);
    println!("{unanswered} writes were under way, {} moves were completed", moves + 1);
    assert!(unanswered > 0, "the daemon was killed while nothing was under way");
}
