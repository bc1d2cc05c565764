//! Storage migration under a database: the published study of SQL Server and Storage
//! vMotion (VMware 2012), at its published size.
//!
//! A virtual machine has a data disk, four index disks and a log disk, each on spindles
//! of its own at an old array. One of them moves to a new array, while users order DVDs
//! of the database, or while it is off. How long does it take, and what do they notice?
//!
//! **What is the daemon's own code.** The move is `core::mirror`: which region is
//! copied next, which write is mirrored, when the switch-over comes. It is told the
//! published copier's chunk and depth (64 KiB, 30 in flight); its own would find others.
//! The arrays' spindles, caches and streams are `core::array`.
//!
//! **What is modelled here.** `storage` puts each array's pools behind its link; `host`
//! has the cores, which the database shares with the copier; `users` are the closed loop
//! of people who order; the crate's `mover` stands between the mirror and the arrays. `world` goes
//! from event to event, and `study` runs all scenes. `published` compares, and
//! `parameters` says what was fitted to what.
//!
//! **Known gaps.** Orders read and write their log, and nothing else: what the database
//! writes to its data and index disks at leisure is not there. That the old array takes
//! long for a read may as well be the published copier's doing; the database's reads
//! would then be quicker than here. That the virtual machine's processors go on together
//! only is what explains the orders that an index disk's move costs; how hard the
//! published hypervisor was about that is not known.
//! Each pool has its array's caches to itself.

mod course;
mod extent;
mod host;
mod parameters;
mod published;
mod scene;
mod storage;
mod study;
mod users;
mod world;

pub use course::{Course, Stretch, Times};
pub use extent::Extent;
pub use parameters::{ASSUMED, FITTED, Fitted, Parameters};
pub use published::{Basis, Figure, Published, TOLERANCE};
pub use scene::{Disk, Load, Scene, Side};
pub use study::Study;
