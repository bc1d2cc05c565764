//! What keeps everybody else's memory in place while the host has swap: `vm.swappiness` is 0.
//!
//! A host whose file cache fills its memory takes memory of programs out as well, if it swaps at
//! all; it was seen to do so to a tier as slow as a disk. Groups have a value of their own, so the
//! experiment's guest is not affected. Dropping this sets it to what it was.

use std::fs;

use anyhow::Context;

const SETTING: &str = "/proc/sys/vm/swappiness";

/// The setting, with its value of before.
pub(super) struct Swappiness {
    before: String,
}

impl Swappiness {
    /// Nobody's memory goes out by itself.
    pub(super) fn none() -> anyhow::Result<Swappiness> {
        let before = fs::read_to_string(SETTING).context("cannot read vm.swappiness")?;
        fs::write(SETTING, "0").context("cannot set vm.swappiness")?;
        Ok(Swappiness { before })
    }
}

impl Drop for Swappiness {
    fn drop(&mut self) {
        // It was written a while ago; there is nobody who could be told.
        let _ = fs::write(SETTING, &self.before);
    }
}
