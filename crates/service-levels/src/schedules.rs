//! Who switches: a task that sleeps until a schedule opens or closes, a policy is
//! changed, or a migration ends, and then puts in force what holds from there on.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use sterna_api::Result;
use sterna_core::qos::policy::PolicyId;
use sterna_os::lock;
use sterna_runtime::tasks::Task;

use crate::ServiceLevels;

/// How long it sleeps at most. The clock may be set meanwhile, by hand or after the
/// machine itself has slept, and nobody would say so.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// Puts in force what schedules and policies say.
pub fn switching(levels: &Arc<ServiceLevels>) -> Task {
    let switch = |levels: &Arc<ServiceLevels>| {
        Ok(levels.switch_policies().unwrap_or(LOOK_AGAIN).min(LOOK_AGAIN))
    };
    let sleeper = levels.service.waker.sleeper();
    let does = "put policies in force";
    Task::when_due("policies", does, LOOK_AGAIN, sleeper, levels, switch)
}

impl ServiceLevels {
    /// Puts in force what holds now; gives how long it does. The store is asked only if the
    /// snapshot is stale, or a migration has ended with which a policy ends: it may hang, and
    /// with it whoever changes the snapshot, and schedules go on.
    pub fn switch_policies(&self) -> Option<Duration> {
        let change = self.enforce();
        if !self.may_have_ended() && !self.service.is_stale.load(Relaxed) {
            return change;
        }
        let _turn = lock(&self.service.turn);
        match self.end_policies() {
            Ok(()) => self.enforce(),
            Err(error) => {
                tracing::warn!(%error, "cannot look which policies have ended");
                change
            }
        }
    }

    /// Whether a policy may have ended with its migration, by what is in memory.
    fn may_have_ended(&self) -> bool {
        let snapshot = self.snapshot();
        let mut jobs = snapshot.entries().flat_map(|entry| &entry.policies);
        jobs.any(|policy| {
            policy.until_job.is_some_and(|job| !self.moves.is_under_way(job))
        })
    }

    /// Removes the policies whose migration has ended.
    fn end_policies(&self) -> Result<()> {
        let snapshot = self.reload()?;
        for policy in snapshot.entries().flat_map(|entry| &entry.policies) {
            let Some(job) = policy.until_job else { continue };
            if self.moves.has_ended(job)?.unwrap_or(true) {
                let PolicyId(id) = policy.id;
                self.storage.store.remove_policy(policy.id)?;
                tracing::info!(policy = id, migration = job, "policy ended with its job");
            }
        }
        self.reload()?;
        self.service.is_stale.store(false, Relaxed);
        Ok(())
    }
}
