//! Whether anybody has a file open for writing.
//!
//! The kernel counts who has a file open for writing, mappings, loop devices and servers in
//! the kernel included, and tells the number to nobody. But it grants a read lease only while
//! that number is nought. So a file that is not open here can be asked about by taking such a
//! lease, and giving it back at once. Whoever opens the file in that moment waits for the
//! lease's end.
//!
//! A file system with a server elsewhere refuses leases for reasons of its own, and devices
//! have none: of those it is not known.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

use super::ImageSpec;
use super::file_system::is_of_this_machine;

/// Whoever is just looking at a file of ours still has it open for a moment: the lookout, or
/// a child that has not yet come to its `exec`. So it is asked for 200 ms.
pub(super) const TRIES: u32 = 40;
pub(super) const PAUSE: Duration = Duration::from_millis(5);

/// `fcntl`: which signal tells of a lease, the same number on all machines (`fcntl.h`).
pub(super) const F_SETSIG: libc::c_int = 10;

/// The path of an image, which must not be open here, if another program has it open for
/// writing. Blocks.
pub(crate) fn written_by_others(image: &ImageSpec) -> Option<&Path> {
    let ImageSpec::File { path, .. } = image else { return None };
    for _ in 0..TRIES {
        if !has_writers(path)? {
            return None;
        }
        thread::sleep(PAUSE);
    }
    Some(path)
}

/// Whether it can be known of this file.
pub(super) fn are_told(file: &impl AsRawFd) -> bool {
    is_of_this_machine(file)
}

/// Nothing if it is not known.
fn has_writers(path: &Path) -> Option<bool> {
    let flags = libc::O_CLOEXEC | libc::O_NONBLOCK;
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        // Somebody has a write lease (a file server gives its clients such), which ends by
        // this. Who has one has it open for writing.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Some(true),
        // One that cannot be opened is told when it is opened to be used.
        Err(_) => return None,
    };
    if !are_told(&file) {
        return None;
    }
    let fd = file.as_raw_fd();
    // SAFETY: these take integers, and do nothing but to this descriptor.
    let taken = unsafe {
        // Who comes in this moment is announced by a signal. The usual one ends a process
        // that does not expect it, this one does nothing.
        if libc::fcntl(fd, F_SETSIG, libc::SIGURG) < 0 {
            return None;
        }
        libc::fcntl(fd, libc::F_SETLEASE, libc::F_RDLCK)
    };
    if taken < 0 {
        let errno = io::Error::last_os_error().raw_os_error();
        return (errno == Some(libc::EAGAIN)).then_some(true);
    }
    // SAFETY: as above. It ends with the descriptor, too.
    unsafe { libc::fcntl(fd, libc::F_SETLEASE, libc::F_UNLCK) };
    Some(false)
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn a_file_server_s_write_lease_counts_as_open_for_writing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("copy");
        let server = File::options().write(true).create_new(true).open(&path).unwrap();
        if !are_told(&server) {
            return eprintln!("left out: temporary files are not on a disk here");
        }
        // SAFETY: these take integers, and do nothing but to this descriptor.
        let taken = unsafe {
            libc::fcntl(server.as_raw_fd(), F_SETSIG, libc::SIGURG);
            libc::fcntl(server.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK)
        };
        assert_eq!(taken, 0, "{}", io::Error::last_os_error());
        let image = ImageSpec::File { path: path.clone(), direct: false };
        assert_eq!(written_by_others(&image), Some(&*path));
        drop(server);
        assert_eq!(written_by_others(&image), None);
    }

    #[test]
    fn who_has_a_file_open_for_writing_is_known_and_who_reads_it_is_no_matter() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("copy");
        std::fs::write(&path, "copied").unwrap();
        let reader = File::open(&path).unwrap();
        if !are_told(&reader) {
            return eprintln!("left out: temporary files are not on a disk here");
        }
        let image = ImageSpec::File { path: path.clone(), direct: false };
        assert_eq!(written_by_others(&image), None);
        let writer = OpenOptions::new().write(true).open(&path).unwrap();
        assert_eq!(written_by_others(&image), Some(&*path));
        drop(writer);
        assert_eq!(written_by_others(&image), None);
    }
}
