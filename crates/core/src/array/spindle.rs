//! A spindle (or flash device): its queue, and what it does next.
//!
//! It serves what follows its last operation first, so that a stream runs at the
//! rate of the media, unless its oldest request has waited longer than the ageing
//! bound. So random reads break streams, which is why a copy slows down under load.
//! Destaging waits until no read is there, unless the write cache is pressed for room:
//! then the two take turns by age. It is never idle while something waits.
//!
//! A disk does one operation at a time. Flash does as many as it has channels; their bytes pass
//! one after the other, in the order in which the operations began.

use std::collections::VecDeque;

use crate::Nanos;

use super::raid::{ELEMENT, Element};

/// What lies so many bytes ahead of the head is reached by letting them turn by:
/// parity that a stream skips, two elements at most.
const GAP_MAX: u64 = 2 * ELEMENT;

/// How many requests of its queue it looks through for the one that follows: no
/// more than a disk of that time could hold itself (tagged queueing).
const LOOK: usize = 128;

/// Why a spindle works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A part of the request with this token.
    Request(u64),
    /// An element that somebody will want.
    Prefetch(Element),
    /// A part of a job of destaging.
    Destage(u64),
}

/// One operation of a spindle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    /// Since when it waits.
    pub(super) since: Nanos,
    pub(super) lun: u32,
    /// Where on the spindle, in the part of it that is the LUN's.
    pub(super) position: u64,
    pub(super) bytes: u64,
    pub(super) purpose: Purpose,
}

/// A spindle.
#[derive(Clone, Debug, Default)]
pub(super) struct Spindle {
    /// Behind the last operation.
    head: Option<(u32, u64)>,
    /// In the order of their coming.
    prompt: VecDeque<Operation>,
    destaging: VecDeque<Operation>,
    /// Under way, in the order in which they end.
    current: VecDeque<Operation>,
    /// When the last of them ends.
    ends: Nanos,
    /// How long it has worked, up to then.
    pub(super) busy: Nanos,
}

impl Spindle {
    pub(super) fn push(&mut self, operation: Operation) {
        match operation.purpose {
            Purpose::Destage(_) => self.destaging.push_back(operation),
            _ => self.prompt.push_back(operation),
        }
    }

    /// Operations that have not ended.
    pub(super) fn load(&self) -> usize {
        self.prompt.len() + self.destaging.len() + self.current.len()
    }

    /// The first of those under way; it has ended.
    pub(super) fn end(&mut self) -> Option<Operation> {
        self.current.pop_front()
    }

    /// When the operation ends that has just begun, given what it takes to get at its bytes and
    /// to move them.
    pub(super) fn ends(&mut self, now: Nanos, access: Nanos, transfer: Nanos) -> Nanos {
        let before = self.ends.max(now);
        self.ends = now.plus(access).max(before).plus(transfer);
        self.busy = self.busy.plus(self.ends.since(before));
        self.ends
    }

    /// The operation to do next, and the bytes that turn by before it if it follows
    /// the last one. Nothing if all of its channels are busy, or none waits.
    pub(super) fn begin(
        &mut self,
        now: Nanos,
        ageing: Nanos,
        pressed: bool,
        channels: u32,
    ) -> Option<(Operation, Option<u64>)> {
        if self.current.len() >= channels as usize {
            return None;
        }
        let since = |queue: &VecDeque<Operation>| queue.front().map(|first| first.since);
        let (prompt, destaging) = (since(&self.prompt), since(&self.destaging));
        let destage = match (prompt, destaging) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(prompt), Some(destaging)) => pressed && destaging < prompt,
        };
        let queue = if destage { &mut self.destaging } else { &mut self.prompt };
        let oldest = queue.front()?;
        let head = self.head;
        let overdue = now.since(oldest.since) > ageing;
        let at = if overdue {
            0
        } else {
            let follows = |operation: &Operation| gap(head, operation).is_some();
            queue.iter().take(LOOK).position(follows).unwrap_or(0)
        };
        let operation = queue.remove(at)?;
        let gap = gap(head, &operation);
        self.head = Some((operation.lun, operation.position + operation.bytes));
        self.current.push_back(operation);
        Some((operation, gap))
    }
}

/// The bytes between the head and the operation, if those simply turn by.
fn gap(head: Option<(u32, u64)>, operation: &Operation) -> Option<u64> {
    let (lun, position) = head?;
    let gap = operation.position.checked_sub(position)?;
    (lun == operation.lun && gap <= GAP_MAX).then_some(gap)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(token: u64, since: u64, position: u64) -> Operation {
        let (since, purpose) = (Nanos::from_millis(since), Purpose::Request(token));
        Operation { since, lun: 0, position, bytes: ELEMENT, purpose }
    }

    /// The tokens in the order in which they are served, one every millisecond.
    fn served(spindle: &mut Spindle, ageing: u64) -> Vec<u64> {
        let mut order = Vec::new();
        let mut now = Nanos::from_millis(10);
        while let Some((operation, _)) =
            spindle.begin(now, Nanos::from_millis(ageing), false, 1)
        {
            if let Purpose::Request(token) | Purpose::Destage(token) = operation.purpose {
                order.push(token);
            }
            spindle.end();
            now = now.plus(Nanos::from_millis(1));
        }
        order
    }

    fn two_streams() -> Spindle {
        let mut spindle = Spindle::default();
        for (token, at) in [(1, 0), (2, 1000), (3, 1), (4, 1001), (5, 2)] {
            spindle.push(read(token, 10, at * ELEMENT));
        }
        spindle
    }

    #[test]
    fn what_follows_is_served_first_until_the_oldest_is_overdue() {
        assert_eq!(served(&mut two_streams(), 100), [1, 3, 5, 2, 4]);
        assert_eq!(served(&mut two_streams(), 1), [1, 3, 2, 4, 5]);
        assert_eq!(served(&mut two_streams(), 0), [1, 2, 3, 4, 5]);
    }

    #[test]
    fn destaging_waits_for_reads_unless_room_is_short() {
        let destage = |token| Operation {
            purpose: Purpose::Destage(token),
            ..read(token, 1, 5000 * ELEMENT)
        };
        let mut spindle = two_streams();
        spindle.push(destage(9));
        assert_eq!(served(&mut spindle, 100), [1, 3, 5, 2, 4, 9]);
        let mut spindle = two_streams();
        spindle.push(destage(9));
        let begun = spindle.begin(Nanos::from_millis(10), Nanos::MAX, true, 1);
        assert_eq!(begun.unwrap().0.purpose, Purpose::Destage(9));
    }

    #[test]
    fn flash_gets_at_several_places_at_a_time_and_moves_their_bytes_in_turn() {
        let mut spindle = two_streams();
        let us = Nanos::from_micros;
        let ends: Vec<Nanos> = std::iter::from_fn(|| {
            spindle.begin(us(0), Nanos::MAX, false, 3)?;
            Some(spindle.ends(us(0), us(200), us(50)))
        })
        .collect();
        assert_eq!(ends, [us(250), us(300), us(350)]);
        assert_eq!((spindle.busy, spindle.load()), (us(350), 5));
        spindle.end();
        assert!(spindle.begin(us(250), Nanos::MAX, false, 3).is_some());
        assert_eq!(spindle.ends(us(250), us(200), us(50)), us(500));
    }
}
