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
//! What the copier takes while the guest is gone is not limited: the mirror sees by
//! itself, request by request, when that is over. But where the host's processors are all
//! busy, a guest that asks for nothing for a moment computes, and copying takes from that
//! what no response time shows. Then short gaps are no gaps: what is copied in them is in
//! turns, too, and compared.

use super::deadline::Deadline;
use super::keep::Keep;
use super::p99::Ceiling;
use super::{Aim, Experience, Observation, Standing, Way};
use crate::Nanos;
use crate::mirror::{Allowance, Manner};

/// Samples in a row without an answer after which the guest counts as hanging: half a
/// second, more than a healthy disk takes under any load.
const HANGS: u32 = 5;

/// The processors are all busy if no more than this part of them is idle: copying as fast
/// as a disk can takes a few percent of a host, and no more than this of a small one.
const CROWDED: f64 = 0.1;

/// And no longer from this part on. Copying in turns takes less, so that they are a
/// little more idle then.
const ROOMY: f64 = 0.25;

/// The guard of one migration. Told of each window, it says what the copier may take
/// in the next.
#[derive(Debug)]
pub struct Guard {
    idle_only: bool,
    keep: Option<Keep>,
    ceiling: Option<Ceiling>,
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
    pub fn new(aim: Aim) -> Self {
        // Much at once is for the mean: who waits behind it waits longer.
        Guard::of(aim, aim.p99.is_none())
    }

    /// A guard of a copier that takes no notice of [`Manner`]s.
    pub fn of_another_copier(aim: Aim) -> Self {
        Guard::of(aim, false)
    }

    /// The same guard, beginning with what an earlier one has found out.
    #[must_use]
    pub fn like(self, experience: &Experience) -> Self {
        let Experience { turns, within } = experience.sound();
        let keep = self.keep.map(|keep| match &turns {
            Some(known) => keep.like(known),
            None => keep,
        });
        let ceiling = self.ceiling.map(|ceiling| match within {
            Some(known) => ceiling.like(&known),
            None => ceiling,
        });
        Guard { keep, ceiling, ..self }
    }

    /// Whether each of its loops began with what an earlier one has found out.
    pub fn is_experienced(&self) -> bool {
        let keep = self.keep.as_ref().map(Keep::is_experienced);
        let ceiling = self.ceiling.as_ref().map(Ceiling::is_experienced);
        let loops = [keep, ceiling];
        loops.iter().any(Option::is_some) && loops.into_iter().flatten().all(|it| it)
    }

    /// What it has found out so far.
    pub fn experience(&self) -> Experience {
        let turns = self.keep.as_ref().and_then(Keep::turned);
        let within = self.ceiling.as_ref().and_then(Ceiling::held);
        Experience { turns, within }.sound()
    }

    fn of(aim: Aim, manners: bool) -> Self {
        Guard {
            idle_only: aim.idle_only,
            keep: aim.keep.map(|part| Keep::new(1.0 - part, manners)),
            ceiling: aim.p99.map(Ceiling::new),
            deadline: Deadline::default(),
            silent: 0,
            crowded: false,
            late: None,
            needs: None,
        }
    }

    /// Looks at a window, and at how far it is to the end; says what the copier may
    /// take in the next.
    pub fn step(&mut self, seen: &Observation<'_>, way: Way) -> Allowance {
        self.deadline.look(seen);
        self.needs = way.time.map(|time| self.deadline.needs(way.left, time));
        self.late = way.time.and_then(|time| self.deadline.late(way.left, time));
        self.silent = if seen.is_silent() { self.silent.saturating_add(1) } else { 0 };
        if self.hangs() {
            self.interrupt();
            return Allowance::IDLE_ONLY;
        }
        self.look_at_processors(seen.idle_processors);
        if let Some(ceiling) = &mut self.ceiling {
            ceiling.step(seen);
        }
        let keep = self.keep.as_mut().map(|keep| (keep.step(seen), keep.part()));
        let (turn, part) = keep.map_or((None, 1.0), |(rate, part)| (Some(rate), part));
        // What is needed over all the time has only the turns.
        let needs = self.needs.map(|rate| (rate as f64 / part) as u64);
        let busy = [turn, needs, self.bound()].into_iter().flatten().min();
        let manner = self.keep.as_ref().map_or(Manner::Even, Keep::manner);
        // With a deadline alone nobody is to be kept from anything.
        // As long as it is not known: a small disk would have moved meanwhile.
        let crowded = self.crowded || seen.idle_processors.is_none();
        let leaves_gaps = crowded && (turn.is_some() || self.bound().is_some());
        Allowance { busy, idle: None, manner, leaves_gaps }
    }

    fn look_at_processors(&mut self, idle: Option<f64>) {
        let bound = if self.crowded { ROOMY } else { CROWDED };
        self.crowded = idle.map_or(self.crowded, |idle| idle < bound);
    }

    /// What comes is another time: nothing was copied for a while, and not to compare.
    pub fn interrupt(&mut self) {
        self.keep.iter_mut().for_each(Keep::interrupt);
        self.ceiling.iter_mut().for_each(Ceiling::interrupt);
    }

    /// What the copier may take beside the guest over time, bytes per second; nothing
    /// if all it can.
    pub fn busy_rate(&self) -> Option<u64> {
        if self.hangs() {
            return Some(0);
        }
        let keep = self.keep.as_ref().map(Keep::rate);
        [keep, self.bound(), self.needs].into_iter().flatten().min()
    }

    /// Whether something must hold for a guest that gets no answers.
    fn hangs(&self) -> bool {
        self.silent >= HANGS && (self.keep.is_some() || self.ceiling.is_some())
    }

    /// What the copier may take at any moment.
    fn bound(&self) -> Option<u64> {
        let ceiling = self.ceiling.as_ref().map(Ceiling::rate);
        [self.idle_only.then_some(0), ceiling].into_iter().flatten().min()
    }

    /// How it stands with the guest: as the loop that is worst off.
    pub fn standing(&self) -> Standing {
        if self.hangs() {
            return Standing::Converging;
        }
        let keep = self.keep.as_ref().map(Keep::standing);
        let ceiling = self.ceiling.as_ref().map(Ceiling::standing);
        let all = [keep, ceiling].into_iter().flatten();
        let worse = |standing: &Standing| match standing {
            Standing::Holding => 0,
            Standing::Learning => 1,
            Standing::Converging => 2,
            Standing::Unreachable(_) => 3,
        };
        all.max_by_key(worse).unwrap_or(Standing::Holding)
    }

    /// The guest's IO/s without the copy, and the part of it (0 to 1) that it has
    /// beside it; known only where a part is kept.
    pub fn kept(&self) -> Option<(f64, f64)> {
        self.keep.as_ref().and_then(Keep::kept)
    }

    /// The 99th percentile of the guest's response times over the last second, or of its
    /// last hundred requests; known only where that is held, and while it asks.
    pub fn p99(&self) -> Option<Nanos> {
        self.ceiling.as_ref().and_then(Ceiling::p99)
    }

    /// By how much the migration will be late, if it will.
    pub fn late(&self) -> Option<Nanos> {
        self.late
    }

    /// The part of its IO/s (0 to 1) that the guest would keep if the migration were
    /// to end in time; known only where a part is kept, and the time cannot be.
    pub fn in_time_would_keep(&self) -> Option<f64> {
        self.late?;
        self.keep.as_ref()?.would_keep(self.needs? as f64)
    }
}
