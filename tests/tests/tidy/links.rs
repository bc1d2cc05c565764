//! Links of pages lead somewhere: to a file or a directory of the repository, and in a
//! page to a heading. So do the paths in the tables of "I want to change…".

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use super::markdown::{anchors, lines, pages, without_code};

/// What the architecture's tables leave out in front of a path.
const ROOMS: &str = "crates";

/// The targets of a line's links.
fn targets(line: &str) -> Vec<String> {
    let line = without_code(line);
    line.split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')').map(|(target, _)| target.to_owned()))
        .collect()
}

/// A path that is written relative to a page, from the root. No path leads out of it.
fn resolve(page: &str, target: &str) -> Option<String> {
    let mut path = PathBuf::from(page);
    path.pop();
    for part in Path::new(target).components() {
        match part {
            Component::Normal(name) => path.push(name),
            Component::CurDir => {}
            Component::ParentDir if path.pop() => {}
            _ => return None,
        }
    }
    Some(path.display().to_string())
}

/// Why a page's link leads nowhere. `headings` knows the anchors of pages, `exists`
/// files and directories.
fn dead(
    page: &str,
    target: &str,
    headings: &BTreeMap<String, Vec<String>>,
    exists: &dyn Fn(&str) -> bool,
) -> Option<String> {
    if ["https://", "http://", "mailto:"].iter().any(|scheme| target.starts_with(scheme))
    {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = match path {
        "" => page.to_owned(),
        path => match resolve(page, path) {
            Some(path) if exists(&path) => path,
            _ => return Some(format!("{target}: there is no such file")),
        },
    };
    let known = headings.get(&path);
    if anchor.is_empty() || known.is_some_and(|known| known.iter().any(|it| it == anchor))
    {
        return None;
    }
    known.map(|_| format!("{target}: the page has no such heading"))
}

#[test]
fn no_page_has_a_dead_link() {
    let root = super::root();
    let pages = pages(&root);
    let headings =
        pages.iter().map(|page| (page.path.clone(), anchors(&page.text))).collect();
    let exists = |path: &str| root.join(path).exists();
    let mut wrong = Vec::new();
    for page in &pages {
        for (number, line) in lines(&page.text) {
            for target in targets(line) {
                if let Some(why) = dead(&page.path, &target, &headings, &exists) {
                    wrong.push(format!("{}:{number}: {why}", page.path));
                }
            }
        }
    }
    super::none(&wrong);
}

#[test]
fn all_rows_of_a_table_have_as_many_cells_as_its_head() {
    let cells = |line: &str| without_code(line).replace("\\|", "").matches('|').count();
    let mut wrong = Vec::new();
    for page in pages(&super::root()) {
        let mut head = None;
        for (number, line) in lines(&page.text) {
            let row = line.trim();
            match head {
                _ if !row.starts_with('|') => head = None,
                None => head = Some(cells(row)),
                Some(head) if cells(row) != head => {
                    wrong.push(format!("{}:{number}: a row with other cells", page.path));
                }
                Some(_) => {}
            }
        }
    }
    super::none(&wrong);
}

/// The paths between a row's backticks. A name without a directory is in that of the
/// path before it: `core/src/mirror/pace.rs`, `step_table.rs`.
fn paths(row: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut directory = PathBuf::new();
    for name in row.split('`').skip(1).step_by(2) {
        let path = if name.contains("/src") || name.contains("tests/") {
            PathBuf::from(name)
        } else {
            directory.join(name)
        };
        directory = path.parent().unwrap_or(Path::new("")).to_owned();
        found.push(path.display().to_string());
    }
    found
}

#[test]
fn tables_of_what_to_change_name_files_that_are_there() {
    let root = super::root();
    let mut wrong = Vec::new();
    let mut rows = 0;
    for page in pages(&root) {
        let mut within = false;
        for (number, line) in lines(&page.text) {
            within =
                line.starts_with("| I want to change") || within && line.starts_with('|');
            let Some((_, places)) = line.trim_matches('|').split_once('|') else {
                continue;
            };
            if !within {
                continue;
            }
            for path in paths(places) {
                rows += 1;
                if !root.join(ROOMS).join(&path).exists() && !root.join(&path).exists() {
                    wrong.push(format!("{}:{number}: there is no {path}", page.path));
                }
            }
        }
    }
    super::none(&wrong);
    assert!(rows > 50, "the tables were not found");
}

#[test]
fn links_are_found_where_they_are_and_not_in_code() {
    assert_eq!(
        targets("see [a](b.md#c), `[no](no.md)` and ![d](e.svg)"),
        ["b.md#c", "e.svg"]
    );
}

#[test]
fn a_link_is_dead_if_its_file_or_its_heading_is_missing() {
    let headings = BTreeMap::from([(
        "docs/a.md".to_owned(),
        vec!["one".to_owned(), "two".to_owned()],
    )]);
    let exists = |path: &str| ["docs/a.md", "README.md", "docs"].contains(&path);
    let is_dead = |target| dead("docs/a.md", target, &headings, &exists).is_some();
    for alive in
        ["#one", "a.md#two", "../README.md", "../docs", "https://nowhere.invalid/x"]
    {
        assert!(!is_dead(alive), "{alive}");
    }
    for missing in
        ["#three", "b.md", "a.md#three", "../../etc/passwd", "../docs/b.md#one"]
    {
        assert!(is_dead(missing), "{missing}");
    }
}

#[test]
fn a_name_in_a_table_is_in_the_directory_before_it() {
    assert_eq!(
        paths(" `core/src/a/b.rs`, `c.rs`; also: `sim/src/d/`, `tests/guest/` "),
        ["core/src/a/b.rs", "core/src/a/c.rs", "sim/src/d/", "tests/guest/"]
    );
}
