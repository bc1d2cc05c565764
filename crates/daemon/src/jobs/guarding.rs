//! The guards of migrations at work: a thread that looks ten times a second at what the
//! application and the copier did, asks `core` what the copier may take, and tells the
//! mirror.
//!
//! The mirror yields by itself, request by request, within what it was told; so a
//! thread that is late costs accuracy and nothing else. It is fed by the samples and
//! never asks the store, so that it goes on where the state directory hangs.
//!
//! A guard learns anew after a restart of the daemon, and after each change of what is
//! asked. A mirror begins with what a guard gives before it has seen anything, not
//! with all: so no restart is felt by the application.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Weak};
use std::thread;

use sterna_api::{Guard as Asked, GuardState, Guarding};
use sterna_core::Nanos;
use sterna_core::guard::{Aim, Guard, Observation, Standing, Way};
use sterna_core::measure::Window;
use sterna_core::mirror::{Allowance, Control, Phase, Progress};
use sterna_core::schedule::Schedule;

use super::{Job, Launched};
use crate::clock;
use crate::daemon::{Daemon, lock};
use crate::local::Local;
use crate::samples::Tick;

/// Windows that may wait for the thread: it only falls behind if a reactor does, and
/// then for no longer than this is a second.
const WAITING: usize = 10;

/// Nothing is copied: the schedule is closed.
const CLOSED: Allowance = Allowance { busy: Some(0), idle: Some(0) };

/// What the disks of guarded migrations did in a window.
type Windows = Vec<(Arc<Job>, Window)>;

/// Starts the thread. It ends with the daemon.
pub(crate) fn start(daemon: &Arc<Daemon>) -> std::io::Result<()> {
    let (sender, ticks) = sync_channel(WAITING);
    let gatherer = Arc::downgrade(daemon);
    daemon.samples.listen(move |tick| gather(&gatherer, tick, &sender));
    let daemon = Arc::downgrade(daemon);
    let thread = thread::Builder::new().name("sterna-guard".into());
    thread.spawn(move || guard_for_ever(&daemon, &ticks))?;
    Ok(())
}

fn gather(daemon: &Weak<Daemon>, tick: &Tick, ticks: &SyncSender<Windows>) {
    let Some(daemon) = daemon.upgrade() else { return };
    let jobs = daemon.all_jobs().into_iter();
    let windows: Windows =
        jobs.map(|job| (job.clone(), tick.window(job.disk()))).collect();
    // Nobody to send it to is the end of the daemon.
    if let Err(TrySendError::Full(_)) = ticks.try_send(windows) {
        tracing::warn!("the guards fall behind: a window is left out");
    }
}

fn guard_for_ever(daemon: &Weak<Daemon>, ticks: &Receiver<Windows>) {
    let mut all: BTreeMap<u64, AtWork> = BTreeMap::new();
    while let Ok(windows) = ticks.recv() {
        let Some(daemon) = daemon.upgrade() else { return };
        all.retain(|id, _| windows.iter().any(|(job, _)| job.id() == *id));
        for (job, window) in windows {
            let launched = lock(&job.state).launched.clone();
            let Some(launched) = launched else {
                all.remove(&job.id());
                continue;
            };
            let one = all.entry(job.id()).or_insert_with(|| AtWork::new(&launched));
            if one.launched != launched {
                one.change(&launched);
            }
            one.step(&daemon, &job, &window);
        }
    }
}

/// What the copier may take before a guard has seen anything.
pub(super) fn first(asked: &Asked) -> Allowance {
    let closed = schedule(asked).is_some_and(|it| !it.is_open(Local::now().moment()));
    match aim(asked) {
        _ if closed => CLOSED,
        aim if aim.is_none() && asked.finish_by.is_none() => Allowance::default(),
        _ => Guard::FIRST,
    }
}

fn aim(asked: &Asked) -> Aim {
    Aim {
        keep: asked.keep,
        p99: asked.p99_us.map(Nanos::from_micros),
        idle_only: asked.idle_only,
    }
}

fn schedule(asked: &Asked) -> Option<Schedule> {
    // What was stored was checked when it was asked for.
    asked.window.as_ref().and_then(|text| text.parse().ok())
}

/// The guard of one migration.
#[derive(Debug)]
struct AtWork {
    launched: Launched,
    schedule: Option<Schedule>,
    guard: Guard,
    /// What the mirror has been told, as far as that is known.
    told: Option<Allowance>,
    /// What the mirror had done at the end of the last window.
    before: Option<Progress>,
    state: Option<GuardState>,
}

impl AtWork {
    fn new(launched: &Launched) -> AtWork {
        AtWork {
            launched: launched.clone(),
            schedule: schedule(&launched.asked),
            guard: Guard::new(aim(&launched.asked)),
            told: None,
            before: None,
            state: None,
        }
    }

    /// Something else is asked for, or there is another mirror: which has been told
    /// nothing, and counts from zero.
    fn change(&mut self, launched: &Launched) {
        if self.launched.asked == launched.asked {
            (self.told, self.before) = (None, None);
            self.launched = launched.clone();
        } else {
            *self = AtWork::new(launched);
        }
    }

    fn step(&mut self, daemon: &Daemon, job: &Job, window: &Window) {
        // A mirror that has just ended is not an error here.
        let Ok(now) = daemon.engine.progress(job.engine_id()) else { return };
        let before = self.before.replace(now);
        let asked = &self.launched.asked;
        let works = matches!(now.phase, Phase::Copying | Phase::Verifying);
        let closed =
            self.schedule.as_ref().is_some_and(|it| !it.is_open(Local::now().moment()));
        let allowance = if closed {
            CLOSED
        } else if asked.finish_by.is_none() && aim(asked).is_none() {
            Allowance::default()
        } else if let Some(before) = before.filter(|_| works) {
            let seen = Observation {
                guest: window,
                copied: now.passed.0.saturating_sub(before.passed.0),
                gone: now.guest_gone.since(before.guest_gone),
            };
            self.guard.step(&seen, way(asked, &now))
        } else {
            self.told.unwrap_or(Guard::FIRST)
        };
        if self.told != Some(allowance) {
            let told = daemon.engine.control(job.engine_id(), Control::Allow(allowance));
            self.told = told.ok().map(|()| allowance);
        }
        let state = match (works, closed) {
            (false, _) => None,
            (true, true) => Some(GuardState::Closed),
            (true, false) => Some(state_of(self.guard.standing())),
        };
        if self.state != state
            && let Some(state) = state
        {
            let reason = self.reason();
            tracing::info!(migration = job.id(), reason, "guard: {state}");
        }
        self.state = state;
        lock(&job.state).guarding = (!asked.is_none()).then(|| self.view(allowance));
    }

    fn view(&self, allowance: Allowance) -> Guarding {
        let kept = self.guard.kept();
        Guarding {
            asked: self.launched.asked.clone(),
            state: self.state,
            reason: self.reason(),
            baseline_iops: kept.map(|(iops, _)| iops),
            kept: kept.map(|(_, part)| part),
            p99_us: self.guard.p99().map(|p99| p99.0 / 1000),
            allowance: if allowance == CLOSED { Some(0) } else { self.guard.busy_rate() },
            late_s: self.guard.late().map(Nanos::as_secs_f64),
        }
    }

    fn reason(&self) -> Option<String> {
        if let Standing::Unreachable(why) = self.guard.standing() {
            return Some(why.to_string());
        }
        let would = self.guard.in_time_would_keep()?;
        Some(format!("in time it would keep {:.0}%", would * 100.0))
    }
}

fn state_of(standing: Standing) -> GuardState {
    match standing {
        Standing::Learning => GuardState::Learning,
        Standing::Holding => GuardState::Holding,
        Standing::Converging => GuardState::Converging,
        Standing::Unreachable(_) => GuardState::Unreachable,
    }
}

/// How far it is to the end: what is to be copied, and then to be compared.
fn way(asked: &Asked, now: &Progress) -> Way {
    let copy = now.total.0.saturating_sub(now.synced.0);
    let compare = now.verified.map_or(0, |it| now.total.0.saturating_sub(it.0));
    let time =
        asked.finish_by.map(|by| Nanos::from_secs(by.saturating_sub(clock::now())));
    Way { left: copy + compare, time }
}
