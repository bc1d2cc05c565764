//! What is known of one place while it is served: its fingerprint, and how old that is.

use std::time::{Duration, Instant};

use sterna_core::Nanos;
use sterna_core::fingerprint::{Fingerprint, UNRECORDED};
use sterna_engine::Reach;

use crate::asker::Asker;

/// A place that has not answered is asked again after this time.
const AGAIN: Duration = Duration::from_secs(600);

/// The fingerprint of a place, and what is needed to say how old it is.
pub(super) struct Known {
    /// None: nobody has looked yet.
    fingerprint: Option<Fingerprint>,
    /// What had been written when it was taken, of this attachment.
    counted: Counted,
    /// What the state says was written since; none: it has not got this fingerprint yet.
    recorded: Option<u64>,
    taken: Instant,
    /// The place has not answered since.
    silent: Option<Instant>,
    pub(super) asker: Asker,
}

/// What was written to a disk since it was attached, and to a copy of it since that began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) bytes: u64,
    /// Discards and write-zeroes, of any length.
    pub(super) zeroes: u64,
    /// The migration whose copy it is, if it is one.
    pub(super) copy: Option<u64>,
    /// How the place is reached; nothing if it is not.
    pub(super) reach: Option<Reach>,
}

impl Counted {
    /// Bytes written since an earlier count. Zeroes may be anywhere.
    fn since(self, earlier: Counted) -> u64 {
        let is_known = self.copy == earlier.copy && self.zeroes == earlier.zeroes;
        match is_known && self.bytes >= earlier.bytes {
            true => self.bytes - earlier.bytes,
            false => u64::MAX,
        }
    }
}

impl Known {
    pub(super) fn new(fingerprint: Option<Fingerprint>) -> Known {
        Known {
            recorded: fingerprint.as_ref().map(|it| it.written),
            fingerprint,
            counted: Counted::default(),
            taken: Instant::now(),
            silent: None,
            asker: Asker::default(),
        }
    }

    /// What was written since it was taken.
    fn written(&self, counted: Counted) -> u64 {
        let before = self.fingerprint.as_ref().map_or(0, |it| it.written);
        before.saturating_add(counted.since(self.counted))
    }

    /// Whether to look again; `at_the_end` whether it is the last time.
    pub(super) fn is_due(&self, counted: Counted, at_the_end: bool) -> bool {
        let is_silent = self.silent.is_some_and(|since| since.elapsed() < AGAIN);
        if is_silent || counted.reach.is_none() {
            return false;
        }
        let (written, ago) = (self.written(counted), Nanos::from(self.taken.elapsed()));
        // A copy that has become the disk is looked at at once.
        let has_become = self.counted.copy != counted.copy;
        self.fingerprint.as_ref().is_none_or(|it| {
            it.is_due(written, ago) || has_become || at_the_end && written > 0
        })
    }

    /// It was taken, or the place has not answered. Gives what is to be recorded. `reach`: how
    /// the place is reached now. If the way was lost meanwhile, another place may have been
    /// looked at, and nobody has looked.
    pub(super) fn has_looked(
        &mut self,
        counted: Counted,
        reach: Option<Reach>,
        taken: Option<Fingerprint>,
    ) -> Option<Fingerprint> {
        if counted.reach.is_none() || counted.reach != reach {
            return None;
        }
        if taken.is_none() {
            self.silent = Some(Instant::now());
            return None;
        }
        let asker = self.asker.clone();
        *self = Known { counted, asker, recorded: None, ..Known::new(taken.clone()) };
        taken
    }

    /// The state has the fingerprint, with so many bytes that were written since.
    pub(super) fn is_recorded(&mut self, written: u64) {
        self.recorded = Some(written);
    }

    /// The fingerprint with what was written since, and `more`.
    pub(super) fn complete(&self, counted: Counted, more: u64) -> Option<Fingerprint> {
        let fingerprint = self.fingerprint.clone()?;
        let written = self.written(counted).saturating_add(more);
        Some(Fingerprint { written, is_complete: true, ..fingerprint })
    }

    /// The same while it is not all, if the state is to know of it; until that knows.
    pub(super) fn news(&self, counted: Counted) -> Option<Fingerprint> {
        let fingerprint = self.fingerprint.clone()?;
        let written = self.written(counted);
        let is_much = |recorded| written.saturating_sub(recorded) >= UNRECORDED;
        let is_news = self.recorded.is_none_or(is_much);
        is_news.then_some(Fingerprint { written, is_complete: false, ..fingerprint })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REACHED: Option<Reach> = Some(Reach { image: 1, ways_lost: 4 });

    #[test]
    fn what_was_looked_at_while_the_way_was_lost_may_be_another_place() {
        let mut known = Known::new(None);
        let taken = Some(Fingerprint::default());
        for reach in [None, Some(Reach { image: 1, ways_lost: 8 })] {
            assert_eq!(known.has_looked(count(0, 0), reach, taken.clone()), None);
            assert!(known.is_due(count(0, 0), false), "nobody has looked");
        }
        let out_of_reach = Counted { reach: None, ..count(0, 0) };
        assert!(!known.is_due(out_of_reach, false));
        assert_eq!(known.has_looked(out_of_reach, None, taken.clone()), None);
        assert_eq!(known.has_looked(count(0, 0), REACHED, taken.clone()), taken);
    }

    fn count(bytes: u64, zeroes: u64) -> Counted {
        Counted { bytes, zeroes, copy: None, reach: REACHED }
    }

    #[test]
    fn a_copy_that_has_become_the_disk_is_looked_at_at_once() {
        let copying = Counted { copy: Some(3), ..count(9, 0) };
        let mut known = Known::new(None);
        known.has_looked(copying, REACHED, Some(Fingerprint::default()));
        assert!(!known.is_due(copying, false));
        assert!(known.is_due(count(9, 0), false));
        // Until then, nobody knows what was written.
        let all = known.complete(count(9, 0), 0).expect("it is known");
        assert_eq!(all.written, u64::MAX);
    }

    #[test]
    fn what_is_written_counts_from_the_last_look_and_zeroes_may_be_anywhere() {
        assert_eq!(count(9, 2).since(count(4, 2)), 5);
        assert_eq!(count(9, 3).since(count(4, 2)), u64::MAX);
        // Attached anew, and nobody has looked since.
        assert_eq!(count(1, 2).since(count(4, 2)), u64::MAX);
    }

    #[test]
    fn a_place_that_nobody_has_looked_at_is_due_and_a_silent_one_waits() {
        let mut known = Known::new(None);
        assert!(known.is_due(count(0, 0), false));
        known.has_looked(count(0, 0), REACHED, None);
        assert!(!known.is_due(count(0, 0), false));
    }

    #[test]
    fn the_state_hears_of_each_gibibyte_once() {
        let mut known = Known::new(None);
        known.has_looked(count(7, 0), REACHED, Some(Fingerprint::default()));
        known.is_recorded(0);
        assert_eq!(known.news(count(6 + UNRECORDED, 0)), None);
        let news = known.news(count(7 + UNRECORDED, 0)).expect("that is much");
        assert_eq!((news.written, news.is_complete), (UNRECORDED, false));
        known.is_recorded(news.written);
        assert_eq!(known.news(count(8 + UNRECORDED, 0)), None);
        let all = known.complete(count(8 + UNRECORDED, 0), 5).expect("it is known");
        assert_eq!((all.written, all.is_complete), (UNRECORDED + 6, true));
    }

    #[test]
    fn what_the_state_could_not_take_is_news_again() {
        let mut known = Known::new(None);
        let taken = known.has_looked(count(7, 0), REACHED, Some(Fingerprint::default()));
        assert_eq!(known.news(count(7, 0)), taken, "nobody has recorded it");
        known.is_recorded(0);
        assert_eq!(known.news(count(7, 0)), None);
        let much = count(7 + UNRECORDED, 0);
        assert!(known.news(much).is_some() && known.news(much).is_some());
    }
}
