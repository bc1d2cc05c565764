//! The end comes, or it is said that it cannot.
//!
//! A disk with a destination of a given speed, in virtual time: copies go one after the
//! other, and so do mirrored writes, beside them.

use std::collections::BTreeMap;

use sterna_core::mirror::{
    Action, Allowance, Config, Control, Counted, Event, Job, JobOutcome, MemoryMap,
    Mirror, Notice, PATIENCE, PATIENCE_RAISE_MAX, PauseReason, Phase, Request, RequestId,
    RequestKind, Stored,
};
use sterna_core::{ByteRange, Nanos};

const MIB: u64 = 1 << 20;
const REGION: u64 = 64 << 10;

#[derive(Debug)]
enum Due {
    Copied(Job),
    Written(RequestId),
    /// The turn of the guest's next write.
    Guest,
}

struct World {
    mirror: Mirror<MemoryMap>,
    now: Nanos,
    size: u64,
    /// Bytes per second that copies go with.
    speed: u64,
    /// How long the destination takes for a guest's write.
    write_takes: Nanos,
    due: BTreeMap<(Nanos, u64), Due>,
    free: Nanos,
    made: u64,
    raised: bool,
    ends: bool,
    /// The guest's clients each write again when they are answered.
    clients: bool,
}

impl World {
    fn new(size: u64, speed: u64) -> World {
        // The first flush of the destination is that of the switch-over.
        let flush_every = Nanos::from_secs(24 * 3600);
        let config = Config { scan: false, flush_every, ..Config::new(size) };
        let map = MemoryMap::new(config.regions(), Stored::Absent);
        let mut world = World {
            mirror: Mirror::new(Nanos(0), config, Counted::new(map)),
            now: Nanos(0),
            size,
            speed,
            write_takes: Nanos(0),
            due: BTreeMap::new(),
            free: Nanos(0),
            made: 0,
            raised: false,
            ends: false,
            clients: false,
        };
        world.tell(Event::Tick);
        world
    }

    fn at(&mut self, when: Nanos, due: Due) {
        self.made += 1;
        self.due.insert((when, self.made), due);
    }

    fn tell(&mut self, event: Event) {
        let mut events = vec![event];
        while let Some(event) = events.pop() {
            let mut asked = Vec::new();
            self.mirror.handle(self.now, event, &mut asked);
            for action in asked {
                match action {
                    Action::Start(job) => {
                        let takes = job.range.len as f64 / self.speed as f64 * 1e9;
                        self.free = self.free.max(self.now).plus(Nanos(takes as u64));
                        self.at(self.free, Due::Copied(job));
                    }
                    Action::Source(id) => events.push(Event::SourceDone { id, ok: true }),
                    Action::Destination(id) => {
                        self.at(self.now.plus(self.write_takes), Due::Written(id));
                    }
                    Action::Answer(_) if self.clients => {
                        self.at(self.now.plus(Nanos::from_millis(1)), Due::Guest);
                    }
                    Action::FlushSource => self.ends = true,
                    Action::Notice(Notice::PatienceRaised(_)) => self.raised = true,
                    _ => {}
                }
            }
        }
    }

    fn write(&mut self, offset: u64) {
        self.made += 1;
        let range = ByteRange::new(offset, 4096);
        let id = RequestId(self.made);
        self.tell(Event::Arrived(Request { id, kind: RequestKind::Write, range }));
    }

    /// On until something has come true, for so long at most.
    fn run(&mut self, span: Nanos, until: impl Fn(&World) -> bool) {
        let end = self.now.plus(span);
        while self.now < end && !until(self) {
            let due = self.due.keys().next().map(|(at, _)| *at);
            let wake = self.mirror.deadline().map(|at| at.max(self.now.plus(Nanos(1))));
            let next = [due, wake, Some(end)].into_iter().flatten().min();
            self.now = next.expect("there is an end").max(self.now);
            if due != Some(self.now) {
                self.tell(Event::Tick);
                continue;
            }
            match self.due.pop_first().expect("something is due").1 {
                Due::Copied(job) => {
                    let outcome = JobOutcome::Copied { written: job.range.len };
                    self.tell(Event::JobDone { job: job.id, outcome });
                }
                Due::Written(id) => {
                    self.tell(Event::DestinationDone { id, result: Ok(()) });
                }
                Due::Guest => {
                    // Anywhere, as a multiplication scatters.
                    let at = self.made.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    self.write(at % (self.size / REGION) * REGION);
                }
            }
        }
    }

    /// The first pass has gone by, but for the last tenth; then the migration stood
    /// still while the guest wrote all over the first `behind` bytes.
    fn written_in_a_pause(size: u64, speed: u64, behind: u64) -> World {
        let mut world = World::new(size, speed);
        world.run(Nanos::from_secs(3600), |world| {
            world.mirror.progress().synced.0 >= size / 10 * 9
        });
        world.tell(Event::Control(Control::Pause));
        for at in 0..behind / REGION {
            world.write(at * REGION);
        }
        world
    }

    fn resume_at(&mut self, rate: Option<u64>) {
        self.tell(Event::Control(Control::SetRate(rate)));
        self.tell(Event::Control(Control::Resume));
    }

    fn is_paused(&self) -> bool {
        matches!(self.mirror.progress().phase, Phase::Paused(_))
    }
}

#[test]
fn a_rest_that_shrinks_slowly_ends_and_nobody_waits_longer_for_it() {
    for rate in [None, Some(20 * MIB)] {
        let mut world = World::written_in_a_pause(4096 * MIB, 100 * MIB, 2048 * MIB);
        world.resume_at(rate);
        world.run(Nanos::from_secs(600), |world| world.ends);
        assert!(world.ends, "at {rate:?}: {:?}", world.mirror.progress());
        assert!(!world.raised, "at {rate:?}: nothing is wrong");
    }
}

#[test]
fn a_rest_whose_copies_take_longer_than_a_look_is_no_rest_that_stays() {
    // A chunk takes two seconds.
    let mut world = World::written_in_a_pause(256 * MIB, 256 << 10, 16 * MIB);
    world.resume_at(None);
    world.run(Nanos::from_secs(600), |world| world.ends);
    assert!(world.ends && !world.raised, "{:?}", world.mirror.progress());
}

#[test]
fn a_schedule_that_closes_with_something_behind_leaves_it_for_later() {
    let mut world = World::written_in_a_pause(1024 * MIB, 500 * MIB, 512 * MIB);
    world.resume_at(None);
    // The rest of the first pass, and a little more.
    world.run(Nanos::from_millis(250), |world| world.ends);
    let closed = Allowance { busy: Some(0), idle: Some(0), ..Allowance::default() };
    world.tell(Event::Control(Control::Allow(closed)));
    world.run(Nanos::from_secs(8 * 3600), |world| world.is_paused());
    assert!(!world.is_paused() && !world.ends, "{:?}", world.mirror.progress());
    world.tell(Event::Control(Control::Allow(Allowance::default())));
    world.run(Nanos::from_secs(60), |world| world.ends);
    assert!(world.ends, "it is open again");
}

#[test]
fn steady_writes_beyond_patience_are_slowed_until_the_move_ends() {
    // Sixteen clients that write all over the disk; the destination takes longer for
    // a write than patience is, but not than it may become.
    let mut world = World::new(256 * MIB, 4 * MIB);
    world.write_takes = Nanos::from_millis(50);
    world.clients = true;
    for _ in 0..16 {
        world.at(Nanos(1), Due::Guest);
    }
    world.run(Nanos::from_secs(3600), |world| world.ends || world.is_paused());
    assert!(world.ends, "{:?}", world.mirror.progress());
    assert!(world.raised);
}

#[test]
fn a_destination_that_no_patience_makes_quick_enough_is_said_to_be_too_slow() {
    let mut world = World::new(256 * MIB, 4 * MIB);
    world.write_takes = Nanos::from_millis(500);
    world.clients = true;
    for _ in 0..16 {
        world.at(Nanos(1), Due::Guest);
    }
    world.run(Nanos::from_secs(600), World::is_paused);
    let Phase::Paused(reason) = world.mirror.progress().phase else {
        panic!("{:?}", world.mirror.progress())
    };
    let bound = PATIENCE.plus(PATIENCE_RAISE_MAX);
    assert!(
        matches!(reason, PauseReason::NotConverging { patience, .. } if patience == bound),
        "{reason}"
    );
}
