//! DRS: which VMs should be on other hosts.
//!
//! `hosts`, `pools`, `rules` and `settings` have what the API's requests ask for; the state's
//! ledger keeps it, and lets one at a time change it. `demand` is what each VM was seen to
//! use, `scene` all of that as `core` is told of it, `round` looks again and again, `view`
//! says what `core` says of it. `apply` has the service `machines` migrate VMs as is
//! recommended, and `carrier` does so by itself.
//!
//! **Who migrates VMs.** Sterna, where both QEMUs are on its own computer and it is told to;
//! else an operator, who then says where the VM is (`host assign`). These are the only ways
//! in which it is known; nobody else's word is taken for it.
//!
//! **Failures.** A VM that cannot be asked counts with what it was seen to use last, and
//! stays where it is until it answers. A VM that was never seen counts for nothing. A daemon
//! that is started anew knows of all VM migrations that were made, but not of what it told
//! somebody to migrate; and of no demand, so for three rounds no VM migrates.

mod apply;
mod carrier;
mod demand;
mod hosts;
mod pools;
mod round;
mod rules;
mod scene;
mod settings;
mod view;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use sterna_core::Nanos;
use sterna_os::lock;
use sterna_placement::hosts::{Cooldowns, Terms};
use sterna_state::Ledger;

use self::demand::Seen;
pub use self::round::looking;

/// What this process has of DRS.
pub(crate) struct Drs {
    ledger: Arc<dyn Ledger>,
    state: Mutex<State>,
}

/// What was seen so far.
#[derive(Debug, Default)]
struct State {
    /// By the VM's name.
    seen: HashMap<String, Seen>,
    cooldowns: Cooldowns,
    /// What VMs are promised of memory, of those of which somebody has said anything.
    terms: HashMap<String, Terms>,
    /// Seconds between two rounds; none before the first.
    round_s: u64,
    /// When it was looked last (seconds since 1970).
    looked: Option<u64>,
    /// When somebody was told that a VM should go to a host.
    told: HashMap<(String, String), Nanos>,
    /// Why the last move of a VM failed that nobody had asked for.
    failures: HashMap<String, String>,
}

impl Drs {
    /// Nothing seen yet.
    pub(crate) fn new(ledger: Arc<dyn Ledger>) -> Drs {
        Drs { ledger, state: Mutex::default() }
    }

    /// A migration of a VM that nobody had asked for has failed.
    pub(crate) fn note_failed(&self, vm: &str, why: &str) {
        lock(&self.state).failures.insert(vm.to_owned(), why.to_owned());
    }
}
