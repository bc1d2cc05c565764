//! The switch-over: the moment at which the destination becomes the truth.
//!
//! ```text
//! flush source   guest running: empties the source's caches
//! flush ahead    guest running: empties those of the destination, with all that was
//!                written while the source was flushed
//! prepare        guest running: the intention is durable, and the commit's record has
//!                been written once, which shows how quick that is
//! drain          new writes are held, those in flight end
//! flush held     what the drained writes wrote; tiny
//! seal           the destination's sidecar says active
//! commit         the record; from here on there is no way back
//! ```
//!
//! **Writes are held and nothing else.** From the beginning of the drain no write is let
//! through, so the source's bytes stay what both sides end with. Whoever reads goes to
//! the source, at any time, and gets what the destination has; one that is still there at
//! the commit is answered from there, as it came before any write that the destination
//! alone has got. A flush makes durable what was answered before it: at the source by
//! itself, at the destination by the flush that the commit waits for.
//!
//! **The source's caches** are emptied because a cache that cannot write drops what it has, and
//! the copier has read what was there before. Only a flush of the source tells of that. So one
//! has ended before the commit that began after all that was copied: if it fails, the image
//! tells the disk's clients, and the move goes on, as they are better off elsewhere. What is
//! written later goes to both sides by itself. If something was copied since that flush began,
//! both sides are flushed again.
//!
//! **How long.** Up to the seal a write is held for no longer than the budget, less what
//! the commit will take by what was measured in `prepare`. Past that there is only the
//! write of one block, and if the medium is slow in that very moment, there is no way
//! around it: until it answers, nobody may say which side is the truth.
//!
//! Before `commit` each step can be undone: the held writes go to the source and the
//! switch-over is tried again later. It is undone when the budget, less what the commit will
//! take, is used up, when a write fell behind (also if it was copied since, and not yet
//! compared), when something failed, or when the operator pauses. The answer to a step that
//! was asked for before the undoing is still awaited before anything new is asked for; a seal
//! whose outcome came too late is taken back with `Unseal`.
//!
//! **Writes that fail at the source** would undo it again and again: the guest is told their errors
//! when the attempt is over (`late_errors`).
//!
//! The commit's own answer is awaited however long it takes. If it failed the migration
//! pauses, or ends if the operator gave it up meanwhile. What a commit is, and what a crash
//! makes of it, is in `core::commit`.

use super::{
    Action, Commit, FLUSH_TIMEOUT, Fault, Mirror, MirrorEnd, Notice, PauseReason,
    RegionMap, Request, State,
};
use crate::Nanos;

/// Switch-overs undone in a row before the migration pauses: after a quarter of an hour,
/// with these waits between them. What keeps a disk busy for minutes must not cost a copy
/// of hours what is written while it is paused; what takes longer a person should look at.
const ATTEMPTS_MAX: u32 = 40;

/// The same of those in which writes fell behind: patience is at its end by then.
const LATE_ATTEMPTS_MAX: u32 = 10;

/// The wait after an undone switch-over, doubled each time up to the longest: a guest is
/// held for a third of a percent of its time at most.
const BACKOFF: Nanos = Nanos::from_millis(100);
const BACKOFF_MAX: Nanos = Nanos::from_secs(30);

/// The longest while writes are behind: what they lack is copied in no time, and then it is
/// tried before others are.
const LATE_BACKOFF_MAX: Nanos = Nanos::from_secs(5);

/// A step that takes longer is not about to end.
const LONG: Nanos = Nanos::from_secs(2);

/// So often both sides are flushed again in one attempt, because something was copied since: the
/// guest is not held, and such a flush has little to do. Writes that are late each time need
/// more patience.
const FLUSHES_AGAIN_MAX: u32 = 3;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Step {
    #[default]
    Idle,
    FlushSource,
    FlushAhead,
    Prepare,
    Drain,
    FlushHeld,
    Seal,
    Commit,
}

/// What was asked for and not yet answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    SourceFlush,
    Flush,
    Prepare,
    Seal,
    Commit,
}

/// The switch-over's memory.
#[derive(Debug, Default)]
pub(super) struct Switch {
    step: Step,
    asked: Option<Asked>,
    since: Nanos,
    /// How far the copier had come when the source's flush began, in bytes.
    passed: u64,
    /// How often it was begun again in this attempt.
    flushes_again: u32,
    hold_since: Option<Nanos>,
    /// How long the commit's record took in `prepare`: the commit, which cannot be
    /// undone, will take about as long, and its time is kept free in the budget.
    commit_takes: Nanos,
    requests: Vec<(Nanos, Request)>,
    attempts: u32,
    /// Those in which writes fell behind.
    late_attempts: u32,
    undone: u32,
    retry_at: Nanos,
    waits_until: Option<Nanos>,
    held: Option<Nanos>,
    /// The operator gave up while the commit was being written; holds if that fails.
    /// (A pause does in any case, as it pauses then.)
    given_up: bool,
}

impl Switch {
    pub(super) fn holding(&self) -> bool {
        self.hold_since.is_some()
    }

    pub(super) fn under_way(&self) -> bool {
        self.step != Step::Idle
    }

    /// Whether the destination may be flushed apart from any switch-over.
    pub(super) fn may_flush(&self) -> bool {
        self.step == Step::Idle && self.asked.is_none()
    }

    /// Whether one was undone, and only the time is not yet there to try it again.
    pub(super) fn is_put_off(&self) -> bool {
        self.waits_until.is_some()
    }

    pub(super) fn committing(&self) -> bool {
        self.step == Step::Commit
    }

    pub(super) fn cancel_after(&mut self) {
        self.given_up = true;
    }

    pub(super) fn is_idle(&self) -> bool {
        self.asked.is_none()
    }

    /// Whether nothing is awaited that concerns the destination.
    pub(super) fn has_left_destination(&self) -> bool {
        matches!(self.asked, None | Some(Asked::SourceFlush))
    }

    pub(super) fn held(&self) -> Option<Nanos> {
        self.held
    }

    pub(super) fn undone(&self) -> u32 {
        self.undone
    }

    /// Whether an answer takes so long that nobody knows when it comes.
    pub(super) fn waits_long(&self, now: Nanos) -> bool {
        self.under_way() && now.since(self.since) >= LONG
    }

    /// Keeps a write until it is known which side is the truth.
    pub(super) fn hold(&mut self, now: Nanos, request: Request) {
        self.requests.push((now, request));
    }

    /// Whether the guest waits for requests that are kept.
    pub(super) fn keeps_any(&self) -> bool {
        !self.requests.is_empty()
    }

    pub(super) fn deadline(&self, budget: Nanos) -> Option<Nanos> {
        match self.step {
            Step::Idle if self.asked.is_some() => Some(self.since.plus(FLUSH_TIMEOUT)),
            Step::Idle => self.waits_until,
            Step::FlushSource | Step::FlushAhead | Step::Prepare => {
                Some(self.since.plus(FLUSH_TIMEOUT))
            }
            Step::Commit => None,
            Step::Drain | Step::FlushHeld | Step::Seal => self.undone_at(budget),
        }
    }

    /// When the guest has been held for so long that the commit no longer fits.
    fn undone_at(&self, budget: Nanos) -> Option<Nanos> {
        let undoable = Nanos(budget.0.saturating_sub(self.commit_takes.0));
        self.hold_since.map(|since| since.plus(undoable))
    }

    /// The operator wants it tried again, from the beginning.
    pub(super) fn resumed(&mut self, now: Nanos) {
        self.since = now;
        self.attempts = 0;
        self.late_attempts = 0;
        self.retry_at = Nanos(0);
    }

    fn ask(&mut self, now: Nanos, step: Step, asked: Asked) {
        debug_assert!(self.asked.is_none());
        self.step = step;
        self.asked = Some(asked);
        self.since = now;
    }

    fn answered(&mut self, asked: Asked) {
        debug_assert_eq!(self.asked, Some(asked), "an answer nobody asked for");
        self.asked = None;
    }
}

impl<M: RegionMap> Mirror<M> {
    /// Begins a switch-over if nothing is left to do before it.
    pub(super) fn begin_switch(&mut self, now: Nanos, out: &mut Vec<Action>) {
        self.switch.waits_until = None;
        let ready = self.running()
            && self.switch.step == Step::Idle
            && self.switch.is_idle()
            && self.jobs.is_empty()
            && self.is_ready();
        if !ready {
            return;
        }
        if now < self.switch.retry_at {
            self.switch.waits_until = Some(self.switch.retry_at);
            return;
        }
        self.flush_source(now, out);
    }

    fn flush_source(&mut self, now: Nanos, out: &mut Vec<Action>) {
        self.late_errors.begin(now);
        self.switch.ask(now, Step::FlushSource, Asked::SourceFlush);
        self.switch.passed = self.pace.passed();
        out.push(Action::FlushSource);
    }

    /// Whether nothing is left to do before the guest is held. What was so when the
    /// switch-over began need not be when its next step comes: the guest writes on, and
    /// what it puts behind is copied, and then has to be compared.
    fn is_ready(&self) -> bool {
        self.all_done() && self.bad.allow_switch()
    }

    fn flush_destination(&mut self, now: Nanos, step: Step, out: &mut Vec<Action>) {
        self.switch.ask(now, step, Asked::Flush);
        self.regions.flush_begins();
        out.push(Action::FlushDestination);
    }

    /// Flushes the destination although no switch-over is near, unless it has something
    /// else to answer.
    pub(super) fn flush_between(&mut self, now: Nanos, out: &mut Vec<Action>) {
        if self.switch.may_flush() {
            self.flush_destination(now, Step::Idle, out);
        }
    }

    pub(super) fn flushed(
        &mut self,
        now: Nanos,
        result: Result<(), Fault>,
        out: &mut Vec<Action>,
    ) {
        self.switch.answered(Asked::Flush);
        if !self.believe_flush(now, result, out) {
            return;
        }
        match self.switch.step {
            Step::FlushAhead if self.must_flush_again() => self.flush_again(now, out),
            Step::FlushAhead => {
                self.switch.ask(now, Step::Prepare, Asked::Prepare);
                out.push(Action::Prepare);
            }
            Step::FlushHeld => {
                self.switch.ask(now, Step::Seal, Asked::Seal);
                out.push(Action::Seal);
            }
            _ => {} // Undone meanwhile, or between two switch-overs.
        }
    }

    /// The source was flushed, or not: its image has told the disk's clients what that means.
    pub(super) fn source_flushed(&mut self, now: Nanos, ok: bool, out: &mut Vec<Action>) {
        self.switch.answered(Asked::SourceFlush);
        self.source_has_flushed(now, ok, out);
        match self.switch.step {
            Step::FlushSource if !self.is_ready() => self.flush_again(now, out),
            Step::FlushSource => self.flush_destination(now, Step::FlushAhead, out),
            _ => {} // Undone meanwhile.
        }
    }

    /// Whether something was copied, or is to be, of which the source's flush says nothing.
    fn must_flush_again(&self) -> bool {
        self.pace.passed() != self.switch.passed || !self.is_ready()
    }

    /// Flushes both sides again, as soon as nothing is left to do before.
    fn flush_again(&mut self, now: Nanos, out: &mut Vec<Action>) {
        self.switch.flushes_again += 1;
        if self.switch.flushes_again > FLUSHES_AGAIN_MAX {
            self.fail_switch(now, true, out);
        } else if self.is_ready() {
            self.flush_source(now, out);
        } else {
            self.switch.step = Step::Idle;
        }
    }

    pub(super) fn prepared(
        &mut self,
        now: Nanos,
        record: Option<Nanos>,
        out: &mut Vec<Action>,
    ) {
        self.switch.answered(Asked::Prepare);
        if self.switch.step != Step::Prepare {
            return; // Undone meanwhile.
        }
        let Some(takes) = record else {
            self.pause(now, PauseReason::StateStore, out);
            return;
        };
        self.switch.commit_takes = takes;
        let quick = self.switch.commit_takes.0 * 2 <= self.config.hold_budget.0;
        if !quick || !self.is_ready() {
            self.fail_switch(now, self.left() > 0, out);
            return;
        }
        if self.must_flush_again() {
            self.flush_again(now, out);
            return;
        }
        self.switch.step = Step::Drain;
        self.switch.hold_since = Some(now);
        self.switch.requests = self.flights.take_waiting();
        out.push(Action::Notice(Notice::Holding));
    }

    /// Looks at the step that waits for the writes in flight, and at the budget.
    pub(super) fn advance_switch(&mut self, now: Nanos, out: &mut Vec<Action>) {
        let unanswered = self.running()
            && self.switch.asked.is_some()
            && now.since(self.switch.since) >= FLUSH_TIMEOUT;
        match self.switch.step {
            // Idle: asked for before it was undone, and still not answered.
            Step::Idle | Step::FlushSource | Step::FlushAhead | Step::Prepare
                if unanswered =>
            {
                let reason = match self.switch.asked {
                    Some(Asked::Prepare) => PauseReason::StateStore,
                    Some(Asked::SourceFlush) => {
                        PauseReason::SourceTimedOut(FLUSH_TIMEOUT)
                    }
                    _ => PauseReason::DestinationTimedOut(FLUSH_TIMEOUT),
                };
                self.pause(now, reason, out);
                return;
            }
            Step::Drain if !self.is_ready() => {
                self.fail_switch(now, self.left() > 0, out);
                return;
            }
            Step::Drain if !self.flights.has_writes() && self.jobs.is_empty() => {
                self.flush_destination(now, Step::FlushHeld, out);
            }
            _ => {}
        }
        let undoable =
            matches!(self.switch.step, Step::Drain | Step::FlushHeld | Step::Seal);
        if undoable && self.hold_is_over(now) {
            self.fail_switch(now, self.left() > 0, out);
        }
    }

    /// Whether the guest was held for so long that the commit no longer fits.
    fn hold_is_over(&self, now: Nanos) -> bool {
        self.switch.undone_at(self.config.hold_budget).is_some_and(|end| now >= end)
    }

    pub(super) fn sealed(
        &mut self,
        now: Nanos,
        result: Result<(), Fault>,
        out: &mut Vec<Action>,
    ) {
        self.switch.answered(Asked::Seal);
        if self.switch.step != Step::Seal {
            out.push(Action::Unseal); // Undone meanwhile.
            return;
        }
        match result {
            Ok(()) if self.hold_is_over(now) => {
                out.push(Action::Unseal);
                self.fail_switch(now, self.left() > 0, out);
            }
            Ok(()) => {
                self.switch.ask(now, Step::Commit, Asked::Commit);
                out.push(Action::Commit);
            }
            Err(fault) => {
                // It may have been written nevertheless.
                out.push(Action::Unseal);
                self.destination_failed(now, fault, out);
            }
        }
    }

    pub(super) fn committed(
        &mut self,
        now: Nanos,
        commit: Commit,
        out: &mut Vec<Action>,
    ) {
        self.switch.answered(Asked::Commit);
        if commit != Commit::Durable {
            out.push(Action::Unseal);
            self.switch.step = Step::Seal; // Certainly not committed: undoable again.
            match std::mem::take(&mut self.switch.given_up) {
                true => self.cancel(now, out),
                false => self.pause(now, PauseReason::StateStore, out),
            }
            return;
        }
        self.switch.step = Step::Idle;
        self.switch.held = self.switch.hold_since.take().map(|since| now.since(since));
        self.state = State::Ended(MirrorEnd::Completed);
        self.tell_errors(out);
        for (_, request) in std::mem::take(&mut self.switch.requests) {
            out.push(Action::Moved(request.id));
        }
        out.push(Action::Ended(MirrorEnd::Completed));
    }

    /// The switch-over did not work out this time, if `late` because writes fell behind;
    /// after many times, pauses.
    fn fail_switch(&mut self, now: Nanos, late: bool, out: &mut Vec<Action>) {
        let left = self.left();
        self.undo_switch(now, out);
        self.put_off(now, late);
        let is_refused = late && self.late_errors.was_late();
        if late {
            self.switch.late_attempts += 1;
            self.raise_patience(out); // Late writes are what patience is for.
        }
        let too_late = late && self.switch.late_attempts >= LATE_ATTEMPTS_MAX;
        if !too_late && self.switch.attempts < ATTEMPTS_MAX {
            return;
        }
        let reason = if is_refused {
            PauseReason::SourceRefusesWrites
        } else if late {
            let patience = self.converge.patience();
            PauseReason::NotConverging { behind: left, patience }
        } else {
            PauseReason::SwitchOverTooLong { budget: self.config.hold_budget }
        };
        self.pause(now, reason, out);
    }

    /// It is tried again some time after an attempt that did not work out.
    fn put_off(&mut self, now: Nanos, late: bool) {
        let most = if late { LATE_BACKOFF_MAX } else { BACKOFF_MAX };
        let backoff = Nanos(BACKOFF.0 << self.switch.attempts.min(16)).min(most);
        self.switch.attempts += 1;
        self.switch.retry_at = now.plus(backoff);
    }

    /// Goes back to before the switch-over and lets the guest go on at the source.
    pub(super) fn undo_switch(&mut self, now: Nanos, out: &mut Vec<Action>) {
        if self.switch.step == Step::Idle {
            return;
        }
        debug_assert!(!self.switch.committing(), "a commit cannot be undone");
        self.switch.step = Step::Idle;
        self.switch.flushes_again = 0;
        self.switch.undone += 1;
        self.tell_errors(out);
        let held = self.switch.hold_since.take().map_or(Nanos(0), |s| now.since(s));
        out.push(Action::Notice(Notice::SwitchOverUndone { held }));
        for (_, request) in std::mem::take(&mut self.switch.requests) {
            // Its waiting was the switch-over's: its patience begins anew.
            self.admit(now, now, request, out);
        }
    }
}
