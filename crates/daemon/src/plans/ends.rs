//! What became of the moves of a plan that are under way: read from their migrations'
//! records, so that nothing is missed that happened while nobody looked.

use std::time::{Duration, Instant};

use sterna_core::Nanos;
use sterna_core::place::waves::{Action, Event, Fault, Stage};
use sterna_core::schedule::Schedule;

use super::{Heard, State};
use crate::daemon::Daemon;
use crate::local::Local;
use crate::store::{Blame, MigrationRecord, Pause, Step};

/// How long a destination that cannot be reached is waited for: after a restart of the
/// machine, others come up later, and are tried every five seconds.
const REACHED_WITHIN: Duration = Duration::from_secs(12);

/// A move that was to be cancelled and has not ended is told so again after this.
const TELL_AGAIN: Duration = Duration::from_secs(10);

impl Daemon {
    /// Whether moves may begin now, if there are hours for that.
    pub(super) fn hours(&self, state: &State) -> Option<Heard> {
        let window = state.record.design.guard.window.as_ref()?;
        let schedule = window.parse::<Schedule>().ok()?;
        Some(Heard::of(Event::Open(schedule.is_open(Local::now().moment()))))
    }

    /// What a plan's clock shows: the time since the daemon's start.
    pub(super) fn plan_clock(&self) -> Nanos {
        Nanos::from(self.plans.began.elapsed())
    }

    /// What the moves have come to that are under way.
    pub(super) fn look_at_moves(&self, state: &mut State) -> Vec<Heard> {
        let mut heard = Vec::new();
        for at in 0..state.record.moves.len() {
            let stage = state.run.tasks()[at].stage;
            if !matches!(stage, Stage::Running | Stage::Leaving(_)) {
                continue;
            }
            let Some(id) = state.record.moves[at].course.migration else { continue };
            match self.migration_record(id) {
                Ok(migration) => heard.extend(state.look_at(at, stage, &migration)),
                Err(error) => {
                    tracing::warn!(migration = id, %error, "it cannot be looked at");
                }
            }
        }
        heard
    }
}

impl State {
    /// The moves that should have ended by now, and are to be told so again.
    pub(super) fn late_to_leave(&self) -> Vec<Action> {
        let tasks = self.run.tasks().iter().enumerate();
        let leaving = tasks.filter(|(at, task)| {
            matches!(task.stage, Stage::Leaving(_)) && !self.errands.contains(at)
        });
        let late = leaving.filter(|(at, _)| {
            let told = self.told_to_leave.get(at);
            told.is_none_or(|told| told.elapsed() > TELL_AGAIN)
        });
        late.map(|(at, _)| Action::Cancel(at)).collect()
    }

    /// What a migration's record says of a move.
    fn look_at(
        &mut self,
        at: usize,
        stage: Stage,
        migration: &MigrationRecord,
    ) -> Vec<Heard> {
        if migration.step.ended() {
            self.unreachable.remove(&at);
            self.told_to_leave.remove(&at);
            return ended(at, stage, migration);
        }
        let pause = migration.pause.as_ref();
        // Without a hint somebody has asked for it.
        let pause = pause.filter(|pause| pause.hint.is_some() && stage == Stage::Running);
        let Some(pause) = pause else {
            self.unreachable.remove(&at);
            return Vec::new();
        };
        if pause.unreachable {
            let since = self.unreachable.entry(at).or_insert_with(Instant::now);
            if since.elapsed() < REACHED_WITHIN {
                return Vec::new();
            }
        }
        let problem = Some(format!("migration {}: {}", migration.id, pause.reason));
        vec![Heard { problem, ..Heard::of(Event::Stands(at, fault(pause))) }]
    }
}

/// Whether a migration has ended without the disk having moved, and nobody asked for that:
/// the daemon was killed before the copy began.
pub(super) fn was_cut_short(migration: &MigrationRecord) -> bool {
    migration.step == Step::Cancelled && !migration.cancel
}

/// A migration has ended.
fn ended(at: usize, stage: Stage, migration: &MigrationRecord) -> Vec<Heard> {
    let moved = migration.step == Step::Completed;
    let heard = Heard::of(Event::Ended(at, moved));
    if moved {
        let took_s = migration.report.map(|report| report.duration_s);
        return vec![Heard { took_s, ..heard }];
    }
    // Of one that was to end, the reason is known.
    if stage != Stage::Running {
        return vec![heard];
    }
    let note = migration.note.as_ref().map_or(String::new(), |it| format!(": {it}"));
    let problem = Some(format!("migration {} was cancelled{note}", migration.id));
    if was_cut_short(migration) {
        let stands = Heard::of(Event::Stands(at, Fault::Passing));
        return vec![Heard { problem, ..stands }, heard];
    }
    vec![Heard { problem, ..heard }]
}

/// Whose fault it is that a migration stands still.
fn fault(pause: &Pause) -> Fault {
    match pause.blame {
        Blame::Full => Fault::Full,
        Blame::Destination => Fault::Destination,
        Blame::Other => Fault::Passing,
    }
}
