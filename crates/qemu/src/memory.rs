//! What is seen of a VM's memory: how much of it is where, and what its balloon has and says.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::direct::Direct;
use crate::managed::Managed;
use crate::qmp::{
    GetGuestStats, GetProperty, ListObjects, QmpError, QueryBalloon, SetBalloon,
    SetStatsInterval,
};
use crate::usage::number_of_domain;
use crate::virsh::VirshError;
use crate::{QemuError, Usage, VmHandle};

/// A guest says this often what it has, in seconds: often enough for what it says to count, and
/// nothing that it would feel.
const SAYS_EVERY: u64 = 2;

/// Where QEMU has its devices: those with a name, and those without.
const DEVICES: [&str; 2] = ["/machine/peripheral", "/machine/peripheral-anon"];

/// The kinds of device that are a balloon, in QEMU's words.
const KINDS: &str = "child<virtio-balloon-";

/// What was seen of a VM's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLook {
    /// What it takes of its host.
    pub usage: Usage,
    /// Its balloon, if it has one.
    pub balloon: Option<BalloonLook>,
}

/// What was seen of a balloon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BalloonLook {
    /// What it has of the guest's memory, in bytes.
    pub has: u64,
    /// What the guest's programs could have without swapping, in bytes, and how long ago the guest
    /// said so.
    pub available: Option<(u64, Duration)>,
    /// Whether the guest gives back pages that nobody uses in it, where QEMU says so.
    pub reports_free: Option<bool>,
}

/// How long ago a moment was (seconds since 1970); nothing if it never was.
fn ago(moment: u64) -> Option<Duration> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    (moment > 0).then(|| now.saturating_sub(Duration::from_secs(moment)))
}

impl Direct {
    /// Its memory; nothing where its process cannot be seen.
    async fn memory(&self) -> Result<Option<MemoryLook>, QmpError> {
        let Some(usage) = self.usage().await? else { return Ok(None) };
        let balloon = match self.monitor().call(&QueryBalloon {}).await {
            Ok(size) => {
                Some(self.balloon(usage.memory.saturating_sub(size.actual)).await?)
            }
            // It has none.
            Err(error) if error.is_refusal() => None,
            Err(error) => return Err(error),
        };
        Ok(Some(MemoryLook { usage, balloon }))
    }

    /// A balloon that has so much.
    async fn balloon(&self, has: u64) -> Result<BalloonLook, QmpError> {
        let mut look = BalloonLook { has, ..BalloonLook::default() };
        let Some(path) = self.balloon_path().await? else { return Ok(look) };
        match self.monitor().call(&GetGuestStats::of(path.clone())).await {
            Ok(stats) => {
                look.available = stats.available().zip(ago(stats.last_update));
                // It says nothing by itself.
                if look.available.is_none_or(|(_, ago)| ago.as_secs() > 2 * SAYS_EVERY) {
                    let say = SetStatsInterval::of(path.clone(), SAYS_EVERY);
                    self.monitor().call(&say).await?;
                }
            }
            Err(error) if error.is_refusal() => {}
            Err(error) => return Err(error),
        }
        let reports = GetProperty { path, property: "free-page-reporting" };
        look.reports_free = match self.monitor().call(&reports).await {
            Ok(value) => value.as_bool(),
            Err(error) if error.is_refusal() => None,
            Err(error) => return Err(error),
        };
        Ok(look)
    }

    /// Where QEMU has the balloon.
    async fn balloon_path(&self) -> Result<Option<String>, QmpError> {
        for above in DEVICES {
            let list = ListObjects { path: above.into() };
            let objects = self.monitor().call(&list).await?;
            if let Some(balloon) = objects.iter().find(|it| it.kind.starts_with(KINDS)) {
                return Ok(Some(format!("{above}/{}", balloon.name)));
            }
        }
        Ok(None)
    }

    async fn set_balloon(&self, taken: u64) -> Result<(), QmpError> {
        let value = self.memory_size().await?.saturating_sub(taken);
        self.monitor().call(&SetBalloon { value }).await.map(drop)
    }
}

impl Managed {
    async fn memory(&self) -> Result<Option<MemoryLook>, VirshError> {
        let text = self.stats_of_memory().await?;
        let Some(look) = of_domain(&text) else { return Ok(None) };
        let is_old = |balloon: BalloonLook| {
            balloon.available.is_none_or(|(_, ago)| ago.as_secs() > 2 * SAYS_EVERY)
        };
        if look.balloon.is_some_and(is_old) {
            match self.have_guest_say(SAYS_EVERY).await {
                Ok(()) => {}
                // It has none that says anything: what it said long ago does not count.
                Err(VirshError::Refused { .. }) => {
                    let quiet = |it| BalloonLook { available: None, ..it };
                    let balloon = look.balloon.map(quiet);
                    return Ok(Some(MemoryLook { balloon, ..look }));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Some(look))
    }

    async fn set_balloon(&self, taken: u64) -> Result<(), VirshError> {
        let most =
            self.memory_size().await?.ok_or_else(|| VirshError::NotUnderstood {
                command: "domstats --balloon".into(),
                reason: "balloon.maximum is missing".into(),
            })?;
        self.set_memory_kib(most.saturating_sub(taken) / 1024).await
    }
}

/// What libvirt's `domstats` says of a VM's memory.
fn of_domain(text: &str) -> Option<MemoryLook> {
    let usage = crate::usage::of_domain(text)?;
    let bytes = |key: &str| Some(number_of_domain(text, key)?.saturating_mul(1024));
    let most = bytes("balloon.maximum")?;
    let said = number_of_domain(text, "balloon.last-update").and_then(ago);
    let balloon = BalloonLook {
        has: most.saturating_sub(usage.memory),
        available: bytes("balloon.usable").zip(said),
        reports_free: None,
    };
    let usage = Usage { memory: most, ..usage };
    Some(MemoryLook { usage, balloon: Some(balloon) })
}

impl VmHandle {
    /// Its memory; nothing where its process cannot be seen.
    pub async fn memory(&self) -> Result<Option<MemoryLook>, QemuError> {
        match self {
            VmHandle::Direct(one) => Ok(one.memory().await?),
            VmHandle::Managed(one) => Ok(one.memory().await?),
        }
    }

    /// Has its balloon take or give until it has so many bytes.
    pub async fn set_balloon(&self, taken: u64) -> Result<(), QemuError> {
        match self {
            VmHandle::Direct(one) => Ok(one.set_balloon(taken).await?),
            VmHandle::Managed(one) => Ok(one.set_balloon(taken).await?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_libvirt_says_of_memory_is_read() {
        let text = "Domain: 'web'\n  cpu.time=1000\n  vcpu.current=1\n  \
                    balloon.current=1572864\n  balloon.maximum=2097152\n  \
                    balloon.usable=524288\n  balloon.last-update=1\n  balloon.rss=1048576\n";
        let look = of_domain(text).unwrap();
        let balloon = look.balloon.unwrap();
        assert_eq!((look.usage.memory, look.usage.held), (2 << 30, 1 << 30));
        assert_eq!(balloon.has, 512 << 20);
        let (available, ago) = balloon.available.unwrap();
        assert!(available == 512 << 20 && ago > Duration::from_secs(1_000_000));
        let silent = text.replace("balloon.last-update=1", "balloon.last-update=0");
        assert_eq!(of_domain(&silent).unwrap().balloon.unwrap().available, None);
    }
}
