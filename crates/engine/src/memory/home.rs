//! Where a file in memory belongs: the directory of its file in the state directory. It is
//! kept behind the content, so that somebody can tell later that nobody will come back for
//! the memory.
//!
//! ```text
//!   0  magic "STERNHOM"          16  device of the directory (u64)
//!   8  version (u32)             24  path
//!  12  length of the path (u32)  4092  crc32c of bytes 0..4092
//! ```
//!
//! **Rule.** A directory counts as removed only if it cannot have been hidden: nothing has
//! its path, and the nearest directory above that is there is on the directory's own device.
//! If a file system was unmounted, or another container has another one, that is not so.
//! Where anything else is in the way, the directory counts as there.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// What it takes: a page.
pub(super) const LEN: u64 = 4096;
const MAGIC: &[u8; 8] = b"STERNHOM";
const VERSION: u32 = 1;
const PATH_AT: usize = 24;
const CRC_AT: usize = LEN as usize - 4;

/// Where a file in memory belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Home {
    directory: PathBuf,
    device: u64,
}

impl Home {
    /// The home of what belongs to this file, which its file system is asked for; none if
    /// that does not say it.
    pub(crate) fn of(path: &Path) -> Option<Home> {
        let directory = path.parent()?.canonicalize().ok()?;
        let device = directory.metadata().ok()?.dev();
        Some(Home { directory, device })
    }

    /// The home that is kept in a file in memory, if one is.
    pub(super) fn kept_in(file: &File) -> Option<Home> {
        let at = file.metadata().ok()?.len().checked_sub(LEN)?;
        let mut page = [0; LEN as usize];
        file.read_exact_at(&mut page, at).ok()?;
        Home::decode(&page)
    }

    /// Keeps it in a file in memory that keeps one.
    pub(super) fn store_in(&self, file: &File) -> io::Result<()> {
        let page = self.encode().ok_or(ErrorKind::InvalidFilename)?;
        let at =
            file.metadata()?.len().checked_sub(LEN).ok_or(ErrorKind::UnexpectedEof)?;
        file.write_all_at(&page, at)
    }

    /// A page that says it; none if the path is too long for it.
    pub(super) fn encode(&self) -> Option<[u8; LEN as usize]> {
        let path = self.directory.as_os_str().as_bytes();
        let len = u32::try_from(path.len()).ok()?;
        let mut page = [0; LEN as usize];
        page[..8].copy_from_slice(MAGIC);
        page[8..12].copy_from_slice(&VERSION.to_le_bytes());
        page[12..16].copy_from_slice(&len.to_le_bytes());
        page[16..PATH_AT].copy_from_slice(&self.device.to_le_bytes());
        page[..CRC_AT].get_mut(PATH_AT..PATH_AT + path.len())?.copy_from_slice(path);
        let crc = crc32c::crc32c(&page[..CRC_AT]);
        page[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        Some(page)
    }

    fn decode(page: &[u8; LEN as usize]) -> Option<Home> {
        let number = |at: usize| {
            let mut bytes = [0; 4];
            bytes.copy_from_slice(&page[at..at + 4]);
            u32::from_le_bytes(bytes)
        };
        let whole = crc32c::crc32c(&page[..CRC_AT]) == number(CRC_AT);
        if &page[..8] != MAGIC || !whole || number(8) != VERSION {
            return None;
        }
        let path = page[..CRC_AT].get(PATH_AT..)?.get(..number(12) as usize)?;
        let device = u64::from(number(20)) << 32 | u64::from(number(16));
        Some(Home { directory: OsStr::from_bytes(path).into(), device })
    }

    /// Whether the directory was removed. The file systems on the way are asked, and may
    /// hang.
    pub(super) fn is_removed(&self) -> bool {
        let mut above = self.directory.as_path();
        loop {
            match above.symlink_metadata() {
                Ok(found) => {
                    let is_it = above == self.directory;
                    return !is_it && found.is_dir() && found.dev() == self.device;
                }
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(_) => return false,
            }
            let Some(next) = above.parent() else { return false };
            above = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_is_read_as_it_was_written_and_a_damaged_one_is_none() {
        let home = Home { directory: "/var/lib/sterna/maps".into(), device: 1 << 40 | 7 };
        let page = home.encode().unwrap();
        assert_eq!(Home::decode(&page), Some(home));
        for at in [0, 8, 12, 16, 30, CRC_AT] {
            let mut damaged = page;
            damaged[at] ^= 1;
            assert_eq!(Home::decode(&damaged), None, "{at}");
        }
        let long = Home { directory: "x".repeat(5000).into(), device: 7 };
        assert_eq!(long.encode(), None);
    }

    #[test]
    fn only_a_directory_that_nothing_hides_is_removed() {
        let above = tempfile::tempdir().unwrap();
        let state = above.path().join("state");
        std::fs::create_dir_all(state.join("maps")).unwrap();
        let home = Home::of(&state.join("maps/3.map")).unwrap();
        assert!(!home.is_removed());
        std::fs::remove_dir_all(&state).unwrap();
        assert!(home.is_removed());
        let hidden = Home { device: home.device + 1, ..home.clone() };
        assert!(!hidden.is_removed(), "its file system is not there now");
        std::fs::write(&state, "in the way").unwrap();
        assert!(!home.is_removed());
    }
}
