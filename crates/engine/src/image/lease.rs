//! That nobody but the holder has a file open, for as long as that is to hold.
//!
//! The kernel grants a write lease only on a file that nobody else has open, be it for
//! reading, and mappings, loop devices and servers in the kernel included. Whoever opens
//! the file later waits, and the lease says that somebody does ([`Lease::holds`]). So a
//! file that is given another name under a lease, and whose lease then still holds, is
//! nobody's: its old name leads nowhere, and nobody had it open before.
//!
//! A file system with a server elsewhere refuses leases for reasons of its own. There, and
//! where a lease cannot be had, it is not known.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::thread;

use super::file_system::is_of_this_machine;
use super::writers::{F_SETSIG, PAUSE, TRIES};

/// A write lease on a file.
#[derive(Debug)]
pub(crate) struct Lease(File);

/// What came of asking for one.
#[derive(Debug)]
pub(crate) enum Leased {
    /// Nobody else has the file open.
    Held(Lease),
    /// Somebody has it open.
    Opened,
    /// It is not known, as the file system is not of this machine.
    Unknown(File),
}

impl Lease {
    /// Takes a lease on the file that has this name, and that is not a link. Somebody who
    /// is just looking at it has it for a moment, so it blocks for that.
    pub(crate) fn take(path: &Path) -> io::Result<Leased> {
        for _ in 0..TRIES {
            let flags = libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOFOLLOW;
            let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
            let file = match opened {
                Ok(file) => file,
                // Somebody has a lease, and so has it open.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    thread::sleep(PAUSE);
                    continue;
                }
                Err(error) => return Err(error),
            };
            if !is_of_this_machine(&file) {
                return Ok(Leased::Unknown(file));
            }
            match set(&file, libc::F_WRLCK) {
                Ok(()) => return Ok(Leased::Held(Lease(file))),
                Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => {
                    drop(file);
                    thread::sleep(PAUSE);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Leased::Opened)
    }

    /// Whether nobody has tried to open the file since.
    pub(crate) fn holds(&self) -> bool {
        // SAFETY: it takes integers, and does nothing but to this descriptor.
        let is = unsafe { libc::fcntl(self.0.as_raw_fd(), libc::F_GETLEASE) };
        is == libc::F_WRLCK as libc::c_int
    }

    /// The file.
    pub(crate) fn file(&self) -> &File {
        &self.0
    }
}

fn set(file: &File, kind: libc::c_int) -> io::Result<()> {
    let fd = file.as_raw_fd();
    // SAFETY: these take integers, and do nothing but to this descriptor.
    let taken = unsafe {
        // Who comes is announced by a signal. The usual one ends a process that does not
        // expect it, this one does nothing.
        if libc::fcntl(fd, F_SETSIG, libc::SIGURG) < 0 {
            return Err(io::Error::last_os_error());
        }
        libc::fcntl(fd, libc::F_SETLEASE, kind)
    };
    if taken < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    /// A file of a directory; nothing where leases mean nothing.
    fn file(directory: &Path) -> Option<std::path::PathBuf> {
        let path = directory.join("old.raw");
        std::fs::write(&path, "old").unwrap();
        if is_of_this_machine(&File::open(&path).unwrap()) {
            return Some(path);
        }
        eprintln!("left out: temporary files are not on a disk here");
        None
    }

    #[test]
    fn whoever_has_a_file_open_is_seen_a_reader_too() {
        let directory = tempfile::tempdir().unwrap();
        let Some(path) = file(directory.path()) else { return };
        let reader = File::open(&path).unwrap();
        assert!(matches!(Lease::take(&path).unwrap(), Leased::Opened));
        drop(reader);
        let Leased::Held(lease) = Lease::take(&path).unwrap() else {
            panic!("it is free")
        };
        assert!(lease.holds());
        assert!(lease.file().metadata().unwrap().is_file());
    }

    #[test]
    fn whoever_comes_later_waits_and_the_lease_says_so() {
        let directory = tempfile::tempdir().unwrap();
        let Some(path) = file(directory.path()) else { return };
        let Leased::Held(lease) = Lease::take(&path).unwrap() else {
            panic!("it is free")
        };
        let late = thread::spawn(move || File::open(&path).map(drop));
        let until = Instant::now() + Duration::from_secs(10);
        while lease.holds() {
            assert!(Instant::now() < until, "nobody has come");
            thread::yield_now();
        }
        assert!(!late.is_finished(), "it waits");
        drop(lease);
        late.join().unwrap().unwrap();
    }

    #[test]
    fn a_link_is_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let Some(path) = file(directory.path()) else { return };
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(Lease::take(&link).is_err());
    }
}
