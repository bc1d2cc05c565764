//! When Storage DRS looks, and when it acts.
//!
//! It looks [`LOOKS`] times in each period, and acts with the last of these looks, on
//! datastores that were over the same bound in all of them: what a load does for a moment
//! is no reason to move a disk. What is too full does not wait for the period's end: room
//! is asked for every few seconds, and what has crossed its bound and is over it in the
//! next look, too, has all of them acted on at once.
//!
//! Before anything has been watched for as long as loads are taken from, nobody acts.

use std::collections::BTreeMap;

use super::Over;
use sterna_core::Nanos;

/// How many times in a period it looks, and so how many looks a bound must be exceeded.
pub const LOOKS: u32 = 3;

/// How often room is asked for, where the period is not shorter.
const ROOM_EVERY: Nanos = Nanos::from_secs(10);

/// A look is not sooner after the one before: less has nothing new in it.
const LOOK_LEAST: Nanos = Nanos::from_secs(1);

/// Looks at room in which a datastore must be too full: it does not fluctuate.
const ROOM_LOOKS: u32 = 2;

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Nothing yet.
    Nothing,
    /// Ask the datastores for their room.
    Room,
    /// Look at room and response times.
    Look,
}

/// The looks of Storage DRS, by what a datastore goes by.
#[derive(Clone, Debug)]
pub struct Cycle<K> {
    every: Nanos,
    /// When it looks next.
    look: Nanos,
    /// When it asks for room next.
    room: Nanos,
    /// Looks since it acted.
    looks: u32,
    /// Looks in which a datastore was over a bound, without one between in which it was
    /// not.
    over: BTreeMap<(K, Over), u32>,
    /// The same for looks at room alone; those that were acted on stay until they are
    /// within the bound.
    full: BTreeMap<K, u32>,
}

impl<K: Ord + Clone> Cycle<K> {
    /// A cycle that begins now. Loads are those of a `window`.
    pub fn new(now: Nanos, every: Nanos, window: Nanos) -> Cycle<K> {
        let mut cycle = Cycle {
            every,
            look: now,
            room: now,
            looks: 0,
            over: BTreeMap::new(),
            full: BTreeMap::new(),
        };
        // The last look of the first period is when a window has been watched.
        let first = cycle.between().max(window.since(cycle.rest_of_period()));
        cycle.look = now.plus(first);
        cycle.room = now.plus(cycle.between_rooms());
        cycle
    }

    /// From one look to the next.
    fn between(&self) -> Nanos {
        Nanos(self.every.0 / u64::from(LOOKS)).max(LOOK_LEAST)
    }

    /// From the first look of a period to the last.
    fn rest_of_period(&self) -> Nanos {
        Nanos(self.between().0 * u64::from(LOOKS - 1))
    }

    fn between_rooms(&self) -> Nanos {
        self.between().min(ROOM_EVERY)
    }

    /// What is due now.
    pub fn due(&self, now: Nanos) -> Due {
        if now >= self.look {
            Due::Look
        } else if now >= self.room {
            Due::Room
        } else {
            Due::Nothing
        }
    }

    /// When it looks next at everything.
    pub fn next_look(&self) -> Nanos {
        self.look
    }

    /// When it acts next, unless something is too full before.
    pub fn next_act(&self) -> Nanos {
        let more = u64::from(LOOKS - self.looks.min(LOOKS - 1) - 1);
        self.look.plus(Nanos(self.between().0 * more))
    }

    /// It has looked, and these were over a bound. Says whether it acts now.
    pub fn looked(&mut self, now: Nanos, over: &[(K, Over)]) -> bool {
        self.look = now.plus(self.between());
        self.over.retain(|key, _| over.contains(key));
        for key in over {
            *self.over.entry(key.clone()).or_default() += 1;
        }
        self.looks += 1;
        let acts = self.looks >= LOOKS;
        if acts {
            self.looks = 0;
        }
        acts
    }

    /// It has asked for room, and these were too full. Says whether it acts now.
    pub fn roomed(&mut self, now: Nanos, full: &[K]) -> bool {
        self.room = now.plus(self.between_rooms());
        self.full.retain(|key, _| full.contains(key));
        let mut acts = false;
        for key in full {
            let looks = self.full.entry(key.clone()).or_default();
            *looks = looks.saturating_add(1);
            acts |= *looks == ROOM_LOOKS;
        }
        acts
    }

    /// What it was to act on at once could not be looked at: it is with the next look at
    /// room.
    pub fn roomed_in_vain(&mut self) {
        for looks in self.full.values_mut().filter(|looks| **looks == ROOM_LOOKS) {
            *looks -= 1;
        }
    }

    /// Whether a datastore has been over a bound for long enough to be acted on.
    pub fn is_held(&self, datastore: &K, over: Over) -> bool {
        let key = (datastore.clone(), over);
        let full = || self.full.get(datastore).is_some_and(|looks| *looks >= ROOM_LOOKS);
        self.over.get(&key).is_some_and(|looks| *looks >= LOOKS)
            || over == Over::Space && full()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Nanos = Nanos::from_secs(60);

    fn at(seconds: u64) -> Nanos {
        Nanos::from_secs(seconds)
    }

    #[test]
    fn it_acts_with_the_third_look_on_what_was_over_in_all_of_them() {
        let mut cycle = Cycle::new(at(0), MINUTE, at(10));
        assert_eq!(cycle.due(at(20)), Due::Look);
        let (slow, late) = (("slow", Over::Latency), ("late", Over::Latency));
        assert!(!cycle.looked(at(20), &[slow]));
        assert_eq!(cycle.next_act(), at(60));
        assert!(!cycle.looked(at(40), &[slow, late]));
        assert!(cycle.looked(at(60), &[slow, late]));
        assert!(cycle.is_held(&"slow", Over::Latency));
        assert!(!cycle.is_held(&"late", Over::Latency), "two looks are too few");
        assert!(!cycle.is_held(&"slow", Over::Space));
        assert!(!cycle.looked(at(80), &[late]), "a period has begun");
        assert!(!cycle.is_held(&"slow", Over::Latency), "it was within its bound");
    }

    #[test]
    fn it_does_not_act_before_a_window_was_watched() {
        let cycle: Cycle<&str> = Cycle::new(at(0), MINUTE, at(3600));
        assert_eq!(cycle.next_act(), at(3600));
        assert_eq!(cycle.due(at(20)), Due::Room);
    }

    #[test]
    fn what_has_become_too_full_is_acted_on_at_once_and_once() {
        let mut cycle = Cycle::new(at(0), at(3600), at(3600));
        assert_eq!((cycle.due(at(9)), cycle.due(at(10))), (Due::Nothing, Due::Room));
        assert!(!cycle.roomed(at(10), &["full"]));
        assert!(cycle.roomed(at(20), &["full"]));
        assert!(cycle.is_held(&"full", Over::Space));
        assert!(!cycle.roomed(at(30), &["full"]), "it was acted on");
        assert!(!cycle.roomed(at(40), &[]));
        assert!(!cycle.is_held(&"full", Over::Space));
        assert!(!cycle.roomed(at(50), &["full"]));
        assert!(cycle.roomed(at(60), &["full"]));
    }

    #[test]
    fn what_could_not_be_looked_at_is_acted_on_with_the_next_look_at_room() {
        let mut cycle = Cycle::new(at(0), at(3600), at(3600));
        assert!(!cycle.roomed(at(10), &["full"]));
        assert!(cycle.roomed(at(20), &["full"]));
        cycle.roomed_in_vain();
        assert!(cycle.roomed(at(30), &["full"]));
        assert!(!cycle.roomed(at(40), &["full"]), "it was acted on");
        cycle.roomed_in_vain();
        assert!(!cycle.roomed(at(50), &["full"]), "that was long ago");
    }
}
