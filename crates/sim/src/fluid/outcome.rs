//! What came out of a scenario.

/// What came out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The phases, one after the other: before the first wave, each wave, what is
    /// between, and what is left after the last.
    pub phases: Vec<Phase>,
    /// How it was from window to window.
    pub samples: Vec<Sample>,
    /// What happened, and when, in seconds.
    pub events: Vec<(f64, String)>,
    /// How often it was asked how fast everything goes.
    pub settled: u64,
    /// Machines whose move had not ended when the run was given up: what they wait for
    /// never comes.
    pub stuck: usize,
}

/// What happened in a phase.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Phase {
    /// Its name.
    pub name: String,
    /// The wave, if it is one.
    pub wave: Option<usize>,
    /// From when on, in seconds.
    pub from: f64,
    /// Until when.
    pub until: f64,
    /// Machines and disks that were moved.
    pub moved: usize,
    /// Disks of them.
    pub disks: u64,
    /// Bytes of their images that were gone through.
    pub copied: f64,
    /// Bytes that were written of them.
    pub written: f64,
    /// What was predicted of the wave, in seconds, if anything.
    pub predicted: Option<Foretold>,
    /// Machines that wanted a number of requests.
    pub working: usize,
    /// How many of them got 99 % of it.
    pub held: usize,
    /// What the worst of them got, as a part.
    pub least: Option<f64>,
    /// Of each profile: requests a second, and their mean response in seconds.
    pub profiles: Vec<Done>,
    /// The part of the time in which each array's spindles worked.
    pub busy: Vec<f64>,
    /// The longest that a machine took to be moved, and the shortest, in seconds.
    pub longest: f64,
    /// See `longest`.
    pub shortest: f64,
}

/// What was predicted of a wave: one of twenty takes less, and one of twenty more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Foretold {
    /// Seconds at least.
    pub least: f64,
    /// Seconds, most likely.
    pub likely: f64,
    /// Seconds at most.
    pub most: f64,
}

/// Requests of the machines of a profile, all together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Done {
    /// How many were wanted; endless of those who take what they can get.
    pub wanted: f64,
    /// How many were done.
    pub requests: f64,
    /// Their response times, summed.
    pub seconds: f64,
}

/// How it was in a window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// When the window ended, in seconds.
    pub at: f64,
    /// Bytes per second of all copies: of the images.
    pub copied: f64,
    /// Requests per second that were done.
    pub iops: f64,
    /// Requests per second that were wanted, of those who want a number.
    pub wanted: f64,
    /// Their mean response, in seconds.
    pub response: f64,
    /// The part of the time in which each array's spindles worked.
    pub busy: Vec<f64>,
    /// Machines that were being moved at its end.
    pub moving: usize,
}

impl Outcome {
    /// The phase of a wave.
    pub fn wave(&self, number: usize) -> Option<&Phase> {
        self.phases.iter().find(|phase| phase.wave == Some(number))
    }
}

impl Phase {
    /// How long it was, in seconds.
    pub fn seconds(&self) -> f64 {
        self.until - self.from
    }
}
