//! Which disks should be elsewhere: Storage DRS.
//!
//! **Rule.** A datastore is over its bound if more of its room is taken than
//! [`Bounds::space`], or if a percentile of its response times lies above
//! [`Bounds::latency`]. Then disks on it are looked at one by one: each, to each other
//! datastore. Of the moves that help, the one that helps most for what it copies is
//! recommended, what it would do is taken to be done, and all is looked at again.
//! Room goes before response times, as a full datastore fails writes.
//!
//! **Response times** follow from a device's line of latency over outstanding requests
//! ([`sterna_core::measure::LqLine`]). A disk takes its load with it. That is either its
//! requests under way or its requests per second, according to whether its application
//! waits for answers; as nobody knows which, a move must pay both ways, and what is said
//! of it is the worse one. A percentile is taken to change as the mean does. A device that
//! answers and has no line, as it has little to do, is taken to serve one request at a
//! time when load comes to it. One that has no line and is over its bound is taken to be no
//! quicker when a disk leaves it, so that disk alone must be worth it; and no other one
//! leaves it before that has been seen.
//!
//! **No harm.** A move is refused unless all of this holds:
//!
//! - No datastore that was within a bound is over it afterwards.
//! - There is a margin: the destination has more room by [`Bounds::difference`], or the
//!   disk is answered faster by [`Bounds::gain`], and both datastores together are, too.
//! - It makes no rule more broken that must hold; and one that should hold only if no
//!   other move would do.
//! - Nothing else is moving the disk, and nothing has moved it lately ([`Cooldown`]). Where
//!   disks come and go, response times are looked at only when they have been there for as long as
//!   the response times are of.
//! - What the destination's device does with the load is known, or the disk leaves a full
//!   datastore and asks for nothing.
//!
//! Moves are chosen one by one. Those that others have made needless meanwhile are taken
//! back at the end.
//!
//! So a move makes no datastore one that disks should leave, and repeated with the same
//! loads it comes to rest.
//!
//! **Rules** about disks ([`Rule`]) come before all: one that must hold and does not is
//! repaired first, if that pushes nobody over a bound. Disks that must be together move
//! together, as one.
//!
//! **By itself** Storage DRS acts on what has been over a bound for a while ([`Cycle`]),
//! and on a few disks at once ([`Advice::at_once`]). What came of each of its moves is
//! measured ([`verdict`]).
//!
//! **A new disk** goes where its nearest bound is farthest ([`choose`]).
//!
//! **Refusals are said**, with what stood in the way at the datastore that came nearest.
//!
//! The models are those of A. Gulati et al., "BASIL: Automated IO Load Balancing Across
//! Storage Devices", FAST 2010, and of their "Pesto", SOCC 2011: latency grows with
//! outstanding requests, and benefit is weighed against the bytes that are copied.
//!
//! **Known gaps.** Loads are means over the window: two disks that are busy at different
//! hours look like two that are busy together. Reads and writes, small requests and
//! large ones count alike, since a device's line is of the traffic that it had.

mod advise;
mod benefit;
mod bounds;
mod choose;
mod cooldown;
mod cycle;
mod inventory;
mod loaded;
mod needless;
mod rule;
mod rule_repair;
mod search;
mod unit;
mod world;

pub use advise::{Advice, Recommended, Refused, Side, Why, advise, advise_where};
pub use benefit::{Fared, MoveFared, Tally, Verdict, may_be_told_later, verdict};
pub use bounds::Bounds;
pub use choose::{Chance, Choice, NewDisk, choose};
pub use cooldown::{COOLDOWN, COOLDOWN_MAX, Cooldown, DAY, PastMove};
pub use cycle::{Cycle, Due, LOOKS};
pub use inventory::{Datastore, Disk, Inventory, Pinned};
pub use rule::{Conflict, Rule, Strength, Wish, conflict};
pub use world::Because;

/// Which bound is exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Over {
    /// Too much of its room is taken.
    Space,
    /// Requests take too long.
    Latency,
}
