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
//! ([`crate::measure::LqLine`]). A disk takes its load with it. That is either its
//! requests under way or its requests per second, according to whether its application
//! waits for answers; as nobody knows which, a move must pay both ways, and what is said
//! of it is the worse one. A percentile is taken to change as the mean does.
//!
//! **No harm.** A move is refused unless all of this holds:
//!
//! - No datastore that was within a bound is over it afterwards.
//! - There is a margin: the destination has more room by [`Bounds::difference`], or the
//!   disk is answered faster by [`Bounds::gain`], and both datastores together are, too.
//! - Nothing else is moving the disk, and nothing has moved it lately. Where disks come
//!   and go, response times are looked at only when they have been there for as long as
//!   the response times are of.
//! - What the destination's device does with the load is known, or the disk leaves a full
//!   datastore and asks for nothing.
//!
//! So a move makes no datastore one that disks should leave, and repeated with the same
//! loads it comes to rest.
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
mod bounds;
mod inventory;
mod loaded;
mod search;
mod world;

pub use advise::{Advice, Recommended, Refused, Side, advise};
pub use bounds::Bounds;
pub use inventory::{Datastore, Disk, Inventory, Pinned};
pub use world::Because;

/// Which bound is exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// Too much of its room is taken.
    Space,
    /// Requests take too long.
    Latency,
}
