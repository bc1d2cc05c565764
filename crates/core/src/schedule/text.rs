//! Schedules as people write and read them.

use std::fmt;
use std::str::FromStr;

use super::moment::Clock;
use super::{DAY, Days, Schedule, WINDOWS, Weekday, Window};

/// The longest text of a schedule, in bytes: [`WINDOWS`] windows take less, each
/// with every day by its full name.
const LONGEST: usize = 2560;

const EXAMPLES: &str = "write days, hours or both, like `Mon-Fri 22:00-06:00`, \
    `22:00-06:00` or `Sat,Sun`";

/// The text is no schedule; says where, and what one looks like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParseScheduleError {
    /// There is nothing to read.
    Empty,
    /// It has more than [`WINDOWS`] windows, or is longer than those can be.
    TooLong,
    /// This is neither a day nor two days with a `-` between them.
    Day(String),
    /// These are no hours.
    Hours(String),
    /// The hours end when they begin.
    NoTime(String),
    /// One part has more than days and hours.
    Part(String),
}

impl fmt::Display for ParseScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParseScheduleError::Empty => {
                write!(f, "a schedule says when something holds: {EXAMPLES}")
            }
            ParseScheduleError::TooLong => {
                write!(f, "a schedule has at most {WINDOWS} windows")
            }
            ParseScheduleError::Day(day) => write!(
                f,
                "`{day}` is not a day of the week: write Mon, Tue, Wed, Thu, Fri, Sat or \
                 Sun, or two of them with a `-` between"
            ),
            ParseScheduleError::Hours(hours) => write!(
                f,
                "`{hours}` is not a span of hours: write it like 22:00-06:00, from 00:00 \
                 to 24:00"
            ),
            ParseScheduleError::NoTime(hours) => write!(
                f,
                "`{hours}` ends when it begins: for a whole day write 00:00-24:00, or \
                 the day alone"
            ),
            ParseScheduleError::Part(part) => {
                write!(f, "`{part}` is not a part of a schedule: {EXAMPLES}")
            }
        }
    }
}

impl std::error::Error for ParseScheduleError {}

impl FromStr for Schedule {
    type Err = ParseScheduleError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() > LONGEST {
            return Err(ParseScheduleError::TooLong);
        }
        if text.trim().is_empty() {
            return Err(ParseScheduleError::Empty);
        }
        let mut reader =
            Reader { windows: Vec::new(), open: Days::NONE, last: Days::ALL };
        for part in text.split(',') {
            reader.part(part.trim())?;
        }
        reader.end()
    }
}

/// What has been read so far.
struct Reader {
    windows: Vec<Window>,
    /// Days that still wait for their hours.
    open: Days,
    /// The days of the hours before.
    last: Days,
}

impl Reader {
    fn part(&mut self, part: &str) -> Result<(), ParseScheduleError> {
        let mut words = part.split_whitespace();
        let (first, second) = (words.next(), words.next());
        let (days, hours) = match (first, second, words.next()) {
            (Some(days), Some(hours), None) => (Some(days), Some(hours)),
            (Some(word), None, None) if is_hours(word) => (None, Some(word)),
            (Some(word), None, None) => (Some(word), None),
            _ => return Err(ParseScheduleError::Part(part.into())),
        };
        if let Some(days) = days {
            self.open.0 |= read_days(days)?.0;
        }
        if let Some(hours) = hours {
            let days = if self.open == Days::NONE { self.last } else { self.open };
            let (from, length) = read_hours(hours)?;
            self.add(Window { days, from, length })?;
            (self.last, self.open) = (days, Days::NONE);
        }
        Ok(())
    }

    fn end(mut self) -> Result<Schedule, ParseScheduleError> {
        if self.open != Days::NONE {
            self.add(Window { days: self.open, from: 0, length: DAY })?;
        }
        Ok(Schedule { windows: self.windows })
    }

    fn add(&mut self, window: Window) -> Result<(), ParseScheduleError> {
        if self.windows.len() == WINDOWS {
            return Err(ParseScheduleError::TooLong);
        }
        self.windows.push(window);
        Ok(())
    }
}

/// Hours begin with a figure, days do not.
fn is_hours(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
}

/// `Mon`, or `Mon-Fri`, which may go over Sunday: `Sat-Mon`.
fn read_days(text: &str) -> Result<Days, ParseScheduleError> {
    let wrong = || ParseScheduleError::Day(text.into());
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let first = read_day(first).ok_or_else(wrong)?;
    let last = read_day(last).ok_or_else(wrong)?;
    let count = (last.index() + 7 - first.index()) % 7 + 1;
    let days = Weekday::ALL.into_iter().cycle().skip(first.index()).take(count);
    Ok(days.fold(Days::NONE, Days::with))
}

/// A day by its name or the first three letters of it.
fn read_day(text: &str) -> Option<Weekday> {
    Weekday::ALL.into_iter().find(|day| {
        let name = day.name();
        text.eq_ignore_ascii_case(name) || text.eq_ignore_ascii_case(&name[..3])
    })
}

/// When it opens and for how long, in seconds.
fn read_hours(text: &str) -> Result<(u32, u32), ParseScheduleError> {
    let wrong = || ParseScheduleError::Hours(text.into());
    let (from, until) = text.split_once('-').ok_or_else(wrong)?;
    let from = read_clock(from).filter(|from| *from < DAY).ok_or_else(wrong)?;
    let until = read_clock(until).ok_or_else(wrong)?;
    match until.cmp(&from) {
        std::cmp::Ordering::Greater => Ok((from, until - from)),
        std::cmp::Ordering::Less => Ok((from, until + DAY - from)),
        std::cmp::Ordering::Equal => Err(ParseScheduleError::NoTime(text.into())),
    }
}

/// `22:00` or `22:00:30`, at most `24:00`; in seconds.
fn read_clock(text: &str) -> Option<u32> {
    let mut parts = text.split(':');
    let hour = read_figures(parts.next()?, 24)?;
    let minute = read_figures(parts.next()?, 59)?;
    let second = parts.next().map_or(Some(0), |second| read_figures(second, 59))?;
    let clock = hour * 3600 + minute * 60 + second;
    (parts.next().is_none() && clock <= DAY).then_some(clock)
}

/// One or two figures, `most` at most.
fn read_figures(text: &str, most: u32) -> Option<u32> {
    let figures = text.len() <= 2 && text.bytes().all(|c| c.is_ascii_digit());
    text.parse().ok().filter(|number| figures && *number <= most)
}

impl fmt::Display for Schedule {
    /// In the form that is read, and means the same when it is read again.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        // Whether hours without days would be those of every day.
        let mut unnamed = true;
        for (index, window) in self.windows.iter().enumerate() {
            let whole = window.length == DAY && window.from == 0;
            unnamed &= window.days == Days::ALL;
            let mut words = Vec::new();
            if !unnamed || whole {
                words.push(window.days.to_string());
            }
            // Whole days would take the hours that follow for theirs.
            if !whole || index + 1 < self.windows.len() {
                words.push(window.hours());
            }
            if index > 0 {
                text.push_str(", ");
            }
            text.push_str(&words.join(" "));
        }
        f.pad(&text)
    }
}

impl Window {
    fn hours(self) -> String {
        let until = self.from + self.length;
        let until = if until > DAY { until - DAY } else { until };
        format!("{}-{}", Clock(self.from), Clock(until))
    }
}

impl fmt::Display for Days {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let days: Vec<_> = Weekday::ALL.into_iter().filter(|it| self.has(*it)).collect();
        let runs = days.chunk_by(|one, next| one.index() + 1 == next.index());
        let runs = runs.map(|run| match run {
            [first, .., last] => format!("{first}-{last}"),
            _ => run[0].to_string(),
        });
        f.write_str(&runs.collect::<Vec<_>>().join(","))
    }
}
