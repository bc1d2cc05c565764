//! A device or an export that was made larger since it was opened, which a daemon finds when it
//! starts: the sidecar of its disk is not at its end any more.
//!
//! **Rule.** If nothing says at the end whose the place is, Sterna looks where the end may have
//! been, and brings the sidecar to the end, if it is to the last byte the expected one:
//!
//! - Of a disk that left room for it, it is where the end was when a daemon last found it there,
//!   or behind the disk, within [`SLACK`].
//! - Of a disk that filled its place, it is in a file. Then nothing at the place says whose it
//!   is, so the place counts only if its content proves that.
//!
//! The new one is durable before the old one goes: a kill leaves two that are equal.
//!
//! **An image that is kept** on a place that no disk has (an old copy, or a disk that was removed)
//! has its sidecar where the end was before. The sidecar stays there, as others may use the image,
//! and the place is not free: whoever reads, changes or removes the image finds it there. If its
//! disk comes back, the sidecar follows.
//!
//! **What is not found**: a sidecar further behind its disk, of a state that does not say how
//! large the place was. The disk is not served then, until
//! its place is as large as before.

use super::DatastoreError;
use super::medium::{Kind, Medium};
use crate::sidecar::trailer::{self, TRAILER_LEN, Trailer};
use crate::sidecar::{self, Identity, SidecarError};

/// So far behind a disk its sidecar is looked for: somebody waits while that is read. Logical
/// volumes, of which a disk leaves a part free, are rounded to 4 MiB.
const SLACK: u64 = 16 << 20;
/// The most that is read at once.
const STEP: u64 = 64 << 10;

/// Where the expected sidecar was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whereabouts {
    /// At the end, or where that of a disk belongs that fills its place.
    Here,
    /// Where the end was before. It is at the end now.
    Behind,
    /// It was not found, or cannot be read.
    Nowhere,
}

impl Medium {
    /// It had so many bytes before: takes note of a sidecar that was left at its end.
    pub(super) fn was_so_large(&mut self, before: u64) -> Result<(), DatastoreError> {
        let at = trailer::offset(before, 0).filter(|_| before < self.capacity());
        if let Some(at) = at
            && trailer::offset(self.capacity(), 0) != Some(at)
            && self.says_behind(at)?.is_some()
        {
            self.behind = Some(at);
        }
        Ok(())
    }

    /// What the sidecar there says that was left where the end was before.
    fn says_behind(&self, at: u64) -> Result<Option<Identity>, DatastoreError> {
        let said = trailer::read(&self.read_trailer(at)?).ok();
        // If not, these are bytes of its disk.
        Ok(said.filter(|said| said.size <= at))
    }

    /// What a sidecar says that was left where the end was before, if there is one.
    pub(super) fn left_behind(&self) -> Result<Option<Identity>, DatastoreError> {
        self.behind.map_or(Ok(None), |at| self.says_behind(at))
    }

    /// Where the sidecar lies of an image of so many bytes: at this end, or where it was left.
    pub(super) fn lies_at(&self, end: u64, size: u64) -> Result<u64, DatastoreError> {
        let Some(behind) = self.behind.filter(|at| size <= *at) else { return Ok(end) };
        let said = trailer::read(&self.read_trailer(end)?);
        let is_left = matches!(said, Err(SidecarError::Missing))
            && self.says_behind(behind)?.is_some();
        Ok(if is_left { behind } else { end })
    }

    /// Removes sidecars of that image's disk that were left where they belonged before: the
    /// image has its sidecar at the end by now, or goes.
    pub(super) fn forget_left(&self, image: &Identity) -> Result<(), DatastoreError> {
        let in_file = self.found_in_file().and_then(Result::ok);
        if in_file.is_some_and(|said| said.id == image.id) {
            self.forget_file()?;
        }
        self.forget_behind(image)
    }

    /// What is within the disk, or another's, stays.
    fn forget_behind(&self, image: &Identity) -> Result<(), DatastoreError> {
        let Some(at) = self.behind.filter(|at| image.size <= *at) else { return Ok(()) };
        self.change_trailer(at, &mut |old| {
            let is_its = trailer::read(old).is_ok_and(|said| said.id == image.id);
            Ok(if is_its { vec![[0; TRAILER_LEN]] } else { Vec::new() })
        })
    }

    /// Whether a disk of that size has filled it before it was made larger.
    pub(super) fn was_filled(&self, size: u64) -> bool {
        let has_room = trailer::offset(self.capacity(), size).is_some();
        has_room
            && self.found_in_file().is_some_and(|it| it.is_ok_and(|it| it.size == size))
    }

    /// Brings the expected sidecar to the end, if it was where the end was before. Says
    /// where it was.
    pub(super) fn follow_growth(
        &self,
        expected: &Identity,
        before: Option<u64>,
        is_proven: bool,
    ) -> Result<Whereabouts, DatastoreError> {
        let read = self.read_in_place(expected.size);
        let is_here = read.as_ref().is_ok_and(|found| found == expected);
        let found = if is_here { Whereabouts::Here } else { Whereabouts::Nowhere };
        let Some(end) = trailer::offset(self.capacity(), expected.size) else {
            return Ok(found);
        };
        let in_file = self.found_in_file().and_then(Result::ok);
        let is_in_file = in_file.as_ref() == Some(expected);
        match read {
            Err(DatastoreError::Sidecar { source: SidecarError::Missing, .. }) => {}
            // After a kill.
            Ok(_) if is_here && is_in_file => {
                return self.forget_file().map(|()| found);
            }
            // Whoever opens the image is told what is wrong.
            _ => return Ok(found),
        }
        if is_in_file && is_proven {
            self.write_sidecar(expected)?;
            return Ok(Whereabouts::Behind);
        }
        if is_in_file {
            return Ok(found);
        }
        let before = before.and_then(|before| trailer::offset(before, expected.size));
        let before = before.filter(|before| *before < end);
        let Some(old) = self.find_behind(expected, before, end)? else {
            return Ok(found);
        };
        self.write_sidecar(expected)?;
        self.write_trailers(old, &[[0; TRAILER_LEN]])?;
        Ok(Whereabouts::Behind)
    }

    pub(super) fn forget_file(&self) -> Result<(), DatastoreError> {
        let Some(path) = &self.sidecar else { return Ok(()) };
        sidecar::file::remove(path).map_err(super::error::sidecar(path.display()))
    }

    /// Where the sidecar is, if the place ended there once.
    fn find_behind(
        &self,
        expected: &Identity,
        before: Option<u64>,
        end: u64,
    ) -> Result<Option<u64>, DatastoreError> {
        let mut visit = match &self.kind {
            Kind::Device(device) => device.visit()?,
            Kind::Remote(remote) => remote.visit()?,
        };
        let is_it =
            |block: &Trailer| trailer::read(block).is_ok_and(|it| it == *expected);
        if let Some(before) = before {
            let bytes = visit.read(&(before..before + TRAILER_LEN as u64))?;
            if <&Trailer>::try_from(&bytes[..]).is_ok_and(is_it) {
                return Ok(Some(before));
            }
        }
        let mut at = expected.size.next_multiple_of(TRAILER_LEN as u64);
        let last = end.min(at + SLACK);
        while at < last {
            let bytes = visit.read(&(at..last.min(at + STEP)))?;
            let (blocks, _) = bytes.as_chunks::<TRAILER_LEN>();
            if let Some(number) = blocks.iter().position(is_it) {
                return Ok(Some(at + (number * TRAILER_LEN) as u64));
            }
            at += STEP;
        }
        Ok(None)
    }
}
