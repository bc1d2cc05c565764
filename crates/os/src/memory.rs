//! The memory of this host, as the kernel says it.

use std::fs;
use std::io::{self, ErrorKind};

/// What the host has, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostMemory {
    /// All of it.
    pub total: u64,
    /// What programs could have without swapping, by the kernel's estimate.
    pub available: u64,
    /// What is on swap and in memory as well, of all processes: the kernel frees it without writing
    /// anything, and does not count it as available.
    pub swap_cached: u64,
}

/// What the host has now.
pub fn host() -> io::Result<HostMemory> {
    parsed(&fs::read_to_string("/proc/meminfo")?)
        .ok_or_else(|| ErrorKind::InvalidData.into())
}

/// What the host has read since it was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reads {
    /// How often a process had to wait for a page, whichever process it was, and from swap or from
    /// a file.
    pub faults: u64,
    /// Pages from swap.
    pub from_swap: u64,
}

/// What the host has read by now.
pub fn reads() -> io::Result<Reads> {
    let text = fs::read_to_string("/proc/vmstat")?;
    let count = |name| count_of(&text, name).ok_or(ErrorKind::InvalidData);
    Ok(Reads { faults: count("pgmajfault")?, from_swap: count("pswpin")? })
}

/// The number behind a name, of the kernel's "name number" lines.
fn count_of(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(found, _)| *found == name)?.1.trim().parse().ok()
}

/// The bytes behind a name, of the kernel's "Name: number kB" lines.
pub(crate) fn bytes_of(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = lines.find(|(found, _)| *found == name)?;
    let kib: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

fn parsed(text: &str) -> Option<HostMemory> {
    Some(HostMemory {
        total: bytes_of(text, "MemTotal")?,
        available: bytes_of(text, "MemAvailable")?,
        swap_cached: bytes_of(text, "SwapCached").unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_lines_are_read() {
        let text = "MemTotal:       24 kB\nMemFree: 1 kB\nMemAvailable:   12 kB\n\
                    SwapCached:            3 kB\n";
        let expected =
            HostMemory { total: 24 << 10, available: 12 << 10, swap_cached: 3 << 10 };
        assert_eq!(parsed(text), Some(expected));
        assert_eq!(parsed("MemTotal: 24 kB\n"), None);
        assert!(host().unwrap().total > 0);
        let text = "pgfault 7\npgmajfault 12\n";
        assert_eq!(
            (count_of(text, "pgmajfault"), count_of(text, "pg")),
            (Some(12), None)
        );
        assert!(reads().is_ok());
    }
}
