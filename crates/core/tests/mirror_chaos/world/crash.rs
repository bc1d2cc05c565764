//! Kills and power losses.
//!
//! A killed daemon leaves what is under way to chance: each block that has not
//! landed lands or does not. Until it comes back, the destination may forget what it had
//! not been made to keep. At a power loss it does, and the region map's file may be older
//! than the images. Either way the daemon comes back with the map that is left, and with
//! nothing else.

use std::mem;

use sterna_core::mirror::{
    Config, Counted, Event, MemoryMap, Mirror, MirrorEnd, PauseReason, Phase, RegionMap,
    Stored,
};

use super::World;
use super::operation::Effect;
use crate::mistake::Mistake;
use crate::setup::SECTORS;

impl World {
    /// The daemon is killed, or the power fails. The guest reconnects and sends
    /// again what was not answered.
    pub(super) fn crash(&mut self, power: bool) {
        self.check_map();
        let owed = self.mirror.owes_comparison();
        let commit_owes = self.mirror.commit_owes();
        let committed = self.land_by_chance();
        self.guest.is_cut_off();
        let mut map = self.mirror.map().clone();
        if power {
            self.lose_power(&mut map);
        }
        if committed {
            assert!(!power || self.images.is_flushed());
            self.ended = Some(MirrorEnd::Completed);
            if commit_owes && self.setup.mistake != Some(Mistake::OwedForgottenInCommit) {
                self.leaves_what_is_owed(); // The next daemon tells the guest.
            }
            self.guest.gives_up();
            return;
        }
        self.while_away(power);
        self.believe(&mut map);
        if power {
            self.old_map = map.clone();
        }
        self.held_from = None;
        self.sealed = false;
        let found = self.opens();
        let paused = matches!(self.mirror.phase(), Phase::Paused(_));
        self.tries.clear();
        self.resumes += 1; // It knows of no bad sector any more.
        let config = Config { skip_bad: self.skips_bad, ..self.setup.config() };
        if self.is_spoilt() {
            self.notice_others(); // It looks at the length, and when it was written to.
            map.distrust();
        }
        if owed && self.setup.mistake != Some(Mistake::OwedForgottenAtKill) {
            map.distrust(); // The driver notes that.
        }
        let map = Counted::new(map);
        self.mirror = if paused || !found {
            Mirror::new_paused(self.now, config, map, PauseReason::Asked)
        } else {
            Mirror::new(self.now, config, map)
        };
        self.reconnect();
        if !found {
            self.gives_up();
        }
    }

    /// What the map says is so: no block of a region that it calls synced differs.
    fn check_map(&self) {
        let (map, images) = (self.mirror.map(), &self.images);
        let meddled = self.overwritten_in_pause || self.setup.mistake.is_some();
        // What nobody has seen the comparison finds.
        if self.setup.lies > 0 || self.setup.unwatched || meddled {
            return;
        }
        for block in 0..self.setup.blocks {
            let lost = images.is_dropped(block) || self.is_owed(block);
            let spoilt = self.is_spoilt_at(block) || lost;
            let synced = !spoilt && map.get(block / SECTORS) == Stored::Synced;
            let at = block as usize;
            let same = images.source[at] == images.destination[at];
            assert!(same || !synced, "block {block} differs, and the map says synced");
        }
    }

    /// What is under way lands, or does not. Says whether a commit did.
    fn land_by_chance(&mut self) -> bool {
        let mut committed = false;
        for pick in 0..self.operations.len() {
            let operation = &self.operations[pick];
            if operation.may_commit() {
                committed = self.random.one_in(2);
            }
            let effect = &self.operations[pick].effect;
            // What a read finds now, nobody will hear of.
            let lands = !matches!(effect, Effect::Read { .. });
            for block in mem::take(&mut self.operations[pick].left) {
                if lands && self.random.one_in(2) {
                    self.land(pick, block);
                }
            }
        }
        self.operations.clear();
        self.postponed.clear();
        committed
    }

    /// What was not flushed may be gone, and the map's file may be older.
    fn lose_power(&mut self, map: &mut MemoryMap) {
        self.forget(2);
        for region in 0..map.regions() {
            if self.random.one_in(2) {
                map.set(region, self.old_map.get(region));
            }
        }
        self.images.settle();
    }

    /// The guest finds the daemon again, if it is still there itself.
    fn reconnect(&mut self) {
        if self.random.one_in(3) {
            self.guest.is_lost(self.clock);
        } else {
            for request in self.guest.sends_again(self.now) {
                self.tell(Event::Arrived(request));
            }
        }
        self.tell(Event::Tick);
    }
}
