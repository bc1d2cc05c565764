//! Commands that were renamed: their old spelling still works, and Sterna says the new one.
//!
//! The command line's definition has the new spelling alone, and with it help, completion
//! and manual pages.

use std::ffi::OsString;

use sterna_console::output::note;

/// Words of a command.
type Words = &'static [&'static str];

/// The old words, and those of today.
const RENAMED: [(Words, Words); 7] = [
    // `remove` removes the thing itself elsewhere.
    (&["class", "remove"], &["class", "remove-disk"]),
    (&["drs", "pool", "remove"], &["drs", "pool", "remove-vm"]),
    (&["pool", "remove"], &["drs", "pool", "remove-vm"]),
    (&["pool"], &["drs", "pool"]),
    (&["rule"], &["drs", "rule"]),
    (&["drs", "moves"], &["drs", "migration", "list"]),
    (&["drs", "cancel"], &["drs", "migration", "cancel"]),
];

/// The option before a command that takes a value.
const WITH_VALUE: &str = "--socket";

/// A command line as it is spelled today.
pub(crate) fn today(line: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut line: Vec<OsString> = line.collect();
    let Some((at, old, new)) = renamed(&line) else { return line };
    note(&format!(
        "note: `sterna {}` is now `sterna {}`; the old spelling works, too",
        old.join(" "),
        new.join(" ")
    ));
    line.splice(at..at + old.len(), new.iter().map(OsString::from));
    line
}

/// Where an old spelling begins, if one does.
fn renamed(line: &[OsString]) -> Option<(usize, Words, Words)> {
    let mut at = 1;
    // What comes before the command are options.
    while line.get(at)?.to_str()?.starts_with('-') {
        at += if line[at] == WITH_VALUE { 2 } else { 1 };
    }
    let words = line.get(at..)?;
    let is_there = |old: &[&str]| {
        words.len() >= old.len() && old.iter().zip(words).all(|(old, word)| word == old)
    };
    let (old, new) = RENAMED.into_iter().find(|(old, _)| is_there(old))?;
    Some((at, old, new))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelled(line: &str) -> String {
        let words = today(line.split(' ').map(OsString::from));
        let words: Vec<&str> = words.iter().filter_map(|word| word.to_str()).collect();
        words.join(" ")
    }

    #[test]
    fn old_spellings_become_those_of_today() {
        for (old, new) in [
            ("sterna pool list", "sterna drs pool list"),
            ("sterna --json rule list", "sterna --json drs rule list"),
            (
                "sterna --socket /s drs moves --json",
                "sterna --socket /s drs migration list --json",
            ),
            ("sterna drs cancel 3", "sterna drs migration cancel 3"),
            ("sterna class remove oltp db", "sterna class remove-disk oltp db"),
            ("sterna drs pool remove gold db", "sterna drs pool remove-vm gold db"),
            ("sterna pool remove gold db", "sterna drs pool remove-vm gold db"),
        ] {
            assert_eq!(spelled(old), new);
        }
    }

    #[test]
    fn what_is_spelled_as_today_stays() {
        for line in [
            "sterna",
            "sterna --json",
            "sterna drs pool list",
            "sterna storage-drs rule list",
            "sterna disk show pool",
            "sterna --socket pool drs status",
        ] {
            assert_eq!(spelled(line), line);
        }
    }
}
