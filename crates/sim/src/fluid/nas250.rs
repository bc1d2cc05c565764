//! 250 virtual machines leave an array's block storage for a NAS (Hitachi 2015), at the
//! published size.
//!
//! Ten tiles of 25 machines, 1600 GB and 625 IO/s each, on four datastores of an array
//! with 13 RAID-6 groups of 10K disks. After twelve hours they move to a NAS on the same
//! disks in four waves: 53, 116, 103 and 82 minutes. By itself, a machine with 1.2 TB
//! takes 37 minutes. The scenarios are files, `scenarios/nas250.toml` and
//! `nas250-one.toml`; this module has what was published, and what of the scenarios was
//! fitted to it.
//!
//! **Why the waves take what they take.** The first moves a third of what each other
//! moves, and yet takes half as long; and the last is the quickest of the equal ones,
//! although it has the most machines at work beside it on the NAS. What explains both is
//! who else uses the spindles. A tile costs 5.6 of the 104 spindles while it is on the
//! array, where each small write is six operations, and 2.9 on the NAS, which makes full
//! stripes of them. The machines whose wave has not come work on where
//! they are (a wave's workload *stops* when it is moved, so it ran), and so each wave
//! finds more spindles free than the one before: 51 of a hundred, then 65, 73 and 80. What
//! is free copies at one price, 10.6 MiB/s for each spindle: a seek for each run of a stream on a
//! spindle, and full stripes at the destination. If the waiting machines stood still,
//! the first waves would be the quickest per byte, and the last the slowest:
//! [`Study::idle`] has those figures.
//!
//! Two numbers are fitted ([`FITTED`]); three of the five times are checks. That a stream
//! is on 20 of the 78 data spindles at a time is near a quarter of them, and there are
//! four datastores.
//!
//! **What is copied.** The source is thick-zeroed, so all of it is read. What is written
//! is what is not zero: the system disks, and what the workload has touched of the rest
//! until its wave, in chunks of 64 KiB. That is reckoned, not fitted: 45 to 49 %.

use super::{Outcome, Run, Scenario};

/// How far off a figure may be, as a part of the published one.
pub const TOLERANCE: f64 = 0.15;

/// The four waves, as a scenario.
const WAVES: &str = include_str!("../../../../scenarios/nas250.toml");

/// The single machine, as a scenario.
const ONE: &str = include_str!("../../../../scenarios/nas250-one.toml");

/// The published times, in minutes: the waves, and the single machine.
const PUBLISHED: [f64; 4] = [53.0, 116.0, 103.0, 82.0];
const PUBLISHED_ONE: f64 = 37.0;

/// What a figure shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// A number of the scenario was fitted to it.
    Fitted,
    /// None was.
    Check,
}

/// A published time beside the model's.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Of what.
    pub what: String,
    /// Minutes, as published.
    pub published: f64,
    /// Minutes, as modelled.
    pub ours: f64,
    /// What it shows.
    pub basis: Basis,
}

impl Figure {
    /// How far the model is off, as a part of the published figure.
    pub fn off(&self) -> f64 {
        self.ours / self.published - 1.0
    }

    /// Whether it is near enough.
    pub fn holds(&self) -> bool {
        self.off().abs() <= TOLERANCE
    }
}

/// A number of the scenarios that was fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fitted {
    /// What it is.
    pub what: &'static str,
    /// Its value, as the scenario has it.
    pub value: &'static str,
    /// The published figure that it was fitted to.
    pub to: &'static str,
}

/// All numbers that were fitted.
pub const FITTED: [Fitted; 2] = [
    Fitted {
        what: "a chunk, beside arrays and links",
        value: "2.1ms",
        to: "one machine: 37 min",
    },
    Fitted {
        what: "data spindles that a stream is on at a time",
        value: "20",
        to: "wave 2: 116 min",
    },
];

/// What is assumed: what neither the study nor a fit says.
pub const ASSUMED: [&str; 10] = [
    "machines whose wave has not come work on where they are",
    "30 chunks of 64 KiB under way for each machine that moves, as in the database study",
    "8 hosts; vCenter's two moves a host and eight a datastore",
    "machines move in the order of the tile's list, over the hosts in turn",
    "all 104 disks are one pool, which block storage and NAS share",
    "destaging is sorted: half a turn and 0.5 ms for each operation",
    "system disks (20 GB each) and the disk of 1.2 TB are all written",
    "the workload's requests fall anywhere in what is not the system disk",
    "12 % of random reads are hits, at the array and at the NAS",
    "links, the NAS's processors and its metadata limit nothing",
];

/// The experiment, run.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// The four waves.
    pub waves: Outcome,
    /// The same, if machines whose wave has not come stood still.
    pub idle: Outcome,
    /// The single machine.
    pub one: Outcome,
}

/// The four waves, as a scenario.
pub fn scenario() -> Scenario {
    WAVES.parse().expect("the scenario is one of ours, and a test reads it")
}

impl Study {
    /// Runs all of it.
    pub fn run() -> Study {
        let scenario = scenario();
        let idle = Scenario { waiting_work: false, ..scenario.clone() };
        let one: Scenario = ONE.parse().expect("the scenario is one of ours, too");
        Study {
            waves: Run::whole(&scenario),
            idle: Run::whole(&idle),
            one: Run::whole(&one),
        }
    }

    /// The published times beside the model's.
    pub fn figures(&self) -> Vec<Figure> {
        let mut figures = Study::of(&self.waves);
        let ours = minutes(&self.one, 0);
        figures.push(Figure {
            what: "one machine with 1.2 TB".into(),
            published: PUBLISHED_ONE,
            ours,
            basis: Basis::Fitted,
        });
        figures
    }

    /// The same if machines whose wave has not come stood still; not judged.
    pub fn if_idle(&self) -> Vec<Figure> {
        Study::of(&self.idle)
    }

    fn of(outcome: &Outcome) -> Vec<Figure> {
        let figure = |(wave, published): (usize, &f64)| Figure {
            what: format!("wave {}", wave + 1),
            published: *published,
            ours: minutes(outcome, wave),
            // The second is the one that a number was fitted to.
            basis: if wave == 1 { Basis::Fitted } else { Basis::Check },
        };
        PUBLISHED.iter().enumerate().map(figure).collect()
    }
}

fn minutes(outcome: &Outcome, wave: usize) -> f64 {
    outcome.wave(wave).map_or(f64::INFINITY, |phase| phase.seconds() / 60.0)
}
