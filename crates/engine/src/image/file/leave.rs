//! The image's line in its disk's account, and its last flush.
//!
//! What was answered and no flush has covered is safe in the kernel for as long as the file
//! system stays mounted, or the device stays. The next daemon finds in the line whether there
//! was any, and of which mounting. An image that is left in good order is flushed, so that
//! whoever unmounts the file system then has nobody told of a loss.

use super::FileImage;
use crate::account::Line;
use crate::image::{Cx, ImageOp, ImageResult, LEAVE_WITHIN, LEAVING, Ticket, token};
use crate::timer::Alarm;

/// What of an image outlives the daemon.
#[derive(Default)]
pub(super) struct Leaving {
    line: Option<Line>,
    alarm: Alarm,
    /// The last flush takes too long: nobody waits for it.
    has_left: bool,
}

impl Leaving {
    /// An image with this line.
    pub(super) fn with(line: Option<Line>) -> Leaving {
        Leaving { line, ..Leaving::default() }
    }

    /// Whether a daemon before has answered writes that no flush has covered.
    pub(super) fn inherits(&self) -> bool {
        self.line.as_ref().is_some_and(Line::is_unflushed)
    }

    /// Notes whether there are such writes, before anybody is answered.
    pub(super) fn note(&mut self, unflushed: bool) {
        if let Some(line) = &mut self.line {
            line.set(unflushed);
        }
    }

    pub(super) fn has_left(&self) -> bool {
        self.has_left
    }
}

impl FileImage {
    /// Nobody will ask for the image any more.
    pub(super) fn close_line(&mut self) {
        if let Some(mut line) = self.leaving.line.take() {
            line.set(false);
        }
    }

    /// Makes durable what was answered, if it has a line that says that something is not.
    pub(super) fn flush_last(&mut self, cx: &mut Cx) {
        if self.leaving.line.as_ref().is_some_and(Line::is_unflushed) {
            let at = cx.now.plus(LEAVE_WITHIN);
            self.leaving.alarm.set(&mut cx.timers, Some(at), token(self.id, LEAVING));
            let ticket = Ticket { disk: self.id.disk, id: Ticket::LAST };
            self.start(cx, ticket, ImageOp::Flush);
        }
    }

    /// The last flush has ended. If it has failed, clients are to be told by the next daemon.
    pub(super) fn flushed_last(&mut self, cx: &mut Cx, result: &ImageResult) {
        self.leaving.alarm.set(&mut cx.timers, None, token(self.id, LEAVING));
        if let (Err(errno), Some(line)) = (result, &self.leaving.line) {
            tracing::error!(
                path = %self.named.path().display(), %errno,
                "the last flush of a disk's image failed: the next flush of each client \
                 fails, too"
            );
            line.is_lost();
        }
    }

    /// It has taken for too long.
    pub(super) fn leave_as_it_is(&mut self) {
        self.leaving.alarm.fired();
        self.leaving.has_left = true;
        tracing::warn!(
            path = %self.named.path().display(),
            "the storage has not flushed a disk's last writes in time; if it is mounted \
             anew before the next daemon starts, the next flush of each client fails"
        );
    }
}
