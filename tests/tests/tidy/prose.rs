//! Pages that read well stay so: constructions that make people read a sentence twice.
//!
//! They put a pronoun where a noun helps, or hide the actor. Only pages that are free of
//! them are listed; a page that becomes free of them joins the list.

use super::markdown::{lines, pages, without_code};

const CLEAN: [&str; 62] = [
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "docs/ARCHITECTURE.md",
    "docs/building.md",
    "docs/first-steps.md",
    "docs/what-works.md",
    "docs/architecture/moving.md",
    "docs/architecture/trust.md",
    "docs/architecture/data-path.md",
    "docs/architecture/vms.md",
    "docs/architecture/service-levels.md",
    "docs/architecture/measuring.md",
    "docs/architecture/where.md",
    "docs/glossary.md",
    "docs/reliability.md",
    "docs/adr/0001-decide-in-core.md",
    "docs/adr/0002-dependencies.md",
    "docs/adr/0003-region-map.md",
    "docs/adr/0004-discard-is-zero.md",
    "docs/adr/0005-pause-stops-mirroring.md",
    "docs/adr/0006-no-copy-file-range.md",
    "docs/adr/0007-turns-before-the-mirror.md",
    "docs/adr/0008-order-of-the-first-pass.md",
    "docs/adr/0009-storage-drs-acts-late.md",
    "docs/adr/0010-one-record-says-where-a-guest-runs.md",
    "docs/benchmarks.md",
    "docs/manual/advise.md",
    "docs/manual/bench.md",
    "docs/manual/class.md",
    "docs/manual/completion.md",
    "docs/manual/datastore.md",
    "docs/manual/disk.md",
    "docs/manual/drs.md",
    "docs/manual/emulated-arrays.md",
    "docs/manual/files.md",
    "docs/manual/host.md",
    "docs/manual/index.md",
    "docs/manual/lab.md",
    "docs/manual/lab-nas250.md",
    "docs/manual/lab-overcommit.md",
    "docs/manual/lab-qos.md",
    "docs/manual/lab-svmotion.md",
    "docs/manual/man.md",
    "docs/manual/migrate.md",
    "docs/manual/migration.md",
    "docs/manual/nbd-servers.md",
    "docs/manual/plan.md",
    "docs/manual/policy.md",
    "docs/manual/drs-pool.md",
    "docs/manual/predict.md",
    "docs/manual/qemu.md",
    "docs/manual/drs-rule.md",
    "docs/manual/security.md",
    "docs/manual/serve.md",
    "docs/manual/sim.md",
    "docs/manual/status.md",
    "docs/manual/storage-drs.md",
    "docs/manual/top.md",
    "docs/manual/troubleshooting.md",
    "docs/manual/vm.md",
    "docs/releasing.md",
];

/// A construction, in lower case, and what to write instead. A full stop at its
/// beginning stands for the beginning of a sentence.
const HARD: [(&str, &str); 15] = [
    ("one that", "name the noun again"),
    ("ones that", "name the noun again"),
    ("of which", "begin a new sentence with the noun"),
    ("what is left of", "name what is left"),
    ("what becomes of", "say what happens to it, and who does it"),
    ("whoever", "name the person or the program"),
    ("he", "the operator, the user, or you"),
    ("his", "the operator's, the user's, or your"),
    ("it is said", "name the command that says so"),
    ("is taken up", "name who takes it up: Sterna continues"),
    ("so is that", "say it as a sentence of its own"),
    ("so does that", "say it as a sentence of its own"),
    (". of a", "put subject and verb first"),
    (". of an", "put subject and verb first"),
    (". what", "put the actor first"),
];

/// A page's words in lower case, each with the number of its line. `.` stands alone
/// where a sentence begins, `|` where a heading or a row of a table does: those need not
/// be sentences.
fn words(text: &str) -> Vec<(usize, String)> {
    let mut found = vec![(1, ".".to_owned())];
    let mut last = 0;
    for (number, line) in lines(text) {
        let line = without_code(line);
        let begins = line.trim_start();
        let sentences = !begins.starts_with(['|', '#']);
        if !sentences {
            found.push((number, "|".to_owned()));
        } else if begins.is_empty() || begins.starts_with('-') || number != last + 1 {
            found.push((number, ".".to_owned()));
        }
        last = number;
        for word in line.split_whitespace() {
            let bare = word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
            let code = word.contains("``");
            if code || !bare.is_empty() {
                found.push((number, if code { "`".to_owned() } else { bare }));
            }
            if sentences && word.ends_with(['.', '?']) {
                found.push((number, ".".to_owned()));
            }
        }
    }
    found
}

/// The hard constructions of a text: line, construction, advice.
fn hard(text: &str) -> Vec<(usize, &'static str, &'static str)> {
    let words = words(text);
    let mut found = Vec::new();
    for (start, (number, _)) in words.iter().enumerate() {
        for (construction, advice) in HARD {
            let mut rest = words[start..].iter().map(|(_, word)| word.as_str());
            if construction.split(' ').all(|word| rest.next() == Some(word)) {
                found.push((*number, construction, advice));
            }
        }
    }
    found
}

#[test]
fn pages_that_read_well_stay_so() {
    let pages = pages(&super::root());
    let mut wrong = Vec::new();
    for clean in CLEAN {
        let Some(page) = pages.iter().find(|page| page.path == clean) else {
            wrong.push(format!("{clean}: there is no such page"));
            continue;
        };
        for (number, construction, advice) in hard(&page.text) {
            wrong.push(format!("{clean}:{number}: \"{construction}\": {advice}"));
        }
    }
    super::none(&wrong);
}

fn found(text: &str) -> Vec<&'static str> {
    hard(text).into_iter().map(|(_, construction, _)| construction).collect()
}

#[test]
fn hard_constructions_are_found_over_line_ends_and_not_in_code() {
    assert_eq!(found("A move, or one\nthat pauses."), ["one that"]);
    assert_eq!(hard("First.\n\nHe moves them."), [(3, "he", HARD[6].1)]);
    assert!(found("`one that`\n\n    one that\n").is_empty());
}

#[test]
fn inversions_are_found_where_a_sentence_begins() {
    assert_eq!(found("It ends. Of a log the guard finds that out."), [". of a"]);
    assert_eq!(found("- What moves is kept."), [". what"]);
    assert!(found("The size of a log, and what it holds.").is_empty());
    assert!(found("- `advise`: what disks are like.").is_empty());
    assert!(found("# What works\n\n| what it is | x |\n").is_empty());
}

#[test]
fn words_that_only_contain_a_construction_are_no_finding() {
    assert!(found("The history of the other; someone thatches.").is_empty());
}
