//! Units, so that a number cannot be taken for another kind of number.
//!
//! `Bytes` and `Nanos` are read and written the way people write them: `10G`,
//! `64K`, `200M`, `5ms`. Suffixes are binary (`K` is 1024), as in every tool
//! that speaks of disk sizes; `Ki`, `KiB` and `KB` are accepted for the same.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// A part of a whole, 0.97 for 97%. It is shown as a whole number of percent.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Percent(pub f64);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0}%", self.0 * 100.0)
    }
}

/// A moment or a span, in nanoseconds. Moments count from an arbitrary start
/// that the caller chooses (a monotonic clock, or the simulator's zero).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

/// Why a quantity could not be read; says what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseUnitError {
    text: String,
    expected: &'static str,
}

impl fmt::Display for ParseUnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not {}", self.text, self.expected)
    }
}

impl std::error::Error for ParseUnitError {}

const SIZE_EXPECTED: &str =
    "a size: a number of bytes, or with a suffix K, M, G or T (10G, 64K, 1.5T)";
const SPAN_EXPECTED: &str =
    "a duration: a number with ns, us, ms, s, min, h or d (5ms, 10min, 2h)";
/// `m` stands for minutes in one program and for milliseconds in the next.
const SPAN_UNCLEAR: &str = "a duration: give min for minutes, ms for milliseconds";

/// Splits `text` into its number and its suffix.
fn split_number(text: &str) -> Option<(f64, &str)> {
    let end =
        text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    Some((number, text[end..].trim_start()))
}

/// `number` times `unit` as a whole number, if it is one that `u64` can hold.
fn scale(number: f64, unit: u64) -> Option<u64> {
    // Whole numbers go the exact way: a float has only 53 bits.
    if number.fract() == 0.0 && number < 9.0e15 {
        return (number as u64).checked_mul(unit);
    }
    let scaled = number * unit as f64;
    (scaled.is_finite() && scaled < u64::MAX as f64).then_some(scaled as u64)
}

impl Bytes {
    /// As text beside `other`: to the byte where both would look the same.
    pub fn beside(self, other: Bytes) -> String {
        let text = self.to_string();
        match self != other && text == other.to_string() {
            true => format!("{} B", self.0),
            false => text,
        }
    }

    /// What was meant by a number that is far too low, in MiB: the unit was left out, or is
    /// one too small. None for a number that nobody writes with a unit.
    pub fn meant_mib(self) -> Option<u64> {
        match self.0 {
            bytes @ 1..1024 => Some(bytes),
            bytes if bytes.is_multiple_of(1024) => Some(bytes >> 10).filter(|it| *it > 0),
            _ => None,
        }
    }
}

impl FromStr for Bytes {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseUnitError { text: text.into(), expected: SIZE_EXPECTED };
        let (number, suffix) = split_number(text.trim()).ok_or_else(error)?;
        let shift = match suffix.to_ascii_lowercase().as_str() {
            "" | "b" => 0,
            "k" | "ki" | "kib" | "kb" => 10,
            "m" | "mi" | "mib" | "mb" => 20,
            "g" | "gi" | "gib" | "gb" => 30,
            "t" | "ti" | "tib" | "tb" => 40,
            _ => return Err(error()),
        };
        scale(number, 1 << shift).map(Bytes).ok_or_else(error)
    }
}

impl fmt::Display for Bytes {
    /// Shows three significant figures: `1.46 GiB`, `64.0 KiB`, `512 B`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
        if self.0 < 1024 {
            return f.pad(&format!("{} B", self.0));
        }
        let mut value = self.0 as f64 / 1024.0;
        let mut unit = 0;
        while value >= 999.5 && unit + 1 < UNITS.len() {
            value /= 1024.0;
            unit += 1;
        }
        let decimals = if value < 9.995 {
            2
        } else if value < 99.95 {
            1
        } else {
            0
        };
        f.pad(&format!("{value:.decimals$} {}", UNITS[unit]))
    }
}

impl Nanos {
    /// The longest span; as a deadline: never.
    pub const MAX: Nanos = Nanos(u64::MAX);

    /// A span of whole microseconds. More than fits (584 years) sticks, here and below.
    pub const fn from_micros(micros: u64) -> Self {
        Nanos(micros.saturating_mul(1_000))
    }

    /// A span of whole milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Nanos(millis.saturating_mul(1_000_000))
    }

    /// A span of whole seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Nanos(secs.saturating_mul(1_000_000_000))
    }

    /// The span in seconds.
    pub const fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The span in milliseconds.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The span since `earlier`, zero if that lies in the future.
    pub fn since(self, earlier: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }

    /// As text beside `other`: to the nanosecond where both would look the same.
    pub fn beside(self, other: Nanos) -> String {
        let text = self.to_string();
        match (self != other && text == other.to_string(), self.0 % 1_000_000) {
            (false, _) => text,
            (true, 0) => format!("{} ms", self.0 / 1_000_000),
            (true, _) => format!("{} ns", self.0),
        }
    }

    /// This moment and a span; sticks at the end of time.
    pub fn plus(self, span: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(span.0))
    }
}

impl From<Duration> for Nanos {
    fn from(duration: Duration) -> Self {
        Nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Nanos> for Duration {
    fn from(nanos: Nanos) -> Self {
        Duration::from_nanos(nanos.0)
    }
}

impl FromStr for Nanos {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const SECOND: u64 = 1_000_000_000;
        let expected = |expected| ParseUnitError { text: text.into(), expected };
        let error = || expected(SPAN_EXPECTED);
        let (number, suffix) = split_number(text.trim()).ok_or_else(error)?;
        let unit = match suffix {
            "ns" => 1,
            "us" | "µs" => 1_000,
            "ms" => 1_000_000,
            "s" => SECOND,
            "min" => 60 * SECOND,
            "h" => 3600 * SECOND,
            "d" => 86_400 * SECOND,
            "m" => return Err(expected(SPAN_UNCLEAR)),
            _ => return Err(error()),
        };
        scale(number, unit).map(Nanos).ok_or_else(error)
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.0 as f64;
        let text = match self.0 {
            0..1_000 => format!("{} ns", self.0),
            1_000..1_000_000 => format!("{:.1} us", n / 1e3),
            1_000_000..1_000_000_000 => format!("{:.1} ms", n / 1e6),
            _ => format!("{:.1} s", n / 1e9),
        };
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        let read = |text: &str| text.parse::<Bytes>().map(|bytes| bytes.0);
        assert_eq!(read("512"), Ok(512));
        assert_eq!(read("64K"), Ok(65536));
        assert_eq!(read("10G"), Ok(10 << 30));
        assert_eq!(read("1.5 GiB"), Ok(3 << 29));
        assert!(read("ten").is_err());
        assert!(read("-5").is_err());
        assert!(read("99999999T").is_err());
        assert!(read("5X").is_err());
    }

    #[test]
    fn sizes_are_shown_with_three_figures() {
        assert_eq!(Bytes(512).to_string(), "512 B");
        assert_eq!(Bytes(65536).to_string(), "64.0 KiB");
        assert_eq!(Bytes(10 << 30).to_string(), "10.0 GiB");
        assert_eq!(Bytes(1023 << 20).to_string(), "1.00 GiB");
    }

    #[test]
    fn what_would_look_like_its_bound_is_shown_exactly() {
        assert_eq!(Bytes(65_535).beside(Bytes(65_536)), "65535 B");
        assert_eq!(Bytes(65_536).beside(Bytes(65_536)), "64.0 KiB");
        assert_eq!(Bytes(20).beside(Bytes(65_536)), "20 B");
        let most = Nanos::from_secs(10);
        assert_eq!(Nanos::from_millis(10_001).beside(most), "10001 ms");
        assert_eq!(Nanos(most.0 + 1).beside(most), "10000000001 ns");
        assert_eq!(Nanos::from_secs(20).beside(most), "20.0 s");
    }

    #[test]
    fn a_number_without_its_unit_is_taken_for_mib() {
        let meant = |bytes| Bytes(bytes).meant_mib();
        assert_eq!([meant(20), meant(20 << 10)], [Some(20), Some(20)]);
        assert_eq!([meant(0), meant(1536), meant(65_535)], [None; 3]);
    }

    #[test]
    fn spans_are_read_and_shown() {
        assert_eq!("1.5s".parse::<Nanos>(), Ok(Nanos::from_millis(1500)));
        assert_eq!("20ms".parse::<Nanos>(), Ok(Nanos::from_millis(20)));
        assert_eq!("1.5 min".parse::<Nanos>(), Ok(Nanos::from_secs(90)));
        assert_eq!("2h".parse::<Nanos>(), Ok(Nanos::from_secs(7200)));
        assert_eq!("7d".parse::<Nanos>(), Ok(Nanos::from_secs(7 * 86_400)));
        assert!("20".parse::<Nanos>().is_err());
        let minutes = "5m".parse::<Nanos>().unwrap_err().to_string();
        assert!(minutes.contains("min for minutes"), "{minutes}");
        assert_eq!(Nanos::from_micros(1500).to_string(), "1.5 ms");
    }

    #[test]
    fn spans_beyond_all_bounds_stick() {
        let made = [Nanos::from_micros, Nanos::from_millis, Nanos::from_secs];
        assert!(made.into_iter().all(|from| from(u64::MAX) == Nanos(u64::MAX)));
    }
}
