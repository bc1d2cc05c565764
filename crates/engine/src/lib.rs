//! The data path: reactor, datastores, exports, the mirror's driver.
//!
//! A module uses those below it, and knows none above it:
//!
//! ```text
//!  engine ─────────┐            what the daemon calls, from any thread
//!    │ mailboxes   │
//!  reactor         │            one thread: the loop, and who waits for memory
//!    │             │
//!  export        mirror         clients and machines; the driver of a move
//!    └──── disk ───┘            requests and their answers
//!           │
//!         image                 the bytes of a disk on one datastore
//!           │
//!        account                what a disk's clients are owed, kept across a kill
//!           │
//!  qos · io · buffer · timer    admission, the kernel, memory, the clock
//! ```
//!
//! What goes up goes as data: answers in queues, letters in mailboxes, and traits of a lower
//! module that an upper one fills in (`disk::Driver`, `export::vhost::Devices`).

mod account;
pub mod boot;
mod buffer;
mod classes;
pub mod datastore;
mod directory;
mod disk;
mod engine;
mod export;
mod ground;
mod holds;
mod homes;
mod image;
mod io;
mod listener;
mod mailbox;
mod memory;
pub mod mirror;
mod origin;
pub mod place;
mod plain;
mod qos;
mod reactor;
mod seldom;
pub mod sidecar;
mod slab;
mod stats;
mod timer;
mod times;
mod troubles;

#[cfg(fuzzing)]
pub use export::vhost::fuzzing;

pub use account::AccountSpec;
pub use directory::description;
pub use engine::{
    Config, DiskSpec, Engine, EngineError, MigrateError, STOPS_WITHIN, WatchedReads,
};
pub use ground::{Ground, Shared};
pub use homes::renew_homes;
pub use image::{
    Astray, Budget, FileIdentity, FoundFile, HeldFile, ImageSpec, OpenError, Opener,
    VouchFor, Vouched, is_of_this_machine, is_used, opened_by_others,
};
pub use io::{Errno, IoChoice, IoKind};
pub use listener::Listener;
pub use memory::remove_leftovers;
pub use plain::keep_descriptors;
pub use sidecar::Beside;
pub use stats::{DiskProfile, DiskStats, DiskWindow, Reach, Requests};
pub use times::Times;
pub use troubles::{Trouble, TroubleKind};
