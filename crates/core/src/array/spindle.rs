//! A spindle: its queue, and what it does next.
//!
//! It serves what follows its last operation first, so that a stream runs at the
//! rate of the media, unless its oldest request has waited longer than the ageing
//! bound. So random reads break streams, which is why a copy slows down under load.
//! Destaging waits until no read is there, unless the write cache is pressed for room:
//! then the two take turns by age. It is never idle while something waits.

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
    current: Option<Operation>,
    /// How long it has worked, up to the end of the current operation.
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
        self.prompt.len() + self.destaging.len() + usize::from(self.current.is_some())
    }

    /// What was under way; it has ended.
    pub(super) fn end(&mut self) -> Option<Operation> {
        self.current.take()
    }

    /// The operation to do next, and the bytes that turn by before it if it follows
    /// the last one. Nothing if one is under way or none waits.
    pub(super) fn begin(
        &mut self,
        now: Nanos,
        ageing: Nanos,
        pressed: bool,
    ) -> Option<(Operation, Option<u64>)> {
        if self.current.is_some() {
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
        self.current = Some(operation);
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
            spindle.begin(now, Nanos::from_millis(ageing), false)
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
        let begun = spindle.begin(Nanos::from_millis(10), Nanos::MAX, true);
        assert_eq!(begun.unwrap().0.purpose, Purpose::Destage(9));
    }
}
