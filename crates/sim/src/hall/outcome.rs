//! What came out of a hall, with DRS and without.

use std::collections::BTreeMap;

use sterna_core::Nanos;
use sterna_placement::hosts::{Amounts, Goal};

/// What came out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// With DRS.
    pub with: Side,
    /// At the same loads, without it.
    pub without: Side,
}

/// What came out in one of two halls.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Side {
    /// The time in parts.
    pub periods: Vec<Period>,
    /// The whole time.
    pub total: Total,
    /// How it was every now and then.
    pub samples: Vec<Sample>,
    /// The moves.
    pub moves: Vec<Made>,
    /// What happened beside them, and when.
    pub events: Vec<(Nanos, String)>,
    /// Why machines did not move where something was not right: how many at some time.
    pub stayed: BTreeMap<&'static str, usize>,
    /// Why moves that DRS wanted could not begin: how many.
    pub refused: BTreeMap<&'static str, usize>,
    /// Moves that began, and came to nothing as a host failed.
    pub failed: usize,
    /// Moves that brought a machine back to a host within the cooldown after it left it.
    pub returned: usize,
    /// Machines that do not run at the end.
    pub down: usize,
}

/// What happened in a part of the time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Period {
    /// When it began.
    pub from: Nanos,
    /// When it ended.
    pub until: Nanos,
    /// How much loads differed at its beginning and at its end: the deviation.
    pub imbalance: [f64; 2],
    /// Machines that came to another host.
    pub moves: usize,
    /// What machines got.
    pub total: Total,
}

/// What machines got in some time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Total {
    /// What they were entitled to, times seconds.
    pub entitled: Amounts,
    /// What they got of that, times seconds.
    pub got: Amounts,
    /// The machine that got least of what it was entitled to, of processors or memory: so
    /// large a part.
    pub least: f64,
    /// Machines that got 99 % of both.
    pub held: usize,
    /// What copies took of processors, times seconds.
    pub copier: f64,
}

impl Default for Total {
    /// Nothing was asked for, so nothing is missing.
    fn default() -> Total {
        let none = Amounts::default();
        Total { entitled: none, got: none, least: 1.0, held: 0, copier: 0.0 }
    }
}

/// How it was at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// When.
    pub at: Nanos,
    /// How much loads differed: the deviation.
    pub imbalance: f64,
    /// What machines were entitled to and did not get.
    pub lacking: Amounts,
    /// The highest load of a host: of processors, and of memory.
    pub highest: Amounts,
    /// The part of a host's memory that is held by machines on it or on their way to it;
    /// of the host where that is most.
    pub fullest: f64,
    /// Machines on their way.
    pub moving: usize,
}

/// A machine that has moved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Made {
    /// When it came.
    pub at: Nanos,
    /// The machine.
    pub vm: usize,
    /// Where it was.
    pub from: usize,
    /// Where it is.
    pub to: usize,
    /// What for.
    pub goal: Goal,
    /// Bytes of its memory that were copied.
    pub bytes: f64,
    /// How long that took.
    pub took: Nanos,
}

impl Side {
    /// Moves that brought a machine back to a host that it had left within the cooldown.
    pub(super) fn returned(&self, cooldown: Nanos) -> usize {
        let back = |(at, one): (usize, &Made)| {
            self.moves[..at].iter().any(|before| {
                let same = before.vm == one.vm && before.from == one.to;
                same && one.at.since(before.at) < cooldown
            })
        };
        self.moves.iter().enumerate().filter(|it| back(*it)).count()
    }
}
