//! Which file an image is, as its sidecar says.
//!
//! A file is known by its number and by when it was made: numbers are given again once a file is
//! gone. Where the file system does not say when, a digest of the file's handle stands for it
//! (`image/file_handle.rs`). If neither is known, the number alone proves nothing: while no
//! daemon had the file open, another file may have got it.

use sterna_core::old_copy::{HANDLE, LOCAL_HANDLE, is_by_server};

/// What is kept of an image's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beside {
    /// Its number in its file system.
    pub number: u64,
    /// When it was made, in nanoseconds since 1970, or what stands for that; 0 if neither is
    /// known.
    pub made: u64,
}

/// What `made` is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Unknown,
    Moment,
    LocalHandle,
    RemoteHandle,
}

impl Beside {
    /// What stands for the moment at which a file was made, by its handle.
    pub(crate) fn by_handle(digest: u64, is_local: bool) -> u64 {
        HANDLE | if is_local { LOCAL_HANDLE } else { 0 } | (digest & (LOCAL_HANDLE - 1))
    }

    /// When the file was made, in nanoseconds since 1970, if its file system says so.
    pub fn moment(&self) -> Option<u64> {
        (self.kind() == Kind::Moment).then_some(self.made)
    }

    fn kind(&self) -> Kind {
        match self.made {
            0 => Kind::Unknown,
            made if made & HANDLE == 0 => Kind::Moment,
            made if made & LOCAL_HANDLE != 0 => Kind::LocalHandle,
            _ => Kind::RemoteHandle,
        }
    }

    /// Whether both are of one file of a file system, as far as that is known.
    pub fn fits(&self, other: &Beside) -> bool {
        let known = self.kind() == other.kind() && self.kind() != Kind::Unknown;
        self.number == other.number && (!known || self.made == other.made)
    }

    /// Whether both are surely of one file, on one file system.
    pub fn is_surely(&self, other: &Beside) -> bool {
        self.made != 0 && self == other
    }

    /// Whether a file server has given the file of this number another handle: it may be the
    /// same file, and the server was exchanged or restored from a backup.
    pub fn is_rehandled(&self, other: &Beside) -> bool {
        is_by_server(self.made)
            && is_by_server(other.made)
            && self.number == other.number
            && self != other
    }

    /// Whether both are surely of two files. Without the moments at which they were made
    /// that is not sure: some file systems give files new numbers when they are mounted, and a
    /// server may give a file another handle.
    pub fn differs(&self, other: &Beside) -> bool {
        let tells = matches!(self.kind(), Kind::Moment | Kind::LocalHandle);
        tells && self.kind() == other.kind() && self != other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_apart_by_when_they_were_made_if_that_is_known() {
        let of = |number, made| Beside { number, made };
        assert!(of(7, 1).fits(&of(7, 1)) && !of(7, 1).fits(&of(7, 2)));
        assert!(of(7, 0).fits(&of(7, 2)) && !of(7, 0).fits(&of(8, 2)));
        assert!(of(7, 1).differs(&of(7, 2)) && of(7, 1).differs(&of(8, 1)));
        assert!(!of(7, 0).differs(&of(8, 0)) && !of(7, 1).differs(&of(7, 1)));
        assert!(of(7, 1).is_surely(&of(7, 1)) && !of(7, 0).is_surely(&of(7, 0)));
        assert!(!of(7, 1).is_surely(&of(7, 2)) && !of(7, 1).is_surely(&of(8, 1)));
    }

    #[test]
    fn without_that_a_handle_tells_them_apart() {
        let of = |digest, is_local| Beside {
            number: 7,
            made: Beside::by_handle(digest, is_local),
        };
        for is_local in [true, false] {
            let (one, other) = (of(1, is_local), of(2, is_local));
            assert!(one.is_surely(&of(1, is_local)) && one.fits(&of(1, is_local)));
            assert!(!one.fits(&other) && !one.is_surely(&other));
            assert_eq!(one.differs(&other), is_local);
            assert_eq!(one.is_rehandled(&other), !is_local);
            assert!(
                !one.is_rehandled(&one)
                    && !one.is_rehandled(&Beside { number: 8, ..one })
            );
            assert_eq!(one.moment(), None);
        }
    }

    #[test]
    fn a_moment_and_a_handle_say_nothing_of_each_other() {
        let moment = Beside { number: 7, made: 1_700_000_000_000_000_000 };
        let handle = Beside { number: 7, made: Beside::by_handle(u64::MAX, true) };
        assert_eq!(moment.moment(), Some(moment.made));
        assert!(moment.fits(&handle) && !moment.differs(&handle));
        assert!(!moment.is_surely(&handle));
    }
}
