//! The run: from event to event.
//!
//! **Bounds.** Under way are a read for each processor, with what is read beside it, and those that
//! the wake has outstanding; the queue of events holds one for each processor, and three more.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::ops::Range;

use sterna_core::Nanos;
use sterna_core::memory::{Action, Event as WakeEvent, Needed};

use super::customers::{Core, Processor};
use super::device::Device;
use super::guest::{Guest, PAGE, Page, pages_of};
use super::kernel::ReadAhead;
use super::parameters::Parameters;
use super::sterna::{LOOK, Sterna, TICK};
use super::wake::Course;

/// A second.
const SECOND: Nanos = Nanos::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// Something happens at the device.
    Device,
    /// A processor has computed, and touches a page.
    Touch(usize),
    /// Time passes for the wake.
    Tick,
    /// Sterna looks at the guest.
    Look,
}

/// A guest whose customers come back.
pub(super) struct World<'s> {
    parameters: Parameters,
    core: &'s Core,
    guest: Guest,
    device: Device,
    ahead: ReadAhead,
    processors: Vec<Processor>,
    /// Processors that wait for a page.
    waiting: BTreeMap<u32, Vec<usize>>,
    /// Whether the guest stands still, and its processors that would go on.
    held: bool,
    parked: Vec<usize>,
    sterna: Option<Sterna>,
    /// Pages that the guest had to have read.
    faults: u64,
    course: Course,
    armed: Option<Nanos>,
    now: Nanos,
    events: BinaryHeap<Reverse<(Nanos, u64, Event)>>,
    made: u64,
}

impl<'s> World<'s> {
    /// The moment at which the customers come.
    pub(super) fn new(
        parameters: Parameters,
        core: &'s Core,
        (guest, device): (Guest, Device),
        (ahead, sterna): (ReadAhead, Option<Sterna>),
        seed: u64,
    ) -> World<'s> {
        let of = |at: usize| Processor::new(&parameters, seed.wrapping_add(at as u64));
        World {
            parameters,
            core,
            guest,
            device,
            ahead,
            processors: (0..parameters.processors).map(of).collect(),
            waiting: BTreeMap::new(),
            held: false,
            parked: Vec::new(),
            sterna,
            faults: 0,
            course: Course::default(),
            armed: None,
            now: Nanos(0),
            events: BinaryHeap::new(),
            made: 0,
        }
    }

    /// Runs for so long, or until the wake is over.
    pub(super) fn run(
        mut self,
        span: Nanos,
        to_the_end: bool,
    ) -> (Course, Option<Needed>) {
        let seconds = (span.0 / SECOND.0) as usize;
        self.course.orders = vec![0; seconds];
        for processor in 0..self.processors.len() {
            let first =
                self.processors[processor].next(&self.parameters, &self.guest, self.core);
            self.at(first, Event::Touch(processor));
        }
        if self.sterna.is_some() {
            self.at(LOOK, Event::Look);
        }
        while let Some(Reverse((at, _, event))) = self.events.pop()
            && at < span
            && !(to_the_end && self.sterna.as_ref().is_some_and(Sterna::is_over))
        {
            self.now = at;
            self.happen(event);
        }
        let wake = self.sterna.as_ref().and_then(Sterna::wake);
        self.course.wake = wake.map(|wake| wake.outcome());
        (self.course, self.sterna.and_then(Sterna::needed))
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Device => self.device(),
            Event::Touch(processor) => self.touch(processor),
            Event::Tick => {
                self.tell(WakeEvent::Tick);
                self.at(self.now.plus(TICK), Event::Tick);
            }
            Event::Look => self.look(),
        }
    }

    /// A processor touches its page, unless it stands still.
    fn touch(&mut self, processor: usize) {
        if self.held {
            self.parked.push(processor);
            return;
        }
        let page = self.processors[processor].page;
        match self.guest.page(page) {
            Page::Used => self.goes_on(processor, Nanos(0)),
            Page::There { ahead } => {
                if ahead {
                    self.ahead.hit();
                }
                self.guest.set(page, Page::Used);
                self.goes_on(processor, self.parameters.minor_fault);
            }
            Page::Coming { ahead } => {
                if ahead {
                    self.ahead.hit();
                    self.guest.set(page, Page::Coming { ahead: false });
                }
                self.waits(processor, page);
            }
            Page::Out => {
                self.faults += 1;
                let slots = self.ahead.fault(self.guest.slot(page));
                self.read(slots, true);
                self.guest.set(page, Page::Coming { ahead: false });
                self.waits(processor, page);
            }
        }
    }

    fn waits(&mut self, processor: usize, page: u32) {
        self.course.waits += 1;
        self.waiting.entry(page).or_default().push(processor);
    }

    /// A processor goes on after a touch, which took so long.
    fn goes_on(&mut self, processor: usize, took: Nanos) {
        let second = (self.now.0 / SECOND.0) as usize;
        let it = &mut self.processors[processor];
        if let Some(orders) = self.course.orders.get_mut(second).filter(|_| it.is_done())
        {
            *orders += 1;
        }
        let computes = it.next(&self.parameters, &self.guest, self.core);
        self.at(self.now.plus(took).plus(computes), Event::Touch(processor));
    }

    /// Reads what is out of these slots: each run of them in one request.
    fn read(&mut self, slots: Range<u64>, ahead: bool) {
        let mut run: Option<Range<u64>> = None;
        for slot in slots {
            let page = self.guest.in_slot(slot);
            let out = page.filter(|page| self.guest.page(*page) == Page::Out);
            if let Some(page) = out {
                self.guest.set(page, Page::Coming { ahead });
                let first = run.take().map_or(slot, |run| run.start);
                run = Some(first..slot + 1);
            } else if let Some(run) = run.take() {
                self.ask(run);
            }
        }
        run.into_iter().for_each(|run| self.ask(run));
        self.arm();
    }

    fn ask(&mut self, slots: Range<u64>) {
        self.course.read += (slots.end - slots.start) * PAGE;
        self.device.read(self.now, slots);
    }

    /// What was read is there, and those who waited for it go on.
    fn device(&mut self) {
        if self.armed == Some(self.now) {
            self.armed = None;
        }
        for slots in self.device.advance(self.now) {
            for slot in slots {
                let Some(page) = self.guest.in_slot(slot) else { continue };
                if let Page::Coming { ahead } = self.guest.page(page) {
                    self.guest.set(page, Page::There { ahead });
                }
                let waited = self.waiting.remove(&page).unwrap_or_default();
                waited.into_iter().for_each(|processor| self.touch(processor));
            }
        }
        self.fetched();
        self.arm();
    }

    /// Sterna looks at the guest.
    fn look(&mut self) {
        self.at(self.now.plus(LOOK), Event::Look);
        let Some(sterna) = &mut self.sterna else { return };
        let event = sterna.look(self.now, &self.guest, self.faults);
        if event == Some(WakeEvent::Start) {
            self.course.seen = Some(self.now.as_secs_f64());
            self.at(self.now.plus(TICK), Event::Tick);
        }
        event.into_iter().for_each(|event| self.tell(event));
    }

    /// Granules that Sterna waited for are there.
    fn fetched(&mut self) {
        while let Some(sterna) = &mut self.sterna
            && let Some(event) = sterna.fetched(self.now, &mut self.guest)
        {
            self.tell(event);
        }
    }

    /// Tells the wake what has happened, and does what it wants.
    fn tell(&mut self, event: WakeEvent) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            let Some(sterna) = &mut self.sterna else { return };
            for action in sterna.tell(self.now, event) {
                events.extend(self.act(action));
            }
        }
    }

    fn act(&mut self, action: Action) -> Option<WakeEvent> {
        match action {
            Action::Hold => {
                self.held = true;
                Some(WakeEvent::Held(true))
            }
            Action::LetGo => {
                self.held = false;
                let parked = std::mem::take(&mut self.parked);
                parked.into_iter().for_each(|processor| self.touch(processor));
                Some(WakeEvent::LetGo)
            }
            Action::Fetch { granule, .. } => {
                let slots = pages_of(granule).map(|page| self.guest.slot(page));
                let first = slots.min().unwrap_or_default();
                self.read(first..first + pages_of(granule).len() as u64, false);
                let sterna = self.sterna.as_mut()?;
                sterna.fetches(self.now, granule);
                // All of it may be there already.
                sterna.fetched(self.now, &mut self.guest)
            }
            Action::Note(at) => {
                self.sterna.as_mut()?.note(&self.guest, at);
                Some(WakeEvent::Noted(true))
            }
            Action::Over => None,
        }
    }

    /// Comes back when something happens at the device.
    fn arm(&mut self) {
        let next = self.device.next_event().map(|at| at.max(self.now));
        if let Some(next) =
            next.filter(|next| self.armed.is_none_or(|armed| *next < armed))
        {
            self.armed = Some(next);
            self.at(next, Event::Device);
        }
    }

    fn at(&mut self, at: Nanos, event: Event) {
        self.made += 1;
        self.events.push(Reverse((at, self.made, event)));
    }
}
