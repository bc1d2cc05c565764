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
use crate::seldom::Seldom;
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
    /// What clients will have lost if a commit that is under way is durable.
    foreseen: Option<Loss>,
    /// Since when no flush is acknowledged.
    broken: Option<Nanos>,
    /// Where it is kept what clients are still to be told.
    keep: Option<Arc<Keep>>,
    /// Something is to be noted there, and is not: the account is still being made, or could
    /// not be.
    is_unnoted: bool,
    /// When the account was last tried to be made.
    tried: Option<Nanos>,
    /// A client that flushes in a loop fails each time.
    failed_flushes: Seldom,
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

    /// Whether there is a place for that.
    pub(super) fn is_kept(&self) -> bool {
        self.keep.is_some()
    }

    /// Whether clients will have lost writes if a commit that is under way becomes durable.
    /// They are told when it has; or by the next daemon, if this one is killed meanwhile.
    pub(super) fn foresees(&mut self, now: Nanos, loss: Option<Loss>) {
        if std::mem::replace(&mut self.foreseen, loss) != loss {
            self.note(now);
        }
    }

    /// Writes that clients were answered may be lost.
    pub(super) fn lose(&mut self, now: Nanos, disk: &str, why: Loss) {
        self.foreseen = None;
        self.debts.lost(now);
        self.has_lost(now, disk, why);
        self.note(now);
    }

    fn has_lost(&mut self, now: Nanos, disk: &str, why: Loss) {
        self.forgot = Some((now, why));
        let left_out = match why {
            Loss::FlushFailed => self.failed_flushes.happens(now),
            _ => Some(0),
        };
        let Some(left_out) = left_out else { return };
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
            Loss::FlushUnheard => {
                "the daemon before this one ended while the disk's storage was at a flush, or \
                 had just failed one, and nobody has heard how it ended"
            }
            Loss::Unknown => {
                "the daemon before this one ended, and what it kept for this one is gone: \
                 whether there were acknowledged writes that no client had flushed and that \
                 the disk's storage dropped is not known"
            }
        };
        tracing::error!(
            disk,
            left_out,
            "{happened}: these writes may be lost; the next flush of each client of the \
             disk fails, so that its file systems and databases notice"
        );
    }

    /// Has the account say what clients are still to be told.
    pub(super) fn note(&mut self, now: Nanos) {
        let Some(keep) = &self.keep else { return };
        let mut clients = self.debts.clients();
        let owed = self.forgot.map(|(_, why)| why).filter(|_| clients.owed > 0);
        let why = self.foreseen.or(owed);
        if self.foreseen.is_some() {
            // Also those that have heard of what was lost before.
            clients.owed = clients.all.max(1);
        }
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
        if !op.makes_durable() {
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

#[cfg(test)]
mod tests;
