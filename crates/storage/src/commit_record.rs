//! The record of a commit: a file of one block in the state directory for each migration.
//!
//! `core::commit` says what it means, when it is written, and which bytes it is; here is
//! how it gets onto the medium. The file is made, given its room and made durable while the
//! guest runs, and from then on the same block is overwritten, each time durably
//! (`O_DSYNC`): no allocation, no journal of a database and nobody else's lock is in the way
//! of a commit.
//!
//! **Failure cases.** A write that fails leaves the file as it was if that is what is read
//! afterwards, and if the file system has refused the write because it has no room, or takes
//! no writes. After any other error nobody knows: on a server (NFS, FUSE) a write that was not
//! answered may come to the medium later, though the file is read as it was. A file that is
//! damaged, or of a version that is not known, says nothing, and the source is the truth: a
//! switch-over by a newer Sterna is not taken up by an older one (whose database refuses
//! before).

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sterna_core::commit::record::LEN;
pub use sterna_core::commit::record::{Key, Says};
use sterna_core::commit::{Found, Written};
use sterna_engine::place;

/// The block that is written: what file systems write at a time.
const BLOCK: usize = 4096;

/// A record that can be written.
#[derive(Debug)]
pub struct CommitRecord {
    file: File,
    key: Key,
}

impl CommitRecord {
    /// Makes or takes the file at `path`, and has it say that this switch-over was begun.
    /// Gives how long that write took, which is what a commit takes.
    ///
    /// Its name is made durable each time: whoever made the file may have been killed before
    /// he did that, and without a name a record says nothing after a power loss.
    pub fn prepare(path: &Path, key: Key) -> io::Result<(CommitRecord, Duration)> {
        let record = match CommitRecord::open(path, key) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make(path)?;
                CommitRecord::open(path, key)?
            }
            opened => opened?,
        };
        // One that was shortened would have to be given its room while a guest is held.
        if record.file.metadata()?.len() < BLOCK as u64 {
            record.file.write_all_at(&[0; BLOCK], 0)?;
            record.file.sync_all()?;
        }
        let directory = path.parent().unwrap_or(Path::new("."));
        File::open(directory)?.sync_all()?;
        let since = Instant::now();
        record.put(Says::Prepared)?;
        Ok((record, since.elapsed()))
    }

    /// The file at `path`, which must be there.
    pub fn open(path: &Path, key: Key) -> io::Result<CommitRecord> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(libc::O_DSYNC);
        Ok(CommitRecord { file: options.open(path)?, key })
    }

    /// What it says of its switch-over.
    pub fn found(&self) -> io::Result<Found> {
        let mut bytes = [0; LEN];
        match self.file.read_exact_at(&mut bytes, 0) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Ok(Found::Nothing);
            }
            read => read?,
        }
        Ok(self.key.find(&bytes))
    }

    /// Has it say `says`; what became of that.
    pub fn write(&self, says: Says) -> (Written, io::Result<()>) {
        let put = self.put(says);
        let written = match (&put, says) {
            (Ok(()), _) => Written::Durable,
            (Err(error), Says::Committed) => after(error, self.found().ok()),
            (Err(_), Says::Prepared) => Written::Unclear,
        };
        (written, put)
    }

    fn put(&self, says: Says) -> io::Result<()> {
        let mut block = [0; BLOCK];
        block[..LEN].copy_from_slice(&self.key.record(says));
        self.file.write_all_at(&block, 0)
    }
}

/// What became of a commit's write that failed so, by what the record says now. One that was
/// refused, and that nobody reads, is not on its way; one that was not answered may be.
fn after(error: &io::Error, found: Option<Found>) -> Written {
    let is_refused =
        matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT | libc::EROFS));
    match found {
        Some(Found::Prepared) if is_refused => Written::Absent,
        _ => Written::Unclear,
    }
}

/// Where the record of a migration is.
pub fn path(state: &Path, migration: u64) -> PathBuf {
    directory(state).join(format!("{migration}.commit"))
}

/// Where all of them are.
pub(crate) fn directory(state: &Path) -> PathBuf {
    state.join("commits")
}

/// Removes the record of a migration that the state has no more need of. One that stays
/// says nothing of any other.
pub fn remove(state: &Path, migration: u64) {
    let path = path(state, migration);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            let path = path.display();
            tracing::debug!(%path, %error, "the record of a commit stays");
        }
        _ => {}
    }
}

/// Makes a record that says nothing, with its room, durably but for its name.
fn make(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let file = options.open(path)?;
    // Where that cannot be had, the commit may find that there is no room, and is off.
    let _ = place::keep_in_place(&file);
    let made = file.write_all_at(&[0; BLOCK], 0).and_then(|()| file.sync_all());
    if made.is_err() {
        // The first error is the one to tell.
        let _ = std::fs::remove_file(path);
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key = Key {
        migration: 3,
        disk: 9,
        started: 77,
        source_generation: 5,
        destination_generation: 6,
        attempt: 2,
    };

    fn found(path: &Path, key: Key) -> Found {
        CommitRecord::open(path, key).unwrap().found().unwrap()
    }

    #[test]
    fn a_record_says_what_was_written_to_it_and_only_of_its_switch_over() {
        let state = tempfile::tempdir().unwrap();
        let path = state.path().join("3.commit");
        let (record, _) = CommitRecord::prepare(&path, KEY).unwrap();
        assert_eq!(found(&path, KEY), Found::Prepared);
        assert_eq!(record.write(Says::Committed).0, Written::Durable);
        assert_eq!(found(&path, KEY), Found::Committed);
        for other in [
            Key { migration: 4, ..KEY },
            Key { disk: 8, ..KEY },
            Key { started: 78, ..KEY },
            Key { source_generation: 7, ..KEY },
            Key { destination_generation: 8, ..KEY },
            Key { attempt: 3, ..KEY },
        ] {
            assert_eq!(found(&path, other), Found::Nothing, "{other:?}");
        }
        // The next attempt begins anew, in the same block.
        CommitRecord::prepare(&path, Key { attempt: 3, ..KEY }).unwrap();
        assert_eq!(found(&path, KEY), Found::Nothing);
        assert_eq!(path.metadata().unwrap().len(), BLOCK as u64);
    }

    #[test]
    fn a_write_is_absent_only_if_it_was_refused_and_nobody_reads_it() {
        let error = io::Error::from_raw_os_error;
        for refused in [libc::ENOSPC, libc::EDQUOT, libc::EROFS] {
            let refused = error(refused);
            assert_eq!(after(&refused, Some(Found::Prepared)), Written::Absent);
            for found in [None, Some(Found::Nothing), Some(Found::Committed)] {
                assert_eq!(after(&refused, found), Written::Unclear, "{found:?}");
            }
        }
        // On a server it may come to the medium later.
        for unanswered in [libc::EIO, libc::ETIMEDOUT, libc::EINTR, libc::ESTALE] {
            let found = Some(Found::Prepared);
            assert_eq!(after(&error(unanswered), found), Written::Unclear);
        }
    }

    #[test]
    fn a_write_that_fails_and_is_not_refused_leaves_it_unclear_though_nobody_reads_it() {
        let state = tempfile::tempdir().unwrap();
        let path = state.path().join("3.commit");
        CommitRecord::prepare(&path, KEY).unwrap();
        let record = CommitRecord { file: File::open(&path).unwrap(), key: KEY };
        assert_eq!(record.write(Says::Committed).0, Written::Unclear, "only to be read");
        assert_eq!(record.found().unwrap(), Found::Prepared);
    }

    #[test]
    fn a_record_that_is_torn_or_damaged_says_nothing() {
        let state = tempfile::tempdir().unwrap();
        let path = state.path().join("3.commit");
        let (record, _) = CommitRecord::prepare(&path, KEY).unwrap();
        assert_eq!(record.write(Says::Committed).0, Written::Durable);
        let whole = std::fs::read(&path).unwrap();
        for at in 0..LEN {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            std::fs::write(&path, damaged).unwrap();
            assert_eq!(found(&path, KEY), Found::Nothing, "byte {at}");
        }
        for len in [0, 1, LEN - 1] {
            std::fs::write(&path, &whole[..len]).unwrap();
            assert_eq!(found(&path, KEY), Found::Nothing, "{len} bytes");
        }
        // It is whole again before a guest is held for it.
        CommitRecord::prepare(&path, KEY).unwrap();
        assert_eq!(path.metadata().unwrap().len(), BLOCK as u64);
    }
}
