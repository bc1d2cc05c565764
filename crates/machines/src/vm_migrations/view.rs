//! A VM migration, as the API shows it: a transfer.

use sterna_api::{Result, Transfer, TransferState, Warning};
use sterna_state::{TransferRecord, TransferStep};

use crate::Machines;

impl Machines {
    /// The VM migrations that cannot go on.
    pub fn stuck_vm_migrations(&self) -> Result<Vec<Warning>> {
        let registry = self.ledger.read()?;
        let open = registry.transfers.iter().map(|one| self.view_vm_migration(one));
        let warning = |one: Transfer| {
            Warning {
            about: format!("vm {}", one.vm),
            message: format!(
                "transfer {} cannot continue: {}",
                one.id,
                one.reason.unwrap_or_default()
            ),
            hint: "Sterna tries again every second; check both QEMUs: `sterna drs migration list \
                   --json` gives their sockets"
                .into(),
        }
        };
        Ok(open.filter(|one| one.stuck).map(warning).collect())
    }

    /// A record, and what the driver knows.
    pub(super) fn view_vm_migration(&self, record: &TransferRecord) -> Transfer {
        let session = self.sessions.get(record.id).filter(|_| !record.step.ended());
        let status = session.map(|session| session.status()).unwrap_or_default();
        let design = &record.design;
        let end = record.end.clone();
        let note = end.as_ref().and_then(|end| end.note.clone());
        Transfer {
            id: record.id,
            vm: record.vm.clone(),
            from: design.from.clone(),
            to: design.to.clone(),
            source: design.source.display().to_string(),
            destination: design.destination.display().to_string(),
            why: design.reason.clone(),
            priority: design.priority,
            automatic: design.automatic,
            state: state_of(record),
            stuck: status.trouble.is_some(),
            reason: status.trouble.or(note),
            started: record.started,
            ended: end.as_ref().map(|end| end.at),
            progress: status.progress,
            report: end.and_then(|end| end.report),
        }
    }
}

fn state_of(record: &TransferRecord) -> TransferState {
    match record.step {
        TransferStep::Created | TransferStep::Copying if record.cancel => {
            TransferState::Cancelling
        }
        // It is taken back, whoever has wanted that.
        TransferStep::Returning => TransferState::Cancelling,
        TransferStep::Created => TransferState::Starting,
        TransferStep::Copying => TransferState::Copying,
        TransferStep::Committed => TransferState::SwitchingOver,
        TransferStep::Completed => TransferState::Completed,
        TransferStep::Cancelled => TransferState::Cancelled,
        TransferStep::Lost => TransferState::Lost,
    }
}
