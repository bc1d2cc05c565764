//! What the daemon does for a guest that sleeps: sees that it needs its memory, and wakes it.
//!
//! The decisions are `core::memory`'s. Here is what the daemon's service `memory` adds to them,
//! with its numbers: how often it looks, how it waits for granules (in the order in which they were
//! asked for), and how it sees what the guest has used.

use std::collections::VecDeque;

use sterna_core::Nanos;
use sterna_core::memory::{
    Action, Event, GRANULE, Granule, Needed, Setup, Stirring, TierSpeed, WITHIN, Wake,
    WakeRecord, streams,
};

use super::guest::{Guest, Page, pages_of, probe};

/// How often it is looked whether the guest gets pages back.
pub(super) const LOOK: Nanos = Nanos::from_millis(100);

/// How often time passes for a wake.
pub(super) const TICK: Nanos = Nanos::from_millis(10);

/// What Sterna knows before a wake.
#[derive(Clone, Debug)]
pub(super) struct Knows {
    /// The wakes before.
    pub(super) record: WakeRecord,
    /// What it has measured of the device.
    pub(super) speed: TierSpeed,
    /// How long the guest may be held.
    pub(super) hold: Nanos,
    /// How many processors the guest has.
    pub(super) processors: u32,
}

/// The daemon, as far as one guest is concerned.
pub(super) struct Sterna {
    knows: Knows,
    wake: Option<Wake>,
    over: bool,
    /// Granules that were asked for, and when.
    fetching: VecDeque<(Granule, Nanos)>,
    /// Pages that the guest had used when it was last looked.
    looked: u64,
    stirring: Stirring,
    /// Faults of the guest when it was last looked.
    faults: u64,
    needed: Needed,
}

impl Sterna {
    /// A daemon that watches a guest that has just fallen asleep.
    pub(super) fn new(knows: Knows, guest: &Guest) -> Sterna {
        let out = guest.out().len() as u64 * GRANULE;
        let stirring = Stirring::new(Nanos(0), out, knows.speed.page());
        Sterna {
            knows,
            wake: None,
            over: false,
            fetching: VecDeque::new(),
            looked: guest.used(),
            stirring,
            faults: 0,
            needed: Needed::none(guest.granules()),
        }
    }

    /// The wake, once it has begun.
    pub(super) fn wake(&self) -> Option<&Wake> {
        self.wake.as_ref()
    }

    /// Whether the wake is over.
    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    /// What the guest needed, if its wake was seen to the end.
    pub(super) fn needed(self) -> Option<Needed> {
        let outcome = self.wake?.outcome();
        let whole = outcome.all.is_some() && outcome.noted as usize == WITHIN.len();
        whole.then_some(self.needed)
    }

    /// Looks at the guest, which has had to read so many pages: what the wake is to be told. A
    /// guest that needs its memory is woken.
    pub(super) fn look(
        &mut self,
        now: Nanos,
        guest: &Guest,
        faults: u64,
    ) -> Option<Event> {
        let before = std::mem::replace(&mut self.faults, faults);
        if self.wake.is_some() {
            return Some(Event::Faults(faults - before));
        }
        let back = guest.used() - std::mem::replace(&mut self.looked, guest.used());
        self.stirring.look(now, faults - before, back)?;
        self.begin(guest);
        Some(Event::Start)
    }

    fn begin(&mut self, guest: &Guest) {
        let is_out = |granule: Granule| {
            pages_of(granule).any(|page| guest.page(page) == Page::Out)
        };
        let mut out = guest.out();
        out.retain(|one| is_out(one.granule));
        let streams = streams(&out, &self.knows.record);
        let streams = streams.into_iter().map(|stream| (stream, self.knows.speed));
        let Knows { hold, processors, .. } = self.knows;
        let setup = Setup { streams: streams.collect(), hold, processors };
        self.wake = Some(Wake::new(setup));
    }

    /// Tells the wake, and gives what is to be done.
    pub(super) fn tell(&mut self, now: Nanos, event: Event) -> Vec<Action> {
        let mut actions = Vec::new();
        if let Some(wake) = self.wake.as_mut().filter(|_| !self.over) {
            wake.handle(now, event, &mut actions);
        }
        self.over |= actions.contains(&Action::Over);
        actions
    }

    /// A granule has been asked for.
    pub(super) fn fetches(&mut self, now: Nanos, granule: Granule) {
        self.fetching.push_back((granule, now));
    }

    /// The granule that is waited for, if it is there: by touching a page of it.
    pub(super) fn fetched(&mut self, now: Nanos, guest: &mut Guest) -> Option<Event> {
        let &(granule, since) = self.fetching.front()?;
        let page = probe(granule);
        match guest.page(page) {
            Page::Out | Page::Coming { .. } => return None,
            Page::Used | Page::There { .. } => guest.set(page, Page::Used),
        }
        self.fetching.pop_front();
        let device = super::guest::DEVICE;
        Some(Event::Fetched { device, took: now.since(since), ok: true })
    }

    /// Notes what the guest has used.
    pub(super) fn note(&mut self, guest: &Guest, at: usize) {
        for granule in 0..guest.granules() {
            let mut others = pages_of(granule).filter(|page| *page != probe(granule));
            if others.any(|page| guest.page(page) == Page::Used) {
                self.needed.note(granule, at);
            }
        }
    }
}
