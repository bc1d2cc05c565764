//! Brings the region map's file in the state directory up to date, behind everybody's
//! back.
//!
//! The file is late by a second, and by as long as the state directory stands still. That
//! costs nothing but time: its words are asked for only where the memory is gone, so
//! mostly after the machine was started anew, and there no map is believed (see
//! `core::mirror::origin`). Whatever of it is old is compared or copied.
//!
//! So all that touches the state directory while a migration runs is on the keeper's
//! thread, and so is closing the file. A page that could not be written is tried again.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::memory::Memory;

/// How late the file may be: so much more is copied after the machine was started anew.
const EVERY: Duration = Duration::from_secs(1);
/// What is written at a time.
const PAGE: u64 = 4096;

/// The map's file, and the thread that writes it until this is dropped.
#[derive(Debug)]
pub(super) struct Keeper {
    /// Let go of before the thread hears of it, so that it is the thread that closes the
    /// file.
    kept: Arc<Kept>,
    _end: Sender<()>,
}

#[derive(Debug)]
struct Kept {
    file: File,
    len: u64,
    memory: Mutex<Arc<Memory>>,
    /// The pages that the file may not have as the memory has them, a bit each.
    late: Vec<AtomicU64>,
    /// One writer at a time: what is older does not come after what is newer.
    writing: Mutex<()>,
}

impl Keeper {
    /// Keeps `memory` in `file`, which has its length.
    pub(super) fn start(
        file: File,
        memory: Arc<Memory>,
        len: u64,
        path: &Path,
    ) -> io::Result<Keeper> {
        let pages = len.div_ceil(PAGE);
        let late = (0..pages.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        let (memory, writing) = (Mutex::new(memory), Mutex::new(()));
        let kept = Arc::new(Kept { file, len, memory, late, writing });
        let (end, ended) = channel();
        let (theirs, path) = (Arc::clone(&kept), path.to_owned());
        let thread = std::thread::Builder::new().name("sterna-map".into());
        thread.spawn(move || theirs.keep(&ended, &path))?;
        Ok(Keeper { kept, _end: end })
    }

    /// The memory has something new there. Waits for nothing.
    pub(super) fn changed(&self, at: u64) {
        let page = at / PAGE;
        if let Some(late) = self.kept.late.get((page / 64) as usize) {
            late.fetch_or(1 << (page % 64), Ordering::Release);
        }
    }

    /// It has something new everywhere.
    pub(super) fn all_changed(&self) {
        for late in &self.kept.late {
            late.store(u64::MAX, Ordering::Release);
        }
    }

    /// The map has another memory from now on.
    pub(super) fn replace(&self, memory: Arc<Memory>) {
        *lock(&self.kept.memory) = memory;
        self.all_changed();
    }

    /// Waits until the file has what the memory has now, durably.
    pub(super) fn flush(&self) -> io::Result<()> {
        self.kept.write()?;
        self.kept.file.sync_all()
    }
}

impl Kept {
    fn keep(&self, ended: &Receiver<()>, path: &Path) {
        let mut failed = false;
        loop {
            let over = ended.recv_timeout(EVERY) != Err(RecvTimeoutError::Timeout);
            let written = self.write();
            if let Err(error) = &written
                && !failed
            {
                tracing::warn!(
                    path = %path.display(), %error,
                    "writing the region map's file takes long; if the machine fails now, \
                     Sterna compares more"
                );
            }
            failed = written.is_err();
            if over {
                return;
            }
        }
    }

    /// Writes the pages that are late.
    fn write(&self) -> io::Result<()> {
        let _one = lock(&self.writing);
        let memory = Arc::clone(&lock(&self.memory));
        for (group, late) in (0..).zip(&self.late) {
            // Before they are read: what comes meanwhile is for the next time.
            let mut pages = late.swap(0, Ordering::Acquire);
            while pages != 0 {
                let page = group * 64 + u64::from(pages.trailing_zeros());
                if let Err(error) = self.write_page(&memory, page * PAGE) {
                    late.fetch_or(pages, Ordering::Release);
                    return Err(error);
                }
                pages &= pages - 1;
            }
        }
        Ok(())
    }

    fn write_page(&self, memory: &Memory, at: u64) -> io::Result<()> {
        let mut page = [0; PAGE as usize];
        let page = &mut page[..self.len.saturating_sub(at).min(PAGE) as usize];
        memory.read(at, page)?;
        self.file.write_all_at(page, at)
    }
}

/// Nothing that holds it panics, and what it protects is whole at any time.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
