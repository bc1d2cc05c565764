//! The moves that Storage DRS begins: step after step, each as a whole or not at all.
//!
//! **Rule.** Disks of one step must be together. If one of them cannot begin, those of its
//! step that have begun are called off, and nothing after it begins: it was to follow. What
//! cannot be called off at once is so with the next tick. What was too quick for that has
//! moved: its rule is broken then, and mended as any other that must hold.
//!
//! A disk is what was looked at, or it is not moved: its name may be another one's by now,
//! and somebody else may have moved it.
//!
use std::sync::Arc;

use sterna_api::{
    Balanced, BalancedOutcome, StartMigration, StorageDrsRun, StorageDrsSettings,
};
use sterna_core::place::storage::Recommended;

use super::paid;
use super::run::seconds;
use super::scene::{Scene, load};
use crate::daemon::{Daemon, lock};
use crate::error::{DaemonError, Result};
use crate::store::DiskRecord;

impl Daemon {
    /// Begins the moves of one step; says whether the next one may follow.
    pub(super) fn begin_step(
        self: &Arc<Self>,
        settings: &StorageDrsSettings,
        scene: &Scene,
        step: &[Recommended],
        run: &mut StorageDrsRun,
    ) -> bool {
        let mut begun: Vec<(u64, &str)> = Vec::new();
        for one in step {
            let name = scene.disks[one.disk].name.as_str();
            let error = match self.begin_balanced(settings, scene, one) {
                Ok(id) => {
                    begun.push((id, name));
                    continue;
                }
                Err(error) => error,
            };
            tracing::warn!(disk = name, %error, "Storage DRS cannot move it");
            run.failed.push(format!("{name}: {error}"));
            for (id, other) in begun {
                lock(&self.balancer.called_off).insert(id);
                let why = format!("{other}: called off, as {name} must be with it");
                run.failed.push(why);
            }
            self.call_off();
            return false;
        }
        run.begun.extend(begun.into_iter().map(|(id, _)| id));
        true
    }

    /// Cancels the moves that were called off and have not ended.
    pub(super) fn call_off(self: &Arc<Self>) {
        let all = lock(&self.balancer.called_off).clone();
        for id in all {
            let done = self.cancel_migration(id).map(drop);
            let ended = self.has_ended(id).is_ok_and(|ended| ended != Some(false));
            match done {
                Err(error) if !ended => {
                    tracing::debug!(migration = id, %error, "not called off yet");
                }
                _ => {
                    tracing::info!(migration = id, "called off with its step");
                    lock(&self.balancer.called_off).remove(&id);
                }
            }
        }
    }

    /// Begins a move, and keeps what was promised of it.
    fn begin_balanced(
        self: &Arc<Self>,
        settings: &StorageDrsSettings,
        scene: &Scene,
        one: &Recommended,
    ) -> Result<u64> {
        let disk = &scene.disks[one.disk];
        let (from, to) = (&scene.names[one.from], &scene.names[one.to]);
        let before = self.fares(disk.id, [from, to], seconds(settings.window_s));
        let request = StartMigration {
            disk: disk.name.clone(),
            to: to.clone(),
            provision: None,
            rate: None,
            verify: false,
            keep_source: false,
            guard: settings.guard.clone(),
        };
        let begun = self.start_if(&request, |now| check_seen(now, disk, from))?;
        let id = begun.id;
        let (over, rule) = scene.why(one.why);
        let balanced = Balanced {
            over,
            rule,
            space: settings.space,
            latency_us: settings.latency_us,
            window_s: settings.window_s,
            predicted: one.after.map(load),
            before: paid::told(&before),
            after: None,
            outcome: BalancedOutcome::Waiting,
            note: None,
        };
        tracing::info!(
            migration = id,
            disk = disk.name,
            from,
            to,
            "Storage DRS moves it"
        );
        self.keep(id, balanced)?;
        Ok(id)
    }

    /// Keeps what is known of one of its moves: in the state, then here.
    pub(super) fn keep(&self, id: u64, balanced: Balanced) -> Result<()> {
        self.store.set_balanced(id, &balanced)?;
        lock(&self.balancer.moves).insert(id, balanced);
        Ok(())
    }
}

/// Refuses a disk that is not the one that was looked at, or not where it was then.
fn check_seen(now: &DiskRecord, seen: &DiskRecord, from: &str) -> Result<()> {
    let name = &seen.name;
    if now.id != seen.id {
        let message = format!("disk {name} is not the one that was looked at");
        return Err(DaemonError::invalid(message).hint("look again"));
    }
    if now.datastore != from {
        let there = &now.datastore;
        let message = format!("disk {name} is not on {from} any more, but on {there}");
        return Err(DaemonError::invalid(message).hint("look again"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use sterna_api::Provision;
    use sterna_engine::DiskId;

    use super::*;

    fn disk(id: u128, datastore: &str) -> DiskRecord {
        DiskRecord {
            id: DiskId(id),
            name: "db".into(),
            size: 512,
            datastore: datastore.into(),
            image: "db.raw".into(),
            provision: Provision::Thin,
            imported: false,
            generation: 1,
            created: 0,
            vhost_user: None,
        }
    }

    #[test]
    fn a_disk_of_the_same_name_is_not_moved_in_anothers_place() {
        let seen = disk(1, "full");
        assert!(check_seen(&disk(1, "full"), &seen, "full").is_ok());
        let other = check_seen(&disk(2, "full"), &seen, "full").unwrap_err();
        assert!(other.to_string().contains("not the one that was looked at"), "{other}");
        let gone = check_seen(&disk(1, "roomy"), &seen, "full").unwrap_err();
        assert!(gone.to_string().contains("not on full any more"), "{gone}");
    }
}
