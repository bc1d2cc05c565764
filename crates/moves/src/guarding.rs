//! Guards at work: a thread that is told of every sample and tells the copiers what
//! they may take.
//!
//! What has to be quick is not here: that a copier stops when its guest comes is the
//! mirror's own doing. Here a tenth of a second is soon enough.
//!
//! **Precedence.** The schedule comes first, then what must hold for the application,
//! then the deadline: a guard that makes the move late says by how much. With a
//! deadline alone, the copy is as slow as the deadline allows.
//!
//! **Failures.** Without samples, copiers keep their rate, but for the burst that each sample
//! allows anew: without samples nothing is copied beside the guest. A daemon that starts
//! learns anew.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use sterna_api::Guard as Asked;
use sterna_core::DiskId;
use sterna_core::guard::{Experience, Observation};
use sterna_core::measure::Window;
use sterna_core::mirror::{Allowance, Control, Phase, Progress};
use sterna_os::{Processors, lock};
use sterna_runtime::tasks::{Feed, Task, feed};
use sterna_telemetry::samples::Tick;

use super::Job;
use super::runner::GuardRunner;
use crate::Moves;

/// Samples that may wait for the thread. It falls behind only if the engine does; then
/// the newest says no more than those that wait.
const WAITING: usize = 8;

/// What disks that are guarded did in a sample.
type Seen = HashMap<DiskId, Window>;

/// Guards moves.
pub fn guarding(moves: &Arc<Moves>) -> Task {
    let (samples, fed) = feed(WAITING);
    let listening = Arc::downgrade(moves);
    moves.storage.samples.listen(move |tick| pass_on(&listening, tick, &samples));
    let mut watches = Watches::default();
    let guard = move |moves: &Arc<Moves>, seen| watches.look(moves, &seen);
    Task::for_each("guards", "guard moves", fed, moves, guard)
}

fn pass_on(moves: &Weak<Moves>, tick: &Tick, samples: &Feed<Seen>) {
    let Some(moves) = moves.upgrade() else { return };
    let guarded = moves.all_jobs().into_iter().filter(|job| job.is_guarded());
    let seen: Seen = guarded.map(|job| (job.disk(), tick.window(job.disk()))).collect();
    if !seen.is_empty() {
        // A sample that finds no room is one of many.
        let _ = samples.give(seen);
    }
}

/// The guards of all moves that have one.
struct Watches {
    posts: HashMap<u64, Watched>,
    processors: Processors,
}

impl Default for Watches {
    fn default() -> Self {
        Watches { posts: HashMap::new(), processors: Processors::watched() }
    }
}

impl Watches {
    fn look(&mut self, moves: &Moves, seen: &Seen) {
        let (jobs, idle) = (moves.all_jobs(), self.processors.idle());
        let is_guarded =
            |id: u64| jobs.iter().any(|job| job.id() == id && job.is_guarded());
        self.posts.retain(|id, _| is_guarded(*id));
        for job in jobs.iter().filter(|job| job.is_guarded()) {
            let Some(window) = seen.get(&job.disk()) else { continue };
            let asked = lock(&job.state).asked.clone();
            let watched = self
                .posts
                .entry(job.id())
                .or_insert_with(|| Watched::new(&asked, &lock(&job.state).begins_with));
            if *watched.runner.asked() != asked {
                // What copying costs is much the same, whatever must hold.
                let known = match watched.runner.experience() {
                    none if none.is_none() => lock(&job.state).begins_with,
                    own => own,
                };
                *watched = Watched::new(&asked, &known);
            }
            moves.guard(job, watched, window, idle);
        }
    }
}

/// A guard and the mirror that it watches.
#[derive(Debug)]
struct Watched {
    runner: GuardRunner,
    /// What the mirror had done at the last sample.
    last: Option<Progress>,
}

impl Watched {
    fn new(asked: &Asked, experience: &Experience) -> Watched {
        Watched { runner: GuardRunner::new(asked, experience), last: None }
    }

    /// Whether this is not the mirror of the last sample.
    fn is_another(&self, now: &Progress) -> bool {
        self.last.as_ref().is_some_and(|last| now.passed < last.passed)
    }

    /// Looks at a sample; gives what the copier may take.
    fn step(
        &mut self,
        window: &Window,
        now: &Progress,
        idle_processors: Option<f64>,
    ) -> Allowance {
        let last = self.last.replace(*now).unwrap_or(*now);
        let seen = Observation {
            guest: window,
            copied: now.passed.0.saturating_sub(last.passed.0),
            idle: now.guest_idle.since(last.guest_idle),
            mirror_wait: now.mirror_wait.since(last.mirror_wait),
            mirrored_writes: now.mirrored_writes.saturating_sub(last.mirrored_writes),
            idle_processors,
        };
        // First it is copied, and then compared.
        let compare = now.verified.map_or(0, |it| now.total.0.saturating_sub(it.0));
        let left = now.total.0.saturating_sub(now.synced.0) + compare;
        self.runner.step(&seen, left)
    }
}

impl Moves {
    /// One sample of one migration, with this part of the processors idle, if it is known.
    fn guard(
        &self,
        job: &Job,
        watched: &mut Watched,
        window: &Window,
        idle: Option<f64>,
    ) {
        let running = job.running();
        let progress = running.then(|| self.storage.engine.progress(job.engine_id()));
        let mut told = lock(&job.leave);
        if lock(&job.state).asked != *watched.runner.asked() {
            return; // Something else is asked for by now.
        }
        if !running {
            *told = None;
        }
        let is_at_work =
            |it: &Progress| matches!(it.phase, Phase::Copying | Phase::Verifying);
        let progress = progress.and_then(Result::ok).filter(is_at_work);
        let Some(progress) = progress else {
            watched.runner.rest();
            lock(&job.state).guarding = None;
            return;
        };
        if watched.is_another(&progress) {
            *told = None;
        }
        let allowance = watched.step(window, &progress, idle);
        if *told != Some(allowance) || allowance.burst().is_some() {
            // A migration that ends at this moment needs no guard.
            if self
                .storage
                .engine
                .control(job.engine_id(), Control::Allow(allowance))
                .is_err()
            {
                return;
            }
            *told = Some(allowance);
        }
        let fares = watched.runner.report(job.id, allowance);
        let mut state = lock(&job.state);
        state.guarding = Some(fares);
        // Comparing costs the guest something else, and is not what comes first.
        if progress.phase == Phase::Copying {
            state.experience = watched.runner.experience();
        }
    }

    /// Takes note of what must hold from now on. A copier for which nothing must goes on
    /// unguarded; else the next sample says what it may take.
    pub(super) fn set_guard(&self, job: &Job, asked: Asked) {
        let mut told = lock(&job.leave);
        let is_free = asked.is_none();
        lock(&job.state).asked = asked;
        if is_free {
            *told = None;
            lock(&job.state).guarding = None;
            // One that does not run needs no leave.
            let free = Control::Allow(Allowance::default());
            let _ = self.storage.engine.control(job.engine_id(), free);
        }
    }
}

impl Job {
    /// Whether something must hold while it runs.
    fn is_guarded(&self) -> bool {
        !lock(&self.state).asked.is_none()
    }
}
