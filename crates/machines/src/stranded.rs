//! Moves that nobody carries out, as the system has refused a thread for them.
//!
//! Of a new one nothing was done: it has ended before it began, and its disk is free. One
//! that an earlier daemon has left may be anywhere: it waits until there is a thread, and
//! keeps nobody from starting the daemon.

use std::sync::Arc;

use sterna_api::{Application, Error, Result};
use sterna_os::{clock, lock};
use sterna_state::{Ending, Leaves, Step, VmMoveRecord, VmRecord};

use super::mover;
use super::under_way::Move;
use crate::Machines;

impl Machines {
    /// Records that a new move has ended, and why.
    pub(super) fn has_not_begun(&self, id: u64, why: &Error) {
        let ending = Ending {
            at: clock::now(),
            note: Some(format!("the migration could not begin: {why}")),
            application: Application::default(),
            report: None,
        };
        tracing::error!(migration = id, %why, "a move cannot begin");
        let ended = self.storage.store.vm_move_ends(
            id,
            Step::Cancelled,
            ending,
            Leaves::default(),
        );
        if let Err(error) = ended {
            tracing::error!(
                migration = id,
                error = error.with_cause(),
                "cannot record a move"
            );
            lock(&self.vms.stranded).insert(id);
        }
    }

    /// Goes on with the moves that the last daemon has left, and with putting away what is
    /// left of others.
    pub fn resume_vm_moves(self: &Arc<Self>) -> Result<()> {
        let known = self.storage.store.vms()?;
        let open = self.storage.store.open_vm_moves()?;
        for record in open.into_iter().chain(self.storage.store.untidy_vm_moves()?) {
            self.resume_vm_move(record, &known);
        }
        Ok(())
    }

    fn resume_vm_move(self: &Arc<Self>, record: VmMoveRecord, known: &[VmRecord]) {
        let Some(vm) = known.iter().find(|vm| vm.name == record.vm) else { return };
        let id = record.id;
        let started = match record.step.ended() {
            false => self.start_mover(id, &vm.reach, true),
            true => {
                let one = Arc::new(Move::of(&record));
                mover::start(self, one, record, &vm.reach, true)
            }
        };
        if let Err(error) = started {
            tracing::error!(migration = id, %error, "a move is stalled; Sterna tries \
                                                     again");
            lock(&self.vms.stranded).insert(id);
        }
    }

    /// Goes on with those that nobody carries out, if there are threads for them by now.
    pub fn resume_stranded_moves(self: &Arc<Self>) -> Result<()> {
        let stranded = lock(&self.vms.stranded).clone();
        if stranded.is_empty() {
            return Ok(());
        }
        let known = self.storage.store.vms()?;
        for id in stranded {
            let record = self.storage.store.vm_move(id)?;
            let untidy = self.storage.store.vm_move_is_untidy(id)?;
            // What could not be asked is asked again; what is begun may strand again.
            lock(&self.vms.stranded).remove(&id);
            if let Some(record) = record
                && (!record.step.ended() || untidy)
            {
                self.resume_vm_move(record, &known);
            }
        }
        Ok(())
    }
}
