//! The world around the mover: time, what is under way, and what must hold.
//!
//! In each step either something goes wrong, or the guest writes, or QEMU's job goes on,
//! or what the mover has asked for goes on. All of it is drawn from one seeded generator,
//! so a seed is a history. After the chaos comes calm, in which every move must end.

use std::collections::VecDeque;
use std::mem;

use sterna_core::Nanos;
use sterna_core::mover::{
    Action, At, Copy, Doubt, Event, Job, Mover, MoverStep, Owner, Place, Rest,
    Setup as Made, Verdict,
};

use crate::driver::Operation;
use crate::images::{Images, Inode, Role, SOURCE};
use crate::machine::{Qemu, at};
use crate::random::Random;
use crate::setup::{Mutation, Setup};
use crate::store::Record;

/// How long a move may take to end once the world is calm.
const END: Nanos = Nanos::from_millis(300_000);

/// What was seen of a world.
pub(crate) struct Ran {
    pub(crate) steps: u64,
    /// How often machines ended or started after somebody else had QEMU switch over.
    pub(crate) deaths_since: u64,
}

/// One move, from its beginning to its end.
pub(crate) struct World {
    pub(crate) setup: Setup,
    pub(crate) random: Random,
    pub(crate) now: Nanos,
    /// When the move was asked for.
    pub(crate) asked_for: Nanos,
    /// A daemon has begun with it.
    was_begun: bool,
    pub(crate) mover: Option<Mover>,
    pub(crate) operation: Option<Operation>,
    pub(crate) record: Record,
    pub(crate) images: Images,
    pub(crate) qemu: Option<Qemu>,
    /// What the machine was told and has not done yet, in its order.
    pub(crate) late: VecDeque<Action>,
    /// libvirt does not answer.
    pub(crate) away: bool,
    /// The image that libvirt starts the machine with.
    pub(crate) kept: Inode,
    /// The file that the driver may remove.
    pub(crate) known: Option<Inode>,
    /// The last value that the guest was told is written, block by block.
    written: Vec<u64>,
    next_value: u64,
    pub(crate) calm: bool,
    pub(crate) resized: bool,
    /// Something has happened for which QEMU cannot tell where the disk is.
    pub(crate) excused: bool,
    /// The machine was started with an image that may lack what the other one has.
    pub(crate) split: bool,
    /// Somebody else has had QEMU switch over, and the mover does not know it yet: nothing
    /// goes wrong before it was looked at.
    pub(crate) completed_by_hand: bool,
    /// Somebody else has done so at some time.
    pub(crate) was_by_hand: bool,
    /// How often the machine has ended or started after that.
    pub(crate) deaths_since: u64,
    /// Somebody wanted it to be given up in time.
    pub(crate) must_stay: bool,
    pub(crate) was_killed: bool,
    /// That was after people had completed the copy by hand.
    pub(crate) was_killed_since: bool,
    /// The machine was started, and has not answered since: nobody can know with what.
    pub(crate) unseen_start: bool,
    /// When the machine ended last.
    pub(crate) died_at: Nanos,
    pub(crate) unplugged_at: Option<Nanos>,
    pub(crate) steps: u64,
}

impl World {
    pub(crate) fn new(setup: Setup, mut random: Random) -> Self {
        let now = Nanos(1_000_000 + random.below(1_000_000));
        let mut images = Images::new(setup.blocks);
        if setup.occupied && setup.place == Place::File {
            // Somebody may be quicker than the mover, but no daemon was killed then.
            let is_new = setup.kills == 0 && setup.stops == 0 && random.one_in(2);
            images.replace_destination(if is_new { now } else { Nanos(0) });
        }
        let mut world = World {
            now,
            asked_for: now,
            was_begun: false,
            mover: None,
            operation: None,
            record: Record::new(),
            qemu: Some(Qemu::new(Some(SOURCE))),
            late: VecDeque::new(),
            away: false,
            kept: SOURCE,
            known: None,
            written: images.all[SOURCE].blocks.clone(),
            images,
            next_value: 1_000,
            calm: false,
            resized: false,
            excused: false,
            split: false,
            completed_by_hand: false,
            was_by_hand: false,
            deaths_since: 0,
            must_stay: false,
            was_killed: false,
            was_killed_since: false,
            unseen_start: false,
            died_at: Nanos(0),
            unplugged_at: None,
            steps: 0,
            setup,
            random,
        };
        world.start();
        world
    }

    /// A daemon begins, with what is durable.
    pub(crate) fn start(&mut self) {
        self.known = match self.setup.mutation {
            Some(Mutation::KnowsByName) if self.was_begun => self.images.destination,
            _ => self.record.file,
        };
        let mut mover = Mover::new(Made {
            owner: self.setup.owner,
            place: self.setup.place,
            step: self.record.step,
            wishes: self.record.wishes,
            copy: Copy::Unknown,
            resumed: std::mem::replace(&mut self.was_begun, true),
        });
        let mut actions = Vec::new();
        mover.handle(self.now, Event::Start, &mut actions);
        self.mover = Some(mover);
        self.carry_out(actions);
    }

    /// Runs chaos, then calm until the move has ended.
    pub(crate) fn run(mut self) -> Ran {
        while self.steps < self.setup.chaos_steps && !self.has_ended() {
            self.step();
        }
        self.calm = true;
        self.calm_down();
        let end = self.now.plus(END);
        while !self.has_ended() {
            assert!(self.now < end, "no end: {:?} {:?}", self.mover, self.record);
            self.step();
        }
        self.check_end();
        Ran { steps: self.steps, deaths_since: self.deaths_since }
    }

    fn has_ended(&self) -> bool {
        self.record.verdict.is_some() && !self.record.untidy && self.mover.is_none()
    }

    fn step(&mut self) {
        self.steps += 1;
        self.now = self.now.plus(Nanos(self.random.below(20_000_000)));
        if !self.calm && self.trouble() {
            return;
        }
        if self.mover.is_none() && !self.has_ended() && self.random.one_in(5) {
            self.start();
        }
        let writes = if self.calm { 20 } else { self.setup.writes };
        if self.random.one_in(writes) {
            self.guest_writes();
        }
        if self.random.one_in(2) {
            self.job_goes_on();
        }
        if self.random.one_in(2) {
            self.operation_goes_on();
        }
    }

    fn guest_writes(&mut self) {
        let block = self.random.below(self.setup.blocks as u64) as usize;
        let value = self.next_value;
        let Some(qemu) = &mut self.qemu else { return };
        if matches!(qemu.at(&self.images), At::Source | At::Destination) {
            self.next_value += 1;
            qemu.write(&mut self.images, block, value);
            self.written[block] = value;
        }
    }

    fn job_goes_on(&mut self) {
        let Some(qemu) = &mut self.qemu else { return };
        let had = qemu.device;
        if !qemu.go_on(&mut self.images) {
            return;
        }
        let to = qemu.mirror.as_ref().expect("it has switched over").to;
        if !self.completed_by_hand {
            assert_eq!(self.record.step, MoverStep::Switching, "that was to be durable");
            let role = self.images.all[to].role;
            assert!(self.setup.place == Place::File || role == Role::Active, "sealed");
        }
        if had.is_some() && !self.away {
            self.kept = to;
        }
    }

    /// Tells the mover, and has done what it asks for.
    pub(crate) fn tell(&mut self, event: Event) {
        let Some(mover) = &mut self.mover else { return };
        let mut actions = Vec::new();
        if self.setup.told {
            eprintln!("{} {event:?} | {:?}", self.now, self.qemu);
        }
        self.completed_by_hand &= event != Event::Found(Ok(At::Destination));
        mover.handle(self.now, event, &mut actions);
        self.carry_out(actions);
    }

    fn carry_out(&mut self, actions: Vec<Action>) {
        for action in actions {
            if self.setup.told {
                eprintln!("    {action:?}");
            }
            match action {
                Action::Know => self.known = self.known.or(self.images.destination),
                Action::Tell(_) => {}
                Action::Over => {
                    assert!(self.operation.is_none(), "over, and something is asked");
                    self.mover = None;
                }
                action => {
                    assert!(self.operation.is_none(), "two questions at a time");
                    let operation = self.begin(action);
                    self.operation = Some(operation);
                }
            }
        }
    }

    /// Where the guest is, or was when it ended.
    pub(crate) fn truth(&self) -> At {
        match &self.qemu {
            Some(qemu) => qemu.at(&self.images),
            None => at(Some(self.kept), &self.images),
        }
    }

    /// Whether all that the guest was told is written is there.
    fn has_all(&self, image: Inode) -> bool {
        self.images.all[image].blocks == self.written
    }

    /// A verdict becomes durable: is it true?
    pub(crate) fn check_verdict(&self, verdict: &Verdict) {
        match verdict {
            Verdict::Moved { .. } => {
                assert!(
                    !self.must_stay || self.was_by_hand || self.split,
                    "moved, and it was cancelled in time"
                );
                let copy = self.copy().expect("moved, and there is no copy");
                assert!(
                    self.split || self.has_all(copy),
                    "moved, and writes are missing"
                );
                let role = self.images.all[copy].role;
                let says = self.setup.place == Place::File || role != Role::Partial;
                assert!(says, "moved, and it says partial");
            }
            Verdict::Stays { rest, .. } => {
                let may_differ = self.split || self.is_said_to_be_in_doubt(rest);
                assert!(
                    may_differ || self.has_all(SOURCE),
                    "stays, and writes are missing"
                );
                let is_there = self.truth() == At::Destination;
                assert!(may_differ || !is_there, "stays, and it is at the destination");
                let is_there = self.images.destination.is_some();
                let is_excused = self.excused || self.was_killed || !is_there;
                assert!(*rest != Rest::Kept || is_excused, "a copy is left for nothing");
            }
            Verdict::Unclear(doubt) => {
                let was_replaced = *doubt == Doubt::NotTheCopy;
                assert!(
                    self.excused || was_replaced,
                    "unclear, and QEMU knows: {doubt:?}"
                );
            }
        }
        if let Some(at) = self.unplugged_at.filter(|_| !self.setup.plugs_again) {
            let soon = self.now.since(at) < Nanos::from_millis(5_000);
            assert!(soon, "it goes on without a disk");
        }
    }

    /// Whether people are told that the destination may have the last writes, and nobody
    /// can know better: the daemon was killed that had seen the disk there, before that was
    /// durable, and the next one does not reach QEMU.
    fn is_said_to_be_in_doubt(&self, rest: &Rest) -> bool {
        *rest == Rest::Kept && self.was_killed_since
    }

    /// The image that was made for the copy, whatever has its name now.
    pub(crate) fn copy(&self) -> Option<Inode> {
        let all = self.images.all.iter().enumerate().skip(2);
        all.filter(|(_, image)| !image.foreign && !image.removed)
            .map(|(inode, _)| inode)
            .next_back()
    }

    /// A guest that runs on the destination is known to, and the next daemon serves it.
    fn check_running(&self, verdict: &Verdict) {
        let is_unclear = matches!(verdict, Verdict::Unclear(_));
        let kept = self.images.destination.map(|at| self.images.all[at].role);
        assert!(!is_unclear || kept != Some(Role::Partial), "it may be the disk");
        let device = self.qemu.as_ref().and_then(|qemu| qemu.device);
        let is_it = device.is_some() && device == self.images.destination;
        if !is_it || self.unseen_start {
            return;
        }
        let role = device.map(|device| self.images.all[device].role);
        assert!(role != Some(Role::Partial), "the guest runs on a part: {verdict:?}");
        let said = matches!(verdict, Verdict::Moved { .. }) || self.record.unclear;
        assert!(said, "the guest runs on the destination, and nobody says so");
    }

    fn check_end(&self) {
        for (block, value) in self.written.iter().enumerate() {
            assert!(self.images.is_kept(block, *value), "block {block} is lost");
        }
        let verdict = self.record.verdict.as_ref().expect("it has ended");
        self.check_running(verdict);
        let quiet = !self.excused && !self.was_killed;
        if self.setup.is_quiet() {
            assert!(matches!(verdict, Verdict::Moved { left: None, .. }), "{verdict:?}");
        }
        if let Some(qemu) = &self.qemu {
            let is_left = match verdict {
                // It may be unplugged afterwards.
                Verdict::Moved { unplugged: false, .. }
                    if qemu.at(&self.images) != At::Destination =>
                {
                    false
                }
                Verdict::Moved { unplugged: true, .. } if self.setup.plugs_again => false,
                Verdict::Moved { left: None, .. } | Verdict::Stays { .. } => {
                    let is_used = qemu.node == qemu.device;
                    qemu.mirror.is_some() || qemu.node.is_some() && !is_used
                }
                _ => false,
            };
            assert!(!is_left, "left in QEMU: {qemu:?} {verdict:?}");
        }
        if matches!(verdict, Verdict::Stays { .. }) && quiet && !self.record.unclear {
            let left = self.images.destination;
            let foreign = left.is_none_or(|left| self.images.all[left].foreign);
            assert!(foreign, "left in the datastore: {verdict:?}");
        }
    }

    /// The daemon is killed: what is under way is done, or not.
    pub(crate) fn kill(&mut self) {
        if self.mover.is_none() {
            return;
        }
        self.was_killed = true;
        self.was_killed_since |= self.was_by_hand;
        self.mover = None;
        if let Some(operation) = mem::take(&mut self.operation)
            && self.random.one_in(2)
        {
            self.land(operation);
        }
    }

    /// What libvirt says of a machine that is off.
    pub(crate) fn look_at_kept(&self) -> Job {
        match at(Some(self.kept), &self.images) {
            At::Destination => Job::Ended(sterna_core::mover::Ended::Clean),
            _ => Job::Unknown,
        }
    }

    pub(crate) fn is_libvirts(&self) -> bool {
        self.setup.owner == Owner::Libvirt
    }
}
