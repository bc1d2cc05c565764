//! A server that comes back and can do less than before.
//!
//! **What is done without.** Fast zeroes, write-zeroes, FUA, the cache command, block status and
//! long requests are a convenience: the image goes on as it would at a server that never had
//! them. Requests that wait to be sent, or to be sent again, were cut for a server that had
//! them, and are cut anew; a zeroing that had to be fast and has begun may then be slow. What
//! a client asks for from then on is refused as before: fast zeroes that are not offered fail.
//!
//! An ability that was lost does not come back for this image. A write that must be durable is
//! made so by its FUA or by a flush behind it, and that is decided at its end: it must not
//! have been sent without FUA and end when there is FUA again.
//!
//! **What is not.** See [`Lack`]. In particular a flush on one connection covers what was
//! answered on all of them only while the server says so (`CAN_MULTI_CONN`), which the disk's
//! account was told when the image was opened. Such a server is not used, and requests wait.

use sterna_core::Bytes;
use sterna_core::durability::Lack;
use sterna_nbd::{Command, Session, TransmissionFlags as F};

use super::NbdImage;
use super::flight::Abilities;
use crate::image::{Cx, Image};
use crate::io::Errno;

/// What an image may rely on.
const RELIED_ON: F = F::SEND_FLUSH
    .with(F::SEND_FUA)
    .with(F::SEND_WRITE_ZEROES)
    .with(F::SEND_FAST_ZERO)
    .with(F::SEND_CACHE)
    .with(F::CAN_MULTI_CONN);

impl Abilities {
    /// What is left of them at a server that can do this `now`.
    fn at_most(self, now: &Abilities) -> Abilities {
        Abilities {
            size: self.size,
            flags: self.flags.without(RELIED_ON.without(now.flags)),
            maximum: self.maximum.min(now.maximum),
            allocation: self.allocation && now.allocation,
        }
    }

    /// Whether the server takes such a request.
    fn take(&self, command: &Command) -> bool {
        let has = |wanted: bool, flag| !wanted || self.has(flag);
        match *command {
            Command::Read { len, .. } => len <= self.maximum,
            Command::Write { len, fua, .. } => {
                len <= self.maximum && has(fua, F::SEND_FUA)
            }
            Command::WriteZeroes { fua, fast_zero, .. } => {
                self.has(F::SEND_WRITE_ZEROES)
                    && has(fua, F::SEND_FUA)
                    && has(fast_zero, F::SEND_FAST_ZERO)
            }
            Command::Cache { .. } => self.has(F::SEND_CACHE),
            Command::BlockStatus { .. } => self.allocation,
            _ => true,
        }
    }
}

impl NbdImage {
    /// What a server lacks that the image relies on.
    pub(super) fn lack_of(&self, session: &Session) -> Option<Lack> {
        let (able, minimum) = (&self.able, session.block_sizes.minimum());
        let lost = |flag| able.has(flag) && !session.flags.has(flag);
        if session.size < able.size {
            let (now, before) = (Bytes(session.size), Bytes(able.size));
            return Some(Lack::Size { now, before });
        }
        if session.flags.has(F::READ_ONLY) {
            return Some(Lack::Writable);
        }
        // One that never had flushes may have made writes durable one by one.
        let cannot_flush = !session.flags.has(F::SEND_FLUSH);
        if lost(F::SEND_FLUSH) || cannot_flush && lost(F::SEND_FUA) {
            return Some(Lack::Flush);
        }
        if lost(F::CAN_MULTI_CONN) {
            return Some(Lack::Sharing);
        }
        (minimum > self.min_block).then_some(Lack::SmallBlocks { minimum })
    }

    /// The export lacks something, and is not used.
    pub(super) fn comes_with(&mut self, cx: &mut Cx, lack: Lack) {
        self.another = None;
        let known = self.lack.is_some_and(|(_, known)| known == lack);
        let since = self.lack.map_or(cx.now, |(since, _)| since);
        self.lack = Some((since, lack));
        if known {
            return;
        }
        if !self.is_in_reach() {
            tracing::error!(
                uri = %self.uri,
                "the export {lack}; Sterna does not use it, and requests wait: {}",
                lack.remedy()
            );
        }
        self.tell_news(cx);
    }

    /// A server is used that may be able to do less than before.
    pub(super) fn adapt(&mut self, cx: &mut Cx, session: &Session) {
        let now = self.able.at_most(&Abilities::of(session));
        if now == self.able {
            return;
        }
        let lost = self.able.flags.without(now.flags);
        self.able = now;
        tracing::warn!(
            uri = %self.uri, ?lost, finds_holes = now.allocation, longest = now.maximum,
            "the NBD server is back and can do less than before; Sterna does without"
        );
        self.recut(cx);
    }

    /// Cuts those requests anew that wait and that the server does not take as they are.
    pub(super) fn recut(&mut self, cx: &mut Cx) {
        let (able, parts) = (self.able, &self.parts);
        let is_fit = |key: &u32| parts.get(*key).is_none_or(|it| able.take(&it.command));
        if self.queue.iter().all(is_fit) {
            return;
        }
        let (fit, unfit): (Vec<u32>, Vec<u32>) =
            std::mem::take(&mut self.queue).into_iter().partition(is_fit);
        self.queue.extend(fit);
        let mut cut = Vec::new();
        for key in unfit {
            let Some(part) = self.parts.get_mut(key) else { continue };
            match part.command {
                Command::BlockStatus { .. } => {
                    part.error = Some(Errno(libc::EOPNOTSUPP));
                    self.finish(cx, key);
                }
                Command::Cache { .. } => self.finish(cx, key),
                command => {
                    let flight = part.flight;
                    self.parts.remove(key);
                    if let Some(whole) = self.flights.get_mut(flight) {
                        whole.cut_again(&command);
                        cut.push(flight);
                    }
                }
            }
        }
        cut.dedup();
        for flight in cut {
            self.advance(cx, flight);
        }
    }
}
