//! Who switches: a thread that sleeps until a schedule opens or closes, a policy is
//! changed, or a migration ends, and then puts in force what holds from there on.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use sterna_api::Result;
use sterna_core::qos::policy::PolicyId;
use sterna_os::lock;
use sterna_os::wake::Sleeper;

use crate::daemon::Daemon;

/// How long it sleeps at most. The clock may be set meanwhile, by hand or after the
/// machine itself has slept, and nobody would say so.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// Starts the thread. It ends with the daemon.
pub(super) fn start(daemon: &Arc<Daemon>) -> std::io::Result<()> {
    let sleeper = daemon.service.waker.sleeper();
    let daemon = Arc::downgrade(daemon);
    let thread = thread::Builder::new().name("sterna-policies".into());
    thread.spawn(move || switch_for_ever(&daemon, &sleeper))?;
    Ok(())
}

fn switch_for_ever(daemon: &Weak<Daemon>, sleeper: &Sleeper) {
    loop {
        let Some(daemon) = daemon.upgrade() else { return };
        let change = daemon.switch_policies();
        drop(daemon);
        sleeper.sleep(change.unwrap_or(LOOK_AGAIN).min(LOOK_AGAIN));
    }
}

impl Daemon {
    /// Puts in force what holds now; gives how long it does. The store is asked only if
    /// the book is stale, or a migration has ended with which a policy ends: it may hang, and with it whoever
    /// changes the book, and schedules go on.
    pub(crate) fn switch_policies(&self) -> Option<Duration> {
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
        let book = self.book();
        let mut jobs = book.entries().flat_map(|entry| &entry.policies);
        jobs.any(|policy| policy.until_job.is_some_and(|job| !self.is_under_way(job)))
    }

    /// Removes the policies whose migration has ended.
    fn end_policies(&self) -> Result<()> {
        let book = self.reload()?;
        for policy in book.entries().flat_map(|entry| &entry.policies) {
            let Some(job) = policy.until_job else { continue };
            if self.has_ended(job)?.unwrap_or(true) {
                let PolicyId(id) = policy.id;
                self.store.remove_policy(policy.id)?;
                tracing::info!(policy = id, migration = job, "policy ended with its job");
            }
        }
        self.reload()?;
        self.service.is_stale.store(false, Relaxed);
        Ok(())
    }
}
