//! A move of a VM's disk that has not ended, as all see it who have to do with it.

use std::sync::Mutex;

use sterna_api::{Application, Guarding, Progress};
use sterna_os::lock;
use sterna_state::VmMoveRecord;
use tokio::sync::Notify;

/// A move that has not ended.
#[derive(Debug)]
pub(super) struct Move {
    id: u64,
    vm: String,
    device: String,
    /// Wakes the mover: something was asked for.
    pub(super) asked: Notify,
    known: Mutex<MoveProgress>,
}

/// What the mover knows.
#[derive(Clone, Debug, Default)]
pub(super) struct MoveProgress {
    /// How far it is.
    pub(super) progress: Option<Progress>,
    /// How the guard fares.
    pub(super) guarding: Option<Guarding>,
    /// What the application notices.
    pub(super) application: Application,
    /// Why it cannot go on at the moment.
    pub(super) trouble: Option<String>,
}

impl Move {
    pub(super) fn of(record: &VmMoveRecord) -> Move {
        Move {
            id: record.id,
            vm: record.vm.clone(),
            device: record.device.clone(),
            asked: Notify::new(),
            known: Mutex::new(MoveProgress {
                application: record.application,
                ..MoveProgress::default()
            }),
        }
    }

    /// Its number.
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// Whether it moves a disk of this VM.
    pub(super) fn is_of_vm(&self, vm: &str) -> bool {
        self.vm == vm
    }

    /// Whether it moves this disk.
    pub(super) fn is_of(&self, vm: &str, device: &str) -> bool {
        self.vm == vm && self.device == device
    }

    /// What is known of it.
    pub(super) fn known(&self) -> MoveProgress {
        lock(&self.known).clone()
    }

    /// Takes note of something.
    pub(super) fn note(&self, change: impl FnOnce(&mut MoveProgress)) {
        change(&mut lock(&self.known));
    }
}
