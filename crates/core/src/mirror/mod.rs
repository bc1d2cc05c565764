//! The mirror: how a disk moves while its guest goes on.
//!
//! # Rule
//!
//! The disk is divided into regions. The copier walks over them once and copies
//! each; a guest write to a region that is already equal on both
//! sides goes to both at the same time, so that it stays equal. When no region
//! is behind, the destination becomes the truth in one short, bounded step.
//!
//! # Invariants
//!
//! 1. The guest's answer is the source's answer. No failure, no slowness and no
//!    silence of the destination changes it, and none delays it longer than
//!    patience.
//! 2. A region counts as equal only if no byte of it can differ: every write
//!    that was in flight while it was copied makes the copy void.
//! 3. The copier never writes to a region on the destination while any write of
//!    the guest to it is in flight, not even an overdue one that the guest has
//!    long been answered for: older data never lands on newer.
//! 4. Two mirrored writes that overlap are never in flight together, so both
//!    sides see them in the same order.
//! 5. The region map is at any instant what a crash at that instant would need, and
//!    what a destination would need that forgets all it has not been made to keep.
//! 6. `Commit` is asked for only while no write is in flight, nothing is behind,
//!    and the destination is flushed; writes that come meanwhile are held and
//!    go to whichever side is the truth when the answer is known.
//!
//! # Special cases
//!
//! - A region that is written whenever its copy is in flight: after `ROUNDS_MAX`
//!   rounds it is *claimed*, and its writes wait for one small copy.
//! - A request that spans equal and other regions is mirrored whole; what is
//!   behind stays behind.
//! - Waiting has one bound for all its causes (an overlap, a claim, a slow
//!   destination): patience. Past it, the write goes to the source alone.
//! - When many destination writes are overdue, the destination is taken for
//!   stalled and new writes do not wait for it at all.
//!
//! # Failures
//!
//! What is believed of the destination, and when it is not believed any more, is in
//! `trust`. Whatever happens to the destination pauses the migration with its reason;
//! from then on nothing touches the destination, guest writes go to the source
//! alone, and what they touch falls behind. A crash at any moment leaves the map.
//! A map that cannot be kept for that moment any more pauses it as well.
//!
//! # The parts
//!
//! `guest` admits, mirrors and answers guest requests; `copy` walks over the disk, in a
//! `copy_order` that keeps away from the `streams` that the guest writes, `outcome` sees
//! to what jobs brought, `probe` to what of the source cannot be read (see `bad`), and
//! `verify` compares, all with the memory of `copier`; `pace` says how fast, and yields
//! to the guest; `converge` raises patience when the end does not come nearer; `trust`
//! says how far copies are believed, and has the destination flushed; `switch` makes the
//! switch-over; `control` pauses, resumes and cancels. `Mirror::handle` applies an event
//! and then lets each part do what has become possible; there is no other order in which
//! things happen.

mod ahead;
mod bad;
mod bits;
mod config;
mod control;
mod converge;
mod copier;
mod copy;
mod copy_order;
mod counted;
mod drain;
mod event;
mod flight;
mod guest;
mod idle_detector;
mod idle_gaps;
mod jobs;
mod late_errors;
mod map;
mod narrowing;
mod origin;
mod outcome;
mod pace;
mod places;
mod probe;
mod progress;
mod regions;
mod sectors;
mod source_losses;
mod step_table;
mod streams;
mod switch;
mod throughput;
mod tokens;
mod trust;
mod unflushed;
mod verify;

pub use config::{
    Allowance, Config, CopyMode, DESTINATION_TIMEOUT, FLUSH_EVERY, FLUSH_TIMEOUT,
    HOLD_BUDGET, PATIENCE, PATIENCE_RAISE_MAX, PATIENCE_STEP, REACH_TIMEOUT, REGION,
    SCAN_WINDOW, SECTOR, SEGMENT,
};
pub use counted::Counted;
pub use event::{
    Action, Commit, Control, Event, Fault, Job, JobId, JobKind, JobOutcome, MirrorEnd,
    Notice, Request, RequestId, RequestKind,
};
pub use map::{MemoryMap, RegionMap, Stored};
pub use origin::{
    Found, NOTED_LATE, Origin, Past, Present, Side, Storage, Suspicion, suspicion,
    suspicion_of,
};
pub use places::{Findings, LISTED_MAX, Listed, Places};
pub use progress::{PauseReason, Phase, Progress};
pub use sectors::{SECTORS_MAX, Sectors};
pub use step_table::CopyStep;
pub use trust::Doubt;

use ahead::Ahead;
use bad::Bad;
use converge::Converge;
use copier::Copier;
use flight::Flights;
use idle_detector::Guest;
use jobs::Jobs;
use late_errors::LateErrors;
use pace::Pace;
use regions::Regions;
use source_losses::SourceLosses;
use switch::Switch;

use crate::{Bytes, Nanos};

/// What the migration is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Running,
    Paused(PauseReason),
    Ended(MirrorEnd),
}

/// The state machine of one migration.
///
/// Synchronous and pure: `handle` takes the time and an event and adds actions
/// to a list. The price of that is that every wait is a state written by hand;
/// what it buys is that each order of events can be tried.
#[derive(Debug)]
pub struct Mirror<M> {
    config: Config,
    state: State,
    regions: Regions<M>,
    flights: Flights,
    jobs: Jobs,
    copier: Copier,
    ahead: Ahead,
    bad: Bad,
    pace: Pace,
    converge: Converge,
    switch: Switch,
    late_errors: LateErrors,
    source_losses: SourceLosses,
    /// The guest waits for requests that have not come here yet.
    guest_waits: bool,
    /// Since when the destination is out of reach, as far as that counts.
    out_of_reach: Option<Nanos>,
    /// Why what answers in its place is not used.
    unfit: Option<Fault>,
    /// When the destination is flushed next, if anything is unflushed.
    flush_at: Nanos,
    /// When the last event came: the map is stored on from then on.
    seen: Nanos,
}

impl<M: RegionMap> Mirror<M> {
    /// A mirror over `map`: fresh, or as a crash left it. It starts with the
    /// first event.
    ///
    /// # Panics
    ///
    /// If the map's number of regions is not the disk's, or a region's size is
    /// not a power of two.
    pub fn new(now: Nanos, config: Config, map: Counted<M>) -> Self {
        let regions = Regions::new(map, config.size, config.region);
        // Elsewhere holes are zeroed, which is work.
        let allocated = config.allocated.filter(|_| config.reads_zero);
        Mirror {
            config,
            state: State::Running,
            ahead: Ahead::new(config.size, allocated, regions.synced_bytes()),
            regions,
            flights: Flights::default(),
            jobs: Jobs::default(),
            copier: Copier::new(&config),
            bad: Bad::new(&config),
            pace: Pace::new(now, config.step, config.rate, config.allowance),
            converge: Converge::new(config.patience),
            switch: Switch::default(),
            late_errors: LateErrors::default(),
            source_losses: SourceLosses::default(),
            guest_waits: false,
            out_of_reach: None,
            unfit: None,
            flush_at: now.plus(config.flush_every),
            seen: now,
        }
    }

    /// A mirror that starts paused, as a daemon finds it after a restart.
    pub fn new_paused(
        now: Nanos,
        config: Config,
        map: Counted<M>,
        reason: PauseReason,
    ) -> Self {
        let mut mirror = Mirror::new(now, config, map);
        mirror.state = State::Paused(reason);
        mirror
    }

    /// Applies `event` at `now` and adds what is to be done to `out`. Actions
    /// are to be carried out in their order. Time never goes backwards.
    pub fn handle(&mut self, now: Nanos, event: Event, out: &mut Vec<Action>) {
        let came = match event {
            Event::Arrived(_) => !self.guest_waits,
            Event::GuestWaits(is) => is && !self.guest_waits,
            _ => false,
        };
        let answers = self.flights.answers();
        // Many events may come in one turn of the reactor, at one moment: one of them stores.
        if now > self.seen {
            self.regions.store_some();
        }
        self.seen = now;
        match event {
            Event::Arrived(request) => self.arrived(now, request, out),
            Event::GuestWaits(is) => self.guest_waits = is,
            Event::SourceDone { id, ok } => self.source_done(now, id, ok, out),
            Event::DestinationDone { id, result } => {
                self.destination_done(now, id, result, out);
            }
            Event::DestinationForgot => self.withdraw(now, Doubt::Unflushed, out),
            Event::SourceForgot(why) => self.source_forgot(now, why, out),
            Event::Doubted(doubt) => self.withdraw(now, doubt, out),
            Event::Unwatched => self.was_unwatched(),
            Event::DestinationInReach(is) => {
                self.out_of_reach = (!is).then(|| self.out_of_reach.unwrap_or(now));
            }
            Event::DestinationUnfit(why) => self.unfit = why,
            Event::DestinationSkipped { id } => self.destination_skipped(now, id, out),
            Event::JobOnSource { job, is } => self.job_on_source(now, job, is),
            Event::JobHeld { job, is } => self.jobs.set_held(now, job, is),
            Event::JobDone { job, outcome } => self.job_done(now, job, &outcome, out),
            Event::Flushed(result) => self.flushed(now, result, out),
            Event::SourceFlushed(ok) => self.source_flushed(now, ok, out),
            Event::Prepared(record) => self.prepared(now, record, out),
            Event::Sealed(result) => self.sealed(now, result, out),
            Event::Committed(commit) => self.committed(now, commit, out),
            Event::Control(control) => self.control(now, control, out),
            Event::Tick => {}
        }
        if !self.regions.is_kept() {
            // A kill would leave a map that nobody may believe.
            self.pause(now, PauseReason::RegionMap, out);
        }
        self.expire(now, out);
        self.tell_due_errors(now, out);
        self.start_waiting(now, out);
        self.advance_switch(now, out);
        self.pace.set_response(self.flights.response());
        let waits = self.guest_waits || self.flights.unanswered() > 0;
        let guest = Guest {
            came,
            answered: self.flights.answers() > answers,
            waits: waits || self.switch.keeps_any() || self.late_errors.is_waited_for(),
        };
        self.pace.look(now, guest, !self.jobs.is_empty());
        self.copy_more(now, out);
        self.stop_for_bad(now, out);
        self.begin_switch(now, out);
        self.flush_more(now, out);
    }

    /// When `handle` must be called again at the latest, if nothing happens.
    pub fn deadline(&mut self) -> Option<Nanos> {
        let running = self.running();
        let copying = running && !self.switch.holding();
        let timeout = self.config.destination_timeout;
        let destination =
            self.flights.oldest_destination().map(|since| since.plus(timeout));
        [
            self.flights.next_deadline(),
            self.late_errors.deadline(),
            running.then(|| self.switch.deadline(self.config.hold_budget)).flatten(),
            copying.then(|| self.copier.wake()).flatten(),
            copying.then(|| self.converge.deadline()).flatten(),
            self.flush_due(),
            // Not in this turn of the reactor: others are to have theirs.
            self.regions.any_to_store().then(|| self.seen.plus(Nanos(1))),
            destination.filter(|_| running),
            self.lost_at().filter(|_| running),
            self.jobs.oldest().map(|(since, _)| since.plus(timeout)).filter(|_| running),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Whether the guest's writes are being held for the switch-over.
    pub fn holding(&self) -> bool {
        self.switch.holding()
    }

    /// Whether a mirrored write still has to go to the destination. If not, one
    /// that the driver could not start yet is best left out (`DestinationSkipped`).
    pub fn awaits_destination(&self, id: RequestId) -> bool {
        self.flights.awaits_destination(id)
    }

    /// Whether nothing is in flight any more; after `Ended`, the driver may then
    /// let go of the mirror and of the image that lost.
    pub fn is_idle(&self) -> bool {
        self.has_left_destination() && self.switch.is_idle()
    }

    /// Whether nothing is in flight any more that may concern the destination. What is
    /// awaited of the source besides is its flush, which may never come back.
    pub fn has_left_destination(&self) -> bool {
        let left = self.switch.has_left_destination();
        self.flights.is_empty() && self.jobs.is_empty() && left
    }

    /// Whether the source has lost something since the two sides were compared. A daemon
    /// after this one is to compare them, and after the switch-over the disk's clients are to
    /// be told once more.
    pub fn owes_comparison(&self) -> bool {
        self.source_losses.owes()
    }

    /// Whether a commit is under way after which the disk's clients are to be told: if the
    /// daemon is killed meanwhile, the next one has to tell them.
    pub fn commit_owes(&self) -> bool {
        self.switch.committing() && self.owes_comparison()
    }

    /// The region map, for the tests that look at what a crash would find.
    pub fn map(&self) -> &M {
        self.regions.map()
    }

    /// What the migration is doing.
    pub fn phase(&self) -> Phase {
        match self.state {
            State::Running if self.switch.under_way() || self.switch.is_put_off() => {
                Phase::SwitchingOver
            }
            State::Running if self.copier.verifying() => Phase::Verifying,
            State::Running => Phase::Copying,
            State::Paused(reason) => Phase::Paused(reason),
            State::Ended(MirrorEnd::Completed) => Phase::Completed,
            State::Ended(MirrorEnd::Cancelled) => Phase::Cancelled,
        }
    }

    /// The migration in figures, as of the last event.
    pub fn progress(&self) -> Progress {
        self.progress_at(self.seen)
    }

    /// The migration in figures. `now` is not before the last event.
    pub fn progress_at(&self, now: Nanos) -> Progress {
        let phase = self.phase();
        let rate = self.pace.throughput().rate();
        let synced = self.regions.synced_bytes().saturating_sub(self.bad.bytes());
        let late = self.copier.late(self.regions.behind());
        let (to_copy, to_compare) = self.left_to_do(self.config.size - synced, late);
        let left = to_copy + to_compare;
        // Nobody knows when a switch-over succeeds that did not fit into its time, or waits.
        let is_slow = self.switch.undone() > 0 || self.switch.waits_long(now);
        let is_foreseen = !(phase == Phase::SwitchingOver && is_slow);
        let steady = self.pace.throughput().steady();
        let eta = steady
            .filter(|_| self.state == State::Running && is_foreseen)
            .map(|rate| Nanos((left as f64 / rate * 1e9) as u64));
        Progress {
            phase,
            total: Bytes(self.config.size),
            synced: Bytes(synced),
            copied: Bytes(self.copier.copied),
            verified: self.verified().map(Bytes),
            to_copy: Bytes(to_copy),
            to_compare: Bytes(to_compare),
            late_regions: late + self.bad.regions_in_the_way(),
            unreadable: Bytes(self.bad.bytes()),
            rate,
            guest_idle: self.pace.guest_idle(),
            passed: Bytes(self.pace.passed()),
            mirror_wait: self.flights.mirror_wait(),
            mirrored_writes: self.flights.mirrored_writes(),
            eta,
            held: self.switch.held(),
            undone: self.switch.undone(),
            patience: self.converge.patience(),
        }
    }

    /// Bytes that take time until the end: to be copied, of the `behind` that are not equal
    /// (of which so many regions are late), and to be compared.
    fn left_to_do(&self, behind: u64, late: u64) -> (u64, u64) {
        let to_copy = self.ahead.to_copy(behind, late * self.config.region);
        let to_compare = self.verified().map_or(0, |verified| {
            let again = self.copier.again.len() as u64 * self.config.region;
            let unverified = self.config.size.saturating_sub(verified);
            self.ahead.to_compare(behind, unverified, again)
        });
        (to_copy, to_compare)
    }

    /// What somebody should know of the two images.
    pub fn findings(&self) -> Findings {
        Findings { bad: self.bad.listed(), differing: self.differing() }
    }

    /// When a destination that is out of reach counts as lost. Not during a commit:
    /// nothing is asked of it then, and the commit's answer decides.
    fn lost_at(&self) -> Option<Nanos> {
        let since = self.out_of_reach.filter(|_| !self.switch.committing())?;
        Some(since.plus(self.config.reach_timeout))
    }

    /// Whether guest writes may go to the destination at all.
    fn running(&self) -> bool {
        self.state == State::Running
    }
}
