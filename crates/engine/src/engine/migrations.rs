//! Which disk each migration moves.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use sterna_core::DiskId;

use crate::mirror::MigrationId;

/// The migrations that are known, with their disks.
#[derive(Debug, Default)]
pub(super) struct Migrations(Mutex<HashMap<MigrationId, DiskId>>);

impl Migrations {
    fn known(&self) -> MutexGuard<'_, HashMap<MigrationId, DiskId>> {
        self.0.lock().expect("nothing panics with the lock")
    }

    /// A migration of this disk is under way.
    pub(super) fn begins(&self, id: MigrationId, disk: DiskId) {
        self.known().insert(id, disk);
    }

    /// The disk of a migration that is known.
    pub(super) fn disk(&self, id: MigrationId) -> Option<DiskId> {
        self.known().get(&id).copied()
    }

    /// A migration has been found to be over.
    pub(super) fn is_over(&self, id: MigrationId) {
        self.known().remove(&id);
    }
}
