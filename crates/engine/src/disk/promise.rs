//! What a disk's clients were told to be durable, and what becomes of that if it is not.
//!
//! A flush that is acknowledged says: all that was answered before is there after a loss of
//! power. Two things make that untrue although the image has answered well.
//!
//! - **The server behind the image forgot** (`Image::has_forgotten`): it was away, or has
//!   failed a flush; or may have done so when a daemon before ended ([`Loss`]): each client's
//!   next flush fails, once for each loss. What is written from then on is as durable as
//!   ever.
//! - **A flush failed for which there is no second try** (`Image::has_lost`): the kernel
//!   takes the pages that it could not write for clean, so every later success may be a lie.
//!   No flush is acknowledged any more until the disk has another image: it is moved, or
//!   opened anew. The kernel may have dropped writes of clients that do not flush meanwhile,
//!   and a copy has then what was there before: so it is a loss besides, of which each
//!   client's next flush tells, whatever the disk's image is by then.
//!
//! Both hold for whatever asks to be durable: flushes, and writes with FUA. They are carried
//! out and answered with `EIO`, also where the image has another error: that one can be
//! tried again, or done without, and the loss would go unsaid. Reads and writes go on.
//! Losses stay with the disk when it moves to another image: a copy of what was lost is no
//! better.
//!
//! **Each client is told.** Which clients a loss concerns, and when one has heard of it, is
//! decided by [`sterna_core::durability::Debts`]: here it learns when a client comes, asks for
//! something, and goes. Until all have heard the loss is in the disk's account, so that a
//! daemon after this one tells them. What remains: what a client had sent before it went, and
//! we read only after our answer, passes for a sign of life. And a kill in the moment before
//! the account of a disk in a file is made leaves nothing.

use std::sync::Arc;

use sterna_core::Nanos;
use sterna_core::durability::{Debts, Loss};

use super::Client;
use crate::account::Keep;
use crate::image::{ImageOp, ImageResult};
use crate::io::Errno;
use crate::troubles::{Trouble, TroubleKind};

/// A loss is shown for a day: whoever looks once a day sees it.
const SHOWN: Nanos = Nanos::from_secs(24 * 3600);
/// If the account could not be made, it is tried again after so long: each time costs a thread,
/// and a line in the log.
const AGAIN: Nanos = Nanos::from_secs(10);

/// The promises of a disk.
#[derive(Default)]
pub(super) struct Promise {
    debts: Debts<Client>,
    /// When writes may last have been lost, and why.
    forgot: Option<(Nanos, Loss)>,
    /// Since when no flush is acknowledged.
    broken: Option<Nanos>,
    /// Where it is kept what clients are still to be told.
    keep: Option<Arc<Keep>>,
    /// Something is to be noted there, and is not: the account is still being made, or could
    /// not be.
    is_unnoted: bool,
    /// When the account was last tried to be made.
    tried: Option<Nanos>,
}

impl Promise {
    /// What a request that begins has to remember.
    pub(super) fn now(&self) -> u64 {
        self.debts.now()
    }

    /// From now on what clients are still to be told is kept there; and what a daemon before
    /// has left to tell is owed.
    pub(super) fn keep_account(&mut self, now: Nanos, disk: &str, keep: Arc<Keep>) {
        let left = keep.account().map(|account| account.left());
        self.keep = Some(keep);
        if let Some((left, clients)) = left {
            self.debts.follow(now, clients);
            if let Some(why) = left {
                self.has_lost(now, disk, why);
            }
        }
        self.note(now);
    }

    /// Writes that clients were answered may be lost.
    pub(super) fn lose(&mut self, now: Nanos, disk: &str, why: Loss) {
        self.debts.lost(now);
        self.has_lost(now, disk, why);
        self.note(now);
    }

    fn has_lost(&mut self, now: Nanos, disk: &str, why: Loss) {
        self.forgot = Some((now, why));
        let happened = match why {
            Loss::ServerAway => {
                "the NBD server of the disk's datastore was away with acknowledged writes \
                 that no client had flushed"
            }
            Loss::WentBack => {
                "the NBD server of the disk's datastore came back without writes that it \
                 had flushed, as if an older state had been put back"
            }
            Loss::FlushFailed => {
                "a flush of the disk's image failed, and what caches its writes may have \
                 dropped those that no client had flushed"
            }
            Loss::DaemonEnded => {
                "the daemon before this one ended with acknowledged writes that no client \
                 had flushed, and the NBD server of the disk's datastore may drop such \
                 writes with the connection"
            }
            Loss::MountedAnew => {
                "the file system of the disk's image was mounted anew, or its device came \
                 anew, since the daemon before this one had answered writes that no client \
                 had flushed"
            }
            Loss::Unknown => {
                "the daemon before this one ended, and what it kept for this one is gone: \
                 whether there were acknowledged writes that no client had flushed and that \
                 the disk's storage dropped is not known"
            }
        };
        tracing::error!(
            disk,
            "{happened}: these writes may be lost; the next flush of each client of the \
             disk fails, so that its file systems and databases notice"
        );
    }

    /// Has the account say what clients are still to be told.
    pub(super) fn note(&mut self, now: Nanos) {
        let Some(keep) = &self.keep else { return };
        let clients = self.debts.clients();
        let why = self.forgot.map(|(_, why)| why).filter(|_| clients.owed > 0);
        // What an account says that is still being made is of before.
        let is_asked_for = why.is_some() || keep.is_asked_for();
        self.is_unnoted = keep.account().is_none() && is_asked_for;
        match (keep.account(), why) {
            (Some(account), why) => account.owes(why, clients),
            (None, Some(why)) if self.may_try(now) => {
                keep.make_for(why, clients);
                self.tried = Some(now);
            }
            (None, _) => {}
        }
    }

    /// A client is there.
    pub(super) fn comes(&mut self, now: Nanos, client: Client) {
        self.debts.comes(now, client);
        self.note(now);
    }

    /// A client asks for something: it has heard what it was told.
    pub(super) fn asks(&mut self, now: Nanos, client: Client) {
        if self.debts.asks(client) {
            self.note(now);
        }
        self.looks(now);
    }

    /// A client has gone.
    pub(super) fn leaves(&mut self, now: Nanos, client: Client) {
        self.debts.leaves(now, client);
        self.note(now);
    }

    /// What concerns clients that have not come back is over some time.
    pub(super) fn looks(&mut self, now: Nanos) {
        let may_note = self.is_unnoted && self.may_note(now);
        if self.debts.lapse(now) || may_note {
            self.note(now);
        }
    }

    /// Whether the account is there by now, or may be tried to be made again.
    fn may_note(&self, now: Nanos) -> bool {
        let is_there = self.keep.as_ref().is_some_and(|keep| keep.account().is_some());
        is_there || self.may_try(now)
    }

    /// Whether the account may be tried to be made.
    fn may_try(&self, now: Nanos) -> bool {
        let is_asked_for = self.keep.as_ref().is_some_and(|keep| keep.is_asked_for());
        !is_asked_for && self.tried.is_none_or(|tried| now.since(tried) >= AGAIN)
    }

    /// The disk has another image.
    pub(super) fn moved(&mut self) {
        self.broken = None;
    }

    /// Whether no flush is acknowledged.
    pub(super) fn is_broken(&self) -> bool {
        self.broken.is_some()
    }

    /// A flush of the disk's image has failed for which there is no second try.
    pub(super) fn lost(&mut self, now: Nanos, disk: &str) {
        // Also if one has failed before: other writes may be lost with this one.
        self.debts.lost(now);
        self.forgot = Some((now, Loss::FlushFailed));
        self.note(now);
        if self.broken.is_some() {
            return;
        }
        self.broken = Some(now);
        tracing::error!(
            disk,
            "a flush of the disk's image failed, and the kernel may have dropped writes: \
             Sterna acknowledges no flush of this disk until you move the disk or \
             restart the daemon; the next flush of each client then fails once, if the \
             client has not seen one fail"
        );
    }

    /// What a client is answered, when it began at `promised` and the image says `result`.
    pub(super) fn answer(
        &mut self,
        client: Client,
        op: &ImageOp,
        promised: u64,
        result: ImageResult,
    ) -> ImageResult {
        if !is_durable(op) {
            return result;
        }
        if self.debts.settle(client, promised) {
            return Err(Errno(libc::EIO));
        }
        match result {
            Ok(_) if self.broken.is_some() => Err(Errno(libc::EIO)),
            result => result,
        }
    }

    /// What somebody should look at.
    pub(super) fn troubles(&self, now: Nanos) -> impl Iterator<Item = Trouble> {
        let told = !self.debts.is_owed(now);
        // While no flush succeeds, that says it all.
        let is_said = |why| why == Loss::FlushFailed && self.broken.is_some();
        let is_shown =
            |(since, why): &(Nanos, Loss)| now.since(*since) < SHOWN && !is_said(*why);
        let forgot = self.forgot.filter(is_shown);
        let forgot =
            forgot.map(|(since, why)| (since, TroubleKind::Forgot { told, why }));
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
    use std::time::{Duration, Instant};

    use sterna_core::DiskId;

    use super::*;
    use crate::account::AccountSpec;
    use crate::boot::BootId;
    use crate::image::Done;

    const FAILS: ImageResult = Err(Errno(libc::EIO));

    const AWAY: Loss = Loss::ServerAway;
    const OLD: Client = Client::Connection(1);
    const NEW: Client = Client::Connection(2);

    const NOW: Nanos = Nanos(1);

    /// A disk of which one client is there.
    fn promise() -> Promise {
        let mut promise = Promise::default();
        promise.comes(NOW, OLD);
        promise
    }

    /// A client's flush, from its beginning to its answer.
    fn flush_of(client: Client, promise: &mut Promise) -> ImageResult {
        promise.asks(NOW, client);
        promise.answer(client, &ImageOp::Flush, promise.now(), Ok(Done::Ok))
    }

    fn flush(promise: &mut Promise) -> ImageResult {
        flush_of(OLD, promise)
    }

    fn zero(fua: bool) -> ImageOp {
        ImageOp::Zero { offset: 0, len: 512, unmap: true, fua, fast: false }
    }

    #[test]
    fn after_a_loss_one_flush_fails_and_nothing_else() {
        let mut promise = promise();
        assert_eq!(flush(&mut promise), Ok(Done::Ok));
        promise.lose(NOW, "db", AWAY);
        let began = promise.now();
        let answer =
            |promise: &mut Promise, op| promise.answer(OLD, &op, began, Ok(Done::Ok));
        assert_eq!(answer(&mut promise, zero(false)), Ok(Done::Ok));
        assert_eq!(answer(&mut promise, zero(true)), FAILS);
        assert_eq!(flush(&mut promise), Ok(Done::Ok));
    }

    #[test]
    fn each_client_that_was_there_is_told() {
        let mut promise = promise();
        promise.comes(NOW, NEW);
        promise.lose(NOW, "db", AWAY);
        let told = |promise: &Promise| {
            let kind = promise.troubles(NOW).next().map(|trouble| trouble.kind);
            kind == Some(TroubleKind::Forgot { told: true, why: AWAY })
        };
        assert_eq!(flush_of(NEW, &mut promise), FAILS);
        assert_eq!(flush_of(NEW, &mut promise), Ok(Done::Ok));
        assert!(!told(&promise));
        assert_eq!(flush_of(OLD, &mut promise), FAILS);
        assert_eq!(flush_of(OLD, &mut promise), Ok(Done::Ok));
        assert!(told(&promise));
    }

    #[test]
    fn no_other_error_takes_the_place_of_a_loss() {
        for other in [libc::ENOSPC, libc::EOPNOTSUPP] {
            let mut promise = promise();
            let refused = Err(Errno(other));
            let answer = |promise: &mut Promise| {
                promise.answer(OLD, &zero(true), promise.now(), refused.clone())
            };
            assert_eq!(answer(&mut promise), refused);
            promise.lose(NOW, "db", AWAY);
            assert_eq!(answer(&mut promise), FAILS);
            assert_eq!(answer(&mut promise), refused);
        }
    }

    #[test]
    fn a_client_that_comes_back_is_told_what_was_said_to_a_connection_that_is_gone() {
        for notices_first in [true, false] {
            let mut promise = promise();
            let began = promise.now();
            promise.lose(NOW, "db", AWAY);
            // The flush is sent again on another connection, and then the first is answered.
            promise.comes(NOW, NEW);
            promise.asks(NOW, NEW);
            let again = promise.now();
            let answer = |promise: &mut Promise, client, began| {
                promise.answer(client, &ImageOp::Flush, began, Ok(Done::Ok))
            };
            assert_eq!(answer(&mut promise, OLD, began), FAILS);
            if notices_first {
                promise.leaves(NOW, OLD);
            }
            assert_eq!(answer(&mut promise, NEW, again), FAILS);
            promise.leaves(NOW, OLD);
            // And now it has been heard.
            assert_eq!(flush_of(NEW, &mut promise), Ok(Done::Ok));
        }
    }

    #[test]
    fn a_loss_that_nobody_has_heard_of_is_owed_again() {
        let mut promise = promise();
        promise.lose(NOW, "db", AWAY);
        assert_eq!(flush_of(OLD, &mut promise), FAILS);
        promise.leaves(NOW, OLD);
        let mut kinds = promise.troubles(Nanos(2)).map(|trouble| trouble.kind);
        assert_eq!(kinds.next(), Some(TroubleKind::Forgot { told: false, why: AWAY }));
        drop(kinds);
        promise.comes(NOW, NEW);
        assert_eq!(flush_of(NEW, &mut promise), FAILS);
        assert_eq!(flush_of(NEW, &mut promise), Ok(Done::Ok));
    }

    #[test]
    fn a_flush_that_has_failed_for_good_goes_on_to_fail_until_the_disk_moves() {
        let mut promise = promise();
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
        let why = Loss::FlushFailed;
        assert_eq!(kinds(&promise), [TroubleKind::Forgot { told: true, why }]);
    }

    #[test]
    fn a_client_that_has_not_heard_of_a_failed_flush_is_told_after_the_move() {
        let mut promise = promise();
        promise.comes(NOW, NEW);
        // The kernel has dropped writes of both, and the copy has what was there before.
        promise.lost(NOW, "db");
        assert_eq!(flush_of(OLD, &mut promise), FAILS);
        promise.moved();
        assert_eq!(flush_of(OLD, &mut promise), Ok(Done::Ok));
        assert_eq!(flush_of(NEW, &mut promise), FAILS);
        assert_eq!(flush_of(NEW, &mut promise), Ok(Done::Ok));
        // Each failed flush may have lost something else.
        promise.lost(NOW, "db");
        promise.lost(NOW, "db");
        assert_eq!(flush_of(OLD, &mut promise), FAILS);
        promise.lost(NOW, "db");
        promise.moved();
        assert_eq!(flush_of(OLD, &mut promise), FAILS);
        assert_eq!(flush_of(OLD, &mut promise), Ok(Done::Ok));
    }

    #[test]
    fn a_client_that_has_not_heard_of_a_failed_flush_is_told_by_the_next_daemon() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("account");
        let spec = AccountSpec { path, boot: BootId([3; 16]) };
        let keep = Keep::new(DiskId(9), spec.clone());
        let mut promise = promise();
        promise.comes(NOW, NEW);
        promise.keep_account(NOW, "db", Arc::clone(&keep));
        promise.lost(NOW, "db");
        let end = Instant::now() + Duration::from_secs(20);
        while keep.account().is_none() {
            assert!(Instant::now() < end, "no account was made");
            std::thread::yield_now();
        }
        assert_eq!(flush_of(OLD, &mut promise), FAILS);
        promise.asks(NOW, OLD);
        // The daemon is killed: nothing of it is dropped in good order.
        std::mem::forget((promise, keep));
        let keep = Keep::new(DiskId(9), spec.clone());
        keep.take_up(None).unwrap();
        let mut next = Promise::default();
        next.keep_account(NOW, "db", keep);
        next.comes(NOW, NEW);
        assert_eq!(flush_of(NEW, &mut next), FAILS);
        assert_eq!(flush_of(NEW, &mut next), Ok(Done::Ok));
        spec.remove().unwrap();
    }

    #[test]
    fn an_account_that_could_not_be_made_is_tried_again_although_nothing_new_is_lost() {
        let directory = tempfile::tempdir().unwrap();
        let there = directory.path().join("accounts");
        let spec = AccountSpec { path: there.join("9"), boot: BootId([3; 16]) };
        let keep = Keep::new(DiskId(9), spec.clone());
        let mut promise = promise();
        promise.keep_account(NOW, "db", Arc::clone(&keep));
        promise.lost(NOW, "db");
        let end = Instant::now() + Duration::from_secs(20);
        while keep.is_asked_for() {
            assert!(Instant::now() < end, "it is still being made");
            std::thread::yield_now();
        }
        std::fs::create_dir(&there).unwrap();
        promise.looks(Nanos::from_secs(60));
        while keep.account().is_none() {
            assert!(Instant::now() < end, "no account was made");
            std::thread::yield_now();
        }
        spec.remove().unwrap();
    }

    #[test]
    fn a_loss_moves_along_and_is_shown_for_a_day() {
        let mut promise = promise();
        promise.lose(Nanos(0), "db", AWAY);
        promise.moved();
        let shown = |promise: &Promise, at| promise.troubles(at).next().map(|it| it.kind);
        let (soon, later) = (Nanos::from_secs(60), Nanos::from_secs(25 * 3600));
        assert_eq!(
            shown(&promise, soon),
            Some(TroubleKind::Forgot { told: false, why: AWAY })
        );
        assert_eq!(flush(&mut promise), FAILS);
        assert_eq!(
            shown(&promise, soon),
            Some(TroubleKind::Forgot { told: true, why: AWAY })
        );
        assert_eq!(shown(&promise, later), None);
    }
}
