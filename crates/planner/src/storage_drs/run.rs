//! The thread that looks, and acts.
//!
//! `core` says when to look, what has been over a bound for long enough, and which moves
//! may begin at once; here it is fed, and what it says is done. A look that fails (the
//! state cannot be read) counts as one in which nothing was over a bound, and is said.
//!
//! A move begins as an operator's does (`begin`). What is recorded of it comes after that:
//! a daemon that is killed in between takes it for somebody else's, and leaves the disk
//! alone just as long.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use sterna_api::{Automation, Result, StorageDrsRun, StorageDrsSettings};
use sterna_core::Nanos;
use sterna_os::{clock, lock};
use sterna_placement::storage::{Bounds, Cycle, Due, Over, advise_where};
use sterna_runtime::tasks::Task;

use super::asked;
use super::scene::StorageDrsScene;
use super::settings::bounds_of;
use crate::Planner;

/// How often it is asked what is due.
const TICK: Duration = Duration::from_secs(1);

/// So many disks are moved at once: each copy takes something from two datastores, and
/// what one move has brought should be seen before many others begin.
const AT_ONCE: usize = 2;

/// Balances datastores.
pub fn balancing(planner: &Arc<Planner>) -> Task {
    let balance = |planner: &Arc<Planner>| {
        planner.record_kept();
        planner.call_off();
        planner.measure_moves();
        planner.balance()
    };
    Task::every("storage-drs", "balance the datastores", TICK, planner, balance)
}

impl Planner {
    /// Does what is due.
    fn balance(self: &Arc<Self>) -> Result<()> {
        let settings = self.balancer.settings();
        if settings.automation == Automation::Manual {
            return Ok(());
        }
        let (asked, now) = (asked(&settings), self.balancer.now());
        let (bounds, window) = (bounds_of(&asked), seconds(settings.window_s));
        let due = {
            let mut cycle = lock(&self.balancer.cycle);
            let every = seconds(settings.every_s);
            // What was watched already need not be watched again.
            let new = || Cycle::new(now, every, window.since(now));
            cycle.get_or_insert_with(new).due(now)
        };
        match due {
            Due::Nothing => Ok(()),
            Due::Room => {
                let full = self.full_datastores(&bounds);
                if !self.in_cycle(|cycle| cycle.roomed(now, &full)) {
                    return Ok(());
                }
                let looked = self.scene(window);
                match &looked {
                    Ok(scene) => self.act(&settings, scene, &bounds),
                    Err(_) => {
                        lock(&self.balancer.cycle).as_mut().map(Cycle::roomed_in_vain);
                    }
                }
                looked.map(drop)
            }
            Due::Look => {
                let looked = self.scene(window);
                let over =
                    looked.as_ref().map_or(Vec::new(), |scene| scene.over(&bounds));
                let acts = self.in_cycle(|cycle| cycle.looked(now, &over));
                let scene = looked?;
                if acts {
                    self.act(&settings, &scene, &bounds);
                }
                Ok(())
            }
        }
    }

    /// Asks the cycle; of one that is not there any more nothing is wanted.
    fn in_cycle(&self, ask: impl FnOnce(&mut Cycle<String>) -> bool) -> bool {
        lock(&self.balancer.cycle).as_mut().is_some_and(ask)
    }

    /// The datastores that are too full now.
    fn full_datastores(&self, bounds: &Bounds) -> Vec<String> {
        let handles = self.storage.look_at_handles().into_iter();
        let full = handles.filter(|(handle, found)| {
            let taken = found.as_ref().ok().and_then(|space| handle.taken(space));
            taken.is_some_and(|taken| taken > bounds.space)
        });
        full.map(|(handle, _)| handle.name().to_owned()).collect()
    }

    /// Asks `core` what should move, and begins it if it is told to.
    fn act(
        self: &Arc<Self>,
        settings: &StorageDrsSettings,
        scene: &StorageDrsScene,
        bounds: &Bounds,
    ) {
        let held = |name: &String, over| {
            lock(&self.balancer.cycle).as_ref().is_some_and(|it| it.is_held(name, over))
        };
        let advice = advise_where(&scene.inventory, bounds, |at, over| {
            held(&scene.names[at], over)
        });
        // Some stay for several reasons.
        let staying: HashSet<usize> = advice.refused.iter().map(|one| one.disk).collect();
        let mut run = StorageDrsRun {
            at: clock::now(),
            held: Vec::new(),
            recommended: advice.moves.len() as u64,
            begun: Vec::new(),
            failed: Vec::new(),
            staying: staying.len() as u64,
        };
        for name in &scene.names {
            if [Over::Space, Over::Latency].into_iter().any(|over| held(name, over)) {
                run.held.push(name.clone());
            }
        }
        if settings.automation == Automation::Full {
            let slots = AT_ONCE.saturating_sub(self.under_way());
            let begins = advice.at_once(&scene.inventory, slots, &scene.left);
            for step in begins.chunk_by(|one, other| one.step == other.step) {
                // Somebody has just said something else.
                let is_wanted = self.balancer.settings() == *settings;
                if !(is_wanted && self.begin_step(settings, scene, step, &mut run)) {
                    break;
                }
            }
        }
        *lock(&self.balancer.last) = Some(run);
    }

    /// How many of its moves have not ended.
    fn under_way(&self) -> usize {
        let kept = lock(&self.balancer.kept);
        kept.moves.keys().filter(|id| self.moves.is_under_way(**id)).count()
    }
}

/// So many seconds.
pub(super) fn seconds(count: f64) -> Nanos {
    Nanos((count.max(0.0) * 1e9) as u64)
}
