//! The columns: what they are called, how wide they are, what is in them.
//!
//! Eight columns and a name fit 80; the others are for wider terminals.

use sterna_api::{Device, TopRow};

/// The least that is left for names.
pub(super) const NAME_MIN: usize = 16;
/// How many columns leave only that; the others come where names have more.
const FIRST: usize = 8;
/// What names have before there are more columns.
const NAME_WIDE: usize = 32;
/// Between two columns.
pub(super) const GAP: usize = 1;

/// A column of numbers.
#[derive(Clone, Copy)]
pub(super) struct Column {
    /// Its heading.
    pub(super) head: &'static str,
    /// Its width.
    pub(super) width: usize,
    /// What is in it; nothing where there is nothing to say.
    pub(super) value: fn(&TopRow) -> Option<f64>,
    show: fn(f64) -> String,
}

impl Column {
    /// A row's cell.
    pub(super) fn text(&self, row: &TopRow) -> String {
        (self.value)(row).map_or("-".into(), self.show)
    }
}

/// All columns, those that are given up first at the end.
pub(super) const COLUMNS: [Column; 15] = [
    Column { head: "IO/S", width: 7, value: |it| Some(it.load.iops()), show: rate },
    Column {
        head: "MIB/S",
        width: 7,
        value: |it| mib(it.load.bytes_per_second()),
        show: rate,
    },
    Column {
        head: "READ ms",
        width: 7,
        value: |it| ms(it.load.read.response_us),
        show: time,
    },
    Column {
        head: "WRITE ms",
        width: 8,
        value: |it| ms(it.load.write.response_us),
        show: time,
    },
    Column { head: "P99 ms", width: 7, value: |it| ms(it.load.p99_us), show: time },
    Column { head: "QUEUE", width: 6, value: |it| ms(it.load.queue_us), show: time },
    Column { head: "SERVICE", width: 7, value: |it| ms(it.load.service_us), show: time },
    Column { head: "OUT", width: 5, value: |it| Some(outstanding(it)), show: rate },
    Column { head: "FLUSH/S", width: 7, value: |it| Some(it.load.flushes), show: rate },
    Column { head: "READ/S", width: 7, value: |it| Some(it.load.read.iops), show: rate },
    Column {
        head: "WRITE/S",
        width: 7,
        value: |it| Some(it.load.write.iops),
        show: rate,
    },
    Column { head: "P50 ms", width: 7, value: |it| ms(it.load.p50_us), show: time },
    Column { head: "P95 ms", width: 7, value: |it| ms(it.load.p95_us), show: time },
    Column { head: "MAX ms", width: 7, value: |it| ms(it.load.max_us), show: time },
    Column { head: "PEAK/S", width: 7, value: peak, show: rate },
];

/// Those that fit beside a name.
pub(super) fn that_fit(width: usize) -> &'static [Column] {
    let mut taken = 0;
    let fits = |(at, column): &(usize, &Column)| {
        let name = if *at < FIRST { NAME_MIN } else { NAME_WIDE };
        taken += column.width + GAP;
        name + taken <= width
    };
    &COLUMNS[..COLUMNS.iter().enumerate().take_while(fits).count()]
}

/// Under way: on average, or now, if they hang.
pub(super) fn outstanding(row: &TopRow) -> f64 {
    match row.load.iops() {
        0.0 => row.load.in_flight as f64,
        _ => row.load.outstanding,
    }
}

fn mib(bytes: f64) -> Option<f64> {
    Some(bytes / f64::from(1 << 20))
}

fn ms(micros: Option<f64>) -> Option<f64> {
    micros.map(|micros| micros / 1e3)
}

/// What the device can do at most, as far as that is known.
fn peak(row: &TopRow) -> Option<f64> {
    match row.device {
        Some(Device::Line { peak_iops, .. }) => Some(peak_iops),
        _ => None,
    }
}

/// So many of something, in at most five places: `0`, `7.3`, `1250`, `12.3k`.
fn rate(value: f64) -> String {
    match value {
        0.0 => "0".into(),
        ..9.95 => format!("{value:.1}"),
        ..9999.5 => format!("{value:.0}"),
        ..99_950.0 => format!("{:.1}k", value / 1e3),
        _ => format!("{:.0}k", value / 1e3),
    }
}

/// Milliseconds, in at most six places: `0`, `0.085`, `0.85`, `12.3`, `4200`.
fn time(value: f64) -> String {
    match value {
        0.0 => "0".into(),
        ..0.0995 => format!("{value:.3}"),
        ..9.995 => format!("{value:.2}"),
        ..99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_columns_fit_an_old_terminal_and_all_a_wide_one() {
        let heads =
            |width| that_fit(width).iter().map(|one| one.head).collect::<Vec<_>>();
        assert_eq!(heads(80).last(), Some(&"OUT"));
        assert_eq!(heads(80).len(), 8);
        assert_eq!(heads(200).len(), COLUMNS.len());
        assert!(heads(10).is_empty());
        for column in COLUMNS {
            assert!(column.head.len() <= column.width, "{}", column.head);
        }
    }

    #[test]
    fn numbers_fit_their_columns() {
        for value in [0.0, 0.01, 9.94, 9.96, 99.96, 999.6, 9999.4, 12_345.0, 9.9e6] {
            assert!(rate(value).len() <= 5, "{}", rate(value));
        }
        for value in [0.0, 0.085, 0.0996, 9.996, 99.96, 3_600_000.0 / 4.0] {
            assert!(time(value).len() <= 6, "{}", time(value));
        }
        assert_eq!((time(0.085), time(0.853)), ("0.085".into(), "0.85".into()));
        assert_eq!((rate(7.31), rate(12_340.0)), ("7.3".into(), "12.3k".into()));
    }
}
