//! Plans to run: simple ones, and any.

use sterna_core::Nanos;
use sterna_placement::waves::{End, Group, Move, PlanRun, Progress, Setup};

use super::random::Random;

pub(crate) const GIB: u64 = 1 << 30;

/// What is kept of a plan over a crash.
pub(crate) fn progress(run: &PlanRun) -> Progress {
    Progress {
        tasks: run.tasks().to_vec(),
        workloads: run.workloads().to_vec(),
        closed: run.closed().to_vec(),
        wish: run.wish(),
    }
}

/// A datastore that copies so many bytes per second and has room for 1000 GiB.
pub(crate) fn end(speed: Option<f64>) -> End {
    End { takes: true, room: 1000 * GIB, shared_room: None, single: false, speed }
}

/// A move from the datastore 0 that takes so many seconds, at 100 bytes per second.
pub(crate) fn lasting(seconds: u64, to: usize) -> Move {
    Move {
        from: 0,
        to,
        size: GIB,
        needs: GIB,
        group: None,
        time: Nanos::from_secs(seconds),
        rate: 100.0,
    }
}

/// The same in a group.
pub(crate) fn in_group(group: usize, seconds: u64, to: usize) -> Move {
    Move { group: Some(group), ..lasting(seconds, to) }
}

/// Moves from the datastore 0, which is not gone to.
pub(crate) fn setup(moves: Vec<Move>, speeds: &[Option<f64>]) -> Setup {
    let mut ends: Vec<End> = speeds.iter().map(|speed| end(*speed)).collect();
    ends[0].takes = false;
    Setup { moves, ends, groups: Vec::new(), at_once: None }
}

/// Any plan with no more than so many moves.
pub(crate) fn any(random: &mut Random, most: u64) -> Setup {
    let count = 2 + random.below(4) as usize;
    let mut ends: Vec<End> = (0..count)
        .map(|_| End {
            takes: !random.one_in(4),
            room: GIB * (1 + random.below(40)),
            shared_room: random.one_in(3).then_some(7),
            single: random.one_in(6),
            speed: (!random.one_in(3)).then(|| 50.0 + random.below(400) as f64),
        })
        .collect();
    share(&mut ends);
    let groups: Vec<Group> = (0..random.below(4) as usize)
        .map(|at| Group {
            after: (0..at).filter(|_| random.one_in(2)).collect(),
            together: false,
            stops: random.one_in(3),
            starts: random.one_in(3),
        })
        .collect();
    let mut setup = Setup {
        moves: Vec::new(),
        ends,
        groups,
        at_once: random.one_in(3).then(|| 1 + random.below(6) as usize),
    };
    for _ in 0..random.below(most + 1) {
        if let Some(one) = any_move(random, &setup) {
            setup.moves.push(one);
        }
    }
    setup
}

/// What is all one disk's has a room of its own; the others have as much as each other.
fn share(ends: &mut [End]) {
    ends.iter_mut().filter(|end| end.single).for_each(|end| end.shared_room = None);
    let room = ends.iter().find(|end| end.shared_room.is_some()).map(|end| end.room);
    for end in ends.iter_mut().filter(|end| end.shared_room.is_some()) {
        end.room = room.expect("the first one's");
    }
}

/// Whether what goes to the one takes room of the other.
pub(crate) fn is_one_room(ends: &[End], one: usize, other: usize) -> bool {
    let room = |at: usize| ends[at].shared_room;
    one == other || (room(one).is_some() && room(one) == room(other))
}

/// A move for which there is room with those that there are.
fn any_move(random: &mut Random, setup: &Setup) -> Option<Move> {
    let (from, to) = (
        random.below(setup.ends.len() as u64) as usize,
        random.below(setup.ends.len() as u64) as usize,
    );
    let size = GIB * (1 + random.below(8));
    let end = &setup.ends[to];
    let there = setup.moves.iter().filter(|one| is_one_room(&setup.ends, one.to, to));
    let (count, taken) =
        there.fold((0, 0), |(count, taken), one| (count + 1, taken + one.needs));
    let fits = match end.single {
        true => count == 0 && size <= end.room,
        false => taken + size <= end.room,
    };
    let groups = setup.groups.len() as u64;
    let group = (groups > 0 && !random.one_in(3)).then(|| random.below(groups) as usize);
    (from != to && end.takes && fits).then(|| Move {
        from,
        to,
        size,
        needs: size,
        group,
        time: Nanos::from_millis(100 + random.below(100_000)),
        rate: 10.0 + random.below(200) as f64,
    })
}
