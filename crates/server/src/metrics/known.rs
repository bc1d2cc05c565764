//! What metrics need of the state, remembered for the time in which the state directory
//! does not answer: a monitor has to see just then that the disks are served.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sterna_api::{MigrationState, Result};
use sterna_core::DiskId;
use sterna_os::lock;
use sterna_state::Step;
use sterna_storage::asker::Asker;

use crate::Server;

/// How long the state may take. Programs that read metrics wait some seconds.
const ASKING: Duration = Duration::from_millis(500);

/// What was read last.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// All disks, by name.
    pub(super) disks: Vec<(DiskId, String)>,
    /// How many migrations are in each state.
    pub(super) states: BTreeMap<&'static str, u64>,
}

/// Who asks the state, and remembers.
#[derive(Debug, Default)]
pub(super) struct LastKnown {
    asker: Asker,
    last: Mutex<Arc<Known>>,
}

impl LastKnown {
    /// What the state says, or has said last.
    pub(super) fn look(&self, server: &Arc<Server>) -> Arc<Known> {
        let asked = server.clone();
        let answer = self.asker.ask(ASKING, move || Known::read(&asked)).answer();
        let mut last = lock(&self.last);
        if let Some(Ok(known)) = answer {
            *last = Arc::new(known);
        }
        last.clone()
    }
}

impl Known {
    fn read(server: &Server) -> Result<Known> {
        let store = &server.storage.store;
        let disks = store.disk_names()?;
        let mut states: BTreeMap<_, _> = ALL.iter().map(|it| (word(*it), 0)).collect();
        let qemus = server.machines.open_vm_moves()?.into_iter().map(|one| one.state);
        for state in server.moves.open_states()?.into_iter().chain(qemus) {
            *states.entry(word(state)).or_default() += 1;
        }
        for (step, many) in store.ended_migrations()? {
            let state = match step {
                Step::Completed => MigrationState::Completed,
                _ => MigrationState::Cancelled,
            };
            states.insert(word(state), many);
        }
        Ok(Known { disks, states })
    }
}

/// All states, so that one that no migration is in is there, with nought.
const ALL: [MigrationState; 9] = [
    MigrationState::Created,
    MigrationState::Copying,
    MigrationState::Verifying,
    MigrationState::SwitchingOver,
    MigrationState::Paused,
    MigrationState::Cancelling,
    MigrationState::CleaningUp,
    MigrationState::Completed,
    MigrationState::Cancelled,
];

/// A state as the API writes it.
fn word(state: MigrationState) -> &'static str {
    match state {
        MigrationState::Created => "created",
        MigrationState::Copying => "copying",
        MigrationState::Verifying => "verifying",
        MigrationState::SwitchingOver => "switching-over",
        MigrationState::Paused => "paused",
        MigrationState::Cancelling => "cancelling",
        MigrationState::CleaningUp => "cleaning-up",
        MigrationState::Completed => "completed",
        MigrationState::Cancelled => "cancelled",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_called_as_in_the_api() {
        for state in ALL {
            let written = serde_json::to_string(&state).unwrap();
            assert_eq!(written, format!("\"{}\"", word(state)));
        }
    }
}
