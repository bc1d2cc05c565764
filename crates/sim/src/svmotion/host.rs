//! The host: cores that the database's work and the copier's share.
//!
//! The database's bursts wait in one queue for the next core that is free. The copier's
//! work for a chunk is done at once, by one core in the middle of whatever it is at. The
//! virtual machine has as many processors as there are cores, and they go on together
//! only (co-scheduling): so while one core works for the copier, the others' bursts wait
//! for it, and end later by as much. What they wait is not counted as work.

use std::collections::VecDeque;

use sterna_core::Nanos;

/// A burst of work, for one user of the database.
#[derive(Clone, Copy, Debug)]
struct Burst {
    user: usize,
    takes: Nanos,
}

#[derive(Clone, Copy, Debug, Default)]
struct Core {
    user: Option<usize>,
    /// How much later what it is at will end.
    late: Nanos,
}

/// The cores of a host.
#[derive(Debug)]
pub(super) struct Host {
    cores: Vec<Core>,
    waiting: VecDeque<Burst>,
    /// Cycles per second of a core.
    clock: f64,
    /// Core seconds that were worked.
    busy: f64,
}

/// A core begins with something; it is to be asked again then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Begun {
    pub(super) core: usize,
    pub(super) until: Nanos,
}

/// What a core's asking finds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Found {
    /// It was interrupted meanwhile: ask again.
    Later(Begun),
    /// The burst of this user has ended, and another one may have begun.
    Ended(usize, Option<Begun>),
}

impl Host {
    /// So many cores, each with so many cycles per second, of which `background` all
    /// together are used for what is always there.
    pub(super) fn new(cores: usize, clock: f64, background: f64) -> Host {
        Host {
            cores: vec![Core::default(); cores],
            waiting: VecDeque::new(),
            clock: clock - background / cores as f64,
            busy: 0.0,
        }
    }

    fn span(&self, cycles: f64) -> Nanos {
        Nanos((cycles / self.clock * 1e9) as u64)
    }

    /// A user's burst of so many cycles has come.
    pub(super) fn work(&mut self, now: Nanos, user: usize, cycles: f64) -> Option<Begun> {
        let takes = self.span(cycles);
        self.busy += takes.as_secs_f64();
        self.waiting.push_back(Burst { user, takes });
        let core = self.cores.iter().position(|core| core.user.is_none())?;
        self.begin(now, core)
    }

    /// The copier needs so many cycles, now.
    pub(super) fn interrupt(&mut self, cycles: f64) {
        let takes = self.span(cycles);
        self.busy += takes.as_secs_f64();
        for core in self.cores.iter_mut().filter(|core| core.user.is_some()) {
            core.late = core.late.plus(takes);
        }
    }

    /// Asks a core at the moment that it said.
    pub(super) fn ask(&mut self, now: Nanos, core: usize) -> Option<Found> {
        let at = &mut self.cores[core];
        if at.late > Nanos(0) {
            let late = std::mem::take(&mut at.late);
            return Some(Found::Later(Begun { core, until: now.plus(late) }));
        }
        let user = at.user.take()?;
        Some(Found::Ended(user, self.begin(now, core)))
    }

    /// Core seconds that were worked, without what is always there.
    pub(super) fn busy(&self) -> f64 {
        self.busy
    }

    /// Cycles of so many core seconds.
    pub(super) fn cycles(&self, core_seconds: f64) -> f64 {
        core_seconds * self.clock
    }

    fn begin(&mut self, now: Nanos, core: usize) -> Option<Begun> {
        let burst = self.waiting.pop_front()?;
        self.cores[core].user = Some(burst.user);
        Some(Begun { core, until: now.plus(burst.takes) })
    }
}
