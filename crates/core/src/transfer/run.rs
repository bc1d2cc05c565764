//! The guest is the receiver's: it is to run there.
//!
//! **Never from older memory.** Once the receiver may have run the guest, what is left in
//! the source is older than the disks. So the commit is undone only where this process has
//! told the receiver for the first time, that has refused, and the guest stands there as
//! it has come; where the receiver has ended before it was told; or where the source runs
//! the guest, whoever has had it do so. A daemon that finds a commit does not know what was
//! told: it goes on telling the receiver.
//!
//! A guest that something has befallen since (it was shut down, it has crashed, it was
//! paused) is at the receiver all the same, and so is one that had come like that.

use super::Transfer;
use super::event::{Action, End, Event, Failure, Guest, Left, Stand, Trouble, Words};
use super::state::{Running, State, Then};
use super::verdict::{Loss, Rest, Verdict, Why};
use crate::Nanos;

/// QEMU's word for a guest that somebody has stand still.
const PAUSED: &str = "paused";

impl Transfer {
    pub(super) fn run(&mut self, out: &mut Vec<Action>) {
        self.runs(Running::Standing, Action::AskStand, out);
    }

    fn runs(&mut self, stage: Running, action: Action, out: &mut Vec<Action>) {
        self.ask(State::Running(stage), action, out);
    }

    pub(super) fn running(
        &mut self,
        now: Nanos,
        stage: Running,
        answer: Event,
        out: &mut Vec<Action>,
    ) {
        match (stage, answer) {
            (Running::Standing, Event::Stands(Ok(Stand::Has(Guest::Still)))) => {
                self.runs(Running::Leaving, Action::AskLeft, out);
            }
            (Running::Leaving, Event::Left(Ok(Left::Runs))) => {
                self.give_back(Why::GoesOn, Then::GiveUp, out);
            }
            // Somebody has had the source run it since it handed it over.
            (Running::Leaving, Event::Left(Ok(Left::Otherwise(_))))
                if !self.may_have_run =>
            {
                self.give_back(Why::GoesOn, Then::GiveUp, out);
            }
            // A person may have had it run there since an earlier daemon has looked.
            (Running::Leaving, Event::Left(Err(failure)))
                if self.may_have_run && !matches!(failure, Failure::Nobody(_)) =>
            {
                self.rest(now, Trouble::Source(failure.words().clone()), out);
            }
            // Whatever else the source does: it does not run the guest, and was not told
            // to since it handed it over.
            (Running::Leaving, Event::Left(_)) => {
                let before = std::mem::replace(&mut self.may_have_run, true);
                let told = Running::Telling { before };
                self.runs(told, Action::GoOn(End::Receiver), out);
            }
            (Running::Telling { before }, Event::Done(told)) => {
                self.told_to_run(now, before, told, out);
            }
            (Running::Looking(refusal), Event::Stands(Ok(Stand::Has(Guest::Still)))) => {
                self.still(now, refusal, out);
            }
            (Running::Standing | Running::Looking(_), Event::Stands(stand)) => {
                self.stood(now, stand, out);
            }
            // Somebody has started the guest anew meanwhile.
            (Running::Silent(_), Event::Left(Ok(Left::Runs))) => {
                self.give_back(Why::GoesOn, Then::GiveUp, out);
            }
            (Running::Silent(words), Event::Left(_)) => {
                self.rest(now, Trouble::Receiver(words), out);
            }
            (Running::Missing(words), Event::Left(left)) => {
                self.missing(now, words, left, out);
            }
            (stage, answer) => self.astray(State::Running(stage), &answer),
        }
    }

    fn told_to_run(
        &mut self,
        now: Nanos,
        before: bool,
        told: Result<(), Failure>,
        out: &mut Vec<Action>,
    ) {
        let refusal = match told {
            Ok(()) => None,
            Err(Failure::Refused(words)) => {
                self.may_have_run = before;
                Some(words)
            }
            Err(failure) => return self.stood(now, Err(failure), out),
        };
        self.runs(Running::Looking(refusal), Action::AskStand, out);
    }

    /// It was told, and the guest stands still.
    fn still(&mut self, now: Nanos, refusal: Option<Words>, out: &mut Vec<Action>) {
        match refusal {
            // Somebody has it stand still since.
            None => self.there(now, Guest::Otherwise(PAUSED.into()), out),
            Some(words) if self.may_have_run => {
                self.rest(now, Trouble::MayHaveRun(words), out);
            }
            Some(words) => self.give_back(Why::Refused(words), Then::GiveUp, out),
        }
    }

    fn stood(
        &mut self,
        now: Nanos,
        stand: Result<Stand, Failure>,
        out: &mut Vec<Action>,
    ) {
        match stand {
            Ok(Stand::Has(guest)) => self.there(now, guest, out),
            // One that waits after the commit is another one, too.
            Ok(Stand::Idle | Stand::Awaits | Stand::Stranger(_)) => {
                self.without_receiver(
                    "a different QEMU answers on its socket".into(),
                    out,
                );
            }
            Err(Failure::Nobody(words)) => self.without_receiver(words, out),
            Err(failure) => {
                let silent = Running::Silent(failure.words().clone());
                self.runs(silent, Action::AskLeft, out);
            }
        }
    }

    /// After the commit the receiver has ended.
    fn without_receiver(&mut self, words: Words, out: &mut Vec<Action>) {
        match self.may_have_run {
            true => self.runs(Running::Missing(words), Action::AskLeft, out),
            false => self.give_back(Why::NotTaken(words), Then::GiveUp, out),
        }
    }

    fn missing(
        &mut self,
        now: Nanos,
        words: Words,
        left: Result<Left, Failure>,
        out: &mut Vec<Action>,
    ) {
        match left {
            Ok(Left::Runs) => self.give_back(Why::NotTaken(words), Then::GiveUp, out),
            Ok(_) | Err(Failure::Nobody(_)) => {
                self.close(Verdict::Lost(Loss::MayHaveRun(words), Rest::Gone), out);
            }
            Err(failure) => {
                self.rest(now, Trouble::Source(failure.words().clone()), out);
            }
        }
    }
}
