//! Many disks are to be elsewhere: where each goes, when, and what becomes of it.
//!
//! **Rule.** [`assign`] finds a datastore for each disk, or says why there is none.
//! [`order`] says which goes first. A [`PlanRun`] then carries that out as a state machine,
//! `step(now, event) -> actions`: it has moves start, and hears how they fare.
//! [`rehearse`] runs the same machine in virtual time, with what the moves are predicted
//! to take: so what is said of a plan is what its machine would do. [`bound`] is how long
//! it takes at least, whatever the order.
//!
//! **How many at once.** Moves share their datastores. One more helps only until those
//! that are under way use up what a datastore copies ([`End::speed`]). So moves are let
//! in at a datastore as long as what they copy by themselves fits into that. Two may
//! always be there, as one copies while the other one begins or switches over, and
//! [`MOST`] at most. Those that together want more than there is share it in proportion.
//! Copies of [`Others`] count, too, also those at other datastores of one array or server;
//! but one move of a plan is always let in.
//!
//! **Order.** Disks of groups that go first, then whatever takes longest: the short ones
//! fill the gaps at the end (R. L. Graham's bound for such lists is a third above the
//! best one). A move that cannot begin now is overtaken by those that can.
//!
//! **Waves.** A move that begins with the plan is of wave 1; one that begins when others
//! have ended, on whose datastores it goes or whose group it waits for, is of the wave
//! after the last of theirs.
//!
//! **Workloads.** What runs on the disks of a group can be stopped before they move and
//! started afterwards, by hooks (`workload`).
//!
//! **Failures.** Each move ends exactly once, as moved, failed, skipped or given up.
//!
//! - A move that stands still goes on from where it is if it can, and is begun anew only
//!   if it cannot: what it has copied may have taken hours.
//! - A datastore that is away makes its moves wait, for [`AWAY_MOST`] at most.
//! - What may pass is tried again, later each time, [`TRIES`] times; a [`Refusal`] that is
//!   final is not.
//! - A destination that is full, fails, or stays away is left alone: what was to go there
//!   goes elsewhere if there is room, and fails if not.
//! - A move that fails stops no others, but those of the groups that wait for its own.
//! - Whatever was under way when the machine was stopped is looked up and told to it; what
//!   it had asked for last is asked for again.
//!
//! **Known gaps.** Copies are taken to slow each other down only at their datastores, and
//! applications no copies but their own disk's. What a disk frees at its source is not
//! given to others. Which disks of a group stay together is seen to once: if their
//! destination fails, what is left of them goes wherever there is room.

mod assign;
mod bound;
mod event;
mod inventory;
mod next_start;
mod places;
mod queue;
mod ready;
mod refusal;
mod rehearse;
mod run;
mod setup;
mod stalled;
mod task;
mod tasks;
mod workload;

pub use assign::{Assigned, Assignment, Because, Refused, Why, assign};
pub use bound::bound;
pub use event::{Action, Event, Wish};
pub use inventory::{Datastore, Disk, Inventory, Pinned, Takes};
pub use places::{LEAST, MOST, Others};
pub use refusal::Refusal;
pub use rehearse::{Rehearsal, Rehearsed, rehearse};
pub use run::{PlanRun, Progress};
pub use setup::{End, Group, Move, Setup, depths, order};
pub use stalled::{AWAY_MOST, STEADY, TRIES};
pub use task::{Fault, Stage, Task};
pub use workload::{Running, Workload};
