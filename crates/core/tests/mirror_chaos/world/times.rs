//! When the images were written to, and what a daemon that starts makes of that.
//!
//! The daemon notes when it writes, in the region map; the file system notes when a file
//! changed. Which of what the map says is believed after a kill is the mirror's own rule
//! (`suspicion`), and so is what is believed of a destination that is opened anew.
//!
//! The wall clock is ahead of the mirror's time: while nobody is there, and before others
//! come, time passes. These worlds are kind in one thing: others do not come within
//! `NOTED_LATE` of a write of our own.

use sterna_core::Nanos;
use sterna_core::mirror::{
    Doubt, Found, MemoryMap, NOTED_LATE, Origin, Past, Present, RegionMap, Side, Storage,
    Stored, suspicion, suspicion_of,
};

use super::World;
use crate::mistake::Mistake;

/// How long a daemon is away at least.
const AWAY: Nanos = Nanos::from_secs(1);

/// Where the map, the source and the destination are. Nobody moves them in these worlds.
const MAP: Storage = Storage::Mounted { instance: 1, file: 1 };
const SOURCE: Origin = on(2);
const DESTINATION: Origin = on(3);

const fn on(file: u64) -> Origin {
    Origin { storage: Storage::Mounted { instance: 2, file }, size: 1 }
}

/// When something was written to, by the wall clock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Times {
    /// How far the wall clock is ahead of the mirror's time.
    ahead: Nanos,
    /// Another one after each power loss.
    boot: u8,
    /// The boot of which the map says that it is.
    map_boot: u8,
    /// When the daemon noted a write to either image, and to the destination.
    wrote: Nanos,
    copied: Nanos,
    /// When the file system says that the images changed.
    source_changed: Nanos,
    destination_changed: Nanos,
}

impl World {
    fn wall(&self) -> Nanos {
        self.now.plus(self.times.ahead)
    }

    /// The daemon begins to write to the source.
    pub(super) fn notes_write(&mut self) {
        self.times.wrote = self.wall();
        self.times.source_changed = self.wall();
    }

    /// The daemon begins to write to the destination.
    pub(super) fn notes_copy(&mut self) {
        self.times.wrote = self.wall();
        self.times.copied = self.wall();
        self.times.destination_changed = self.wall();
    }

    /// Others come, after a while, and write to an image.
    pub(super) fn others_change(&mut self, side: Side) {
        self.passes(NOTED_LATE.plus(Nanos(1)));
        match side {
            Side::Source => self.times.source_changed = self.wall(),
            Side::Destination => self.times.destination_changed = self.wall(),
        }
    }

    /// Nobody is there for a while; after a power loss it is another boot.
    pub(super) fn goes_away(&mut self, power: bool) {
        self.passes(AWAY);
        self.times.boot += u8::from(power);
    }

    fn passes(&mut self, time: Nanos) {
        self.times.ahead = self.times.ahead.plus(time);
    }

    /// What is doubted of a destination that is opened anew.
    pub(super) fn doubt_of_destination(&self) -> Doubt {
        let Times { copied, destination_changed, .. } = self.times;
        let found = Found { origin: DESTINATION, changed: Some(destination_changed) };
        let side = Side::Destination;
        let why = suspicion_of(side, &DESTINATION, &found, copied, self.wall());
        why.map_or(Doubt::Unflushed, |why| why.doubt())
    }

    /// The daemon that starts believes of the map that it finds what the rule says, and the
    /// map is of its time from then on.
    pub(super) fn believe(&mut self, map: &mut MemoryMap) {
        let times = self.times;
        let (mut copied, mut changed) = (times.copied, times.destination_changed);
        let mut source_changed = times.source_changed;
        match self.setup.mistake {
            Some(Mistake::WritesWhilePausedHidden) => copied = times.wrote,
            Some(Mistake::ForeignWriteBelieved) => {
                (changed, source_changed) = (times.copied, times.wrote);
            }
            _ => {}
        }
        let past = Past {
            boot: [times.map_boot; 16],
            map: MAP,
            source: SOURCE,
            destination: DESTINATION,
            wrote: times.wrote,
            copied,
        };
        let believed = self.setup.mistake == Some(Mistake::DroppedSourceBelieved);
        let source = match self.setup.source_drops && !believed {
            true => Found::default(), // A server is never known again.
            false => Found { origin: SOURCE, changed: Some(source_changed) },
        };
        let present = Present {
            boot: [times.boot; 16],
            map: MAP,
            source,
            destination: Found { origin: DESTINATION, changed: Some(changed) },
            now: self.wall(),
        };
        match suspicion(Some(&past), &present).map(|why| why.doubt()) {
            None | Some(Doubt::Unflushed) => {}
            Some(Doubt::Equal) => map.replace_synced(Stored::Suspect),
            Some(Doubt::Everything) => map.distrust(),
        }
        self.times.map_boot = self.times.boot;
        (self.times.wrote, self.times.copied) = (self.wall(), self.wall());
    }
}
