//! The control group in which QEMU runs: the kernel can be told to free memory of it alone.
//!
//! The kernel keeps a copy of what is out until somebody needs the room. The experiment needs it
//! gone, or a wake would read nothing. It lowers the group's limit by as much as is out: what goes
//! first is what was not used for longest, which is that copy. Everything else of QEMU's stays.

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

    /// Has the kernel free the copy of so many bytes that are out.
    pub(super) fn free(&self, out: u64) -> anyhow::Result<()> {
        let usage = fs::read_to_string(self.path.join("memory.usage_in_bytes"))?;
        let usage: u64 = usage.trim().parse().context("the control group's usage")?;
        self.set("memory.swappiness", GOES)?;
        // It fails if less can be freed than that; what could be is then free.
        let limit = usage.saturating_sub(out).max(LEAST).to_string();
        let _ = self.set("memory.limit_in_bytes", &limit);
        self.set("memory.swappiness", STAYS)?;
        self.set("memory.limit_in_bytes", UNLIMITED)
    }

    fn set(&self, what: &str, to: &str) -> anyhow::Result<()> {
        fs::write(self.path.join(what), to)
            .with_context(|| format!("cannot set {what} of a control group"))
    }
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
