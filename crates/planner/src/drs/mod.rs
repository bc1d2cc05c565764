//! DRS: which virtual machines should be on other hosts.
//!
//! `hosts`, `pools`, `rules` and `settings` have what the API's requests ask for; `ledger`
//! keeps it, and lets one at a time change it. `demand` is what each machine was seen to
//! use, `scene` all of that as `core` is told of it, `round` looks again and again, `view`
//! says what `core` says of it. `transfers` moves machines, and `carrier` has it do so by
//! itself.
//!
//! **Who moves machines.** Sterna, where both QEMUs are on this machine and it is told to;
//! else an operator, who then says where the machine is (`host assign`). These are the only
//! ways in which it is known; nobody else's word is taken for it.
//!
//! **Failures.** A machine that cannot be asked counts with what it was seen to use last,
//! and stays where it is until it answers. One that was never seen counts for nothing. A
//! daemon that is started anew knows of all moves that were made, but not of what it told
//! somebody to move; and of no demand, so for three rounds nothing moves.

mod carrier;
mod demand;
mod hosts;
mod ledger;
mod pools;
mod round;
mod rules;
mod scene;
mod settings;
mod transfers;
mod view;

use std::collections::HashMap;
use std::sync::Mutex;

use sterna_core::Nanos;
use sterna_core::place::hosts::{CooldownSettings, Cooldowns};
use sterna_state::Store;

use self::demand::Seen;
use self::ledger::{Ledger, Local};
pub use self::round::looking;
use self::transfers::Sessions;

/// What this process has of DRS.
pub(crate) struct Drs {
    ledger: Box<dyn Ledger>,
    state: Mutex<State>,
    sessions: Sessions,
}

/// What was seen so far.
#[derive(Debug, Default)]
struct State {
    /// By the machine's name.
    seen: HashMap<String, Seen>,
    cooldowns: Cooldowns,
    /// Seconds between two rounds; none before the first.
    round_s: u64,
    /// When it was looked last (seconds since 1970).
    looked: Option<u64>,
    /// When somebody was told that a machine should go to a host.
    told: HashMap<(String, String), Nanos>,
    /// Why the last move of a machine failed that nobody had asked for.
    failures: HashMap<String, String>,
}

impl Drs {
    /// Nothing seen yet.
    pub(crate) fn new(store: Store) -> Drs {
        let (state, sessions) = Default::default();
        Drs { ledger: Box::new(Local::new(store)), state, sessions }
    }
}

/// How long what is waited, by the settings.
fn hold(settings: &sterna_api::DrsSettings) -> CooldownSettings {
    let cooldown = Nanos::from_secs(settings.cooldown_s);
    let usual = CooldownSettings::default();
    CooldownSettings {
        rounds: settings.hold,
        cooldown,
        longest: usual.longest.max(cooldown),
        foreign: usual.foreign,
    }
}
