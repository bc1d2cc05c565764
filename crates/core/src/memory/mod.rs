//! Memory of VMs that share a host: what goes out to swap, and how it comes back.
//!
//! A *granule* is 64 KiB of a VM's memory. A *tier* is a swap device, by its speed. A VM
//! *sleeps* when its memory is out, and *wakes* when its guest needs it again.
//!
//! # Rule
//!
//! The kernel brings memory back page by page, in the order in which the guest asks for it. On
//! a disk that is a seek for each page, so a VM that wakes stands nearly still for minutes. What
//! decides is order: on the device ([`place`]), and in time ([`record`]: what was needed after
//! the last wakes comes first). A wake ([`Wake`]) reads in that order, and as fast as the guest's
//! own faults allow ([`pace`]).
//!
//! # Invariants
//!
//! - The content of memory never passes through here: the kernel writes it and reads it.
//! - Nothing is held by whoever runs this: if it ends, the kernel goes on bringing back what
//!   the guest needs, page by page.
//!
//! # The parts
//!
//! `granules` counts memory, `record` knows what wakes needed, `place` orders what is out,
//! `tier` has what swap devices do and predicts from it, `sleep` orders what goes out, `stirring`
//! sees whether a guest needs it again, `wake` brings it back, `pace` says how fast, and `score`
//! how right predictions of it were.
//!
//! `host` knows how short of memory a host is, `balloon` how much a guest gives by itself, and
//! `activity` how much of its memory it uses. `reclaim` divides what there is and says who gives
//! what, by which means.

mod activity;
mod balloon;
mod granules;
mod host;
mod pace;
mod place;
mod reclaim;
mod record;
mod score;
mod sleep;
mod stirring;
mod tier;
mod wake;

pub use activity::Activity;
pub use balloon::{Balloon, CAP as BALLOON_CAP, EVERY as BALLOON_EVERY, GuestSays};
pub use granules::{GRANULE, GRANULES_MAX, Granule, GranuleSet, granules_in};
pub use host::{HostState, reserve};
pub use pace::{DEPTH_MOST, Pace};
pub use place::{OutGranule, Stream, runs, streams};
pub use reclaim::{Due, Holds, Host, IDLE, Reclaim, TAKE_LEAST, reclaim};
pub use record::{Heat, Needed, WAKES_KEPT, WITHIN, WakeRecord};
pub use score::{SCORES_KEPT, WakeScores};
pub use sleep::{OUT_BATCH, SWAP_LEFT, at_most, batches};
pub use stirring::{Need, Stirring, was_idle};
pub use tier::{PAGES_PER_GRANULE, PRIORITY_TOP, TIERS_APART, TierSpeed, WakeTime};
pub use tier::{predict, priorities};
pub use wake::{
    Action, Event, HOLD_MOST, HOLD_PAYS, HOT_DEPTH, Outcome, Phase, Setup, Wake,
};
