//! The world around a transfer: time, what is under way, and what must hold.
//!
//! In each step either something goes wrong, or the guest writes, or it is sent a little
//! further, or what the machine has asked for goes on. All of it is drawn from one seeded
//! generator, so a seed is a history. After the chaos comes calm, in which every transfer
//! must end.

use std::mem;

use sterna_core::Nanos;
use sterna_core::transfer::{
    Action, End, Event, Loss, Rest, Setup as Made, Step, Transfer, Verdict,
};

use crate::driver::Operation;
use crate::qemu::{Incoming, Qemu, Run, Sending};
use crate::random::Random;
use crate::record::Record;
use crate::setup::{Mutation, Setup};

/// How long a transfer may take to end once the world is calm.
const END: Nanos = Nanos::from_millis(300_000);

/// One transfer, from its beginning to its end.
pub(crate) struct World {
    pub(crate) setup: Setup,
    pub(crate) random: Random,
    pub(crate) now: Nanos,
    pub(crate) machine: Option<Transfer>,
    pub(crate) operation: Option<Operation>,
    pub(crate) record: Record,
    pub(crate) source: Option<Qemu>,
    pub(crate) receiver: Option<Qemu>,
    /// The process that was told of the guest, as far as this daemon knows.
    pub(crate) known: Option<u64>,
    /// How new the newest memory of the guest is.
    pub(crate) latest: u64,
    processes: u64,
    pub(crate) calm: bool,
    /// The receiver was had to run the guest, on our word or by somebody.
    pub(crate) ran_there: bool,
    /// Somebody has had the receiver run it.
    pub(crate) overtaken: bool,
    /// What of it came to the receiver could not be run.
    came_otherwise: bool,
    /// The receiver was told to run it.
    told_to_run: bool,
    /// Another daemon has gone on: it does not know what the first one has told.
    was_resumed: bool,
    /// How many of each have ended that were not told to.
    pub(crate) sources_died: u64,
    pub(crate) receivers_died: u64,
    /// Somebody wanted it to be given up in time.
    pub(crate) must_stay: bool,
    /// Somebody has done something to the guest himself.
    pub(crate) meddled: bool,
    /// When the last QEMU has ended.
    pub(crate) died_at: Nanos,
    pub(crate) steps: u64,
}

impl World {
    pub(crate) fn new(setup: Setup, mut random: Random) -> Self {
        let mut world = World {
            now: Nanos(random.below(1_000_000)),
            machine: None,
            operation: None,
            record: Record::new(),
            source: None,
            receiver: None,
            known: None,
            latest: 1,
            processes: 0,
            calm: false,
            ran_there: false,
            overtaken: false,
            came_otherwise: false,
            told_to_run: false,
            was_resumed: false,
            sources_died: 0,
            receivers_died: 0,
            must_stay: false,
            meddled: false,
            died_at: Nanos(0),
            steps: 0,
            setup,
            random,
        };
        let mut source = world.process(Run::Running, Incoming::Never);
        source.memory = Some(world.latest);
        world.source = Some(source);
        if !world.setup.by_program {
            world.receiver = Some(world.process(Run::Awaits, Incoming::Untold));
        }
        world.start(false);
        world
    }

    /// Another process of QEMU.
    pub(crate) fn process(&mut self, run: Run, incoming: Incoming) -> Qemu {
        self.processes += 1;
        Qemu::new(self.processes, run, incoming)
    }

    pub(crate) fn slot(&mut self, end: End) -> &mut Option<Qemu> {
        match end {
            End::Source => &mut self.source,
            End::Receiver => &mut self.receiver,
        }
    }

    pub(crate) fn qemu(&mut self, end: End) -> Option<&mut Qemu> {
        self.slot(end).as_mut()
    }

    pub(crate) fn other(&self, end: End) -> Option<&Qemu> {
        match end {
            End::Source => self.receiver.as_ref(),
            End::Receiver => self.source.as_ref(),
        }
    }

    /// A daemon begins, with what is durable.
    fn start(&mut self, resumed: bool) {
        self.was_resumed |= resumed;
        self.known = self.record.receiver;
        let forgets = self.setup.mutation == Some(Mutation::ForgetsThatItMayHaveRun);
        let mut machine = Transfer::new(Made {
            step: self.record.step,
            cancel: self.record.cancel,
            by_program: self.setup.by_program,
            resumed: resumed && !(forgets && self.record.step == Step::Committed),
        });
        let mut actions = Vec::new();
        machine.handle(self.now, Event::Start, &mut actions);
        self.machine = Some(machine);
        self.carry_out(actions);
    }

    /// Runs chaos, then calm until the transfer has ended. Gives the steps.
    pub(crate) fn run(mut self) -> u64 {
        while self.steps < self.setup.chaos_steps && !self.has_ended() {
            self.step();
        }
        self.calm = true;
        self.calm_down();
        let end = self.now.plus(END);
        while !self.has_ended() {
            assert!(self.now < end, "no end: {:?} {:?}", self.machine, self.record);
            self.step();
        }
        // What is done wrong is to be found out where it does harm.
        if self.setup.mutation.is_none() {
            self.check_end();
        }
        self.steps
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.record.verdict.is_some() && self.machine.is_none()
    }

    fn step(&mut self) {
        self.steps += 1;
        self.now = self.now.plus(Nanos(self.random.below(20_000_000)));
        let is_quiet = self.calm || !self.trouble();
        if is_quiet && self.machine.is_none() {
            match &self.record.verdict {
                None if self.random.one_in(5) => self.start(true),
                _ => {}
            }
        }
        self.guests_run();
        if self.random.one_in(2) {
            self.sending_goes_on();
        }
        if is_quiet && self.random.one_in(2) {
            self.operation_goes_on();
        }
        self.check_record();
    }

    fn guests_run(&mut self) {
        for end in [End::Source, End::Receiver] {
            let next = self.latest + 1;
            let Some(qemu) = self.qemu(end) else { continue };
            if qemu.runs_the_guest() && !qemu.hangs {
                qemu.memory = Some(next);
                self.latest = next;
            }
        }
    }

    /// The guest is sent a little further.
    fn sending_goes_on(&mut self) {
        self.receiver_notices();
        let busy = self.setup.busy;
        let breaks = !self.calm && self.random.one_in(self.setup.breaks);
        let (Some(source), receiver) = (&mut self.source, &mut self.receiver) else {
            return;
        };
        let (Sending::UnderWay { to, .. } | Sending::Come { to }) = source.sending else {
            if source.sending == Sending::All && source.run == Run::HandsOver {
                source.run = Run::HandedOver;
            }
            return;
        };
        let Some(receiver) = receiver.as_mut().filter(|it| it.id == to) else {
            if !source.hangs {
                source.stays(Sending::Failed);
            }
            return;
        };
        if source.hangs || receiver.hangs {
            return;
        }
        match &mut source.sending {
            Sending::Come { .. } if breaks => source.stays(Sending::Failed),
            Sending::Come { .. } => source.sending = Sending::All,
            Sending::UnderWay { parts, passes, .. } if *parts > 0 => {
                receiver.incoming = Incoming::Loads { from: source.id };
                *passes += 1;
                *parts -= u64::from(!busy);
            }
            _ if source.run != Run::HandsOver => source.hands_over(),
            _ => {
                receiver.takes(source);
                self.came_otherwise |= receiver.run != Run::Paused;
                source.sending = Sending::Come { to };
            }
        }
    }

    /// A QEMU of whose guest a part has come ends if the rest does not.
    fn receiver_notices(&mut self) {
        let Some(receiver) = self.receiver.as_ref().filter(|it| !it.hangs) else {
            return;
        };
        let Incoming::Loads { from } = receiver.incoming else { return };
        let sends =
            |it: &Qemu| it.id == from && matches!(it.sending, Sending::UnderWay { .. });
        if !self.source.as_ref().is_some_and(sends) {
            self.receiver = None;
            self.receivers_died += 1;
        }
    }

    /// Tells the machine, and has done what it asks for.
    pub(crate) fn tell(&mut self, event: Event) {
        let Some(machine) = &mut self.machine else { return };
        let mut actions = Vec::new();
        if self.setup.told {
            eprintln!("{} {event:?}", self.now);
            let told = |qemu: &Option<Qemu>| qemu.as_ref().map(Qemu::in_short);
            eprintln!("  | {:?}\n  | {:?}", told(&self.source), told(&self.receiver));
        }
        machine.handle(self.now, event, &mut actions);
        self.carry_out(actions);
    }

    fn carry_out(&mut self, actions: Vec<Action>) {
        for action in actions {
            if self.setup.told {
                eprintln!("    {action:?}");
            }
            self.told_to_run |= action == Action::GoOn(End::Receiver);
            match action {
                Action::Tell(_) | Action::Arrived => {}
                Action::Over => {
                    assert!(self.operation.is_none(), "over, and something is asked");
                    self.machine = None;
                }
                action => {
                    assert!(self.operation.is_none(), "two questions at a time");
                    let operation = self.begin(action);
                    self.operation = Some(operation);
                }
            }
        }
    }

    /// A record is true at every moment: a daemon may be killed at any.
    fn check_record(&self) {
        if let Some(receiver) = &self.receiver
            && receiver.runs_on_our_word
            && receiver.runs_the_guest()
        {
            let step = self.record.step;
            assert_eq!(step, Step::Committed, "it runs there, and that is not recorded");
        }
        if let Some(source) = &self.source
            && source.runs_on_our_word
            && source.runs_the_guest()
        {
            let step = self.record.step;
            assert_eq!(step, Step::Returning, "it runs here, and that is not recorded");
        }
    }

    /// A verdict becomes durable: is it true?
    pub(crate) fn check_verdict(&self, verdict: &Verdict) {
        let has_latest = |qemu: &Qemu| qemu.memory == Some(self.latest);
        let source = self.source.as_ref();
        let receiver = self.receiver.as_ref();
        let runs_there = receiver
            .is_some_and(|it| it.runs_the_guest() && !it.touched && has_latest(it));
        match verdict {
            Verdict::There { .. } => {
                assert!(self.ran_there || self.came_otherwise, "there, and has not run");
                let excused = self.sources_died > 0 || self.overtaken;
                let in_time = self.must_stay && !excused && !self.came_otherwise;
                assert!(!in_time, "there, and it was cancelled in time");
            }
            Verdict::Stays { stands, .. } => {
                let is_here = source.is_some_and(has_latest);
                let excused = self.sources_died > 0 || self.meddled;
                assert!(is_here || excused, "stays, and the source has not the latest");
                // One that hands it over to nobody goes on by itself.
                let goes_on = |it: &Qemu| it.runs_the_guest() || it.run == Run::HandsOver;
                let runs = source.is_some_and(goes_on);
                assert!(stands.is_some() || runs || excused, "stays, and stands still");
                assert!(runs || !runs_there, "stays, and runs at the receiver");
            }
            Verdict::Lost(Loss::Ended { .. }, _) => {
                assert!(self.sources_died > 0, "lost, and the source has not ended");
                assert!(!runs_there, "lost, and it runs at the receiver");
                let left = receiver.is_some_and(|it| it.has_come() && has_latest(it));
                let is_kept = self.setup.keeps_what_is_left();
                assert!(!left || !is_kept, "lost, and the receiver had all");
            }
            Verdict::Lost(Loss::MayHaveRun(_), _) => {
                assert!(self.receivers_died > 0, "lost, and the receiver has not ended");
                let seen = self.overtaken || self.came_otherwise;
                let may = self.told_to_run || self.was_resumed || seen;
                assert!(may, "lost, and it was not told to run it");
                let runs = source.is_some_and(|it| it.runs_the_guest() && !it.touched);
                assert!(!runs, "lost, and it runs at the source");
            }
        }
    }

    fn check_end(&self) {
        let verdict = self.record.verdict.as_ref().expect("it has ended");
        if self.setup.is_quiet() && !self.setup.busy {
            let is_there = Verdict::There { befallen: None, left: None };
            assert_eq!(*verdict, is_there);
        }
        let receiver = self.receiver.as_ref().filter(|it| !it.foreign);
        let source = self.source.as_ref().filter(|it| !it.foreign);
        match verdict {
            Verdict::There { left: None, .. } => {
                assert!(source.is_none(), "a source is left: {source:?}");
            }
            Verdict::There { .. } => {}
            Verdict::Stays { rest: Rest::Gone, .. } | Verdict::Lost(_, Rest::Gone) => {
                let is_left = |it: &&Qemu| it.incoming != Incoming::Untold;
                let left = receiver.filter(is_left);
                assert!(left.is_none(), "a receiver is left: {left:?} {verdict:?}");
            }
            Verdict::Stays { .. } | Verdict::Lost(..) => {}
        }
    }

    /// The daemon is killed: what is under way is done, or not.
    pub(crate) fn kill(&mut self) {
        if self.machine.is_none() {
            return;
        }
        self.machine = None;
        if let Some(operation) = mem::take(&mut self.operation)
            && self.random.one_in(2)
        {
            self.land(operation);
        }
        // What was seen is forgotten.
        let is_committed = self.record.step == Step::Committed;
        let has_come = self.receiver.as_ref().is_some_and(Qemu::has_come);
        if let Some(source) = &mut self.source {
            source.touched |= source.runs_the_guest() && (is_committed || has_come);
        }
        if let Some(receiver) = &mut self.receiver {
            receiver.touched |= receiver.runs_the_guest() && !is_committed;
        }
    }
}
