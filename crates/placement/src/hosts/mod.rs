//! Which VMs should be on other hosts: DRS.
//!
//! **Rule.** Each VM is entitled to a part of what all hosts together have: its
//! reservation first, then by shares, never beyond its limit or what it asks for
//! ([`entitled`]). A host's *load* is what the VMs on it are entitled to, over what it
//! has. Four things are put right, in this order:
//!
//! 1. a rule that must hold and does not,
//! 2. a host whose load is above 1, so that its VMs lack what they are entitled to (of
//!    memory they would swap: a move comes before that),
//! 3. a rule that should hold and does not,
//! 4. loads that differ ([`Imbalance`]).
//!
//! For each, of the moves that help, the one that helps most for the memory that it
//! copies is recommended, what it would do is taken to be done, and all is looked at
//! again. Where no single VM's move evens loads out, two VMs change places.
//!
//! **No harm.** A move is refused unless all of this holds:
//!
//! - No rule is broken by it that was not before. (One that should hold gives way to one
//!   that must.)
//! - Reservations fit on the host that it goes to, and its load stays within 1.
//! - To even out: the imbalance falls, and by a margin, measured at the two hosts.
//! - What it brings over the time that loads are taken to last is more than what the copy
//!   takes from both hosts, even if the VM then asks for as much less, or as much more,
//!   as it usually varies by.
//! - Nobody else is moving the VM, and it has not moved lately ([`Cooldowns`]).
//!
//! So each move lowers one of the four and raises none before it, and repeated with the
//! same loads it comes to rest.
//!
//! **By itself** one recommendation at a time is carried out ([`act`]), by whoever moves
//! VMs: a [`Carrier`].
//!
//! **Refusals are said**, with what stood in the way at the host that came nearest.
//!
//! The models are those of A. Gulati et al., "VMware Distributed Resource Management:
//! Design, Implementation, and Lessons Learned", 2012 (entitlements, loads, cost, benefit
//! and risk of a move); of C. Waldspurger, "Memory Resource Management in VMware ESX
//! Server", OSDI 2002 (idle memory costs more shares: [`idle_price`]).
//!
//! **Known gaps.** What a VM writes to its memory while it is copied is not known, so a
//! copy may take longer. A host with too much gives all its VMs the same part of what
//! they are entitled to, in thought.

mod act;
mod admit;
mod advise;
mod amounts;
mod bounds;
mod cooldown;
mod entitle;
mod explain;
mod imbalance;
mod inventory;
mod rule;
mod score;
mod search;
mod step;
mod uses;
mod world;

pub use act::{Acted, Carrier, Wish, act, waits};
pub use admit::{Oversold, admit};
pub use advise::{Advice, Recommended, advise};
pub use amounts::{Amounts, Resource};
pub use bounds::Bounds;
pub use cooldown::{CooldownSettings, Cooldowns, VmHistory};
pub use entitle::entitled;
pub use explain::{Refused, explain};
pub use imbalance::{Imbalance, imbalance, variation};
pub use inventory::{Demand, Host, Inventory, Pinned, Pool, Terms, Vm};
pub use rule::{Clash, Kind, Rule, clash};
pub use score::score;
pub use step::{Because, Worth};
pub use sterna_core::entitle::idle_price;
pub use uses::Uses;

/// What a move puts right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// This rule must hold and does not.
    Must(usize),
    /// The host that is left has too little of this.
    Relieve(Resource),
    /// This rule should hold and does not.
    Should(usize),
    /// Loads differ.
    Even,
}
