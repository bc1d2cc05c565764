//! What a disk's clients were told to be durable, and what becomes of that if it is not.
//!
//! A flush that is acknowledged says: all that was answered before is there after a loss of
//! power. Two things make that untrue although the image has answered well.
//!
//! - **The server behind the image forgot** (`Image::has_forgotten`): the next flush
//!   fails, once for each loss ([`Debt`]). What is written from then on is as durable as
//!   ever.
//! - **A flush failed for which there is no second try** (`Image::has_lost`): the kernel
//!   takes the pages that it could not write for clean, so every later success may be a lie.
//!   No flush is acknowledged any more until the disk has another image: it is moved, or
//!   opened anew.
//!
//! Both hold for whatever asks to be durable: flushes, and writes with FUA. They are carried
//! out and answered with `EIO`. Reads and writes go on. Losses stay with the disk when it
//! moves to another image: a copy of what was lost is no better.

use sterna_core::Nanos;
use sterna_core::durability::Debt;

use crate::image::{ImageOp, ImageResult};
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
    pub(super) fn moved(&mut self) {
        self.broken = None;
    }

    /// A flush of the disk's image has failed for which there is no second try.
    pub(super) fn lost(&mut self, now: Nanos, disk: &str) {
        if self.broken.is_some() {
            return;
        }
        self.broken = Some(now);
        tracing::error!(
            disk,
            "a flush of the disk's image failed, and the kernel may have dropped what it \
             could not write: no flush of this disk is acknowledged until it is moved or \
             the daemon is started anew"
        );
    }

    /// What a client is answered, when it began at `promised` and the image says `result`.
    pub(super) fn answer(
        &mut self,
        op: &ImageOp,
        promised: u64,
        result: ImageResult,
    ) -> ImageResult {
        if !is_durable(op) {
            return result;
        }
        let owed = self.debt.settle(promised);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Done;

    const FAILS: ImageResult = Err(Errno(libc::EIO));

    fn flush(promise: &mut Promise) -> ImageResult {
        promise.answer(&ImageOp::Flush, promise.now(), Ok(Done::Ok))
    }

    fn zero(fua: bool) -> ImageOp {
        ImageOp::Zero { offset: 0, len: 512, unmap: true, fua, fast: false }
    }

    #[test]
    fn after_a_loss_one_flush_fails_and_nothing_else() {
        let mut promise = Promise::default();
        assert_eq!(flush(&mut promise), Ok(Done::Ok));
        promise.forgotten(Nanos(1), "db");
        let began = promise.now();
        assert_eq!(promise.answer(&zero(false), began, Ok(Done::Ok)), Ok(Done::Ok));
        assert_eq!(promise.answer(&zero(true), began, Ok(Done::Ok)), FAILS);
        assert_eq!(flush(&mut promise), Ok(Done::Ok));
    }

    #[test]
    fn a_flush_that_has_failed_for_good_goes_on_to_fail_until_the_disk_moves() {
        let mut promise = Promise::default();
        promise.lost(Nanos(1), "db");
        for _ in 0..3 {
            assert_eq!(flush(&mut promise), FAILS);
        }
        let kinds = |promise: &Promise| {
            let troubles = promise.troubles(Nanos(2));
            troubles.map(|trouble| trouble.kind).collect::<Vec<_>>()
        };
        assert_eq!(kinds(&promise), [TroubleKind::CannotFlush]);
        promise.moved();
        assert_eq!(flush(&mut promise), Ok(Done::Ok));
        assert_eq!(kinds(&promise), []);
    }

    #[test]
    fn a_loss_moves_along_and_is_shown_for_a_day() {
        let mut promise = Promise::default();
        promise.forgotten(Nanos(0), "db");
        promise.moved();
        let shown = |promise: &Promise, at| promise.troubles(at).next().map(|it| it.kind);
        let (soon, later) = (Nanos::from_secs(60), Nanos::from_secs(25 * 3600));
        assert_eq!(shown(&promise, soon), Some(TroubleKind::Forgot { told: false }));
        assert_eq!(flush(&mut promise), FAILS);
        assert_eq!(shown(&promise, soon), Some(TroubleKind::Forgot { told: true }));
        assert_eq!(shown(&promise, later), None);
    }
}
