//! Guest requests: admitted, mirrored, answered.

use super::flight::Side;
use super::{Action, Fault, Mirror, PauseReason, Request, RequestId, RequestKind};
use super::{RegionMap, State};
use crate::Nanos;

/// So many overdue destination writes make the destination count as stalled:
/// further writes do not wait for it. Few, because each of them is a guest
/// request that waited its whole patience in vain; more than one, because any
/// device hiccups. Those that could not even be sent count, too: with long writes
/// the memory for mirrored ones is used up by fewer than these.
const STALLED_OVERDUE: usize = 8;

impl<M: RegionMap> Mirror<M> {
    pub(super) fn arrived(
        &mut self,
        now: Nanos,
        request: Request,
        out: &mut Vec<Action>,
    ) {
        match self.state {
            State::Ended(super::MirrorEnd::Completed) => {
                out.push(Action::Moved(request.id));
            }
            // Both images hold the same, so what changes nothing need not wait.
            _ if self.switch.holding() && request.kind == RequestKind::Write => {
                self.switch.hold(now, request);
            }
            _ => self.admit(now, now, request, out),
        }
    }

    /// Takes a request in that arrived at `arrived`: starts it or lets it wait.
    pub(super) fn admit(
        &mut self,
        now: Nanos,
        arrived: Nanos,
        request: Request,
        out: &mut Vec<Action>,
    ) {
        self.flights.insert(arrived, request);
        if !self.try_start(now, request, out) {
            let deadline = arrived.plus(self.converge.patience());
            self.flights.wait(request.id, deadline);
        }
    }

    /// Starts the request unless it has to wait. Says whether it was started.
    fn try_start(&mut self, now: Nanos, request: Request, out: &mut Vec<Action>) -> bool {
        if request.kind != RequestKind::Write || !self.running() {
            self.launch(now, request, false, out);
            return true;
        }
        if self.claimed(request) {
            return false;
        }
        let mirrored = self.to_be_mirrored(request);
        if mirrored && self.overlaps_mirrored(request) {
            return false;
        }
        if self.is_stalled() {
            self.converge.write_in_vain();
        }
        self.launch(now, request, mirrored, out);
        true
    }

    /// Starts the request past its patience, whatever it waited for.
    fn force(&mut self, now: Nanos, request: Request, out: &mut Vec<Action>) {
        self.converge.write_in_vain();
        let mirrored = self.running()
            && self.to_be_mirrored(request)
            && !self.overlaps_mirrored(request);
        self.launch(now, request, mirrored, out);
    }

    fn to_be_mirrored(&self, request: Request) -> bool {
        !self.is_stalled()
            && self.regions.of(request.range).any(|r| self.regions.is_equal(r))
    }

    /// Whether the destination has so much to do that no write waits for it.
    fn is_stalled(&self) -> bool {
        self.flights.overdue() >= STALLED_OVERDUE
    }

    fn claimed(&self, request: Request) -> bool {
        self.copier.has_claims()
            && self.regions.of(request.range).any(|r| self.copier.is_claimed(r))
    }

    /// Whether a mirrored write is in flight that shares bytes with `request`.
    /// Overdue ones do not count: their regions are behind, and are copied anew
    /// only after they have ended.
    fn overlaps_mirrored(&self, request: Request) -> bool {
        self.regions.of(request.range).any(|region| {
            self.regions.flights(region).iter().any(|id| {
                let other = self.flights.get(*id);
                other.destination == Side::Pending
                    && !other.overdue
                    && other.request.range.overlaps(request.range)
                    || other.source == Side::Pending
                        && other.destination != Side::Idle
                        && other.request.range.overlaps(request.range)
            })
        })
    }

    fn launch(
        &mut self,
        now: Nanos,
        request: Request,
        mirrored: bool,
        out: &mut Vec<Action>,
    ) {
        let id = request.id;
        let flight = self.flights.get_mut(id);
        flight.started = now;
        flight.source = Side::Pending;
        if mirrored {
            flight.destination = Side::Pending;
            self.flights.destination_starts(now, id);
        }
        out.push(Action::Source(id));
        if mirrored {
            out.push(Action::Destination(id));
        }
        if request.kind == RequestKind::Write {
            let regions = self.regions.of(request.range);
            self.regions.write_starts(id, request.range, mirrored);
            self.jobs.touch(&regions);
            self.copier.touch(request.range, &regions);
        }
    }

    pub(super) fn source_done(
        &mut self,
        now: Nanos,
        id: RequestId,
        ok: bool,
        out: &mut Vec<Action>,
    ) {
        let patience = self.converge.patience();
        let flight = self.flights.get_mut(id);
        flight.source = Side::Done;
        let request = flight.request;
        let waited = flight.started.since(flight.arrived);
        if request.kind == RequestKind::Flush {
            self.source_has_flushed(now, ok, out);
        }
        if !ok && request.kind == RequestKind::Write {
            // Nobody knows what the source holds now; the copier will read it.
            self.regions.write_spoils(request.range);
            self.bad.write_failed(self.regions.of(request.range));
            self.answer_error(now, id, out);
        }
        if ok && request.kind == RequestKind::Write {
            self.heal(request.range);
        }
        let flight = self.flights.get(id);
        if flight.destination == Side::Pending && !flight.overdue && ok {
            let left = patience.since(waited);
            if left > Nanos(0) {
                self.flights.set_deadline(id, Some(now.plus(left)));
                self.flights.get_mut(id).source_done = Some(now);
                return;
            }
            self.lose_patience(id);
        }
        self.answer(now, id, out);
        self.land(id);
    }

    pub(super) fn destination_done(
        &mut self,
        now: Nanos,
        id: RequestId,
        result: Result<(), Fault>,
        out: &mut Vec<Action>,
    ) {
        if result.is_ok() {
            self.flights.destination_works();
        }
        self.destination_leaves(now, id, result.is_ok(), out);
        if let Err(fault) = result {
            self.destination_failed(now, fault, out);
        }
    }

    /// A mirrored write went to the source alone after all.
    pub(super) fn destination_skipped(
        &mut self,
        now: Nanos,
        id: RequestId,
        out: &mut Vec<Action>,
    ) {
        self.flights.never_sent(id);
        self.destination_leaves(now, id, false, out);
    }

    /// The destination has no more part in a write, which it has done or has not.
    fn destination_leaves(
        &mut self,
        now: Nanos,
        id: RequestId,
        done: bool,
        out: &mut Vec<Action>,
    ) {
        let flight = self.flights.get_mut(id);
        flight.destination = Side::Done;
        let range = flight.request.range;
        if !done {
            self.regions.write_spoils(range);
        }
        if self.flights.get(id).source == Side::Done {
            self.answer(now, id, out);
            self.land(id);
        }
    }

    /// The guest waits for the destination no longer.
    pub(super) fn lose_patience(&mut self, id: RequestId) {
        self.converge.write_in_vain();
        self.flights.set_overdue(id);
        self.flights.set_deadline(id, None);
        let range = self.flights.get(id).request.range;
        self.regions.write_spoils(range);
    }

    /// Answers the guest, once.
    pub(super) fn answer(&mut self, now: Nanos, id: RequestId, out: &mut Vec<Action>) {
        if self.flights.answered(now, id) {
            out.push(Action::Answer(id));
        }
    }

    /// Lets go of the request if both sides are done with it.
    fn land(&mut self, id: RequestId) {
        let flight = self.flights.get(id);
        if flight.source == Side::Pending || flight.destination == Side::Pending {
            return;
        }
        let request = flight.request;
        if request.kind == RequestKind::Write {
            self.regions.write_lands(id, request.range);
        }
        self.flights.remove(id);
    }

    /// What is past its time: writes that waited long enough, a destination that
    /// was out of reach for too long, and images that did not answer for too long.
    pub(super) fn expire(&mut self, now: Nanos, out: &mut Vec<Action>) {
        while let Some(id) = self.flights.take_due(now) {
            let flight = self.flights.get(id);
            if flight.source == Side::Idle {
                let request = flight.request;
                self.flights.waits_no_more(id);
                self.force(now, request, out);
            } else {
                self.lose_patience(id);
                self.answer(now, id, out);
                self.land(id);
            }
        }
        if !self.running() {
            return;
        }
        let timeout = self.config.destination_timeout;
        let late = |since: Nanos| now.since(since) >= timeout;
        let write = self.flights.oldest_destination().filter(|since| late(*since));
        let job = self.jobs.oldest().filter(|(since, _)| late(*since));
        if self.lost_at().is_some_and(|at| now >= at) {
            self.destination_failed(now, self.unfit.unwrap_or(Fault::Lost), out);
            return;
        }
        let reason = if write.is_some() || job.is_some_and(|(_, on_source)| !on_source) {
            PauseReason::DestinationTimedOut(timeout)
        } else if job.is_some() {
            PauseReason::SourceTimedOut(timeout)
        } else {
            return;
        };
        self.pause(now, reason, out);
    }

    /// Starts what waited, as far as it need not wait any more. In the order of
    /// arrival; one that still waits does not keep back the ones behind it.
    pub(super) fn start_waiting(&mut self, now: Nanos, out: &mut Vec<Action>) {
        let mut at = 0;
        while let Some(&id) = self.flights.waiting().get(at) {
            let request = self.flights.get(id).request;
            if self.try_start(now, request, out) {
                self.flights.waits_no_more(id);
            } else {
                at += 1;
            }
        }
    }
}
