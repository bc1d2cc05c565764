//! The mover: how a disk moves that QEMU serves, while its guest goes on.
//!
//! # Rule
//!
//! QEMU copies, and QEMU switches over; the mover has it do so, watches, and puts away what
//! is left. The source is the truth until QEMU is told to switch over. From that moment
//! (the step `switching`, durable before QEMU is told) QEMU alone can say where the disk
//! is: it is asked, and never guessed.
//!
//! ```text
//! created ──> copying <──> switching ──> committed ──> ended: moved
//!    └───────────┴─────────────┴──> ended: stays, or unclear
//! ```
//!
//! # Invariants
//!
//! 1. One question is open at a time, and each is answered by exactly one event.
//! 2. Before `Complete`, the step `switching` is durable, nobody had wanted the move to be
//!    given up when it became so, and an image that says what it is says *active*.
//! 3. A move that was `switching` is called anything before that only after QEMU has said
//!    that the disk is where it was; and its image says *partial* by then.
//! 4. `Remove` is asked only of a copy that this process has made, or has seen QEMU copy
//!    to, or that a daemon which was killed must have made ([`Action::Peek`]); while the
//!    step is not `switching`, and while no VM is silent that may still have it, or has
//!    ended since the verdict: somebody else could have had that one switch over, or have
//!    started it with the copy. Which file that is, the process knows that has
//!    made it ([`Action::Know`]), and a later one by what is durable: never by its name.
//! 5. *Moved* is said only if QEMU says that the disk is at the destination, or that the
//!    job has ended well which had taken the word to switch over. *Stays* is said only if
//!    QEMU was not told to switch over, or says itself that it has not.
//! 6. What led to a verdict is not asked again once it is reached: it is recorded, however
//!    often that takes.
//! 7. An image that says what it is does not say *partial* once the move has ended, if a
//!    guest may run on it: the next daemon would not serve it.
//!
//! # Special cases
//!
//! - Somebody else gives QEMU's copy up, or has it switch over: that is found out as all
//!   else is, by asking where the disk is.
//! - A disk that is taken from its VM: nobody writes to it any more. While QEMU was not
//!   told to switch over, the old image is the whole truth; once a job that was told so
//!   has ended well, the new one has all of it.
//! - A switch-over that does not come for [`CATCH_UP`] is called off, and so is one of a
//!   move that somebody wants to be given up. Whether that came in time, QEMU is asked.
//! - A QEMU that calls a job ended without an error, while the disk is at the source, is
//!   made to forget the job and asked again before that is believed.
//!
//! # Failures
//!
//! Before `switching`, a VM that ends or does not answer ends the move. What it may still
//! have of the copy is given up when it answers again (`tidy`), by a later daemon if need
//! be; until then a silent VM keeps the copy, and for good if it ends instead. A
//! connection that breaks is no VM that has ended: it is asked again. From `switching` on,
//! a VM that does not answer is waited for; of one that has ended, or that knows nothing
//! of the switch-over, both images are kept, and the end is *unclear*. A state that does
//! not take a step is asked again. A daemon may be killed between any two actions: the
//! next one begins with the durable step, and asks QEMU for the rest.
//!
//! # Known gaps
//!
//! If somebody else has QEMU switch over before the mover tells it to, and QEMU ends
//! before it is looked at again (a tenth of a second), the copy is taken for one. If
//! somebody does so while the VM does not answer the mover, the move has ended as one
//! that stays; it becomes *unclear*, and the image is kept, once QEMU answers and says
//! where the disk is. The same goes if a daemon sees that and is killed before it is
//! durable, and QEMU does not answer the next one; that one says at once that the kept
//! image may hold the last writes. If QEMU ends before it answers, the image is kept
//! ([`Notice::Kept`]), and that is noted of the move; it has still ended as one that
//! stays. What is put in the copy's place while no daemon runs is taken for the copy, if
//! it is as empty as a new one, and no daemon had recorded which file it had made.
//!
//! # The parts
//!
//! `begin` has the copy begin, `follow` watches it, `switch` has it switch over, `judge`
//! finds out where the disk is, `arrive` and `stay` put away what is left, and `close`
//! records the end and sees to what a VM has not let go of.

mod arrive;
mod begin;
mod close;
mod event;
mod follow;
mod judge;
mod state;
mod stay;
mod switch;
mod verdict;

pub use event::{
    Action, At, Ended, Event, Failure, GivenUp, Job, MoverStep, Notice, Owner, Place,
    Removed, Watched, Wishes, Words,
};
pub use verdict::{Doubt, Rest, Tidied, Verdict, Why};

use state::{Hearing, Order, State};

use crate::Nanos;

/// How often QEMU is looked at: as often as disks of ours are sampled.
pub const TICK: Nanos = Nanos::from_millis(100);

/// How often libvirt is asked: each time is four processes.
pub const SLOW_TICK: Nanos = Nanos::from_millis(300);

/// How long the application is watched before the copy begins, for the figures of
/// before.
pub const BEFORE: Nanos = Nanos::from_millis(1000);

/// How often what does not work is tried again.
pub const AGAIN: Nanos = Nanos::from_millis(1000);

/// How long QEMU may copy at full speed for the last writes to be on both sides: what a
/// guest may have to bear once, and hundreds of times what it takes otherwise.
pub const CATCH_UP: Nanos = Nanos::from_millis(60_000);

/// How often in a row a connection may break until its VM counts as silent: it is asked
/// again at once, as one that has ended says so to whoever connects.
pub const CUTS: u8 = 3;

/// Standing still, in QEMU's terms: its 0 means no limit.
const HALT: u64 = 1;

/// What is known of the destination. Of a file's making only this process knows, and a
/// state that is an old backup takes the VM's disk for a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copy {
    /// Nothing: it may be the VM's disk.
    Unknown,
    /// It is nothing but this move's copy: it was made here, or QEMU was seen to copy to
    /// it.
    Ours,
    /// There is none, or it is somebody else's.
    NotOurs,
}

/// What a mover is made from: what is durable.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Who has the VM.
    pub owner: Owner,
    /// What the disk becomes.
    pub place: Place,
    /// Where the move is.
    pub step: MoverStep,
    /// What is wanted of it.
    pub wishes: Wishes,
    /// What is known of the destination.
    pub copy: Copy,
    /// Whether a daemon has left it, which may have made the destination. What is at the
    /// name of a move that has just been asked for is somebody else's.
    pub resumed: bool,
}

/// The state machine of one move.
#[derive(Debug)]
pub struct Mover {
    owner: Owner,
    place: Place,
    /// Where the move is, as durable; while that is not known, the later of both.
    step: MoverStep,
    wishes: Wishes,
    hearing: Hearing,
    stopping: bool,
    copy: Copy,
    resumed: bool,
    /// This process has made the destination, or has had libvirt make it.
    has_made: bool,
    order: Order,
    /// What QEMU was told last.
    speed: Option<u64>,
    /// How often in a row the connection broke.
    cuts: u8,
    /// The question that is open, and what it is for.
    asked: Action,
    state: State,
}

impl Mover {
    /// A mover: of a new move, or of one that a daemon has left.
    pub fn new(setup: Setup) -> Mover {
        Mover {
            owner: setup.owner,
            place: setup.place,
            step: setup.step,
            wishes: setup.wishes,
            hearing: Hearing::Behind,
            stopping: false,
            copy: match setup.place {
                Place::File if !setup.resumed => Copy::NotOurs,
                _ => setup.copy,
            },
            resumed: setup.resumed,
            has_made: false,
            order: Order::None,
            speed: None,
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
            Event::Asked => self.hearing = Hearing::Behind,
            Event::Stop => self.stopping = true,
            answer => {
                if let Some(answer) = self.without_cuts(answer, out) {
                    self.answered(now, answer, out);
                }
            }
        }
    }

    fn start(&mut self, now: Nanos, out: &mut Vec<Action>) {
        match self.step {
            MoverStep::Created => self.begin(out),
            MoverStep::Copying | MoverStep::Switching => self.round(out),
            MoverStep::Committed => {
                self.arrive(state::Arrival::Moved { unplugged: false }, out);
            }
            MoverStep::Ended => self.tidy_later(now, out),
        }
    }

    fn answered(&mut self, now: Nanos, answer: Event, out: &mut Vec<Action>) {
        match std::mem::replace(&mut self.state, State::Fresh) {
            State::Beginning(stage) => self.beginning(now, stage, answer, out),
            State::Following(stage) => self.following(now, stage, answer, out),
            State::Judging(ended) => self.judging(now, ended, answer, out),
            State::Lost(stage) => self.finding_lost(now, stage, answer, out),
            State::Arriving(stage, arrival) => {
                self.arriving(now, stage, arrival, answer, out);
            }
            State::Staying(stage, stay) => self.staying(now, stage, stay, answer, out),
            State::Closing(stage, verdict) => {
                self.closing(now, stage, verdict, answer, out);
            }
            State::Tidying(stage, tidying) => {
                self.tidying(now, stage, tidying, answer, out);
            }
            State::Fresh | State::Over => {
                debug_assert!(false, "nothing was asked, and {answer:?} is the answer");
            }
        }
    }

    /// A connection that breaks says nothing of the VM: what does no harm if it is done
    /// twice is asked again, [`CUTS`] times in a row. Gives what is to be believed.
    fn without_cuts(&mut self, answer: Event, out: &mut Vec<Action>) -> Option<Event> {
        let failure = match &answer {
            Event::Looked(Err(failure))
            | Event::Found(Err(failure))
            | Event::Watched(Err(failure))
            | Event::Done(Err(failure))
            | Event::GaveUp(Err(failure)) => failure.clone(),
            Event::Looked(_)
            | Event::Found(_)
            | Event::Watched(_)
            | Event::Done(_)
            | Event::GaveUp(_) => {
                self.cuts = 0;
                return Some(answer);
            }
            _ => return Some(answer),
        };
        let Failure::Cut(words) = failure else { return Some(answer) };
        if matches!(self.asked, Action::Begin(_) | Action::Complete) {
            return Some(answer);
        }
        if self.cuts < CUTS {
            self.cuts += 1;
            out.push(self.asked.clone());
            return None;
        }
        self.cuts = 0;
        let silent = Failure::Silent(words);
        Some(match answer {
            Event::Looked(_) => Event::Looked(Err(silent)),
            Event::Found(_) => Event::Found(Err(silent)),
            Event::Watched(_) => Event::Watched(Err(silent)),
            Event::GaveUp(_) => Event::GaveUp(Err(silent)),
            _ => Event::Done(Err(silent)),
        })
    }

    /// Asks something, for this.
    fn ask(&mut self, state: State, action: Action, out: &mut Vec<Action>) {
        self.state = state;
        self.asked = action.clone();
        out.push(action);
    }

    /// Nothing more is to be done here.
    fn over(&mut self, out: &mut Vec<Action>) {
        self.state = State::Over;
        out.push(Action::Over);
    }

    /// An answer that is none to what was asked: the driver's fault. The question stays.
    fn astray(&mut self, state: State, answer: &Event) {
        debug_assert!(false, "{answer:?} in {state:?}");
        self.state = state;
    }

    /// QEMU copies to the destination, or did until now: it is nothing but a copy. What has
    /// its name is that very file only in the process that has made it: while no daemon
    /// ran, somebody may have given the name to another.
    fn seen(&mut self, out: &mut Vec<Action>) {
        if self.copy == Copy::Unknown {
            self.copy = Copy::Ours;
        }
        if self.copy == Copy::Ours && self.place == Place::File && self.has_made {
            out.push(Action::Know);
        }
    }

    /// It is not known any more that the destination is only a copy.
    fn doubt(&mut self) {
        if self.copy == Copy::Ours {
            self.copy = Copy::Unknown;
        }
    }

    /// Until when a tick is waited for.
    fn next_tick(&self, now: Nanos) -> Nanos {
        now.plus(match self.owner {
            Owner::Qemu => TICK,
            Owner::Libvirt => SLOW_TICK,
        })
    }

    /// What QEMU is to be told, in its terms.
    fn speed_for(&self, allowed: Option<u64>) -> u64 {
        let halted = self.wishes.paused.then_some(0);
        match [allowed, self.wishes.rate, halted].into_iter().flatten().min() {
            None => 0,
            Some(rate) => rate.max(HALT),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mover(rate: Option<u64>, paused: bool) -> Mover {
        Mover::new(Setup {
            owner: Owner::Qemu,
            place: Place::File,
            step: MoverStep::Created,
            wishes: Wishes { cancel: false, paused, rate },
            copy: Copy::Unknown,
            resumed: false,
        })
    }

    #[test]
    fn the_least_counts_and_nothing_is_not_everything() {
        assert_eq!(mover(None, false).speed_for(None), 0);
        assert_eq!(mover(None, false).speed_for(Some(0)), HALT);
        assert_eq!(mover(Some(500), false).speed_for(Some(900)), 500);
        assert_eq!(mover(None, true).speed_for(None), HALT);
    }
}
