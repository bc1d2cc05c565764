//! What goes on while the experiment runs, looked at twice a second: what each side's
//! arrays do, what the guest gets of its disks, and what its processes use of the
//! processors.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::Context;
use sterna_api::{Client, SideLoad, Top, TopBy};
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::plan::Disk;

/// How often it is looked.
const TICK: Duration = Duration::from_millis(500);

/// Reads or writes of several datastores together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Flow {
    /// Bytes a second.
    pub(super) bytes: f64,
    /// Requests a second.
    pub(super) requests: f64,
    /// The mean response time in milliseconds; nothing of no requests.
    pub(super) response_ms: Option<f64>,
}

/// What went on in one window.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Tick {
    /// When it ended, in seconds from the experiment's start.
    pub(super) at: f64,
    /// Reads and writes of the old arrays, by disk.
    pub(super) old: Vec<[Flow; 2]>,
    /// Those of the new ones.
    pub(super) new: Vec<[Flow; 2]>,
    /// The longest that the guest waited for a disk, in milliseconds.
    pub(super) slowest_ms: Option<f64>,
    /// Seconds of processors that QEMU has used, if it runs.
    pub(super) guest_cpu: Option<f64>,
    /// Those that the daemon has used.
    pub(super) daemon_cpu: Option<f64>,
}

/// Looks, and keeps what it saw.
pub(super) struct Watch {
    client: Client,
    daemon: u32,
    begin: Instant,
    ticker: Interval,
    pub(super) ticks: Vec<Tick>,
}

impl Watch {
    /// The clock begins at 0.
    pub(super) fn begin(client: &Client, daemon: u32) -> Watch {
        let mut ticker = interval(TICK);
        ticker.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (client, begin) = (client.clone(), Instant::now());
        Watch { client, daemon, begin, ticker, ticks: Vec::new() }
    }

    /// Seconds since the beginning.
    pub(super) fn now(&self) -> f64 {
        self.begin.elapsed().as_secs_f64()
    }

    /// A moment on this clock.
    pub(super) fn moment(&self, at: Instant) -> f64 {
        match at.checked_duration_since(self.begin) {
            Some(after) => after.as_secs_f64(),
            None => -(self.begin - at).as_secs_f64(),
        }
    }

    /// Waits for the end of a window, and takes it.
    pub(super) async fn tick(&mut self, guest: Option<u32>) -> anyhow::Result<()> {
        self.ticker.tick().await;
        let stores = self.client.top(TopBy::Datastore, TICK.as_secs_f64()).await?;
        let disks = self.client.top(TopBy::Disk, TICK.as_secs_f64()).await?;
        let slowest = disks.rows.iter().filter_map(|row| row.load.max_us);
        self.ticks.push(Tick {
            at: self.now(),
            old: Disk::ALL.map(|disk| flows(&stores, &disk.old_store())).into(),
            new: Disk::ALL.map(|disk| flows(&stores, &disk.new_store())).into(),
            slowest_ms: slowest.reduce(f64::max).map(|us| us / 1e3),
            guest_cpu: guest.and_then(used),
            daemon_cpu: used(self.daemon),
        });
        Ok(())
    }
}

/// Reads and writes of a datastore.
fn flows(top: &Top, store: &str) -> [Flow; 2] {
    let row = top.rows.iter().find(|row| row.name == store);
    row.map_or_else(Default::default, |row| [row.load.read, row.load.write].map(flow))
}

fn flow(side: SideLoad) -> Flow {
    Flow {
        bytes: side.bytes_per_second,
        requests: side.iops,
        response_ms: side.response_us.map(|us| us / 1e3),
    }
}

/// Several flows as one.
pub(super) fn together(flows: impl Iterator<Item = Flow>) -> Flow {
    let (mut all, mut waited) = (Flow::default(), 0.0);
    for flow in flows {
        all.bytes += flow.bytes;
        all.requests += flow.requests;
        waited += flow.requests * flow.response_ms.unwrap_or_default();
    }
    all.response_ms = (all.requests > 0.0).then(|| waited / all.requests);
    all
}

/// Seconds of processors that a process has used, with all of its threads.
fn used(pid: u32) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses, and may have any character in it.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at)?.parse::<u64>().ok();
    let per_second = rustix::param::clock_ticks_per_second() as f64;
    Some((ticks(11)? + ticks(12)?) as f64 / per_second)
}

/// The processors' clock in cycles a second, if the machine tells it.
pub(super) fn clock() -> anyhow::Result<Option<f64>> {
    let text =
        fs::read_to_string("/proc/cpuinfo").context("cannot read /proc/cpuinfo")?;
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    let mut clocks = lines.filter(|(name, _)| name.trim() == "cpu MHz");
    let mhz = clocks.next().and_then(|(_, value)| value.trim().parse::<f64>().ok());
    Ok(mhz.map(|mhz| mhz * 1e6))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_add_up_and_their_times_are_weighed() {
        let flow = |requests: f64, response_ms: Option<f64>| Flow {
            bytes: requests * 100.0,
            requests,
            response_ms,
        };
        let all =
            [flow(10.0, Some(1.0)), flow(30.0, Some(5.0)), flow(0.0, None)].into_iter();
        assert_eq!(together(all), flow(40.0, Some(4.0)));
        assert_eq!(together([].into_iter()), Flow::default());
    }

    #[test]
    fn a_process_says_what_it_has_used() {
        assert!(used(std::process::id()).is_some());
        assert_eq!(used(u32::MAX), None);
    }
}
