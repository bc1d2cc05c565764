//! Any text: it is a scenario of some kind, or it is refused with its line.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sterna_sim::Scenario;

fuzz_target!(|text: &str| {
    match text.parse::<Scenario>() {
        Ok(Scenario::Storage(it)) => assert!(it.disks() >= it.vms.len() as u64),
        Ok(Scenario::Hosts(it)) => {
            assert!(it.vms.iter().all(|vm| vm.host < it.hosts.len()))
        }
        Err(error) => {
            assert!(error.line >= 1 && error.line <= 1 + text.matches('\n').count())
        }
    }
});
