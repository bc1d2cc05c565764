//! A reading of all sidecars of a datastore, which one thread does for all askers.
//!
//! A question is answered by the reading that was under way, or by what was known, when the
//! question was asked: it makes no difference how late the asker comes for the answer.
//!
//! **Failures.** If the reading fails half-way (a listing gives an error), or one sidecar cannot
//! be read, what was told still counts: it is a part. It is kept for a while, and that is longer
//! the longer the reading took: thousands of sidecars are not read all the time because of one,
//! and one that is repaired is soon read.

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
/// A part is believed for so many times as long as it took to read it, so that most of the time
/// nothing is read; at least for [`BRIEFLY`], and at most for [`KEPT`].
const REST: u32 = 10;
/// Less than the pause after which a disk that is not served asks again.
const BRIEFLY: Duration = Duration::from_secs(2);

/// A reading that is under way, or has ended.
pub(super) struct Reading {
    begun: Instant,
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
    said: Option<Said>,
    /// Why the last reading failed, if it has.
    problem: Option<String>,
    under_way: Option<Arc<Reading>>,
}

/// What the datastore said, and until when that is believed.
struct Said {
    answer: Answer,
    until: Instant,
}

/// How a reading has ended.
pub(super) enum End {
    /// All was told.
    All,
    /// Something could not be read: why.
    Part(String),
    /// The datastore cannot be opened: why. It is asked as soon as somebody wants to know.
    Closed(String),
}

impl End {
    fn problem(self) -> Option<String> {
        match self {
            End::All => None,
            End::Part(problem) | End::Closed(problem) => Some(problem),
        }
    }
}

/// What a datastore was asked.
pub struct Told {
    how: How,
    asked: Instant,
}

enum How {
    Known(Answer),
    Reading(Arc<Reading>),
    NoThread,
}

/// What a datastore has told.
#[derive(Clone)]
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
            How::Known(answer) => answer,
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
        let said = latest.said.as_ref().filter(|said| Instant::now() < said.until);
        let how = if let Some(said) = said {
            How::Known(said.answer.clone())
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

    /// A reading has ended. Says whether its problem is news.
    pub(super) fn end(&self, reading: &Reading, end: End) -> bool {
        let mut latest = lock(&self.0);
        let answer = reading.end(matches!(end, End::All));
        latest.under_way = None;
        let kept = match end {
            End::All => KEPT,
            End::Part(_) => (reading.begun.elapsed() * REST).clamp(BRIEFLY, KEPT),
            End::Closed(_) => Duration::ZERO,
        };
        latest.said = Some(Said { answer, until: Instant::now() + kept });
        let problem = end.problem();
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
        let (told, begun) = (Arc::default(), Instant::now());
        let state = State { told, heard: begun, course: Course::UnderWay };
        Reading { begun, state: Mutex::new(state), changed: Condvar::new() }
    }

    /// The datastore has answered.
    pub(super) fn hear(&self, tell: impl FnOnce(&mut Sidecars)) {
        let mut state = lock(&self.state);
        state.heard = Instant::now();
        tell(Arc::make_mut(&mut state.told));
    }

    fn end(&self, is_all: bool) -> Answer {
        let mut state = lock(&self.state);
        state.course = if is_all { Course::Complete } else { Course::Failed };
        self.changed.notify_all();
        state.answer()
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

    /// What is known after a reading that told of one sidecar and ended so.
    fn known_after(reading: Duration, end: End) -> Readings {
        let readings = Readings::default();
        let mut begun = None;
        readings.ask(|reading| begun.replace(reading).is_none());
        let mut its = begun.unwrap();
        its.hear(one);
        // Nobody else has it any more but those who wait for it.
        lock(&readings.0).under_way = None;
        Arc::get_mut(&mut its).unwrap().begun = ago(reading);
        readings.end(&its, end);
        readings
    }

    fn is_read_anew(readings: &Readings) -> bool {
        readings.ask(|_| false).has_no_thread()
    }

    /// So much time passes.
    fn passes(readings: &Readings, span: Duration) {
        let mut latest = lock(&readings.0);
        let said = latest.said.as_mut().unwrap();
        said.until = said.until.checked_sub(span).unwrap();
    }

    #[test]
    fn what_was_known_when_a_question_was_asked_answers_it_later_too() {
        let readings = known_after(Duration::ZERO, End::All);
        let told = readings.ask(|_| unreachable!());
        passes(&readings, KEPT);
        assert!(told.answer().is_all());
        assert!(is_read_anew(&readings));
    }

    #[test]
    fn a_datastore_with_a_sidecar_that_cannot_be_read_is_not_read_all_the_time() {
        for (reading, kept) in [(0, 2), (1, 10), (3, 30), (100, 60)]
            .map(|(took, kept)| (Duration::from_secs(took), Duration::from_secs(kept)))
        {
            let readings = known_after(reading, End::Part("x.raw.sterna".into()));
            assert!(matches!(readings.ask(|_| unreachable!()).answer(), Answer::Part(_)));
            passes(&readings, kept.mul_f64(0.9));
            assert!(!is_read_anew(&readings), "{reading:?}");
            passes(&readings, kept.mul_f64(0.2));
            assert!(is_read_anew(&readings), "{reading:?}");
        }
    }

    #[test]
    fn a_datastore_that_could_not_be_opened_is_asked_as_soon_as_somebody_wants_to_know() {
        let readings = known_after(KEPT, End::Closed("it is away".into()));
        assert!(is_read_anew(&readings));
        assert_eq!(readings.problem().as_deref(), Some("it is away"));
    }
}
