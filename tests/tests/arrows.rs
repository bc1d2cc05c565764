//! Which room may use which: the arrows of the architecture, and no others.
use std::collections::BTreeSet;

use cargo_metadata::{DependencyKind, MetadataCommand};

/// `room → rooms that it uses`, as docs/ARCHITECTURE.md draws them. Rooms that
/// are not built yet are listed already.
const ARROWS: [(&str, &[&str]); 19] = [
    ("core", &[]),
    ("placement", &["core"]),
    ("nbd", &[]),
    ("layout", &[]),
    ("dashboard", &[]),
    ("engine", &["core", "nbd"]),
    ("qemu", &["core"]),
    ("workload", &["core", "nbd"]),
    ("sim", &["core", "placement", "workload"]),
    ("api", &["core"]),
    ("os", &["core", "api"]),
    ("state", &["os", "api", "core", "placement"]),
    ("console", &["api", "core"]),
    ("report", &[]),
    ("runtime", &["os", "api"]),
    ("telemetry", &["os", "api", "core"]),
    ("storage", &["telemetry", "runtime", "engine", "state", "os", "api", "core"]),
    (
        "lab",
        &["console", "report", "sim", "workload", "qemu", "api", "core", "placement"],
    ),
    (
        "cli",
        &[
            "daemon",
            "lab",
            "console",
            "report",
            "sim",
            "workload",
            "qemu",
            "api",
            "layout",
            "core",
            "placement",
        ],
    ),
];

/// The services above storage, and the daemon: each uses these, and all that these use.
const SERVICES: [(&str, &[&str]); 7] = [
    ("moves", &["storage"]),
    ("machines", &["moves", "qemu", "placement"]),
    ("memory", &["machines"]),
    ("service-levels", &["moves"]),
    ("planner", &["machines", "service-levels"]),
    ("server", &["planner", "memory", "dashboard"]),
    ("daemon", &["server", "engine"]),
];

/// But these do not see the engine: what they decide and show is tested without one.
const WITHOUT_ENGINE: [&str; 2] = ["planner", "server"];

/// All that a room may use; none if there is no such room.
fn allowed(room: &str) -> Option<BTreeSet<&'static str>> {
    if let Some((_, uses)) = ARROWS.iter().find(|(name, _)| *name == room) {
        return Some(uses.iter().copied().collect());
    }
    let (_, uses) = SERVICES.iter().find(|(name, _)| *name == room)?;
    let of = |used: &&'static str| {
        let below = allowed(used).unwrap_or_default();
        // The protocol is the engine's alone.
        below.into_iter().filter(|it| *it != "nbd").chain([*used])
    };
    let mut all: BTreeSet<_> = uses.iter().flat_map(of).collect();
    if WITHOUT_ENGINE.contains(&room) {
        all.remove("engine");
    }
    Some(all)
}

/// The black-box tests drive the programs. The protocol they speak themselves, as a
/// storage server that can be told to forget.
const TESTS: &str = "tests";

#[test]
fn rooms_use_each_other_along_the_arrows_only() {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml");
    let metadata = MetadataCommand::new()
        .manifest_path(manifest)
        .no_deps()
        .exec()
        .expect("cargo metadata");
    let mut wrong = Vec::new();
    for package in metadata.workspace_packages() {
        let Some(room) = package.name.strip_prefix("sterna-") else {
            wrong.push(format!(
                "{}: a room's package is called sterna-ROOM",
                package.name
            ));
            continue;
        };
        let allowed = match allowed(room) {
            Some(allowed) => allowed,
            None if room == TESTS => ["nbd"].into(),
            None => {
                wrong.push(format!("{room}: no such room; see docs/ARCHITECTURE.md"));
                continue;
            }
        };
        for dependency in &package.dependencies {
            let Some(used) = dependency.name.strip_prefix("sterna-") else { continue };
            let itself = used == room && dependency.kind == DependencyKind::Development;
            if !itself && !allowed.contains(used) {
                wrong.push(format!("{room} → {used}: there is no such arrow"));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
