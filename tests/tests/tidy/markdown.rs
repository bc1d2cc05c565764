//! Pages: which there are, and as much of Markdown as links, headings and sentences need.
//!
//! Code is left out: fenced blocks, indented lines and what stands between backticks.
//! (A paragraph that is indented by four spaces, within a list, is taken for code: what
//! it says is then not looked at.)

use std::fs;
use std::path::{Path, PathBuf};

pub(crate) struct Page {
    /// From the repository's root.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// The pages of the repository: those at its root, and the documentation.
pub(crate) fn pages(root: &Path) -> Vec<Page> {
    let mut paths = Vec::new();
    collect(root, false, &mut paths);
    collect(&root.join("docs"), true, &mut paths);
    paths.sort();
    let page = |path: &PathBuf| Page {
        path: path.strip_prefix(root).expect("below the root").display().to_string(),
        text: fs::read_to_string(path).expect("read a page"),
    };
    let pages: Vec<Page> = paths.iter().map(page).collect();
    assert!(pages.len() > 20, "the pages were not found");
    pages
}

fn collect(dir: &Path, deep: bool, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).expect("a directory of pages").flatten() {
        let path = entry.path();
        if path.is_dir() && deep {
            collect(&path, deep, into);
        } else if path.extension().is_some_and(|end| end == "md") {
            into.push(path);
        }
    }
}

/// The lines that are not code, with their numbers.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        (!fence && !fenced && !line.starts_with("    ")).then_some((index + 1, line))
    })
}

/// A line without what stands between backticks; the backticks stay.
pub(crate) fn without_code(line: &str) -> String {
    let mut kept = String::new();
    for (index, part) in line.split('`').enumerate() {
        kept.push_str(if index % 2 == 0 { part } else { "``" });
    }
    kept
}

/// The anchors of a page's headings, as GitHub makes them.
pub(crate) fn anchors(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for (_, line) in lines(text) {
        let heading = line.trim_start_matches('#');
        if heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let anchor = slug(heading.trim());
        let again = |tried: &String| found.contains(tried);
        let name =
            (0..)
                .map(|times| {
                    if times == 0 { anchor.clone() } else { format!("{anchor}-{times}") }
                })
                .find(|tried| !again(tried))
                .expect("a name that is free");
        found.push(name);
    }
    found
}

fn slug(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn code_is_no_text() {
    let text = "before\n```\nfenced\n```\n    indented\nafter";
    let seen: Vec<(usize, &str)> = lines(text).collect();
    assert_eq!(seen, [(1, "before"), (6, "after")]);
    assert_eq!(without_code("a `[b](c)` d"), "a `` d");
}

#[test]
fn headings_have_the_anchors_that_github_gives_them() {
    let text = "# sterna vm\n## `list`, show\n## The API's *use*\n## list, show\n#hash";
    assert_eq!(anchors(text), ["sterna-vm", "list-show", "the-apis-use", "list-show-1"]);
}
