//! What is made durable of a VM migration: that it has begun, whose the VM is, and its end.
//!
//! The commit is one change of the registry: the VM is reached at the receiver, and is on
//! the other host. What takes it back is the opposite.

use sterna_api::Error;
use sterna_core::Nanos;
use sterna_core::transfer::{Verdict, Words};
use sterna_os::clock;
use sterna_placement::hosts::Cooldowns;
use sterna_state::{
    Entry, History, Reach, Registry, SeatRecord, TransferEnd, TransferRecord,
    TransferStep,
};

use super::driver::Driver;

impl Driver {
    /// The record as it is to be at a step. What is asked for meanwhile stays so.
    fn at(&self, registry: &Registry, step: TransferStep) -> TransferRecord {
        let now = registry.transfers.iter().find(|one| one.id == self.record.id);
        let cancel = now.is_some_and(|one| one.cancel);
        TransferRecord { step, cancel, ..self.record.clone() }
    }

    fn not_recorded(&self, error: &Error) -> Words {
        tracing::error!(transfer = self.record.id, %error, "cannot record a VM migration");
        error.to_string()
    }

    pub(super) fn record_copying(&mut self) -> Result<(), Words> {
        let changed = self.machines.ledger.change(&mut |registry| {
            Ok(vec![Entry::Transfer(self.at(registry, TransferStep::Copying))])
        });
        changed.map_err(|error| self.not_recorded(&error))?;
        self.record.step = TransferStep::Copying;
        Ok(())
    }

    /// The VM is at the receiver from now on, unless somebody has just had it given
    /// up, if that is heeded; says whether it is.
    pub(super) fn commit(&mut self, heeds: bool) -> Result<bool, Words> {
        let (mut is_wanted, mut before) = (true, None);
        let committed = self.machines.ledger.change(&mut |registry| {
            let record = self.at(registry, TransferStep::Committed);
            is_wanted = !heeds || !record.cancel;
            let assignment =
                registry.assignments.iter().find(|assignment| assignment.vm == record.vm);
            before = assignment.and_then(|assignment| assignment.history.clone());
            if !is_wanted {
                return Ok(Vec::new());
            }
            let reach = Reach::Qmp(record.design.destination.clone());
            Ok(vec![
                Entry::Reach { vm: record.vm.clone(), reach },
                self.assignment(registry, &record.design.to, true),
                Entry::Transfer(record),
            ])
        });
        // A commit that fails may be durable all the same.
        if is_wanted && self.before.is_none() {
            self.before = before;
        }
        committed.map_err(|error| self.not_recorded(&error))?;
        if is_wanted {
            self.record.step = TransferStep::Committed;
        }
        Ok(is_wanted)
    }

    /// The VM is where it was, as if nothing had been.
    pub(super) fn take_back(&mut self) -> Result<(), Words> {
        let changed = self.machines.ledger.change(&mut |registry| {
            let record = self.at(registry, TransferStep::Returning);
            let (vm, design) = (&record.vm, &record.design);
            let reach = Reach::Qmp(design.source.clone());
            let mut entries = vec![Entry::Reach { vm: vm.clone(), reach }];
            let assignment =
                registry.assignments.iter().find(|assignment| assignment.vm == *vm);
            if let Some(assignment) = assignment
                .filter(|assignment| assignment.host.as_ref() == Some(&design.to))
            {
                let (host, history) = (Some(design.from.clone()), self.before.clone());
                entries.push(Entry::Assignment(SeatRecord {
                    host,
                    history,
                    ..assignment.clone()
                }));
            }
            entries.push(Entry::Transfer(record));
            Ok(entries)
        });
        changed.map_err(|error| self.not_recorded(&error))?;
        self.record.step = TransferStep::Returning;
        Ok(())
    }

    /// Where the VM is, for the registry; and that a migration of it has succeeded, or failed.
    fn assignment(&self, registry: &Registry, host: &str, migrated: bool) -> Entry {
        let vm = &self.record.vm;
        let known = registry.assignments.iter().find(|it| it.vm == *vm);
        let mut cooldowns = Cooldowns::default();
        if let Some(history) = known.and_then(|it| it.history.as_ref()) {
            cooldowns.recall(vm.clone(), history.known());
        }
        let (now, hold) = (Nanos::from_secs(clock::now()), registry.cooldown_settings());
        match migrated {
            true => cooldowns.moved(now, vm, host, &hold),
            false => cooldowns.failed(now, vm, host, &hold),
        }
        Entry::Assignment(SeatRecord {
            vm: vm.clone(),
            host: Some(host.to_owned()),
            pool: known.and_then(|it| it.pool.clone()),
            history: cooldowns.history(vm).map(History::of),
        })
    }

    /// Records how it has ended.
    pub(super) fn close(&mut self, verdict: &Verdict) -> Result<(), Words> {
        self.stream.remove();
        let step = match verdict {
            Verdict::There { .. } => TransferStep::Completed,
            Verdict::Stays { .. } => TransferStep::Cancelled,
            Verdict::Lost(..) => TransferStep::Lost,
        };
        let report = (step == TransferStep::Completed).then(|| self.report());
        let note = self.note_of(verdict);
        let end = TransferEnd { at: clock::now(), note: note.clone(), report };
        let failed = self.record.design.automatic && step == TransferStep::Cancelled;
        let changed = self.machines.ledger.change(&mut |registry| {
            let record =
                TransferRecord { end: Some(end.clone()), ..self.at(registry, step) };
            let mut entries = vec![Entry::Transfer(record)];
            if failed {
                let why = note.clone().unwrap_or_else(|| "cancelled".into());
                self.machines
                    .users
                    .tell(|user| user.migration_failed(&self.record.vm, &why));
                entries.push(self.assignment(registry, &self.record.design.from, false));
            }
            Ok(entries)
        });
        changed.map_err(|error| self.not_recorded(&error))?;
        let (id, vm) = (self.record.id, &self.record.vm);
        tracing::info!(transfer = id, vm, note, "transfer {step:?}");
        self.machines.sessions.remove(id);
        Ok(())
    }
}
