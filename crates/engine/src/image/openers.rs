//! Which other program has the bytes of images open for writing.
//!
//! A server of files, a file system in user space, or an NBD server that has an image open
//! for writing may give it another name: a copy there would be a copy onto itself. While the
//! image is open here the kernel cannot be asked by a lease (`writers`), so the open files
//! of all processes are looked through.
//!
//! **What is seen.** Files of processes that this one may look at: root sees all, others
//! their own. Not what the kernel itself has open (loop devices are known by their ground;
//! NFS exports and the like are not), not what is only mapped, and not what io_uring has
//! taken without a descriptor. No file system is asked, as one may hang: the numbers come
//! from what the kernel has in memory.

use std::fmt;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, FileType, StatxFlags, makedev, statx};

use crate::ground::Ground;

/// A machine with so many open files that this does not suffice has other worries.
const LOOK_MAX: Duration = Duration::from_secs(2);

/// A child of ours that has not yet come to its `exec` has our files for a moment; whoever
/// has one for 100 ms has it.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(5);

/// Who is found so many times for a moment alone is not looked for again.
const ROUNDS: u32 = 3;

/// Opened as a place, not to be written (`O_PATH`).
const PATH_ONLY: u32 = libc::O_PATH as u32;

/// A program that has bytes open for writing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opener {
    /// Its process.
    pub pid: u32,
    /// What it is called.
    pub name: String,
}

impl fmt::Display for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (process {})", self.name, self.pid)
    }
}

/// Another program that has a file or device open for writing on which one of these lies,
/// and which of them that is. Takes as long as looking through all open files takes.
pub fn opened_by_others(grounds: &[Ground]) -> Option<(usize, Opener)> {
    let until = Instant::now() + LOOK_MAX;
    for _ in 0..ROUNDS {
        let (at, pid, fd) = look(grounds, until)?;
        let stays = (0..TRIES).all(|_| {
            thread::sleep(PAUSE);
            let still = Written::of(pid, &fd);
            still.is_some_and(|it| it.first_of(&grounds[at..=at]).is_some())
        });
        if stays {
            let name = fs::read_to_string(format!("/proc/{pid}/comm"));
            let name = name.unwrap_or_default().trim().to_owned();
            return Some((at, Opener { pid, name }));
        }
    }
    None
}

/// One of the grounds, and the process and its descriptor that have it open.
fn look(grounds: &[Ground], until: Instant) -> Option<(usize, u32, String)> {
    let own = std::process::id();
    let names = |path: &str| fs::read_dir(path).into_iter().flatten().flatten();
    for process in names("/proc") {
        let pid = process.file_name().to_str().and_then(|name| name.parse().ok());
        let Some(pid) = pid.filter(|pid| *pid != own) else { continue };
        for fd in names(&format!("/proc/{pid}/fd")) {
            if Instant::now() >= until {
                tracing::warn!("not all open files were looked through in time");
                return None;
            }
            let Some(fd) = fd.file_name().to_str().map(str::to_owned) else {
                continue;
            };
            let Some(opened) = Written::of(pid, &fd) else { continue };
            if let Some(at) = opened.first_of(grounds) {
                return Some((at, pid, fd));
            }
        }
    }
    None
}

/// What a descriptor that is open for writing leads to.
struct Written {
    path: String,
    /// The number of its file, if the kernel tells it (since Linux 5.14); of a device it is
    /// the number of its node.
    number: Option<u64>,
}

impl Written {
    fn of(pid: u32, fd: &str) -> Option<Written> {
        let path = format!("/proc/{pid}/fd/{fd}");
        // Sockets, pipes and their like have no path.
        let named = fs::read_link(&path).ok().filter(|named| named.starts_with("/"));
        named?;
        let info = fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")).ok()?;
        writes(&info).then(|| Written { path, number: number(&info) })
    }

    /// The first of the grounds that it is on. Its path is asked once, whatever the grounds
    /// are, and only if its number may be that of one of their files, or one is a device.
    fn first_of(&self, grounds: &[Ground]) -> Option<usize> {
        let may_be = |ground: &Ground| {
            let is_it = |number| ground.has_file_number(number) || ground.has_device();
            self.number.is_none_or(is_it)
        };
        if !grounds.iter().any(may_be) {
            return None;
        }
        let asked = StatxFlags::TYPE | StatxFlags::INO;
        let path = Path::new(&self.path);
        let found = statx(CWD, path, AtFlags::STATX_DONT_SYNC, asked).ok()?;
        match FileType::from_raw_mode(found.stx_mode.into()) {
            FileType::BlockDevice => {
                let device = makedev(found.stx_rdev_major, found.stx_rdev_minor);
                grounds.iter().position(|ground| ground.is_on_device(device))
            }
            FileType::RegularFile => {
                let device = makedev(found.stx_dev_major, found.stx_dev_minor);
                let number = found.stx_ino;
                grounds.iter().position(|ground| ground.is_on_file(device, number))
            }
            _ => None,
        }
    }
}

/// Whether a descriptor is open for writing, as proc(5) tells of it.
fn writes(info: &str) -> bool {
    let flags = of(info, "flags:").and_then(|it| u32::from_str_radix(it, 8).ok());
    flags.is_some_and(|flags| {
        flags & libc::O_ACCMODE as u32 != libc::O_RDONLY as u32 && flags & PATH_ONLY == 0
    })
}

/// The number of its file, if it is told.
fn number(info: &str) -> Option<u64> {
    of(info, "ino:")?.parse().ok()
}

fn of<'a>(info: &'a str, what: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(what)).map(str::trim)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_descriptor_is_read_as_the_kernel_writes_it() {
        let info = "pos:\t0\nflags:\t02100002\nmnt_id:\t30\nino:\t42\n";
        assert!(writes(info));
        assert_eq!(number(info), Some(42));
        assert!(!writes("pos:\t0\nflags:\t02100000\nmnt_id:\t30\n"));
        assert!(writes("flags:\t0100001\n") && !writes("flags:\t012000002\n"));
        assert_eq!(number("flags:\t0100001\n"), None);
        assert!(!writes(""));
    }

    #[test]
    fn a_program_that_writes_is_named_and_one_that_reads_or_is_this_one_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("db.raw");
        let own = File::create(&path).unwrap();
        let other = tempfile::tempfile().unwrap();
        let grounds = [&other, &own].map(|file| Ground::of(file).unwrap());
        assert_eq!(opened_by_others(&grounds), None);
        let running = |file: File| {
            let mut child = Command::new("cat");
            child.stdin(Stdio::piped()).stdout(file).spawn().unwrap()
        };
        let mut reader = running(File::open(&path).unwrap());
        assert_eq!(opened_by_others(&grounds), None);
        let mut writer = running(File::options().write(true).open(&path).unwrap());
        let (at, found) = opened_by_others(&grounds).expect("somebody has it open");
        assert_eq!((at, found.pid, found.name.as_str()), (1, writer.id(), "cat"));
        for child in [&mut reader, &mut writer] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert_eq!(opened_by_others(&grounds), None);
    }
}
