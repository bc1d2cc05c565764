//! What others do to a file that is open here: whether they have written to it, and whether
//! they have opened it.
//!
//! The kernel says when a file is opened, and when one that was open for writing is closed. A
//! file that a mirror writes to is neither opened anew nor closed by it before the mirror is
//! gone; so whoever closes it meanwhile is another program of this machine, which may have
//! cut off or changed what was copied. One that opens files only to read them does not show
//! there. Whoever opens it may read it, or write to it and have it open still: which of both,
//! can be asked only while it is not open here (`jobs::copies`). What a program on another
//! machine does, does not show.
//!
//! Each file has a queue of its own. The kernel joins events that are alike, so they are not
//! counted. To begin to watch asks the file system, which may hang; that holds nobody else.
//!
//! Where the kernel has no watch left to give, nothing of it is known, and that is said.

use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Mutex;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use sterna_engine::HeldFile;

use crate::daemon::lock;

/// Room for what the kernel says at a time. An event of a file takes 16 bytes.
const ROOM: usize = 4096;

/// The watch of one file, until it is dropped.
#[derive(Debug)]
pub(crate) struct Watched {
    inotify: OwnedFd,
    done: Mutex<Done>,
}

/// What others have done to it.
#[derive(Clone, Copy, Debug, Default)]
struct Done {
    written: bool,
    opened: bool,
}

impl Watched {
    /// Begins to watch a file, whatever its name leads to by now. May hang with it.
    pub(crate) fn new(file: &HeldFile) -> Option<Watched> {
        let path = format!("/proc/self/fd/{}", file.file().as_raw_fd());
        let what = WatchFlags::OPEN | WatchFlags::CLOSE_WRITE;
        let begun = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).and_then(
            |inotify| inotify::add_watch(&inotify, path.as_str(), what).map(|_| inotify),
        );
        match begun {
            Ok(inotify) => Some(Watched { inotify, done: Mutex::default() }),
            Err(error) => {
                let path = file.path().display();
                tracing::warn!(%path, %error, "who else writes there will not be known");
                None
            }
        }
    }

    /// Takes in what the kernel has to say.
    fn hear(&self, done: &mut Done) {
        let mut room = [MaybeUninit::uninit(); ROOM];
        let mut events = Reader::new(&self.inotify, &mut room);
        while let Ok(event) = events.next() {
            let says = event.events();
            // Anything may be among what was lost.
            let lost = says.contains(ReadFlags::QUEUE_OVERFLOW);
            done.written |= lost || says.contains(ReadFlags::CLOSE_WRITE);
            done.opened |= lost || says.contains(ReadFlags::OPEN);
        }
    }

    fn so_far(&self) -> Done {
        let mut done = lock(&self.done);
        self.hear(&mut done);
        *done
    }

    /// Whether somebody has written to the file, and closed it.
    pub(crate) fn is_written(&self) -> bool {
        self.so_far().written
    }

    /// Whether somebody has opened it, and may have it open still.
    pub(crate) fn is_opened(&self) -> bool {
        self.so_far().opened
    }

    /// It is known what was written. What is from now on is news.
    pub(crate) fn clear_written(&self) {
        let mut done = lock(&self.done);
        self.hear(&mut done);
        done.written = false;
    }
}
