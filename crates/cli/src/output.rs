//! Where answers go: JSON or words, in colour or not.
//!
//! Answers go to stdout, everything else (progress, errors) to stderr. Colour
//! is for terminals, and not for those who set `NO_COLOR`.

use std::env;
use std::io::{self, IsTerminal, Write};

use serde::Serialize;
use sterna_api::ErrorBody;

use crate::table::{Pairs, Style, Table, wrap};

/// Lines are no longer than this, whatever the terminal.
pub(crate) const WIDTH: usize = 80;

/// Sentences in lines that fit; what is indented stays so.
pub(crate) fn prose(text: &str) -> String {
    wrap(text, WIDTH).join("\n")
}

/// How to show things.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    json: bool,
    colour: bool,
}

impl Output {
    pub(crate) fn new(json: bool) -> Self {
        let wanted = env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Output { json, colour: wanted && io::stdout().is_terminal() }
    }

    /// Whether JSON was asked for.
    pub(crate) fn is_json(self) -> bool {
        self.json
    }

    /// Shows an answer: as JSON, or in the words that `words` makes of it.
    pub(crate) fn answer<T: Serialize>(
        self,
        answer: &T,
        words: impl FnOnce(&T) -> String,
    ) -> anyhow::Result<()> {
        if self.json {
            self.print(&serde_json::to_string_pretty(answer)?)
        } else {
            self.print(words(answer).trim_end())
        }
    }

    /// Shows an answer that is one of many: JSON on one line.
    pub(crate) fn line<T: Serialize>(self, answer: &T) -> anyhow::Result<()> {
        self.print(&serde_json::to_string(answer)?)
    }

    /// A table, in colour if wanted.
    pub(crate) fn table(self, table: &Table) -> String {
        table.render(WIDTH, self.colour)
    }

    /// A heading, in colour if wanted.
    pub(crate) fn head(self, text: &str) -> String {
        Style::Head.paint(text, self.colour)
    }

    /// Names and values, in colour if wanted.
    pub(crate) fn pairs(self, pairs: &Pairs) -> String {
        pairs.render(WIDTH, self.colour)
    }

    /// The same under a sentence, which they belong to.
    pub(crate) fn pairs_below(self, pairs: &Pairs) -> String {
        let text = pairs.render(WIDTH - 2, self.colour);
        text.lines().map(|line| format!("  {line}\n")).collect()
    }

    /// Prints a text and a line's end.
    pub(crate) fn print(self, text: &str) -> anyhow::Result<()> {
        let mut stdout = io::stdout().lock();
        match writeln!(stdout, "{text}").and_then(|()| stdout.flush()) {
            // Whoever read has seen enough (`| head`).
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            printed => Ok(printed?),
        }
    }

    /// Says on stderr what happened, to what, and what to do next.
    pub(crate) fn failure(self, error: &ErrorBody) {
        let mut text = String::new();
        if self.json {
            text = serde_json::to_string_pretty(error).unwrap_or_default();
        } else {
            let colour = self.colour && io::stderr().is_terminal();
            let label = Style::Bad.paint("error: ", colour);
            let message = wrap(&error.message, WIDTH - 7).join("\n       ");
            text.push_str(&format!("{label}{message}"));
            if !error.hint.is_empty() {
                let hint = wrap(&error.hint, WIDTH - 7).join("\n       ");
                text.push_str(&format!("\n hint: {hint}"));
            }
        }
        // Nobody is left to tell if stderr is gone.
        let _ = writeln!(io::stderr(), "{text}");
    }
}
