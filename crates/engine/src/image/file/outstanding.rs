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
//! A write with FUA that fails counts as a flush that fails: it may have been the flush in it.
//! One that finds no room has failed by itself, and so has one that was still on its way to
//! the page cache.

use sterna_core::durability::Cached;

use super::descriptors::Descriptors;
use super::flight::Flight;
use crate::image::{ImageOp, ImageResult};
use crate::io::Errno;

/// The accounts of a file.
#[derive(Default)]
pub(super) struct Outstanding {
    pages: Cached,
    direct: Cached,
}

/// How an operation that has begun stands in the accounts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    /// It leaves something in the page cache, or in a server's.
    pages: bool,
    /// It leaves something in the device's cache.
    direct: bool,
    /// What it covers, if it is a flush.
    covers: [u64; 2],
    /// What was outstanding when it began, itself included.
    pages_before: bool,
    direct_before: bool,
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
    /// An operation begins.
    pub(super) fn begins(&mut self, descriptors: &Descriptors, op: &ImageOp) -> Mark {
        let may_linger = match op {
            ImageOp::Write { fua, .. } => !fua,
            ImageOp::Zero { .. } => true,
            _ => false,
        };
        let stored = descriptors.direct_is_stored;
        let pages = descriptors.dirties(op) || may_linger && !stored;
        let direct = may_linger && !pages;
        let covers = [self.pages.flush_begins(), self.direct.flush_begins()];
        if pages {
            self.pages.begins();
        }
        if direct {
            self.direct.begins();
        }
        let pages_before = self.pages.is_outstanding();
        let direct_before = self.direct.is_outstanding();
        Mark { pages, direct, covers, pages_before, direct_before }
    }

    /// It has ended. Says what was lost with it, if anything.
    pub(super) fn ended(
        &mut self,
        descriptors: &Descriptors,
        flight: &Flight,
        result: &ImageResult,
    ) -> Option<Failure> {
        let mark = flight.mark;
        if mark.pages {
            self.pages.ends();
        }
        if mark.direct {
            self.direct.ends();
        }
        let is_flush = matches!(flight.op, ImageOp::Flush);
        let Err(errno) = result else {
            if is_flush {
                self.pages.flushed(mark.covers[0]);
                self.direct.flushed(mark.covers[1]);
            }
            return None;
        };
        if !flight.is_to_sync() && !may_be_a_flush(descriptors, flight, errno) {
            return None;
        }
        match errno {
            // The kernel was not asked, and what it has is as it was.
            Errno(libc::ECANCELED) => None,
            _ if mark.pages_before || self.pages.is_outstanding() => Some(Failure::Final),
            _ if mark.direct_before || self.direct.is_outstanding() => {
                Some(Failure::Once)
            }
            _ => None,
        }
    }
}

/// Whether a write with FUA that has failed may have failed in its flush.
fn may_be_a_flush(descriptors: &Descriptors, flight: &Flight, errno: &Errno) -> bool {
    let is_full = matches!(errno, Errno(libc::ENOSPC | libc::EDQUOT));
    let is_durable = matches!(flight.op, ImageOp::Write { fua: true, .. });
    let is_cached = descriptors.direct_is_stored && flight.dirties;
    is_durable && !is_full && !is_cached
}
