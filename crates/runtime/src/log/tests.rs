use std::io::{self, ErrorKind, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::queue::Queue;
use super::{LAST_LINES, Log};

/// A file, a pipe or a terminal that does what it is told.
#[derive(Clone, Default)]
struct Place {
    bytes: Arc<Mutex<Vec<u8>>>,
    /// What a write comes to.
    error: Arc<Mutex<Option<ErrorKind>>>,
    /// It takes so much at a time, if anything is said here.
    piece: Option<usize>,
    hangs: Arc<AtomicBool>,
}

impl Place {
    fn fails(&self, how: impl Into<Option<ErrorKind>>) {
        *self.error.lock().unwrap() = how.into();
    }

    fn text(&self) -> String {
        String::from_utf8(self.bytes.lock().unwrap().clone()).unwrap()
    }

    /// Waits for a text that is as it should be.
    #[track_caller]
    fn shows(&self, is: impl Fn(&str) -> bool) {
        let end = Instant::now() + Duration::from_secs(20);
        while !is(&self.text()) {
            assert!(Instant::now() < end, "{}", self.text());
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Write for Place {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        while self.hangs.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(1));
        }
        if let Some(error) = *self.error.lock().unwrap() {
            return Err(error.into());
        }
        let count = self.piece.unwrap_or(bytes.len()).min(bytes.len());
        self.bytes.lock().unwrap().extend_from_slice(&bytes[..count]);
        if self.piece.is_some() {
            self.fails(ErrorKind::StorageFull);
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn log(place: &Place) -> Log {
    Log::to(place.clone()).unwrap()
}

#[test]
fn lines_are_written_in_their_order_and_waited_for() {
    let place = Place::default();
    let log = log(&place);
    for line in ["a\n", "b\n", "c\n"] {
        log.say(line.as_bytes());
    }
    log.settle(LAST_LINES);
    assert_eq!(place.text(), "a\nb\nc\n");
    assert_eq!(log.state(), super::State::default());
}

#[test]
fn what_a_full_disk_takes_not_is_counted_and_told_when_it_takes_something_again() {
    let place = Place::default();
    let log = log(&place);
    place.fails(ErrorKind::StorageFull);
    for _ in 0..3 {
        log.say(b"lost\n");
    }
    log.settle(LAST_LINES);
    let state = log.state();
    assert_eq!((state.lost, state.problem.is_some()), (3, true), "{state:?}");
    place.fails(None);
    log.say(b"here\n");
    log.settle(LAST_LINES);
    let text = place.text();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].contains("WARN lines of the log were lost lost=3 why="), "{text}");
    assert_eq!(lines[1..], ["here"]);
    let state = log.state();
    assert_eq!((state.lost, state.problem), (3, None), "all of them stay counted");
}

#[test]
fn nobody_waits_for_a_log_that_hangs_and_what_is_too_much_is_lost() {
    let place = Place::default();
    place.hangs.store(true, Ordering::Relaxed);
    let log = log(&place);
    let line = [b'x'; 1023].into_iter().chain([b'\n']).collect::<Vec<u8>>();
    let since = Instant::now();
    for _ in 0..3000 {
        log.say(&line);
    }
    log.settle(Duration::from_millis(10));
    assert!(since.elapsed() < Duration::from_secs(2), "{:?}", since.elapsed());
    let lost = log.state().lost;
    assert!((1900..2000).contains(&lost), "{lost}");
    // Nothing else has to be said for it; once or twice, as the thread had come.
    place.hangs.store(false, Ordering::Relaxed);
    let told = |text: &str| -> u64 {
        let after = text.split("lost=").skip(1).filter_map(|rest| rest.split(' ').next());
        after.filter_map(|count| count.parse::<u64>().ok()).sum()
    };
    place.shows(|text| told(text) == lost);
}

#[test]
fn one_that_takes_nothing_at_the_moment_is_tried_again() {
    let place = Place::default();
    place.fails(ErrorKind::WouldBlock);
    let log = log(&place);
    log.say(b"a\n");
    log.settle(Duration::from_millis(120));
    place.fails(None);
    place.shows(|text| text == "a\n");
    assert_eq!(log.state().lost, 0);
}

#[test]
fn a_line_that_was_written_half_is_ended_before_the_next() {
    let place = Place { piece: Some(3), ..Place::default() };
    let log = log(&place);
    log.say(b"abcdef\n");
    log.settle(LAST_LINES);
    place.fails(None);
    assert_eq!((place.text().as_str(), log.state().lost), ("abc", 1));
    let place_is_whole = Place { piece: None, ..place.clone() };
    let mut torn = true;
    super::write_line(&mut { place_is_whole }, b"next\n", &mut torn).unwrap();
    assert_eq!(place.text(), "abc\nnext\n");
}

#[test]
fn a_line_that_hangs_is_a_problem_before_anything_is_lost() {
    let mut queue = Queue::new(100);
    queue.push(b"a");
    let now = Instant::now();
    assert_eq!(queue.take(now).as_deref(), Some(&b"a"[..]));
    assert_eq!(queue.state(now).problem, None);
    let later = queue.state(now + Duration::from_secs(6));
    assert_eq!(
        later.problem.as_deref(),
        Some("the reader of the log has stopped reading")
    );
    assert_eq!(later.lost, 0);
}
