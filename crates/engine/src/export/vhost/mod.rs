//! Serving a disk to a virtual machine's own virtio driver: vhost-user-blk.
//!
//! The hypervisor hands us the guest's memory and its queues; from then on the guest's
//! driver and a reactor work on the queues without the hypervisor. Requests are carried
//! out in the guest's memory where they lie in one stretch; others by way of a copy.
//!
//! ```text
//!  QEMU ──socket──► server (a thread)          says what memory, queues and events are
//!    │                 │ messages
//!  guest ──kick──►  device (on the reactor) ──► disk ──► image
//!        ◄──call──     rings · chains · requests
//! ```
//!
//! - `server` listens, and `control` is what the hypervisor says: rust-vmm's `vhost` knows
//!   the messages; each is carried out on the disk's reactor before it is answered.
//!   `regions` are the guest's memory. `devices` is what `control` wants of the reactor, of which
//!   it knows the mailbox alone.
//! - `device` is the machine's side on the reactor: it takes requests out of the `ring`s,
//!   gives them to the disk, and puts the answers back.
//! - `moderation` decides when a guest is told of answers, and tells of requests.
//! - `chain` walks descriptors, `request` makes sense of what they hold, and `data` is
//!   where its bytes are.
//! - `inflight` remembers which requests are under way, in memory that the hypervisor
//!   keeps while we are gone.
//!
//! # A daemon that is killed
//!
//! The guest's requests stay in its queues, and QEMU connects again when the socket is
//! back (`reconnect`). What was under way then is in the in-flight area, and is carried
//! out again, in the order in which it was taken: a request that is repeated writes or
//! reads the same once more, because the guest has had no answer to it.
//!
//! # What a guest can do to us
//!
//! Everything in its memory may be wrong, and may change while we look at it. Each
//! address is checked against the memory that we were given; a chain is as long as its
//! queue at most, a request `SEGMENTS_MAX` stretches; what is under way is bounded
//! (`BYTES_MAX`). A request that makes no sense gets an error; a queue that makes none
//! stands still until the machine starts anew.
//!
//! # Limits
//!
//! A hypervisor that cuts off memory it has shared, or has taken away a moment ago (see
//! `regions`), ends us (`SIGBUS`): whoever has the
//! socket is trusted as much as whoever may stop the daemon. The machine cannot be
//! moved live to another host while it has such a disk: QEMU says so.

mod chain;
mod config;
mod control;
mod data;
pub(crate) mod device;
mod devices;
#[cfg(fuzzing)]
pub mod fuzzing;
mod inflight;
mod moderation;
mod regions;
mod request;
pub(crate) mod ring;
mod server;

use std::sync::Arc;

use vm_memory::GuestMemoryMmap;

pub(crate) use control::Served;
pub(crate) use devices::Devices;
pub(crate) use server::Server;

/// The guest's memory, as long as anything of it is in use.
pub(crate) type Memory = Arc<GuestMemoryMmap<()>>;

/// Queues of a device: one for each processor of a large machine. QEMU asks for as many
/// as the machine has processors.
pub(crate) const QUEUES_MAX: u16 = 64;

/// Entries of a queue: what virtio allows for a split ring and Linux asks for at most.
const QUEUE_SIZE_MAX: u16 = 1024;

/// Stretches of memory in a request: what we tell the guest, and two for its head and
/// status.
const SEGMENTS_MAX: usize = 126 + 2;

/// What is under way of one device, in bytes: 32 requests of half a megabyte, which is
/// as much as any datastore uses. One request is always under way.
const BYTES_MAX: usize = 16 << 20;

/// Requests of one device that are under way.
const IN_FLIGHT_MAX: usize = 512;

/// Ranges in one discard, or one request for zeroes.
const RANGES_MAX: usize = 16;
