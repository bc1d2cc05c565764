//! What is seen while an experiment runs: the phase, and how long it will take.
//!
//! On a terminal a bar; else a line for each phase. All of it goes to stderr, and
//! nothing if JSON is asked for.

use std::io::{self, IsTerminal};

use indicatif::{ProgressBar, ProgressStyle};

use crate::format::span;
use crate::output::Output;

/// The experiment on the terminal. Dropping it removes the bar.
pub(crate) struct Screen {
    bar: Option<ProgressBar>,
    words: bool,
    /// How long all of it takes, in seconds.
    total: f64,
}

impl Screen {
    /// A screen for an experiment of so many seconds.
    pub(crate) fn new(output: Output, total: f64) -> Screen {
        let words = !output.is_json();
        let bar = (words && io::stderr().is_terminal()).then(|| {
            let template = "[{bar:28}] {percent:>3}%  {prefix:>10} left  {msg}";
            let style = ProgressStyle::with_template(template);
            let style = style.expect("the template is valid").progress_chars("=> ");
            ProgressBar::new(total as u64).with_style(style)
        });
        Screen { words: words && bar.is_none(), bar, total }
    }

    /// Another phase begins.
    pub(crate) fn phase(&self, at: f64, what: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(what.to_owned());
        }
        if self.words {
            eprintln!("{:>10} left  {what}", span((self.total - at).max(0.0)));
        }
    }

    /// So many seconds have gone.
    pub(crate) fn tick(&self, at: f64) {
        if let Some(bar) = &self.bar {
            bar.set_prefix(span((self.total - at).max(0.0)));
            bar.set_position(at as u64);
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
