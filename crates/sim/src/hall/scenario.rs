//! A hall: which hosts and machines there are, what these ask for, and what goes wrong.
//!
//! Plain values. People write them as TOML (`text`); names are numbers here, of the thing
//! in its list.

use sterna_core::Nanos;
use sterna_core::schedule::{Moment, Schedule};
use sterna_placement::hosts::{Amounts, Bounds, CooldownSettings, Pool, Rule, Wish};

/// What is to be simulated.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What it is.
    pub title: String,
    /// What it asks.
    pub about: String,
    /// The second of the week at which it begins.
    pub starts: Moment,
    /// How long it lasts.
    pub length: Nanos,
    /// Where chance comes from.
    pub seed: u64,
    /// What DRS is told.
    pub drs: Settings,
    /// The hosts.
    pub hosts: Vec<Host>,
    /// What machines are and ask for.
    pub profiles: Vec<Profile>,
    /// The resource pools; one comes after the one that it is in.
    pub pools: Vec<Pool>,
    /// The machines.
    pub vms: Vec<Vm>,
    /// The rules.
    pub rules: Vec<Rule>,
    /// The name of each of them.
    pub rule_names: Vec<String>,
    /// What goes wrong.
    pub failures: Vec<Failure>,
}

/// What DRS is told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// What it does by itself.
    pub wish: Wish,
    /// The time from one look at the machines to the next.
    pub round: Nanos,
    /// How long what is waited.
    pub hold: CooldownSettings,
    /// What is asked of moves.
    pub bounds: Bounds,
}

/// A host.
#[derive(Clone, Debug, PartialEq)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// What it has for machines.
    pub capacity: Amounts,
    /// Machines that come to it or leave it at once at most.
    pub copies: u32,
    /// Bytes per second of its link, each way.
    pub link: f64,
}

/// What a machine is, and what it asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// Its processors, and its memory.
    pub size: Amounts,
    /// What it asks for at its busiest.
    pub demand: Amounts,
    /// When that is.
    pub shape: Shape,
    /// The part of its memory that it holds even when it asks for no processor.
    pub keeps: f64,
    /// By what part its demand for processors varies from minute to minute: the standard
    /// deviation.
    pub varies: f64,
}

/// How much is asked for, when.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// Always the same.
    Steady,
    /// All while the schedule is open, and this part at other times.
    Shift(Schedule, f64),
    /// This part in each hour of the day.
    Hours([f64; 24]),
}

impl Shape {
    /// The part of its demand that a machine has at a moment.
    pub fn level(&self, now: Moment) -> f64 {
        match self {
            Shape::Steady => 1.0,
            Shape::Shift(busy, _) if busy.is_open(now) => 1.0,
            Shape::Shift(_, idle) => *idle,
            // A second of a day is in one of its 24 hours.
            Shape::Hours(parts) => parts[(now.second_of_day() / 3600) as usize],
        }
    }
}

/// A machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vm {
    /// Its name.
    pub name: String,
    /// What it is.
    pub profile: usize,
    /// Where it is at the beginning.
    pub host: usize,
    /// The pool that it is in; nothing at the top.
    pub pool: Option<usize>,
}

/// A host that fails, with all machines on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The host.
    pub host: usize,
    /// When it fails.
    pub at: Nanos,
    /// When it is back; nothing if it never is.
    pub back: Option<Nanos>,
    /// How long after the failure somebody starts its machines on other hosts; nothing if
    /// nobody does.
    pub restart: Option<Nanos>,
}

impl Failure {
    /// Whether the host is away then.
    pub(super) fn holds(&self, now: Nanos) -> bool {
        self.at <= now && self.back.is_none_or(|back| now < back)
    }
}

impl Scenario {
    /// The machine's profile.
    pub(super) fn profile(&self, vm: usize) -> &Profile {
        &self.profiles[self.vms[vm].profile]
    }

    /// The second of the week, so long after the beginning.
    pub fn moment(&self, now: Nanos) -> Moment {
        let week = u64::from(sterna_core::schedule::WEEK);
        // Below a week, which fits.
        self.starts.after((now.0 / 1_000_000_000 % week) as u32)
    }
}
