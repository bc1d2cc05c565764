//! VMs that exist already.
//!
//! QEMU serves such a VM's disks itself. This room asks it what it has and has it do
//! things: over QMP, the protocol of QEMU's monitor (`qmp`), or where libvirt owns the
//! VM, through `virsh` (`virsh`). A [`VmHandle`] is either of them, with its [`Drive`]s
//! and the [`Copy`] that moves one; `transfer` is a guest that goes from one QEMU to
//! another. What is decided with the answers is decided elsewhere.
//!
//! **Rules.** Nothing here waits without a bound: a monitor that hangs is an error
//! after [`qmp::ANSWER_WITHIN`]. What others wrote is read strictly where we rely on it and
//! leniently where we do not: a field that a newer QEMU adds is passed over, a line
//! that is no message ends the connection. Events are hints that something may have
//! changed; what is true is asked for.
#![forbid(unsafe_code)]

pub mod arguments;
pub mod command_line;
mod copy;
mod direct;
mod domain_process;
mod drive;
mod error;
mod export;
mod identity;
mod managed;
mod memory;
mod process;
pub mod qmp;
mod transfer;
mod usage;
pub mod virsh;
mod vm_handle;

pub use copy::{Copy, CopyState, GivenUp, Place};
pub use direct::Direct;
pub use drive::{Drive, Unmovable, file_of};
pub use error::QemuError;
pub use export::{Export, RECONNECT};
pub use identity::Identity;
pub use memory::{BalloonLook, MemoryLook};
pub use process::Process;
pub use qmp::Stats;
pub use transfer::{Guest, PAUSED, Sent, SentBytes, Stand};
pub use usage::Usage;
pub use vm_handle::{Reach, Run, VmHandle};
