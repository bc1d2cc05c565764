//! The line of the screen that says how the host's memory is.

use sterna_api::{HostMemoryState, MemoryTop};
use sterna_console::format::bytes;

use super::column::rate;

/// How it is; nothing on a host whose memory is none of Sterna's affairs.
pub(super) fn line(memory: &MemoryTop) -> Option<String> {
    if memory.vms.is_empty() && memory.tiers.is_empty() {
        return None;
    }
    let state = match memory.state {
        HostMemoryState::High => "high",
        HostMemoryState::Soft => "soft",
        HostMemoryState::Hard => "hard",
        HostMemoryState::Low => "low",
    };
    let (available, reserve) = (bytes(memory.available), bytes(memory.reserve));
    let out = bytes(memory.vms.iter().filter_map(|vm| vm.out).sum());
    let faults = memory
        .faults_per_s
        .map_or(String::new(), |it| format!(", {} faults/s", rate(it)));
    Some(format!(
        "memory {state}: {available} available, keeps {reserve}, {out} out{faults}"
    ))
}

#[cfg(test)]
mod tests {
    use sterna_api::{VmMemoryState, VmMemoryTop};

    use super::*;

    fn memory() -> MemoryTop {
        MemoryTop {
            at_ms: 0,
            window_s: 10.0,
            total: u64::MAX >> 14,
            available: 1 << 50,
            reserve: 1 << 50,
            state: HostMemoryState::Hard,
            short: 0,
            faults_per_s: Some(123_456.0),
            tiers: Vec::new(),
            vms: Vec::new(),
        }
    }

    #[test]
    fn the_line_fits_an_old_terminal_and_is_there_if_there_are_vms() {
        let mut memory = memory();
        assert_eq!(line(&memory), None);
        memory.vms.push(VmMemoryTop {
            vm: "db".into(),
            state: VmMemoryState::Asleep,
            size: None,
            resident: None,
            out: Some(1023 << 40),
            balloon: None,
            entitled: None,
            faults: None,
            faults_per_s: None,
        });
        let said = line(&memory).unwrap();
        assert!(said.starts_with("memory hard: "), "{said}");
        assert!(said.ends_with(" out, 123k faults/s"), "{said}");
        assert!(said.chars().count() <= 80, "{said}");
    }
}
