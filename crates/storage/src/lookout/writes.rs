//! What other programs do to a file that is open here: whether they have written to it, and
//! whether they have opened it.
//!
//! The kernel says when a file is opened, and when one that was open for writing is closed.
//! Until the mirror ends, it neither reopens nor closes the file that it writes to. So if the
//! kernel reports a close, another program of this machine did it, and may have cut off or
//! changed what was copied. A program that opens files only to read them shows no close. If a
//! program has opened the file, it may read it, or write to it and have it open still: which of
//! both, Sterna can ask only while the file is not open here (`copies` of `sterna_moves`). What
//! a program on another machine does, does not show.
//!
//! A device is the exception: its sidecar lies behind the image, on the same device, so Sterna
//! itself opens the device, writes and closes it meanwhile. That is set apart
//! ([`Watched::apart_from`]), and with it what others do to the device in that moment.
//!
//! Each file has a queue of its own. The kernel joins events that are alike, so they are not
//! counted. To begin to watch asks the file system, which may hang; that holds nobody else.
//!
//! If the kernel has no watch left to give, Sterna knows nothing of the file, and says so.

use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileTypeExt;
use std::sync::Mutex;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use sterna_engine::HeldFile;
use sterna_os::lock;

/// Room for what the kernel says at a time. An event of a file takes 16 bytes.
const ROOM: usize = 4096;

/// The watch of one file, until it is dropped.
#[derive(Debug)]
pub struct Watched {
    inotify: OwnedFd,
    is_device: bool,
    done: Mutex<Done>,
}

/// What others have done to it.
#[derive(Clone, Copy, Debug, Default)]
struct Done {
    written: bool,
    opened: bool,
    /// How many of us are at it now.
    ours: u32,
}

impl Watched {
    /// Begins to watch a file, whatever its name leads to by now. May hang with it.
    pub fn new(file: &HeldFile) -> Option<Watched> {
        let descriptor = file.file().as_raw_fd();
        // What its name leads to by now is of no account: the descriptor is asked.
        let is_device = fs::metadata(path_of(descriptor))
            .is_ok_and(|it| it.file_type().is_block_device());
        match begin(descriptor) {
            Ok(inotify) => Some(Watched { inotify, is_device, done: Mutex::default() }),
            Err(error) => {
                let path = file.path().display();
                tracing::warn!(%path, %error, "Sterna cannot detect other programs that \
                                               write there");
                None
            }
        }
    }

    /// Whether it is a device.
    pub fn is_device(&self) -> bool {
        self.is_device
    }

    /// Takes in what the kernel has to say.
    fn hear(&self, done: &mut Done) {
        let mut room = [MaybeUninit::uninit(); ROOM];
        let mut events = Reader::new(&self.inotify, &mut room);
        while let Ok(event) = events.next() {
            if done.ours > 0 {
                continue;
            }
            let says = event.events();
            // Anything may be among what was lost.
            let lost = says.contains(ReadFlags::QUEUE_OVERFLOW);
            done.written |= lost || says.contains(ReadFlags::CLOSE_WRITE);
            done.opened |= lost || says.contains(ReadFlags::OPEN);
        }
    }

    /// Does what of ours writes to the file.
    pub fn apart_from<T>(&self, ours: impl FnOnce() -> T) -> T {
        if !self.is_device {
            return ours(); // It writes to another file.
        }
        let change = |by: i32| {
            let mut done = lock(&self.done);
            self.hear(&mut done);
            done.ours = done.ours.saturating_add_signed(by);
        };
        change(1);
        let result = ours();
        change(-1);
        result
    }

    fn so_far(&self) -> Done {
        let mut done = lock(&self.done);
        self.hear(&mut done);
        *done
    }

    /// Whether somebody has written to the file, and closed it.
    pub fn is_written(&self) -> bool {
        self.so_far().written
    }

    /// Whether somebody has opened it, and may have it open still.
    pub fn is_opened(&self) -> bool {
        self.so_far().opened
    }

    /// It is known what was written. What is from now on is news.
    pub fn clear_written(&self) {
        let mut done = lock(&self.done);
        self.hear(&mut done);
        done.written = false;
    }
}

/// A name of what a descriptor leads to.
fn path_of(file: RawFd) -> String {
    format!("/proc/self/fd/{file}")
}

/// A queue of what is done to the file of a descriptor.
fn begin(file: RawFd) -> rustix::io::Result<OwnedFd> {
    let what = WatchFlags::OPEN | WatchFlags::CLOSE_WRITE;
    let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
    inotify::add_watch(&inotify, path_of(file), what).map(|_| inotify)
}

#[cfg(test)]
mod tests {
    use std::fs::{File, write};

    use super::*;

    /// A file that plays a device, as far as it is watched.
    fn watched(path: &std::path::Path) -> (File, Watched) {
        write(path, "copied").unwrap();
        let file = File::open(path).unwrap();
        let inotify = begin(file.as_raw_fd()).unwrap();
        (file, Watched { inotify, is_device: true, done: Mutex::default() })
    }

    #[test]
    fn what_sterna_writes_to_a_device_is_nobody_else_s_doing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("device");
        let (_file, watched) = watched(&path);
        watched.apart_from(|| {
            write(&path, "whose it is").unwrap();
            assert!(!watched.is_written(), "also for who looks in that moment");
        });
        assert!(!watched.is_written());
        write(&path, "something else").unwrap();
        assert!(watched.is_written());
        watched.apart_from(|| write(&path, "whose it is").unwrap());
        assert!(watched.is_written(), "what was seen stays");
        watched.clear_written();
        assert!(!watched.is_written());
    }
}
