//! How fast the copier goes.
//!
//! # Rule
//!
//! Without a guard it goes as fast as it can: chunk and depth are the [`StepTable`]'s.
//! The operator's limit holds in any case. With an [`Allowance`] it yields, by itself
//! and at once, request by request, so that the loop which sets the allowance need
//! not be quick:
//!
//! - While the guest is active ([`IdleDetector`]) the copier has the busy rate, and its
//!   chunks are small, because a guest's request waits behind whole chunks: no more
//!   than the rate brings while the guest waits for one request, so that it finds one
//!   chunk and not many. Nor smaller: where a head has to move, a chunk costs the guest
//!   what a request does, however short it is. What is in flight is no more than the
//!   rate brings in a few ms. A loop that knows what costs the guest least says that
//!   ([`CopyMode`]): the shortest chunks, or much at once.
//! - While the guest is idle the copier has the idle rate, which is usually none, and
//!   what is at the source is done within a stated time ([`Drain`]): so long the
//!   guest's first request waits.
//!
//! # Special cases
//!
//! - Where guests wait for a region's copy (it is claimed), neither rate holds it up.
//! - A busy rate of zero copies only while the guest is idle. A guest that never is
//!   keeps such a migration from ending.
//! - While the copier is held back its throughput says nothing about chunk and depth.

use super::drain::Drain;
use super::idle_detector::{Guest, IdleDetector};
use super::step_table::{CopyStep, StepTable};
use super::throughput::Throughput;
use super::tokens::Tokens;
use super::{Allowance, CopyMode};
use crate::Nanos;

/// The smallest chunk; with a low limit, chunks shrink so that the copier stays
/// smooth instead of bursting.
const CHUNK_MIN: u64 = 64 << 10;

/// The largest chunk while the guest is active: a disk that moves its head for each
/// gains little from longer ones.
const CHUNK_BUSY: u64 = 1 << 20;

/// Chunks in flight where all come at once: of the longest ones, what the copier's
/// memory holds.
const DEPTH_BURST: usize = 12;

/// What may be in flight while the guest is active: what the rate brings in this time.
/// Twice what a chunk takes on a disk array (5 ms to read, 1 ms to write), so that a
/// healthy device makes use of the rate; a device that takes longer is overloaded,
/// and then the rate is not.
const FLIGHT_BUSY: Nanos = Nanos::from_millis(12);

/// The same of short chunks, where a loop compares what the guest gets beside them and
/// without them: so long a loaded array takes to answer. What that costs the guest, the
/// loop sees.
const FLIGHT_SHORT: Nanos = Nanos::from_millis(60);

/// The limit's burst: as much as this span allows.
const BURST: Nanos = Nanos::from_millis(100);

/// The burst of an allowance. A burst is felt by the guest as it comes, so it is
/// only what a timer that fires late would cost.
const BURST_BUSY: Nanos = Nanos::from_millis(4);

/// How fast the copier goes.
#[derive(Debug)]
pub(super) struct Pace {
    steps: StepTable,
    limit: Tokens,
    /// Whether there is an allowance at all.
    guarded: bool,
    busy: Tokens,
    idle: Tokens,
    mode: CopyMode,
    idle_detector: IdleDetector,
    /// Whether the guest was active when it was last looked at.
    active: bool,
    /// What its requests take.
    response: Nanos,
    drain: Drain,
    /// Something was held back in the present window.
    held_back: bool,
    throughput: Throughput,
    /// Bytes that chunks went over, all in all.
    passed: u64,
}

impl Pace {
    pub(super) fn new(
        now: Nanos,
        step: Option<CopyStep>,
        limit: Option<u64>,
        allowance: Allowance,
    ) -> Self {
        let mut pace = Pace {
            steps: StepTable::new(step),
            limit: Tokens::open(now, BURST),
            guarded: false,
            busy: Tokens::open(now, BURST_BUSY),
            idle: Tokens::open(now, BURST_BUSY),
            mode: CopyMode::Even,
            idle_detector: IdleDetector::new(now),
            active: true,
            response: Nanos(0),
            drain: Drain::new(),
            held_back: false,
            throughput: Throughput::new(now),
            passed: 0,
        };
        pace.set_limit(now, limit);
        pace.allow(now, allowance);
        pace
    }

    /// Sets or lifts the operator's limit in bytes per second; in force at once.
    pub(super) fn set_limit(&mut self, now: Nanos, limit: Option<u64>) {
        self.limit.set_rate(now, limit.map(|rate| rate.max(1)));
        self.throughput.changes();
    }

    /// Sets or lifts the allowance; in force at once.
    pub(super) fn allow(&mut self, now: Nanos, allowance: Allowance) {
        self.guarded = allowance != Allowance::default();
        if self.mode != allowance.mode {
            // What one mode owes is not the other's to pay.
            self.busy = Tokens::open(now, BURST_BUSY);
            self.mode = allowance.mode;
        }
        match allowance.burst() {
            Some(rate) => self.busy.give(now, rate, CopyMode::SAMPLE),
            None => self.busy.set_rate(now, allowance.busy),
        }
        self.idle.set_rate(now, allowance.idle);
        self.idle_detector.leave_idle_gaps(allowance.leaves_idle_gaps);
    }

    /// What a guest's request takes, of late.
    pub(super) fn set_response(&mut self, response: Nanos) {
        self.response = response;
    }

    /// Looks at the guest, with something of the copier in flight or not.
    pub(super) fn look(&mut self, now: Nanos, guest: Guest, copies: bool) {
        self.idle_detector.look(now, guest, copies);
        self.active = self.idle_detector.is_active(now);
        let lull = self.throughput.look(now);
        self.measured(lull);
    }

    /// How long the guest was idle, all in all.
    pub(super) fn guest_idle(&self) -> Nanos {
        self.idle_detector.idle()
    }

    /// Bytes that a chunk should have now.
    pub(super) fn chunk(&self) -> u64 {
        let mut chunk = self.steps.chunk();
        if let Some(rate) = self.busy_rate() {
            let brings = |span: Nanos| {
                let bytes = rate as f64 * span.as_secs_f64();
                (bytes.min(CHUNK_BUSY as f64) as u64).next_power_of_two()
            };
            chunk = match self.mode {
                CopyMode::Even => brings(self.response),
                CopyMode::ShortChunks => CHUNK_MIN,
                CopyMode::Burst => brings(CopyMode::SAMPLE),
            };
        } else if self.guarded && !self.active {
            chunk = chunk.min(self.drain.chunk());
        }
        if let Some(rate) = self.limit.rate() {
            // A tenth of a second's allowance, as a power of two.
            chunk = chunk.min((rate / 10).next_power_of_two());
        }
        chunk.max(CHUNK_MIN)
    }

    /// Chunks that may be in flight now, whatever they are for.
    pub(super) fn depth(&self) -> usize {
        if self.active && self.mode == CopyMode::Burst {
            DEPTH_BURST
        } else {
            self.steps.depth()
        }
    }

    /// Whether a chunk may start now, with so many bytes in flight, of which so many
    /// are at the source. If not, when; without a time, when something has happened.
    pub(super) fn allows(
        &mut self,
        now: Nanos,
        in_flight: u64,
        at_source: u64,
    ) -> Result<(), Option<Nanos>> {
        let limited = self.limit.ready(now);
        let allowed = limited.and_then(|()| self.guard(now, in_flight, at_source));
        self.held_back |= allowed.is_err();
        allowed
    }

    fn guard(
        &mut self,
        now: Nanos,
        in_flight: u64,
        at_source: u64,
    ) -> Result<(), Option<Nanos>> {
        if !self.guarded {
            return Ok(());
        }
        if !self.active {
            self.idle.ready(now)?;
            return self.room(at_source, self.drain.window());
        }
        let Some(rate) = self.busy.rate() else { return Ok(()) };
        let flight = match self.mode {
            CopyMode::Even => FLIGHT_BUSY,
            CopyMode::ShortChunks => FLIGHT_SHORT,
            CopyMode::Burst => CopyMode::SAMPLE,
        };
        let most = rate as f64 * flight.as_secs_f64();
        let ready = self.busy.ready(now).and_then(|()| self.room(in_flight, most as u64));
        // The guest may be idle before that.
        ready.map_err(|later| {
            [later, self.idle_detector.idle_at()].into_iter().flatten().min()
        })
    }

    /// Whether one more chunk fits beside the bytes in use.
    fn room(&self, used: u64, most: u64) -> Result<(), Option<Nanos>> {
        if used == 0 || used + self.chunk() <= most { Ok(()) } else { Err(None) }
    }

    /// A chunk of `bytes` starts.
    pub(super) fn charge(&mut self, bytes: u64) {
        self.limit.charge(bytes);
        if self.guarded {
            self.current().charge(bytes);
        }
    }

    /// The source has read a chunk of so many bytes in `took`, with `at_source` left.
    pub(super) fn read(&mut self, bytes: u64, took: Nanos, at_source: u64) {
        // With the guest at the device the time says little about the copier.
        if self.guarded && !self.active {
            self.drain.read(bytes, took, at_source);
        }
    }

    /// A chunk of `bytes` has ended, of which `worked` took time; `written` of them went over
    /// the wire. What had to be read to be found empty cost the guest as much as any other.
    pub(super) fn done(
        &mut self,
        now: Nanos,
        bytes: u64,
        worked: u64,
        written: u64,
        was_read: bool,
    ) {
        let zeroes = bytes.saturating_sub(written);
        self.limit.refund(zeroes);
        if self.guarded && !was_read {
            self.current().refund(zeroes);
        }
        self.passed += bytes;
        let window = self.throughput.done(now, worked);
        self.measured(window);
    }

    /// A window is over, if it has a rate.
    fn measured(&mut self, rate: Option<f64>) {
        let Some(rate) = rate else { return };
        if self.held_back {
            self.steps.restart();
        } else {
            self.steps.measured(rate);
        }
        self.held_back = false;
    }

    /// The copier stood still until `now`: a window must not span the gap.
    pub(super) fn restart(&mut self, now: Nanos) {
        self.throughput.restart(now);
        self.steps.restart();
    }

    /// Bytes that the copier got through, all in all.
    pub(super) fn passed(&self) -> u64 {
        self.passed
    }

    /// What the copier gets through.
    pub(super) fn throughput(&self) -> &Throughput {
        &self.throughput
    }

    /// The busy rate, where that is what counts now.
    fn busy_rate(&self) -> Option<u64> {
        self.busy.rate().filter(|_| self.guarded && self.active)
    }

    fn current(&mut self) -> &mut Tokens {
        if self.active { &mut self.busy } else { &mut self.idle }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn pace(busy: Option<u64>, idle: Option<u64>) -> Pace {
        Pace::new(Nanos(0), None, None, Allowance { busy, idle, ..Allowance::default() })
    }

    #[test]
    fn a_second_in_which_the_guest_is_busy_hardly_changes_the_time_left() {
        let mut pace = pace(None, None);
        let mut now = Nanos(0);
        let mut copy = |pace: &mut Pace, seconds, rate| {
            for _ in 0..seconds * 2 {
                now = now.plus(Nanos::from_millis(500));
                pace.done(now, rate / 2, rate / 2, rate / 2, true);
            }
        };
        copy(&mut pace, 60, 100 * MIB);
        copy(&mut pace, 1, 10 * MIB);
        let steady = pace.throughput().steady().expect("it goes on") / MIB as f64;
        assert!(
            pace.throughput().rate() < 60.0 * MIB as f64
                && (90.0..100.0).contains(&steady),
            "{steady}"
        );
        // What lasts is followed.
        copy(&mut pace, 60, 10 * MIB);
        let steady = pace.throughput().steady().expect("it goes on") / MIB as f64;
        assert!((10.0..20.0).contains(&steady), "{steady}");
        // A new limit counts at once.
        pace.set_limit(now, Some(5 * MIB));
        assert_eq!(pace.throughput().steady(), None);
    }

    #[test]
    fn a_low_limit_makes_chunks_small() {
        let pace = Pace::new(Nanos(0), None, Some(MIB), Allowance::default());
        assert_eq!(pace.chunk(), 128 << 10);
    }

    #[test]
    fn without_an_allowance_the_guest_is_not_looked_at() {
        let mut pace = pace(None, None);
        pace.look(Nanos(0), Guest::COMES, false);
        assert_eq!(pace.allows(Nanos(0), 100 * MIB, 100 * MIB), Ok(()));
    }

    #[test]
    fn a_copier_that_stands_still_is_said_to() {
        let mut pace = pace(Some(20 * MIB), None);
        pace.done(Nanos::from_secs(1), MIB, MIB, MIB, true);
        assert!(pace.throughput().rate() > 0.0);
        pace.allow(Nanos::from_secs(1), Allowance::IDLE_ONLY);
        for second in 2..30 {
            pace.look(Nanos::from_secs(second), Guest::COMES, false);
        }
        assert!(pace.throughput().rate() < 1000.0, "{}", pace.throughput().rate());
    }

    #[test]
    fn a_waiting_guest_holds_back_what_has_no_busy_rate() {
        let mut pace = pace(Some(0), None);
        pace.look(Nanos(1), Guest::COMES, false);
        assert_eq!(pace.allows(Nanos(1), 0, 0), Err(None), "until it is answered");
        pace.look(Nanos(2), Guest::QUIET, false);
        let Err(Some(later)) = pace.allows(Nanos(2), 0, 0) else {
            panic!("it is active")
        };
        pace.look(later, Guest::QUIET, false);
        assert_eq!(pace.allows(later, 0, 0), Ok(()), "the guest is idle");
    }

    #[test]
    fn chunks_are_small_while_the_guest_is_active() {
        let mut pace = pace(Some(20 * MIB), None);
        pace.look(Nanos(0), Guest::COMES, false);
        assert_eq!(pace.chunk(), CHUNK_MIN);
        pace.look(Nanos(0), Guest::QUIET, false);
        pace.look(Nanos::from_secs(1), Guest::QUIET, false);
        assert!(pace.chunk() >= 256 << 10);
    }

    #[test]
    fn chunks_are_what_the_rate_brings_while_the_guest_waits_for_a_request() {
        let mut pace = pace(Some(20 * MIB), None);
        pace.look(Nanos(0), Guest::COMES, false);
        pace.set_response(Nanos::from_millis(1));
        assert_eq!(pace.chunk(), CHUNK_MIN);
        pace.set_response(Nanos::from_millis(16));
        assert_eq!(pace.chunk(), 512 << 10);
        pace.set_response(Nanos::from_secs(1));
        assert_eq!(pace.chunk(), CHUNK_BUSY);
    }

    #[test]
    fn what_comes_at_once_comes_once_each_time_it_is_told() {
        let told = |busy| Allowance {
            busy: Some(busy),
            mode: CopyMode::Burst,
            ..Allowance::default()
        };
        let mut pace = Pace::new(Nanos(0), None, None, told(40 * MIB));
        pace.look(Nanos(0), Guest::COMES, false);
        let mut in_flight = 0;
        let mut start = |pace: &mut Pace| {
            while pace.allows(Nanos(1), in_flight, in_flight).is_ok() {
                assert_eq!(pace.chunk(), MIB);
                pace.charge(MIB);
                in_flight += MIB;
            }
            std::mem::take(&mut in_flight)
        };
        assert_eq!(start(&mut pace), 4 * MIB, "a tenth of a second's");
        assert_eq!(pace.allows(Nanos::from_millis(90), 0, 0), Err(None));
        pace.allow(Nanos::from_millis(100), told(40 * MIB));
        assert_eq!(start(&mut pace), 4 * MIB);
        pace.allow(Nanos::from_millis(200), told(2 * MIB));
        assert_eq!(pace.chunk(), 256 << 10, "no more than comes at once");
    }

    #[test]
    fn what_was_read_to_be_found_empty_is_not_free() {
        for (was_read, free) in [(true, false), (false, true)] {
            let mut pace = pace(Some(MIB), None);
            pace.look(Nanos(0), Guest::COMES, false);
            pace.charge(MIB);
            pace.done(Nanos(1), MIB, MIB, 0, was_read);
            assert_eq!(pace.allows(Nanos(1), 0, 0).is_ok(), free);
        }
    }

    #[test]
    fn what_one_mode_owes_is_not_the_others_to_pay() {
        let told =
            |mode| Allowance { busy: Some(10 * MIB), mode, ..Allowance::default() };
        let mut pace = Pace::new(Nanos(0), None, None, told(CopyMode::Burst));
        pace.look(Nanos(0), Guest::COMES, false);
        pace.charge(8 * MIB);
        pace.allow(Nanos(0), told(CopyMode::ShortChunks));
        assert_eq!(pace.allows(Nanos(0), 0, 0), Ok(()));
    }

    #[test]
    fn what_is_in_flight_is_bounded_in_both_modes() {
        let mut pace = pace(Some(20 * MIB), None);
        pace.look(Nanos(0), Guest::COMES, false);
        assert_eq!(pace.allows(Nanos(0), 0, 0), Ok(()), "one chunk in any case");
        assert!(pace.allows(Nanos(0), 256 << 10, 0).is_err());
        pace.look(Nanos(0), Guest::QUIET, false);
        pace.look(Nanos::from_secs(1), Guest::QUIET, false);
        assert!(pace.allows(Nanos::from_secs(1), MIB, 0).is_ok(), "not the source's");
        assert!(pace.allows(Nanos::from_secs(1), MIB, MIB).is_err());
    }

    #[test]
    fn of_the_limit_and_the_allowance_the_smaller_counts() {
        let mut pace = Pace::new(
            Nanos(0),
            None,
            Some(MIB),
            Allowance { busy: Some(50 * MIB), ..Allowance::default() },
        );
        for guest in [Guest::COMES, Guest::QUIET] {
            pace.look(Nanos::from_secs(1), guest, false);
            let mut now = Nanos::from_secs(2);
            let mut flowed = 0;
            while now < Nanos::from_secs(12) {
                match pace.allows(now, 0, 0) {
                    Ok(()) => {
                        flowed += pace.chunk();
                        pace.charge(pace.chunk());
                    }
                    Err(later) => now = later.expect("both rates bring more"),
                }
            }
            assert!((flowed as f64 / (10.0 * MIB as f64)) < 1.05, "{flowed}");
            pace = Pace::new(
                Nanos(0),
                None,
                Some(MIB),
                Allowance { busy: Some(50 * MIB), ..Allowance::default() },
            );
        }
    }
}
