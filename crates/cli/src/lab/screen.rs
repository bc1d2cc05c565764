//! What is seen while an experiment runs: the phase, and how long it will take.
//!
//! On a terminal a bar; else a line for each phase. All of it goes to stderr, and
//! nothing if JSON is asked for.

use std::io::{self, IsTerminal};

use indicatif::{ProgressBar, ProgressStyle};

use crate::format::span;
use crate::output::{Output, WIDTH};
use crate::table::wrap;

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
            eprintln!("{}", lines((self.total - at).max(0.0), what));
        }
    }

    /// Says something about the whole.
    pub(crate) fn say(&self, what: &str) {
        match &self.bar {
            Some(bar) => bar.println(what),
            None if self.words => eprintln!("{what}"),
            None => {}
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

/// A phase where there is no bar: the time left, and what is done, in as many lines as
/// that takes.
fn lines(left: f64, what: &str) -> String {
    let head = format!("{:>10} left  ", span(left));
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
}
