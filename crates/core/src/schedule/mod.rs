//! When something holds: `Mon-Fri 22:00-06:00`.
//!
//! A schedule is a set of windows that come back every week. It is open in each
//! second that one of them covers: the second at which a window ends is no longer
//! part of it. A window that goes over midnight belongs to the day on which it
//! begins: `Fri 22:00-06:00` is open on Saturday morning and not on Friday's.
//!
//! As it is written (`text`): windows with commas between them, each with days, or
//! hours, or both.
//!
//! - Days without hours belong to the hours that follow (`Mon,Wed 08:00-12:00`); if
//!   none follow, they are whole days (`Sat,Sun`).
//! - Hours without days are those of the days before (`Mon 08:00-12:00,14:00-18:00`);
//!   if none were named, every day's (`22:00-06:00`).
//!
//! Everything is local time. A schedule knows no dates and no time zone: who asks
//! brings a [`Moment`]. On the day that a clock is set, an hour is there twice or
//! not at all, and so are the windows in it.

mod moment;
mod text;

pub use moment::{DAY, Moment, WEEK, Weekday};
pub use text::ParseScheduleError;

/// The most windows of a schedule: more than anybody takes in at a glance, and so
/// few that questions about them cost nothing.
pub const WINDOWS: usize = 32;

/// When something holds. It has a window at least, so there is always a time at
/// which it is open.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Schedule {
    /// One at least, [`WINDOWS`] at most.
    windows: Vec<Window>,
}

/// The same hours on some days.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Window {
    days: Days,
    /// The second of the day at which it opens, below [`DAY`].
    from: u32,
    /// For how many seconds it is open, 1 to [`DAY`].
    length: u32,
}

/// Some days of the week, one at least: a bit for each, Monday the lowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Days(u8);

impl Days {
    const NONE: Days = Days(0);
    const ALL: Days = Days(0x7f);

    fn with(self, day: Weekday) -> Days {
        Days(self.0 | 1 << day.index())
    }

    fn has(self, day: Weekday) -> bool {
        self.0 & 1 << day.index() != 0
    }
}

impl Window {
    fn openings(self) -> impl Iterator<Item = Moment> {
        let days = Weekday::ALL.into_iter().filter(move |day| self.days.has(*day));
        days.map(move |day| Moment::new(day, self.from))
    }

    fn is_open(self, now: Moment) -> bool {
        self.openings().any(|opening| opening.until(now) < self.length)
    }
}

impl Schedule {
    /// Whether it is open in this second.
    pub fn is_open(&self, now: Moment) -> bool {
        self.windows.iter().any(|window| window.is_open(now))
    }

    /// In how many seconds it opens, or closes; above zero and at most [`WEEK`].
    /// Nothing if it is always open.
    pub fn until_change(&self, now: Moment) -> Option<u32> {
        let open = self.is_open(now);
        let changed = self.edges().filter(|edge| self.is_open(*edge) != open);
        changed.map(|edge| now.until(edge)).min()
    }

    /// How many seconds ago it opened, or closed; at most [`WEEK`], and 0 in the second
    /// at which it did. Nothing if it is always open.
    pub fn since_change(&self, now: Moment) -> Option<u32> {
        let open = self.is_open(now);
        // In the second before the change it was the other way.
        let changes = self.edges().filter(|edge| {
            self.is_open(*edge) == open && self.is_open(edge.after(WEEK - 1)) != open
        });
        changes.map(|edge| edge.until(now)).min()
    }

    /// For how many of the next `seconds` it is open.
    pub fn open_within(&self, now: Moment, seconds: u64) -> u64 {
        let week = u64::from(WEEK);
        let rest = self.open_in_week(now, (seconds % week) as u32);
        seconds / week * self.open_in_week(now, WEEK) + rest
    }

    /// The same for a week at most.
    fn open_in_week(&self, now: Moment, seconds: u32) -> u64 {
        // What each window covers, counted from now; a window that began before now
        // covers the beginning, and comes again at the week's end.
        let mut covered: Vec<(u32, u32)> = Vec::new();
        for window in &self.windows {
            for opening in window.openings() {
                let begins = now.until(opening);
                let ends = begins + window.length;
                covered.push((begins, ends));
                covered.push((0, ends.saturating_sub(WEEK)));
            }
        }
        covered.sort_unstable();
        let (mut open, mut reached) = (0, 0);
        for (begins, ends) in covered {
            let ends = ends.min(seconds);
            open += u64::from(ends.saturating_sub(begins.max(reached)));
            reached = reached.max(ends);
        }
        open
    }

    /// The moments at which its windows open. Whatever holds together with others at
    /// any time also does so at one of their openings.
    pub fn openings(&self) -> impl Iterator<Item = Moment> {
        self.windows.iter().flat_map(|window| window.openings())
    }

    /// The moments at which a window begins or ends.
    fn edges(&self) -> impl Iterator<Item = Moment> {
        self.windows.iter().flat_map(|window| {
            window.openings().flat_map(|opening| [opening, opening.after(window.length)])
        })
    }
}
