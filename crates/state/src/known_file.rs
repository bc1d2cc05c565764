//! What the state keeps of a file, to know it again.

use serde::{Deserialize, Serialize};
use sterna_core::old_copy::FileFacts;

/// What a file is known by, as it was at some moment. (The number of its file system is
/// another one after a reboot, so it is not kept.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownFile {
    /// Its number in its file system.
    pub number: u64,
    /// When it was made, in nanoseconds since 1970, or what stands for that (its handle); 0 if
    /// neither is known.
    pub made: u64,
    /// Its length in bytes.
    pub size: u64,
    /// When it was written last, in nanoseconds since 1970.
    pub modified: u64,
}

impl KnownFile {
    /// Whether what has its name now is another file, whatever was written to either.
    pub fn is_another(&self, now: &KnownFile) -> bool {
        let is_known = self.made != 0 && now.made != 0;
        self.number != now.number || (is_known && self.made != now.made)
    }

    /// Whether it may be the same file still, as it was, of which its file server gives another
    /// handle: the server may have been exchanged or restored from a backup.
    pub fn may_be_rehandled(&self, now: &KnownFile) -> bool {
        FileFacts::from(*self).may_be_rehandled(&FileFacts::from(*now))
    }
}

impl From<KnownFile> for FileFacts {
    fn from(known: KnownFile) -> FileFacts {
        let KnownFile { number, made, size, modified } = known;
        FileFacts { number, made, size, modified }
    }
}

impl From<FileFacts> for KnownFile {
    fn from(facts: FileFacts) -> KnownFile {
        let FileFacts { number, made, size, modified } = facts;
        KnownFile { number, made, size, modified }
    }
}

/// What a file is known by that was made for a copy; what is in it changes all the time.
/// (The number of its file system is another one after a reboot, so it is not kept.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeFile {
    /// Its number in its file system.
    pub number: u64,
    /// When it was made, in nanoseconds since 1970; 0 if its file system does not say.
    pub made: u64,
}
