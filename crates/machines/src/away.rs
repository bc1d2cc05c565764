//! VMs that Sterna cannot reach through libvirt, as warnings: one for each libvirt.
//!
//! A VM that is off is no such: libvirt says so. Where libvirt does not answer, does not know
//! the VM, or cannot be asked for want of a program, `vm list` shows the VM as unreachable, and
//! nobody may learn that there alone.

use std::collections::BTreeMap;

use sterna_api::Warning;
use sterna_qemu::QemuError;
use sterna_qemu::virsh::VirshError;
use sterna_state::{Reach, VmRecord};

use super::last_seen::{HANGS, LastSeen};

/// So many VMs are named; of the others, how many they are.
const NAMED: usize = 5;

/// Why a VM could not be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Away {
    why: String,
    /// What to do about it, if that is known.
    remedy: Option<&'static str>,
    /// In how many looks in a row.
    times: u32,
}

impl Away {
    /// Why a look found nothing; none of a VM that is off.
    pub(super) fn of(error: &QemuError) -> Option<Away> {
        let is_off = error.is_gone() && !error.is_unknown();
        // Without the command: it names the VM, and the reason is one for all.
        let why = match error {
            QemuError::Virsh(VirshError::Refused { said, .. }) => said.clone(),
            QemuError::Virsh(VirshError::Silent { .. }) => {
                "libvirt does not answer".to_owned()
            }
            error => error.to_string(),
        };
        let remedy = error.remedy();
        (!is_off).then_some(Away { why, remedy, times: 1 })
    }

    /// The same, if the look before it found that.
    pub(super) fn after(self, before: Option<&Away>) -> Away {
        let times = before.map_or(0, |before| before.times).saturating_add(1);
        Away { times, ..self }
    }
}

/// VMs of one libvirt that could not be asked for one reason.
#[derive(Default)]
struct Group<'a> {
    vms: Vec<&'a str>,
    remedy: Option<&'static str>,
}

impl Group<'_> {
    fn warning(&self, uri: &str, why: &str) -> Warning {
        let first = self.remedy.unwrap_or("find out why libvirt does not tell of them");
        Warning {
            about: match self.vms[..] {
                [one] => format!("vm {one}"),
                _ => format!("libvirt {uri}"),
            },
            message: format!("Sterna cannot reach {}: {why}", names(&self.vms)),
            hint: format!(
                "{first}; until then Sterna can neither show nor move what QEMU serves there; \
                 disks that Sterna serves are not affected"
            ),
        }
    }
}

/// Warns of these VMs, as far as they are of a libvirt and were not reached in several looks.
pub(super) fn warnings_of(
    known: &[VmRecord],
    seen: &BTreeMap<String, LastSeen>,
) -> Vec<Warning> {
    let mut groups = BTreeMap::<(&str, &str), Group<'_>>::new();
    for vm in known {
        let Reach::Libvirt { uri, .. } = &vm.reach else { continue };
        let away = seen.get(&vm.name).and_then(|seen| seen.away.as_ref());
        let Some(away) = away.filter(|away| away.times >= HANGS) else { continue };
        let group = groups.entry((uri, &away.why)).or_default();
        group.vms.push(&vm.name);
        group.remedy = away.remedy;
    }
    groups.iter().map(|((uri, why), group)| group.warning(uri, why)).collect()
}

/// `VM web`, or `VMs a, b, c, d, e and 2 more`.
fn names(vms: &[&str]) -> String {
    let (named, others) = vms.split_at(vms.len().min(NAMED));
    let names = named.join(", ");
    match (named.len(), others.len()) {
        (1, _) => format!("VM {names}"),
        (_, 0) => format!("VMs {names}"),
        (_, more) => format!("VMs {names} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const URI: &str = "qemu:///system";

    fn refused(vm: &str, said: &str) -> QemuError {
        let (command, said) = (format!("domstate {vm}"), said.into());
        QemuError::Virsh(VirshError::Refused { command, said })
    }

    /// What is said of VMs of one libvirt after so many looks that found this.
    fn said(names: &[&str], answer: &str, looks: u32) -> Vec<Warning> {
        let vm = |name: &&str| VmRecord {
            name: (*name).into(),
            reach: Reach::Libvirt { uri: URI.into(), domain: (*name).into() },
            added: 1,
        };
        let look = |name: &str| {
            let error = refused(name, answer);
            LastSeen::of(2, Err::<(bool, std::iter::Empty<_>), _>(&error))
        };
        let seen = |name: &str| {
            (1..looks).fold(look(name), |before, _| look(name).after(&before))
        };
        let seen = names.iter().map(|name| ((*name).to_owned(), seen(name)));
        let known: Vec<VmRecord> = names.iter().map(vm).collect();
        warnings_of(&known, &seen.collect())
    }

    #[test]
    fn vms_of_a_libvirt_that_is_away_are_one_warning_with_what_to_do() {
        let away = "Failed to connect socket to '/var/run/libvirt/libvirt-sock'";
        let all = ["a", "b", "c", "d", "e", "f", "g"];
        let [one] = &said(&all, away, 2)[..] else { panic!("one for all") };
        assert_eq!(one.about, "libvirt qemu:///system");
        let begins = "Sterna cannot reach VMs a, b, c, d, e and 2 more: ";
        assert!(one.message.starts_with(begins), "{}", one.message);
        assert!(one.hint.starts_with("start libvirt: "), "{}", one.hint);
        assert_eq!(said(&["web"], away, 2)[0].about, "vm web");
    }

    #[test]
    fn a_vm_that_libvirt_does_not_know_any_more_is_named() {
        let [one] = &said(&["web"], "Domain not found: web", 2)[..] else {
            panic!("one")
        };
        assert!(one.message.contains("Domain not found"), "{}", one.message);
    }

    #[test]
    fn one_look_in_vain_and_a_vm_that_is_off_are_no_warning() {
        assert_eq!(said(&["web"], "Failed to connect socket", 1), []);
        assert_eq!(said(&["web"], "domain is not running", 3), []);
    }
}
