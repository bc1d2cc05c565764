//! Stalled moves: moves that stand still, and for how long the plan waits for them.
//!
//! What was copied is kept as long as there is hope: hours of copying are in it, and to go
//! on costs a moment. So a move that stands still is not given up, but is to go on from
//! where it is, later each time.
//!
//! - A datastore that is away makes its moves wait, those that were to begin there, too.
//!   It is given up after [`AWAY_MOST`]; being there for [`STEADY`], it was back.
//! - While nothing can be recorded, no move begins, and what may begin waits just as long.
//! - A destination that is full is left alone at once, and its moves go elsewhere; one for
//!   which nowhere else is room waits for room, just as long.
//! - What may pass, and a destination that fails, is tried [`TRIES`] times. What has gone
//!   on for [`STEADY`] in between counts anew.
//!
//! The time in which the plan stands still does not count.

use super::event::Action;
use super::places::Places;
use super::run::PlanRun;
use super::task::{Fault, Stage};
use sterna_core::Nanos;

/// How often a move is begun, or is to go on, that fails for something that may pass.
pub const TRIES: u32 = 3;

/// How long it waits before it is tried again, and four times as long the next time: what
/// passes by itself is a restart of something, or a busy hour.
pub(super) const BACK_OFF: Nanos = Nanos::from_secs(10);

/// How long a datastore that is away is waited for. A server that boots, checks its file
/// systems and is mounted again takes minutes, and somebody who has to come for that an
/// hour. Who waits no longer than this has lost less than by copying all anew.
pub const AWAY_MOST: Nanos = Nanos::from_secs(3600);

/// How soon it is tried whether a datastore is back: at first, and in the end. In between
/// it is a quarter of the time for which it has been away.
const AGAIN: (Nanos, Nanos) = (Nanos::from_secs(10), Nanos::from_secs(60));

/// What has not been heard of for so long is over. The longest that a copy takes to notice
/// that its datastore is still away is two minutes, for a flush.
pub const STEADY: Nanos = Nanos::from_secs(300);

/// What is wrong with a datastore for a while.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Trouble {
    since: Nanos,
    /// When it was heard of last.
    heard: Nanos,
    /// It is not tried again before.
    pub(super) again: Nanos,
}

impl PlanRun {
    /// A move stands still: it waits, or is given up.
    pub(super) fn stalls(
        &mut self,
        at: usize,
        fault: Fault,
        now: Nanos,
        actions: &mut Vec<Action>,
    ) {
        let (from, to) = (self.setup.moves[at].from, self.tasks[at].to);
        let again = match fault {
            Fault::Away if self.is_given_up(to) => None,
            Fault::Away => self.wait_for(to, now),
            Fault::Source => self.wait_for(from, now),
            Fault::Full => {
                self.close(to, fault);
                let only = self.other_place(at).is_none();
                only.then(|| self.wait_for(to, now)).flatten()
            }
            Fault::Unrecorded => self.wait_for(self.records(), now),
            Fault::Passing => self.back_off(at, now),
            Fault::Destination => {
                let again = self.back_off(at, now);
                self.hold(to, now, again);
                again
            }
            Fault::Lasting => None,
        };
        match again {
            Some(again) => {
                self.tasks[at].stage = Stage::Stalled(fault);
                self.tasks[at].not_before = again;
            }
            None => self.leave(at, fault, actions),
        }
    }

    /// A move did not begin: it waits for its datastore, or counts as failed.
    pub(super) fn refused(&mut self, at: usize, fault: Fault, now: Nanos) {
        let (from, to) = (self.setup.moves[at].from, self.tasks[at].to);
        let again = match fault {
            Fault::Away if self.closed[to].is_none() => self.wait_for(to, now),
            Fault::Source => self.wait_for(from, now),
            Fault::Unrecorded => self.wait_for(self.records(), now),
            _ => None,
        };
        match again.filter(|_| !self.is_given_up_as_a_whole()) {
            Some(again) => {
                self.tasks[at].stage = Stage::Waiting;
                self.tasks[at].not_before = again;
            }
            None => self.missed(at, fault, now),
        }
    }

    /// Has what stands still go on whose time has come, and for which there is a place.
    pub(super) fn go_on_from_there(
        &mut self,
        now: Nanos,
        places: &mut Places,
        actions: &mut Vec<Action>,
    ) {
        for at in self.queue.stalled.iter().copied() {
            let (one, task) = (&self.setup.moves[at], self.tasks[at]);
            if task.not_before > now || !places.has_place(&self.setup, one, task.to) {
                continue;
            }
            places.take(one, task.to);
            let task = &mut self.tasks[at];
            task.stage = Stage::Running;
            task.since = now;
            actions.push(Action::Resume(at));
        }
    }

    /// The datastore for which a move that waits to begin waits now.
    pub fn waits_for(&self, at: usize, now: Nanos) -> Option<usize> {
        let task = &self.tasks[at];
        let ends = [task.to, self.setup.moves[at].from];
        let is_held = |end: &usize| self.held_until(*end).is_some_and(|it| it > now);
        ends.into_iter().find(|end| task.stage == Stage::Waiting && is_held(end))
    }

    /// Whether a move that waits to begin waits until moves can be recorded again.
    pub fn waits_for_records(&self, at: usize, now: Nanos) -> bool {
        let held = self.held_until(self.records());
        self.tasks[at].stage == Stage::Waiting && held.is_some_and(|it| it > now)
    }

    /// Until when nothing begins at a datastore, or nothing at all ([`PlanRun::records`]).
    pub fn held_until(&self, end: usize) -> Option<Nanos> {
        self.troubles[end].map(|trouble| trouble.again)
    }

    /// The place of the records among the datastores, behind the last of them.
    pub fn records(&self) -> usize {
        self.setup.ends.len()
    }

    /// When a datastore that is away is tried again; nothing if it has been for too long.
    fn wait_for(&mut self, end: usize, now: Nanos) -> Option<Nanos> {
        let known = self.troubles[end].filter(|it| now.since(it.heard) <= STEADY);
        let away = now.since(known.map_or(now, |it| it.since));
        let again = now.plus(Nanos(away.0 / 4).clamp(AGAIN.0, AGAIN.1));
        self.hold(end, now, Some(again));
        (away < AWAY_MOST).then_some(again)
    }

    /// Nothing begins at a datastore until then.
    fn hold(&mut self, end: usize, now: Nanos, until: Option<Nanos>) {
        let Some(again) = until else { return };
        let known = self.troubles[end].filter(|it| now.since(it.heard) <= STEADY);
        let since = known.map_or(now, |it| it.since);
        self.troubles[end] = Some(Trouble { since, heard: now, again });
    }

    /// When what may pass is tried again; nothing if it was often enough.
    fn back_off(&mut self, at: usize, now: Nanos) -> Option<Nanos> {
        let task = &mut self.tasks[at];
        if now.since(task.since) > STEADY {
            task.tries = 0;
        }
        // What is given up counts as one more.
        if task.tries + 1 >= TRIES {
            return None;
        }
        task.tries += 1;
        Some(now.plus(back_off(task.tries)))
    }
}

/// How long is waited after so many failures, at least one.
pub(super) fn back_off(tries: u32) -> Nanos {
    Nanos(BACK_OFF.0.saturating_mul(4_u64.pow(tries.saturating_sub(1))))
}
