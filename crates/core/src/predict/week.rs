//! What a move will take that begins at another time, by what its application did in the
//! hours of the last week.
//!
//! **Rule.** Who works in a rhythm does so by the week. For an hour to come the same hour a
//! week before counts; if that was not seen, the same hour of the other days, on average.
//! A move that takes hours goes through them one after the other, and copies in each what
//! it can beside that hour's application. An hour that nobody has seen is taken to be like
//! the one before it, and after a week the week begins anew.
//!
//! **Known gaps.** Hours are those of the sun: where clocks are set within the week, the
//! hours behind that are off by one. What other disks on the two datastores do counts only
//! as far as the copy's speed was learned beside it.

use std::collections::BTreeMap;

use super::share::Work;
use super::speed::Speed;
use super::{FIXED, FIXED_DOUBT, LEARNING_DOUBT, LONGEST, Move, NINE_OF_TEN, Prediction};
use crate::Nanos;

/// Seconds of an hour, of a day and of a week.
const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;
const WEEK: u64 = 7 * DAY;

/// Nothing goes better than is likely, and nothing worse.
const LIKELY: f64 = 0.0;

/// The beginnings that are compared: all hours of the week to come.
const BEGINNINGS: u64 = WEEK / HOUR;

/// What an application did in an hour.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hour {
    /// When the hour began (seconds since 1970); a multiple of 3600.
    pub at: u64,
    /// What it did.
    pub work: Work,
}

/// The hours of an application that were seen, by their beginnings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Week {
    hours: BTreeMap<u64, Work>,
}

impl Week {
    /// Made of these, in whatever order.
    pub fn new(hours: Vec<Hour>) -> Week {
        Week { hours: hours.into_iter().map(|hour| (hour.at, hour.work)).collect() }
    }

    /// What the application will do at a moment (seconds since 1970); nothing if that hour
    /// was seen on no day.
    pub fn work(&self, moment: u64) -> Option<Work> {
        let (newest, _) = self.hours.last_key_value()?;
        let mut hour = moment / HOUR * HOUR;
        // What is farther ahead than a week is as what is a week before it.
        hour -= hour.saturating_sub(newest + WEEK).div_ceil(WEEK) * WEEK;
        let before = |span: u64| self.hours.get(&hour.checked_sub(span)?).copied();
        before(WEEK).or_else(|| mean((1..=7).filter_map(|days| before(days * DAY))))
    }

    /// The hour of the week to come in which the move is over soonest, if it begins then,
    /// and what it will take. Nothing if no hour was seen.
    pub fn best(&self, one: &Move, speed: &Speed, now: u64) -> Option<(u64, Prediction)> {
        let next = (now / HOUR + 1) * HOUR;
        let beginnings = (0..BEGINNINGS).map(|ahead| next + ahead * HOUR);
        let took = beginnings.filter_map(|at| {
            Some((at, self.copying(one, speed, at, self.work(at)?, LIKELY)))
        });
        let (at, _) = took.min_by_key(|(at, took)| (*took, *at))?;
        Some((at, self.predict(one, speed, at)?))
    }

    /// What a move will take that begins at a moment (seconds since 1970); nothing if that
    /// hour was never seen.
    pub fn predict(&self, one: &Move, speed: &Speed, at: u64) -> Option<Prediction> {
        let begins = self.work(at)?;
        let beside = speed.beside(&begins, &one.terms);
        let (share, learning) = (beside.share, beside.learning(one, &begins));
        let took = |luck: f64| self.copying(one, speed, at, begins, luck);
        let whole = |luck: f64, holes: Nanos, fixed: Nanos| {
            took(luck).plus(holes).plus(fixed).min(LONGEST)
        };
        let holes = one.past_holes();
        let doubt = (speed.doubt.hypot(share.doubt) * NINE_OF_TEN).exp();
        let copying = Nanos(took(LIKELY).0 / one.passes());
        let rate = one.bytes as f64 / copying.as_secs_f64().max(1e-9);
        Some(Prediction {
            likely: whole(LIKELY, holes, FIXED.plus(learning)),
            least: whole(NINE_OF_TEN, holes, Nanos(learning.0 / LEARNING_DOUBT)),
            most: whole(
                -NINE_OF_TEN,
                one.through_holes(beside.free() / doubt),
                FIXED.plus(FIXED_DOUBT).plus(Nanos(learning.0 * LEARNING_DOUBT)),
            ),
            copying,
            rate,
            share: (rate / speed.likely).min(1.0),
            kept: share.kept,
            weakest: Prediction::weakest(one, &share, beside.free()),
        })
    }

    /// How long all bytes take from a moment on, with whoever is there then, where
    /// everything goes so many deviations better than is likely.
    fn copying(
        &self,
        one: &Move,
        speed: &Speed,
        at: u64,
        begins: Work,
        luck: f64,
    ) -> Nanos {
        let bytes = one.bytes.saturating_mul(one.passes());
        let (mut left, mut seconds, mut work) = (bytes as f64, 0.0, begins);
        let longest = LONGEST.as_secs_f64();
        while left > 0.0 && seconds < longest {
            let now = at + seconds as u64;
            work = self.work(now).unwrap_or(work);
            let beside = speed.beside(&work, &one.terms);
            let times = (speed.doubt.hypot(beside.share.doubt) * luck).exp();
            let rate = one.terms.limited(beside.free() * times);
            let here = (HOUR - now % HOUR) as f64;
            let takes = (left / rate).min(here);
            seconds += takes;
            left = if takes < here { 0.0 } else { left - rate * here };
        }
        super::seconds(seconds)
    }
}

/// The mean of what was done; nothing of nothing.
fn mean(those: impl Iterator<Item = Work>) -> Option<Work> {
    let those: Vec<Work> = those.collect();
    let of = |figure: fn(&Work) -> f64| {
        those.iter().map(figure).sum::<f64>() / those.len() as f64
    };
    (!those.is_empty()).then(|| Work {
        outstanding: of(|work| work.outstanding),
        response: super::seconds(of(|work| work.response.as_secs_f64())),
        there: of(|work| work.there),
        writes: of(|work| work.writes),
    })
}
