//! The guard of a migration: what must hold for the guest, by when the disk shall have
//! moved, and the loops that see to it.
//!
//! Each loop says what the copier may take beside the guest, and the least counts. So
//! what must hold for the guest comes before the time: a migration that cannot have
//! both is late, and it is said by how much.
//!
//! A guest that waits and gets no answer at all has something worse than a slow copy.
//! Until it gets one, nothing is copied, and nothing is held.
//!
//! What the copier takes while the guest is idle is not limited: the mirror sees by
//! itself, request by request, when that is over. But where the host's processors are all
//! busy, a guest that asks for nothing for a moment computes, and copying takes from that
//! what no response time shows. Then short idle gaps do not count as gaps: what is copied
//! in them is copied in trials, too, and compared.

use super::deadline::Deadline;
use super::iops_loop::IopsLoop;
use super::latency_loop::LatencyLoop;
use super::{Experience, GuardAim, GuardStatus, Observation, Remaining};
use crate::Nanos;
use crate::mirror::{Allowance, CopyMode};

/// Samples in a row without an answer after which the guest counts as hanging: half a
/// second, more than a healthy disk takes under any load.
const HANGS: u32 = 5;

/// The processors are all busy if no more than this part of them is idle: copying as fast
/// as a disk can takes a few percent of a host, and no more than this of a small one.
const CROWDED: f64 = 0.1;

/// And no longer from this part on. Copying in trials takes less, so that they are a
/// little more idle then.
const ROOMY: f64 = 0.25;

/// The guard of one migration. Told of each window, it says what the copier may take
/// in the next.
#[derive(Debug)]
pub struct Guard {
    idle_only: bool,
    iops: Option<IopsLoop>,
    latency: Option<LatencyLoop>,
    deadline: Deadline,
    /// Samples in a row in which the guest waited and got no answer.
    silent: u32,
    /// The host's processors are all busy.
    crowded: bool,
    late: Option<Nanos>,
    /// Bytes per second that the time asks for, if it does.
    needs: Option<u64>,
}

impl Guard {
    /// What the copier may take before anything was seen: nothing beside the guest.
    pub const FIRST: Allowance = Allowance::IDLE_ONLY;

    /// A guard that has seen nothing yet.
    pub fn new(aim: GuardAim) -> Self {
        // Much at once is for the mean: who waits behind it waits longer.
        Guard::of(aim, aim.p99.is_none())
    }

    /// A guard of a copier that takes no notice of [`CopyMode`]s.
    pub fn of_another_copier(aim: GuardAim) -> Self {
        Guard::of(aim, false)
    }

    /// The same guard, beginning with what an earlier one has found out.
    #[must_use]
    pub fn like(self, experience: &Experience) -> Self {
        let known = experience.sound();
        let iops = self.iops.map(|iops| match &known.trials {
            Some(known) => iops.like(known),
            None => iops,
        });
        let latency = self.latency.map(|latency| match &known.latency {
            Some(known) => latency.like(known),
            None => latency,
        });
        Guard { iops, latency, ..self }
    }

    /// Whether each of its loops began with what an earlier one has found out.
    pub fn is_experienced(&self) -> bool {
        let iops = self.iops.as_ref().map(IopsLoop::is_experienced);
        let latency = self.latency.as_ref().map(LatencyLoop::is_experienced);
        let loops = [iops, latency];
        loops.iter().any(Option::is_some) && loops.into_iter().flatten().all(|it| it)
    }

    /// What it has found out so far.
    pub fn experience(&self) -> Experience {
        let trials = self.iops.as_ref().and_then(IopsLoop::learned);
        let latency = self.latency.as_ref().and_then(LatencyLoop::held);
        Experience { trials, latency }.sound()
    }

    fn of(aim: GuardAim, chooses_mode: bool) -> Self {
        Guard {
            idle_only: aim.idle_only,
            iops: aim.keep.map(|part| IopsLoop::new(1.0 - part, chooses_mode)),
            latency: aim.p99.map(LatencyLoop::new),
            deadline: Deadline::default(),
            silent: 0,
            crowded: false,
            late: None,
            needs: None,
        }
    }

    /// Looks at a window, and at how far it is to the end; says what the copier may
    /// take in the next.
    pub fn step(&mut self, seen: &Observation<'_>, remaining: Remaining) -> Allowance {
        self.deadline.look(seen);
        self.needs =
            remaining.time.map(|time| self.deadline.needs(remaining.bytes, time));
        self.late =
            remaining.time.and_then(|time| self.deadline.late(remaining.bytes, time));
        self.silent = if seen.is_silent() { self.silent.saturating_add(1) } else { 0 };
        if self.hangs() {
            self.interrupt();
            return Allowance::IDLE_ONLY;
        }
        self.look_at_processors(seen.idle_processors);
        if let Some(latency) = &mut self.latency {
            latency.step(seen);
        }
        let iops = self.iops.as_mut().map(|iops| (iops.step(seen), iops.duty_cycle()));
        let (trial, duty) = iops.map_or((None, 1.0), |(rate, duty)| (Some(rate), duty));
        // What is needed over all the time has only the trials.
        let needs = self.needs.map(|rate| (rate as f64 / duty) as u64);
        let busy = [trial, needs, self.bound()].into_iter().flatten().min();
        let mode = self.iops.as_ref().map_or(CopyMode::Even, IopsLoop::mode);
        // With a deadline alone nobody is to be kept from anything.
        // As long as it is not known: a small disk would have moved meanwhile.
        let crowded = self.crowded || seen.idle_processors.is_none();
        let leaves_idle_gaps = crowded && (trial.is_some() || self.bound().is_some());
        Allowance { busy, idle: None, mode, leaves_idle_gaps }
    }

    fn look_at_processors(&mut self, idle: Option<f64>) {
        let bound = if self.crowded { ROOMY } else { CROWDED };
        self.crowded = idle.map_or(self.crowded, |idle| idle < bound);
    }

    /// What comes is another time: nothing was copied for a while, and not to compare.
    pub fn interrupt(&mut self) {
        self.iops.iter_mut().for_each(IopsLoop::interrupt);
        self.latency.iter_mut().for_each(LatencyLoop::interrupt);
    }

    /// What the copier may take beside the guest over time, bytes per second; nothing
    /// if all it can.
    pub fn busy_rate(&self) -> Option<u64> {
        if self.hangs() {
            return Some(0);
        }
        let iops = self.iops.as_ref().map(IopsLoop::rate);
        [iops, self.bound(), self.needs].into_iter().flatten().min()
    }

    /// Whether something must hold for a guest that gets no answers.
    fn hangs(&self) -> bool {
        self.silent >= HANGS && (self.iops.is_some() || self.latency.is_some())
    }

    /// What the copier may take at any moment.
    fn bound(&self) -> Option<u64> {
        let latency = self.latency.as_ref().map(LatencyLoop::rate);
        [self.idle_only.then_some(0), latency].into_iter().flatten().min()
    }

    /// The status of the loop that is worst off.
    pub fn status(&self) -> GuardStatus {
        if self.hangs() {
            return GuardStatus::Converging;
        }
        let iops = self.iops.as_ref().map(IopsLoop::status);
        let latency = self.latency.as_ref().map(LatencyLoop::status);
        let all = [iops, latency].into_iter().flatten();
        let worse = |status: &GuardStatus| match status {
            GuardStatus::Holding => 0,
            GuardStatus::Learning => 1,
            GuardStatus::Converging => 2,
            GuardStatus::Unreachable(_) => 3,
        };
        all.max_by_key(worse).unwrap_or(GuardStatus::Holding)
    }

    /// The guest's IO/s without the copy, and the part of it (0 to 1) that it has
    /// beside it; known only where a part is kept.
    pub fn kept(&self) -> Option<(f64, f64)> {
        self.iops.as_ref().and_then(IopsLoop::kept)
    }

    /// The 99th percentile of the guest's response times over the last second, or of its
    /// last hundred requests; known only where that is held, and while it asks.
    pub fn p99(&self) -> Option<Nanos> {
        self.latency.as_ref().and_then(LatencyLoop::p99)
    }

    /// By how much the migration will be late, if it will.
    pub fn late(&self) -> Option<Nanos> {
        self.late
    }

    /// The part of its IO/s (0 to 1) that the guest would keep if the migration were
    /// to end in time; known only where a part is kept, and the time cannot be.
    pub fn in_time_would_keep(&self) -> Option<f64> {
        self.late?;
        self.iops.as_ref()?.would_keep(self.needs? as f64)
    }
}
