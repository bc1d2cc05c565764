//! Service levels: classes of disks, the policies that hold for them, and cruise control.
//!
//! Begin with `classes`, `snapshot` (what the state says) and `enforced` (what the engine was
//! told). This service starts and stops no move.
//!
//! A change is made in this order: it is looked at as a whole, with all that holds
//! beside it (`core` finds contradictions, `admission` asks what datastores do); it is
//! durable; the `snapshot` is read anew; it is in `enforced` before the answer. Changes take
//! turns. The thread in `schedules` does the same when a schedule opens or closes, or a
//! migration ends with which a policy ends.
//!
//! **Failure cases.** What is durable and could not be put in force (the engine is
//! stopping) is in force after the next start; where the snapshot could not be read anew,
//! that is said, and done later. After a restart everything is in force
//! before the first client can connect.
#![forbid(unsafe_code)]

mod admission;
mod attained;
mod bound;
pub(crate) mod classes;
mod cruise;
mod enforced;
mod kept_hours;
mod period;
mod promises;
mod schedules;
mod snapshot;
mod view;
mod windows;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use sterna_api::{CreatePolicy, Disk, Error, Migration, MigrationState, Policy, Result};
use sterna_core::DiskId;
use sterna_core::qos::policy::{Aim, Contradiction, POLICIES_MAX, PolicyId, check};
use sterna_core::qos::{ClassId, SHARES};
use sterna_core::schedule::Schedule;
use sterna_moves::{MoveUser, Moves};
use sterna_os::wake::Waker;
use sterna_os::{clock, lock};
use sterna_state::PolicyRecord;
use sterna_storage::{DiskUser, Storage};

use self::attained::AllSeen;
pub use self::bound::Bound;
pub use self::cruise::cruising;
use self::enforced::Enforced;
use self::kept_hours::Unrecorded;
pub use self::kept_hours::recording as recording_kept;
pub use self::promises::Kept;
use self::promises::Promises;
pub use self::schedules::switching;
pub use self::snapshot::{Entry, PolicySnapshot};

/// Classes of disks, and the policies that hold for them.
pub struct ServiceLevels {
    pub(crate) storage: Arc<Storage>,
    pub(crate) moves: Arc<Moves>,
    pub(crate) service: Service,
}

impl ServiceLevels {
    /// Nothing is in force yet.
    pub fn new(storage: Arc<Storage>, moves: Arc<Moves>) -> Self {
        ServiceLevels { storage, moves, service: Service::default() }
    }
}

impl DiskUser for ServiceLevels {
    fn served(&self, disk: DiskId) {
        self.join_classes(&[disk]);
    }

    fn removed(&self, _disk: DiskId) {
        // It has left its class. If that cannot be read now, it is with the next change.
        let _ = self.reload();
    }

    fn complete(&self, disk: DiskId, view: &mut Disk) -> Result<()> {
        let snapshot = self.snapshot();
        view.class = snapshot.class_of(disk).map(|entry| entry.record.name.clone());
        view.held = self.view_held_disk(&snapshot, disk);
        view.binds = self.bound_of_disk(&snapshot, disk).map(Into::into);
        Ok(())
    }
}

impl MoveUser for ServiceLevels {
    /// Policies may end with a move.
    fn changed(&self) {
        self.service.waker.wake();
    }

    fn complete(&self, view: &mut Migration) {
        if view.state == MigrationState::Copying {
            view.held = self.bound_of_copies(&self.snapshot()).map(Into::into);
        }
    }
}

/// What is known of service levels, and in force.
#[derive(Debug, Default)]
pub(crate) struct Service {
    /// Whoever changes classes or policies holds this.
    turn: Mutex<()>,
    /// Whoever reads the snapshot anew holds this, so that what was read last is what is there.
    reading: Mutex<()>,
    /// Only ever held for a moment: the loops wait for it, and must not wait for the store.
    snapshot: Mutex<Arc<PolicySnapshot>>,
    /// The store may say more than the snapshot.
    is_stale: AtomicBool,
    enforced: Mutex<Enforced>,
    /// What classes have of their reservations.
    attained: Mutex<AllSeen>,
    /// What was kept of promises.
    promises: Mutex<Promises>,
    /// How promises were kept, as far as the state does not know it yet.
    unrecorded: Mutex<Unrecorded>,
    /// Wakes who switches.
    pub(crate) waker: Waker,
}

impl Service {
    fn snapshot(&self) -> Arc<PolicySnapshot> {
        lock(&self.snapshot).clone()
    }

    /// Puts what is read in the place of the snapshot.
    fn reload(
        &self,
        read: impl FnOnce() -> Result<PolicySnapshot>,
    ) -> Result<Arc<PolicySnapshot>> {
        let _reading = lock(&self.reading);
        let snapshot = Arc::new(read()?);
        lock(&self.snapshot).clone_from(&snapshot);
        Ok(snapshot)
    }
}

impl ServiceLevels {
    /// The classes and policies that there are.
    pub fn snapshot(&self) -> Arc<PolicySnapshot> {
        self.service.snapshot()
    }

    /// Reads them anew.
    pub fn reload(&self) -> Result<Arc<PolicySnapshot>> {
        self.service.reload(|| PolicySnapshot::read(&self.storage.store))
    }

    /// Carries out a change of classes or policies in its turn, and puts in force what
    /// it comes to.
    pub(crate) fn in_turn<T>(
        &self,
        change: impl FnOnce(&PolicySnapshot) -> Result<T>,
    ) -> Result<T> {
        let _turn = lock(&self.service.turn);
        let changed = change(&*self.reload()?)?;
        let read = self.reload();
        self.service.is_stale.store(read.is_err(), Relaxed);
        self.service.waker.wake();
        if let Err(error) = read {
            let message = format!(
                "Sterna has recorded the change, but the change is not in force yet: \
                 {error}"
            );
            return Err(Error::internal(message).hint(
                "the change takes effect as soon as Sterna can read the state directory",
            ));
        }
        self.enforce();
        Ok(changed)
    }

    /// Refuses a snapshot in which a class cannot have what is asked for it.
    pub(crate) fn check_snapshot(
        &self,
        next: &PolicySnapshot,
        class: ClassId,
    ) -> Result<()> {
        let Some(entry) = next.get(class) else { return Ok(()) };
        let name = &entry.record.name;
        check(&entry.plan()).map_err(|contradiction| {
            let hint = match contradiction {
                Contradiction::Shares(_) => {
                    format!("without --shares a class has {SHARES}")
                }
                _ => {
                    format!(
                        "change the conflicting terms: see `sterna policy explain {name}`"
                    )
                }
            };
            Error::invalid(format!("class {name}: {contradiction}")).hint(hint)
        })?;
        self.check_admission(next, class)
    }

    /// All policies, oldest first.
    pub fn list_policies(&self) -> Result<Vec<Policy>> {
        let snapshot = self.snapshot();
        let mut all: Vec<Policy> =
            snapshot.entries().flat_map(|entry| self.view_policies(entry)).collect();
        all.sort_by_key(|policy| policy.id);
        Ok(all)
    }

    /// One policy.
    pub fn show_policy(&self, id: u64) -> Result<Policy> {
        let snapshot = self.snapshot();
        let (entry, _) = snapshot.policy(PolicyId(id))?;
        let all = self.view_policies(entry);
        let one = all.into_iter().find(|policy| policy.id == id);
        one.ok_or_else(|| Error::not_found("policy", id))
    }

    /// Makes a policy.
    pub fn create_policy(&self, request: &CreatePolicy) -> Result<Policy> {
        let aim = Aim::try_from(request.aim).map_err(Error::invalid)?;
        aim.check().map_err(Error::invalid)?;
        let schedule = request.schedule.as_deref().map(str::parse::<Schedule>);
        let schedule = schedule.transpose().map_err(Error::invalid)?;
        if let Some(job) = request.until_job {
            self.check_job(job)?;
        }
        let id = self.in_turn(|snapshot| {
            let entry = snapshot.class(&request.class)?;
            let class = entry.record.id;
            if entry.is_built_in() && matches!(aim, Aim::Cruise(_)) {
                let message = "a target for copies would slow applications";
                let hint = "reserve something for copies: `sterna class set migration \
                            --reservation 20M`; or say when a move must end: `sterna \
                            migrate DISK --finish-by TIME`";
                return Err(Error::invalid(message).hint(hint));
            }
            if entry.policies.len() == POLICIES_MAX {
                let message =
                    format!("class {} has {POLICIES_MAX} policies", request.class);
                let hint = "remove one first: `sterna policy list`";
                return Err(Error::invalid(message).hint(hint));
            }
            let until_job = request.until_job;
            let (id, created) = (PolicyId::NEW, clock::now());
            let record = PolicyRecord { id, class, aim, schedule, until_job, created };
            let mut next = entry.clone();
            next.policies.push(record.clone());
            self.check_snapshot(&snapshot.with(next), class)?;
            let id = self.storage.store.add_policy(record)?;
            tracing::info!(policy = id.0, class = request.class, "policy made");
            Ok(id)
        })?;
        self.show_policy(id.0)
    }

    /// Removes a policy.
    pub fn remove_policy(&self, id: u64) -> Result<Policy> {
        let gone = self.show_policy(id)?;
        self.in_turn(|snapshot| {
            snapshot.policy(PolicyId(id))?;
            Ok(self.storage.store.remove_policy(PolicyId(id))?)
        })?;
        tracing::info!(policy = id, class = gone.class, "policy removed");
        Ok(gone)
    }

    /// Refuses a migration that has ended already.
    fn check_job(&self, job: u64) -> Result<()> {
        let ended = self.moves.has_ended(job)?;
        if ended.ok_or_else(|| Error::not_found("migration", job))? {
            let message =
                format!("migration {job} has ended, so the policy would never hold");
            let hint = "`sterna migration list` lists the migrations under way";
            return Err(Error::invalid(message).hint(hint));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_store_that_hangs_keeps_nobody_from_the_snapshot() {
        let service = &Service::default();
        let (reading, is_reading) = channel();
        let (answers, answer) = channel::<()>();
        thread::scope(|scope| {
            scope.spawn(move || {
                let hangs = || {
                    reading.send(()).unwrap();
                    // Until the test lets go of it, however it ends.
                    let _ = answer.recv();
                    Ok(PolicySnapshot::default())
                };
                service.reload(hangs)
            });
            is_reading.recv().unwrap();
            let (sender, snapshot) = channel();
            scope.spawn(move || sender.send(service.snapshot()));
            let seen = snapshot.recv_timeout(Duration::from_secs(10));
            drop(answers);
            seen.expect("the book is there while it is read anew");
        });
    }
}
