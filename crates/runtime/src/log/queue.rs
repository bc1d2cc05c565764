//! Lines on their way to the log: those that wait, and how many were lost.
//!
//! Decides and does nothing: what is written, when and where to, is the writer's.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use jiff::Timestamp;

/// A line that is being written for so long hangs.
const HANGS: Duration = Duration::from_secs(5);

/// Why lines are lost of which the next ones may not be.
const TOO_MANY: &str = "the daemon writes faster than the reader reads";

/// Whoever reads it does so no more, and holds the other end open.
const STANDS_STILL: &str = "the reader of the log has stopped reading";

/// How a log fares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// So many lines were lost since the start.
    pub lost: u64,
    /// Why it cannot be written now.
    pub problem: Option<String>,
}

#[derive(Debug)]
pub(super) struct Queue {
    lines: VecDeque<Vec<u8>>,
    /// What the lines come to.
    bytes: usize,
    /// What they may come to.
    most: usize,
    /// Since when a line is being written.
    writing: Option<Instant>,
    /// The last one could not be written.
    failing: bool,
    /// So many were lost...
    lost: u64,
    /// ... and so many of them the log does not tell yet...
    untold: u64,
    /// ... for this.
    why: String,
}

impl Queue {
    /// An empty one, of so many bytes.
    pub(super) fn new(most: usize) -> Queue {
        Queue {
            lines: VecDeque::new(),
            bytes: 0,
            most,
            writing: None,
            failing: false,
            lost: 0,
            untold: 0,
            why: String::new(),
        }
    }

    /// Another line; lost if there is no room for it.
    pub(super) fn push(&mut self, line: &[u8]) {
        if self.bytes + line.len() > self.most {
            let why = if self.failing { self.why.clone() } else { TOO_MANY.into() };
            return self.lose(why);
        }
        self.bytes += line.len();
        self.lines.push_back(line.into());
    }

    /// The next line, which is being written from now on.
    pub(super) fn take(&mut self, now: Instant) -> Option<Vec<u8>> {
        let line = self.lines.pop_front()?;
        self.bytes -= line.len();
        self.writing = Some(now);
        Some(line)
    }

    /// The line is written, or is lost.
    pub(super) fn written(&mut self, written: Result<(), String>) {
        self.writing = None;
        self.failing = written.is_err();
        if let Err(why) = written {
            self.lose(why);
        }
    }

    fn lose(&mut self, why: String) {
        self.lost += 1;
        self.untold += 1;
        self.why = why;
    }

    /// What the log has to tell before its next line: of so many lines, this.
    pub(super) fn note(&self) -> Option<(u64, String)> {
        let (lost, why) = (self.untold, &self.why);
        let text = format!(
            "{:.6}  WARN lines of the log were lost lost={lost} why={why:?}",
            Timestamp::now()
        );
        (lost > 0).then_some((lost, text))
    }

    /// It has told that of so many.
    pub(super) fn told(&mut self, count: u64) {
        self.untold = self.untold.saturating_sub(count);
        self.failing = false;
    }

    /// It could not.
    pub(super) fn not_told(&mut self, why: String) {
        self.failing = true;
        self.why = why;
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Whether all has been written, as far as it can be.
    pub(super) fn is_settled(&self) -> bool {
        self.is_empty() && self.writing.is_none()
    }

    /// Whether the last line could not be written.
    pub(super) fn is_failing(&self) -> bool {
        self.failing
    }

    /// How it fares.
    pub(super) fn state(&self, now: Instant) -> State {
        let hangs = self.writing.is_some_and(|since| now - since >= HANGS);
        let problem = match (hangs, self.untold) {
            (true, _) => Some(STANDS_STILL.to_owned()),
            (false, 0) => None,
            (false, _) => Some(self.why.clone()),
        };
        State { lost: self.lost, problem }
    }
}
