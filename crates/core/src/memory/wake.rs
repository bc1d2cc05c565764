//! A VM wakes: its memory comes back from swap before the guest asks for it.
//!
//! # Rule
//!
//! What a wake needs at once comes first ([`Heat::Hot`]), from each device in the order of its
//! slots, all devices at a time. Beside a guest that runs, its own faults break that order: each
//! costs the way there and the way back. Where that makes the hot part slower by
//! [`HOLD_PAYS`], the guest is held while the hot part comes, and never longer than it may be.
//!
//! ```text
//! held ── hot part is here, or the bound ──> hot ── hot part is here ──> cold ──> awake
//! ```
//!
//! The rest comes beside the guest, at the pace that its faults leave ([`Pace`]).
//!
//! # Invariants
//!
//! 1. Each granule is asked for at most once.
//! 2. A device has no more than its depth outstanding.
//! 3. A guest that was held is let go, exactly once, and before the wake is over.
//! 4. After [`Action::Over`] nothing follows.
//!
//! # Failures
//!
//! - *A granule cannot be read*: it is counted. The guest meets the same error when it needs
//!   the granule; there is nothing that could be done here.
//! - *A device hangs*: what is outstanding there stays so, and nothing more is asked of it. A
//!   guest that is held is let go at the bound.
//! - *The VM ends*, or the daemon stops: the guest is let go, and the wake is over.

use super::granules::Granule;
use super::pace::Pace;
use super::place::Stream;
use super::record::{Heat, WITHIN};
use super::tier::TierSpeed;
use crate::Nanos;

/// A guest is held this long at most if nobody says otherwise: clients of a database wait as
/// long without an error, and the hot part of 1 GiB takes 1 to 2 s from two disks.
pub const HOLD_MOST: Nanos = Nanos::from_millis(2_000);

/// A hold must make the hot part come this many times as fast: below that it is felt more than
/// it helps.
pub const HOLD_PAYS: f64 = 2.0;

/// So many granules of the hot part are asked for at a time, at least: enough for a device to go
/// on without a pause, and few enough that a guest's own fault waits for half a megabyte.
pub const HOT_DEPTH: u32 = 8;

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The wake begins.
    Start,
    /// Whether the guest stands still.
    Held(bool),
    /// The guest runs again.
    LetGo,
    /// A granule is back, or cannot be read; how long that took. Those of one device come in the
    /// order in which they were asked for.
    Fetched {
        /// Of which device.
        device: u8,
        /// How long it took.
        took: Nanos,
        /// Whether it is back.
        ok: bool,
    },
    /// So many pages the guest had to wait for since the last such event.
    Faults(u64),
    /// Whether somebody else has asked a device for something lately.
    Others {
        /// Which device.
        device: u8,
        /// Whether somebody has.
        busy: bool,
    },
    /// Time has passed.
    Tick,
    /// What the guest uses was noted, or could not be seen.
    Noted(bool),
    /// The VM has ended, somebody wants the wake to end, or the daemon stops.
    Stop,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Hold the guest. Answer with [`Event::Held`].
    Hold,
    /// Have the guest go on. Answer with [`Event::LetGo`].
    LetGo,
    /// Bring this granule back, and say when it is here with [`Event::Fetched`].
    Fetch {
        /// From which device.
        device: u8,
        /// Which granule.
        granule: Granule,
    },
    /// Note which granules the guest has used now, as of this moment of [`WITHIN`]: it has run for
    /// so long, without the time for which it waited for its memory.
    /// Answer with [`Event::Noted`].
    Note(usize),
    /// The wake is over.
    Over,
}

/// Where a wake is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The guest is held, or is about to be.
    Held,
    /// The guest runs, and the hot part is not all here.
    Hot,
    /// The rest comes.
    Cold,
    /// All is back.
    Awake,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// How long the guest was held.
    pub held: Nanos,
    /// From the start until the hot part was here, if it came to that.
    pub hot: Option<Nanos>,
    /// From the start until all was here, if it came to that.
    pub all: Option<Nanos>,
    /// So many granules came back.
    pub fetched: u32,
    /// So many could not be read.
    pub failed: u32,
    /// So often it was noted what the guest uses: less than [`WITHIN`] has, if the wake was ended
    /// before.
    pub noted: u32,
}

/// What a wake is made from.
#[derive(Clone, Debug)]
pub struct Setup {
    /// What is out, by device.
    pub streams: Vec<(Stream, TierSpeed)>,
    /// How long the guest may be held; zero for not at all.
    pub hold: Nanos,
    /// How many processors the guest has.
    pub processors: u32,
}

/// The wake of one VM.
#[derive(Debug)]
pub struct Wake {
    flows: Vec<Flow>,
    hold: Nanos,
    began: Nanos,
    /// When the guest was held, and may run again.
    held: Hold,
    /// For how long the guest has run, from when it could; until `at`.
    ran: Option<Nanos>,
    at: Nanos,
    /// The moments of [`WITHIN`] that have come, and whether the last one is being noted.
    noted: usize,
    noting: bool,
    phase: Phase,
    over: bool,
    outcome: Outcome,
}

/// What comes from one device.
#[derive(Debug)]
struct Flow {
    stream: Stream,
    /// The next granule that is asked for.
    next: usize,
    /// So many are asked for and not here.
    outstanding: u32,
    /// So many of the hot ones are still to come.
    hot_left: usize,
    pace: Pace,
}

/// Whether the guest is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    Never,
    Asked,
    Since(Nanos),
    /// It is to go on.
    Ending(Nanos),
    Over,
}

impl Wake {
    /// A wake that has not begun.
    pub fn new(setup: Setup) -> Wake {
        let flow = |(stream, speed): (Stream, TierSpeed)| {
            let hot = |(heat, _): &&(Heat, _)| *heat == Heat::Hot;
            let hot_left = stream.granules.iter().filter(hot).count();
            Flow {
                stream,
                next: 0,
                outstanding: 0,
                hot_left,
                pace: Pace::new(speed, setup.processors),
            }
        };
        Wake {
            flows: setup.streams.into_iter().map(flow).collect(),
            hold: setup.hold,
            began: Nanos(0),
            held: Hold::Never,
            ran: None,
            at: Nanos(0),
            noted: 0,
            noting: false,
            phase: Phase::Hot,
            over: false,
            outcome: Outcome::default(),
        }
    }

    /// Applies `event` at `now`, and adds what is to be done to `out`, in its order. Time
    /// never goes backwards.
    pub fn handle(&mut self, now: Nanos, event: Event, out: &mut Vec<Action>) {
        if self.over {
            return;
        }
        self.run(now);
        match event {
            Event::Start => self.start(now, out),
            Event::Held(ok) => self.held(now, ok),
            Event::LetGo => self.let_go(now),
            Event::Fetched { device, took, ok } => self.fetched(device, took, ok),
            Event::Faults(count) => self.faults(now, count),
            Event::Others { device, busy } => {
                let flow = self.flows.iter_mut().find(|it| it.stream.device == device);
                flow.into_iter().for_each(|flow| flow.pace.others(busy));
            }
            Event::Noted(ok) => {
                self.noting = false;
                self.outcome.noted += u32::from(ok);
            }
            Event::Tick => {}
            Event::Stop => return self.stop(now, out),
        }
        self.advance(now, out);
    }

    /// Where it is.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// What came of it so far.
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// How many granules are still to be asked for, or to come.
    pub fn left(&self) -> u64 {
        self.flows.iter().map(Flow::left).sum()
    }

    fn start(&mut self, now: Nanos, out: &mut Vec<Action>) {
        (self.began, self.at) = (now, now);
        let pays = |flow: &Flow| flow.hot_left > 0 && flow.pace.hold_pays();
        if self.hold > Nanos(0) && self.flows.iter().any(pays) {
            self.held = Hold::Asked;
            out.push(Action::Hold);
        } else {
            self.ran = Some(Nanos(0));
        }
    }

    /// The guest is held, or is not. The hot part comes meanwhile either way.
    fn held(&mut self, now: Nanos, ok: bool) {
        match (self.held, ok) {
            (Hold::Asked, true) => self.held = Hold::Since(now),
            (Hold::Asked, false) => {
                self.held = Hold::Over;
                self.ran = Some(Nanos(0));
            }
            _ => {}
        }
    }

    fn let_go(&mut self, now: Nanos) {
        if let Hold::Ending(since) = self.held {
            self.outcome.held = now.since(since);
            self.held = Hold::Over;
            self.ran = Some(Nanos(0));
        }
    }

    fn fetched(&mut self, device: u8, took: Nanos, ok: bool) {
        let beside = !matches!(self.held, Hold::Since(_) | Hold::Asked);
        let Some(flow) = self.flows.iter_mut().find(|it| it.stream.device == device)
        else {
            return;
        };
        flow.outstanding -= 1;
        flow.hot_left = flow.hot_left.saturating_sub(1);
        if beside {
            flow.pace.took(took);
        }
        match ok {
            true => self.outcome.fetched += 1,
            false => self.outcome.failed += 1,
        }
    }

    /// Time has passed for the guest. One that waits for its memory uses little: if that time
    /// counted, the next wake would go by what it could get, and not by what it needs.
    fn run(&mut self, now: Nanos) {
        let part = match self.left() {
            0 => 1.0,
            _ => {
                let waits = |flow: &Flow| 1.0 - flow.pace.runs();
                let some = self.flows.iter().filter(|flow| flow.left() > 0);
                (1.0 - some.map(waits).sum::<f64>()).max(0.0)
            }
        };
        let passed = now.since(std::mem::replace(&mut self.at, now));
        if let Some(ran) = &mut self.ran {
            *ran = ran.plus(Nanos((passed.0 as f64 * part) as u64));
        }
    }

    /// A guest that is held has no faults, which says nothing of it.
    fn faults(&mut self, now: Nanos, count: u64) {
        if self.ran.is_some() {
            // Nobody says at which device they were: where more is out, more are.
            let all = self.left() as f64;
            for flow in &mut self.flows {
                let part = if all > 0.0 { flow.left() as f64 / all } else { 0.0 };
                flow.pace.faults(now, count as f64 * part);
            }
        }
    }

    /// Does what is next.
    fn advance(&mut self, now: Nanos, out: &mut Vec<Action>) {
        let hot_is_here = self.flows.iter().all(|flow| flow.hot_left == 0);
        if hot_is_here && self.outcome.hot.is_none() {
            self.outcome.hot = Some(now.since(self.began));
        }
        if let Hold::Since(since) = self.held
            && (hot_is_here || now.since(since) >= self.hold)
        {
            self.held = Hold::Ending(since);
            out.push(Action::LetGo);
        }
        let held = matches!(self.held, Hold::Asked | Hold::Since(_) | Hold::Ending(_));
        for flow in &mut self.flows {
            flow.fetch(held, hot_is_here, out);
        }
        let all_is_here = self.left() == 0;
        if all_is_here && self.outcome.all.is_none() {
            self.outcome.all = Some(now.since(self.began));
        }
        self.phase = match (held, hot_is_here, all_is_here) {
            (true, _, _) => Phase::Held,
            (false, false, _) => Phase::Hot,
            (false, true, false) => Phase::Cold,
            (false, true, true) => Phase::Awake,
        };
        self.note(out);
        if self.phase == Phase::Awake && self.noted == WITHIN.len() && !self.noting {
            self.end(out);
        }
    }

    /// Has noted what the guest uses, if it is time to.
    fn note(&mut self, out: &mut Vec<Action>) {
        let (Some(ran), false) = (self.ran, self.noting) else { return };
        if WITHIN.get(self.noted).is_some_and(|within| ran >= *within) {
            out.push(Action::Note(self.noted));
            self.noted += 1;
            self.noting = true;
        }
    }

    /// Lets the guest go, and ends.
    fn stop(&mut self, now: Nanos, out: &mut Vec<Action>) {
        match self.held {
            // It may be held by now: whoever lets a guest go that runs does no harm.
            Hold::Asked | Hold::Since(_) => {
                self.let_go_at_the_end(now);
                out.push(Action::LetGo);
            }
            Hold::Ending(_) => self.let_go_at_the_end(now),
            Hold::Never | Hold::Over => {}
        }
        self.end(out);
    }

    fn let_go_at_the_end(&mut self, now: Nanos) {
        if let Hold::Since(since) | Hold::Ending(since) = self.held {
            self.outcome.held = now.since(since);
        }
        self.held = Hold::Over;
    }

    fn end(&mut self, out: &mut Vec<Action>) {
        self.over = true;
        out.push(Action::Over);
    }
}

impl Flow {
    /// How many granules are still to be asked for, or to come.
    fn left(&self) -> u64 {
        (self.stream.granules.len() - self.next) as u64 + u64::from(self.outstanding)
    }

    /// Asks for what is next, as far as the depth allows. While the guest is held, only the hot
    /// part comes: what comes beyond it would be held for.
    fn fetch(&mut self, held: bool, all_hot_is_here: bool, out: &mut Vec<Action>) {
        while let Some((heat, one)) = self.stream.granules.get(self.next) {
            let depth = match heat {
                Heat::Hot if held => HOT_DEPTH,
                // A guest that lacks it stands still, or soon does.
                Heat::Hot => self.pace.depth().max(HOT_DEPTH),
                _ if held && !all_hot_is_here => return,
                _ => self.pace.depth(),
            };
            if self.outstanding >= depth {
                return;
            }
            self.next += 1;
            self.outstanding += 1;
            out.push(Action::Fetch { device: self.stream.device, granule: one.granule });
        }
    }
}
