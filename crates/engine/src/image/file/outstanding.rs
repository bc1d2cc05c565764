//! What of a file no flush has covered yet, and what a flush that fails means for it.
//!
//! **Pages** of the page cache: the kernel takes those that it could not write for clean, so
//! there is no second try, and no later flush may be believed ([`Failure::Final`]). Direct
//! writes count as pages where a server may keep them in a cache of its own (see
//! `Descriptors::direct_is_stored`).
//!
//! **Direct writes** are on the device; but a device may have a volatile cache, and drop what
//! it could not write (a loop device over a full file system, an array that lost a path). A
//! later flush is true for what is written later ([`Failure::Once`]).
//!
//! **What was answered** and no flush has covered, in whatever cache: at first nothing, unless a
//! daemon before has left some. It is what the image's line in the account says (`leave`).
//!
//! A write with FUA that fails counts as a flush that fails, if it may have been the flush in it
//! (`Flight::end`). A direct one says nothing of pages that the kernel still has: of those the
//! next flush is told, whose descriptor has an account of errors of its own. But pages that the
//! kernel has written by itself are in the device's cache, like direct writes.

use sterna_core::durability::Cached;

use crate::image::ImageOp;

/// The accounts of a file.
pub(super) struct Outstanding {
    pages: Cached,
    direct: Cached,
    answered: Cached,
}

/// How an operation that has begun stands in the accounts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    /// It leaves something in the page cache, or in a server's.
    pages: bool,
    /// It leaves something in the device's cache.
    direct: bool,
    /// It is durable only with a flush.
    lingers: bool,
    /// What it covers, if it is a flush.
    covers: [u64; 3],
    /// What was outstanding when it began, itself included.
    pages_before: bool,
    direct_before: bool,
}

/// What the end of an operation says of what was outstanding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Flushed,
    FlushFailed,
    /// The same, of the device's cache alone: pages may be in it, too.
    DirectFlushFailed,
    Other,
}

/// What a flush that failed has lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// Pages: no later flush may be believed.
    Final,
    /// Direct writes: clients are told once.
    Once,
}

impl Outstanding {
    /// Those of a file of which a daemon before has answered writes that no flush has covered
    /// (`inherits`), or not.
    pub(super) fn new(inherits: bool) -> Outstanding {
        let answered = if inherits { Cached::default() } else { Cached::clean() };
        Outstanding { answered, pages: Cached::default(), direct: Cached::default() }
    }

    /// A daemon before may have answered writes that no flush has covered.
    pub(super) fn inherits(&mut self) {
        self.answered.begins();
        self.answered.ends();
    }

    /// Whether something was answered that no flush has covered.
    pub(super) fn is_unflushed(&self) -> bool {
        self.answered.is_outstanding()
    }

    /// An operation begins that leaves something in the page cache (`dirties`) or not.
    /// `stored`: a direct write that was answered is on the storage.
    pub(super) fn begins(&mut self, op: &ImageOp, dirties: bool, stored: bool) -> Mark {
        let may_linger = match op {
            ImageOp::Write { fua, .. } => !fua,
            ImageOp::Zero { .. } => true,
            _ => false,
        };
        let pages = dirties || may_linger && !stored;
        let direct = may_linger && !pages;
        let lingers = match op {
            ImageOp::Write { fua, .. } | ImageOp::Zero { fua, .. } => !fua,
            ImageOp::Clone { .. } => true,
            _ => false,
        };
        let covers =
            [&self.pages, &self.direct, &self.answered].map(Cached::flush_begins);
        if pages {
            self.pages.begins();
        }
        if direct {
            self.direct.begins();
        }
        if lingers {
            self.answered.begins();
        }
        let pages_before = self.pages.is_outstanding();
        let direct_before = self.direct.is_outstanding();
        Mark { pages, direct, lingers, covers, pages_before, direct_before }
    }

    /// It has ended. Says what was lost with it, if anything.
    pub(super) fn ended(&mut self, mark: Mark, end: End) -> Option<Failure> {
        if mark.pages {
            self.pages.ends();
        }
        if mark.direct {
            self.direct.ends();
        }
        if mark.lingers {
            self.answered.ends();
        }
        match end {
            End::Flushed => {
                self.pages.flushed(mark.covers[0]);
                self.direct.flushed(mark.covers[1]);
                self.answered.flushed(mark.covers[2]);
                return None;
            }
            End::FlushFailed | End::DirectFlushFailed => {}
            End::Other => return None,
        }
        let pages = mark.pages_before || self.pages.is_outstanding();
        let direct = mark.direct_before || self.direct.is_outstanding();
        match (pages, direct) {
            (true, _) if end == End::FlushFailed => Some(Failure::Final),
            (false, false) => None,
            _ => Some(Failure::Once),
        }
    }
}
