//! The daemon's mirror, and its guard if there is one, told what happens on the stage,
//! until the switch-over.

use sterna_core::array::Kind;
use sterna_core::guard::{Guard, Observation, Remaining};
use sterna_core::mirror::{Config, JobId, Progress};
use sterna_core::{ByteRange, IdMap, Nanos};

use super::stage::{Answered, Stage};
use crate::mover::{Mover, Order, Reply};

/// A guard looks so often, as the daemon's.
const WINDOW: Nanos = Nanos::from_millis(100);

pub(super) struct GuardedMover {
    mover: Mover,
    guard: Option<Guard>,
    last: Progress,
    /// What the application waits for, by its name for it.
    asked: IdMap<u64, (Kind, ByteRange)>,
    jobs: IdMap<u64, ByteRange>,
    orders: Vec<Order>,
    ended: bool,
}

impl GuardedMover {
    pub(super) fn new(size: u64, guard: Option<Guard>) -> Self {
        let config = Config::new(size);
        let config = match guard {
            Some(_) => Config { allowance: Guard::FIRST, ..config },
            None => config,
        };
        let mover = Mover::new(Nanos(0), config);
        GuardedMover {
            last: mover.progress(),
            mover,
            guard,
            asked: IdMap::default(),
            jobs: IdMap::default(),
            orders: Vec::new(),
            ended: false,
        }
    }

    /// Moves it; gives its guard back, if it has one.
    pub(super) fn run(mut self, stage: &mut Stage, until: Nanos) -> Option<Guard> {
        let mut window = WINDOW;
        while !self.ended && stage.now() < until {
            while let Some((name, kind, range)) = stage.next_request() {
                self.arrive(stage, name, kind, range);
            }
            self.mover.tick(stage.now(), &mut self.orders);
            self.obey(stage);
            let deadline = self.mover.deadline().unwrap_or(window);
            for answered in stage.advance(deadline.min(window)) {
                self.hear(stage, answered);
            }
            if stage.now() >= window {
                window = window.plus(WINDOW);
                self.look(stage);
            }
        }
        self.guard
    }

    /// The application asks for something.
    fn arrive(&mut self, stage: &mut Stage, name: u64, kind: Kind, range: ByteRange) {
        self.asked.insert(name, (kind, range));
        let place = (range.offset, range.len);
        self.mover.arrive(stage.now(), name, kind, place, &mut self.orders);
        self.obey(stage);
    }

    fn hear(&mut self, stage: &mut Stage, answered: Answered) {
        let (now, orders) = (stage.now(), &mut self.orders);
        match answered {
            Answered::Guest(name) => self.mover.source_done(now, name, orders),
            Answered::Twin(name) => self.mover.destination_done(now, name, orders),
            Answered::Read(number) => {
                self.mover.read(now, JobId(number), orders);
                stage.write(number, self.jobs[&number]);
            }
            Answered::Write(number) => {
                let written = self.jobs.remove(&number).map_or(0, |range| range.len);
                self.mover.written(now, JobId(number), written, orders);
            }
        }
        self.obey(stage);
    }

    /// Does what the mirror says.
    fn obey(&mut self, stage: &mut Stage) {
        while !self.orders.is_empty() {
            for order in std::mem::take(&mut self.orders) {
                self.carry_out(stage, order);
            }
        }
    }

    fn carry_out(&mut self, stage: &mut Stage, order: Order) {
        match order {
            Order::Source(name) => {
                let (kind, range) = self.asked[&name];
                stage.ask(name, kind, range);
            }
            Order::Destination(name) => stage.write_twin(name, self.asked[&name].1),
            Order::Answer(name) => {
                self.asked.remove(&name);
                stage.answer(name);
            }
            Order::Read(job, range) => {
                self.jobs.insert(job.0, range);
                stage.read(job.0, range);
            }
            // The destination has everything. How long the guest is held then is not
            // the guard's doing.
            Order::Later(Reply::Prepared) => self.ended = true,
            Order::Later(reply) => self.mover.reply(stage.now(), reply, &mut self.orders),
            Order::Held(_) | Order::Ended => {}
        }
    }

    /// The guard looks at a window.
    fn look(&mut self, stage: &mut Stage) {
        let now = self.mover.progress();
        let last = std::mem::replace(&mut self.last, now);
        let guest = stage.window(WINDOW);
        let Some(guard) = &mut self.guard else { return };
        let seen = Observation {
            guest: &guest,
            copied: now.passed.0 - last.passed.0,
            idle: now.guest_idle.since(last.guest_idle),
            mirror_wait: now.mirror_wait.since(last.mirror_wait),
            mirrored_writes: now.mirrored_writes - last.mirrored_writes,
            idle_processors: Some(1.0),
        };
        let allowance = guard.step(&seen, Remaining::default());
        self.mover.allow(stage.now(), allowance, &mut self.orders);
        self.obey(stage);
    }
}
