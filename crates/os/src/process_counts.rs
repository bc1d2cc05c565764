//! What the kernel counts of the memory of a process. Two of its files are read: that costs the
//! process nothing, and needs no rights.

use std::fs;
use std::io::{self, ErrorKind};

use crate::memory::bytes_of;

/// What the kernel counts of the memory of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessCounts {
    /// When it was started, in ticks since the host was: another process with the same number
    /// was started at another time.
    pub started: u64,
    /// How often it had to wait for a page to be read since then.
    pub faults: u64,
    /// Bytes of it in memory.
    pub resident: u64,
    /// Bytes of it on swap.
    pub out: u64,
}

impl ProcessCounts {
    /// Of the process that has this number and was started then: not of another one that has its
    /// number by now.
    pub fn of_process(pid: i32, started: u64) -> io::Result<ProcessCounts> {
        let counts = ProcessCounts::of(pid)?;
        match counts.started == started {
            true => Ok(counts),
            false => Err(ErrorKind::NotFound.into()),
        }
    }

    /// Of the process with this number.
    pub fn of(pid: i32) -> io::Result<ProcessCounts> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        parsed(&stat, &status).ok_or_else(|| ErrorKind::InvalidData.into())
    }
}

fn parsed(stat: &str, status: &str) -> Option<ProcessCounts> {
    // The name may have anything in it. Behind it the state is the third field, the faults that
    // had to wait the twelfth, and the start the twenty-second (proc(5)).
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let faults = fields.nth(9)?.parse().ok()?;
    let started = fields.nth(9)?.parse().ok()?;
    Some(ProcessCounts {
        started,
        faults,
        resident: bytes_of(status, "VmRSS")?,
        out: bytes_of(status, "VmSwap")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_lines_are_read_whatever_the_process_is_called() {
        let stat =
            "7 (a) b (c) S 1 2 3 4 5 6 70 8 90 10 11 12 13 14 15 16 17 18 2200 23\n";
        let status = "Name:\ta\nVmRSS:\t     12 kB\nVmSwap:\t      3 kB\n";
        let (resident, out) = (12 << 10, 3 << 10);
        let expected = ProcessCounts { started: 2200, faults: 90, resident, out };
        assert_eq!(parsed(stat, status), Some(expected));
        // A thread of the kernel's has no memory.
        assert_eq!(parsed(stat, "Name:\ta\n"), None);
        let own = ProcessCounts::of(std::process::id().cast_signed()).unwrap();
        assert!(own.resident > 0 && own.started > 0);
        let pid = std::process::id().cast_signed();
        assert!(ProcessCounts::of_process(pid, own.started).is_ok());
        assert!(ProcessCounts::of_process(pid, own.started + 1).is_err());
    }
}
