//! What there is, counted, and what of it somebody should look at.
//!
//! A warning is about what the lists show as out of order, and comes from where
//! they have it: a monitor that counts warnings misses nothing that people see.

use std::collections::BTreeSet;

use sterna_api::{
    Counts, CruisePhase, Error, GuardState, Guarding, MigrationState, Policy, Provision,
    Result, Standing, Warning,
};
use sterna_core::{Bytes, Nanos};
use sterna_os::Local;
use sterna_runtime::log::State as LogState;
use sterna_state::DiskRecord;
use sterna_storage::Space;

use crate::Server;

/// How many disks a warning names: a line of names of common length.
const NAMED: usize = 5;

/// A datastore of which no more than one so-many-th is free is full: file systems keep
/// about as much for themselves.
const FULL: u64 = 100;

impl Server {
    /// Everything, counted, with the warnings.
    pub(crate) fn survey(&self) -> Result<(Counts, Vec<Warning>)> {
        let mut counts = Counts::default();
        let mut warnings = Vec::new();
        let disks = self.storage.store.disks()?;
        let offline = self.survey_datastores(&disks, &mut counts, &mut warnings);
        self.survey_disks(&disks, &offline, &mut counts, &mut warnings);
        warnings.extend(self.storage.disk_troubles(&disks));
        warnings.extend(self.storage.rivals(&disks));
        warnings.extend(self.will_not_reconnect(&disks));
        self.survey_migrations(&mut counts, &mut warnings)?;
        warnings.extend(self.planner.plan_warnings()?);
        warnings.extend(self.planner.slow_datastores()?);
        warnings.extend(self.state_is_full());
        // One that has failed may not be looked at, either.
        let gone = self.state_is_gone();
        warnings.extend(gone.or_else(|| self.storage.state_refuses()));
        warnings.extend(self.storage.state_is_without_disks(&disks));
        warnings.extend(self.storage.descriptors.warning(self.storage.without_client()));
        warnings.extend(self.log_is_lost());
        warnings.extend(Local::unknown().map(|why| {
            Warning {
                about: "local time".into(),
                message: format!("schedules go by UTC: {why}"),
                hint: "start the daemon with an existing time zone in TZ, for example \
                       TZ=Europe/Berlin"
                    .into(),
            }
        }));
        let policies = self.levels.list_policies()?;
        counts.policies = policies.len() as u64;
        warnings.extend(policies.iter().filter_map(out_of_reach));
        warnings.extend(self.levels.lacking());
        warnings.extend(self.planner.broken_rules()?);
        warnings.extend(self.machines.stuck_vm_migrations()?);
        warnings.extend(self.memory.memory_warnings()?);
        let snapshot = self.levels.snapshot();
        let classes = snapshot.entries().filter(|entry| !entry.is_built_in());
        counts.classes = classes.count() as u64;
        counts.vms = self.storage.store.vms()?.len() as u64;
        Ok((counts, warnings))
    }

    /// There is no room for what is to be recorded.
    fn state_is_full(&self) -> Option<Warning> {
        self.storage.state_lacks_room().map(|message| Warning {
            about: "state".into(),
            message,
            hint: "make room there: until then Sterna refuses new disks and other changes, and \
                   running jobs stop at their next step"
                .into(),
        })
    }

    /// What is recorded would get nowhere.
    fn state_is_gone(&self) -> Option<Warning> {
        let gone = self.storage.store.is_gone()?;
        Some(Warning {
            about: "state".into(),
            message: format!("{}: {gone}", self.storage.places.state.display()),
            hint: gone.hint().into(),
        })
    }

    /// What is logged gets nowhere.
    fn log_is_lost(&self) -> Option<Warning> {
        let LogState { lost, problem } = self.log.state();
        problem.map(|why| Warning {
            about: "log".into(),
            message: format!(
                "Sterna cannot write its log: {why}; lines lost so far: {lost}"
            ),
            hint: "find out where the daemon's stderr goes; Sterna still serves all \
                   disks"
                .into(),
        })
    }

    /// Gives the datastores that are offline with all their disks, which are named with them.
    fn survey_datastores(
        &self,
        disks: &[DiskRecord],
        counts: &mut Counts,
        warnings: &mut Vec<Warning>,
    ) -> BTreeSet<String> {
        let mut offline_with_all = BTreeSet::new();
        for (handle, found) in self.storage.look_at_handles() {
            counts.datastores += 1;
            if let Some(oversold) = self.levels.oversold(&handle, disks) {
                let about = format!("datastore {}", handle.name());
                let message =
                    format!("the datastore cannot keep its reservations: {oversold}");
                let hint = "reserve less, or move disks of these classes away".into();
                warnings.push(Warning { about, message, hint });
            }
            let name = handle.name();
            let on_it = disks.iter().filter(|disk| disk.datastore == name);
            let named = |disk: &DiskRecord| disk.name.clone();
            match found {
                Ok(space) if handle.is_shared() => {
                    let thin = on_it.filter(|it| it.provision == Provision::Thin);
                    warnings.extend(full(
                        name,
                        space,
                        &thin.map(named).collect::<Vec<_>>(),
                    ));
                }
                Ok(_) => {}
                Err(problem) => {
                    let on_it: Vec<String> = on_it.map(named).collect();
                    let is_mounted = handle.is_shared();
                    warnings.push(offline(name, &problem, &on_it, is_mounted));
                    if is_mounted {
                        offline_with_all.insert(name.to_owned());
                    }
                }
            }
        }
        offline_with_all
    }

    fn survey_disks(
        &self,
        disks: &[DiskRecord],
        offline: &BTreeSet<String>,
        counts: &mut Counts,
        warnings: &mut Vec<Warning>,
    ) {
        for disk in disks {
            counts.disks += 1;
            let about = format!("disk {}", disk.name);
            let Some(Error { message, hint, .. }) = self.storage.not_served(disk.id)
            else {
                counts.disks_served += 1;
                warnings.extend(self.storage.warning_of(disk, about));
                continue;
            };
            if offline.contains(&disk.datastore) {
                continue; // It is named with its datastore, which is all that there is to mend.
            }
            let hint = match hint.is_empty() {
                true => format!("see `sterna disk show {}`", disk.name),
                false => hint,
            };
            warnings.push(Warning { about, message, hint });
        }
    }

    fn survey_migrations(
        &self,
        counts: &mut Counts,
        warnings: &mut Vec<Warning>,
    ) -> Result<()> {
        for migration in self.moves.open_migration_records()? {
            counts.migrations += 1;
            if let Some(unended) = self.moves.unended(migration.id) {
                warnings.push(unended);
                continue;
            }
            let Some(pause) = self.moves.standstill(&migration) else {
                let undone = self.moves.undone(&migration);
                let changed = || self.moves.source_changes(&migration);
                warnings.extend(undone.or_else(changed));
                let fares = self.moves.guarding(migration.id);
                warnings.extend(fares.and_then(|fares| missed(migration.id, &fares)));
                continue;
            };
            // It is on its way to its end, whatever it stood still for.
            if migration.cancel {
                continue;
            }
            counts.migrations_paused += 1;
            // Without a hint somebody has asked for it.
            let Some(hint) = pause.hint else { continue };
            let about = format!("migration {}", migration.id);
            warnings.push(Warning { about, message: pause.reason, hint });
        }
        for moved in self.machines.open_vm_moves()? {
            counts.migrations += 1;
            let fares = moved.guard.as_ref();
            warnings.extend(fares.and_then(|fares| missed(moved.id, fares)));
            if moved.state != MigrationState::Paused {
                continue;
            }
            counts.migrations_paused += 1;
            if let (Some(message), Some(hint)) = (moved.reason, moved.hint) {
                let about = format!("migration {}", moved.id);
                warnings.push(Warning { about, message, hint });
            }
        }
        warnings.extend(self.machines.vm_warnings()?);
        Ok(())
    }
}

/// A datastore is full, and these disks on it have not all of their room yet.
fn full(name: &str, space: Space, thin: &[String]) -> Option<Warning> {
    let Space { capacity, free, .. } = space;
    let disks = on_it(thin).filter(|_| free <= capacity / FULL)?;
    Some(Warning {
        about: format!("datastore {name}"),
        message: format!(
            "full: {} of {} are free, and writes of {disks} fail where room is needed",
            Bytes(free),
            Bytes(capacity)
        ),
        hint: "make room there, or move disks to another datastore".into(),
    })
}

/// A datastore is offline, and these disks are on it. A file system that has failed stays so for
/// as long as somebody has a file open there, however often it is mounted.
fn offline(name: &str, problem: &str, disks: &[String], is_mounted: bool) -> Warning {
    let about = format!("datastore {name}");
    let message = match on_it(disks) {
        Some(disks) => format!("offline, with {disks} on it: {problem}"),
        None => format!("offline: {problem}"),
    };
    let mut hint = format!(
        "repair this: Sterna tries again every few seconds, and then continues the \
         datastore's disks and plans (`sterna datastore show {name}`)"
    );
    if is_mounted && !disks.is_empty() {
        hint += "; if its file system has failed: stop the daemon, unmount and mount the \
                 file system, and start the daemon";
    }
    Warning { about, message, hint }
}

/// A policy's target cannot be had.
fn out_of_reach(policy: &Policy) -> Option<Warning> {
    let cruise = policy.cruise.as_ref()?;
    if policy.standing != Standing::Binds || cruise.phase != CruisePhase::Unreachable {
        return None;
    }
    let class = &policy.class;
    let why = cruise.reason.as_ref().map_or(String::new(), |why| format!(": {why}"));
    Some(Warning {
        about: format!("policy {}", policy.id),
        message: format!("the target of class {class} is out of reach{why}"),
        hint: format!("to see the limits: `sterna policy explain {class}`"),
    })
}

/// A migration's guard cannot hold what was asked for.
fn missed(migration: u64, fares: &Guarding) -> Option<Warning> {
    let late = |late_s: f64| format!(" by {}", Nanos((late_s * 1e9) as u64));
    let what = match fares.state? {
        GuardState::Unreachable => "the guard cannot keep its promise".to_owned(),
        GuardState::Late => {
            format!(
                "the migration will end too late{}",
                fares.late_s.map_or(String::new(), late)
            )
        }
        GuardState::Learning
        | GuardState::Holding
        | GuardState::Converging
        | GuardState::Closed => return None,
    };
    let why = fares.reason.as_ref().map_or(String::new(), |why| format!(": {why}"));
    Some(Warning {
        about: format!("migration {migration}"),
        message: format!("{what}{why}"),
        hint: format!(
            "see `sterna migration show {migration}`; ask for less, or for more time, \
             with `sterna migration set {migration}`, which replaces the whole guard"
        ),
    })
}

/// Disks by name, as many as a line holds.
fn on_it(disks: &[String]) -> Option<String> {
    let (named, others) = disks.split_at(disks.len().min(NAMED));
    let names = named.join(", ");
    match (named.len(), others.len()) {
        (0, _) => None,
        (1, 0) => Some(format!("disk {names}")),
        (_, 0) => Some(format!("disks {names}")),
        (_, more) => Some(format!("disks {names} and {more} more")),
    }
}

#[cfg(test)]
mod tests {
    use sterna_api::{Aim, CruiseState, Fallback, Goal, Guard};

    use super::*;

    fn policy(phase: CruisePhase, standing: Standing) -> Policy {
        let reason = Some("the device does no more".to_owned());
        let goal = Goal::Iops(9000);
        Policy {
            id: 4,
            class: "oltp".into(),
            aim: Aim::Cruise {
                goal,
                tolerance_percent: 10,
                floor: None,
                fallback: Fallback::None,
            },
            schedule: None,
            until_job: None,
            created: 1,
            standing,
            looser_than: None,
            since: 1,
            until: None,
            cruise: Some(CruiseState { phase, since: Some(2), reason, fallback: None }),
        }
    }

    #[test]
    fn a_target_is_a_warning_while_it_is_out_of_reach_and_wanted() {
        let unreachable = policy(CruisePhase::Unreachable, Standing::Binds);
        let warning = out_of_reach(&unreachable).unwrap();
        let said = "the target of class oltp is out of reach: the device does no more";
        assert_eq!(
            (warning.about.as_str(), warning.message.as_str()),
            ("policy 4", said)
        );
        assert!(warning.hint.contains("`sterna policy explain oltp`"));
        assert_eq!(out_of_reach(&policy(CruisePhase::Holding, Standing::Binds)), None);
        let closed = policy(CruisePhase::Unreachable, Standing::Closed);
        assert_eq!(out_of_reach(&closed), None);
    }

    #[test]
    fn a_guard_is_a_warning_while_it_misses_what_was_asked_for() {
        let fares = |state| Guarding {
            asked: Guard { keep: Some(0.97), ..Guard::default() },
            state,
            reason: Some(
                "to end in time, the copy would leave the application 60%".into(),
            ),
            baseline_iops: None,
            kept: None,
            p99_us: None,
            allowance: None,
            late_s: Some(90.0),
        };
        let late = missed(7, &fares(Some(GuardState::Late))).unwrap();
        let said = "the migration will end too late by 90.0 s: to end in time, the copy \
                    would leave the application 60%";
        assert_eq!((late.about.as_str(), late.message.as_str()), ("migration 7", said));
        assert!(late.hint.contains("`sterna migration show 7`"));
        assert!(missed(7, &fares(Some(GuardState::Unreachable))).is_some());
        for state in [GuardState::Learning, GuardState::Holding, GuardState::Closed] {
            assert_eq!(missed(7, &fares(Some(state))), None);
        }
        assert_eq!(missed(7, &fares(None)), None);
    }

    #[test]
    fn a_full_datastore_names_the_disks_that_need_room_there() {
        let full = |free: u64, thin: &[&str]| {
            let thin: Vec<String> = thin.iter().map(ToString::to_string).collect();
            let capacity = 1 << 30;
            full("slow", Space { capacity, free, room: None }, &thin).map(|it| it.message)
        };
        let message = "full: 8.00 MiB of 1.00 GiB are free, and writes of disk a fail where \
                       room is needed";
        assert_eq!(full(8 << 20, &["a"]).as_deref(), Some(message));
        assert_eq!(full(8 << 20, &[]), None);
        assert_eq!(full(11 << 20, &["a"]), None);
    }

    #[test]
    fn an_offline_datastore_names_its_disks_but_not_hundreds_of_them() {
        let names = |disks: &[&str]| disks.iter().map(ToString::to_string).collect();
        let message = |disks: &[&str]| {
            let disks: Vec<String> = names(disks);
            offline("slow", "gone", &disks, true).message
        };
        assert_eq!(message(&[]), "offline: gone");
        assert_eq!(message(&["a"]), "offline, with disk a on it: gone");
        assert_eq!(message(&["a", "b"]), "offline, with disks a, b on it: gone");
        let many = ["a", "b", "c", "d", "e", "f", "g"];
        let few = "offline, with disks a, b, c, d, e and 2 more on it: gone";
        assert_eq!(message(&many), few);
    }

    #[test]
    fn a_file_system_that_has_failed_is_mounted_anew_while_no_daemon_holds_it() {
        let says = |disks: &[String], is_mounted| {
            offline("slow", "EIO", disks, is_mounted).hint.contains("stop the daemon")
        };
        let on_it = ["a".to_owned()];
        assert!(says(&on_it, true) && !says(&on_it, false) && !says(&[], true));
    }
}
