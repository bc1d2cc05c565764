//! A map that cannot be kept for the moment of a crash.

use std::cell::Cell;
use std::rc::Rc;

use sterna_core::mirror::{
    Action, Control, Counted, Event, MemoryMap, Mirror, Notice, PauseReason, Phase,
    RegionMap, Request, RequestId, RequestKind, Stored,
};
use sterna_core::{ByteRange, Nanos};

use crate::bench::{Bench, REGION, REGIONS, source};

/// Whether its file has room, and whether it lacks something since it had none.
#[derive(Default)]
struct File {
    full: Cell<bool>,
    lost: Cell<bool>,
}

struct Fragile(MemoryMap, Rc<File>);

impl RegionMap for Fragile {
    fn regions(&self) -> u64 {
        self.0.regions()
    }

    fn get(&self, region: u64) -> Stored {
        self.0.get(region)
    }

    fn set(&mut self, region: u64, stored: Stored) {
        self.0.set(region, stored);
        self.1.lost.set(self.1.lost.get() || self.1.full.get());
    }

    fn is_kept(&self) -> bool {
        !self.1.lost.get()
    }

    fn keep_again(&mut self) {
        self.1.lost.set(self.1.full.get());
    }
}

#[test]
fn a_map_that_cannot_be_kept_pauses_until_there_is_room_for_it() {
    let file = Rc::new(File::default());
    let map = Fragile(MemoryMap::new(REGIONS, Stored::Synced), file.clone());
    let mut mirror = Mirror::new(Nanos(0), Bench::config(), Counted::new(map));
    let mut tell = |event| {
        let mut asked = Vec::new();
        mirror.handle(Nanos(1), event, &mut asked);
        (asked, mirror.progress().phase)
    };
    let write = |id| {
        let range = ByteRange::new((id % REGIONS) * REGION, 4096);
        Event::Arrived(Request { id: RequestId(id), kind: RequestKind::Write, range })
    };
    tell(Event::Tick);
    file.full.set(true);
    let paused = Phase::Paused(PauseReason::RegionMap);
    let (asked, phase) = tell(write(1));
    assert!(asked.contains(&Action::Notice(Notice::Paused(PauseReason::RegionMap))));
    assert_eq!(phase, paused);
    assert_eq!(tell(write(2)).0, [source(2)], "the guest goes on at the source");
    assert_eq!(tell(Event::Control(Control::Resume)).1, paused, "there is no room yet");
    file.full.set(false);
    assert_ne!(tell(Event::Control(Control::Resume)).1, paused);
}
