//! A move of a VM's disk, as the API shows migrations.

use sterna_api::{Migration, MigrationState, Progress, Provision};
use sterna_moves::{fares, is_copying};
use sterna_os::lock;
use sterna_state::{Step, VmMoveRecord};

use super::unclear::decide;
use super::under_way::MoveProgress;
use crate::Machines;

impl Machines {
    /// A record, and what the mover knows.
    pub(super) fn view_vm_move(&self, record: VmMoveRecord) -> Migration {
        let one = lock(&self.vms.moves).get(&record.id).cloned();
        let now = one.map(|one| one.known());
        let state = state_of(&record, now.as_ref());
        let guarding = now.as_ref().and_then(|now| now.guarding.clone());
        let guard = fares(guarding, &record.guard, &record.application, record.step);
        let is_copying = is_copying(state, guard.as_ref());
        let progress = now.as_ref().and_then(|now| now.progress);
        let progress = progress.map(|at| Progress {
            rate: if is_copying { at.rate } else { 0.0 },
            eta_s: at.eta_s.filter(|_| is_copying),
            ..at
        });
        let trouble = now.as_ref().and_then(|now| now.trouble.clone());
        let by_hand = record.paused && state == MigrationState::Paused;
        let undecided = record.unclear.then(|| decide(&record));
        let reason = trouble.clone().or_else(|| record.note.clone());
        Migration {
            id: record.id,
            disk: format!("{}/{}", record.vm, record.device),
            size: record.size,
            from: record.from,
            to: record.to,
            provision: Provision::Thin,
            rate: record.rate,
            verify: false,
            // It is not ours to remove.
            keep_source: true,
            skip_bad_sectors: false,
            bad_sectors: None,
            differing: None,
            guard,
            state,
            reason: reason.or_else(|| by_hand.then(|| "asked for".to_owned())),
            hint: match trouble {
                Some(_) => Some(format!(
                    "find out why {} does not answer; Sterna asks again",
                    record.vm
                )),
                None => undecided,
            },
            unclear: record.unclear,
            started: record.started,
            ended: record.ended,
            predicted: None,
            balanced: None,
            held: None,
            progress,
            application: now.map_or(record.application, |now| now.application),
            report: record.report,
        }
    }
}

fn state_of(record: &VmMoveRecord, now: Option<&MoveProgress>) -> MigrationState {
    match record.step {
        Step::Completed => MigrationState::Completed,
        Step::Cancelled => MigrationState::Cancelled,
        Step::Committed => MigrationState::CleaningUp,
        Step::Created | Step::Copying if record.cancel => MigrationState::Cancelling,
        Step::Created => MigrationState::Created,
        _ if now.is_some_and(|now| now.trouble.is_some()) => MigrationState::Paused,
        Step::Switching => MigrationState::SwitchingOver,
        Step::Copying if record.paused => MigrationState::Paused,
        Step::Copying => MigrationState::Copying,
    }
}
