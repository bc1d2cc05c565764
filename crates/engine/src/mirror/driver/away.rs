//! A destination that has failed: let go of, and opened anew.
//!
//! A migration that pauses because its destination fails, is lost or hangs closes the
//! image as soon as nothing of it is in flight: a file system whose files are open cannot
//! be unmounted, and what is open of one that was is of no use. Going on means opening it
//! anew, so the daemon does that first ([`MirrorDriver::come_back`]). Where something is
//! still in flight, the image stays, and going on means going on with it.
//!
//! Swapping images takes nothing that the mirror does not have anyway: what is in flight
//! on the old one is still answered, and until then its regions are busy.
//!
//! While the image is closed others may write to it. When it was left is remembered, so
//! that such a write is seen by the file's own time; where there is none (a server, a
//! device), and for a daemon that is restarted meanwhile, nothing of it is believed.

use sterna_core::Nanos;
use sterna_core::mirror::{Doubt, Event, Found, Notice, Origin, Side, suspicion_of};

use super::MirrorDriver;
use crate::disk::{Core, Placed};
use crate::image::Cx;
use crate::origin;

/// How often it is noted that something may have been written: often enough that a write
/// is not taken for somebody else's (`core`'s `NOTED_LATE`), seldom enough to cost nothing.
const NOTED_EVERY: Nanos = Nanos::from_millis(10);

/// What is known of the destination beside its image.
#[derive(Debug)]
pub(super) struct Away {
    /// What it was known by when it was opened.
    origin: Origin,
    /// The migration stands still because of it.
    astray: bool,
    /// When it was let go of (since 1970); nothing while it is open.
    left: Option<Nanos>,
    /// When it was last noted that something may have been written.
    noted: Nanos,
}

impl Away {
    pub(super) fn new(origin: Origin) -> Away {
        Away { origin, astray: false, left: None, noted: Nanos(0) }
    }

    /// The mirror has paused, or goes on.
    pub(super) fn hear(&mut self, notice: &Notice) {
        match notice {
            Notice::Paused(reason) => {
                self.astray = reason.is_destinations();
            }
            Notice::Resumed => self.astray = false,
            _ => {}
        }
    }

    /// What is not to be believed of what is found in its place. Of a server nothing is:
    /// while nobody is connected, an older state of its volume may be put back, or another
    /// client may write there.
    fn doubt(&self, found: &Found, left: Nanos) -> Doubt {
        let (side, was) = (Side::Destination, &self.origin);
        let suspicion = suspicion_of(side, was, found, left, origin::now());
        suspicion.map_or(Doubt::Unflushed, |suspicion| {
            tracing::info!(%suspicion, "what was copied is compared");
            suspicion.doubt()
        })
    }
}

impl MirrorDriver {
    /// Whether the destination was let go of, so that going on means opening it anew.
    pub(crate) fn has_left(&self) -> bool {
        self.away.left.is_some()
    }

    /// Takes the destination's image, which was opened anew and is what was `found`.
    pub(crate) fn come_back(
        &mut self,
        core: &mut Core,
        cx: &mut Cx,
        placed: Placed,
        found: &Found,
    ) {
        let Some(left) = self.away.left.take() else { return };
        self.away.astray = false; // What it stood still for is put right.
        self.destination = core.add_image(cx, placed);
        let doubt = self.away.doubt(found, left);
        self.away.origin = found.origin;
        self.tell(core, cx, Event::Doubted(doubt));
        self.tell(core, cx, Event::DestinationInReach(true));
        self.mirror.map().note_destination(found.origin);
    }

    /// Lets go of a destination that the migration stands still for.
    pub(super) fn leave_if_astray(&mut self, core: &mut Core, cx: &mut Cx) {
        if !self.away.astray || self.has_left() || self.ended.is_some() {
            return;
        }
        let quiet = core.image(self.destination).is_some_and(|it| it.in_flight() == 0);
        if quiet && self.jobs.is_idle() {
            self.away.left = Some(origin::now());
            // Writes to the source are noted on; after a kill they would hide somebody
            // else's to this one.
            self.mirror.map().note_destination(Origin { size: 0, ..self.away.origin });
            core.close_image(cx, self.destination);
            let migration = self.id.0;
            tracing::info!(migration, "the destination is closed until it goes on");
        }
    }

    /// Notes in the map's file that something may be written to either image now.
    pub(super) fn note_writes(&mut self, cx: &Cx) {
        if cx.now.since(self.away.noted) >= NOTED_EVERY {
            self.away.noted = cx.now;
            self.mirror.map().note_write(origin::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_server_that_is_opened_anew_nothing_is_believed() {
        let away = Away::new(Origin::default());
        let found = Found::default();
        assert_eq!(away.doubt(&found, origin::now()), Doubt::Everything);
    }
}
