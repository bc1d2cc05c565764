//! Flushes of which nobody may hear how they end.
//!
//! If a daemon is killed while the storage is at a flush, and that fails later, the error goes
//! to a process that is gone: the next daemon's flush finds nothing amiss. So the image's line
//! in its disk's account says that its writes are in doubt, from when a flush has been under
//! way for [`LONG_FLUSH`] until all such flushes have ended, and while a daemon that ends well
//! waits for the last flush. After a flush that has lost something the line says so until the
//! next one succeeds: the disk's clients are told moments later.
//!
//! One alarm watches all flushes of an image: it rings no more than once in [`LONG_FLUSH`].

use sterna_core::Nanos;
use sterna_core::durability::LONG_FLUSH;

use super::{Cx, ImageOp, token};
use crate::account::Line;
use crate::io::ImageId;
use crate::timer::Alarm;

/// The tag of the alarm: beyond all connections, and no layer's.
pub(super) const DOUBT: u32 = super::LEAVING + 1;

/// What is known of an image's flushes.
#[derive(Default)]
pub(super) struct Doubt {
    alarm: Alarm,
    /// A flush has lost something, or is the last one.
    is_certain: bool,
}

impl Doubt {
    /// A flush begins.
    pub(super) fn flush_begins(&mut self, cx: &mut Cx, id: ImageId) {
        if self.alarm.at().is_none() {
            self.watch(cx, id, cx.now);
        }
    }

    fn watch(&mut self, cx: &mut Cx, id: ImageId, since: Nanos) {
        let at = since.plus(LONG_FLUSH);
        self.alarm.set(&mut cx.timers, Some(at), token(id, DOUBT));
    }

    /// The alarm has rung. `since`: when the oldest flush that is under way began.
    pub(super) fn rings(
        &mut self,
        cx: &mut Cx,
        id: ImageId,
        since: Option<Nanos>,
        line: Option<&mut Line>,
    ) {
        self.alarm.fired();
        match since {
            Some(since) if !is_long(cx, since) => self.watch(cx, id, since),
            Some(_) => line.into_iter().for_each(|line| line.set_doubtful(true)),
            None => {}
        }
    }

    /// Nobody may hear how the flush ends that comes next, or one has lost something.
    pub(super) fn is_certain(&mut self, line: Option<&mut Line>) {
        self.is_certain = true;
        line.into_iter().for_each(|line| line.set_doubtful(true));
    }

    /// Nobody will flush any more.
    pub(super) fn ends_for_good(&mut self, cx: &mut Cx, id: ImageId) {
        self.alarm.set(&mut cx.timers, None, token(id, DOUBT));
    }

    /// A flush has succeeded.
    pub(super) fn flushed(&mut self) {
        self.is_certain = false;
    }

    /// An operation has ended. `since`: when the oldest flush that is under way began.
    pub(super) fn ends(
        &mut self,
        cx: &mut Cx,
        id: ImageId,
        line: &mut Line,
        since: impl FnOnce() -> Option<Nanos>,
    ) {
        let is_doubtful = line.is_doubtful();
        if !line.is_unflushed() {
            self.is_certain = false;
            line.set_doubtful(false);
        }
        if !is_doubtful || self.is_certain {
            return;
        }
        let since = since();
        line.set_doubtful(line.is_unflushed() && since.is_some_and(|it| is_long(cx, it)));
        // One that began while another was in doubt is watched by nobody yet.
        if let Some(since) = since.filter(|it| !is_long(cx, *it)) {
            self.watch(cx, id, since);
        }
    }
}

/// When the oldest of the operations that are under way began that end with a flush.
pub(super) fn oldest_flush<'a>(
    under_way: impl Iterator<Item = (&'a ImageOp, Nanos)>,
) -> Option<Nanos> {
    under_way.filter(|(op, _)| op.makes_durable()).map(|(_, began)| began).min()
}

fn is_long(cx: &Cx, since: Nanos) -> bool {
    cx.now.since(since) >= LONG_FLUSH
}
