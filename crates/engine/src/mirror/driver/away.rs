//! A destination that has failed: let go of, and opened anew.
//!
//! A migration that pauses because its destination fails, is lost, hangs or is astray closes
//! the image as soon as nothing of it is in flight: a file system whose files are open cannot
//! be unmounted, and what is open of one that was is of no use. The daemon, which hears of
//! the pause, first asks what others have done to the file: closing it looks like one of
//! them ([`MirrorDriver::leave`]). Going on means opening it anew, so the daemon does that
//! first ([`MirrorDriver::come_back`]). Where something is still in flight, the image stays,
//! and going on means going on with it.
//!
//! Swapping images takes nothing that the mirror does not have anyway: what is in flight
//! on the old one is still answered, and until then its regions are busy.
//!
//! What a server's image is known by is kept meanwhile: the next one carries nothing before
//! it has shown that it is the same export.
//!
//! While the image is closed others may write to it. When it was last written to from here is
//! remembered, so that such a write is seen by the file's own time; where there is none (a
//! server, a device), and for a daemon that is restarted meanwhile, nothing of it is believed.

use sterna_core::Nanos;
use sterna_core::mirror::{Doubt, Event, Found, Notice, Origin, Side, suspicion_of};

use super::MirrorDriver;
use crate::disk::{Core, Placed};
use crate::image::{Cx, Image, Memory};
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
    /// Nobody has to be asked any more before it is let go of.
    may_leave: bool,
    /// It was let go of.
    left: bool,
    /// What the image is known by that was let go of.
    memory: Option<Memory>,
    /// When it was last written to (since 1970).
    copied: Nanos,
    /// When it was last noted that something may have been written to either image, and to
    /// this one.
    noted: [Nanos; 2],
    /// It is noted that the two sides are still to be compared.
    owes: bool,
}

impl Away {
    pub(super) fn new(origin: Origin) -> Away {
        let (copied, noted) = (origin::now(), [Nanos(0); 2]);
        Away {
            origin,
            astray: false,
            may_leave: false,
            left: false,
            memory: None,
            copied,
            noted,
            owes: false,
        }
    }

    /// The mirror has paused, or goes on.
    pub(super) fn hear(&mut self, notice: &Notice) {
        match notice {
            Notice::Paused(reason) => {
                self.astray = reason.is_destinations();
            }
            Notice::Resumed => (self.astray, self.may_leave) = (false, false),
            _ => {}
        }
    }

    /// What is not to be believed of what is found in its place. Of a server nothing is:
    /// while nobody is connected, an older state of its volume may be put back, or another
    /// client may write there.
    fn doubt(&self, found: &Found) -> Doubt {
        let (side, was) = (Side::Destination, &self.origin);
        let suspicion = suspicion_of(side, was, found, self.copied, origin::now());
        suspicion.map_or(Doubt::Unflushed, |suspicion| {
            tracing::info!(%suspicion, "Sterna compares what was copied");
            suspicion.doubt()
        })
    }
}

impl MirrorDriver {
    /// Whether the destination was let go of, so that going on means opening it anew. If it
    /// was not, it is not any more.
    pub(crate) fn has_left(&mut self) -> bool {
        self.away.may_leave = false;
        self.away.left
    }

    /// Whether it has the destination open, or may have it again without opening it anew.
    pub(crate) fn holds_destination(&self) -> bool {
        !self.away.left
    }

    /// Takes the destination's image, which was opened anew and is what was `found`.
    pub(crate) fn come_back(
        &mut self,
        core: &mut Core,
        cx: &mut Cx,
        mut placed: Placed,
        found: &Found,
    ) {
        if !std::mem::take(&mut self.away.left) {
            return;
        }
        self.away.astray = false; // What it stood still for is put right.
        if let Some(memory) = self.away.memory.take() {
            placed.image.recall(memory);
        }
        self.destination = core.add_image(cx, placed);
        let doubt = self.away.doubt(found);
        self.away.origin = found.origin;
        self.tell(core, cx, Event::Doubted(doubt));
        self.tell(core, cx, Event::DestinationUnfit(None));
        let is = core.is_in_reach(self.destination);
        self.tell(core, cx, Event::DestinationInReach(is));
        self.mirror.map().note_destination(found.origin);
        self.away.owes = false;
        self.note_what_is_owed();
        self.note_copy(cx); // Opening it may have changed it.
    }

    /// What others have done to the destination is known: it may be let go of, now or when
    /// nothing of it is in flight any more. Says whether the migration stands still for it.
    pub(crate) fn leave(&mut self, core: &mut Core, cx: &mut Cx) -> bool {
        self.away.may_leave = self.away.astray;
        self.leave_if_astray(core, cx);
        self.away.astray
    }

    /// Lets go of a destination that the migration stands still for.
    pub(super) fn leave_if_astray(&mut self, core: &mut Core, cx: &mut Cx) {
        let Away { astray, may_leave, left, .. } = self.away;
        if !astray || !may_leave || left || self.ended.is_some() {
            return;
        }
        let quiet = core.image(self.destination).is_some_and(|it| it.in_flight() == 0);
        if quiet && self.jobs.is_idle() {
            self.away.left = true;
            let image = core.image(self.destination);
            self.away.memory = image.and_then(Image::memory);
            // Nobody watches any more what others do to it.
            self.mirror.map().note_destination(Origin { size: 0, ..self.away.origin });
            core.close_image(cx, self.destination);
            let migration = self.id.0;
            tracing::info!(
                migration,
                "the destination is closed until the migration continues"
            );
        }
    }

    /// Notes in the map's file whether the two sides are still to be compared: a daemon after
    /// this one does so if it cannot tell which destination that was.
    pub(super) fn note_what_is_owed(&mut self) {
        let owes = self.mirror.owes_comparison();
        if std::mem::replace(&mut self.away.owes, owes) != owes && !self.away.left {
            let origin = match owes {
                true => Origin { size: 0, ..self.away.origin },
                false => self.away.origin,
            };
            self.mirror.map().note_destination(origin);
        }
    }

    /// Notes in the map's file that something may be written to either image now.
    pub(super) fn note_writes(&mut self, core: &Core, cx: &Cx) {
        let destination = core.image(self.destination);
        if destination.is_some_and(|image| image.in_flight() > 0) {
            self.note_copy(cx);
        }
        if cx.now.since(self.away.noted[0]) >= NOTED_EVERY {
            self.away.noted[0] = cx.now;
            self.mirror.map().note_write(origin::now());
        }
    }

    /// Notes that something may be written to the destination now.
    pub(super) fn note_copy(&mut self, cx: &Cx) {
        if cx.now.since(self.away.noted[1]) >= NOTED_EVERY {
            self.away.noted[1] = cx.now;
            self.away.copied = origin::now();
            self.mirror.map().note_copy(self.away.copied);
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
        assert_eq!(away.doubt(&found), Doubt::Everything);
    }
}
