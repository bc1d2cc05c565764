//! A moment of the week, in local time.

use std::fmt;

/// The seconds of a day. (A day on which the clock is set has another number; who
/// makes moments from a clock knows that, and schedules need not.)
pub const DAY: u32 = 24 * 60 * 60;

/// The seconds of a week.
pub const WEEK: u32 = 7 * DAY;

/// A day of the week.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Weekday {
    /// Monday, the first day of a week.
    Monday,
    /// Tuesday.
    Tuesday,
    /// Wednesday.
    Wednesday,
    /// Thursday.
    Thursday,
    /// Friday.
    Friday,
    /// Saturday.
    Saturday,
    /// Sunday.
    Sunday,
}

impl Weekday {
    /// All days, from Monday on.
    pub const ALL: [Weekday; 7] = [
        Weekday::Monday,
        Weekday::Tuesday,
        Weekday::Wednesday,
        Weekday::Thursday,
        Weekday::Friday,
        Weekday::Saturday,
        Weekday::Sunday,
    ];

    /// Its English name.
    pub const fn name(self) -> &'static str {
        match self {
            Weekday::Monday => "Monday",
            Weekday::Tuesday => "Tuesday",
            Weekday::Wednesday => "Wednesday",
            Weekday::Thursday => "Thursday",
            Weekday::Friday => "Friday",
            Weekday::Saturday => "Saturday",
            Weekday::Sunday => "Sunday",
        }
    }

    /// Its place in the week; Monday has 0.
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Weekday {
    /// The first three letters: `Mon`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name()[..3])
    }
}

/// A second of the week.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment {
    /// Seconds since Monday 00:00, below [`WEEK`].
    second: u32,
}

impl Moment {
    /// The moment `second` seconds after the day began. What is past the day's last
    /// second (a leap second) counts as that one.
    pub fn new(weekday: Weekday, second: u32) -> Moment {
        // An index below 7.
        let day = weekday.index() as u32;
        Moment { second: day * DAY + second.min(DAY - 1) }
    }

    /// The moment so many seconds later, in the same week's circle.
    pub fn after(self, seconds: u32) -> Moment {
        Moment { second: (self.second + seconds % WEEK) % WEEK }
    }

    /// How many seconds after this moment the `next` one is; below [`WEEK`].
    pub fn until(self, next: Moment) -> u32 {
        (next.second + WEEK - self.second) % WEEK
    }

    /// The day.
    pub fn weekday(self) -> Weekday {
        Weekday::ALL[(self.second / DAY) as usize]
    }

    /// Seconds since the day began, below [`DAY`].
    pub fn second_of_day(self) -> u32 {
        self.second % DAY
    }
}

impl fmt::Display for Moment {
    /// `Mon 22:00`, with the seconds where there are any.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{} {}", self.weekday(), Clock(self.second_of_day())))
    }
}

/// A second of a day as a clock shows it. Midnight at the day's end is `24:00`.
pub(super) struct Clock(pub(super) u32);

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (hour, minute, second) = (self.0 / 3600, self.0 / 60 % 60, self.0 % 60);
        write!(f, "{hour:02}:{minute:02}")?;
        match second {
            0 => Ok(()),
            second => write!(f, ":{second:02}"),
        }
    }
}
