//! What a disk, a class or a datastore did in the last day, in bounded memory.
//!
//! Five rows of windows ([`ROWS`]): of 100 ms, 1 s, 10 s, 60 s and a quarter of an hour. Each
//! row is made of whole windows of the one before, which close at multiples of their length,
//! and holds the last ones. Of a closed window only scalars are left (`slot`). The windows
//! that are still open are whole, with their histograms, since the quantiles of several
//! windows cannot be had from those of each.
//!
//! Where nothing happened there is no window. So a timeline that is never pushed to
//! costs nothing, and one is at most [`Timeline::MEMORY_MAX`] bytes.

use std::collections::VecDeque;

use super::Window;
use super::point::Point;
use super::slot::{Slot, Summary};
use crate::Nanos;

/// The length of the windows that come in: short enough for a loop that reacts within
/// a second, long enough to hold requests of a slow disk.
const TICK: Nanos = Nanos::from_millis(100);

/// A row of windows.
struct Row {
    /// How long a window of it is.
    length: Nanos,
    /// How many are kept.
    kept: usize,
    /// How many serve for sums. More of them would take longer to sum up than they are
    /// worth: from there on the next row does. Windows are not all of their row's length,
    /// so a tenth is left for that.
    summed: u64,
}

const fn row(length: Nanos, kept: usize, summed: u64) -> Row {
    Row { length, kept, summed }
}

/// The rows. What a disk did second by second is kept for ten minutes: so long it takes
/// until somebody who was told looks.
const ROWS: [Row; 5] = [
    row(TICK, 50, 45),
    row(Nanos::from_secs(1), 660, 54),
    row(Nanos::from_secs(10), 60, 54),
    row(Nanos::from_secs(60), 67, 61),
    row(Nanos::from_secs(900), 96, 87),
];

/// How far back a timeline knows.
const REACH: Nanos = Nanos(ROWS[4].length.0 * ROWS[4].kept as u64);

/// Room for so many windows is made at a time: a disk that does little takes little.
const ROOM: usize = 50;

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
            bytes += ROWS[row].kept * size_of::<Slot>();
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
        let (kept, most) = (&mut self.rows[row], ROWS[row].kept);
        if kept.len() == most {
            kept.pop_front();
        } else if kept.len() == kept.capacity() {
            kept.reserve_exact(ROOM.min(most - kept.len()));
        }
        kept.push_back(Slot::new(start, end, window));
        let Some(Row { length, .. }) = ROWS.get(row + 1) else { return };
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
        let reaches = |row: &Row| span.0 <= row.length.0 * row.summed;
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

    /// What was done between two moments, for a chart of `most` points at most: windows of
    /// at least a second and of the part of the time that a point has, or of a coarser row
    /// where finer ones are not kept any more. Those of one point are joined ([`Point`]).
    pub fn points(&self, from: Nanos, to: Nanos, most: usize) -> Vec<Point> {
        let (width, finest) = widths(from, to, most);
        let mut points: Vec<(u64, Point)> = Vec::new();
        let mut known = from;
        // What is not closed yet is not told: windows of different lengths cannot be compared.
        for at in (finest..ROWS.len()).rev() {
            // What coarse windows and finer ones both have is told by the finer ones.
            let finer = &self.rows[finest..at];
            let finer = finer.iter().filter_map(|row| Some(row.front()?.start())).min();
            let until = finer.unwrap_or(to);
            for slot in &self.rows[at] {
                let is_new = slot.start() >= known
                    || known == from && slot.end() > from && slot.start() < from;
                if !is_new || slot.start() >= until.min(to) {
                    continue;
                }
                known = slot.end();
                add(&mut points, slot.start().since(from).0 / width.0, slot);
            }
        }
        points.into_iter().map(|(_, point)| point).collect()
    }

    /// The same in windows of one length: those of the finest row that still has all of this
    /// time. So no point is of a finer row than another one, and a percentile means the same
    /// all over the chart. The window that is still open is the last one.
    pub fn even_points(&self, from: Nanos, to: Nanos, most: usize) -> Vec<Point> {
        let (width, wide) = widths(from, to, most);
        let has_all = |at: &usize| {
            let row = &self.rows[*at];
            row.len() < ROWS[*at].kept || row.front().is_none_or(|it| it.start() <= from)
        };
        let at = (wide..ROWS.len()).find(has_all).unwrap_or(ROWS.len() - 1);
        let open = self.open[at - 1].as_ref().filter(|_| at > 1);
        let open = open.map(|it| Slot::new(it.start, it.end, &it.window));
        let mut points: Vec<(u64, Point)> = Vec::new();
        for slot in self.rows[at].iter().chain(&open) {
            if slot.end() <= from || slot.start() >= to {
                continue;
            }
            // By the time of day of the clock: what is joined does not change with `from`.
            add(&mut points, slot.start().0 / width.0, slot);
        }
        points.into_iter().map(|(_, point)| point).collect()
    }

    /// Whether all of it is longer ago than it reaches.
    pub fn is_over(&self, now: Nanos) -> bool {
        let last = self.rows[0].back().map_or(Nanos(0), Slot::end);
        now.since(last) > REACH
    }
}

/// How wide a point of a chart is at least, and the finest row that is not coarser.
fn widths(from: Nanos, to: Nanos, most: usize) -> (Nanos, usize) {
    let width = Nanos(to.since(from).0.div_ceil(most.max(1) as u64).max(1));
    let fits = |row: &Row| row.length <= width.max(ROWS[1].length);
    (width, ROWS.iter().rposition(fits).unwrap_or(1).max(1))
}

/// Adds a window to the point of that number, which is the last one or a new one.
fn add(points: &mut Vec<(u64, Point)>, number: u64, slot: &Slot) {
    match points.last_mut() {
        Some((last, point)) if *last == number => point.join(slot),
        _ => points.push((number, Point::of(slot))),
    }
}
