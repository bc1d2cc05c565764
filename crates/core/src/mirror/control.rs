//! Pausing, resuming, cancelling.

use super::{Action, Control, Mirror, MirrorEnd, Notice, PauseReason, RegionMap, State};
use crate::Nanos;

impl<M: RegionMap> Mirror<M> {
    pub(super) fn control(
        &mut self,
        now: Nanos,
        control: Control,
        out: &mut Vec<Action>,
    ) {
        match control {
            Control::SetRate(rate) => self.pace.set_limit(now, rate),
            Control::Allow(allowance) => self.pace.allow(now, allowance),
            Control::Pause => self.pause(now, PauseReason::Asked, out),
            Control::PauseAstray => {
                self.pause(now, PauseReason::DestinationAstray, out);
            }
            Control::PauseSource => self.pause(now, PauseReason::SourceAstray, out),
            Control::Resume => self.resume(now, out),
            Control::SkipBad => self.bad.skip = true,
            Control::Cancel => self.cancel(now, out),
        }
    }

    /// Stops everything that touches the destination. A commit that was asked
    /// for is past stopping; its answer decides.
    pub(super) fn pause(
        &mut self,
        now: Nanos,
        reason: PauseReason,
        out: &mut Vec<Action>,
    ) {
        if self.state != State::Running {
            // A reason that the operator must act on outlives "asked for".
            return;
        }
        if self.switch.committing() {
            return; // A commit that fails pauses in any case.
        }
        self.state = State::Paused(reason);
        out.push(Action::Notice(Notice::Paused(reason)));
        self.leave_destination(now, out);
    }

    /// From now on the guest has nothing to do with the destination.
    fn leave_destination(&mut self, now: Nanos, out: &mut Vec<Action>) {
        self.copier.release_claims();
        self.abandon_mirrored(now, out);
        self.undo_switch(now, out);
        self.tell_errors(out);
    }

    /// Mirrored writes in flight end when the source is done with them.
    fn abandon_mirrored(&mut self, now: Nanos, out: &mut Vec<Action>) {
        for id in self.flights.awaiting_destination() {
            self.lose_patience(id);
            if self.flights.get(id).source == super::flight::Side::Done {
                self.answer(now, id, out);
            }
        }
    }

    fn resume(&mut self, now: Nanos, out: &mut Vec<Action>) {
        if !matches!(self.state, State::Paused(_)) {
            return;
        }
        self.regions.keep_again();
        self.state = State::Running;
        self.pace.restart(now);
        self.converge.restart();
        self.flights.rearm(now);
        self.jobs.rearm(now);
        self.out_of_reach = self.out_of_reach.map(|_| now);
        self.switch.resumed(now);
        self.late_errors.resumed();
        self.bad.resumed();
        self.copier.stubborn.clear();
        out.push(Action::Notice(Notice::Resumed));
    }

    pub(super) fn cancel(&mut self, now: Nanos, out: &mut Vec<Action>) {
        if matches!(self.state, State::Ended(_)) {
            return;
        }
        if self.switch.committing() {
            self.switch.cancel_after();
            return;
        }
        self.state = State::Ended(MirrorEnd::Cancelled);
        self.leave_destination(now, out);
        out.push(Action::Ended(MirrorEnd::Cancelled));
    }
}
