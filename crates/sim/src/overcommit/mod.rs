//! Memory under overcommit: the published study of swap on flash, Fibre Channel and SATA
//! (VMware 2009), in virtual time.
//!
//! A virtual machine with a database was idle, and its host has taken its memory: a balloon has
//! a part, and the rest is out on a swap device. Then its customers come back. How many orders does
//! it take in the first two minutes, compared with a machine that was never swapped out?
//!
//! # Rule
//!
//! An order computes and touches pages of memory. A page that is out is read from the device, and
//! the processor that touched it stands still meanwhile. What follows is decided by the order in
//! which a device is asked: so nothing of a wake's course is put in, it comes of seeks, turns and
//! rates (`core::array`).
//!
//! # What is the daemon's own code
//!
//! What goes out in which order (`core::memory::batches`), what is known of earlier wakes
//! (`WakeRecord`, of wakes that were run before), where granules are (`streams`), and the wake
//! itself ([`sterna_core::memory::Wake`]). `sterna` does for it what the daemon's service does:
//! sees that the guest needs memory, fetches granules, counts the guest's faults, holds the guest.
//!
//! # What is modelled here
//!
//! `medium` has the three devices, and `device` asks them. `guest` is the memory: which page is
//! where. `kernel` decides how much is read at a fault, as Linux does. `customers` make orders.
//! `world` goes from event to event; `study` runs all ways on all media, and `published` compares.
//! `parameters` says where each number comes from.
//!
//! # Invariants
//!
//! 1. A page is read at most once in a wake.
//! 2. While the guest is held, it touches nothing.
//! 3. The same seed gives the same study.
//!
//! # Known gaps
//!
//! The host has room for what comes back: nothing goes out meanwhile, as it did in the study. The
//! guest's cache, which the balloon took, is not read again from the database's own disks.
//! Processors that are not halted by a fault (a guest that knows of asynchronous ones) would lose
//! less to the kernel's own way. The arrays do not know how far a seek goes, so swap that lies
//! together on large disks is somewhat faster than here.

mod customers;
mod device;
mod guest;
mod kernel;
mod medium;
mod parameters;
mod published;
mod sterna;
mod study;
mod wake;
mod world;

pub use medium::Medium;
pub use parameters::{Basis, NUMBERS, Number, Parameters};
pub use published::Published;
pub use study::{Study, Way};
pub use wake::Course;
