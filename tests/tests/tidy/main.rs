//! Manners that a compiler does not check.
//!
//! - A file has at most 800 lines; over 500 it is reported.
//! - A function has at most 70 lines: it fits a screen. A line of a comment has at most 100
//!   characters, if it is no row of a table and has no link.
//! - Nothing is left for later in a comment.
//! - `core` and `placement` decide and do nothing else: no clock, thread, file, socket,
//!   process, environment or randomness of its own.
//! - `unsafe` is written in `engine` alone, but for what `os` sets of the process.
//! - Every module begins with prose.
//! - No page links to what is not there, and pages that read well stay so.

mod links;
mod markdown;
mod prose;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

const HARD_LIMIT: usize = 800;
const SOFT_LIMIT: usize = 500;
const FUNCTION_LIMIT: usize = 70;
const COMMENT_LIMIT: usize = 100;

/// Where everything is pure.
const PURE: [&str; 2] = ["crates/core/src", "crates/placement/src"];

/// What pure code may not name. (Its property tests may; they are in `tests/`.)
const FOREIGN_TO_THE_PURE: [&str; 12] = [
    "std::time::Instant",
    "std::time::SystemTime",
    "SystemTime::",
    "Instant::now",
    "std::thread",
    "std::fs",
    "std::net",
    "std::process",
    "std::env",
    "std::os",
    "rand::",
    "RandomState",
];

struct Source {
    /// From the repository's root.
    path: String,
    text: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the root")
}

fn collect(dir: &Path, root: &Path, into: &mut Vec<Source>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(dir)
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && name != "target" && name != "corpus" {
            collect(&path, root, into);
        } else if name.ends_with(".rs") {
            let text = fs::read_to_string(&path).expect("read a source file");
            let path = path.strip_prefix(root).expect("below the root");
            into.push(Source { path: path.display().to_string(), text });
        }
    }
}

fn sources() -> Vec<Source> {
    let root = root();
    let mut sources = Vec::new();
    for dir in ["crates", "tests", "fuzz"] {
        collect(&root.join(dir), &root, &mut sources);
    }
    assert!(sources.len() > 20, "the sources were not found");
    sources
}

/// The code of a line, without its comment. (Good enough: a `//` in a string
/// cuts a line short, which hides nothing that we look for.)
fn code(line: &str) -> &str {
    line.split("//").next().unwrap_or_default()
}

#[track_caller]
fn none(wrong: &[String]) {
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn files_are_short_enough_to_be_read() {
    let mut wrong = Vec::new();
    for source in sources() {
        let lines = source.text.lines().count();
        if lines > HARD_LIMIT {
            wrong.push(format!("{}: {lines} lines, {HARD_LIMIT} at most", source.path));
        } else if lines > SOFT_LIMIT {
            let text = format!("\nlong file: {} has {lines} lines", source.path);
            let _ = writeln!(std::io::stderr(), "{text}");
        }
    }
    none(&wrong);
}

/// Functions as rustfmt lays them out: from a line that declares one to the
/// closing brace with the same indentation.
fn functions(text: &str) -> Vec<(usize, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let code = code(line);
        let trimmed = code.trim_start();
        let declares =
            ["fn ", "pub fn ", "const fn ", "async fn ", concat!("un", "safe fn ")]
                .iter()
                .any(|start| trimmed.starts_with(start))
                || (trimmed.starts_with("pub") && trimmed.contains(" fn "));
        if !declares {
            continue;
        }
        let indentation = code.len() - trimmed.len();
        let end = lines[index..].iter().position(|line| {
            let shut = line.trim_end();
            shut.len() == indentation + 1 && shut.ends_with('}')
                || shut.starts_with(&code[..indentation])
                    && shut.ends_with(';')
                    && shut.len() - shut.trim_start().len() == indentation
        });
        if let Some(length) = end {
            found.push((index + 1, length + 1));
        }
    }
    found
}

#[test]
fn functions_fit_a_screen() {
    let mut wrong = Vec::new();
    for source in sources() {
        for (line, length) in functions(&source.text) {
            if length > FUNCTION_LIMIT {
                wrong.push(format!(
                    "{}:{line}: a function of {length} lines, {FUNCTION_LIMIT} at most",
                    source.path
                ));
            }
        }
    }
    none(&wrong);
}

#[test]
fn comments_fit_a_screen() {
    let mut wrong = Vec::new();
    for source in sources() {
        for (index, line) in source.text.lines().enumerate() {
            let is_comment = line.trim_start().starts_with("//");
            let may = line.contains('|') || line.contains("://");
            if is_comment && !may && line.chars().count() > COMMENT_LIMIT {
                wrong.push(format!("{}:{}: {}", source.path, index + 1, line.trim()));
            }
        }
    }
    none(&wrong);
}

#[test]
fn nothing_is_left_for_later_in_a_comment() {
    let words = [concat!("FIX", "ME"), concat!("TO", "DO"), concat!("XX", "X:")];
    let mut wrong = Vec::new();
    for source in sources() {
        for (index, line) in source.text.lines().enumerate() {
            if words.iter().any(|word| line.contains(word)) {
                wrong.push(format!("{}:{}: {}", source.path, index + 1, line.trim()));
            }
        }
    }
    none(&wrong);
}

#[test]
fn what_decides_has_no_clock_no_files_no_threads_and_no_dice() {
    let mut wrong = Vec::new();
    for source in sources() {
        if !PURE.iter().any(|pure| source.path.starts_with(pure)) {
            continue;
        }
        for (index, line) in source.text.lines().enumerate() {
            for word in FOREIGN_TO_THE_PURE {
                if code(line).contains(word) {
                    wrong.push(format!("{}:{}: {word}", source.path, index + 1));
                }
            }
        }
    }
    none(&wrong);
}

#[test]
fn unsafe_is_written_in_the_engine_and_for_the_process_alone() {
    let word = concat!("un", "safe ");
    let mut wrong = Vec::new();
    for source in sources() {
        // There is no safe way to set a limit between fork and exec, nor to ignore a signal.
        let is_of_process = source.path == "crates/os/src/process.rs";
        if source.path.starts_with("crates/engine/") || is_of_process {
            continue;
        }
        for (index, line) in source.text.lines().enumerate() {
            let code = code(line);
            if code.contains(&format!("{word}{{")) || code.contains(&format!("{word}fn"))
            {
                wrong.push(format!("{}:{}", source.path, index + 1));
            }
        }
    }
    none(&wrong);
}

#[test]
fn every_module_begins_with_prose() {
    let mut wrong = Vec::new();
    for source in sources() {
        // The tests of the module beside it, which says what it is.
        let tests = source.path.ends_with("/tests.rs");
        if !tests && !source.text.starts_with("//!") {
            wrong.push(format!("{}: what is it?", source.path));
        }
    }
    none(&wrong);
}
