//! What copies of others take of a plan's datastores: of other plans, and migrations that
//! people have begun, of disks of ours and of VMs.
//!
//! They count where they are, and at all datastores on the same disk, or of the same server
//! (the engine's `Location::backing`). What stands still
//! copies nothing.

use std::collections::HashSet;

use sterna_os::lock;
use sterna_placement::waves::Others;
use sterna_state::Step;

use super::Live;
use crate::Planner;

/// A copy that is under way, or is just beginning.
struct Copy {
    ends: [String; 2],
    rate: f64,
}

impl Planner {
    /// By datastore of a plan: what others copy there. Its own lock must be free, as those
    /// of the other plans are taken, one at a time.
    pub(super) fn others_of(&self, live: &Live) -> Vec<Others> {
        let copies = self.copies_beside(live);
        let at = |name: &str| {
            let is_there = |it: &&Copy| it.ends.iter().any(|at| self.is_on_one(at, name));
            let there = copies.iter().filter(is_there);
            there.fold(Others::default(), |sum, it| Others {
                copies: sum.copies + 1,
                rate: sum.rate + it.rate,
            })
        };
        let names: Vec<String> = {
            let state = lock(&live.state);
            state.record.design.ends.iter().map(|end| end.name.clone()).collect()
        };
        names.iter().map(|name| at(name)).collect()
    }

    /// All copies but those of this plan.
    fn copies_beside(&self, live: &Live) -> Vec<Copy> {
        let (mut copies, mut of_plans) = (Vec::new(), HashSet::new());
        for plan in self.live_plans() {
            let state = lock(&plan.state);
            let ends = &state.record.design.ends;
            let expected: HashSet<usize> = state.run.expected().collect();
            let moves = state.record.moves.iter().zip(state.run.tasks());
            for (at, (one, task)) in moves.enumerate() {
                of_plans.extend(one.course.migration);
                let has_place = task.stage.takes_a_place() || expected.contains(&at);
                if plan.id != live.id && has_place {
                    let ends = [one.design.from, task.to].map(|at| ends[at].name.clone());
                    copies.push(Copy { ends, rate: one.design.rate });
                }
            }
        }
        let jobs =
            self.moves.all_jobs().into_iter().filter(|job| !of_plans.contains(&job.id()));
        copies.extend(jobs.filter_map(|job| {
            let one = self.moves.migration_record(job.id()).ok()?;
            let goes = one.step == Step::Copying && self.moves.standstill(&one).is_none();
            let predicted = one.forecast.as_ref().and_then(|it| it.predicted);
            goes.then(|| Copy {
                ends: [one.from.datastore.clone(), one.to.datastore.clone()],
                rate: predicted.map_or(0.0, |it| it.rate),
            })
        }));
        let by_qemu = self.storage.store.open_vm_moves().unwrap_or_default().into_iter();
        let by_qemu = by_qemu.filter(|one| one.step == Step::Copying && !one.paused);
        copies.extend(by_qemu.map(|one| Copy { ends: [one.from, one.to], rate: 0.0 }));
        copies
    }

    /// Whether two datastores are one, or on the same disk, or of the same server.
    fn is_on_one(&self, one: &str, other: &str) -> bool {
        let backing = |name: &str| self.storage.handle(name).ok()?.backing();
        one == other || backing(one).is_some_and(|it| Some(it) == backing(other))
    }
}
