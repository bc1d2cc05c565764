//! What is seen while an experiment runs: the phase, and how long it will take.
//!
//! On a terminal a bar; else a line for each phase. All of it goes to stderr, and
//! nothing if JSON is asked for. How long something takes is an estimate: past it, it is
//! overdue, and the bar is not full before the end.

use std::cell::Cell;
use std::io;

use indicatif::{ProgressBar, ProgressStyle};

use crate::format::span;
use crate::output::{Output, WIDTH, note, takes_colour};
use crate::table::wrap;

/// How finely the bar tells how much is done: percents.
const PARTS: u64 = 100;

/// The experiment on the terminal. Dropping it removes the bar.
pub struct Screen {
    bar: Option<ProgressBar>,
    words: bool,
    /// How long all of it takes, in seconds.
    total: Cell<f64>,
}

impl Screen {
    /// A screen for an experiment of so many seconds.
    pub fn new(output: Output, total: f64) -> Screen {
        let words = !output.is_json();
        let bar = (words && takes_colour(&io::stderr())).then(|| {
            let template = "[{bar:28}] {percent:>3}%  {prefix:>15}  {msg}";
            let style = ProgressStyle::with_template(template);
            let style = style.expect("the template is valid").progress_chars("=> ");
            ProgressBar::new(PARTS).with_style(style)
        });
        Screen { words: words && bar.is_none(), bar, total: Cell::new(total) }
    }

    /// Another phase begins.
    pub fn phase(&self, at: f64, what: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(what.to_owned());
        }
        if self.words {
            note(&lines(self.total.get() - at, what));
        }
        self.tick(at);
    }

    /// It is known better how long it will take: so many seconds from now.
    pub fn expect(&self, at: f64, left: f64) {
        self.total.set(at + left);
    }

    /// Says something about the whole.
    pub fn say(&self, what: &str) {
        match &self.bar {
            Some(bar) => bar.println(what),
            None if self.words => note(what),
            None => {}
        }
    }

    /// Prints something to stdout, which may be the same terminal.
    pub fn beside(&self, print: impl FnOnce()) {
        match &self.bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    /// So many seconds have gone.
    pub fn tick(&self, at: f64) {
        if let Some(bar) = &self.bar {
            bar.set_prefix(left(self.total.get() - at));
            bar.set_position(parts(at, self.total.get()));
        }
    }
}

/// Of the bar's parts, those that are full: never the last one, because whoever is done
/// removes the bar.
fn parts(at: f64, total: f64) -> u64 {
    let full = at / total.max(f64::MIN_POSITIVE) * PARTS as f64;
    (full.max(0.0) as u64).min(PARTS - 1)
}

/// The time left, if there is any.
fn left(seconds: f64) -> String {
    match seconds {
        1.0.. => format!("{} left", span(seconds)),
        0.0..1.0 => "a moment left".into(),
        _ => "overdue".into(),
    }
}

/// A phase where there is no bar: the time left, and what is done, in as many lines as
/// that takes.
fn lines(seconds: f64, what: &str) -> String {
    let head = format!("{:>15}  ", left(seconds));
    let indent = head.chars().count();
    let what = wrap(what, WIDTH - indent);
    format!("{head}{}", what.join(&format!("\n{}", " ".repeat(indent))))
}

impl Drop for Screen {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_phase_goes_on_in_the_next_line() {
        let text = lines(75.0, "limit lifted");
        assert!(text.ends_with(" left  limit lifted"), "{text}");
        let why = "the daemon says: unreachable: nobody else is left to slow, and the \
                   class gets 12.3 MB/s of the 28.0 MB/s that are wanted";
        let text = lines(75.0, why);
        assert!(text.lines().count() > 1, "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
        let (said, meant): (Vec<String>, Vec<String>) = (words(&text), words(why));
        assert!(said.ends_with(&meant), "{text}");
    }

    #[test]
    fn what_takes_longer_than_expected_is_overdue_and_not_done() {
        assert_eq!(left(75.0), "1 min 15 s left");
        assert_eq!(left(0.4), "a moment left");
        assert_eq!(left(-3.0), "overdue");
        assert_eq!([0.0, 30.0, 60.0, 90.0].map(|at| parts(at, 60.0)), [0, 50, 99, 99]);
    }
}
