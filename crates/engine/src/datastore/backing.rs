//! What a datastore is on that others may be on, too: a disk, or a server.
//!
//! Two datastores on one disk, or of one server, are no faster together than that is. What
//! is seen from here is the whole disk of a partition or of the one device below it, and the
//! host of an NFS, CIFS or NBD server. What is behind a volume of several devices, or behind
//! the ports of an array, is not: they are by themselves.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sterna_nbd::Transport;

use super::Location;

/// Volumes on volumes, at most: more than anybody stacks.
const LAYERS: usize = 8;

impl Location {
    /// What it is on: `disk sda`, `server nas`, `file system 0:45`. Nothing if nobody knows.
    /// Asks the file system, which may hang.
    pub fn backing(&self) -> Option<String> {
        match self {
            Location::Directory(path) => of_directory(path),
            Location::Device(path) => disk(&number(path.metadata().ok()?.rdev())),
            Location::Nbd(uri) => Some(match &uri.transport {
                Transport::Tcp { host, .. } => format!("server {host}"),
                Transport::Unix { socket } => format!("server {}", socket.display()),
            }),
            // Its spindles are its own, whatever its files are on.
            Location::Array(_) => None,
        }
    }
}

fn of_directory(path: &Path) -> Option<String> {
    let number = number(path.metadata().ok()?.dev());
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let server = server(&mounts, &number).map(|host| format!("server {host}"));
    server.or_else(|| disk(&number)).or_else(|| Some(format!("file system {number}")))
}

pub(super) fn number(device: u64) -> String {
    format!("{}:{}", libc::major(device), libc::minor(device))
}

/// The server of the file system with this number, by proc(5)'s list of mounts.
fn server(mounts: &str, number: &str) -> Option<String> {
    let mount = mounts.lines().find(|line| line.split(' ').nth(2) == Some(number))?;
    let mut after = mount.split(" - ").nth(1)?.split(' ');
    let (kind, source) = (after.next()?, after.next()?);
    let host = match kind {
        "nfs" | "nfs4" => source.split_once(":/")?.0,
        "cifs" | "smb3" => source.strip_prefix("//")?.split('/').next()?,
        _ => return None,
    };
    Some(host.trim_matches(['[', ']']).to_owned())
}

/// The whole disk of the block device with this number.
fn disk(number: &str) -> Option<String> {
    let mut device = fs::canonicalize(format!("/sys/dev/block/{number}")).ok()?;
    for _ in 0..LAYERS {
        if device.join("partition").exists() {
            device.pop();
        }
        match only_one_in(&device.join("slaves")) {
            Some(below) => device = fs::canonicalize(below).ok()?,
            None => break,
        }
    }
    Some(format!("disk {}", device.file_name()?.to_str()?))
}

/// What is in a directory, if it is one.
fn only_one_in(directory: &Path) -> Option<PathBuf> {
    let mut entries = fs::read_dir(directory).ok()?;
    let first = entries.next()?.ok()?;
    entries.next().is_none().then(|| first.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
22 1 254:1 / / rw,relatime - ext4 /dev/vda1 rw
40 22 0:45 / /vm rw,relatime shared:9 - nfs4 nas.lan:/export/vm rw,vers=4.2
41 22 0:46 / /six rw - nfs [fd00::7]:/export rw
42 22 0:47 / /win rw - cifs //files/share rw
43 22 0:48 / /tmp rw - tmpfs tmpfs rw
";

    #[test]
    fn exports_of_a_server_are_on_it() {
        let server = |number| server(MOUNTS, number);
        assert_eq!(server("0:45").as_deref(), Some("nas.lan"));
        assert_eq!(server("0:46").as_deref(), Some("fd00::7"));
        assert_eq!(server("0:47").as_deref(), Some("files"));
        assert_eq!([server("254:1"), server("0:48"), server("9:9")], [None, None, None]);
        let backing = |text: &str| text.parse::<Location>().unwrap().backing();
        assert_eq!(backing("nbd://nas.lan/a"), backing("nbd://nas.lan:10810/b"));
        assert_ne!(backing("nbd://nas.lan/a"), backing("nbd://other/a"));
        assert_eq!(backing("array://old-fc?path=/tmp"), None);
    }

    #[test]
    fn directories_of_one_file_system_are_on_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let [one, other] = ["one", "other"].map(|name| dir.path().join(name));
        for path in [&one, &other] {
            fs::create_dir(path).unwrap();
        }
        let on = of_directory(&one);
        assert!(on.is_some());
        assert_eq!(on, of_directory(&other));
        assert_ne!(on, of_directory(Path::new("/proc")));
        assert_eq!(of_directory(&dir.path().join("nosuch")), None);
    }
}
