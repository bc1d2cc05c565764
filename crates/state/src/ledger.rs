//! Where the registry is kept (hosts, pools, rules, which VM is on which host), and who may
//! change it.
//!
//! Behind a trait, because it is one daemon's own state today and several daemons will
//! have to share it. What they need is these two calls: to read all of it as of one
//! moment, and to change it while nobody else does.

use std::sync::Mutex;

use sterna_api::Result;
use sterna_os::lock;

use super::{Entry, Registry, Store};

/// A change of the registry: what is to be entered, given what is there. Nothing is, if it refuses.
pub type Change<'c> = &'c mut dyn FnMut(&Registry) -> Result<Vec<Entry>>;

/// Who keeps the registry.
pub trait Ledger: Send + Sync {
    /// All of it, as of one moment.
    fn read(&self) -> Result<Registry>;

    /// Makes a change, alone: what it was given is what is there until it is made. Gives
    /// what is there then.
    fn change(&self, change: Change<'_>) -> Result<Registry>;
}

/// This daemon's own state, which nobody else writes.
pub struct LocalLedger {
    store: Store,
    turn: Mutex<()>,
}

impl LocalLedger {
    /// The registry of this state. There must be one ledger of a state alone.
    pub fn new(store: Store) -> LocalLedger {
        LocalLedger { store, turn: Mutex::default() }
    }
}

impl Ledger for LocalLedger {
    fn read(&self) -> Result<Registry> {
        Ok(self.store.registry()?)
    }

    fn change(&self, change: Change<'_>) -> Result<Registry> {
        let _turn = lock(&self.turn);
        let entries = change(&self.read()?)?;
        self.store.enter(entries)?;
        self.read()
    }
}
