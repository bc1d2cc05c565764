//! What happened to a scenario in virtual time, told: tables for the terminal, and a report.

mod hall;
mod storage;

use sterna_console::output::Output;
use sterna_report::Report;
use sterna_sim::Scenario;
use sterna_sim::fluid::Run;

pub(crate) use storage::{charts, events, sheets, verdicts, words};

/// Runs a scenario: the report, and what people read of it.
pub fn tell(scenario: &Scenario, output: Output) -> (Report, String) {
    match scenario {
        Scenario::Storage(it) => {
            let outcome = Run::whole(it);
            (storage::report(it, &outcome), storage::words(it, &outcome, output))
        }
        Scenario::Hosts(it) => {
            let outcome = sterna_sim::hall::run(it);
            (hall::report(it, &outcome), hall::words(it, &outcome, output))
        }
    }
}
