//! What a disk, a class or a datastore did in the last day, in bounded memory.
//!
//! Five rows of windows: of 100 ms, 1 s, 10 s, 60 s and a quarter of an hour. Each row is made of whole
//! windows of the one before, which close at multiples of their length, and holds the
//! last ones. Of a closed window only scalars are left (`slot`). The windows that are
//! still open are whole, with their histograms, since the quantiles of several windows
//! cannot be had from those of each.
//!
//! Where nothing happened there is no window. So a timeline that is never pushed to
//! costs nothing, and one is at most [`Timeline::MEMORY_MAX`] bytes.

use std::collections::VecDeque;

use super::Window;
use super::slot::{Slot, Summary};
use crate::Nanos;

/// The length of the windows that come in: short enough for a loop that reacts within
/// a second, long enough to hold requests of a slow disk.
const TICK: Nanos = Nanos::from_millis(100);

/// The rows: how long a window is, and how many are kept.
const ROWS: [(Nanos, usize); 5] = [
    (TICK, 50),
    (Nanos::from_secs(1), 60),
    (Nanos::from_secs(10), 60),
    // An hour, and the tenth that is left for windows that are shorter.
    (Nanos::from_secs(60), 67),
    (Nanos::from_secs(900), 96),
];

/// How far back a timeline knows.
const REACH: Nanos = Nanos(ROWS[4].0.0 * ROWS[4].1 as u64);

/// The last day.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// When the first window began.
    born: Option<Nanos>,
    /// When the last one ended.
    until: Nanos,
    rows: [VecDeque<Slot>; ROWS.len()],
    /// The window of each row but the first that is not yet closed.
    open: [Option<Open>; ROWS.len() - 1],
}

#[derive(Clone, Debug)]
struct Open {
    start: Nanos,
    end: Nanos,
    window: Window,
}

impl Timeline {
    /// The most bytes that a timeline takes, without what the allocator adds.
    pub const MEMORY_MAX: usize = {
        let (mut bytes, mut row) = (size_of::<Timeline>(), 0);
        while row < ROWS.len() {
            bytes += ROWS[row].1 * size_of::<Slot>();
            row += 1;
        }
        bytes + (ROWS.len() - 1) * super::Spread::MEMORY_MAX
    };

    /// Adds the window that ended just now. Windows come in order. Whoever measured
    /// their spans may have had another clock than `now` is of: where that makes two
    /// overlap, the later one begins where the earlier one ends.
    pub fn push(&mut self, now: Nanos, window: &Window) {
        let start = Nanos(now.0.saturating_sub(window.span.0)).max(self.until);
        self.until = now;
        self.born.get_or_insert(start);
        self.add(0, start, now, window);
    }

    /// A window of a row has closed.
    fn add(&mut self, row: usize, start: Nanos, end: Nanos, window: &Window) {
        let kept = &mut self.rows[row];
        if kept.is_empty() {
            kept.reserve_exact(ROWS[row].1);
        } else if kept.len() == ROWS[row].1 {
            kept.pop_front();
        }
        kept.push_back(Slot::new(start, end, window));
        let Some(&(length, _)) = ROWS.get(row + 1) else { return };
        // By their ends: a window that ends on the dot is the last of its period.
        let period = |end: Nanos| end.0.saturating_sub(1) / length.0;
        let over = |open: &mut Open| period(open.end) != period(end);
        if let Some(closed) = self.open[row].take_if(over) {
            self.add(row + 1, closed.start, closed.end, &closed.window);
        }
        match &mut self.open[row] {
            Some(open) => {
                open.window.extend(window);
                open.end = end;
            }
            None => self.open[row] = Some(Open { start, end, window: window.clone() }),
        }
    }

    /// What was done in the last `span` (a day at most) before `now`, which is the
    /// end of the last window that could have been pushed; nothing if that is all
    /// before the first.
    ///
    /// A window that is only in part within the span counts as a whole, and the
    /// summary's span says so. Counts and means are exact. Quantiles are: of one
    /// window exact; of several an estimate from theirs, between the least and the
    /// greatest, and some 10 % off where the windows differ.
    pub fn since(&self, now: Nanos, span: Nanos) -> Option<Summary> {
        let born = self.born.filter(|born| *born < now)?;
        let span = span.min(REACH);
        let mut from = Nanos(now.0.saturating_sub(span.0)).max(born);
        // Windows are not all of their row's length: a tenth is left for that.
        let reaches = |&(length, kept): &(Nanos, usize)| {
            span.0 <= length.0 * (kept - kept / 10) as u64
        };
        let coarsest = ROWS.iter().position(reaches).unwrap_or(ROWS.len() - 1);
        let (mut slots, mut known) = (Vec::new(), from);
        // What the coarse row has not closed yet is in the finer ones.
        for row in self.rows[..=coarsest].iter().rev() {
            for slot in row.iter().filter(|slot| slot.end() <= now) {
                let follows = slot.start() >= known;
                let straddles = slots.is_empty() && slot.end() > known;
                if follows || straddles {
                    from = from.min(slot.start());
                    known = slot.end();
                    slots.push(*slot);
                }
            }
        }
        Some(Summary::of(now.since(from), &slots))
    }

    /// Whether all of it is longer ago than it reaches.
    pub fn is_over(&self, now: Nanos) -> bool {
        let last = self.rows[0].back().map_or(Nanos(0), Slot::end);
        now.since(last) > REACH
    }
}
