//! VM migrations that nobody carries out, as the system has refused a thread for them.
//!
//! Of new ones nothing was done: none of a recommendation begins, or is gone on with. One
//! that an earlier daemon has left waits until there is a thread, and keeps nobody from
//! starting the daemon.

use std::sync::Arc;

use sterna_api::{Error, Result};
use sterna_os::{clock, lock};
use sterna_state::{Entry, TransferEnd, TransferRecord, TransferStep};

use crate::Machines;

impl Machines {
    /// Has those begin that were entered for one recommendation: all of them, or none.
    pub fn start_entered(self: &Arc<Self>, all: &[TransferRecord]) -> Result<()> {
        for (place, one) in all.iter().enumerate() {
            let Err(error) = self.start_driver(one, false) else { continue };
            self.have_not_begun(&all[place..], &error);
            for begun in &all[..place] {
                // It may have ended by itself.
                if let Err(error) = self.cancel_vm_migration(begun.id) {
                    tracing::warn!(transfer = begun.id, %error, "cannot cancel a VM \
                                                                 migration");
                }
            }
            return Err(error);
        }
        Ok(())
    }

    /// Records that new ones have ended, and why.
    fn have_not_begun(&self, all: &[TransferRecord], why: &Error) {
        let note = format!("the VM migration could not begin: {why}");
        let end = TransferEnd { at: clock::now(), note: Some(note), report: None };
        let ended = |one: &TransferRecord| TransferRecord {
            step: TransferStep::Cancelled,
            end: Some(end.clone()),
            ..one.clone()
        };
        tracing::error!(%why, "transfers cannot begin");
        let entries = || all.iter().map(ended).map(Entry::Transfer).collect();
        if let Err(error) = self.ledger.change(&mut |_| Ok(entries())) {
            tracing::error!(%error, "cannot record a VM migration");
            let stranded = all.iter().map(|one| one.id);
            lock(&self.sessions.stranded).extend(stranded);
        }
    }

    /// Goes on with what the last daemon has left.
    pub fn resume_vm_migrations(self: &Arc<Self>) -> Result<()> {
        for one in &self.ledger.read()?.transfers {
            self.resume_vm_migration(one);
        }
        Ok(())
    }

    fn resume_vm_migration(self: &Arc<Self>, one: &TransferRecord) {
        if let Err(error) = self.start_driver(one, true) {
            let id = one.id;
            tracing::error!(transfer = id, %error, "a VM migration is stalled; Sterna \
                                                    tries again");
            lock(&self.sessions.stranded).insert(id);
        }
    }

    /// Goes on with those that nobody carries out, if there are threads for them by now.
    pub fn resume_stranded_vm_migrations(self: &Arc<Self>) -> Result<()> {
        if lock(&self.sessions.stranded).is_empty() {
            return Ok(());
        }
        let open = self.ledger.read()?.transfers;
        let stranded = std::mem::take(&mut *lock(&self.sessions.stranded));
        for one in open.iter().filter(|one| stranded.contains(&one.id)) {
            self.resume_vm_migration(one);
        }
        Ok(())
    }
}
