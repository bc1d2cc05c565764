//! Where answers go: JSON or words, in colour or not.
//!
//! Answers go to stdout, everything else (progress, errors) to stderr. Colour
//! is for terminals, and not for those who set `NO_COLOR`; nor is anything else that moves
//! on a screen. A terminal that knows no escape sequences (`TERM=dumb`) gets none.
//!
//! **If nobody reads.** What is printed may find stdout or stderr closed, and that changes
//! nothing: the command does what it was told to, and its exit code says whether that was
//! done. So nothing here panics, and nothing is killed in its middle by SIGPIPE. What
//! cannot be written for another reason (the disk is full) is a failure.

use std::env;
use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};

use serde::Serialize;
use sterna_api::{Error, printable};

use crate::table::{Pairs, Style, Table, wrap};

/// The most columns that a line has. An answer is the same on each terminal and in each file:
/// neither the terminal's width nor `COLUMNS` changes it. (Only `sterna top` is as wide as the
/// terminal, or as `COLUMNS` says.)
pub const WIDTH: usize = 80;

/// Sentences in lines that fit; what is indented stays so.
pub fn prose(text: &str) -> String {
    wrap(text, WIDTH).join("\n")
}

/// Whether it is a screen on which a cursor can be moved.
pub fn is_screen(stream: &impl IsTerminal) -> bool {
    let knows = |term: OsString| !term.is_empty() && term != "dumb";
    stream.is_terminal() && env::var_os("TERM").is_some_and(knows)
}

/// Whether colours, and bars that move, are wanted there.
pub fn takes_colour(stream: &impl IsTerminal) -> bool {
    let wanted = env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    wanted && is_screen(stream)
}

/// Says something on stderr, if anybody listens.
pub fn note(text: &str) {
    let _ = writeln!(io::stderr(), "{}", prose(&printable(text)));
}

/// How to show things.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    json: bool,
    colour: bool,
}

impl Output {
    /// As JSON, or in words.
    pub fn new(json: bool) -> Self {
        Output { json, colour: takes_colour(&io::stdout()) }
    }

    /// Whether JSON was asked for.
    pub fn is_json(self) -> bool {
        self.json
    }

    /// Shows an answer: as JSON, or in the words that `words` makes of it, in lines that
    /// fit.
    pub fn answer<T: Serialize>(
        self,
        answer: &T,
        words: impl FnOnce(&T) -> String,
    ) -> anyhow::Result<()> {
        self.to_paste(answer, |answer| prose(words(answer).trim_end()))
    }

    /// Shows an answer whose lines somebody pastes as they are: nothing breaks them.
    pub fn to_paste<T: Serialize>(
        self,
        answer: &T,
        words: impl FnOnce(&T) -> String,
    ) -> anyhow::Result<()> {
        match self.json {
            true => self.print(&serde_json::to_string_pretty(answer)?),
            false => self.print(words(answer).trim_end()),
        }
    }

    /// Shows an answer that is one of many: JSON on one line.
    pub fn line<T: Serialize>(self, answer: &T) -> anyhow::Result<()> {
        self.print(&serde_json::to_string(answer)?)
    }

    /// A table, in colour if wanted.
    pub fn table(self, table: &Table) -> String {
        table.render(WIDTH, self.colour)
    }

    /// A heading, in colour if wanted.
    pub fn head(self, text: &str) -> String {
        Style::Head.paint(text, self.colour)
    }

    /// Names and values, in colour if wanted.
    pub fn pairs(self, pairs: &Pairs) -> String {
        pairs.render(WIDTH, self.colour)
    }

    /// The same under a sentence, which they belong to.
    pub fn pairs_below(self, pairs: &Pairs) -> String {
        let text = pairs.render(WIDTH - 2, self.colour);
        text.lines().map(|line| format!("  {line}\n")).collect()
    }

    /// Prints a text and a line's end.
    pub fn print(self, text: &str) -> anyhow::Result<()> {
        let mut stdout = io::stdout().lock();
        match writeln!(stdout, "{text}").and_then(|()| stdout.flush()) {
            // Whoever read has seen enough (`| head`).
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Err(error) => Err(Error::internal(format!(
                "cannot write the answer to standard output: {error}"
            ))
            .hint("the command itself has been carried out; do not repeat it for this")
            .into()),
            Ok(()) => Ok(()),
        }
    }

    /// Says on stderr what happened, to what, and what to do next.
    pub fn failure(self, error: &Error) {
        // Nobody is left to tell if stderr is gone.
        let _ = io::stderr().write_all(self.failure_text(error).as_bytes());
    }

    /// What happened, to what, and what to do next, in whole lines.
    pub fn failure_text(self, error: &Error) -> String {
        if self.json {
            let text = serde_json::to_string_pretty(error).unwrap_or_default();
            return format!("{text}\n");
        }
        let lines = |text: &str| wrap(&printable(text), WIDTH - 7).join("\n       ");
        let colour = self.colour && takes_colour(&io::stderr());
        let label = Style::Bad.paint("error: ", colour);
        let mut text = format!("{label}{}\n", lines(&error.message));
        if !error.hint.is_empty() {
            text.push_str(&format!(" hint: {}\n", lines(&error.hint)));
        }
        text
    }
}
