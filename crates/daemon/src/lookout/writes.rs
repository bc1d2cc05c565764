//! Whether somebody else has written to a file that is open here.
//!
//! The kernel says when a file that was open for writing is closed. A file that a mirror
//! writes to is not closed by it before the mirror is gone; so whoever closes it meanwhile
//! is another program of this machine, which may have cut off or changed what was copied.
//! One that opens files only to read them does not show, nor does a program on another
//! machine.
//!
//! Where the kernel has no watch left to give, it is not known, and that is said once.

use std::collections::{HashMap, HashSet};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Arc, Mutex};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use sterna_engine::HeldFile;

use crate::daemon::lock;

/// Room for what the kernel says at a time. An event of a file takes 16 bytes.
const ROOM: usize = 4096;

/// All watches.
#[derive(Clone)]
pub(super) struct Writes(Option<Arc<Watches>>);

#[derive(Debug)]
struct Watches {
    inotify: OwnedFd,
    said: Mutex<Said>,
}

#[derive(Debug, Default)]
struct Said {
    /// The watches of files that were written to.
    written: HashSet<i32>,
    /// All that are there, with how many want to know: a file has but one.
    all: HashMap<i32, u32>,
}

/// The watch of one file, until it is dropped.
#[derive(Debug)]
pub(crate) struct Written {
    watches: Arc<Watches>,
    watch: i32,
}

impl Writes {
    pub(super) fn new() -> Writes {
        match inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK) {
            Ok(inotify) => {
                Writes(Some(Arc::new(Watches { inotify, said: Mutex::default() })))
            }
            Err(error) => {
                tracing::warn!(%error, "who else writes to a copy will not be known");
                Writes(None)
            }
        }
    }

    /// Watches a file, whatever its name leads to by now.
    pub(super) fn watch(&self, file: &HeldFile) -> Option<Arc<Written>> {
        let watches = self.0.clone()?;
        let path = format!("/proc/self/fd/{}", file.file().as_raw_fd());
        // Held, so that nobody takes the watch of this file away meanwhile.
        let mut said = lock(&watches.said);
        let added =
            inotify::add_watch(&watches.inotify, path.as_str(), WatchFlags::CLOSE_WRITE);
        match added {
            Ok(watch) => {
                *said.all.entry(watch).or_default() += 1;
                // What was before is nobody's matter any more.
                watches.hear(&mut said);
                said.written.remove(&watch);
                drop(said);
                Some(Arc::new(Written { watches, watch }))
            }
            Err(error) => {
                let path = file.path().display();
                tracing::warn!(%path, %error, "who else writes there will not be known");
                None
            }
        }
    }
}

impl Watches {
    /// Takes in what the kernel has to say.
    fn hear(&self, said: &mut Said) {
        let mut room = [MaybeUninit::uninit(); ROOM];
        let mut events = Reader::new(&self.inotify, &mut room);
        while let Ok(event) = events.next() {
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                // What was lost may be of any.
                said.written.extend(said.all.keys());
            } else if event.events().contains(ReadFlags::CLOSE_WRITE) {
                said.written.insert(event.wd());
            }
        }
    }
}

impl Written {
    /// Whether somebody has written to the file.
    pub(crate) fn is_so(&self) -> bool {
        let mut said = lock(&self.watches.said);
        self.watches.hear(&mut said);
        said.written.contains(&self.watch)
    }

    /// It is known. What is written from now on is news.
    pub(crate) fn clear(&self) {
        let mut said = lock(&self.watches.said);
        self.watches.hear(&mut said);
        said.written.remove(&self.watch);
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        let mut said = lock(&self.watches.said);
        if let Some(count) = said.all.get_mut(&self.watch).filter(|count| **count > 1) {
            *count -= 1;
            return;
        }
        said.all.remove(&self.watch);
        said.written.remove(&self.watch);
        // A file that is gone has taken its watch with it.
        let _ = inotify::remove_watch(&self.watches.inotify, self.watch);
    }
}
