//! The columns: what they are called, how wide they are, what is in them.
//!
//! Eight columns of loads and a name fit 80, or seven of memory; the others are for wider
//! terminals.

use sterna_api::{Device, TopRow, VmMemoryState, VmMemoryTop};
use sterna_console::format::bytes;

/// The least that is left for names.
pub(super) const NAME_MIN: usize = 16;
/// How many columns leave only that; the others come where names have more.
const FIRST: usize = 8;
/// What names have before there are more columns.
const NAME_WIDE: usize = 32;
/// Between two columns.
pub(super) const GAP: usize = 1;

/// Something that has a row of its own.
pub(super) trait Named {
    /// Its name.
    fn name(&self) -> &str;
}

impl Named for TopRow {
    fn name(&self) -> &str {
        &self.name
    }
}

impl Named for VmMemoryTop {
    fn name(&self) -> &str {
        &self.vm
    }
}

/// A column of numbers, in rows of this kind.
pub(super) struct Column<R: 'static> {
    /// Its heading.
    pub(super) head: &'static str,
    /// Its width.
    pub(super) width: usize,
    /// What is in it; nothing where there is nothing to say.
    pub(super) value: fn(&R) -> Option<f64>,
    show: fn(f64) -> String,
}

impl<R> Column<R> {
    /// A row's cell.
    pub(super) fn text(&self, row: &R) -> String {
        (self.value)(row).map_or("-".into(), self.show)
    }
}

/// All columns of loads, those that are given up first at the end.
pub(super) static LOADS: [Column<TopRow>; 15] = [
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

/// All columns of VMs' memory.
pub(super) static MEMORY: [Column<VmMemoryTop>; 7] = [
    Column { head: "OUT", width: 8, value: |it| amount(it.out), show: size },
    Column { head: "FAULTS/S", width: 8, value: |it| it.faults_per_s, show: rate },
    Column { head: "RESIDENT", width: 8, value: |it| amount(it.resident), show: size },
    Column { head: "SIZE", width: 8, value: |it| amount(it.size), show: size },
    Column { head: "BALLOON", width: 8, value: |it| amount(it.balloon), show: size },
    Column { head: "ENTITLED", width: 8, value: |it| amount(it.entitled), show: size },
    Column { head: "STATE", width: 7, value: |it| Some(rank(it.state)), show: state },
];

/// Those that fit beside a name.
pub(super) fn that_fit<R>(
    all: &'static [Column<R>],
    width: usize,
) -> &'static [Column<R>] {
    let mut taken = 0;
    let fits = |(at, column): &(usize, &Column<R>)| {
        let name = if *at < FIRST { NAME_MIN } else { NAME_WIDE };
        taken += column.width + GAP;
        name + taken <= width
    };
    &all[..all.iter().enumerate().take_while(fits).count()]
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

fn amount(bytes: Option<u64>) -> Option<f64> {
    bytes.map(|bytes| bytes as f64)
}

fn size(value: f64) -> String {
    bytes(value as u64)
}

/// What VMs do, in the order in which one would look first.
const STATES: [&str; 4] = ["awake", "asleep", "falls", "wakes"];

fn rank(state: VmMemoryState) -> f64 {
    match state {
        VmMemoryState::Awake => 0.0,
        VmMemoryState::Asleep => 1.0,
        VmMemoryState::FallingAsleep => 2.0,
        VmMemoryState::Waking => 3.0,
    }
}

fn state(rank: f64) -> String {
    STATES.get(rank as usize).copied().unwrap_or_default().to_owned()
}

/// So many of something, in at most five places: `0`, `7.3`, `1250`, `12.3k`.
pub(super) fn rate(value: f64) -> String {
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
        let heads = |width| {
            that_fit(&LOADS, width).iter().map(|one| one.head).collect::<Vec<_>>()
        };
        assert_eq!(heads(80).last(), Some(&"OUT"));
        assert_eq!(heads(80).len(), 8);
        assert_eq!(heads(200).len(), LOADS.len());
        assert_eq!(that_fit(&MEMORY, 80).len(), MEMORY.len());
        assert!(heads(10).is_empty());
        let widths = LOADS.iter().map(|it| (it.head, it.width));
        for (head, width) in widths.chain(MEMORY.iter().map(|it| (it.head, it.width))) {
            assert!(head.len() <= width, "{head}");
        }
        for state in STATES {
            assert!(state.len() <= 7, "{state}");
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
