//! Which of the things that could be done for a disk is advised.
//!
//! **Rule.** Advice promises a clear gain ([`WORTH`]), or there is none. Of several ways, the
//! one that leaves the least time is advised; of those that leave about as much, the one that
//! does the least harm. Whoever reads advice needs time to follow it: so it stays as long as
//! it promises something and no other way promises clearly more, and for a minute after it
//! was found last.
//!
//! A disk is sent to no datastore that would be over a bound with it, or that is full soon:
//! it would have to leave again.

use crate::Nanos;

/// Of the time that requests take, advice leaves this part at most. Less of a gain is within
/// what a load changes by itself.
pub(super) const WORTH: f64 = 0.8;
/// Advice that was given before stays while it leaves no more than this part.
const STILL_WORTH: f64 = 0.9;
/// Ways that leave parts of the time this close to each other are worth the same: what is
/// foreseen is no more exact.
const ALIKE: f64 = 0.1;
/// Other advice takes its place only if that leaves so much less of the time.
const CLEARLY: f64 = 0.2;
/// Advice that is found no more stands for so long: a cause, and with it what would help, may
/// be out of sight for some steps.
pub(super) const STANDS: Nanos = Nanos::from_secs(60);
/// A datastore that is full within a day takes no disk: it is moved away again tomorrow.
const FULL_SOON: Nanos = Nanos::from_secs(24 * 3600);

/// A way to help a disk.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer<W> {
    /// What to do.
    pub way: W,
    /// The part of the time that requests would still take.
    pub left: f64,
}

/// The advice that was given last.
#[derive(Clone, Debug, PartialEq)]
pub struct Given<W> {
    /// What to do.
    pub way: W,
    /// When it was found last.
    pub found: Nanos,
}

/// What is advised now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The offer at this place.
    Offer(usize),
    /// What was given before, in the same words.
    AsBefore,
    /// Nothing.
    Nothing,
}

/// Chooses among `offers`, of which the ones that do less harm come first.
pub fn choose<W: PartialEq>(
    now: Nanos,
    offers: &[Offer<W>],
    before: Option<&Given<W>>,
) -> Choice {
    let worth = || offers.iter().enumerate().filter(|(_, one)| one.left <= WORTH);
    let least = worth().map(|(_, one)| one.left).min_by(f64::total_cmp);
    let same = |one: &Offer<W>| before.is_some_and(|given| given.way == one.way);
    let stays = offers.iter().position(same).filter(|at| {
        let left = offers[*at].left;
        left <= STILL_WORTH && least.is_none_or(|least| least > left - CLEARLY)
    });
    let best = least.and_then(|least| {
        worth().find(|(_, one)| one.left <= least + ALIKE).map(|(at, _)| at)
    });
    match (stays.or(best), before) {
        (Some(at), _) => Choice::Offer(at),
        (None, Some(given))
            if now.since(given.found) < STANDS && !offers.iter().any(same) =>
        {
            Choice::AsBefore
        }
        _ => Choice::Nothing,
    }
}

/// A datastore with a disk that is to go there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Destination {
    /// The part of its room that would be taken.
    pub taken: f64,
    /// The 95th percentile of its response times then, if that is known.
    pub response: Option<Nanos>,
    /// When it is full at the rate at which it fills up, if it is.
    pub full_in: Option<Nanos>,
}

impl Destination {
    /// Whether the disk may go there, by the bounds for room and for response times.
    pub fn takes(&self, space: f64, response: Nanos) -> bool {
        self.taken <= space
            && self.response.is_none_or(|it| it <= response)
            && self.full_in.is_none_or(|full| full > FULL_SOON)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATER: Nanos = Nanos::from_secs(1_000);

    fn offer(way: &'static str, left: f64) -> Offer<&'static str> {
        Offer { way, left }
    }

    fn given(way: &'static str, ago_s: u64) -> Given<&'static str> {
        Given { way, found: Nanos::from_secs(1_000 - ago_s) }
    }

    #[test]
    fn a_tenth_of_the_time_is_no_gain_and_is_not_advised() {
        assert_eq!(choose(LATER, &[offer("move", 88.6 / 97.0)], None), Choice::Nothing);
        assert_eq!(choose(LATER, &[offer("move", 0.5)], None), Choice::Offer(0));
    }

    #[test]
    fn what_saves_more_is_advised_and_of_two_alike_what_does_less_harm() {
        let both = [offer("limit", 0.6), offer("move", 0.2)];
        assert_eq!(choose(LATER, &both, None), Choice::Offer(1));
        let alike = [offer("limit", 0.27), offer("move", 0.2)];
        assert_eq!(choose(LATER, &alike, None), Choice::Offer(0));
    }

    #[test]
    fn advice_stays_until_another_way_is_clearly_better_or_it_is_worth_nothing() {
        let before = given("limit", 5);
        let now = |limit, other| [offer("limit", limit), offer("move", other)];
        let chosen = |offers: &[_]| choose(LATER, offers, Some(&before));
        assert_eq!(chosen(&now(0.6, 0.45)), Choice::Offer(0), "not clearly better");
        assert_eq!(chosen(&now(0.85, 0.7)), Choice::Offer(0), "it still helps");
        assert_eq!(chosen(&now(0.6, 0.3)), Choice::Offer(1));
        assert_eq!(chosen(&now(0.95, 0.95)), Choice::Nothing);
    }

    #[test]
    fn advice_that_is_not_found_for_some_steps_stands_for_a_minute() {
        assert_eq!(choose(LATER, &[], Some(&given("limit", 30))), Choice::AsBefore);
        assert_eq!(choose(LATER, &[], Some(&given("limit", 60))), Choice::Nothing);
        let other = [offer("move", 0.5)];
        assert_eq!(choose(LATER, &other, Some(&given("limit", 90))), Choice::Offer(0));
    }

    #[test]
    fn a_datastore_that_is_full_soon_or_over_a_bound_takes_no_disk() {
        let small = Destination { taken: 0.5, response: None, full_in: None };
        let takes = |to: Destination| to.takes(0.8, Nanos::from_millis(20));
        assert!(takes(small));
        assert!(!takes(Destination { full_in: Some(Nanos::from_secs(1_860)), ..small }));
        assert!(!takes(Destination { taken: 0.81, ..small }));
        let slow = Some(Nanos::from_millis(21));
        assert!(!takes(Destination { response: slow, ..small }));
    }
}
