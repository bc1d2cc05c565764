//! What a VM takes of its host: processors and memory.
//!
//! QEMU's process is asked where it can be seen: the kernel counts its processor time and
//! the memory that it holds, of which some is QEMU's own. libvirt says both itself.

use std::time::Duration;

/// The kernel counts processor time in these for programs, on all computers, whatever its
/// own clock is (`USER_HZ`).
const TICKS_PER_SECOND: u64 = 100;

/// What a VM has, and has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Its processors.
    pub processors: u32,
    /// Its memory, in bytes.
    pub memory: u64,
    /// Processor time that it has used since it was started.
    pub busy: Duration,
    /// The memory that it holds, in bytes: what the guest has touched and not given back.
    pub held: u64,
}

/// The processor time and the memory in pages of `/proc/PID/stat`. The name in it may have
/// anything in it, so what counts begins behind its last parenthesis.
pub(crate) fn of_process(stat: &str, page: u64) -> Option<(Duration, u64)> {
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    // The first is the state, which is the third of all.
    let number = |at: usize| fields.get(at - 3)?.parse::<u64>().ok();
    let ticks = number(14)? + number(15)?;
    let busy = Duration::from_millis(ticks.saturating_mul(1000 / TICKS_PER_SECOND));
    Some((busy, number(24)?.saturating_mul(page)))
}

/// A number of what libvirt's `domstats` prints of a VM.
pub(crate) fn number_of_domain(text: &str, key: &str) -> Option<u64> {
    let mut pairs = text.lines().filter_map(|line| line.trim().split_once('='));
    pairs.find(|(name, _)| *name == key)?.1.parse().ok()
}

/// What libvirt's `domstats` prints of a VM.
pub(crate) fn of_domain(text: &str) -> Option<Usage> {
    let value = |key: &str| number_of_domain(text, key);
    let memory = value("balloon.current")?.saturating_mul(1024);
    Some(Usage {
        processors: u32::try_from(value("vcpu.current")?).ok()?,
        memory,
        busy: Duration::from_nanos(value("cpu.time")?),
        held: value("balloon.rss").map_or(memory, |rss| rss.saturating_mul(1024)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_line_is_read_whatever_the_process_is_called() {
        let line = "71 (a) b (c) S 1 71 71 0 -1 4194560 9 0 0 0 250 50 0 0 20 0 4 0 \
                    12345 900000000 2048 18446744073709551615 1 1";
        let found = of_process(line, 4096);
        assert_eq!(found, Some((Duration::from_secs(3), 2048 * 4096)));
        assert_eq!(of_process("71 (qemu) S 1", 4096), None);
        assert_eq!(of_process("", 4096), None);
    }

    #[test]
    fn what_libvirt_says_is_read() {
        let text = "Domain: 'web'\n  cpu.time=2500000000\n  vcpu.current=4\n  \
                    balloon.current=2097152\n  balloon.rss=1048576\n";
        let expected = Usage {
            processors: 4,
            memory: 2 << 30,
            busy: Duration::from_millis(2500),
            held: 1 << 30,
        };
        assert_eq!(of_domain(text), Some(expected));
        let without = text.replace("balloon.rss", "balloon.other");
        assert_eq!(of_domain(&without).map(|it| it.held), Some(2 << 30));
        assert_eq!(of_domain("Domain: 'web'\n"), None, "it is off");
    }
}
