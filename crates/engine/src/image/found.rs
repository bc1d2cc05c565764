//! What is found at a name, without opening it.

use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Statx, StatxFlags, StatxTimestamp, statx};
use sterna_core::old_copy;

use super::identity::{FileIdentity, open_name};

const NANOS: u64 = 1_000_000_000;
/// Blocks of stat(2) have 512 bytes, whatever the file system's have.
const BLOCK: u64 = 512;

/// What is found at a name. A link is something of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundFile {
    /// What it is known by.
    pub identity: FileIdentity,
    /// Whether it is a plain file.
    pub is_file: bool,
    /// Whether it is a directory.
    pub is_directory: bool,
    /// How many names it has.
    pub names: u64,
    /// Its length in bytes.
    pub size: u64,
    /// The bytes that it takes on its medium.
    pub allocated: u64,
    /// When it was written last, in nanoseconds since 1970.
    pub modified: u64,
}

impl FoundFile {
    /// What has this name now.
    pub fn at(path: &Path) -> io::Result<FoundFile> {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::STATX_FORCE_SYNC;
        match FoundFile::from(&statx(CWD, path, flags, asked())?) {
            found if found.identity.is_lasting() => Ok(found),
            _ => FoundFile::of(open_name(path)?),
        }
    }

    /// What is behind a descriptor.
    pub fn of(file: impl AsFd) -> io::Result<FoundFile> {
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_FORCE_SYNC;
        let found = FoundFile::from(&statx(&file, c"", flags, asked())?);
        Ok(FoundFile { identity: found.identity.with_handle(&file), ..found })
    }

    /// What it is known by, in the words of whoever decides what becomes of it.
    pub fn facts(&self) -> old_copy::FoundFile {
        let beside = self.identity.beside();
        old_copy::FoundFile {
            file: old_copy::FileFacts {
                number: beside.number,
                made: beside.made,
                size: self.size,
                modified: self.modified,
            },
            is_file: self.is_file,
            names: self.names,
        }
    }
}

impl From<&Statx> for FoundFile {
    fn from(found: &Statx) -> FoundFile {
        let kind = FileType::from_raw_mode(found.stx_mode.into());
        FoundFile {
            identity: FileIdentity::from(found),
            is_file: kind == FileType::RegularFile,
            is_directory: kind == FileType::Directory,
            names: found.stx_nlink.into(),
            size: found.stx_size,
            allocated: found.stx_blocks.saturating_mul(BLOCK),
            modified: nanos(&found.stx_mtime),
        }
    }
}

fn asked() -> StatxFlags {
    StatxFlags::BASIC_STATS | StatxFlags::BTIME
}

fn nanos(at: &StatxTimestamp) -> u64 {
    let seconds = u64::try_from(at.tv_sec).unwrap_or(0);
    seconds.saturating_mul(NANOS).saturating_add(at.tv_nsec.into())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_is_known_again_until_it_is_written_linked_or_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("a"), [1; 4096]).unwrap();
        let first = FoundFile::at(&at("a")).unwrap();
        assert_eq!((first.size, first.names, first.is_file), (4096, 1, true));
        assert_eq!(FoundFile::at(&at("a")).unwrap(), first);
        fs::hard_link(at("a"), at("b")).unwrap();
        assert_eq!(FoundFile::at(&at("b")).unwrap(), FoundFile { names: 2, ..first });
        fs::write(at("b"), [2; 8192]).unwrap();
        let written = FoundFile::at(&at("a")).unwrap();
        assert!(written.modified > first.modified && written.size == 8192);
        assert_eq!(written.identity, first.identity);
        symlink("a", at("link")).unwrap();
        let link = FoundFile::at(&at("link")).unwrap();
        assert!(!link.is_file && link.identity != first.identity);
        assert!(FoundFile::at(directory.path()).unwrap().is_directory);
        assert!(FoundFile::at(&at("c")).is_err());
    }
}
