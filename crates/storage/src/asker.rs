//! Asking what may never answer.
//!
//! A hung NFS server holds whoever touches it, for ever. Nothing that people
//! wait for (a start, a list, a status) may hang with it: such questions are
//! asked on a thread of their own, and left behind when time is up. A question
//! that is still open after its time is not asked again; one that may yet be
//! answered is waited for, so that two who ask at once both learn the truth.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use sterna_os::lock;

/// How soon it is seen that nobody wants to know any more.
const GLANCE: Duration = Duration::from_millis(100);

/// Within so long somebody who has not answered in time is asked again, as long as anybody wants
/// to know. If nobody did, nobody knows what was between.
const SOON: Duration = Duration::from_secs(30);

/// An error that takes no longer than this is an answer. A later one may be a question that gave
/// up (a connection has seconds to be made), though it had more time.
const PROMPT: Duration = Duration::from_millis(800);

/// Of whom one thing is asked at a time.
#[derive(Clone, Debug, Default)]
pub struct Asker {
    turn: Arc<Turn>,
}

#[derive(Debug, Default)]
struct Turn {
    /// The question that is open, if one is.
    open: Mutex<Option<Open>>,
    /// Questions that were all answered too late, up to the last that has ended: of all askers
    /// of one whom several things are asked.
    late: Arc<Mutex<Option<Late>>>,
    closed: Condvar,
}

/// Questions that were answered too late, one soon after the other.
#[derive(Clone, Copy, Debug)]
struct Late {
    /// When the first was asked.
    since: Instant,
    /// When the last ended.
    until: Instant,
}

/// A question that is open.
#[derive(Clone, Copy, Debug)]
struct Open {
    since: Instant,
    /// So long it may be.
    limit: Duration,
}

impl Late {
    /// Whether a question that was asked at this moment belongs to them.
    fn lasts_until(&self, asked: Instant) -> bool {
        asked.saturating_duration_since(self.until) < SOON
    }
}

impl Turn {
    /// Begins a question; not if an earlier one has had its time.
    fn begin(&self, limit: Duration, patience: Patience<'_>) -> bool {
        let grace = Instant::now() + patience.grace;
        let mut open = lock(&self.open);
        while let Some(earlier) = *open {
            let its = if patience.is_in_turn { earlier.limit } else { Duration::ZERO };
            let until = grace.max(earlier.since + limit.max(its));
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || patience.is_over() {
                return false;
            }
            open = match self.closed.wait_timeout(open, patience.glance(left)) {
                Ok((open, _)) => open,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
        *open = Some(Open { since: Instant::now(), limit });
        true
    }

    /// The open question was not asked, which says nothing.
    fn abandon(&self) {
        *lock(&self.open) = None;
        self.closed.notify_all();
    }

    fn end(&self, is_error: bool) {
        let mut open = lock(&self.open);
        if let Some(Open { since, limit }) = open.take() {
            let took = since.elapsed();
            let mut late = lock(&self.late);
            if took > limit {
                let before = late.filter(|late| late.lasts_until(since));
                let since = before.map_or(since, |late| late.since);
                *late = Some(Late { since, until: Instant::now() });
            } else if took <= PROMPT || !is_error {
                *late = None;
            }
        }
        drop(open);
        self.closed.notify_all();
    }
}

/// How long a question waits for its turn.
#[derive(Clone, Copy, Default)]
struct Patience<'a> {
    /// So long in any case: an earlier one that has had its time may be just ending.
    grace: Duration,
    /// And until an earlier one has had its own time, if that is longer than this one's.
    is_in_turn: bool,
    /// Not if nobody wants to know any more.
    over: Option<&'a AtomicBool>,
}

impl Patience<'_> {
    fn is_over(self) -> bool {
        self.over.is_some_and(|over| over.load(Ordering::Relaxed))
    }

    fn glance(self, left: Duration) -> Duration {
        self.over.map_or(left, |_| left.min(GLANCE))
    }
}

/// A question that has been asked.
#[derive(Debug)]
pub struct Asked<T> {
    /// None: it could not be asked.
    answer: Option<mpsc::Receiver<T>>,
    until: Instant,
    has_no_thread: bool,
}

impl<T> Asked<T> {
    /// Whether the system had no thread for it: that says nothing of whom it was for.
    pub(crate) fn has_no_thread(&self) -> bool {
        self.has_no_thread
    }

    /// The answer, unless time is up before it comes.
    pub fn answer(self) -> Option<T> {
        let left = self.until.saturating_duration_since(Instant::now());
        self.answer?.recv_timeout(left).ok()
    }

    /// The same, unless it is `over` before.
    pub(crate) fn answer_unless(self, over: &AtomicBool) -> Option<T> {
        let answer = self.answer?;
        loop {
            let left = self.until.saturating_duration_since(Instant::now());
            match answer.recv_timeout(left.min(GLANCE)) {
                Err(mpsc::RecvTimeoutError::Timeout)
                    if !left.is_zero() && !over.load(Ordering::Relaxed) => {}
                answer => return answer.ok(),
            }
        }
    }
}

impl Asker {
    /// Asks something else of whom this one asks: since when nobody was answered is known to
    /// both.
    pub(crate) fn beside(&self) -> Asker {
        let late = Arc::clone(&self.turn.late);
        Asker { turn: Arc::new(Turn { late, ..Turn::default() }) }
    }

    /// For how long the open question has been open, if there is one; or those before it, if
    /// they were answered too late. (A question to a server gives up, and is asked anew.)
    /// Between two attempts: for how long there was no answer.
    pub(crate) fn silent_for(&self) -> Option<Duration> {
        let open = *lock(&self.turn.open);
        let asked = open.map_or_else(Instant::now, |open| open.since);
        let before = lock(&self.turn.late).filter(|late| late.lasts_until(asked));
        let since = before.map(|late| late.since).or(open.map(|open| open.since));
        since.map(|since| since.elapsed())
    }

    /// Whether a question is open.
    #[cfg(test)]
    pub(crate) fn is_open(&self) -> bool {
        lock(&self.turn.open).is_some()
    }

    /// For how long the open question has been open, if it has had its time.
    pub(crate) fn overdue_for(&self) -> Option<Duration> {
        let open = *lock(&self.turn.open);
        open.map(|open| (open.since.elapsed(), open.limit))
            .filter(|(span, limit)| span >= limit)
            .map(|(span, _)| span)
    }

    /// Asks `question`, which has until `limit` for its answer, unless an earlier
    /// one was not answered in that time. So several can be asked, each of another,
    /// before the first answer is waited for.
    pub fn ask<T: Send + 'static>(
        &self,
        limit: Duration,
        question: impl FnOnce() -> T + Send + 'static,
    ) -> Asked<T> {
        self.ask_with(limit, Patience::default(), question, |_| false)
    }

    /// The same of a question that may give up within its time: a late error is no answer.
    pub(crate) fn ask_patiently<T: Send + 'static, E: Send + 'static>(
        &self,
        limit: Duration,
        question: impl FnOnce() -> Result<T, E> + Send + 'static,
    ) -> Asked<Result<T, E>> {
        self.ask_with(limit, Patience::default(), question, Result::is_err)
    }

    /// Whether an earlier question has been answered, or has its time still, by `limit`: nothing
    /// else is asked, and nothing is learned of whom it would be asked.
    pub(crate) fn ask_nothing(&self, limit: Duration) -> Asked<()> {
        let begun = self.turn.begin(limit, Patience::default());
        let answer = begun.then(|| {
            self.turn.abandon();
            let (sender, receiver) = mpsc::sync_channel(1);
            // There is room for it.
            let _ = sender.send(());
            receiver
        });
        Asked { answer, until: Instant::now() + limit, has_no_thread: false }
    }

    /// The same as [`Asker::ask_patiently`], once an earlier one that has its time still, or is
    /// just ending, has ended; unless it is `over` before its turn comes.
    pub(crate) fn ask_in_turn<T: Send + 'static, E: Send + 'static>(
        &self,
        limit: Duration,
        over: Option<&AtomicBool>,
        question: impl FnOnce() -> Result<T, E> + Send + 'static,
    ) -> Asked<Result<T, E>> {
        let patience = Patience { grace: GLANCE, is_in_turn: true, over };
        self.ask_with(limit, patience, question, Result::is_err)
    }

    fn ask_with<T: Send + 'static>(
        &self,
        limit: Duration,
        patience: Patience<'_>,
        question: impl FnOnce() -> T + Send + 'static,
        is_error: fn(&T) -> bool,
    ) -> Asked<T> {
        let begun = self.turn.begin(limit, patience);
        let thread = thread::Builder::new();
        let answer = begun.then(|| self.put(thread, question, is_error)).flatten();
        let has_no_thread = begun && answer.is_none();
        Asked { answer, until: Instant::now() + limit, has_no_thread }
    }

    fn put<T: Send + 'static>(
        &self,
        thread: thread::Builder,
        question: impl FnOnce() -> T + Send + 'static,
        is_error: fn(&T) -> bool,
    ) -> Option<mpsc::Receiver<T>> {
        let turn = self.turn.clone();
        let (sender, receiver) = mpsc::sync_channel(1);
        let ask = move || {
            let answer = question();
            turn.end(is_error(&answer));
            // Who asked may have gone on.
            let _ = sender.send(answer);
        };
        let thread = thread.name("sterna-ask".into()).spawn(ask);
        if thread.is_err() {
            self.turn.abandon();
        }
        thread.is_ok().then_some(receiver)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(5);
    const SHORT: Duration = Duration::from_millis(10);

    #[test]
    fn questions_that_give_up_one_after_the_other_have_been_open_since_the_first() {
        let asker = Asker::default();
        // Each is held until it has been late.
        let hangs = || {
            let (release, held) = mpsc::channel::<()>();
            let asked = asker.ask(SHORT, move || held.recv().is_ok());
            assert_eq!(asked.answer(), None);
            release
        };
        let ends = |release: mpsc::Sender<()>| {
            drop(release);
            while asker.is_open() {
                thread::yield_now();
            }
        };
        let began = Instant::now();
        ends(hangs());
        let between = asker.silent_for().unwrap();
        assert!(between >= SHORT && between <= began.elapsed(), "{between:?}");
        let release = hangs();
        let seen = asker.silent_for().unwrap();
        assert!(seen >= SHORT * 2 && seen <= began.elapsed(), "{seen:?}");
        assert!(asker.overdue_for().unwrap() < seen, "it alone");
        ends(release);
        assert_eq!(asker.ask(LONG, || 7).answer(), Some(7));
        let (_release, held) = mpsc::channel::<()>();
        let _open = asker.ask(LONG, move || held.recv().is_ok());
        assert!(asker.silent_for().unwrap() < LONG, "that is over");
    }

    #[test]
    fn who_asks_two_things_of_one_knows_since_when_neither_was_answered() {
        let (one, other) = {
            let one = Asker::default();
            let other = one.beside();
            (one, other)
        };
        let hangs = |asker: &Asker| {
            let (release, held) = mpsc::channel::<()>();
            assert_eq!(asker.ask(SHORT, move || held.recv().is_ok()).answer(), None);
            release
        };
        drop(hangs(&one));
        while one.is_open() {
            thread::yield_now();
        }
        let began = Instant::now();
        let release = hangs(&other);
        let so_far = began.elapsed();
        assert!(other.silent_for().unwrap() > so_far, "it began with the first");
        assert!(one.silent_for().unwrap() > so_far, "and both say so");
        assert_eq!(one.ask(LONG, || 7).answer(), Some(7));
        assert_eq!(one.silent_for(), None, "it was answered");
        drop(release);
    }

    #[test]
    fn a_question_that_gives_up_in_its_time_ends_no_silence() {
        let asker = Asker::default();
        let (release, held) = mpsc::channel::<()>();
        assert_eq!(asker.ask(SHORT, move || held.recv().is_ok()).answer(), None);
        drop(release);
        while asker.is_open() {
            thread::yield_now();
        }
        let after = |answer: Result<(), ()>| {
            move || {
                thread::sleep(PROMPT + SHORT);
                answer
            }
        };
        assert_eq!(asker.ask_patiently(LONG, after(Err(()))).answer(), Some(Err(())));
        assert_eq!(asker.ask_nothing(LONG).answer(), Some(()), "nor one of nobody");
        assert!(asker.silent_for().is_some_and(|span| span > PROMPT), "it goes on");
        assert_eq!(asker.ask_patiently(LONG, after(Ok(()))).answer(), Some(Ok(())));
        assert_eq!(asker.silent_for(), None, "a slow answer is one");
    }

    #[test]
    fn a_question_that_hangs_is_left_behind() {
        let asker = Asker::default();
        assert_eq!(asker.ask(LONG, || 7).answer(), Some(7));
        let (release, held) = mpsc::channel::<()>();
        let hang = move || held.recv().is_ok();
        assert_eq!(asker.ask(SHORT, hang).answer(), None);
        assert_eq!(asker.ask(SHORT, || 8).answer(), None);
        drop(release);
        assert_eq!(asker.ask(LONG, || 9).answer(), Some(9));
    }

    #[test]
    fn nobody_waits_for_an_answer_when_all_is_over() {
        let over = AtomicBool::new(false);
        let ask = |question| Asker::default().ask(LONG * 100, question);
        assert_eq!(ask(|| 7).answer_unless(&over), Some(7));
        let (asked, waits) = mpsc::channel::<()>();
        let (_release, held) = mpsc::channel::<()>();
        let hang = move || {
            drop(asked);
            held.recv().map_or(8, |()| 9)
        };
        thread::scope(|scope| {
            let asking = Asker::default().ask(LONG * 100, hang);
            let answer = scope.spawn(|| asking.answer_unless(&over));
            let _ = waits.recv();
            over.store(true, Ordering::Relaxed);
            assert_eq!(answer.join().ok(), Some(None));
        });
    }

    #[test]
    fn a_question_that_is_just_ending_is_waited_for_by_who_asks_in_turn() {
        let asker = Asker::default();
        let (release, held) = mpsc::channel::<()>();
        assert_eq!(asker.ask(SHORT, move || held.recv().is_ok()).answer(), None);
        assert!(asker.silent_for().is_some_and(|span| span >= SHORT));
        let begun = Instant::now();
        let ask_in_turn = |limit, over: Option<&AtomicBool>, answer: u8| {
            asker.ask_in_turn(limit, over, move || Ok::<u8, ()>(answer)).answer()
        };
        assert_eq!(ask_in_turn(SHORT, None, 1), None, "it goes on");
        assert!(begun.elapsed() >= GLANCE, "it might have been just ending");
        let over = AtomicBool::new(true);
        assert_eq!(ask_in_turn(LONG, Some(&over), 2), None);
        drop(release);
        assert_eq!(ask_in_turn(LONG, None, 3), Some(Ok(3)));
    }

    #[test]
    fn a_question_that_has_its_time_still_is_waited_for_by_who_asks_in_turn() {
        let asker = Asker::default();
        let (release, held) = mpsc::channel::<()>();
        let first = asker.ask(LONG, move || held.recv().is_err());
        let (asked, was_asked) = mpsc::channel();
        thread::scope(|scope| {
            // Its own time is shorter.
            scope.spawn(|| drop(asker.ask_in_turn(SHORT, None, move || asked.send(()))));
            thread::sleep(GLANCE * 3);
            drop(release);
            assert_eq!(was_asked.recv_timeout(LONG), Ok(()));
        });
        assert_eq!(first.answer(), Some(true));
    }

    #[test]
    fn a_question_without_a_thread_keeps_no_other_from_its_turn() {
        let asker = Asker::default();
        assert!(asker.turn.begin(LONG, Patience::default()));
        // No machine has so much memory.
        let thread = thread::Builder::new().stack_size(1 << 60);
        assert!(asker.put(thread, || 1, |_| false).is_none());
        let asked = asker.ask(LONG, || 2);
        assert!(!asked.has_no_thread());
        assert_eq!(asked.answer(), Some(2));
    }

    #[test]
    fn who_asks_while_another_waits_gets_an_answer_too() {
        let asker = Asker::default();
        let (release, held) = mpsc::channel::<()>();
        let first = asker.ask(LONG, move || held.recv().is_err());
        let second = thread::spawn({
            let asker = asker.clone();
            move || asker.ask(LONG, || 2).answer()
        });
        drop(release);
        assert_eq!(first.answer(), Some(true));
        assert_eq!(second.join().ok(), Some(Some(2)));
    }
}
