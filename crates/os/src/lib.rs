//! The machine that the daemon runs on: time zone and clock, processors, open files,
//! sockets, the lock of the state directory, and programs that the daemon starts.
//!
//! Everything here asks the operating system something or has it do something, and knows
//! nothing of disks, moves or plans. It never decides what such an answer means for a
//! disk: its callers do.
//!
//! Where to begin: `local` for time of day, `descriptors` for the limit of open files,
//! `program` for hooks and other people's programs.

pub mod block_device;
pub mod clock;
pub mod control_group;
pub mod descriptors;
pub mod hold;
pub mod limits;
mod local;
pub mod memory;
mod process;
pub mod process_counts;
pub mod process_memory;
pub mod processes;
mod processors;
pub mod program;
pub mod random;
pub mod signals;
pub mod sockets;
mod state_lock;
pub mod swap;
pub mod wake;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::sync::{Mutex, MutexGuard, PoisonError};

use sterna_core::file_system;

pub use descriptors::Descriptors;
pub use local::{Local, is_moment};
pub use processors::Processors;
pub use state_lock::{StateLock, failed_storage};

/// A mutex's content. What is behind our mutexes is whole between any two
/// statements, so a panic elsewhere does not spoil it.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether there is nothing wrong with the storage but that it is full, or that a quota
/// says so.
pub fn is_no_room(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

/// Whether the file or directory is on a file system that writes to new places.
pub fn is_copied_on_write(file: &File) -> io::Result<bool> {
    // The kind is 32 bits wide, whatever the field's type is.
    Ok(file_system::is_copied_on_write(rustix::fs::fstatfs(file)?.f_type as u32))
}
