//! What is run for real, and how long it takes.

use std::fmt;

use clap::ValueEnum;
use sterna_sim::overcommit::Medium;

/// The guest's memory, in bytes and as QEMU takes it.
pub(super) const MEMORY: u64 = 1 << 30;
pub(super) const MEMORY_TEXT: &str = "1G";

/// The store: with its indexes, a quarter of the guest's memory has it in its cache. An emulated
/// guest takes minutes to load it.
pub(super) const STORE: u64 = 128 << 20;

/// How long it is measured, in seconds: as long as the study did, and in a short check.
const SECONDS: u64 = 120;
const QUICK_SECONDS: u64 = 30;

/// How long customers warm the guest up before anything is measured, in seconds.
pub(super) const WARM_UP: u64 = 60;

/// How long they shop in the wake that Sterna learns from: what is used within a minute is noted.
pub(super) const LEARN: u64 = 65;

/// How long a guest sleeps before its customers come, in seconds.
pub(super) const IDLE: u64 = 2;

/// About how long the guest takes to boot, and to make and fill its database, in seconds.
const DATABASE: u64 = 150;

/// About how long it takes until a guest is asleep, and until all is back after it was measured.
const SLEEP: u64 = 90;

/// How a guest wakes, as the experiment has it wake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Sterna does not know the VM any more: the kernel brings back what the guest touches.
    Alone,
    /// Sterna brings it back beside the running guest.
    Beside,
    /// Sterna sees that the guest needs its memory, and may hold it at first.
    Held,
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Way::Alone => "kernel alone",
            Way::Beside => "beside",
            Way::Held => "held",
        })
    }
}

/// A medium, as people write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum MediumArg {
    /// A flash disk
    Flash,
    /// Four 15K Fibre Channel disks
    Fc,
    /// Two SATA disks
    Sata,
}

impl MediumArg {
    /// The medium.
    fn medium(self) -> Medium {
        match self {
            MediumArg::Flash => Medium::Flash,
            MediumArg::Fc => Medium::Fc,
            MediumArg::Sata => Medium::Sata,
        }
    }
}

/// What is done.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Plan {
    pub(super) media: Vec<Medium>,
    /// How long each wake is measured, in seconds.
    pub(super) seconds: u64,
    pub(super) repeats: u32,
    pub(super) seed: u64,
}

impl Plan {
    /// All media, or these.
    pub(super) fn new(media: &[MediumArg], quick: bool, repeats: u32, seed: u64) -> Plan {
        let chosen = |medium: &Medium| {
            media.is_empty() || media.iter().any(|it| it.medium() == *medium)
        };
        Plan {
            media: Medium::ALL.into_iter().filter(chosen).collect(),
            seconds: if quick { QUICK_SECONDS } else { SECONDS },
            repeats,
            seed,
        }
    }

    /// About how long all of it takes, in seconds.
    pub(super) fn all_seconds(&self) -> f64 {
        let wakes = u64::from(3 * self.repeats);
        let medium = self.seconds + LEARN + SLEEP + wakes * (self.seconds + SLEEP);
        (DATABASE + WARM_UP + self.media.len() as u64 * medium) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_are_all_or_those_that_are_named_the_fastest_first() {
        let plan = |media: &[MediumArg]| Plan::new(media, true, 1, 1);
        assert_eq!(plan(&[]).media, Medium::ALL);
        let two = plan(&[MediumArg::Sata, MediumArg::Fc]);
        assert_eq!(two.media, [Medium::Fc, Medium::Sata]);
        assert!(two.all_seconds() < plan(&[]).all_seconds());
    }
}
