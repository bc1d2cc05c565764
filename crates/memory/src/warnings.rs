//! What of the host's memory and its swap tiers somebody should look at.

use sterna_api::{Result, Warning};
use sterna_core::Bytes;
use sterna_core::memory::HostState;
use sterna_os::lock;

use crate::Memory;
use crate::tiers::Tier;

impl Memory {
    /// What somebody should look at.
    pub fn memory_warnings(&self) -> Result<Vec<Warning>> {
        let tiers = self.tiers()?;
        let problems = lock(&self.tier_problems).clone();
        let unused = tiers.iter().filter(|tier| tier.swap.is_none());
        let unused = unused.map(|tier| {
            let name = &tier.record.name;
            not_in_use(tier, problems.get(name).map(String::as_str))
        });
        let mut warnings: Vec<Warning> = unused.collect();
        // Without VMs and tiers the host's memory is none of Sterna's affairs.
        if tiers.is_empty() && self.storage.store.vms()?.is_empty() {
            return Ok(warnings);
        }
        let Ok(host) = self.host() else { return Ok(warnings) };
        let reserve = self.reserve(host.total)?;
        let (state, short) = self.pressure(reserve, host.available);
        let is_in_use = |tier: &Tier| tier.swap.is_some();
        let can_swap = tiers.iter().any(is_in_use);
        warnings.extend(pressed(state, host.available, reserve, can_swap));
        warnings.extend(lacks(short));
        Ok(warnings)
    }
}

/// A tier that the kernel does not swap to.
fn not_in_use(tier: &Tier, why: Option<&str>) -> Warning {
    let name = &tier.record.name;
    let path = &tier.record.path;
    let (message, hint) = match why {
        Some(why) => (
            format!("the kernel does not swap to it: {why}"),
            format!(
                "make {path} available again: Sterna tries again every minute; or \
                 `sterna swap remove {name}`"
            ),
        ),
        None => (
            format!("the kernel does not swap to {path} any more"),
            format!(
                "restart the daemon, which has the kernel swap to it again; or \
                 `sterna swap remove {name}`"
            ),
        ),
    };
    Warning { about: format!("swap tier {name}"), message, hint }
}

/// A host in this state, if it lacks much of what it is to keep available.
fn pressed(
    state: HostState,
    available: u64,
    reserve: u64,
    can_swap: bool,
) -> Option<Warning> {
    let word = match state {
        HostState::High | HostState::Soft => return None,
        HostState::Hard => "hard",
        HostState::Low => "low",
    };
    let (available, reserve) = (Bytes(available), Bytes(reserve));
    let hint = match can_swap {
        true => {
            "see `sterna memory show`; `sterna memory sleep VM` moves the memory of an idle VM \
             out, and `sterna memory auto full` has Sterna do it"
        }
        false => {
            "see `sterna memory show`; add swap, so that memory of idle VMs can go out: \
             `sterna swap add`"
        }
    };
    Some(Warning {
        about: "host memory".into(),
        message: format!(
            "state {word}: {available} are available, and {reserve} are to be kept"
        ),
        hint: hint.into(),
    })
}

/// A host that lacks what none of its VMs gives.
fn lacks(short: u64) -> Option<Warning> {
    (short > 0).then(|| Warning {
        about: "host memory".into(),
        message: format!("{} are lacking that no VM on this host gives", Bytes(short)),
        hint: "move a VM to another host (`sterna drs` shows which), or see \
               `sterna memory explain VM`"
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use sterna_state::SwapTierRecord;

    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn a_host_that_is_hard_pressed_is_a_warning_with_what_helps_there() {
        let says = |state, can_swap| pressed(state, GIB, 2 * GIB, can_swap);
        assert_eq!(says(HostState::High, true), None);
        assert_eq!(says(HostState::Soft, true), None);
        let hard = says(HostState::Hard, true).unwrap();
        let said = "state hard: 1.00 GiB are available, and 2.00 GiB are to be kept";
        assert_eq!(hard.message, said);
        assert!(hard.hint.contains("sterna memory auto full"));
        let low = says(HostState::Low, false).unwrap();
        assert!(low.message.starts_with("state low"));
        assert!(low.hint.contains("sterna swap add"));
    }

    #[test]
    fn what_nobody_gives_is_a_warning_of_its_own() {
        assert_eq!(lacks(0), None);
        let said = "1.00 GiB are lacking that no VM on this host gives";
        assert_eq!(lacks(GIB).unwrap().message, said);
    }

    #[test]
    fn a_tier_that_is_not_in_use_says_why_if_that_is_known() {
        let record = SwapTierRecord {
            name: "flash".into(),
            datastore: None,
            path: "/dev/sdz1".into(),
            size: GIB,
            access_ns: 1,
            sequential: 1,
            number: None,
            boot: String::new(),
            added: 1,
        };
        let tier = Tier { record, swap: None, number: None };
        let known = not_in_use(&tier, Some("cannot look at /dev/sdz1: gone"));
        assert_eq!(known.about, "swap tier flash");
        assert!(known.message.ends_with(": cannot look at /dev/sdz1: gone"));
        assert!(known.hint.contains("every minute"));
        let ended = not_in_use(&tier, None);
        assert!(ended.hint.contains("restart the daemon"), "{ended:?}");
    }
}
