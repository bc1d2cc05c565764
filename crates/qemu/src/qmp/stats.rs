//! What devices did, since QEMU was started.
//!
//! QEMU counts; a window is the difference of two looks. What it counts is what the
//! guest asked of the device: its own jobs do not show. How many requests are under
//! way it does not say, so a guest that gets no answers cannot be told from one that
//! asks for nothing.

use serde::{Deserialize, Serialize};
use sterna_core::Nanos;
use sterna_core::measure::{Spread, Traffic, Window};

use super::command::{Nothing, command};

/// What all devices did.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct QueryBlockStats {}
command!(QueryBlockStats, "query-blockstats", Vec<BlockStats>);

/// What a device did.
#[derive(Clone, Debug, Deserialize)]
pub struct BlockStats {
    /// Its old name; empty without one.
    #[serde(default)]
    pub device: String,
    /// The path of the guest's device in QEMU.
    pub qdev: Option<String>,
    /// Its root node, if something is in it.
    #[serde(rename = "node-name")]
    pub node: Option<String>,
    /// What it did.
    pub stats: Stats,
}

/// Counters of one device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Stats {
    #[serde(rename = "rd_operations")]
    reads: u64,
    #[serde(rename = "rd_bytes")]
    read_bytes: u64,
    #[serde(rename = "rd_total_time_ns")]
    read_time: u64,
    #[serde(rename = "wr_operations")]
    writes: u64,
    #[serde(rename = "wr_bytes")]
    write_bytes: u64,
    #[serde(rename = "wr_total_time_ns")]
    write_time: u64,
    #[serde(rename = "rd_latency_histogram")]
    read_times: Option<Histogram>,
    #[serde(rename = "wr_latency_histogram")]
    write_times: Option<Histogram>,
}

/// How many requests took how long, if the device was told to count that.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Histogram {
    /// Where one bin ends and the next begins, in ns; the first begins at 0, the last
    /// has no end.
    boundaries: Vec<u64>,
    bins: Vec<u64>,
}

/// Has a device count how long requests take, from 0 on; without boundaries it stops
/// doing so.
#[derive(Clone, Debug, Serialize)]
pub struct LatencyHistogram {
    /// The path of the guest's device in QEMU.
    pub id: String,
    /// Between the bins, in ns.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub boundaries: Vec<u64>,
}
command!(LatencyHistogram, "block-latency-histogram-set", Nothing);

impl LatencyHistogram {
    /// Four bins to each doubling, from 16 us to 17 s: a percentile is wrong by at most
    /// a tenth.
    pub fn fine(id: String) -> Self {
        let octaves = (14..34).map(|octave| 1u64 << octave);
        let fine = |octave: u64| (4..8).map(move |quarter| octave / 4 * quarter);
        LatencyHistogram { id, boundaries: octaves.flat_map(fine).collect() }
    }

    /// Nothing is counted any more.
    pub fn none(id: String) -> Self {
        LatencyHistogram { id, boundaries: Vec::new() }
    }
}

impl Histogram {
    /// Adds what was counted since `before`, each at the middle of its bin.
    fn since(&self, before: Option<&Histogram>, into: &mut Spread) {
        let same = before.filter(|before| before.boundaries == self.boundaries);
        for (at, &bin) in self.bins.iter().enumerate() {
            let had = same.and_then(|before| before.bins.get(at)).copied().unwrap_or(0);
            into.record_many(Nanos(self.middle(at)), bin.saturating_sub(had));
        }
    }

    fn middle(&self, bin: usize) -> u64 {
        let low = bin.checked_sub(1).and_then(|at| self.boundaries.get(at)).copied();
        let low = low.unwrap_or(0);
        let high = self.boundaries.get(bin).copied().unwrap_or(low.saturating_mul(2));
        low + high.saturating_sub(low) / 2
    }
}

impl Stats {
    /// Counters as libvirt gives them.
    pub(crate) fn counted(read: [u64; 3], write: [u64; 3]) -> Stats {
        let [reads, read_bytes, read_time] = read;
        let [writes, write_bytes, write_time] = write;
        Stats {
            reads,
            read_bytes,
            read_time,
            writes,
            write_bytes,
            write_time,
            ..Stats::default()
        }
    }

    /// What happened from `before` until now, `span` later. Counters that went back
    /// were set back: then nothing is known of this window.
    pub fn since(&self, before: &Stats, span: Nanos) -> Window {
        let mut window = Window { span, ..Window::default() };
        window.read = traffic(
            [self.reads, self.read_bytes, self.read_time],
            [before.reads, before.read_bytes, before.read_time],
        );
        window.write = traffic(
            [self.writes, self.write_bytes, self.write_time],
            [before.writes, before.write_bytes, before.write_time],
        );
        for (now, before) in [
            (&self.read_times, &before.read_times),
            (&self.write_times, &before.write_times),
        ] {
            if let Some(now) = now {
                now.since(before.as_ref(), &mut window.response);
            }
        }
        window
    }

    /// Whether it counts how long requests take.
    pub fn has_times(&self) -> bool {
        self.read_times.is_some() || self.write_times.is_some()
    }
}

fn traffic(now: [u64; 3], before: [u64; 3]) -> Traffic {
    let mut more = [0; 3];
    for at in 0..3 {
        match now[at].checked_sub(before[at]) {
            Some(difference) => more[at] = difference,
            None => return Traffic::default(),
        }
    }
    let [operations, bytes, time] = more;
    let response = Nanos(time);
    Traffic { operations, bytes, response, service: response, ..Traffic::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: Nanos = Nanos::from_millis(100);

    fn read(text: &str) -> Stats {
        serde_json::from_str(text).unwrap()
    }

    fn counters(reads: u64, bins: &str) -> Stats {
        read(&format!(
            r#"{{"rd_operations": {reads}, "rd_bytes": {}, "rd_total_time_ns": {},
            "wr_operations": 0, "wr_bytes": 0, "wr_total_time_ns": 0, "new": [1],
            "rd_latency_histogram": {{"boundaries": [1000000, 2000000], "bins": {bins}}}}}"#,
            reads * 4096,
            reads * 1_000_000,
        ))
    }

    #[test]
    fn a_window_is_the_difference_of_two_looks() {
        let (before, now) = (counters(10, "[10, 0, 0]"), counters(110, "[11, 99, 0]"));
        let window = now.since(&before, SPAN);
        assert_eq!(window.iops(), 1000.0);
        assert_eq!(window.read.mean(window.read.response), Some(Nanos::from_millis(1)));
        let p99 = window.response.quantile(0.99).unwrap();
        assert!((1_400_000..=1_500_000).contains(&p99.0), "{p99}");
        assert_eq!(before.since(&now, SPAN).total().operations, 0, "set back");
    }

    #[test]
    fn bins_of_response_times_follow_each_other() {
        let LatencyHistogram { boundaries, .. } = LatencyHistogram::fine("d".into());
        assert!(boundaries.is_sorted() && boundaries.len() == 80);
        let wide = boundaries.windows(2).map(|two| two[1] as f64 / two[0] as f64);
        assert!(wide.fold(0.0, f64::max) <= 1.25);
    }
}
