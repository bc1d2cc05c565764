//! Whether the guest is active or idle: it is active from the coming of a request until
//! it has been quiet for a while after the last answer.
//!
//! How long is "a while" follows the guest. One that sends a request every 2 ms is
//! not idle after 3 ms, and gaps like that are of no use to the copier: each end of
//! a gap is a request that finds the copier at the device. So the guest counts as
//! idle only after many of its own pauses between an answer and the next request.
//!
//! A gap in which the guest did count as idle is taken for no longer than that: a
//! guest that comes back after a minute is not slow for the next minute. One that
//! does so again and again is found to be slow, gap by gap.
//!
//! Its pauses may be of two kinds: a few requests, one after the other, and then a while
//! of other work. Whether such short gaps are used, [`IdleGaps`] says.

use super::idle_gaps::{self, IdleGaps};
use crate::Nanos;

/// The guest is idle after so many of its usual pauses. Where pauses are random, one
/// in e^8 (3000) is longer: a p99 does not see the requests that end those.
const PAUSES: f64 = 8.0;

/// At least: a database that thinks between two commits is not idle.
const QUIET_MIN: Nanos = Nanos::from_millis(5);

/// At most: of a gap of seconds, this is less than 10 %.
const QUIET_MAX: Nanos = idle_gaps::LONG;

/// The part of a new pause in the usual one.
const SMOOTHING: f64 = 0.125;

/// What is seen of the guest at a moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Guest {
    /// A request has just come.
    pub(super) came: bool,
    /// One has just been answered.
    pub(super) answered: bool,
    /// It waits for one.
    pub(super) waits: bool,
}

/// Whether the guest is active.
#[derive(Debug)]
pub(super) struct IdleDetector {
    waiting: bool,
    /// When it was last seen to wait for something.
    seen: Nanos,
    /// Its usual pause, nanoseconds.
    pause: f64,
    gaps: IdleGaps,
    /// No short gap is used.
    leaves_idle_gaps: bool,
    /// Whether the present gap, or the last, is used as soon as the guest is idle.
    uses: bool,
    /// When it came back from a short gap, since when it has had no answer, and whether
    /// it found the copier there.
    back: Option<(Nanos, bool)>,
    /// How long it has been idle, all in all.
    idle: Nanos,
    counted: Nanos,
}

impl IdleDetector {
    pub(super) fn new(now: Nanos) -> Self {
        IdleDetector {
            waiting: false,
            seen: now,
            // Not known: whoever asks at all may ask every 30 ms, and is active then.
            pause: QUIET_MAX.0 as f64 / PAUSES,
            gaps: IdleGaps::new(),
            leaves_idle_gaps: false,
            uses: true,
            back: None,
            idle: Nanos(0),
            counted: now,
        }
    }

    /// Whether short gaps are left to the guest, from the next one on.
    pub(super) fn leave_idle_gaps(&mut self, leaves: bool) {
        self.leaves_idle_gaps = leaves;
    }

    /// Looks at the guest, with something of the copier in flight or not.
    pub(super) fn look(&mut self, now: Nanos, guest: Guest, copies: bool) {
        let mut idle = Nanos(0);
        if !self.waiting {
            idle = now.since(self.until().max(self.counted));
        }
        self.idle = self.idle.plus(idle);
        self.gaps.earn(Nanos(now.since(self.counted).0.saturating_sub(idle.0)));
        self.counted = now;
        if guest.came && !self.waiting {
            self.returns(now, copies);
        }
        if guest.came {
            let pause = if self.waiting { Nanos(0) } else { now.since(self.seen) };
            let pause = pause.min(self.usual()).0 as f64;
            self.pause += SMOOTHING * (pause - self.pause);
        }
        if guest.answered
            && let Some((since, used)) = self.back.take()
        {
            self.gaps.ended(used, now.since(since));
        }
        if guest.came || guest.waits || self.waiting {
            self.seen = now;
        }
        if self.waiting && !guest.waits {
            self.uses = !self.leaves_idle_gaps && self.gaps.may_use();
        }
        self.waiting = guest.waits;
    }

    /// It comes back: from a gap, if it could have counted as idle, and from a short one
    /// unless that was used in any case. One that could be used and was not, because the
    /// copier had nothing to do, tells nothing; nor does one that is left because the
    /// processors are busy, and all takes longer.
    fn returns(&mut self, now: Nanos, copies: bool) {
        let gap = now.since(self.seen);
        let tells =
            gap < idle_gaps::LONG && (copies || !self.uses) && !self.leaves_idle_gaps;
        self.back = None;
        if gap >= self.usual() {
            match tells {
                true => self.back = Some((now, self.uses)),
                false => self.gaps.next(),
            }
        }
    }

    /// Whether it is active at `now`.
    pub(super) fn is_active(&self, now: Nanos) -> bool {
        self.waiting || now < self.until()
    }

    /// When it will be idle, if nothing comes. Far away while it waits for something.
    pub(super) fn idle_at(&self) -> Option<Nanos> {
        (!self.waiting).then(|| self.until())
    }

    /// How long it has been idle, all in all, when last looked at.
    pub(super) fn idle(&self) -> Nanos {
        self.idle
    }

    fn until(&self) -> Nanos {
        self.seen.plus(self.quiet())
    }

    fn quiet(&self) -> Nanos {
        if self.uses { self.usual() } else { idle_gaps::LONG }
    }

    /// After so long without a request it counts as idle, if gaps may be used.
    fn usual(&self) -> Nanos {
        Nanos((self.pause * PAUSES) as u64).clamp(QUIET_MIN, QUIET_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The copier has something in flight.
    const COPIES: bool = true;

    impl Guest {
        pub(in crate::mirror) const COMES: Guest =
            Guest { came: true, answered: false, waits: true };
        pub(in crate::mirror) const HAS_ITS_ANSWER: Guest =
            Guest { came: false, answered: true, waits: false };
        pub(in crate::mirror) const QUIET: Guest =
            Guest { came: false, answered: false, waits: false };
    }

    /// A guest that sends a request every `gap` for `seconds`, each answered after
    /// a millisecond. Gives how long it was idle.
    fn idle(detector: &mut IdleDetector, from: Nanos, gap: Nanos, seconds: u64) -> Nanos {
        let (mut now, before) = (from, detector.idle());
        while now < from.plus(Nanos::from_secs(seconds)) {
            detector.look(now, Guest::COMES, COPIES);
            now = now.plus(Nanos::from_millis(1));
            detector.look(now, Guest::HAS_ITS_ANSWER, COPIES);
            now = now.plus(gap);
        }
        Nanos(detector.idle().0 - before.0)
    }

    #[test]
    fn a_guest_with_steady_pauses_is_active_all_the_time() {
        for gap in [1, 4, 20, 100, 200] {
            let mut detector = IdleDetector::new(Nanos(0));
            let gap = Nanos::from_millis(gap);
            idle(&mut detector, Nanos(0), gap, 10);
            let later = idle(&mut detector, Nanos::from_secs(20), gap, 10);
            let first = Nanos::from_secs(11); // The ten seconds between the two.
            assert!(later < first, "{gap}: idle for {later}");
            let last = idle(&mut detector, Nanos::from_secs(31), gap, 10);
            assert!(last < Nanos::from_millis(1100), "{gap}: idle for {last}");
        }
    }

    #[test]
    fn of_the_gaps_of_a_bursty_guest_nine_tenths_are_used() {
        let mut detector = IdleDetector::new(Nanos(0));
        for cycle in 0..20 {
            let from = Nanos::from_secs(5 * cycle);
            idle(&mut detector, from, Nanos::from_micros(200), 2);
        }
        let part = detector.idle().as_secs_f64() / (19.0 * 3.0);
        assert!(part > 0.98, "{part} of the gaps");
    }

    #[test]
    fn a_guest_that_asks_in_clusters_seldom_finds_the_copier_there() {
        let mut detector = IdleDetector::new(Nanos(0));
        let (mut now, mut found, mut waited) = (Nanos(0), 0, Nanos(0));
        let clusters = 1000;
        for _ in 0..clusters {
            let cost =
                if detector.is_active(now) { Nanos(0) } else { Nanos::from_millis(3) };
            found += u32::from(cost > Nanos(0));
            waited = waited.plus(cost);
            for request in 0..20 {
                detector.look(now, Guest::COMES, COPIES);
                let cost = if request == 0 { cost } else { Nanos(0) };
                now = now.plus(Nanos::from_millis(1)).plus(cost);
                detector.look(now, Guest::HAS_ITS_ANSWER, COPIES);
            }
            now = now.plus(Nanos::from_millis(40));
        }
        assert!(found > 0, "it is tried");
        let part = waited.as_secs_f64() / now.as_secs_f64();
        assert!(part < 0.015, "{found} times, {part} of the time");
    }

    #[test]
    fn of_a_guest_that_computes_only_long_gaps_are_used() {
        let mut detector = IdleDetector::new(Nanos(0));
        detector.leave_idle_gaps(true);
        let gap = Nanos::from_millis(240);
        // Twenty requests in a row, then a short gap; and at the end a long one.
        for cluster in 0..100 {
            let from = Nanos::from_millis(280 * cluster);
            for request in 0..20 {
                let at = from.plus(Nanos::from_millis(2 * request));
                detector.look(at, Guest::COMES, COPIES);
                detector.look(at.plus(Nanos(1)), Guest::HAS_ITS_ANSWER, COPIES);
            }
        }
        assert_eq!(detector.idle(), Nanos(0));
        let end = Nanos::from_millis(28_000);
        assert!(detector.is_active(end) && !detector.is_active(end.plus(gap)));
    }

    #[test]
    fn a_guest_that_waits_is_active_however_long() {
        let mut detector = IdleDetector::new(Nanos(0));
        detector.look(Nanos(1), Guest::COMES, COPIES);
        assert!(detector.is_active(Nanos::from_secs(60)));
        detector.look(Nanos::from_secs(60), Guest::HAS_ITS_ANSWER, COPIES);
        assert!(detector.is_active(Nanos::from_secs(60).plus(Nanos::from_millis(4))));
        assert!(!detector.is_active(Nanos::from_secs(61)));
    }
}
