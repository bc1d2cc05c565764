//! How the running moves of a plan are doing, and what became of them: read from their
//! migrations' records, so that nothing is missed that happened while nobody looked.
//!
//! A move that stands still and could go on is not given up: the plan's state machine decides
//! how long it waits. If a datastore is offline and in maintenance, the plan does not wait for
//! it.

use std::time::Duration;

use sterna_core::Nanos;
use sterna_core::schedule::Schedule;
use sterna_os::Local;
use sterna_placement::waves::{Action, Event, Fault, Stage};
use sterna_state::{Blame, MigrationRecord, Pause, Step};

use super::{Heard, State};
use crate::Planner;

/// A move that was to be cancelled and has not ended is told so again after this.
const TELL_AGAIN: Duration = Duration::from_secs(10);

impl Planner {
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
            let is_known = stage.is_under_way() && stage != Stage::Starting;
            if !is_known {
                continue;
            }
            let Some(id) = state.record.moves[at].course.migration else { continue };
            match self.moves.migration_record(id) {
                Ok(migration) if migration.step.ended() => {
                    state.told_to_leave.remove(&at);
                    heard.extend(ended(at, stage, migration));
                }
                // What is being asked of it may change how it is.
                Ok(_) if state.control_requests.contains(&at) => {}
                Ok(migration) => {
                    let how = self.how_it_goes(at, &migration);
                    // Of one that stands still, what is known already would be heard after
                    // it was told to go on, as if it had stopped again.
                    let is_news = !matches!(
                        (how.event, stage),
                        (Event::Stalled(_, now), Stage::Stalled(known)) if now == known
                    );
                    heard.extend(is_news.then_some(how));
                }
                Err(error) => {
                    tracing::warn!(migration = id, %error, "cannot check a migration of \
                                                            a plan");
                }
            }
        }
        heard
    }

    /// How a migration goes that has not ended.
    fn how_it_goes(&self, at: usize, migration: &MigrationRecord) -> Heard {
        let Some(pause) = self.moves.standstill(migration) else {
            return Heard::of(Event::Goes(at));
        };
        // Without a hint somebody has asked for it.
        if pause.hint.is_none() {
            return Heard::of(Event::Held(at));
        }
        let to = self.storage.handle(&migration.to.datastore);
        let is_left = to.is_ok_and(|to| to.is_in_maintenance());
        let problem = Some(format!("migration {}: {}", migration.id, pause.reason));
        Heard { problem, ..Heard::of(standing(at, &pause, is_left)) }
    }
}

impl State {
    /// The moves that should have ended by now, and are to be told so again.
    pub(super) fn late_to_leave(&self) -> Vec<Action> {
        let tasks = self.run.tasks().iter().enumerate();
        let leaving = tasks.filter(|(at, task)| {
            matches!(task.stage, Stage::Leaving(_)) && !self.control_requests.contains(at)
        });
        let late = leaving.filter(|(at, _)| {
            let told = self.told_to_leave.get(at);
            told.is_none_or(|told| told.elapsed() > TELL_AGAIN)
        });
        late.map(|(at, _)| Action::Cancel(at)).collect()
    }
}

/// Whether a migration has ended without the disk having moved, and nobody asked for that:
/// the daemon was killed before the copy began.
pub(super) fn was_cut_short(migration: &MigrationRecord) -> bool {
    migration.step == Step::Cancelled && !migration.cancel
}

/// A migration has ended.
fn ended(at: usize, stage: Stage, migration: MigrationRecord) -> Vec<Heard> {
    let moved = migration.step == Step::Completed;
    let heard = Heard::of(Event::Ended(at, moved));
    if moved {
        let took_s = migration.report.map(|report| report.duration_s);
        return vec![Heard { took_s, ..heard }];
    }
    // Of one that was to end, the reason is known.
    if matches!(stage, Stage::Leaving(_)) {
        return vec![heard];
    }
    let is_cut_short = was_cut_short(&migration);
    let note = migration.note.map_or(String::new(), |it| format!(": {it}"));
    let problem = Some(format!("migration {} was cancelled{note}", migration.id));
    if is_cut_short {
        let stuck = Heard::of(Event::Stuck(at, Fault::Passing));
        return vec![Heard { problem, ..stuck }, heard];
    }
    vec![Heard { problem, ..heard }]
}

/// What it means for a move that its migration stands still; `is_left` says whether nothing
/// new goes to its destination.
fn standing(at: usize, pause: &Pause, is_left: bool) -> Event {
    match pause.blame {
        Blame::Full => Event::Stalled(at, Fault::Full),
        Blame::Destination | Blame::Away if is_left => {
            Event::Stuck(at, Fault::Destination)
        }
        Blame::Untrue => Event::Stuck(at, Fault::Destination),
        Blame::Destination => Event::Stalled(at, Fault::Destination),
        Blame::Away => Event::Stalled(at, Fault::Away),
        Blame::Source => Event::Stalled(at, Fault::Source),
        // It would go on by comparing with an image that may be somebody else's: only a
        // person knows.
        Blame::Other if pause.compare => Event::Stuck(at, Fault::Passing),
        Blame::Other => Event::Stalled(at, Fault::Passing),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paused(blame: Blame, compare: bool) -> Pause {
        Pause { blame, compare, ..Pause::default() }
    }

    #[test]
    fn what_can_go_on_is_not_given_up() {
        let stands = |blame| standing(3, &paused(blame, false), false);
        assert_eq!(stands(Blame::Away), Event::Stalled(3, Fault::Away));
        assert_eq!(stands(Blame::Source), Event::Stalled(3, Fault::Source));
        assert_eq!(stands(Blame::Full), Event::Stalled(3, Fault::Full));
        assert_eq!(stands(Blame::Destination), Event::Stalled(3, Fault::Destination));
        assert_eq!(stands(Blame::Other), Event::Stalled(3, Fault::Passing));
    }

    #[test]
    fn what_nobody_should_wait_for_is() {
        let stuck = |pause, is_left| standing(3, &pause, is_left);
        let away = paused(Blame::Away, false);
        assert_eq!(stuck(away, true), Event::Stuck(3, Fault::Destination));
        let untrue = paused(Blame::Untrue, false);
        assert_eq!(stuck(untrue, false), Event::Stuck(3, Fault::Destination));
        let unknown = paused(Blame::Other, true);
        assert_eq!(stuck(unknown, false), Event::Stuck(3, Fault::Passing));
    }
}
