//! Quantities in words.

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use sterna_core::{Bytes, Nanos};

/// A number of bytes: `1.46 GiB`.
pub fn bytes(count: u64) -> String {
    Bytes(count).to_string()
}

/// Bytes per second: `210 MiB/s`.
pub fn rate(bytes_per_second: f64) -> String {
    format!("{}/s", Bytes(bytes_per_second.max(0.0) as u64))
}

/// A span: `850 ms`, `47 s`, `3 min 20 s`, `2 h 05 min`, `3 d 04 h`.
pub fn span(seconds: f64) -> String {
    let seconds = seconds.max(0.0);
    if seconds < 0.9995 {
        return format!("{:.0} ms", seconds * 1e3);
    }
    if seconds < 9.95 {
        return format!("{seconds:.1} s");
    }
    let whole = seconds.round() as u64;
    match whole {
        0..60 => format!("{whole} s"),
        60..3600 => format!("{} min {:02} s", whole / 60, whole % 60),
        3600..86400 => format!("{} h {:02} min", whole / 3600, whole % 3600 / 60),
        _ => format!("{} d {:02} h", whole / 86400, whole % 86400 / 3600),
    }
}

/// A response time: `1.2 ms`.
pub fn response(micros: Option<f64>) -> String {
    match micros {
        // In the unit of what stands beside it.
        Some(micros) if micros < 1e3 => format!("{:.2} ms", micros.max(0.0) / 1e3),
        Some(micros) => Nanos((micros * 1e3) as u64).to_string(),
        None => "-".into(),
    }
}

/// A number of requests per second: `1250`, `12.3k`.
pub fn iops(iops: f64) -> String {
    if iops > 0.0 && iops < 9.95 {
        format!("{iops:.1}")
    } else if iops < 9999.5 {
        format!("{iops:.0}")
    } else if iops < 99_950.0 {
        format!("{:.1}k", iops / 1e3)
    } else {
        format!("{:.0}k", iops / 1e3)
    }
}

/// A moment in local time, by which schedules go: `2026-11-20 21:12:38 CET`.
pub fn moment(unix: u64) -> String {
    moment_in(zone(), unix)
}

/// The zone of whoever reads this; UTC where there is none.
pub fn zone() -> TimeZone {
    TimeZone::try_system().unwrap_or(TimeZone::UTC)
}

/// A moment in a zone.
pub fn moment_in(zone: TimeZone, unix: u64) -> String {
    // What no calendar reaches is no moment of ours; the number says as much.
    i64::try_from(unix)
        .ok()
        .and_then(|unix| Timestamp::from_second(unix).ok())
        .map_or_else(
            || format!("{unix} s after 1970"),
            |at| at.to_zoned(zone).strftime("%Y-%m-%d %H:%M:%S %Z").to_string(),
        )
}

/// A moment to come and how long that is ahead.
pub fn moment_ahead(unix: u64) -> String {
    match unix.saturating_sub(now()) {
        0 => format!("{} (now)", moment(unix)),
        seconds @ 1..60 => format!("{} (in {seconds} s)", moment(unix)),
        seconds => format!("{} (in {})", moment(unix), span(seconds as f64)),
    }
}

/// Seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// A moment and how long ago that is.
pub fn moment_ago(unix: u64) -> String {
    let ago = match now().saturating_sub(unix) {
        0 => return format!("{} (just now)", moment(unix)),
        seconds @ 1..60 => format!("{seconds} s"),
        seconds => span(seconds as f64),
    };
    format!("{} ({ago} ago)", moment(unix))
}

/// `1 disk`, `2 disks`.
pub fn count(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_two_units_at_most() {
        assert_eq!(span(0.85), "850 ms");
        assert_eq!(span(4.0), "4.0 s");
        assert_eq!(span(47.2), "47 s");
        assert_eq!(span(200.0), "3 min 20 s");
        assert_eq!(span(7500.0), "2 h 05 min");
        assert_eq!(span(273_600.0), "3 d 04 h");
    }

    #[test]
    fn response_times_are_in_milliseconds() {
        assert_eq!(response(Some(850.0)), "0.85 ms");
        assert_eq!(response(Some(1240.0)), "1.2 ms");
        assert_eq!(response(Some(2.5e6)), "2.5 s");
        assert_eq!(response(None), "-");
    }

    #[test]
    fn moments_are_in_local_time_and_say_so() {
        let utc = |unix| moment_in(TimeZone::UTC, unix);
        assert_eq!(utc(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(utc(951_782_400), "2000-02-29 00:00:00 UTC");
        assert_eq!(utc(1_795_205_558), "2026-11-20 20:12:38 UTC");
        let berlin = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        let berlin = |unix| moment_in(berlin.clone(), unix);
        assert_eq!(berlin(1_795_205_558), "2026-11-20 21:12:38 CET");
        assert_eq!(berlin(1_784_664_758), "2026-07-21 22:12:38 CEST");
        assert_eq!(utc(u64::MAX), "18446744073709551615 s after 1970");
    }

    #[test]
    fn requests_per_second_stay_short() {
        assert_eq!((iops(0.0), iops(0.4)), ("0".into(), "0.4".into()));
        assert_eq!((iops(9.94), iops(9.96)), ("9.9".into(), "10".into()));
        assert_eq!(iops(1249.7), "1250");
        assert_eq!(iops(12_340.0), "12.3k");
        assert_eq!(iops(250_000.0), "250k");
    }
}
