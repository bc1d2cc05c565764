//! What is seen while a store is loaded: how far it is, how quickly it goes, and how
//! long it will take.
//!
//! On a terminal a bar; else a line for each step. All of it goes to stderr, and
//! nothing if JSON is asked for.

use std::fmt::Write;
use std::io;

use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use sterna_console::output::{Output, note, takes_colour};
use sterna_workload::dvdstore::Loading;

/// The load on the terminal. Dropping it removes the bar.
pub(crate) struct Loader {
    bar: Option<ProgressBar>,
    words: bool,
    step: Option<&'static str>,
}

impl Loader {
    /// A screen for a load.
    pub(crate) fn new(output: Output) -> Loader {
        let words = !output.is_json();
        let terminal = words && takes_colour(&io::stderr());
        Loader { bar: terminal.then(ProgressBar::no_length), words, step: None }
    }

    /// The load is this far.
    pub(crate) fn tell(&mut self, news: Loading) {
        let (step, done, total) = match news {
            Loading::Rows(done, total) => ("rows", done, total),
            Loading::Indexes(done, total) => ("indexes", done, total),
            Loading::Analysis => ("analysis", 0, 0),
        };
        if self.step != Some(step) {
            self.step = Some(step);
            self.begin(step, total);
        }
        if let Some(bar) = &self.bar {
            bar.set_position(done);
        }
    }

    fn begin(&self, step: &'static str, total: u64) {
        let Some(bar) = &self.bar else {
            if self.words {
                match total {
                    0 => note(&format!("loading: {step}")),
                    _ => note(&format!("loading: {total} {step}")),
                }
            }
            return;
        };
        let template = match total {
            0 => "{msg}",
            _ => "[{bar:28}] {percent:>3}%  {human_pos} {msg}, {rate}/s  {eta} left",
        };
        let style = ProgressStyle::with_template(template);
        let style = style.expect("the template is valid").progress_chars("=> ");
        bar.set_style(style.with_key(
            "rate",
            |state: &ProgressState, to: &mut dyn Write| {
                // A row more or less a second interests nobody, and neither would a bar
                // that cannot write.
                let _ = write!(to, "{:.0}", state.per_sec());
            },
        ));
        bar.set_length(total);
        bar.set_message(step);
        bar.reset();
    }
}

impl Drop for Loader {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
