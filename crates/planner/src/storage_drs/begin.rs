//! The moves that Storage DRS begins: step after step, each as a whole or not at all.
//!
//! **Rule.** Disks of one step must be together. If one of them cannot begin, those of its
//! step that have begun are called off, and nothing after it begins: it was to follow. If a
//! move cannot be called off, Sterna tries again at the next tick. If it has ended before
//! that, the disk stays where it is; its rule is broken then, and Storage DRS mends the rule
//! like any other that must hold.
//!
//! A disk is what was looked at, or it is not moved: its name may be another one's by now,
//! and somebody else may have moved it.
//!
//! What is promised of a move is known from when it begins, and recorded then or as soon as
//! that can be (`Kept`): a state that takes nothing for a while makes no move somebody
//! else's.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sterna_api::{
    Balanced, BalancedOutcome, Error, Result, StartMigration, StorageDrsRun,
    StorageDrsSettings,
};
use sterna_os::lock;
use sterna_placement::storage::Recommended;
use sterna_state::{DiskRecord, MigrationRecord, Step};

use super::benefit;
use super::run::seconds;
use super::scene::{StorageDrsScene, load};
use crate::Planner;

/// Its moves, and which of them the state does not have as they are.
#[derive(Debug, Default)]
pub(super) struct Kept {
    pub(super) moves: BTreeMap<u64, Balanced>,
    unrecorded: BTreeSet<u64>,
}

impl Kept {
    /// Those that the state has.
    pub(super) fn of(moves: BTreeMap<u64, Balanced>) -> Kept {
        Kept { moves, unrecorded: BTreeSet::new() }
    }

    /// Something new is known of a move.
    pub(super) fn know(&mut self, id: u64, balanced: Balanced) {
        self.moves.insert(id, balanced);
        self.unrecorded.insert(id);
    }

    /// What is still to be recorded.
    pub(super) fn unrecorded(&self) -> Vec<(u64, Balanced)> {
        let all = self.unrecorded.iter();
        all.filter_map(|id| Some((*id, self.moves.get(id)?.clone()))).collect()
    }

    /// This was recorded of a move, which may be out of date by now.
    pub(super) fn recorded(&mut self, id: u64, balanced: &Balanced) {
        if self.moves.get(&id) == Some(balanced) {
            self.unrecorded.remove(&id);
        }
    }
}

impl Planner {
    /// Begins the moves of one step; says whether the next one may follow.
    pub(super) fn begin_step(
        self: &Arc<Self>,
        settings: &StorageDrsSettings,
        scene: &StorageDrsScene,
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
            tracing::warn!(disk = name, %error, "Storage DRS cannot move a disk");
            run.failed.push(format!("{name}: {error}"));
            for (id, other) in begun {
                lock(&self.balancer.called_off).insert(id);
                let why = format!("{other}: cancelled, because {name} must be with it");
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
            let done = self.moves.cancel_migration(id).map(drop);
            let ended = self.moves.has_ended(id).is_ok_and(|ended| ended != Some(false));
            match done {
                Err(error) if !ended => {
                    tracing::debug!(migration = id, %error, "cannot cancel a migration \
                                                             yet");
                }
                _ => {
                    tracing::info!(
                        migration = id,
                        "cancelled with another move of its step"
                    );
                    lock(&self.balancer.called_off).remove(&id);
                }
            }
        }
    }

    /// Begins a move, and keeps what was promised of it.
    fn begin_balanced(
        self: &Arc<Self>,
        settings: &StorageDrsSettings,
        scene: &StorageDrsScene,
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
            verify: true,
            keep_source: false,
            skip_bad_sectors: false,
            guard: settings.guard.clone(),
        };
        let last = self.storage.store.last_migration()?;
        let id = match self.moves.start_if(&request, |now| check_seen(now, disk, from)) {
            Ok(begun) => begun.id,
            // It may go on though what it is could not be said.
            Err(refused) => match self.storage.store.migration_after(disk.id, last)? {
                Some(it) if goes_on(&it) => it.id,
                _ => return Err(refused.error),
            },
        };
        let (over, rule) = scene.why(one.why);
        let balanced = Balanced {
            over,
            rule,
            space: settings.space,
            latency_us: settings.latency_us,
            window_s: settings.window_s,
            predicted: one.after.map(load),
            before: benefit::told(&before),
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
        self.keep(id, balanced);
        Ok(id)
    }

    /// Keeps what is known of one of its moves, in the state as soon as that can be.
    pub(super) fn keep(&self, id: u64, balanced: Balanced) {
        lock(&self.balancer.kept).know(id, balanced);
        self.record_kept();
    }

    /// Records what could not be recorded before.
    pub(super) fn record_kept(&self) {
        let unrecorded = lock(&self.balancer.kept).unrecorded();
        for (id, balanced) in unrecorded {
            match self.storage.store.set_balanced(id, &balanced) {
                Ok(()) => lock(&self.balancer.kept).recorded(id, &balanced),
                Err(error) => {
                    tracing::warn!(migration = id, %error, "not recorded yet");
                }
            }
        }
    }
}

/// Whether a migration has begun, and was not undone.
fn goes_on(found: &MigrationRecord) -> bool {
    !matches!(found.step, Step::Created | Step::Cancelled) && !found.cancel
}

/// Refuses a disk that is not the one that was looked at, or not where it was then.
fn check_seen(now: &DiskRecord, seen: &DiskRecord, from: &str) -> Result<()> {
    let name = &seen.name;
    if now.id != seen.id {
        let message = format!("another disk has the name {name} now");
        return Err(Error::invalid(message).hint("ask for new recommendations"));
    }
    if now.datastore != from {
        let there = &now.datastore;
        let message = format!("disk {name} is not on {from} any more, but on {there}");
        return Err(Error::invalid(message).hint("ask for new recommendations"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use sterna_api::{BalancedScene, DatastoreLoad, Provision};
    use sterna_core::DiskId;

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
    fn a_disk_of_the_same_name_is_not_moved_in_place_of_another() {
        let seen = disk(1, "full");
        assert!(check_seen(&disk(1, "full"), &seen, "full").is_ok());
        let other = check_seen(&disk(2, "full"), &seen, "full").unwrap_err();
        assert!(other.to_string().contains("another disk has the name"), "{other}");
        let gone = check_seen(&disk(1, "roomy"), &seen, "full").unwrap_err();
        assert!(gone.to_string().contains("not on full any more"), "{gone}");
    }

    #[test]
    fn a_move_that_cannot_be_recorded_is_known_all_the_same_and_recorded_later() {
        let mut kept = Kept::default();
        let waiting = Balanced {
            over: None,
            rule: None,
            space: 0.8,
            latency_us: 15_000,
            window_s: 600.0,
            predicted: [DatastoreLoad { taken: None, p95_us: None }; 2],
            before: BalancedScene::default(),
            after: None,
            outcome: BalancedOutcome::Waiting,
            note: None,
        };
        kept.know(7, waiting.clone());
        assert!(kept.moves.contains_key(&7), "it is one of its own");
        assert_eq!(kept.unrecorded(), [(7, waiting.clone())]);
        let note = Some("the disk was removed".to_owned());
        let judged = Balanced { note, ..waiting.clone() };
        kept.know(7, judged.clone());
        // What is recorded late is not taken for what is known by now.
        kept.recorded(7, &waiting);
        assert_eq!(kept.unrecorded(), [(7, judged.clone())]);
        kept.recorded(7, &judged);
        assert_eq!(kept.unrecorded(), []);
    }
}
