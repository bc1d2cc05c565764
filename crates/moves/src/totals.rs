//! What all moves of disks came to since the daemon was started: bytes copied, time in
//! which they stood still, and how long guests were held at switch-overs.
//!
//! Totals only grow. They are in memory, and whoever reads them waits for nothing.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use sterna_api::GuardState;
use sterna_core::measure::Timed;
use sterna_core::{DiskId, Nanos};
use sterna_os::lock;
use sterna_state::{Blame, Pause};

use crate::{Job, Moves};

/// Why a move stands still, in one word. The words are an interface: monitors know them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StandsFor {
    /// The operator has paused it.
    Operator,
    /// The hours in which its guard lets it copy are over.
    Schedule,
    /// The destination has no room.
    DestinationFull,
    /// The destination fails.
    DestinationFails,
    /// The destination is away.
    DestinationAway,
    /// The destination does not keep what is written to it.
    DestinationDiffers,
    /// The source cannot be read, or its disk is not served.
    Source,
    /// Anything else: writes come too fast, or the state cannot be written.
    Other,
}

impl StandsFor {
    /// All of them.
    pub const ALL: [StandsFor; 8] = [
        StandsFor::Operator,
        StandsFor::Schedule,
        StandsFor::DestinationFull,
        StandsFor::DestinationFails,
        StandsFor::DestinationAway,
        StandsFor::DestinationDiffers,
        StandsFor::Source,
        StandsFor::Other,
    ];

    /// The word.
    pub fn word(self) -> &'static str {
        match self {
            StandsFor::Operator => "operator",
            StandsFor::Schedule => "schedule",
            StandsFor::DestinationFull => "destination_full",
            StandsFor::DestinationFails => "destination_fails",
            StandsFor::DestinationAway => "destination_away",
            StandsFor::DestinationDiffers => "destination_differs",
            StandsFor::Source => "source",
            StandsFor::Other => "other",
        }
    }
}

impl From<&Pause> for StandsFor {
    fn from(pause: &Pause) -> StandsFor {
        match pause.blame {
            // Without a hint somebody has asked for it.
            _ if pause.hint.is_none() => StandsFor::Operator,
            Blame::Full => StandsFor::DestinationFull,
            Blame::Destination => StandsFor::DestinationFails,
            Blame::Away => StandsFor::DestinationAway,
            Blame::Untrue => StandsFor::DestinationDiffers,
            Blame::Source => StandsFor::Source,
            Blame::Other => StandsFor::Other,
        }
    }
}

/// Bytes that were copied from a datastore to another.
pub(super) type Copied = Arc<AtomicU64>;

/// The totals.
#[derive(Debug, Default)]
pub struct MoveTotals {
    copied: Mutex<BTreeMap<(String, String), Copied>>,
    stood: Mutex<[Nanos; StandsFor::ALL.len()]>,
    held: Mutex<Timed>,
}

impl MoveTotals {
    /// What counts the bytes from one datastore to another.
    pub(super) fn between(&self, from: &str, to: &str) -> Copied {
        let pair = (from.to_owned(), to.to_owned());
        lock(&self.copied).entry(pair).or_default().clone()
    }

    /// A move has stood still for so long.
    fn stood(&self, why: StandsFor, span: Nanos) {
        let stood = &mut lock(&self.stood)[why as usize];
        *stood = stood.plus(span);
    }

    /// A guest was held for so long at a switch-over.
    pub(super) fn held(&self, span: Nanos) {
        lock(&self.held).record(span);
    }

    /// From which datastore to which, and how many bytes.
    pub fn copied(&self) -> Vec<((String, String), u64)> {
        let all = lock(&self.copied);
        all.iter().map(|(pair, copied)| (pair.clone(), copied.load(Relaxed))).collect()
    }

    /// For how long moves have stood still, all of them added up.
    pub fn stood_still(&self) -> [(StandsFor, Nanos); StandsFor::ALL.len()] {
        let stood = *lock(&self.stood);
        StandsFor::ALL.map(|why| (why, stood[why as usize]))
    }

    /// How long guests were held at switch-overs.
    pub fn holds(&self) -> Timed {
        *lock(&self.held)
    }
}

impl Moves {
    /// Counts the time since the last sample for a job that stands still.
    pub(super) fn count_standstill(&self, job: &Job, span: Nanos) {
        if let Some(why) = self.stands_for(job) {
            self.totals.stood(why, span);
        }
    }

    /// Why a job stands still, by what is in memory.
    fn stands_for(&self, job: &Job) -> Option<StandsFor> {
        let state = lock(&job.state);
        let closed = || {
            let fares = state.guarding.as_ref();
            fares.is_some_and(|it| it.state == Some(GuardState::Closed))
        };
        match state.stands {
            None if closed() => Some(StandsFor::Schedule),
            None if state.running => None,
            None => {
                drop(state);
                let served = lock(&self.storage.served);
                served
                    .get(&job.disk)
                    .is_some_and(Result::is_err)
                    .then_some(StandsFor::Source)
            }
            stands => stands,
        }
    }

    /// What guards at work have kept of what their applications had before, from 0 to 1.
    pub fn kept_by_guards(&self) -> Vec<(DiskId, f64)> {
        let kept = |job: &Arc<Job>| {
            let kept = lock(&job.state).guarding.as_ref()?.kept?;
            Some((job.disk, kept))
        };
        self.all_jobs().iter().filter_map(kept).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_without_a_hint_is_the_operators() {
        let mut pause = Pause { blame: Blame::Full, ..Pause::default() };
        assert_eq!(StandsFor::from(&pause), StandsFor::Operator);
        pause.hint = Some("make room".into());
        assert_eq!(StandsFor::from(&pause), StandsFor::DestinationFull);
    }

    #[test]
    fn each_reason_has_a_total_and_a_word_of_its_own() {
        let totals = MoveTotals::default();
        for (at, why) in StandsFor::ALL.into_iter().enumerate() {
            assert_eq!(why as usize, at);
            totals.stood(why, Nanos(1 + at as u64));
        }
        let stood = totals.stood_still();
        let mut words: Vec<&str> = stood.iter().map(|(why, _)| why.word()).collect();
        words.dedup();
        assert_eq!(words.len(), StandsFor::ALL.len());
        assert!(stood.iter().zip(1..).all(|((_, span), wanted)| *span == Nanos(wanted)));
    }

    #[test]
    fn moves_between_the_same_datastores_count_together() {
        let totals = MoveTotals::default();
        totals.between("fast", "slow").fetch_add(2, Relaxed);
        totals.between("fast", "slow").fetch_add(3, Relaxed);
        totals.between("slow", "fast").fetch_add(1, Relaxed);
        let pair = |from: &str, to: &str| (from.to_owned(), to.to_owned());
        let all = [(pair("fast", "slow"), 5), (pair("slow", "fast"), 1)];
        assert_eq!(totals.copied(), all);
    }
}
