//! Whether the database is where the next start looks for it.
//!
//! The directory may be removed, unmounted lazily, or exchanged for a backup while the daemon
//! has the database open. What is changed then would be done, and no next daemon would know of
//! it. So no change is made: SQLite asks before each commit, and takes the change back.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::{Connection, ffi};

/// The file that was opened.
#[derive(Debug)]
pub(super) struct InPlace {
    path: PathBuf,
    file: Option<(u64, u64)>,
}

impl InPlace {
    /// The database that was just opened at `path` changes only while it is there.
    pub(super) fn guard(path: &Path, connection: &mut Connection) -> Arc<InPlace> {
        let file = std::fs::metadata(path).ok().map(|found| number(&found));
        let place = Arc::new(InPlace { path: path.into(), file });
        let asked = Arc::clone(&place);
        // It fails only for a connection that somebody else has opened.
        let set = connection.commit_hook(Some(move || !asked.is_there()));
        debug_assert!(set.is_ok(), "the connection is ours");
        place
    }

    /// Whether it is there, for certain.
    pub(super) fn is_there(&self) -> bool {
        let found = std::fs::metadata(&self.path).ok().map(|found| number(&found));
        found.is_some() && found == self.file
    }
}

fn number(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

/// Whether an error means that a change was taken back because the database is not in its
/// place.
pub(super) fn was_taken_back(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error().map(|error| error.extended_code);
    code == Some(ffi::SQLITE_CONSTRAINT_COMMITHOOK)
}
