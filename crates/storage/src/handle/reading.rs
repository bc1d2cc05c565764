//! A reading of all sidecars of a datastore, which one thread does for all askers.
//!
//! A question is answered by the reading that was under way, or by what was known, when the
//! question was asked: it makes no difference how late the asker comes for the answer.
//!
//! **Failures.** If the reading fails half-way (a listing gives an error), what was told until
//! then still counts: it is a part.

use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use sterna_os::lock;

use super::sidecars::Sidecars;

/// How long a datastore may say nothing at all: clients wait for their disks, and one datastore
/// that hangs is no reason to keep those of all others waiting. A sidecar is read in 0.1 ms on
/// this machine, in a millisecond over a network, and in ten from a cold disk.
pub(super) const TELLING: Duration = Duration::from_secs(1);
/// How long one that goes on telling is waited for: the clients of all disks wait meanwhile, and
/// what is most likely to matter is told first.
const LONGEST: Duration = Duration::from_secs(2);
/// So long what they told is believed. Whoever acts on it reads the one sidecar again; a disk
/// that is not served asks every few seconds, and each time thousands would be read.
pub(super) const KEPT: Duration = Duration::from_secs(60);

/// A reading that is under way, or has ended.
pub(super) struct Reading {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// What was told so far. Askers share it: thousands ask at once.
    told: Arc<Sidecars>,
    /// When the datastore answered last, if only that there is nothing.
    heard: Instant,
    course: Course,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Course {
    UnderWay,
    Complete,
    Failed,
}

/// What the datastore said last, and the reading that is under way.
#[derive(Default)]
pub(super) struct Readings(Mutex<Latest>);

#[derive(Default)]
struct Latest {
    said: Option<(Instant, Arc<Sidecars>)>,
    /// Why the last reading failed, if it has.
    problem: Option<String>,
    under_way: Option<Arc<Reading>>,
}

/// What a datastore was asked.
pub struct Told {
    how: How,
    asked: Instant,
}

enum How {
    Known(Arc<Sidecars>),
    Reading(Arc<Reading>),
    NoThread,
}

/// What a datastore has told.
pub enum Answer {
    /// What all its sidecars say.
    All(Arc<Sidecars>),
    /// What those say that it has read. It tells on, and too slowly to be waited for; or it has
    /// failed since.
    Part(Arc<Sidecars>),
    /// It has told nothing yet: it does not answer, or is still being opened.
    Silent,
    /// It cannot tell: it cannot be opened, or not be read.
    Failed,
}

impl Answer {
    /// What it has told, of all sidecars or of a part.
    pub fn told(&self) -> Option<&Sidecars> {
        match self {
            Answer::All(told) | Answer::Part(told) => Some(told),
            Answer::Silent | Answer::Failed => None,
        }
    }

    /// Whether that is what all sidecars say.
    pub fn is_all(&self) -> bool {
        matches!(self, Answer::All(_))
    }
}

impl Told {
    /// The system had no thread to ask.
    pub fn has_no_thread(&self) -> bool {
        matches!(self.how, How::NoThread)
    }

    /// What the sidecars say. Waits for [`TELLING`] if the datastore tells nothing at all, and
    /// for [`LONGEST`] if it does.
    pub fn answer(self) -> Answer {
        match self.how {
            How::Known(told) => Answer::All(told),
            How::Reading(reading) => reading.answer(self.asked + LONGEST),
            How::NoThread => Answer::Silent,
        }
    }
}

impl Readings {
    /// Asks. If nothing is known and no reading is under way, `begin` has to begin one; it says
    /// whether it could.
    pub(super) fn ask(&self, begin: impl FnOnce(Arc<Reading>) -> bool) -> Told {
        let mut latest = lock(&self.0);
        let said = latest.said.as_ref().filter(|(at, _)| at.elapsed() < KEPT);
        let how = if let Some((_, said)) = said {
            How::Known(said.clone())
        } else if let Some(reading) = &latest.under_way {
            How::Reading(reading.clone())
        } else {
            let reading = Arc::new(Reading::begin());
            if begin(reading.clone()) {
                latest.under_way = Some(reading.clone());
                How::Reading(reading)
            } else {
                How::NoThread
            }
        };
        Told { how, asked: Instant::now() }
    }

    /// A reading has ended: all was told, unless there was a problem. Says whether that is news.
    pub(super) fn end(&self, reading: &Reading, problem: Option<String>) -> bool {
        let mut latest = lock(&self.0);
        let told = reading.end(problem.is_none());
        latest.under_way = None;
        if problem.is_none() {
            latest.said = Some((Instant::now(), told));
        }
        let is_news = latest.problem != problem;
        latest.problem = problem;
        is_news
    }

    /// Why the last reading failed, if it has.
    pub(super) fn problem(&self) -> Option<String> {
        lock(&self.0).problem.clone()
    }

    /// What was said does not count any more.
    pub(super) fn forget(&self) {
        lock(&self.0).said = None;
    }
}

impl State {
    fn answer(&self) -> Answer {
        match self.course {
            Course::Complete => Answer::All(self.told.clone()),
            Course::Failed if self.told.is_empty() => Answer::Failed,
            Course::UnderWay if self.told.is_empty() => Answer::Silent,
            _ => Answer::Part(self.told.clone()),
        }
    }
}

impl Reading {
    fn begin() -> Reading {
        let told = Arc::default();
        let state = State { told, heard: Instant::now(), course: Course::UnderWay };
        Reading { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// The datastore has answered.
    pub(super) fn hear(&self, tell: impl FnOnce(&mut Sidecars)) {
        let mut state = lock(&self.state);
        state.heard = Instant::now();
        tell(Arc::make_mut(&mut state.told));
    }

    fn end(&self, is_all: bool) -> Arc<Sidecars> {
        let mut state = lock(&self.state);
        state.course = if is_all { Course::Complete } else { Course::Failed };
        self.changed.notify_all();
        state.told.clone()
    }

    fn answer(&self, longest: Instant) -> Answer {
        let mut state = lock(&self.state);
        loop {
            let until = match state.told.is_empty() {
                true => longest.min(state.heard + TELLING),
                // One that has told something answers, though one sidecar may take long.
                false => longest,
            };
            let wait = until.saturating_duration_since(Instant::now());
            if state.course != Course::UnderWay || wait.is_zero() {
                return state.answer();
            }
            state = match self.changed.wait_timeout(state, wait) {
                Ok((state, _)) => state,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use sterna_core::DiskId;
    use sterna_engine::datastore::FoundSidecar;
    use sterna_engine::sidecar::{Identity, Role};

    use super::*;

    fn one(told: &mut Sidecars) {
        let identity = Identity {
            id: DiskId(1),
            name: "x".into(),
            generation: 1,
            role: Role::Active,
            size: 512,
        };
        let file = "x.raw".into();
        told.add(FoundSidecar { file, identity, beside: None, has_image: true });
    }

    fn ago(span: Duration) -> Instant {
        Instant::now().checked_sub(span).unwrap()
    }

    /// A question that was asked so long ago, and its reading.
    fn asked(span: Duration) -> (Told, Arc<Reading>) {
        let mut begun = None;
        let told = Readings::default().ask(|reading| begun.replace(reading).is_none());
        (Told { asked: ago(span), ..told }, begun.unwrap())
    }

    /// The datastore was heard so long ago.
    fn was_heard(reading: &Reading, span: Duration) {
        lock(&reading.state).heard = ago(span);
    }

    #[test]
    fn a_datastore_that_tells_nothing_is_not_waited_for() {
        let (told, reading) = asked(Duration::ZERO);
        was_heard(&reading, TELLING);
        let asked = told.asked;
        assert!(matches!(told.answer(), Answer::Silent));
        assert!(asked.elapsed() < TELLING, "it has had its time");
    }

    #[test]
    fn a_datastore_that_tells_on_is_waited_for_until_it_has_had_its_time() {
        let left = Duration::from_millis(50);
        let (told, reading) = asked(LONGEST - left);
        reading.hear(one);
        // One sidecar takes long.
        was_heard(&reading, TELLING * 2);
        let asked = told.asked;
        assert!(matches!(told.answer(), Answer::Part(_)));
        assert!(asked.elapsed() >= LONGEST);
    }

    #[test]
    fn a_datastore_that_answers_that_there_is_nothing_is_not_silent() {
        let left = Duration::from_millis(50);
        let (told, reading) = asked(LONGEST - left);
        was_heard(&reading, TELLING * 2);
        reading.hear(|_| ());
        let asked = told.asked;
        assert!(matches!(told.answer(), Answer::Silent));
        assert!(asked.elapsed() >= LONGEST);
    }

    #[test]
    fn an_answer_comes_to_an_asker_that_waits() {
        let (told, reading) = asked(Duration::ZERO);
        let asked = told.asked;
        let told = std::thread::scope(|scope| {
            let told = scope.spawn(|| told.answer());
            // Nothing is wrong if it does not wait yet.
            std::thread::sleep(Duration::from_millis(50));
            reading.hear(one);
            reading.end(true);
            told.join().unwrap()
        });
        assert!(told.is_all() && told.told().is_some());
        assert!(asked.elapsed() < TELLING, "it was not told at once");
    }

    #[test]
    fn what_was_told_before_a_listing_fails_stays_told() {
        let (told, reading) = asked(Duration::ZERO);
        reading.hear(one);
        reading.end(false);
        assert!(matches!(told.answer(), Answer::Part(_)));
        let (told, reading) = asked(Duration::ZERO);
        reading.end(false);
        assert!(matches!(told.answer(), Answer::Failed));
    }

    #[test]
    fn what_was_known_when_a_question_was_asked_answers_it_later_too() {
        let readings = Readings::default();
        let mut begun = None;
        readings.ask(|reading| begun.replace(reading).is_none());
        readings.end(&begun.unwrap(), None);
        let told = readings.ask(|_| unreachable!());
        // Meanwhile the time of what was said runs out.
        lock(&readings.0).said.as_mut().unwrap().0 = ago(KEPT);
        assert!(told.answer().is_all());
        assert!(readings.ask(|_| false).has_no_thread(), "it is read anew");
    }
}
