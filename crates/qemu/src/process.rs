//! The process that a QEMU is, and the sockets at which it listens.
//!
//! **A socket's name is not the socket.** Whoever binds to a name takes it from who had it,
//! and leaves it to nobody when he ends, or takes it with him: a second QEMU that is started
//! with the first one's monitor by mistake does so, as soon as it finds the image locked. The
//! first one runs on, and cannot be connected to any more. So that nobody is found by a name
//! says that QEMU has ended only if nobody listens at a socket that was bound to it.
//!
//! The kernel lists the sockets of a network namespace by the names that they were bound to.
//! A name that begins in QEMU's own directory says nothing there without its process, and
//! neither does one in another namespace: those of a process that was known before are
//! looked for among what that has open.
//!
//! **Known gaps.** After a restart of the daemon no process is known from before, so a name
//! of these two kinds that is gone counts as nobody's. A program in a container that shares
//! our network, and listens at the same name in a file system of its own, keeps a QEMU that
//! has ended from being found so until it ends, too.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The sockets of our own network namespace.
const OURS: &str = "/proc/net/unix";

/// Of a socket that is listened at (`__SO_ACCEPTCON`).
const LISTENS: u32 = 1 << 16;

/// A process, and none that gets its number after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// When it was started, in ticks since the host was.
    pub started: u64,
}

impl Process {
    /// The one that has a number now. Not known of one that cannot be seen from here.
    pub(crate) fn of(pid: i32) -> Option<Process> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Some(Process { pid, started: started(&stat)? })
    }

    /// Whether it has not ended.
    pub fn is_there(self) -> bool {
        Process::of(self.pid) == Some(self)
    }

    /// Whether this is one of its threads.
    pub(crate) fn has_thread(self, thread: i64) -> bool {
        Path::new(&format!("/proc/{}/task/{thread}", self.pid)).exists()
    }

    /// Whether it has not ended, and listens at a socket of which only the name of the file
    /// is sure. If what it has open cannot be seen, it may.
    pub(crate) fn listens_at(self, socket: &Path) -> bool {
        if !self.is_there() {
            return false;
        }
        let place = format!("/proc/{}", self.pid);
        let open = fs::read_dir(format!("{place}/fd"));
        let table = fs::read(format!("{place}/net/unix"));
        let (Ok(open), Ok(table)) = (open, table) else { return true };
        let links = open.flatten().filter_map(|one| fs::read_link(one.path()).ok());
        let open: Vec<PathBuf> = links.collect();
        let has = |inode: u64| {
            let link = format!("socket:[{inode}]");
            open.iter().any(|one| one.as_os_str() == link.as_str())
        };
        listening(&table)
            .any(|(inode, path)| path.file_name() == socket.file_name() && has(inode))
    }
}

/// Whether somebody listens at a socket that was bound to this name.
pub(crate) fn is_listened_at(socket: &Path) -> bool {
    let Ok(table) = fs::read(OURS) else { return false };
    listening(&table).any(|(_, path)| is_same(path, socket))
}

/// Whether two names lead to one place, or did.
fn is_same(one: &Path, other: &Path) -> bool {
    if one == other {
        return true;
    }
    if !one.is_absolute() || one.file_name() != other.file_name() {
        return false;
    }
    let directory = |path: &Path| fs::canonicalize(path.parent()?).ok();
    directory(one).is_some_and(|one| directory(other) == Some(one))
}

/// The sockets of a table of the kernel's that are listened at: their numbers, and the names
/// that they were bound to.
fn listening(table: &[u8]) -> impl Iterator<Item = (u64, &Path)> {
    table.split(|byte| *byte == b'\n').filter_map(|line| {
        // "Num: RefCount Protocol Flags Type St Inode Path": the last may have blanks.
        let flags = (0..3).try_fold(line, |rest, _| behind_field(rest))?;
        let rest = (0..3).try_fold(flags, |rest, _| behind_field(rest))?;
        let flags = u32::from_str_radix(text(flags.get(..8)?)?, 16).ok()?;
        let (inode, path) = rest.split_at(rest.iter().position(|byte| *byte == b' ')?);
        let inode = text(inode)?.parse().ok()?;
        let path = Path::new(OsStr::from_bytes(&path[1..]));
        (flags & LISTENS != 0).then_some((inode, path))
    })
}

/// What is behind the first field of a line, and the blanks that follow that.
fn behind_field(line: &[u8]) -> Option<&[u8]> {
    let end = line.iter().position(|byte| *byte == b' ')?;
    let next = line[end..].iter().position(|byte| *byte != b' ')?;
    Some(&line[end + next..])
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

/// When a process was started, by its `/proc/PID/stat`; nothing of one that has ended, and
/// that only its parent still has. The name in it may have anything in it, so what counts
/// begins behind its last parenthesis.
fn started(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    // The first is the state, which is the third of all.
    let has_ended = matches!(*fields.first()?, "Z" | "X" | "x");
    fields.get(22 - 3).filter(|_| !has_ended)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::process::{Command, Stdio, id};

    use super::*;

    const TABLE: &str = "\
Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0001 01 21474 /run/a b.qmp
ffff93b5c0a4e800: 00000003 00000000 00000000 0001 03    17 /run/c.qmp
0000000000000000: 00000003 00000000 00000000 0001 03 21480
0000000000000000: 00000002 00000000 00010000 0005 01     9 relative.qmp
";

    #[test]
    fn only_those_that_are_listened_at_count() {
        let found: Vec<_> = listening(TABLE.as_bytes()).collect();
        let expected = [(21474, "/run/a b.qmp"), (9, "relative.qmp")];
        assert_eq!(found, expected.map(|(inode, path)| (inode, Path::new(path))));
    }

    #[test]
    fn a_socket_whose_name_is_gone_or_taken_is_listened_at_as_before() {
        let scratch = tempfile::tempdir().expect("a directory");
        let path = scratch.path().join("a.qmp");
        let ours = Process::of(i32::try_from(id()).expect("a number")).expect("it is us");
        let listener = UnixListener::bind(&path).expect("a socket");
        fs::remove_file(&path).expect("take its name");
        assert!(is_listened_at(&path) && ours.listens_at(&path));
        let other = scratch.path().join("way");
        std::os::unix::fs::symlink(scratch.path(), &other).expect("another way to it");
        assert!(is_listened_at(&other.join("a.qmp")));
        // Who takes it now has ended then.
        drop(UnixListener::bind(&path).expect("another socket"));
        assert!(path.exists() && is_listened_at(&path));
        drop(listener);
        assert!(!is_listened_at(&path) && !ours.listens_at(&path));
    }

    #[test]
    fn a_process_that_has_ended_is_not_there_even_if_its_parent_still_has_it() {
        let mut child =
            Command::new("cat").stdin(Stdio::piped()).spawn().expect("start cat");
        let pid = i32::try_from(child.id()).expect("a number");
        let process = Process::of(pid).expect("it runs");
        assert!(process.is_there() && process.has_thread(pid.into()));
        child.kill().expect("end it");
        let began = std::time::Instant::now();
        while process.is_there() {
            assert!(began.elapsed().as_secs() < 10, "it has been killed");
            std::thread::yield_now();
        }
        child.wait().expect("end it");
        assert!(!process.is_there());
        assert!(!process.listens_at("/run/a.qmp".as_ref()));
    }

    #[test]
    fn another_process_of_the_same_number_is_another() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 5512 1 1";
        assert_eq!(started(stat), Some(5512));
        assert_eq!(started(&stat.replace(" S ", " Z ")), None);
        assert_eq!(started("7 (cut"), None);
    }
}
