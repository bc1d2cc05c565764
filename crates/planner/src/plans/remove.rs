//! Forgetting plans that have ended, or have never begun.
//!
//! What a plan has done is not undone by that, and its migrations stay in the list of
//! migrations. Of one that has left something stopped, nothing is said any more.

use sterna_api::{Error, Plan, PlanState, Result};
use sterna_os::lock;

use crate::Planner;

impl Planner {
    /// Forgets a plan with which nothing will happen any more.
    pub fn remove_plan(&self, id: u64) -> Result<Plan> {
        // It does not begin meanwhile.
        let _turn = lock(&self.plans.turn);
        let plan = self.show_plan(id)?;
        let hint = match plan.state {
            PlanState::Running => {
                format!(
                    "wait for the plan's end, or cancel the plan: `sterna plan cancel \
                     {id}`"
                )
            }
            PlanState::Paused => format!(
                "resume the plan: `sterna plan resume {id}`; or cancel the plan: `sterna \
                 plan cancel {id}`"
            ),
            PlanState::Cancelling => {
                format!(
                    "wait for the plan's end: `sterna plan show {id}` shows its progress"
                )
            }
            PlanState::Planned
            | PlanState::Completed
            | PlanState::Incomplete
            | PlanState::Cancelled => {
                self.storage.store.remove_plan(id)?;
                tracing::info!(plan = id, "plan removed");
                return Ok(plan);
            }
        };
        let message = format!("plan {id} is {}", plan.state);
        Err(Error::in_use(message).hint(hint))
    }
}
