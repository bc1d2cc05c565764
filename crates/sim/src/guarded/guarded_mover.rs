//! The daemon's mirror and guard, told what happens on the stage, until the switch-over.

use std::collections::HashMap;

use sterna_core::guard::{Aim, Guard, Observation, Way};
use sterna_core::mirror::{
    Action, Config, Control, Counted, Event, JobId, JobKind, MemoryMap, Mirror, Outcome,
    Progress, Request, RequestId, RequestKind, Stored,
};
use sterna_core::{ByteRange, Nanos};

use super::stage::{Answered, Stage};

/// A guard looks so often, as the daemon's.
const WINDOW: Nanos = Nanos::from_millis(100);

pub(super) struct GuardedMover {
    mirror: Mirror<MemoryMap>,
    guard: Guard,
    last: Progress,
    /// What the application asked for, by the mirror's name for it.
    reads: HashMap<u64, ByteRange>,
    next: u64,
    jobs: HashMap<u64, ByteRange>,
    events: Vec<Event>,
    ended: bool,
}

impl GuardedMover {
    pub(super) fn new(size: u64, aim: Aim) -> Self {
        let allowance = Guard::FIRST;
        let config = Config { allowance, reads_zero: true, ..Config::new(size) };
        let map = MemoryMap::new(config.regions(), Stored::Absent);
        let mirror = Mirror::new(Nanos(0), config, Counted::new(map));
        GuardedMover {
            last: mirror.progress(),
            mirror,
            guard: Guard::new(aim),
            reads: HashMap::new(),
            next: 0,
            jobs: HashMap::new(),
            events: Vec::new(),
            ended: false,
        }
    }

    pub(super) fn run(mut self, stage: &mut Stage, until: Nanos) {
        let mut window = WINDOW;
        while !self.ended && stage.now() < until {
            while let Some(range) = stage.next_read() {
                self.arrive(range);
            }
            self.tell(stage);
            let deadline = self.mirror.deadline().unwrap_or(window);
            for answered in stage.advance(deadline.min(window)) {
                self.hear(stage, answered);
            }
            self.events.push(Event::Tick);
            if stage.now() >= window {
                window = window.plus(WINDOW);
                self.look(stage);
            }
        }
    }

    /// The application asks for something.
    fn arrive(&mut self, range: ByteRange) {
        let id = self.next;
        self.next += 1;
        self.reads.insert(id, range);
        let id = RequestId(id);
        self.events.push(Event::Arrived(Request { id, kind: RequestKind::Read, range }));
    }

    fn hear(&mut self, stage: &mut Stage, answered: Answered) {
        match answered {
            Answered::Guest(id) => {
                self.events.push(Event::SourceDone { id: RequestId(id), ok: true });
            }
            Answered::Read(number) => {
                let job = JobId(number);
                self.events.push(Event::JobOnSource { job, is: false });
                stage.write(number, self.jobs[&number]);
            }
            Answered::Write(number) => {
                let written = self.jobs.remove(&number).map_or(0, |range| range.len);
                let outcome = Outcome::Copied { written };
                self.events.push(Event::JobDone { job: JobId(number), outcome });
            }
        }
    }

    /// Tells the mirror everything, and does what it says.
    fn tell(&mut self, stage: &mut Stage) {
        let mut actions = Vec::new();
        while let Some(event) = (!self.events.is_empty()).then(|| self.events.remove(0)) {
            self.mirror.handle(stage.now(), event, &mut actions);
            for action in actions.drain(..) {
                self.act(stage, &action);
            }
        }
    }

    fn act(&mut self, stage: &mut Stage, action: &Action) {
        match *action {
            Action::Source(id) => {
                if let Some(range) = self.reads.remove(&id.0) {
                    stage.ask(id.0, range);
                }
            }
            Action::Start(job) if job.kind == JobKind::Scan => {
                let outcome = Outcome::Scanned(Vec::new());
                self.events.push(Event::JobDone { job: job.id, outcome });
            }
            Action::Start(job) => {
                self.jobs.insert(job.id.0, job.range);
                stage.read(job.id.0, job.range);
            }
            Action::FlushDestination => self.events.push(Event::Flushed(Ok(()))),
            // The destination has everything. How long the guest is held then is not
            // the guard's doing.
            Action::Prepare => self.ended = true,
            _ => {}
        }
    }

    /// The guard looks at a window.
    fn look(&mut self, stage: &mut Stage) {
        let now = self.mirror.progress();
        let last = std::mem::replace(&mut self.last, now);
        let guest = stage.window(WINDOW);
        let seen = Observation {
            guest: &guest,
            copied: now.passed.0 - last.passed.0,
            gone: now.guest_gone.since(last.guest_gone),
            mirrored: now.mirror_wait.since(last.mirror_wait),
        };
        let allowance = self.guard.step(&seen, Way::default());
        self.events.push(Event::Control(Control::Allow(allowance)));
    }
}
