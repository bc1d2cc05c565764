//! Plans: made, applied and followed with the command line.

use std::time::Duration;

use serde_json::Value;

use crate::daemon::Daemon;
use crate::wait::until;

impl Daemon {
    /// The plan now.
    #[track_caller]
    pub fn plan(&self, id: u64) -> Value {
        self.json(&format!("plan show {id}"))
    }

    /// Makes a plan and gives it.
    #[track_caller]
    pub fn plan_evacuation(&self, line: &str) -> (u64, Value) {
        let plan = self.json(&format!("plan evacuate {line}"));
        (plan["id"].as_u64().expect("a plan has a number"), plan)
    }

    /// Waits until a plan is so, and gives it.
    #[track_caller]
    pub fn wait_for_plan(
        &self,
        id: u64,
        what: &str,
        limit: Duration,
        is: impl Fn(&Value) -> bool,
    ) -> Value {
        until(&format!("plan {id}: {what}"), limit, || {
            // No answer is no answer yet: the daemon may be on its way back.
            let answer = self.sterna(&format!("plan show {id} --json"));
            let plan = (answer.code == 0).then(|| answer.json())?;
            let over = plan["ended"].is_number();
            assert!(!over || is(&plan), "waited for {what}, but:\n{plan:#}");
            is(&plan).then_some(plan)
        })
    }
}

/// The moves of a plan that are in this state.
pub fn in_state<'v>(plan: &'v Value, state: &str) -> Vec<&'v Value> {
    let moves = plan["moves"].as_array().expect("moves");
    moves.iter().filter(|one| one["state"] == state).collect()
}
