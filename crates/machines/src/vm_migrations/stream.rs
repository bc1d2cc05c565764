//! The socket over which a guest goes to a QEMU.
//!
//! QEMU makes it when it is told that a guest comes, and removes whatever has that name
//! before; and it removes its own when it ends in good order. One that was killed leaves
//! it. So what somebody else has there is refused before QEMU is told, and what is there at
//! the end is removed only if QEMU was told to make it.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use sterna_api::paths::too_long;
use sterna_api::{Error, Result};

/// What it has behind the name of its QEMU's socket: where QEMU could make the one, it can
/// make the other.
const SUFFIX: &str = ".in";

/// The socket over which a guest goes to a QEMU.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    path: PathBuf,
    /// A QEMU was told to make it, or may have been.
    told: bool,
}

impl Stream {
    /// That to the QEMU at a socket; whether that one may have been told of it.
    pub(super) fn to(destination: &Path, told: bool) -> Stream {
        Stream { path: format!("{}{SUFFIX}", destination.display()).into(), told }
    }

    /// Its name, for a QEMU that is told of it now, or was.
    pub(super) fn tell(&mut self) -> String {
        self.told = true;
        self.name()
    }

    /// Its name.
    pub(super) fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Refuses a name that is too long, or that somebody else's file has.
    pub(super) fn check(&self) -> Result<()> {
        if let Some(message) = too_long(&self.path) {
            return Err(
                Error::invalid(message).hint("give the VM's QMP sockets shorter paths")
            );
        }
        match fs::symlink_metadata(&self.path) {
            Ok(found) if !found.file_type().is_socket() => {
                let message = format!(
                    "{} is there already, and QEMU would remove it: the guest's memory \
                     goes over a socket of that name",
                    self.name()
                );
                Err(Error::in_use(message)
                    .hint("move the file away, or give QEMU another QMP socket"))
            }
            _ => Ok(()),
        }
    }

    /// Removes what a QEMU that has ended may have left.
    pub(super) fn remove(&self) {
        let is_socket = |path: &Path| {
            fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket())
        };
        if self.told && is_socket(&self.path) {
            // QEMU may be faster.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn only_a_socket_that_a_qemu_was_told_to_make_is_removed() {
        let scratch = tempfile::tempdir().expect("a directory");
        let destination = scratch.path().join("b.qmp");
        let path = scratch.path().join("b.qmp.in");
        let mut stream = Stream::to(&destination, false);
        drop(UnixListener::bind(&path).expect("a socket"));
        stream.remove();
        assert!(path.exists(), "nobody was told to make it");
        assert_eq!(stream.tell(), path.display().to_string());
        stream.remove();
        assert!(!path.exists());
        fs::write(&path, "somebody's").expect("a file");
        stream.remove();
        assert!(path.exists(), "no QEMU makes files");
    }

    #[test]
    fn a_name_that_a_file_has_is_refused_and_an_old_socket_is_none() {
        let scratch = tempfile::tempdir().expect("a directory");
        let stream = Stream::to(&scratch.path().join("b.qmp"), false);
        assert!(stream.check().is_ok());
        let path = scratch.path().join("b.qmp.in");
        drop(UnixListener::bind(&path).expect("a socket"));
        assert!(stream.check().is_ok());
        fs::remove_file(&path).and_then(|()| fs::write(&path, "")).expect("a file");
        let refused = stream.check().expect_err("a file is there").to_string();
        assert!(refused.contains("QEMU would remove it"), "{refused}");
    }
}
