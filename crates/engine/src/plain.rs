//! Small files of ours in directories where others may have files, too.
//!
//! **Rule.** No link is followed, and nothing is waited for: somebody else may have put a
//! link, a pipe or a device where a file of ours should be, and may do so in a directory
//! with mode 1777 at any moment. What is opened is a regular file with one name, or it is
//! an error. What is made is made anew (`O_EXCL`) under a name that nobody can know
//! before, in the directory that was opened first, and has its mode before it gets its
//! name.
//!
//! **What may be left.** A crash may leave the name under which a file was made; it begins
//! with [`FRESH_PREFIX`] and is of no account.

use std::ffi::OsStr;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::path::Path;

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, fchmod, fstat, linkat, open, openat, renameat,
    unlinkat,
};
use rustix::io::Errno;

use crate::place;

/// How the names begin under which files are made. No image's name begins with a dot.
pub(crate) const FRESH_PREFIX: &str = ".unfinished-";

/// How often a name is chosen that turns out to be taken. Once is bad luck already.
const TRIES: u32 = 8;

/// A name that nobody has, and nobody can know before.
pub(crate) fn fresh_name(prefix: &str) -> String {
    format!("{prefix}{:016x}", RandomState::new().hash_one(prefix))
}

/// Opens a file of ours. `write` says whether it is to be changed.
pub(crate) fn open_ours(path: &Path, write: bool) -> io::Result<File> {
    let way = if write { OFlags::RDWR } else { OFlags::RDONLY };
    // Without waiting for who is at the other end of a pipe.
    let flags = way | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match open(path, flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::LOOP) => return Err(io::Error::other("it is a symbolic link")),
        Err(error) => return Err(error.into()),
    };
    let found = fstat(&file)?;
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return Err(io::Error::other("it is not a regular file"));
    }
    if write && found.st_nlink != 1 {
        return Err(io::Error::other("it has several names, or none"));
    }
    Ok(file.into())
}

/// The directory that `path` is in.
pub(crate) fn directory_of(path: &Path) -> io::Result<File> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    open_directory(parent)
}

/// A directory, to do something in it.
pub(crate) fn open_directory(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(open(path, flags, Mode::empty())?.into())
}

/// Makes a file in a directory; gives it with its name.
pub(crate) fn make_in(directory: &File, mode: u32) -> io::Result<(File, String)> {
    let flags =
        OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for _ in 0..TRIES {
        let name = fresh_name(FRESH_PREFIX);
        match openat(directory, &name, flags, Mode::RUSR | Mode::WUSR) {
            Ok(file) => {
                // Whatever the umask is. Some file systems know no modes.
                let _ = fchmod(&file, Mode::from_raw_mode(mode));
                return Ok((file.into(), name));
            }
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Errno::EXIST.into())
}

/// Puts `bytes` in the place of whatever `path` holds, atomically and durably. A link
/// that is there is replaced, and what it leads to is left alone.
pub(crate) fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    put(path, bytes, mode, |directory, fresh, name| {
        Ok(renameat(directory, fresh, directory, name)?)
    })
}

/// Puts `bytes` where nothing is, atomically and durably; an error if something is there.
pub(crate) fn place(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    put(path, bytes, mode, |directory, fresh, name| {
        linkat(directory, fresh, directory, name, AtFlags::empty())?;
        Ok(unlinkat(directory, fresh, AtFlags::empty())?)
    })
}

fn put(
    path: &Path,
    bytes: &[u8],
    mode: u32,
    rename: impl FnOnce(&File, &str, &OsStr) -> io::Result<()>,
) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let directory = directory_of(path)?;
    let (mut file, fresh) = make_in(&directory, mode)?;
    // A sidecar is written over later: on Btrfs that needs room of a full file system else.
    let _ = place::keep_in_place(&file);
    let written = file
        .write_all(bytes)
        .and_then(|()| file.sync_all())
        .and_then(|()| rename(&directory, &fresh, name));
    if written.is_err() {
        // The first error is the one to tell.
        let _ = unlinkat(&directory, &fresh, AtFlags::empty());
    }
    written?;
    directory.sync_all()
}

/// No program that this process starts gets a descriptor that it has been started with,
/// but for the three that all have: they may be sockets of the daemon, or anybody's.
pub fn keep_descriptors() {
    let all = (3u32, u32::MAX);
    // SAFETY: no pointers are involved; it changes a flag of descriptors that are open.
    // A kernel that does not know how (before 5.11) changes nothing.
    unsafe {
        libc::syscall(libc::SYS_close_range, all.0, all.1, libc::CLOSE_RANGE_CLOEXEC);
    }
}

/// Makes the directory entry of `path` durable.
pub(crate) fn sync_directory_of(path: &Path) -> io::Result<()> {
    directory_of(path)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::*;

    #[test]
    fn a_link_is_replaced_and_what_it_leads_to_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("victim"), "precious").unwrap();
        symlink(at("victim"), at("mine")).unwrap();
        assert!(open_ours(&at("mine"), false).is_err());
        assert!(open_ours(&at("mine"), true).is_err());
        replace(&at("mine"), b"bytes", 0o640).unwrap();
        assert_eq!(fs::read(at("victim")).unwrap(), b"precious");
        assert_eq!(fs::read(at("mine")).unwrap(), b"bytes");
        let found = fs::symlink_metadata(at("mine")).unwrap();
        assert_eq!((found.is_file(), found.mode() & 0o777), (true, 0o640));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    }

    #[test]
    fn nothing_is_put_where_something_is() {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path().join("mine");
        place(&at, b"first", 0o600).unwrap();
        let error = place(&at, b"second", 0o600).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&at).unwrap(), b"first");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_has_two_names_is_read_and_not_changed() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("victim"), "precious").unwrap();
        fs::hard_link(at("victim"), at("mine")).unwrap();
        assert!(open_ours(&at("mine"), false).is_ok());
        assert!(open_ours(&at("mine"), true).is_err());
        replace(&at("mine"), b"bytes", 0o600).unwrap();
        assert_eq!(fs::read(at("victim")).unwrap(), b"precious");
    }

    #[test]
    fn a_pipe_is_not_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("mine");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        assert!(open_ours(&pipe, false).is_err());
    }
}
