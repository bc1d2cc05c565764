//! The control group in which QEMU runs: the kernel can be told to free memory of it alone.
//!
//! The kernel keeps a copy of what is out until somebody needs the room. The experiment needs it
//! gone, or a wake would read nothing. It lowers the group's limit by as much as is still there of
//! it: what goes first is what was not used for longest, which is that copy. If the limit were
//! lowered by more, QEMU's own memory would go out as well, and a wake would wait for that.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;

use super::needs::GROUPS;

/// QEMU itself needs so much, at least: a limit below would have the kernel end it.
const LEAST: u64 = 64 << 20;

/// How readily memory of programs goes out, beside files: not at all, while the host takes room for
/// files, as a guest would else fall asleep again; and as readily as can be, while the group is
/// told to free memory.
const STAYS: &str = "0";
const GOES: &str = "100";

/// The limit is lowered so often, at most, and not for less: the kernel counts by and by.
const ROUNDS: u32 = 8;
const ENOUGH: u64 = 8 << 20;

/// No limit.
const UNLIMITED: &str = "-1";

/// How often it is tried to remove the group: QEMU takes a moment to end.
const TRIES: u32 = 50;
const AGAIN: Duration = Duration::from_millis(100);

/// A control group.
pub(super) struct Group {
    path: PathBuf,
}

impl Group {
    /// Makes one for this process's experiment.
    pub(super) fn new() -> anyhow::Result<Group> {
        let path = Path::new(GROUPS).join(format!("sterna-lab-{}", std::process::id()));
        fs::create_dir(&path)
            .with_context(|| format!("cannot make {}", path.display()))?;
        let group = Group { path };
        group.set("memory.swappiness", STAYS)?;
        Ok(group)
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Has the kernel free the copies of what is out.
    pub(super) fn free(&self) -> anyhow::Result<()> {
        self.set("memory.swappiness", GOES)?;
        let freed = self.lower();
        self.set("memory.swappiness", STAYS)?;
        self.set("memory.limit_in_bytes", UNLIMITED)?;
        freed
    }

    /// Lowers the limit until there are no copies, or it does not help.
    fn lower(&self) -> anyhow::Result<()> {
        let mut before = u64::MAX;
        for _ in 0..ROUNDS {
            let usage: u64 = self.get("memory.usage_in_bytes")?.trim().parse()?;
            // Tables of QEMU's memory, and other things of the kernel's.
            let kernel: u64 = self.get("memory.kmem.usage_in_bytes")?.trim().parse()?;
            let copies = copies(usage.saturating_sub(kernel), &self.get("memory.stat")?);
            if copies < ENOUGH || copies >= before {
                break;
            }
            before = copies;
            let limit = usage.saturating_sub(copies).max(LEAST).to_string();
            // It fails if less can be freed than that; what could be is then free.
            let _ = self.set("memory.limit_in_bytes", &limit);
        }
        Ok(())
    }

    fn get(&self, what: &str) -> anyhow::Result<String> {
        let path = self.path.join(what);
        fs::read_to_string(path)
            .with_context(|| format!("cannot read {what} of a control group"))
    }

    fn set(&self, what: &str, to: &str) -> anyhow::Result<()> {
        fs::write(self.path.join(what), to)
            .with_context(|| format!("cannot set {what} of a control group"))
    }
}

/// How much of what is on swap is in memory as well, in bytes, by a group's figures: what of so
/// many bytes beside the kernel's own is neither in use by a program nor a file's.
fn copies(usage: u64, stat: &str) -> u64 {
    let of = |wanted: &str| {
        let lines = stat.lines().filter_map(|line| line.split_once(' '));
        let mut found = lines.filter(|(name, _)| *name == wanted);
        found.next().and_then(|(_, bytes)| bytes.trim().parse().ok()).unwrap_or(0u64)
    };
    usage.saturating_sub(of("rss") + of("cache"))
}

impl Drop for Group {
    fn drop(&mut self) {
        for _ in 0..TRIES {
            if fs::remove_dir(&self.path).is_ok() {
                return;
            }
            std::thread::sleep(AGAIN);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_on_swap_and_in_memory_is_nobodys_and_no_file() {
        let stat = "cache 90\nrss 70\nshmem 40\ninactive_anon 7\ntotal_rss 70\n";
        assert_eq!((copies(1000, stat), copies(100, stat)), (840, 0));
    }
}
