//! Any text: it is a scenario, or it is refused with its line.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sterna_sim::fluid::Scenario;

fuzz_target!(|text: &str| {
    match text.parse::<Scenario>() {
        Ok(scenario) => assert!(scenario.disks() >= scenario.vms.len() as u64),
        Err(error) => {
            assert!(error.line >= 1 && error.line <= 1 + text.matches('\n').count())
        }
    }
});
