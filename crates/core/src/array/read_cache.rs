//! The read cache: elements that were fetched ahead of a stream.
//!
//! An element is *coming* (reads that want it wait for it) or *there*. What a stream
//! has read to its end is given up, which is how arrays keep room for what is ahead;
//! nothing else is kept, so reading the same place again costs again. Full, it lets
//! the one that was there for the longest go; what is coming stays.

use std::collections::VecDeque;

use crate::IdMap;

use super::raid::{ELEMENT, Element};

/// What the cache says of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lookup {
    /// It has it.
    There,
    /// It will have it; the one who asked is told then.
    Coming,
    /// It does not know it.
    Absent,
}

#[derive(Clone, Debug)]
enum Slot {
    /// For these requests, one of which reads it to its end.
    Coming { waiting: Vec<u64>, to_end: bool },
    /// Since that turn.
    There(u64),
}

/// The read cache.
#[derive(Clone, Debug)]
pub(super) struct ReadCache {
    capacity: usize,
    slots: IdMap<Element, Slot>,
    /// Those that are there, in the order of their coming, with their turn. Some
    /// have gone since.
    order: VecDeque<(u64, Element)>,
    turn: u64,
}

impl ReadCache {
    pub(super) fn new(bytes: u64) -> ReadCache {
        ReadCache {
            capacity: (bytes / ELEMENT) as usize,
            slots: IdMap::default(),
            order: VecDeque::new(),
            turn: 0,
        }
    }

    /// Makes room for an element that is fetched; false if there is none, or if it
    /// is known already.
    pub(super) fn expect(&mut self, element: Element) -> bool {
        if self.slots.contains_key(&element) {
            return false;
        }
        while self.slots.len() >= self.capacity {
            let Some((turn, oldest)) = self.order.pop_front() else { return false };
            if matches!(self.slots.get(&oldest), Some(Slot::There(since)) if *since == turn)
            {
                self.slots.remove(&oldest);
            }
        }
        self.slots.insert(element, Slot::Coming { waiting: Vec::new(), to_end: false });
        true
    }

    /// Looks for what the request `token` wants up to `end` of the element.
    pub(super) fn look(&mut self, element: Element, end: u64, token: u64) -> Lookup {
        match self.slots.get_mut(&element) {
            None => Lookup::Absent,
            Some(Slot::Coming { waiting, to_end }) => {
                waiting.push(token);
                *to_end |= end == ELEMENT;
                Lookup::Coming
            }
            Some(Slot::There(_)) => {
                if end == ELEMENT {
                    self.slots.remove(&element);
                }
                Lookup::There
            }
        }
    }

    /// The element has come; gives the requests that wait for it.
    pub(super) fn come(&mut self, element: Element) -> Vec<u64> {
        self.turn += 1;
        let there = Slot::There(self.turn);
        let Some(Slot::Coming { waiting, to_end }) = self.slots.insert(element, there)
        else {
            return Vec::new();
        };
        if to_end {
            self.slots.remove(&element);
        } else {
            self.order.push_back((self.turn, element));
            self.forget_gone();
        }
        waiting
    }

    /// Keeps the order from growing by what has gone.
    fn forget_gone(&mut self) {
        if self.order.len() > 2 * self.capacity {
            let slots = &self.slots;
            self.order.retain(|(turn, element)| {
                matches!(slots.get(element), Some(Slot::There(since)) if since == turn)
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element(number: u64) -> Element {
        Element { lun: 0, number }
    }

    #[test]
    fn what_is_coming_is_waited_for_and_what_was_read_is_given_up() {
        let mut cache = ReadCache::new(4 * ELEMENT);
        assert!(cache.expect(element(1)) && !cache.expect(element(1)));
        assert_eq!(cache.look(element(1), ELEMENT, 7), Lookup::Coming);
        assert_eq!(cache.come(element(1)), [7]);
        assert!(cache.expect(element(2)));
        assert_eq!(cache.come(element(2)), []);
        assert_eq!(cache.look(element(2), 4096, 8), Lookup::There);
        assert_eq!(cache.look(element(2), ELEMENT, 8), Lookup::There);
        assert_eq!(cache.look(element(2), ELEMENT, 8), Lookup::Absent);
    }

    #[test]
    fn a_full_cache_lets_the_oldest_go_and_never_what_is_coming() {
        let mut cache = ReadCache::new(2 * ELEMENT);
        for number in 1..=3 {
            assert!(cache.expect(element(number)));
            assert_eq!(cache.come(element(number)), []);
        }
        assert_eq!(cache.look(element(1), 1, 0), Lookup::Absent);
        assert_eq!(cache.look(element(2), 1, 0), Lookup::There);
        assert!(cache.expect(element(4)) && cache.expect(element(5)));
        assert!(!cache.expect(element(6)));
        assert!(!ReadCache::new(0).expect(element(1)));
    }
}
