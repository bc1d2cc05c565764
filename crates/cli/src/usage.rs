//! Errors of the command line: clap's text, with ranges as people write them, and with tips for
//! words that other tools use.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use sterna_api::{Error, ErrorCode};
use sterna_console::output::{Output, note};

/// What to write instead of a word, after the word before it; after any word, if that is
/// empty.
const INSTEAD: [(&str, &str, &str); 21] = [
    ("migration", "stop", "'pause' stops a migration for a while, 'cancel' for good"),
    ("migration", "remove", "'cancel' ends a migration; ended ones stay in the list"),
    ("disk", "resize", "Sterna cannot change the size of a disk"),
    ("disk", "move", "sterna migrate DISK --to DATASTORE"),
    ("sterna", "move", "sterna migrate DISK --to DATASTORE, or sterna vm move"),
    ("sterna", "list", "say of what: sterna disk list, sterna datastore list"),
    ("sterna", "ls", "say of what: sterna disk list, sterna datastore list"),
    ("sterna", "show", "say of what: sterna disk show NAME"),
    ("sterna", "stop", "sterna migration pause, or sterna migration cancel"),
    ("sterna", "pause", "sterna migration pause"),
    ("sterna", "resume", "sterna migration resume"),
    ("sterna", "cancel", "sterna migration cancel"),
    ("sterna", "disks", "sterna disk list"),
    ("sterna", "datastores", "sterna datastore list"),
    ("sterna", "migrations", "sterna migration list"),
    ("sterna", "classes", "sterna class list"),
    ("sterna", "policies", "sterna policy list"),
    ("sterna", "plans", "sterna plan list"),
    ("sterna", "vms", "sterna vm list"),
    ("sterna", "hosts", "sterna host list"),
    ("", "delete", "'remove'"),
];

/// Says what is wrong with a command line, or prints the help asked for; gives the code
/// to exit with. clap wraps help, but not errors.
pub(crate) fn tell(error: clap::Error, words: &[String], output: Output) -> u8 {
    if !error.use_stderr() {
        error.exit();
    }
    // The code that clap promises is small.
    let code = error.exit_code() as u8;
    let text = text(error, words);
    if output.is_json() {
        output.failure(&body(&text));
    } else {
        note(text.trim_end());
    }
    code
}

/// What clap says, with tips of our own where it has bad ones or none.
fn text(mut error: clap::Error, words: &[String]) -> String {
    if let Some(tip) = tip(&error, words) {
        for guess in [
            ContextKind::SuggestedSubcommand,
            ContextKind::SuggestedArg,
            ContextKind::Suggested,
        ] {
            error.remove(guess);
        }
        let tip = ContextValue::StyledStrs(vec![tip.into()]);
        error.insert(ContextKind::Suggested, tip);
    }
    numbers(&ranges(&error.render().to_string()))
}

/// What to write instead, if that is known.
fn tip(error: &clap::Error, words: &[String]) -> Option<String> {
    let context = |kind| match error.get(kind)? {
        ContextValue::String(word) => Some(word.clone()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let wrong = context(ContextKind::InvalidSubcommand)?;
            let at = words.iter().position(|word| *word == wrong)?;
            let before =
                words[..at].iter().rfind(|it| !it.starts_with('-')).map(String::as_str);
            // A path before it is the program's own, or a socket's.
            let before = before.filter(|it| !it.contains('/')).unwrap_or("sterna");
            let found = INSTEAD.iter().find(|(after, word, _)| {
                *word == wrong && (after.is_empty() || *after == before)
            })?;
            Some(found.2.to_owned())
        }
        ErrorKind::UnknownArgument => {
            let wrong = context(ContextKind::InvalidArg)?;
            let is_move = words.iter().any(|it| it == "migrate" || it == "predict");
            let is_of_migrate = ["--finish-by", "--window"].contains(&wrong.as_str());
            if is_of_migrate && words.iter().any(|it| it == "predict") {
                return Some(format!(
                    "predict has no {wrong}: with it, you and not the storage decide how \
                     long the move takes; --at predicts a move that begins later"
                ));
            }
            let has_to = words.iter().any(|it| it == "--to" || it.starts_with("--to="));
            if wrong.strip_prefix('-').is_some_and(|it| it.starts_with(char::is_numeric))
            {
                return Some("no value here can be below zero".into());
            }
            (is_move && !has_to && !wrong.starts_with('-'))
                .then(|| format!("name the destination with '--to {wrong}'"))
        }
        _ => None,
    }
}

/// What to give where a text is no number.
const WHOLE: &str = "give a whole number, without sign and fraction";

/// Ranges of numbers, which clap writes as Rust does.
fn ranges(text: &str) -> String {
    const IS_NOT_IN: &str = " is not in ";
    let Some((before, after)) = text.split_once(IS_NOT_IN) else { return text.into() };
    let end = after.find(char::is_whitespace).unwrap_or(after.len());
    let (range, rest) = after.split_at(end);
    let Some((least, most)) = range.split_once("..") else { return text.into() };
    let most = most.trim_start_matches('=');
    // The number itself is told before.
    let before = before.rsplit_once(' ').map_or(before, |(before, _)| before);
    match most.parse::<u64>() {
        // Both bounds are the type's own: what is refused later is not known here.
        Ok(most) if least == "0" && most >= u64::from(u32::MAX) => {
            format!("{before} {WHOLE}{rest}")
        }
        // The bound is the type's own.
        Ok(most) if most >= u64::from(u32::MAX) => {
            format!("{before} give at least {least}{rest}")
        }
        _ => format!("{before} give {least} to {most}{rest}"),
    }
}

/// What Rust says of a text that is no number, which clap gives on.
fn numbers(text: &str) -> String {
    text.replace("invalid digit found in string", WHOLE)
        .replace("cannot parse integer from empty string", WHOLE)
        .replace("number too large to fit in target type", "the number is too large")
}

/// clap's text in the API's form: its first paragraph is what is wrong. Each further
/// paragraph, such as the usage, is a line of the hint.
fn body(text: &str) -> Error {
    let text = text.strip_prefix("error: ").unwrap_or(text);
    let (message, hint) = text.split_once("\n\n").unwrap_or((text, ""));
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines: Vec<String> = hint.split("\n\n").map(flat).collect();
    Error { code: ErrorCode::Invalid, message: flat(message), hint: lines.join("\n") }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::Cli;

    fn told(line: &str) -> String {
        let words: Vec<String> = line.split(' ').map(Into::into).collect();
        let error = Cli::try_parse_from(&words).expect_err("it is wrong");
        text(error, &words)
    }

    #[test]
    fn a_usage_error_says_what_is_wrong_in_json_too() {
        let body = body(&told("sterna --json migrate db"));
        assert!(body.message.starts_with("the following required"), "{body:?}");
        assert!(body.message.contains("--to <DATASTORE>"), "{body:?}");
        assert!(body.hint.starts_with("Usage: sterna migrate"), "{body:?}");
        assert!(body.hint.contains("\nFor more information"), "{body:?}");
    }

    #[test]
    fn ranges_are_said_in_words() {
        let activity = told("sterna activity --limit 9999");
        assert!(activity.contains("'--limit <N>': give 1 to 5000\n"), "{activity}");
        let plan = told("sterna plan evacuate a --at-once 0");
        assert!(plan.contains("'--at-once <COUNT>': give at least 1\n"), "{plan}");
    }

    #[test]
    fn what_is_no_number_is_said_in_words() {
        for line in [
            "sterna storage-drs recommend --moves=-1",
            "sterna storage-drs recommend --moves=",
            "sterna policy queue-depth c 1.5",
            "sterna class set c --shares=-1",
        ] {
            let told = told(line);
            assert!(told.contains(": give a whole number, without"), "{told}");
        }
    }

    #[test]
    fn words_of_other_tools_lead_to_commands() {
        for (line, tip) in [
            ("sterna migration stop 3", "tip: 'pause' stops a migration"),
            ("sterna resume 3", "tip: sterna migration resume"),
            ("sterna --json disks", "tip: sterna disk list"),
            ("/usr/bin/sterna list", "tip: say of what"),
            ("sterna disk delete a", "tip: 'remove'"),
            ("sterna migrate db slow", "tip: name the destination with '--to slow'"),
            ("sterna migrate db --to slow --rate -5M", "tip: no value here"),
        ] {
            let told = told(line);
            assert!(told.contains(tip) && told.matches("tip:").count() == 1, "{told}");
        }
    }

    #[test]
    fn a_typing_error_has_the_guess_of_before() {
        let told = told("sterna migrat");
        assert!(told.contains("'migrate'"), "{told}");
    }
}
