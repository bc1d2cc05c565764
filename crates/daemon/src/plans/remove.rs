//! Forgetting plans that have ended, or have never begun.
//!
//! What a plan has done is not undone by that, and its migrations stay in the list of
//! migrations. Of one that has left something stopped, nothing is said any more.

use sterna_api::{Error, Plan, PlanState, Result};
use sterna_os::lock;

use crate::daemon::Daemon;

impl Daemon {
    /// Forgets a plan with which nothing will happen any more.
    pub(crate) fn remove_plan(&self, id: u64) -> Result<Plan> {
        // It does not begin meanwhile.
        let _turn = lock(&self.plans.turn);
        let plan = self.show_plan(id)?;
        let hint = match plan.state {
            PlanState::Running => {
                format!("wait for its end, or give it up: `sterna plan cancel {id}`")
            }
            PlanState::Paused => format!(
                "let it go on: `sterna plan resume {id}`; or give it up: `sterna plan \
                 cancel {id}`"
            ),
            PlanState::Cancelling => {
                format!("wait for its end: `sterna plan show {id}` says how far it is")
            }
            PlanState::Planned
            | PlanState::Completed
            | PlanState::Incomplete
            | PlanState::Cancelled => {
                self.store.remove_plan(id)?;
                tracing::info!(plan = id, "plan removed");
                return Ok(plan);
            }
        };
        let message = format!("plan {id} is {}", plan.state);
        Err(Error::in_use(message).hint(hint))
    }
}
