//! What a disk's clients were told to be durable, and what becomes of that if it is not.
//!
//! A flush that is acknowledged says: all that was answered before is there after a loss of
//! power. Two things make that untrue although the image has answered well.
//!
//! - **The server behind the image forgot** ([`Image::has_forgotten`]): the next flush
//!   fails, once for each loss ([`Debt`]). What is written from then on is as durable as
//!   ever.
//! - **A flush failed for which there is no second try** ([`Image::has_lost`]): the kernel
//!   takes the pages that it could not write for clean, so every later success may be a lie.
//!   No flush is acknowledged any more until the disk has another image: it is moved, or
//!   opened anew.
//!
//! Both hold for whatever asks to be durable: flushes, and writes with FUA. They are carried
//! out and answered with `EIO`. Reads and writes go on. Losses stay with the disk when it
//! moves to another image: a copy of what was lost is no better.

use sterna_core::Nanos;
use sterna_core::durability::Debt;

use crate::image::{Image, ImageOp, ImageResult};
use crate::io::Errno;
use crate::troubles::{Trouble, TroubleKind};

/// A loss is shown for a day: whoever looks once a day sees it.
const SHOWN: Nanos = Nanos::from_secs(24 * 3600);

/// The promises of a disk.
#[derive(Default)]
pub(super) struct Promise {
    debt: Debt,
    /// When the server last forgot.
    forgot: Option<Nanos>,
    /// Since when no flush is acknowledged.
    broken: Option<Nanos>,
}

impl Promise {
    /// What a request that begins has to remember.
    pub(super) fn now(&self) -> u64 {
        self.debt.now()
    }

    /// The server behind the disk's image may have lost writes.
    pub(super) fn forgotten(&mut self, now: Nanos, disk: &str) {
        self.debt.lost();
        self.forgot = Some(now);
        tracing::error!(
            disk,
            "the NBD server of the disk's datastore was away with writes that it had \
             acknowledged and not been asked to flush: they may be lost; the disk's next \
             flush fails, so that its file systems and databases know"
        );
    }

    /// The disk has another image.
    pub(super) fn moved(&mut self, image: &mut dyn Image) {
        self.broken = None;
        // What failed while it was a copy was written anew.
        let _ = image.has_lost();
    }

    /// The answer to a request that began at `began`, when `image` has answered this.
    pub(super) fn answer(
        &mut self,
        now: Nanos,
        disk: &str,
        op: &ImageOp,
        began: u64,
        image: Option<&mut dyn Image>,
        result: ImageResult,
    ) -> ImageResult {
        if !is_durable(op) {
            return result;
        }
        if image.is_some_and(Image::has_lost) && self.broken.is_none() {
            self.broken = Some(now);
            tracing::error!(
                disk,
                "a flush of the disk's image failed, and the kernel may have dropped what it \
                 could not write: no flush of this disk is acknowledged until it is moved \
                 or the daemon is started anew"
            );
        }
        let owed = self.debt.settle(began);
        match result {
            Ok(_) if owed || self.broken.is_some() => Err(Errno(libc::EIO)),
            result => result,
        }
    }

    /// What somebody should look at.
    pub(super) fn troubles(&self, now: Nanos) -> impl Iterator<Item = Trouble> {
        let told = !self.debt.is_owed();
        let forgot = self.forgot.filter(|since| now.since(*since) < SHOWN);
        let forgot = forgot.map(|since| (since, TroubleKind::Forgot { told }));
        let broken = self.broken.map(|since| (since, TroubleKind::CannotFlush));
        let trouble = move |(since, kind)| Trouble { kind, age: now.since(since).into() };
        forgot.into_iter().chain(broken).map(trouble)
    }
}

/// Whether the answer to a request says that something is durable.
fn is_durable(op: &ImageOp) -> bool {
    matches!(
        op,
        ImageOp::Flush
            | ImageOp::Write { fua: true, .. }
            | ImageOp::Zero { fua: true, .. }
    )
}
