//! Local time, by which schedules go.
//!
//! A schedule knows the seconds of a week and nothing of dates. What becomes of it on
//! the two days a year on which clocks are set is decided here: an hour that is there
//! twice has its windows twice, and what would change in an hour that is left out
//! changes when the clock jumps over it.

use std::time::Duration;

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Timestamp, Zoned};
use sterna_core::schedule::{Moment, Schedule, Weekday};

/// What is farther ahead, in seconds, is as good as never: five years.
const NEVER: u64 = 5 * 366 * 24 * 60 * 60;

/// Whether a text says a moment ([`Local::moment_of`]).
pub fn is_moment(text: &str) -> bool {
    Local::now().moment_of(text).is_some()
}

/// A moment as the clock on the wall shows it.
#[derive(Clone, Debug)]
pub struct Local(Zoned);

impl Local {
    /// Now, in the zone of the system (or of `TZ`).
    pub fn now() -> Local {
        Local(Zoned::now())
    }

    /// Why the zone that was asked for is not there, so that schedules go by another. A
    /// machine that has none has UTC, and that is well.
    pub fn unknown() -> Option<String> {
        std::env::var_os("TZ").filter(|zone| !zone.is_empty())?;
        TimeZone::try_system().err().map(|error| error.to_string())
    }

    /// When the clock will show a moment so many seconds ahead, in words: `Sat
    /// 2026-11-28 03:00 CET`.
    pub fn words_ahead(&self, seconds: u32) -> String {
        let then = self.when_ahead(seconds).to_zoned(self.0.time_zone().clone());
        then.strftime("%a %Y-%m-%d %H:%M %Z").to_string()
    }

    /// When it was, in words, with seconds.
    pub fn words_ago(&self, ago: Duration) -> String {
        let then = self.0.checked_sub(ago).unwrap_or_else(|_| self.0.clone());
        then.strftime("%a %Y-%m-%d %H:%M:%S %Z").to_string()
    }

    /// The second of the week.
    pub fn moment(&self) -> Moment {
        use jiff::civil::Weekday as Civil;
        let weekday = match self.0.weekday() {
            Civil::Monday => Weekday::Monday,
            Civil::Tuesday => Weekday::Tuesday,
            Civil::Wednesday => Weekday::Wednesday,
            Civil::Thursday => Weekday::Thursday,
            Civil::Friday => Weekday::Friday,
            Civil::Saturday => Weekday::Saturday,
            Civil::Sunday => Weekday::Sunday,
        };
        let part = |number: i8| u32::from(number.unsigned_abs());
        let (hour, minute) = (part(self.0.hour()), part(self.0.minute()));
        Moment::new(weekday, hour * 3600 + minute * 60 + part(self.0.second()))
    }

    /// The zone's name, if it has one.
    pub fn zone(&self) -> Option<String> {
        self.0.time_zone().iana_name().map(Into::into)
    }

    /// When the clock will show a moment so many seconds ahead; in seconds since 1970.
    pub fn ahead(&self, seconds: u32) -> u64 {
        unix(self.when_ahead(seconds))
    }

    /// How long it is until then.
    pub fn wait(&self, seconds: u32) -> Duration {
        self.until(self.when_ahead(seconds))
    }

    /// How long it is until the clock is set, if that is ever to happen.
    pub fn wait_for_shift(&self) -> Option<Duration> {
        self.next_shift().map(|shift| self.until(shift))
    }

    /// For how many seconds a schedule is open until `by` (in seconds since 1970). Between
    /// two settings of the clock, a second on the wall is a second.
    pub fn open_until(&self, schedule: &Schedule, by: u64) -> u64 {
        let (mut open, mut from) = (0, self.clone());
        loop {
            let shift = from.next_shift();
            let until = shift.map_or(by, unix).min(by);
            let seconds = until.saturating_sub(unix(from.0.timestamp()));
            open += schedule.open_within(from.moment(), seconds);
            match shift.filter(|_| until < by) {
                Some(shift) => from = Local(shift.to_zoned(self.0.time_zone().clone())),
                None => return open,
            }
        }
    }

    /// When a schedule will have been open for so many seconds from now; in seconds since
    /// 1970. What is more than some years ahead is as good as never.
    pub fn open_for(&self, schedule: &Schedule, seconds: u64) -> u64 {
        let now = unix(self.0.timestamp());
        let is_enough = |by: u64| self.open_until(schedule, by) >= seconds;
        let mut ahead = seconds.max(1);
        while !is_enough(now.saturating_add(ahead)) && ahead < NEVER {
            ahead *= 2;
        }
        let (mut low, mut high) = (now, now.saturating_add(ahead));
        while low < high {
            let middle = low + (high - low) / 2;
            if is_enough(middle) { high = middle } else { low = middle + 1 }
        }
        high
    }

    /// When the clock showed a moment so many seconds back; in seconds since 1970.
    pub fn back(&self, seconds: u32) -> u64 {
        let then = self.shifted(-i64::from(seconds)).to_zoned(self.0.time_zone().clone());
        unix(then.map_or(self.0.timestamp(), |then| then.timestamp()))
    }

    /// What people mean by a moment: the next time at which the clock shows a time of
    /// day, on a day of the week if one is named; a date and a time (which may have
    /// passed); or so far from now. In seconds since 1970; nothing if it is none.
    pub fn moment_of(&self, text: &str) -> Option<u64> {
        let text = text.trim();
        // A date and a time first: of one, only the time would be read else.
        let when = if let Ok(then) = text.parse::<DateTime>() {
            self.0.time_zone().to_timestamp(then).ok()?
        } else if let Ok(time) = text.parse::<jiff::civil::Time>() {
            let today = self.0.date().to_datetime(time);
            let next = match today > self.0.datetime() {
                true => today,
                false => self.0.date().tomorrow().ok()?.to_datetime(time),
            };
            self.0.time_zone().to_timestamp(next).ok()?
        } else if let Some(next) = self.weekday_of(text) {
            self.0.time_zone().to_timestamp(next).ok()?
        } else {
            let span: SignedDuration = text.trim_start_matches('+').parse().ok()?;
            self.0.timestamp().checked_add(span).ok()?
        };
        Some(unix(when))
    }

    /// The next time at which the clock shows a day of the week and a time of day:
    /// `Sun 06:00`.
    fn weekday_of(&self, text: &str) -> Option<DateTime> {
        let (day, time) = text.split_once(' ')?;
        let day = day.to_lowercase();
        let named = |one: &Weekday| {
            let name = one.name().to_lowercase();
            name == day || name[..3] == day
        };
        let wanted = Weekday::ALL.into_iter().find(named)?;
        let time: jiff::civil::Time = time.trim().parse().ok()?;
        let ahead = (wanted.index() + 7 - self.moment().weekday().index()) % 7;
        let ahead = u8::try_from(ahead).ok()?;
        let days = |count: u8| SignedDuration::from_hours(24 * i64::from(count));
        let then = self.0.date().checked_add(days(ahead)).ok()?.to_datetime(time);
        match then > self.0.datetime() {
            true => Some(then),
            false => then.checked_add(days(7)).ok(),
        }
    }

    /// Whether a moment, in seconds since 1970, is still to come.
    pub fn is_ahead(&self, moment: u64) -> bool {
        moment > unix(self.0.timestamp())
    }

    fn when_ahead(&self, seconds: u32) -> Timestamp {
        let zone = self.0.time_zone();
        let then = zone.to_ambiguous_timestamp(self.shifted(seconds.into()));
        let now = self.0.timestamp();
        let when = match then.offset() {
            AmbiguousOffset::Gap { .. } => self.next_shift(),
            AmbiguousOffset::Fold { .. } => {
                let both = [then.earlier(), then.later()];
                both.into_iter().flatten().find(|when| *when > now)
            }
            AmbiguousOffset::Unambiguous { .. } => then.unambiguous().ok(),
        };
        when.unwrap_or(now)
    }

    fn next_shift(&self) -> Option<Timestamp> {
        let zone = self.0.time_zone();
        let next = zone.following(self.0.timestamp()).next();
        next.map(|shift| shift.timestamp())
    }

    /// What the clock shows so many seconds from its last full one.
    fn shifted(&self, seconds: i64) -> DateTime {
        let shown = self.0.datetime();
        let full = shown.with().subsec_nanosecond(0).build().unwrap_or(shown);
        full.saturating_add(SignedDuration::from_secs(seconds))
    }

    fn until(&self, when: Timestamp) -> Duration {
        // What has passed is now.
        when.duration_since(self.0.timestamp()).try_into().unwrap_or_default()
    }
}

fn unix(when: Timestamp) -> u64 {
    u64::try_from(when.as_second()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Berlin's rules, written out: the tests need no database of zones.
    const BERLIN: &str = "CET-1CEST,M3.5.0,M10.5.0/3";

    fn at(text: &str) -> Local {
        let zone = jiff::tz::TimeZone::posix(BERLIN).unwrap();
        Local(text.parse::<Timestamp>().unwrap().to_zoned(zone))
    }

    #[test]
    fn moments_are_those_of_the_clock_on_the_wall() {
        assert_eq!(at("2026-11-23T21:00:30.7Z").moment().to_string(), "Mon 22:00:30");
        assert_eq!(at("2026-07-05T22:30:00Z").moment().to_string(), "Mon 00:30");
    }

    #[test]
    fn a_change_is_waited_for_to_its_second() {
        let now = at("2026-11-23T21:00:30.75Z");
        assert_eq!(now.wait(5), Duration::from_millis(4250));
        assert_eq!(now.ahead(5) - now.back(0), 5);
        assert_eq!(now.back(0) - now.back(3600), 3600);
    }

    #[test]
    fn moments_to_come_are_read_as_people_write_them() {
        // 22:00 in Berlin.
        let now = at("2026-11-23T21:00:00Z");
        let from_now = |text: &str| now.moment_of(text).map(|at| at - now.back(0));
        assert_eq!(from_now("06:00"), Some(8 * 3600));
        assert_eq!(from_now("22:30"), Some(1800));
        assert_eq!(from_now("2026-11-24 22:00"), Some(24 * 3600));
        assert_eq!(from_now("8h"), Some(8 * 3600));
        assert_eq!(from_now("90m"), Some(5400));
        // It is Monday.
        assert_eq!(from_now("Tue 06:00"), Some(8 * 3600));
        assert_eq!(from_now("monday 22:30"), Some(1800));
        assert_eq!(from_now("Mon 22:00"), Some(7 * 24 * 3600));
        for wrong in ["", "soon", "25:00", "2026-02-30 06:00", "Sun", "Sum 06:00"] {
            assert_eq!(from_now(wrong), None, "{wrong}");
        }
        for past in ["2026-11-23 06:00", "-8h", "0s"] {
            assert!(!now.is_ahead(now.moment_of(past).unwrap()), "{past}");
        }
    }

    #[test]
    fn a_night_in_which_the_clock_is_set_is_longer_or_shorter() {
        let hour = Duration::from_secs(3600);
        // 2026-03-29, 02:00 becomes 03:00: from 01:00 to 06:00 are four hours.
        let spring = at("2026-03-29T00:00:00Z");
        assert_eq!(spring.moment().to_string(), "Sun 01:00");
        assert_eq!(spring.wait(5 * 3600), 4 * hour);
        // 02:30 is not there: what would change then changes at 03:00.
        assert_eq!(spring.wait(5400), hour);
        // 2026-10-25, 03:00 becomes 02:00: from 01:00 to 06:00 are six hours.
        let autumn = at("2026-10-24T23:00:00Z");
        assert_eq!(autumn.moment().to_string(), "Sun 01:00");
        assert_eq!(autumn.wait(5 * 3600), 6 * hour);
        assert_eq!(autumn.wait_for_shift(), Some(2 * hour));
        // 02:30 is there twice; at 02:10 of the second time, it is 20 minutes ahead.
        assert_eq!(autumn.wait(5400), hour + hour / 2);
        let again = at("2026-10-25T01:10:00Z");
        assert_eq!(again.moment().to_string(), "Sun 02:10");
        assert_eq!(again.wait(1200), hour / 3);
    }

    #[test]
    fn a_schedule_is_open_longer_or_shorter_in_the_night_in_which_the_clock_is_set() {
        let nights: Schedule = "22:00-06:00".parse().unwrap();
        let hours = |from: &str, by: &str| {
            let by = by.parse::<Timestamp>().unwrap();
            at(from).open_until(&nights, unix(by)) as f64 / 3600.0
        };
        // From noon to noon, where an hour is left out, and where one is there twice.
        assert_eq!(hours("2026-03-28T11:00:00Z", "2026-03-29T10:00:00Z"), 7.0);
        assert_eq!(hours("2026-10-24T10:00:00Z", "2026-10-25T11:00:00Z"), 9.0);
        assert_eq!(hours("2026-11-23T11:00:00Z", "2026-11-24T11:00:00Z"), 8.0);
        assert_eq!(hours("2026-11-23T11:00:00Z", "2026-11-23T20:00:00Z"), 0.0);
        assert_eq!(hours("2026-11-23T11:00:00Z", "2026-11-22T11:00:00Z"), 0.0);
        let after = |from: &str, seconds| {
            (at(from).open_for(&nights, seconds) - at(from).back(0)) as f64 / 3600.0
        };
        assert_eq!(after("2026-11-23T11:00:00Z", 3600), 11.0);
        assert_eq!(after("2026-11-23T11:00:00Z", 9 * 3600), 35.0);
        assert_eq!(after("2026-11-23T22:00:00Z", 0), 0.0);
        let year = hours("2026-11-23T11:00:00Z", "2027-11-23T11:00:00Z");
        assert_eq!(year, 365.0 * 8.0);
    }
}
