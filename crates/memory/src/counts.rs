//! What the kernel has counted at a few moments of the last seconds, and what follows from two of
//! them.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use sterna_os::block_device::DeviceCounts;
use sterna_os::process_counts::ProcessCounts;

/// The span of all figures per second: a wake can be seen in it, and a device that is asked seldom
/// has some reads.
pub(crate) const WINDOW: Duration = Duration::from_secs(10);

/// What the kernel had counted at a moment.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    pub(crate) at: Instant,
    /// Faults of all processes that had to wait for a page.
    pub(crate) faults: Option<u64>,
    /// Block devices, by name.
    pub(crate) devices: BTreeMap<String, DeviceCounts>,
    /// The processes of VMs, by the VMs' names.
    pub(crate) vms: BTreeMap<String, ProcessCounts>,
}

/// What was counted within [`WINDOW`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Recent(VecDeque<Counts>);

/// What a device does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct DeviceRates {
    pub(crate) reads_per_s: f64,
    pub(crate) writes_per_s: f64,
    /// The mean time of a read, if there was one.
    pub(crate) read: Option<Duration>,
}

impl Recent {
    /// Adds the latest.
    pub(crate) fn add(&mut self, counts: Counts) {
        let at = counts.at;
        self.0.push_back(counts);
        while self.0.front().is_some_and(|first| at - first.at > WINDOW) {
            self.0.pop_front();
        }
    }

    /// From the first to the last.
    pub(crate) fn window(&self) -> Duration {
        self.between(|_| Some(())).map_or(Duration::ZERO, |it| it.2)
    }

    /// Faults of all processes, per second.
    pub(crate) fn faults_per_s(&self) -> Option<f64> {
        let (then, now, span) = self.between(|counts| counts.faults)?;
        Some(per_second(then, now, span))
    }

    /// Faults of a VM's process, per second. A process that has come since is another one.
    pub(crate) fn faults_of(&self, vm: &str) -> Option<f64> {
        let started = self.0.back()?.vms.get(vm)?.started;
        let of_it = |counts: &Counts| {
            counts.vms.get(vm).filter(|it| it.started == started).copied()
        };
        let (then, now, span) = self.between(of_it)?;
        Some(per_second(then.faults, now.faults, span))
    }

    /// What a device does.
    pub(crate) fn device(&self, name: &str) -> Option<DeviceRates> {
        let (then, now, span) =
            self.between(|counts| counts.devices.get(name).copied())?;
        let reads = u32::try_from(now.reads.saturating_sub(then.reads)).ok()?;
        let took = now.read_time.saturating_sub(then.read_time);
        Some(DeviceRates {
            reads_per_s: per_second(then.reads, now.reads, span),
            writes_per_s: per_second(then.writes, now.writes, span),
            read: took.checked_div(reads),
        })
    }

    /// What there was first and last, and how long that was apart. Nothing if the last moment does
    /// not have it, or no other.
    fn between<T>(&self, of: impl Fn(&Counts) -> Option<T>) -> Option<(T, T, Duration)> {
        let last = self.0.back()?;
        let now = of(last)?;
        let (then, at) =
            self.0.iter().find_map(|counts| Some((of(counts)?, counts.at)))?;
        let span = last.at - at;
        (!span.is_zero()).then_some((then, now, span))
    }
}

fn per_second(then: u64, now: u64, span: Duration) -> f64 {
    now.saturating_sub(then) as f64 / span.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second() -> Duration {
        Duration::from_secs(1)
    }

    fn vm(started: u64, faults: u64) -> ProcessCounts {
        ProcessCounts { started, faults, ..ProcessCounts::default() }
    }

    fn at(
        began: Instant,
        seconds: u32,
        faults: u64,
        vms: &[(&str, ProcessCounts)],
    ) -> Counts {
        let vms =
            vms.iter().map(|(name, counts)| ((*name).to_owned(), *counts)).collect();
        let at = began + second() * seconds;
        Counts { at, faults: Some(faults), devices: BTreeMap::new(), vms }
    }

    #[test]
    fn figures_are_those_of_ten_seconds_and_of_one_moment_there_are_none() {
        let (mut recent, began) = (Recent::default(), Instant::now());
        assert_eq!(recent.faults_per_s(), None);
        recent.add(at(began, 0, 100, &[]));
        assert_eq!((recent.faults_per_s(), recent.window()), (None, Duration::ZERO));
        recent.add(at(began, 2, 300, &[]));
        assert_eq!((recent.faults_per_s(), recent.window()), (Some(100.0), second() * 2));
        recent.add(at(began, 12, 300, &[]));
        assert_eq!((recent.faults_per_s(), recent.window()), (Some(0.0), second() * 10));
    }

    #[test]
    fn a_vm_that_was_started_anew_begins_anew() {
        let (mut recent, began) = (Recent::default(), Instant::now());
        recent.add(at(began, 0, 0, &[("web", vm(7, 5000))]));
        recent.add(at(began, 2, 0, &[("web", vm(9, 10))]));
        assert_eq!(recent.faults_of("web"), None, "it was seen once");
        recent.add(at(began, 4, 0, &[("web", vm(9, 30))]));
        assert_eq!(recent.faults_of("web"), Some(10.0));
        recent.add(at(began, 6, 0, &[]));
        assert_eq!(recent.faults_of("web"), None, "it has ended");
    }

    #[test]
    fn a_device_that_reads_nothing_has_no_time_of_a_read() {
        let (mut recent, began) = (Recent::default(), Instant::now());
        let mut counts = at(began, 0, 0, &[]);
        let disk = DeviceCounts { reads: 10, read_time: second(), writes: 3 };
        counts.devices.insert("sda".into(), disk);
        recent.add(counts.clone());
        counts.at += second() * 2;
        recent.add(counts.clone());
        let rates = recent.device("sda").unwrap();
        assert_eq!((rates.reads_per_s, rates.read), (0.0, None));
        counts.at += second() * 2;
        let disk = DeviceCounts { reads: 50, read_time: second() * 2, writes: 7 };
        counts.devices.insert("sda".into(), disk);
        recent.add(counts);
        let rates = recent.device("sda").unwrap();
        assert_eq!((rates.reads_per_s, rates.writes_per_s), (10.0, 1.0));
        assert_eq!(rates.read, Some(Duration::from_millis(25)));
        assert_eq!(recent.device("sdb"), None);
    }
}
