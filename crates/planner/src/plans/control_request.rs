//! What a plan asks of its migrations that are under way: to end, to stand still, to go on.
//!
//! Each may hang with its datastore. So each has a thread of its own, and nobody who holds
//! a plan's lock waits for it.
//!
//! **One at a time.** Of a move one thing is asked at a time, however long that hangs; nothing
//! else is asked meanwhile. When the request has ended, the plan's state machine hears how the
//! migration is (`ends`), compares that with what it wants, and asks again if they differ. So
//! the last wish wins, and what failed is tried again.

use std::sync::Arc;
use std::thread;
use std::time::Instant;

use sterna_api::ResumeMigration;
use sterna_os::lock;
use sterna_placement::waves::Wish;

use super::{Live, State};
use crate::Planner;

/// What is asked of a migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ControlRequest {
    Cancel,
    Pause,
    Resume,
}

impl ControlRequest {
    /// Whether that is still wanted.
    fn fits(self, wish: Wish) -> bool {
        match self {
            ControlRequest::Cancel => true,
            ControlRequest::Pause => wish == Wish::Pause,
            ControlRequest::Resume => wish == Wish::Run,
        }
    }
}

/// Something is being asked of a move; until this is dropped.
struct Out {
    live: Arc<Live>,
    at: usize,
}

impl Drop for Out {
    fn drop(&mut self) {
        lock(&self.live.state).control_requests.remove(&self.at);
    }
}

impl Planner {
    /// Asks something of a move's migration, unless something is being asked of it.
    pub(super) fn send(
        self: &Arc<Self>,
        live: &Arc<Live>,
        at: usize,
        control_request: ControlRequest,
    ) {
        let Some(id) = lock(&live.state).sets_out(at, control_request) else { return };
        let (planner, out) = (self.clone(), Out { live: live.clone(), at });
        let run = move || {
            let done = planner.carry(&out.live, id, control_request);
            drop(out);
            // What failed is tried again later, not at once.
            if done {
                planner.plans.waker.wake();
            }
        };
        let spawned = thread::Builder::new().name("sterna-plan-ask".into()).spawn(run);
        if let Err(error) = spawned {
            tracing::warn!(migration = id, %error, "cannot start a thread for a command \
                                                    to a migration; Sterna tries again");
        }
    }

    /// Asks it; says whether that was done, or is not wanted any more.
    fn carry(
        self: &Arc<Self>,
        live: &Live,
        id: u64,
        control_request: ControlRequest,
    ) -> bool {
        let wish = lock(&live.state).run.wish();
        if !control_request.fits(wish) {
            return true;
        }
        let done = match control_request {
            ControlRequest::Cancel => self.moves.cancel_migration(id),
            ControlRequest::Pause => self.moves.pause_migration(id),
            // It would compare with an image that may be somebody else's: only a person knows.
            ControlRequest::Resume if self.moves.waits_for_a_person(id) => return false,
            ControlRequest::Resume => {
                self.moves.resume_migration(id, ResumeMigration::default())
            }
        };
        // One that is just ending is heard of as ended.
        if let Err(error) = &done {
            tracing::info!(migration = id, ?control_request, %error, "a migration has refused a \
                                                             command of its plan");
        }
        done.is_ok()
    }
}

impl State {
    /// The migration of which something is asked from now on; nothing if something else
    /// is being asked of it, or it has none.
    fn sets_out(&mut self, at: usize, control_request: ControlRequest) -> Option<u64> {
        let id = self.record.moves[at].course.migration?;
        if !self.control_requests.insert(at) {
            return None;
        }
        if control_request == ControlRequest::Cancel {
            self.told_to_leave.insert(at, Instant::now());
        }
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use sterna_placement::waves::{Action, Stage};
    use sterna_state::examples::plan_of_two;

    use super::super::plan_run::run_of;
    use super::*;

    /// A plan with a move that is being given up.
    fn leaving() -> State {
        let mut record = plan_of_two();
        record.moves[1].course.migration = Some(7);
        let (run, _) = run_of(&record);
        assert!(matches!(run.tasks()[1].stage, Stage::Leaving(_)));
        State::new(record, run)
    }

    #[test]
    fn of_a_move_one_thing_is_asked_at_a_time_however_long_that_takes() {
        let mut state = leaving();
        assert_eq!(state.late_to_leave(), [Action::Cancel(1)], "it was not told yet");
        assert_eq!(state.sets_out(1, ControlRequest::Cancel), Some(7));
        assert_eq!(state.sets_out(1, ControlRequest::Cancel), None);
        assert_eq!(state.sets_out(1, ControlRequest::Resume), None);
        // It hangs for longer than is waited before it is told again.
        let long_ago = Instant::now().checked_sub(std::time::Duration::from_secs(60));
        state.told_to_leave.insert(1, long_ago.expect("a host that is up"));
        assert_eq!(state.late_to_leave(), []);
        state.control_requests.remove(&1);
        assert_eq!(state.late_to_leave(), [Action::Cancel(1)]);
    }

    #[test]
    fn what_is_not_wanted_any_more_is_not_asked_for() {
        assert!(
            ControlRequest::Pause.fits(Wish::Pause)
                && !ControlRequest::Pause.fits(Wish::Run)
        );
        assert!(
            ControlRequest::Resume.fits(Wish::Run)
                && !ControlRequest::Resume.fits(Wish::Pause)
        );
        assert!(ControlRequest::Cancel.fits(Wish::Run), "what cannot go on is given up");
    }
}
