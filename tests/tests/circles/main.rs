//! Which module uses which: no large circles, so that one module can be understood without
//! all others. (`arrows` has the same for rooms.)
//!
//! Modules that stand side by side in one folder are compared, each with all that is below
//! it. If they use each other in a circle, none can be read, tested or moved without the
//! others. A circle of two or three is one thing in several files; a larger one is refused,
//! and in the engine every one.
//! What a module uses of its own folder's `mod.rs` does not count: that is its roof.
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use source::Source;

/// More modules in a circle are not one thing any more.
const CIRCLE_MAX: usize = 3;

/// Crates whose circles are one machine in several files.
const MACHINES: [&str; 2] = ["core", "placement"];

/// Crates whose modules lie one above the other: no two use each other.
const LAYERED: [&str; 1] = ["engine"];

type Modules = BTreeMap<String, BTreeSet<String>>;

/// Who uses whom among the modules right below `folder`.
fn siblings(source: &Source, folder: &[String]) -> Modules {
    let below = |path: &[String]| {
        let rest = path.strip_prefix(folder)?;
        rest.first().cloned()
    };
    let mut modules = Modules::new();
    for (user, used) in source.uses() {
        let Some(user) = below(user) else { continue };
        let all = modules.entry(user.clone()).or_default();
        all.extend(used.iter().filter_map(|path| below(path)).filter(|it| *it != user));
    }
    modules
}

/// All that a module uses, at any distance.
fn reach<'m>(modules: &'m Modules, from: &'m str) -> BTreeSet<&'m str> {
    let mut reached = BTreeSet::new();
    let mut next = vec![from];
    while let Some(module) = next.pop() {
        for used in modules.get(module).into_iter().flatten() {
            if reached.insert(used.as_str()) {
                next.push(used);
            }
        }
    }
    reached
}

/// The circles of more than `max` modules.
fn circles(modules: &Modules, max: usize) -> BTreeSet<Vec<String>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        modules.keys().map(|name| (name.as_str(), reach(modules, name))).collect();
    let both = |a: &str, b: &str| {
        let uses = |a: &str, b: &str| reached.get(a).is_some_and(|all| all.contains(b));
        uses(a, b) && uses(b, a)
    };
    let circle_of = |name: &String| {
        modules.keys().filter(|other| both(name, other)).cloned().collect::<Vec<_>>()
    };
    modules.keys().map(circle_of).filter(|circle| circle.len() > max).collect()
}

#[test]
fn modules_side_by_side_use_each_other_in_no_large_circle() {
    let crates = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../crates"));
    let mut found = Vec::new();
    for room in std::fs::read_dir(crates).expect("the crates") {
        let room = room.expect("a crate");
        let name = room.file_name().to_string_lossy().into_owned();
        if MACHINES.contains(&name.as_str()) {
            continue;
        }
        let max = if LAYERED.contains(&name.as_str()) { 1 } else { CIRCLE_MAX };
        let source = Source::read(&room.path().join("src"));
        for folder in source.folders() {
            for circle in circles(&siblings(&source, &folder), max) {
                found.push((name.clone(), folder.join("/"), circle));
            }
        }
    }
    assert_eq!(found, [], "circles of modules, by crate and folder");
}

#[test]
fn a_circle_is_found_however_long_the_way_is() {
    let modules: Modules = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a"), ("e", "a")]
        .map(|(user, used)| (user.to_owned(), BTreeSet::from([used.to_owned()])))
        .into();
    let circle = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
    assert_eq!(circles(&modules, CIRCLE_MAX), BTreeSet::from([circle]));
}
