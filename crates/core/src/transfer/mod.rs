//! How a running guest goes from one QEMU to another.
//!
//! # Rule
//!
//! QEMU sends the guest, and its run at the one end is QEMU's; its run at the other is not:
//! the receiver holds it still when it has come. One record decides which of the two may
//! run it, and is durable before that one is told to.
//!
//! ```text
//! created ── told ──> copying ── all sent, all come ──> committed ──> there, or lost
//!    │                   └───────> returning <─────────────┘
//!    └──> stays               stays, or lost
//! ```
//!
//! # Invariants
//!
//! 1. One question is open at a time, and each is answered by exactly one event.
//! 2. The receiver is told to run the guest only in the step `committed`, and the source
//!    only in the step `returning`; both are durable by then.
//! 3. The step becomes `committed` only if the receiver has the guest, and the source stood
//!    still, having handed it over, or had ended.
//! 4. From `committed` it goes to `returning` only if the receiver cannot have run it on
//!    our word, or if the source runs it.
//! 5. A QEMU is told to end only if it says that it waits for this guest or has it standing
//!    still, or if it stands at the source as one that has handed its guest over; or if we
//!    have had it started.
//! 6. *There* is said only from `committed`, *stays* only from `created` and `returning`,
//!    *lost* only where a QEMU has ended.
//! 7. A step that is to be recorded is not thought of anew: what is said to have failed may
//!    be durable. It is tried again until it is.
//!
//! # Special cases
//!
//! - Somebody else has the source give up: that is seen, and the guest stays.
//! - Somebody has the guest stand still while it is sent: it stays, and stands still, as it
//!   would run when it has come.
//! - Somebody else has the receiver run it before we would: it is there, unless the source
//!   runs it as well.
//! - Somebody has the source run what it has handed over: it is taken back, unless it is
//!   seen to run at the receiver already.
//! - Another QEMU is started at the receiver's socket: it is another process, so the one that
//!   was told of the guest has ended. Where processes cannot be seen, it says of itself that
//!   no guest was sent to it. It is neither told to run nor ended.
//!
//! # Failures
//!
//! - *The receiver ends, hangs or is replaced* before the commit: the guest runs where it
//!   was. One that hangs is not asked again: it ends by itself when it goes on.
//! - *The source ends* before all has come: the guest has ended with it. After that it runs
//!   at the receiver; but not once it was to be taken back.
//! - *The source hangs*: the guest is in it. The receiver is ended, and the transfer with
//!   it, as soon as the source answers again, or has ended.
//! - After the commit a receiver that does not answer is waited for. If it has ended and
//!   may have run the guest, that is for a person. So is one that refuses to run what it may
//!   have run before.
//! - *A connection breaks*: it is asked again, [`CUTS`] times at once, then each second.
//! - *The state does not take a step*: it is tried again. *A daemon is killed*: the next one
//!   begins with the durable step, and asks both QEMUs for the rest.
//!
//! # Known gaps
//!
//! What somebody with a monitor of his own does between the last look and our word is not
//! seen: the look is right before the word. If the source fails in the last moment, when the
//! receiver has all, or somebody has either of them run the guest, and that QEMU ends before
//! it was looked at and what follows is durable, what the other one has is taken for the
//! latest. So it is with a receiver that hangs after somebody has had it run, and with one
//! that somebody has had run and stand still again before the commit. A guest that is made
//! to stand still in the last tenth of a second runs when it has come.
//!
//! # The parts
//!
//! `begin` makes the receiver ready, `follow` watches the guest being sent, `hand` makes it
//! the receiver's, `run` has it run there, `give_back` takes it back, `dismiss` ends the
//! receiver, `close` puts away the source and records the end.

mod begin;
mod close;
mod dismiss;
mod event;
mod follow;
mod give_back;
mod hand;
mod run;
mod state;
mod verdict;

pub use event::{
    Action, End, Event, Failure, Guest, Left, Sent, Stand, Step, Trouble, Words,
};
pub use verdict::{Leftover, Loss, Rest, Verdict, Why};

use state::{After, Receiver, State};

use crate::Nanos;

/// How often QEMU is looked at while nothing is heard of it.
pub const TICK: Nanos = Nanos::from_millis(100);

/// How often it is looked whether a guest has come: it stands still meanwhile.
pub const SHORT: Nanos = Nanos::from_millis(5);

/// How often what does not work is tried again.
pub const AGAIN: Nanos = Nanos::from_millis(1000);

/// How long a guest of which all was sent may take to be handed over, and to come: as long
/// as an answer may take.
pub const HANDOVER: Nanos = Nanos::from_millis(4000);

/// How long the receiver may take to take in what has come when the source has ended.
pub const LAST: Nanos = Nanos::from_millis(1000);

/// A guest's memory is gone through so often at most. One that writes faster than it is
/// copied is not slowed down, and would be copied for ever.
pub const PASSES: u64 = 60;

/// How often in a row a connection may break until it is waited: what asks is asked again
/// at once, as a QEMU that has ended says so to whoever connects.
pub const CUTS: u8 = 3;

/// What a transfer is made from: what is durable.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Where it is.
    pub step: Step,
    /// Whether somebody wants it to be given up.
    pub cancel: bool,
    /// Whether a program starts the receiver, at a socket whose name we have made up.
    pub by_program: bool,
    /// Whether an earlier daemon has begun it.
    pub resumed: bool,
}

/// The state machine of one transfer.
#[derive(Debug)]
pub struct Transfer {
    /// Where it is, as durable.
    step: Step,
    cancel: bool,
    stopping: bool,
    by_program: bool,
    resumed: bool,
    receiver: Receiver,
    /// Whether the receiver may have been told to run the guest, and have done so.
    may_have_run: bool,
    /// Why it is taken back.
    why: Option<Why>,
    /// How often in a row the connection broke.
    cuts: u8,
    /// The question that is open.
    asked: Action,
    state: State,
}

impl Transfer {
    /// The state machine of a new transfer, or of one that a daemon has left.
    pub fn new(setup: Setup) -> Transfer {
        let Setup { step, cancel, by_program, resumed } = setup;
        Transfer {
            step,
            cancel,
            stopping: false,
            by_program,
            resumed,
            receiver: if resumed { Receiver::Told } else { Receiver::Untold },
            // A daemon that was killed may have told it.
            may_have_run: resumed && step == Step::Committed,
            why: None,
            cuts: 0,
            asked: Action::Over,
            state: State::Fresh,
        }
    }

    /// Applies `event` at `now` and adds what is to be done to `out`. Actions are to be
    /// carried out in their order. Time never goes backwards.
    pub fn handle(&mut self, now: Nanos, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Start => self.start(now, out),
            Event::Cancel => self.cancel = true,
            Event::Stop => self.stopping = true,
            answer => {
                if !self.is_asked_again(&answer, out) {
                    self.answered(now, answer, out);
                }
            }
        }
    }

    fn start(&mut self, now: Nanos, out: &mut Vec<Action>) {
        match self.step {
            Step::Created if self.resumed => {
                self.dismiss(now, After::Stays(Why::NotSent), out);
            }
            Step::Created => self.begin(out),
            _ => self.round(out),
        }
    }

    /// From where it is durable to be.
    fn round(&mut self, out: &mut Vec<Action>) {
        match self.step {
            Step::Created | Step::Copying => self.follow(out),
            Step::Returning => self.give_up(out),
            Step::Committed => self.run(out),
        }
    }

    fn answered(&mut self, now: Nanos, answer: Event, out: &mut Vec<Action>) {
        match std::mem::replace(&mut self.state, State::Fresh) {
            State::Beginning(stage) => self.beginning(now, stage, answer, out),
            State::Following(stage) => self.following(now, stage, answer, out),
            State::Handing(stage) => self.handing(now, stage, answer, out),
            State::Running(stage) => self.running(now, stage, answer, out),
            State::Returning(stage) => self.returning(now, stage, answer, out),
            State::Dismissing(stage, after) => {
                self.dismissing(now, stage, after, answer, out);
            }
            State::PuttingAway(stage, befallen) => {
                self.putting_away(now, stage, befallen, answer, out);
            }
            State::Closing(stage, verdict) => {
                self.closing(now, stage, verdict, answer, out);
            }
            State::Resting => match self.stopping {
                true => self.over(out),
                false => self.round(out),
            },
            State::Fresh | State::Over => {
                debug_assert!(false, "nothing was asked, and {answer:?} is the answer");
            }
        }
    }

    /// A connection that breaks says nothing of its QEMU: what only asks is asked again.
    fn is_asked_again(&mut self, answer: &Event, out: &mut Vec<Action>) -> bool {
        let is_cut = match answer {
            Event::Sent(Err(Failure::Cut(_)))
            | Event::Left(Err(Failure::Cut(_)))
            | Event::Stands(Err(Failure::Cut(_))) => true,
            Event::Sent(_) | Event::Left(_) | Event::Stands(_) => false,
            _ => return false,
        };
        if !is_cut || self.cuts == CUTS {
            self.cuts = 0;
            return false;
        }
        self.cuts += 1;
        out.push(self.asked.clone());
        true
    }

    /// Asks something, for this.
    fn ask(&mut self, state: State, action: Action, out: &mut Vec<Action>) {
        self.state = state;
        self.asked = action.clone();
        out.push(action);
    }

    /// Says what is wrong, and comes back.
    fn rest(&mut self, now: Nanos, trouble: Trouble, out: &mut Vec<Action>) {
        out.push(Action::Tell(trouble));
        self.ask(State::Resting, Action::Wait(now.plus(AGAIN)), out);
    }

    /// Nothing more is to be done here.
    fn over(&mut self, out: &mut Vec<Action>) {
        self.state = State::Over;
        out.push(Action::Over);
    }

    /// Why it is to be given up, if it is.
    fn unwanted(&self) -> Option<Why> {
        match (self.cancel, self.stopping) {
            (true, _) => Some(Why::Asked),
            (false, true) => Some(Why::Stopped),
            (false, false) => None,
        }
    }

    /// An answer that is none to what was asked: the driver's fault. The question stays.
    fn astray(&mut self, state: State, answer: &Event) {
        debug_assert!(false, "{answer:?} in {state:?}");
        self.state = state;
    }
}
