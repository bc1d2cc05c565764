//! What runs one guard: the aim for one disk's application, the loop of `core` that holds
//! it, and how well it holds. Whoever copies tells it of each window and is told what
//! the copy may take: a mirror of ours (`guarding`), or QEMU's (`sterna_machines`).

use sterna_api::{Guard as Asked, GuardState, Guarding};
use sterna_core::Nanos;
use sterna_core::guard::{
    Experience, Guard, GuardAim, GuardStatus, Observation, Remaining,
};
use sterna_core::mirror::Allowance;
use sterna_core::schedule::Schedule;
use sterna_os::{Local, clock};

/// Nothing is copied: the schedule is closed.
const CLOSED: Allowance = Allowance { idle: Some(0), ..Allowance::IDLE_ONLY };

/// Why it copies more than one that is learning would.
const EXPERIENCED: &str = "begins with the figures of an earlier guard";

/// What is known of one guard.
#[derive(Debug)]
pub struct GuardRunner {
    asked: Asked,
    guard: Guard,
    /// It began with what another has found out.
    experienced: bool,
    schedule: Option<Schedule>,
    /// Bytes left to copy and compare, as of the last window.
    left: u64,
    state: Option<GuardState>,
}

impl GuardRunner {
    /// A guard that has seen nothing yet, and begins with what another has found out.
    pub(crate) fn new(asked: &Asked, experience: &Experience) -> GuardRunner {
        let guard = Guard::new(aim(asked)).like(experience);
        GuardRunner {
            experienced: guard.is_experienced(),
            ..GuardRunner::with(asked, guard)
        }
    }

    /// The same where QEMU copies.
    pub fn of_qemu(asked: &Asked) -> GuardRunner {
        GuardRunner::with(asked, Guard::of_another_copier(aim(asked)))
    }

    fn with(asked: &Asked, guard: Guard) -> GuardRunner {
        GuardRunner {
            asked: asked.clone(),
            guard,
            experienced: false,
            schedule: schedule_of(asked),
            left: 0,
            state: None,
        }
    }

    /// What must hold.
    pub fn asked(&self) -> &Asked {
        &self.asked
    }

    /// Looks at a window, with so many bytes left to copy and compare; gives what the
    /// copier may take.
    pub fn step(&mut self, seen: &Observation<'_>, left: u64) -> Allowance {
        self.left = left;
        if is_closed(self.schedule.as_ref()) {
            self.guard.interrupt();
            return CLOSED;
        }
        let time = self.asked.finish_by.map(|by| self.time_until(by));
        self.guard.step(seen, Remaining { bytes: left, time })
    }

    /// What it has found out.
    pub(crate) fn experience(&self) -> Experience {
        self.guard.experience()
    }

    /// Nothing is held at the moment.
    pub(crate) fn rest(&mut self) {
        self.guard.interrupt();
        self.state = None;
    }

    /// How it fares, with that as what the copier may take; says so in the log if that
    /// is new.
    pub fn report(&mut self, migration: u64, allowance: Allowance) -> Guarding {
        let fares = self.fares(allowance);
        // Whatever it learns later, it learns by itself.
        self.experienced &= fares.state == Some(GuardState::Learning);
        if self.state != fares.state {
            self.state = fares.state;
            let state = fares.state.map_or_else(String::new, |state| state.to_string());
            match fares.reason.as_deref() {
                Some(why) => tracing::info!(migration, why, "guard: {state}"),
                None => tracing::info!(migration, "guard: {state}"),
            }
        }
        fares
    }

    /// The time until then in which it may be copied.
    fn time_until(&self, by: u64) -> Nanos {
        Nanos::from_secs(match &self.schedule {
            Some(schedule) => Local::now().open_until(schedule, by),
            None => by.saturating_sub(clock::now()),
        })
    }

    /// By how much it will be late at least, if nothing is open any more until the
    /// deadline: nothing is copied before the schedule opens.
    fn late_when_closed(&self) -> Option<Nanos> {
        let by = self.asked.finish_by.filter(|_| self.schedule.is_some())?;
        if self.left == 0 || self.time_until(by) > Nanos(0) {
            return None;
        }
        let now = Local::now();
        let opens = self.opens(&now).map_or_else(clock::now, |it| now.ahead(it));
        Some(Nanos::from_secs(opens.saturating_sub(by)))
    }

    /// In how many seconds the schedule opens, which is closed now.
    fn opens(&self, now: &Local) -> Option<u32> {
        self.schedule.as_ref()?.until_change(now.moment())
    }

    /// What is said while the schedule is closed.
    fn when_closed(&self) -> String {
        let window = self.asked.window.as_deref().unwrap_or_default();
        let now = Local::now();
        match self.opens(&now) {
            Some(seconds) => {
                format!("only {window}, from {} on", now.words_ahead(seconds))
            }
            None => format!("only {window}"),
        }
    }

    fn fares(&self, allowance: Allowance) -> Guarding {
        let (mut state, mut reason) = match self.guard.status() {
            GuardStatus::Holding => (GuardState::Holding, None),
            GuardStatus::Learning => {
                (GuardState::Learning, self.experienced.then(|| EXPERIENCED.to_owned()))
            }
            GuardStatus::Converging => (GuardState::Converging, None),
            GuardStatus::Unreachable(why) => {
                (GuardState::Unreachable, Some(why.to_string()))
            }
        };
        let mut late = self.guard.late();
        if let (None, Some(part)) = (&reason, self.guard.in_time_would_keep()) {
            reason = Some(format!(
                "to end in time, the copy would leave the application {:.0}%",
                part * 100.0
            ));
        }
        if state == GuardState::Holding && late.is_some() {
            state = GuardState::Late;
        }
        let mut busy = self.guard.busy_rate();
        if allowance == CLOSED {
            (state, reason) = (GuardState::Closed, Some(self.when_closed()));
            (late, busy) = (self.late_when_closed(), Some(0));
        }
        let kept = self.guard.kept();
        Guarding {
            asked: self.asked.clone(),
            state: Some(state),
            reason,
            baseline_iops: kept.map(|(iops, _)| iops),
            kept: kept.map(|(_, part)| part),
            p99_us: self.guard.p99().map(|p99| p99.0 / 1000),
            allowance: busy,
            late_s: late.map(Nanos::as_secs_f64),
        }
    }
}

/// What the guard has to hold.
pub fn aim(asked: &Asked) -> GuardAim {
    GuardAim {
        keep: asked.keep,
        p99: asked.p99_us.map(Nanos::from_micros),
        idle_only: asked.idle_only,
    }
}

/// When it may be copied; always without one.
fn schedule_of(asked: &Asked) -> Option<Schedule> {
    // It was read when it was asked for.
    asked.window.as_ref().and_then(|text| text.parse().ok())
}

fn is_closed(schedule: Option<&Schedule>) -> bool {
    schedule.is_some_and(|schedule| !schedule.is_open(Local::now().moment()))
}

/// What a copier may take until the first sample: nothing while its guest is there, if
/// anything must hold, and nothing at all while the schedule is closed.
pub fn first_allowance(asked: &Asked) -> Allowance {
    if asked.is_none() {
        Allowance::default()
    } else if is_closed(schedule_of(asked).as_ref()) {
        CLOSED
    } else {
        Guard::FIRST
    }
}

#[cfg(test)]
mod tests {
    use sterna_core::measure::Window;

    use super::*;

    const HOUR: u64 = 3600;

    /// What is said of a move with so many bytes left, whose window is closed now for more
    /// than a day, and whose deadline is in so many hours, or was.
    fn closed(hours: i64, left: u64) -> Guarding {
        let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
        // The first of January 1970 was a Thursday; three days on.
        let another_day = days[(clock::now() / (24 * HOUR) % 7) as usize];
        let asked = Asked {
            finish_by: clock::now().checked_add_signed(hours * 3600),
            window: Some(another_day.into()),
            ..Asked::default()
        };
        let mut runner = GuardRunner::new(&asked, &Experience::default());
        let (guest, none) = (&Window::default(), Nanos(0));
        let seen = Observation {
            guest,
            copied: 0,
            idle: none,
            mirror_wait: none,
            mirrored_writes: 0,
            idle_processors: Some(1.0),
        };
        let allowance = runner.step(&seen, left);
        let fares = runner.report(1, allowance);
        assert_eq!((fares.state, fares.allowance), (Some(GuardState::Closed), Some(0)));
        let says = format!("only {another_day}, from {another_day} 20");
        let why = fares.reason.as_deref().expect("a reason");
        assert!(why.starts_with(&says) && why.contains(" 00:00 "), "{why}");
        fares
    }

    #[test]
    fn a_closed_window_does_not_hide_that_a_move_is_late() {
        let late = closed(-2, 1).late_s.expect("it is late");
        // It opens after a day and a half at the soonest, wherever this is.
        assert!(late > (26 * HOUR) as f64, "{late}");
        let later = closed(1, 1).late_s.expect("it opens after its deadline");
        assert!((later - late + (3 * HOUR) as f64).abs() < 10.0, "{later}, {late}");
    }

    #[test]
    fn a_closed_window_makes_no_move_late_that_has_time_or_nothing_left() {
        assert_eq!(closed(24 * 7, 1).late_s, None);
        assert_eq!(closed(-2, 0).late_s, None);
    }
}
