//! What an order costs the processors.
//!
//! The cost is the clock cycles of an order: the part of the processors that is busy,
//! times their clock, times their number, divided by orders per second. Where the
//! server runs on this machine its part can be read from `/proc`: that of the
//! postmaster, of its processes, and of those that it has had. What the kernel does
//! for a virtual disk elsewhere is not in it, nor is this program's own.
//!
//! The server's process number is believed only if the process of that number here
//! has the right name and began when the server says it did: the server may be in
//! another machine, or in a container with numbers of its own.

use std::fs;
use std::path::Path;

use serde::Serialize;
use tokio_postgres::Client;

/// How far two clocks of one machine may be apart, in seconds. (The boot time has
/// whole seconds.)
const APART: f64 = 2.0;

/// What orders cost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CpuCost {
    /// Seconds of processors that the server used.
    pub seconds: f64,
    /// Of all processors, in percent.
    pub percent: f64,
    /// How many processors there are.
    pub cores: u32,
    /// Their clock in MHz, if the machine tells it.
    pub clock_mhz: Option<f64>,
    /// Seconds of a processor for an order.
    pub seconds_per_order: f64,
    /// Clock cycles for an order.
    pub cycles_per_order: Option<f64>,
}

/// Clock cycles of an order, where so many percent of so many processors are busy.
pub fn cycles_per_order(
    percent: f64,
    clock_hz: f64,
    cores: u32,
    orders_per_s: f64,
) -> f64 {
    percent * clock_hz * f64::from(cores) / (100.0 * orders_per_s)
}

impl CpuCost {
    /// From what was used in some time for some orders; nothing if there were none.
    pub(crate) fn new(
        used: f64,
        span: f64,
        orders: u64,
        cores: u32,
        clock_mhz: Option<f64>,
    ) -> Option<CpuCost> {
        if orders == 0 || span <= 0.0 || cores == 0 {
            return None;
        }
        let percent = 100.0 * used / (span * f64::from(cores));
        let rate = orders as f64 / span;
        let cycles = |mhz: f64| cycles_per_order(percent, mhz * 1e6, cores, rate);
        Some(CpuCost {
            seconds: used,
            percent,
            cores,
            clock_mhz,
            seconds_per_order: used / orders as f64,
            cycles_per_order: clock_mhz.map(cycles),
        })
    }
}

/// A server on this machine.
#[derive(Debug)]
pub(crate) struct LocalServer {
    postmaster: u32,
    /// What tells it from another process with its number.
    started: u64,
    ticks_per_s: f64,
}

impl LocalServer {
    /// The server at the other end, if it is on this machine.
    pub(crate) async fn find(client: &Client) -> Option<LocalServer> {
        let sql = "SELECT pid, extract(epoch FROM backend_start)::float8
            FROM pg_stat_activity WHERE pid = pg_backend_pid()";
        let row = client.query_one(sql, &[]).await.ok()?;
        let (pid, began): (i32, f64) = (row.get(0), row.get(1));
        let ticks_per_s = rustix::param::clock_ticks_per_second() as f64;
        let backend = Process::read(u32::try_from(pid).ok()?)?;
        let here = boot_time()? + backend.started as f64 / ticks_per_s;
        if backend.name != "postgres" || (here - began).abs() > APART {
            return None;
        }
        let postmaster = Process::read(backend.parent)?;
        let started = postmaster.started;
        Some(LocalServer { postmaster: backend.parent, started, ticks_per_s })
    }

    /// Seconds that it has used since its start; nothing if it has ended.
    pub(crate) fn used(&self) -> Option<f64> {
        let postmaster = Process::read(self.postmaster)?;
        if postmaster.started != self.started {
            return None;
        }
        let entries = fs::read_dir("/proc").ok()?.flatten();
        let numbers =
            entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let children = numbers
            .filter_map(Process::read)
            .filter(|process| process.parent == self.postmaster);
        let ticks: u64 = postmaster.ticks + children.map(|one| one.ticks).sum::<u64>();
        Some(ticks as f64 / self.ticks_per_s)
    }
}

/// How many processors there are, and their clock in MHz.
pub(crate) fn processors() -> (u32, Option<f64>) {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let values = |name: &str| -> Vec<String> {
        let lines = text.lines().filter_map(|line| line.split_once(':'));
        lines
            .filter(|(key, _)| key.trim() == name)
            .map(|(_, value)| value.trim().to_owned())
            .collect()
    };
    let clocks: Vec<f64> =
        values("cpu MHz").iter().filter_map(|text| text.parse().ok()).collect();
    let mean = clocks.iter().sum::<f64>() / clocks.len() as f64;
    (values("processor").len() as u32, (!clocks.is_empty()).then_some(mean))
}

/// When the machine was booted, in seconds since 1970.
fn boot_time() -> Option<f64> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    text.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

/// What `/proc` says of a process.
#[derive(Debug, PartialEq, Eq)]
struct Process {
    name: String,
    parent: u32,
    /// Time used, also by children that have ended.
    ticks: u64,
    /// Since the boot.
    started: u64,
}

impl Process {
    fn read(pid: u32) -> Option<Process> {
        let path = Path::new("/proc").join(pid.to_string()).join("stat");
        Process::parse(&fs::read_to_string(path).ok()?)
    }

    /// The name is in parentheses, and may have any character in it.
    fn parse(text: &str) -> Option<Process> {
        let (head, tail) = text.rsplit_once(')')?;
        let name = head.split_once('(')?.1.to_owned();
        let fields: Vec<&str> = tail.split_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        let ticks = (11..15).map(number).sum::<Option<u64>>()?;
        let parent = u32::try_from(number(1)?).ok()?;
        Some(Process { name, parent, ticks, started: number(19)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_costs_what_was_published() {
        // 455.27 orders a second at 24.57 million cycles each, on 4 processors of
        // 3 GHz, are busy processors to 93 %.
        let percent = 100.0 * 455.27 * 24.57e6 / (4.0 * 3e9);
        let cost = cycles_per_order(percent, 3e9, 4, 455.27);
        assert!((cost / 24.57e6 - 1.0).abs() < 1e-9, "{cost}");
    }

    #[test]
    fn the_number_of_processors_does_not_change_what_an_order_costs() {
        let cost = |cores| CpuCost::new(30.0, 60.0, 6000, cores, Some(2000.0)).unwrap();
        assert_eq!((cost(1).percent, cost(4).percent), (50.0, 12.5));
        assert_eq!(cost(1).cycles_per_order, cost(4).cycles_per_order);
        assert_eq!(cost(1).cycles_per_order, Some(10e6));
        assert_eq!(CpuCost::new(30.0, 60.0, 0, 4, None), None);
    }

    #[test]
    fn a_process_is_read_whatever_its_name() {
        let line = "42 (a) b (c) S 7 42 42 0 -1 0 0 0 0 0 10 5 2 1 20 0 1 0 9000 1 1";
        let process = Process::parse(line).expect("a process");
        let expected =
            Process { name: "a) b (c".into(), parent: 7, ticks: 18, started: 9000 };
        assert_eq!(process, expected);
    }
}
