//! The image's line in its disk's account, and its last flush.
//!
//! What was answered and no flush has covered is safe in the kernel for as long as the file
//! system stays mounted, or the device stays. The next daemon finds in the line whether there
//! was any, and of which mounting. An image that is left in good order is flushed, so that
//! whoever unmounts the file system then has nobody told of a loss. Before that the line says
//! that these writes are in doubt (`doubt`): if the flush does not end in time, it fails
//! unheard, or not.

use sterna_core::Nanos;
use sterna_core::durability::Keeper;

use super::FileImage;
use super::flight::Flight;
use super::outstanding::End;
use crate::account::Line;
use crate::image::doubt::{Doubt, oldest_flush};
use crate::image::{Cx, ImageOp, ImageResult, LEAVE_WITHIN, LEAVING, Ticket, token};
use crate::io::ImageId;
use crate::slab::Slab;
use crate::timer::Alarm;

/// What of an image outlives the daemon.
#[derive(Default)]
pub(super) struct Leaving {
    /// Who keeps what is written, if that is known again.
    keeper: Option<Keeper>,
    line: Option<Line>,
    doubt: Doubt,
    alarm: Alarm,
    /// The last flush takes too long: nobody waits for it.
    has_left: bool,
}

impl Leaving {
    /// An image with this line.
    pub(super) fn with(keeper: Option<Keeper>, line: Option<Line>) -> Leaving {
        Leaving { keeper, line, ..Leaving::default() }
    }

    /// Who keeps what is written, if there is to be a line of that, and is none.
    pub(super) fn lacks_line(&self) -> Option<Keeper> {
        self.keeper.filter(|_| self.line.is_none())
    }

    /// Whether a daemon before has answered writes that no flush has covered.
    pub(super) fn inherits(&self) -> bool {
        self.line.as_ref().is_some_and(Line::is_unflushed)
    }

    /// Something begins that ends with a flush.
    pub(super) fn flush_begins(&mut self, cx: &mut Cx, id: ImageId) {
        if self.line.is_some() {
            self.doubt.flush_begins(cx, id);
        }
    }

    pub(super) fn has_left(&self) -> bool {
        self.has_left
    }
}

impl FileImage {
    /// The line comes after the image: the account could not be made before. A line that says
    /// already that writes are unflushed has that from a daemon before.
    pub(super) fn begin_line(&mut self, cx: &mut Cx, mut line: Line) {
        if line.is_unflushed() {
            self.outstanding.inherits();
        }
        line.set(self.outstanding.is_unflushed());
        self.leaving.line = Some(line);
        // No alarm was set for what is under way.
        self.looks_for_long_flushes(cx);
    }

    /// Nobody will ask for the image any more.
    pub(super) fn close_line(&mut self, cx: &mut Cx) {
        self.leaving.doubt.ends_for_good(cx, self.id);
        if let Some(mut line) = self.leaving.line.take() {
            line.set(false);
        }
    }

    /// Notes what an operation leaves that has ended, before anybody is answered. `lost`:
    /// whether it was a flush that has lost something.
    pub(super) fn note_line(&mut self, cx: &mut Cx, end: End, lost: bool) {
        let Leaving { line: Some(line), doubt, .. } = &mut self.leaving else { return };
        line.set(self.outstanding.is_unflushed());
        match end {
            End::Flushed => doubt.flushed(),
            _ if lost => doubt.is_certain(Some(line)),
            _ => {}
        }
        let flights = &self.flights;
        doubt.ends(cx, self.id, line, || oldest(flights));
    }

    /// A flush may be under way for long.
    pub(super) fn looks_for_long_flushes(&mut self, cx: &mut Cx) {
        let since = oldest(&self.flights);
        let Leaving { line, doubt, .. } = &mut self.leaving;
        doubt.rings(cx, self.id, since, line.as_mut());
    }

    /// Makes durable what was answered, if it has a line that says that something is not. Without
    /// a line nobody could be told if the flush fails: then the next daemon's first flush is to
    /// find that out.
    pub(super) fn flush_last(&mut self, cx: &mut Cx) {
        if self.leaving.line.as_ref().is_some_and(Line::is_unflushed) {
            self.leaving.doubt.is_certain(self.leaving.line.as_mut());
            let at = cx.now.plus(LEAVE_WITHIN);
            self.leaving.alarm.set(&mut cx.timers, Some(at), token(self.id, LEAVING));
            let ticket = Ticket { disk: self.id.disk, id: Ticket::LAST };
            self.start(cx, ticket, ImageOp::Flush);
        }
    }

    /// The last flush has ended. If it has failed, clients are to be told by the next daemon.
    pub(super) fn flushed_last(&mut self, cx: &mut Cx, result: &ImageResult) {
        self.leaving.doubt.ends_for_good(cx, self.id);
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
            "the storage has not flushed a disk's last writes in time: nobody hears whether \
             it still does, so the next flush of each client fails"
        );
    }
}

/// When the oldest of those began that end with a flush.
fn oldest(flights: &Slab<Flight>) -> Option<Nanos> {
    oldest_flush(flights.iter().map(|(_, flight)| (&flight.op, flight.began)))
}
