//! The daemon's file: the options of `sterna serve`, in TOML.
//!
//! It has no list of its own. A key is a flag's long name; its value goes to the flag's own
//! parser, and a flag that may be given several times takes a list. So the file cannot
//! know less than the command line, or allow more, but for one thing: its paths are
//! absolute, because nobody sees where a service runs.
//!
//! If the file has several mistakes, Sterna reports all of them, each with its line.

use std::any::TypeId;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, ArgAction, CommandFactory, Parser};
use sterna_api::ErrorCode;
use sterna_console::connect::Failure;
use sterna_daemon::within;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::options::Said;
use crate::common::text_file;

/// How long the file may take: a pipe into which nobody writes, and a file system that hangs,
/// would keep a start waiting for ever. (A program that decrypts the file into a pipe may ask
/// somebody first.)
const PATIENCE: Duration = Duration::from_secs(60);

/// So long a file is looked at to say why it could not be read.
const GLANCE: Duration = Duration::from_secs(1);

/// Reads a file, which may be missing if it is not needed.
pub(super) fn read(path: &Path, needed: bool) -> anyhow::Result<Option<Said>> {
    let text = match text_within(PATIENCE, path) {
        Err(error) if error.kind() == ErrorKind::NotFound && !needed => return Ok(None),
        text => text.with_context(|| {
            format!("cannot read the configuration file {}", path.display())
        })?,
    };
    let said = parse(&text).map_err(|problems| {
        let line = |problem: &Problem| problem.shown(path, &text);
        Failure {
            code: ErrorCode::Invalid,
            message: problems.iter().map(line).collect::<Vec<_>>().join("\n"),
            hint: "`sterna serve --check` tries a configuration without starting".into(),
        }
    })?;
    Ok(Some(said))
}

/// What is in a file, if it can be had in time.
fn text_within(patience: Duration, path: &Path) -> io::Result<String> {
    let file = path.to_path_buf();
    within(patience, move || text_file::read(&file)).unwrap_or_else(|| {
        let file = path.to_path_buf();
        // Where the file system hangs, this hangs, too.
        let kind = within(patience.min(GLANCE), move || fs::metadata(file));
        let is_pipe = kind.is_some_and(|it| it.is_ok_and(|it| it.file_type().is_fifo()));
        let seconds = patience.as_secs();
        let silent = match is_pipe {
            true => format!("it is a pipe, and nobody has written to it for {seconds} s"),
            false => format!("its file system has not answered for {seconds} s"),
        };
        Err(io::Error::new(ErrorKind::TimedOut, silent))
    })
}

/// What is wrong, and where.
#[derive(Debug)]
struct Problem {
    at: usize,
    what: String,
}

impl Problem {
    fn shown(&self, path: &Path, text: &str) -> String {
        let before = text.as_bytes().get(..self.at).unwrap_or(text.as_bytes());
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        format!("{}:{line}: {}", path.display(), self.what)
    }
}

fn parse(text: &str) -> Result<Said, Vec<Problem>> {
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        vec![Problem { at, what: format!("this is not TOML: {}", error.message()) }]
    })?;
    let command = Said::command();
    let (mut words, mut problems) = (Vec::new(), Vec::new());
    for (key, value) in table.get_ref() {
        let at = key.span().start;
        match said_of(&command, key.get_ref(), value) {
            Ok(more) => words.extend(more),
            Err(what) => problems.push(Problem { at, what }),
        }
    }
    if !problems.is_empty() {
        problems.sort_by_key(|problem| problem.at);
        return Err(problems);
    }
    // Each was good alone, and none knows of another.
    Said::try_parse_from(words)
        .map_err(|error| vec![Problem { at: 0, what: error.to_string() }])
}

/// What a key and its value are on a command line.
fn said_of(
    command: &clap::Command,
    key: &str,
    value: &Spanned<DeValue<'_>>,
) -> Result<Vec<String>, String> {
    let Some(option) = command.get_arguments().find(|arg| arg.get_long() == Some(key))
    else {
        return Err(format!("there is no option `{key}`; there are {}", all(command)));
    };
    let texts = texts(option, value.get_ref())
        .ok_or_else(|| format!("`{key}` has a wrong value; it takes {}", form(option)))?;
    let word = |text: &str| check(option, key, text).map(|()| format!("--{key}={text}"));
    texts.into_iter().map(word).collect()
}

/// The names of all options.
fn all(command: &clap::Command) -> String {
    let mut names: Vec<_> = command.get_arguments().filter_map(Arg::get_long).collect();
    names.sort_unstable();
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn takes_many(option: &Arg) -> bool {
    matches!(option.get_action(), ArgAction::Append)
}

/// How an option's value is written.
fn form(option: &Arg) -> &'static str {
    match takes_many(option) {
        true => "a text in quotes, or a list of texts: [\"…\", \"…\"]",
        false => "a text in quotes",
    }
}

/// The texts that a value has, if it is of a form that this option takes.
fn texts<'a>(option: &Arg, value: &'a DeValue<'_>) -> Option<Vec<&'a str>> {
    match value.as_array() {
        Some(list) if takes_many(option) => {
            list.iter().map(|one| one.get_ref().as_str()).collect()
        }
        _ => value.as_str().map(|text| vec![text]),
    }
}

/// Has the flag's own parser look at a value.
fn check(option: &Arg, key: &str, text: &str) -> Result<(), String> {
    let is_path = option.get_value_parser().type_id() == TypeId::of::<PathBuf>();
    if is_path && !Path::new(text).is_absolute() {
        return Err(format!("`{key}` must be an absolute path, not {text:?}"));
    }
    let Err(error) = Said::try_parse_from([format!("--{key}={text}")]) else {
        return Ok(());
    };
    let allowed = match error.get(ContextKind::ValidValue) {
        Some(ContextValue::Strings(values)) if !values.is_empty() => {
            format!("it may be {}", values.join(", "))
        }
        _ => std::error::Error::source(&error)
            .map_or_else(|| error.kind().to_string(), |why| why.to_string()),
    };
    Err(format!("`{key}` cannot be {text:?}: {allowed}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All that is wrong with a text, as it is told.
    fn wrong(text: &str) -> Vec<String> {
        let problems = parse(text).expect_err("something is wrong with it");
        let path = Path::new("/f.toml");
        problems.iter().map(|problem| problem.shown(path, text)).collect()
    }

    #[test]
    fn a_pipe_into_which_nobody_writes_holds_nobody_up() {
        let dir = tempfile::tempdir().expect("a directory");
        let pipe = dir.path().join("sterna.toml");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.expect("run mkfifo").success());
        let refused = text_within(GLANCE, &pipe).unwrap_err().to_string();
        assert!(refused.contains("nobody has written to it"), "{refused}");
    }

    #[test]
    fn every_option_of_the_command_line_is_one_of_the_file() {
        let cli = crate::args::Cli::command();
        let serve = cli.find_subcommand("serve").expect("there is `serve`");
        // `--config` and `--check` say what to do with the file.
        let apart = ["config", "check", "help"];
        let flags = serve.get_arguments().filter(|arg| !arg.is_hide_set());
        let flags = flags.filter_map(Arg::get_long).filter(|it| !apart.contains(it));
        let mut flags: Vec<_> = flags.chain(["socket"]).collect();
        flags.sort_unstable();
        let said = Said::command();
        let mut keys: Vec<_> = said.get_arguments().filter_map(Arg::get_long).collect();
        keys.sort_unstable();
        assert_eq!(keys, flags);
    }

    /// The file that packages install.
    const PACKAGED: &str = include_str!("../../../../../packaging/sterna.toml");

    #[test]
    fn the_packaged_file_says_nothing_and_shows_every_option() {
        parse(PACKAGED).expect("it is read as it is");
        let option = |line: &str| {
            let line = line.strip_prefix('#')?;
            line.starts_with(|first: char| first.is_ascii_lowercase())
                .then(|| format!("{line}\n"))
        };
        let shown: String = PACKAGED.lines().filter_map(option).collect();
        parse(&shown).expect("what it shows is allowed");
        for key in Said::command().get_arguments().filter_map(Arg::get_long) {
            let shows = shown.lines().any(|line| line.starts_with(&format!("{key} = ")));
            assert!(shows, "packaging/sterna.toml does not show `{key}`");
        }
    }

    #[test]
    fn an_empty_file_says_nothing() {
        let said = parse("# state = '/x'\n").expect("nothing is wrong with it");
        assert_eq!(said.options.state, None);
    }

    #[test]
    fn one_address_needs_no_list() {
        let said = parse("listen = '127.0.0.1:1'").expect("nothing is wrong with it");
        assert_eq!(said.options.listen.len(), 1);
    }

    #[test]
    fn all_that_is_wrong_is_said_with_its_line_and_what_is_allowed() {
        let told =
            wrong("\nnbd-sokcet = '/x'\nio = 'psync'\nstate = 7\n\nlisten = 'x:1'");
        assert_eq!(told.len(), 4, "{told:#?}");
        assert_eq!(
            told[0],
            "/f.toml:2: there is no option `nbd-sokcet`; there are `dashboard`, `io`, \
             `listen`, `nbd-socket`, `socket`, `state`"
        );
        assert_eq!(
            told[1],
            "/f.toml:3: `io` cannot be \"psync\": it may be auto, io_uring, threads"
        );
        assert_eq!(
            told[2],
            "/f.toml:4: `state` has a wrong value; it takes a text in quotes"
        );
        assert!(
            told[3].starts_with("/f.toml:6: `listen` cannot be \"x:1\": give an IP addr")
        );
    }

    #[test]
    fn what_is_no_text_is_refused_wherever_it_is() {
        for text in ["io = true", "listen = [1]", "state = ['/a']", "[state]\nx = 1"] {
            let told = wrong(text);
            assert!(
                told[0].contains("has a wrong value; it takes a text"),
                "{text}: {told:?}"
            );
        }
        assert!(wrong("state = ''")[0].contains("absolute path"));
        assert!(wrong("state = 'here'")[0].contains("absolute path"));
    }

    #[test]
    fn what_is_no_toml_is_refused_with_its_line() {
        let told = wrong("io = 'auto'\nstate = /x\n");
        assert!(told[0].starts_with("/f.toml:2: this is not TOML: "), "{told:?}");
        let told = wrong("io = 'auto'\nio = 'auto'\n");
        assert!(told[0].starts_with("/f.toml:2: this is not TOML: "), "{told:?}");
    }
}
