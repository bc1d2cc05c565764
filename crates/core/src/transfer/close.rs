//! The end: the source is put away where the guest has gone, and all is made durable.
//!
//! What does not stand as one that has handed its guest over is another QEMU, or was told
//! something since: it is left alone.

use super::event::{Action, End, Event, Failure, Guest, Left};
use super::state::{Closing, PuttingAway, State};
use super::verdict::{Leftover, Verdict};
use super::{AGAIN, HANDOVER, SHORT, Transfer, Words};
use crate::Nanos;

impl Transfer {
    /// The guest is at the receiver, and so it goes with it there.
    pub(super) fn there(&mut self, now: Nanos, guest: Guest, out: &mut Vec<Action>) {
        let befallen = match guest {
            Guest::Otherwise(word) => Some(word),
            Guest::Runs | Guest::Still => None,
        };
        out.push(Action::Arrived);
        let leaving = PuttingAway::Leaving(now.plus(HANDOVER));
        self.ask(State::PuttingAway(leaving, befallen), Action::AskLeft, out);
    }

    pub(super) fn putting_away(
        &mut self,
        now: Nanos,
        stage: PuttingAway,
        befallen: Option<Words>,
        answer: Event,
        out: &mut Vec<Action>,
    ) {
        let left = match (stage, answer) {
            (PuttingAway::Leaving(until), Event::Left(left)) => match left {
                Ok(Left::HandsOver) if now < until => {
                    let state = State::PuttingAway(PuttingAway::Pausing(until), befallen);
                    return self.ask(state, Action::Wait(now.plus(SHORT)), out);
                }
                Ok(Left::Stands) => {
                    let state = State::PuttingAway(PuttingAway::Quitting, befallen);
                    return self.ask(state, Action::Quit(End::Source), out);
                }
                Ok(Left::Runs | Left::Otherwise(_)) => Some(Leftover::Busy),
                Err(Failure::Nobody(_)) => None,
                Ok(Left::HandsOver) | Err(_) => Some(Leftover::Stays),
            },
            (PuttingAway::Pausing(until), Event::Woken) => {
                let state = State::PuttingAway(PuttingAway::Leaving(until), befallen);
                return self.ask(state, Action::AskLeft, out);
            }
            (PuttingAway::Quitting, Event::Quit(ended)) => {
                (!ended).then_some(Leftover::Stays)
            }
            (stage, answer) => {
                return self.astray(State::PuttingAway(stage, befallen), &answer);
            }
        };
        self.close(Verdict::There { befallen, left }, out);
    }

    pub(super) fn close(&mut self, verdict: Verdict, out: &mut Vec<Action>) {
        let close = Action::Close(verdict.clone());
        self.ask(State::Closing(Closing::Recording, verdict), close, out);
    }

    pub(super) fn closing(
        &mut self,
        now: Nanos,
        stage: Closing,
        verdict: Verdict,
        answer: Event,
        out: &mut Vec<Action>,
    ) {
        match (stage, answer) {
            (Closing::Recording, Event::Stored(Ok(()))) => self.over(out),
            // How it has ended is not asked again.
            (Closing::Recording, Event::Stored(Err(_))) => {
                let wait = Action::Wait(now.plus(AGAIN));
                self.ask(State::Closing(Closing::Resting, verdict), wait, out);
            }
            (Closing::Resting, Event::Woken) if self.stopping => self.over(out),
            (Closing::Resting, Event::Woken) => self.close(verdict, out),
            (stage, answer) => self.astray(State::Closing(stage, verdict), &answer),
        }
    }
}
