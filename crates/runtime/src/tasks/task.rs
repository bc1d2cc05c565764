//! One task: what it does, when it does it next, and what became of the last run.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sterna_api::{Result, TaskState};
use sterna_os::wake::Sleeper;
use sterna_os::{clock, lock};

use super::feed::Fed;

/// How often one and the same failure of a task is logged.
const SAID_AGAIN: Duration = Duration::from_secs(60);

/// How long a task sleeps if it is given nothing to do.
const IDLE: Duration = Duration::from_secs(60);

/// What a run gives: how long the task sleeps, unless it is woken; nothing if it is over.
type Run = Box<dyn FnMut() -> Option<Result<Duration>> + Send>;

/// Something that is done again and again.
pub struct Task {
    progress: Arc<Progress>,
    /// How long it sleeps before its first run.
    first: Duration,
    /// How long it sleeps after a run that failed.
    again: Duration,
    run: Run,
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task").field("progress", &self.progress).finish_non_exhaustive()
    }
}

impl Task {
    /// A task that is done every so often. `does` completes "cannot …", for the log. It ends
    /// when `of`, which each run gets a share of, is gone.
    pub fn every<T: Send + Sync + 'static>(
        name: &'static str,
        does: &'static str,
        every: Duration,
        of: &Arc<T>,
        mut run: impl FnMut(&Arc<T>) -> Result<()> + Send + 'static,
    ) -> Task {
        let run = move |of: &Arc<T>| run(of).map(|()| every);
        let sleeper = Arc::new(Sleeper::default());
        let task = Task::when_due(name, does, every, sleeper, of, run);
        task.after(every)
    }

    /// A task whose runs say how long it sleeps, and which is woken earlier if there is
    /// something to do. It runs for the first time at once. After a failure it sleeps for
    /// `again` at most.
    pub fn when_due<T: Send + Sync + 'static>(
        name: &'static str,
        does: &'static str,
        again: Duration,
        sleeper: Arc<Sleeper>,
        of: &Arc<T>,
        mut run: impl FnMut(&Arc<T>) -> Result<Duration> + Send + 'static,
    ) -> Task {
        let of = Arc::downgrade(of);
        let progress = Progress { name, does, sleeper, last: Mutex::default() };
        Task {
            progress: Arc::new(progress),
            first: Duration::ZERO,
            again,
            run: Box::new(move || Some(run(&of.upgrade()?))),
        }
    }

    /// A task that does something with each item that it is given, when it is given it.
    pub fn for_each<T: Send + Sync + 'static, I: Send + 'static>(
        name: &'static str,
        does: &'static str,
        fed: Fed<I>,
        of: &Arc<T>,
        mut run: impl FnMut(&Arc<T>, I) + Send + 'static,
    ) -> Task {
        let sleeper = fed.sleeper.clone();
        let run = move |of: &Arc<T>| {
            fed.items().for_each(|item| run(of, item));
            Ok(IDLE)
        };
        Task::when_due(name, does, IDLE, sleeper, of, run)
    }

    /// The same task, whose first run is after this time.
    pub fn after(self, first: Duration) -> Task {
        Task { first, ..self }
    }

    pub(super) fn progress(&self) -> Arc<Progress> {
        self.progress.clone()
    }

    /// Runs it again and again, until it is over or `is_over`.
    pub(super) fn run(&mut self, is_over: impl Fn() -> bool) {
        let mut next = self.first;
        let mut said = Said::default();
        loop {
            self.progress.sleep(next);
            if is_over() {
                return;
            }
            self.progress.begin();
            let Some(ran) = (self.run)() else { return };
            if let Err(error) = &ran {
                said.say(&self.progress, &error.to_string());
            }
            next = self.progress.end(ran, self.again);
        }
    }
}

/// What was said of a task's failures.
#[derive(Debug, Default)]
struct Said(Option<(String, Instant)>);

impl Said {
    fn say(&mut self, task: &Progress, error: &str) {
        let is_said =
            |(what, at): &(String, Instant)| what == error && at.elapsed() < SAID_AGAIN;
        if !self.0.as_ref().is_some_and(is_said) {
            tracing::warn!(task = task.name, error, "cannot {}", task.does);
            self.0 = Some((error.to_owned(), Instant::now()));
        }
    }
}

/// How far a task is, for all to see.
#[derive(Debug)]
pub(super) struct Progress {
    name: &'static str,
    does: &'static str,
    sleeper: Arc<Sleeper>,
    last: Mutex<Last>,
}

/// The last run, and the next one.
#[derive(Debug, Default)]
struct Last {
    runs: u64,
    /// Seconds since 1970.
    began: Option<u64>,
    /// Since when it is at it, if it is.
    since: Option<Instant>,
    took: Option<Duration>,
    next: Option<Instant>,
    failed: Option<String>,
}

impl Progress {
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    pub(super) fn wake(&self) {
        self.sleeper.wake();
    }

    fn sleep(&self, span: Duration) {
        lock(&self.last).next = Instant::now().checked_add(span);
        self.sleeper.sleep(span);
    }

    fn begin(&self) {
        let mut last = lock(&self.last);
        last.runs += 1;
        (last.began, last.since, last.next) =
            (Some(clock::now()), Some(Instant::now()), None);
    }

    /// How long it sleeps now.
    fn end(&self, ran: Result<Duration>, again: Duration) -> Duration {
        let mut last = lock(&self.last);
        last.took = last.since.take().map(|since| since.elapsed());
        let (next, failed) = match ran {
            Ok(next) => (next, None),
            Err(error) => (again, Some(error.to_string())),
        };
        last.failed = failed;
        next
    }

    pub(super) fn view(&self) -> sterna_api::Task {
        let last = lock(&self.last);
        let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        let left = |next: Instant| next.saturating_duration_since(Instant::now());
        sterna_api::Task {
            name: self.name.into(),
            does: self.does.into(),
            state: match last.since {
                Some(_) => TaskState::Running,
                None => TaskState::Waiting,
            },
            runs: last.runs,
            began: last.began,
            running_ms: last.since.map(|since| millis(since.elapsed())),
            took_ms: last.took.map(millis),
            next_ms: last.next.map(|next| millis(left(next))),
            failed: last.failed.clone(),
        }
    }
}
