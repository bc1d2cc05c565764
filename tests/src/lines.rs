//! A program's output, line by line, while it runs.

use std::io::{BufRead, BufReader, Read};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// The lines so far.
#[derive(Clone, Default)]
pub struct Lines {
    lines: Arc<Mutex<Vec<String>>>,
}

impl Lines {
    /// Collects lines until the program closes its end.
    pub fn collect(from: impl Read + Send + 'static) -> (Lines, JoinHandle<()>) {
        let lines = Lines::default();
        let sink = lines.clone();
        let thread = std::thread::spawn(move || {
            for line in BufReader::new(from).lines().map_while(Result::ok) {
                sink.lines.lock().expect("not poisoned").push(line);
            }
        });
        (lines, thread)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.lines.lock().expect("not poisoned").len()
    }

    /// All of them.
    pub fn all(&self) -> Vec<String> {
        self.lines.lock().expect("not poisoned").clone()
    }

    /// The last ones, for a message.
    pub fn tail(&self, count: usize) -> String {
        let lines = self.all();
        lines[lines.len().saturating_sub(count)..].join("\n")
    }
}
