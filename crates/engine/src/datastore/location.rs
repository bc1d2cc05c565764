//! Where a datastore is, as people write it.
//!
//! `/vm/disks` is a directory, `/dev/nvme1n1` a block device (`/dev/shm` and
//! what is in it are directories), `nbd://host/export` and
//! `nbd+unix:///export?socket=/path` an NBD server, `array://old-fc?spindles=7` an
//! emulated array. Only absolute paths: what a relative one means would depend on
//! where the daemon was started.

use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use sterna_core::array::Model;
use sterna_nbd::Uri;

use super::emulated::{Emulated, ParseEmulatedError, SCHEME};

/// Where a datastore is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A directory, local or NFS.
    Directory(PathBuf),
    /// A block device.
    Device(PathBuf),
    /// An export of an NBD server.
    Nbd(Uri),
    /// An emulated array, over a directory.
    Array(Box<Emulated>),
}

/// The text is not a location.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseLocationError {
    /// Neither an absolute path nor a URI.
    #[error(
        "`{0}` is not a location; give a directory (/vm/disks), a block device \
         (/dev/nvme1n1), an NBD server (nbd://host/export) or an emulated array \
         (array://old-fc)"
    )]
    Unknown(String),
    /// Two texts for one place lead to mistakes.
    #[error("`{0}` has `..` in it; give the plain path")]
    Upwards(String),
    /// A place where the kernel shows itself.
    #[error(
        "`{0}` is no place for disks: the kernel keeps it in memory, and shows devices and \
         processes there; give a directory of a file system, or one device"
    )]
    Kernel(String),
    /// An NBD URI that cannot be used.
    #[error("`{0}` is not a usable NBD address: {1}")]
    Uri(String, sterna_nbd::UriError),
    /// An array that cannot be emulated.
    #[error("`{0}` is not an emulated array: {1}")]
    Array(String, ParseEmulatedError),
}

impl Location {
    /// The directory that holds a file for each image, if it is one of that kind.
    pub fn directory(&self) -> Option<&Path> {
        match self {
            Location::Directory(path) => Some(path),
            Location::Array(array) => array.path.as_deref(),
            Location::Device(_) | Location::Nbd(_) => None,
        }
    }

    /// What it emulates, if it does.
    pub fn model(&self) -> Option<&Model> {
        match self {
            Location::Array(array) => Some(&array.model),
            _ => None,
        }
    }

    /// Whether images of both would be in one place.
    pub fn is_same_place(&self, other: &Location) -> bool {
        match (self.directory(), other.directory()) {
            (Some(one), Some(other)) => one == other,
            _ => self == other,
        }
    }
}

impl FromStr for Location {
    type Err = ParseLocationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.starts_with(SCHEME) {
            return text
                .parse()
                .map(|array| Location::Array(Box::new(array)))
                .map_err(|error| ParseLocationError::Array(text.into(), error));
        }
        if Uri::is_meant(text) {
            return text
                .parse()
                .map(Location::Nbd)
                .map_err(|error| ParseLocationError::Uri(text.into(), error));
        }
        let path = Path::new(text);
        if !path.is_absolute() || text.contains('\0') {
            return Err(ParseLocationError::Unknown(text.into()));
        }
        if path.components().any(|part| part == Component::ParentDir) {
            return Err(ParseLocationError::Upwards(text.into()));
        }
        // Without doubled and trailing slashes.
        let path: PathBuf = path.components().collect();
        let is_kernel = path == Path::new("/dev")
            || ["/proc", "/sys", "/dev/pts", "/dev/mqueue"]
                .iter()
                .any(|it| path.starts_with(it));
        if is_kernel {
            return Err(ParseLocationError::Kernel(text.into()));
        }
        let device = path.starts_with("/dev") && !path.starts_with("/dev/shm");
        Ok(if device { Location::Device(path) } else { Location::Directory(path) })
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::Directory(path) | Location::Device(path) => path.display().fmt(f),
            Location::Nbd(uri) => uri.fmt(f),
            Location::Array(array) => array.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn locations_are_read_as_people_write_them() {
        let read = |text: &str| text.parse::<Location>();
        let directory = |path: &str| Ok(Location::Directory(path.into()));
        assert_eq!(read("/vm//disks/"), directory("/vm/disks"));
        assert_eq!(read("/dev/shm/x"), directory("/dev/shm/x"));
        assert_eq!(read("/device"), directory("/device"));
        for text in ["/dev", "/dev/", "/proc/self", "/sys"] {
            assert_eq!(read(text), Err(ParseLocationError::Kernel(text.into())));
        }
        assert_eq!(read("/dev/loop0"), Ok(Location::Device("/dev/loop0".into())));
        let qemu = "unix:/run/nbd.sock:exportname=e";
        for uri in ["nbd://host/e", "nbd+unix:///e?socket=/run/nbd.sock", qemu] {
            assert!(matches!(read(uri), Ok(Location::Nbd(_))), "{uri}");
        }
        let array = read("array://old-fc?spindles=7&path=/vm/disks").unwrap();
        assert_eq!(array.directory(), Some(Path::new("/vm/disks")));
        assert!(array.model().is_some() && read("/vm").unwrap().model().is_none());
    }

    #[test]
    fn what_would_mean_different_things_is_refused() {
        let wrong = ["", "vm/disks", "./vm", "host:10809", "/vm/../etc", "http://x/y"];
        for text in wrong.into_iter().chain(["array://", "array://old-fc?path=vm"]) {
            assert!(text.parse::<Location>().is_err(), "{text}");
        }
    }

    #[test]
    fn two_datastores_in_one_directory_are_in_one_place() {
        let read = |text: &str| text.parse::<Location>().unwrap();
        let array = read("array://old-fc?path=/vm/disks");
        assert!(array.is_same_place(&read("/vm/disks")));
        assert!(array.is_same_place(&read("array://new-fc?path=/vm/disks")));
        assert!(!array.is_same_place(&read("/vm")));
        assert!(read("/dev/loop0").is_same_place(&read("/dev/loop0")));
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_the_same(text in "(/[a-z. ]{1,6}){1,4}|nbd://[a-z]{1,9}/[ -~]{0,9}|array://old-fc[?]path=/[ -~]{0,9}") {
            if let Ok(location) = text.parse::<Location>() {
                prop_assert_eq!(location.to_string().parse(), Ok(location));
            }
        }
    }
}
