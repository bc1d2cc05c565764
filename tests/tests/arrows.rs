//! Which room may use which: the arrows of the architecture, and no others.
use std::collections::BTreeMap;

use cargo_metadata::{DependencyKind, MetadataCommand};

/// `room → rooms that it uses`, as docs/ARCHITECTURE.md draws them. Rooms that
/// are not built yet are listed already.
const ARROWS: [(&str, &[&str]); 23] = [
    ("core", &[]),
    ("nbd", &[]),
    ("layout", &[]),
    ("engine", &["core", "nbd"]),
    ("qemu", &["core"]),
    ("workload", &["core", "nbd"]),
    ("sim", &["core", "workload"]),
    ("api", &["core"]),
    ("os", &["core", "api"]),
    ("state", &["os", "api", "core"]),
    ("console", &["api", "core"]),
    ("report", &[]),
    ("runtime", &["os", "api"]),
    ("telemetry", &["os", "api", "core"]),
    ("storage", &["telemetry", "runtime", "engine", "state", "os", "api", "core"]),
    (
        "moves",
        &["storage", "telemetry", "runtime", "engine", "state", "os", "api", "core"],
    ),
    (
        "machines",
        &[
            "moves",
            "storage",
            "telemetry",
            "runtime",
            "engine",
            "qemu",
            "state",
            "os",
            "api",
            "core",
        ],
    ),
    (
        "service-levels",
        &[
            "moves",
            "storage",
            "telemetry",
            "runtime",
            "engine",
            "state",
            "os",
            "api",
            "core",
        ],
    ),
    (
        "planner",
        &[
            "machines",
            "service-levels",
            "moves",
            "storage",
            "telemetry",
            "runtime",
            "qemu",
            "state",
            "os",
            "api",
            "core",
        ],
    ),
    (
        "server",
        &[
            "planner",
            "machines",
            "service-levels",
            "moves",
            "storage",
            "telemetry",
            "runtime",
            "qemu",
            "state",
            "os",
            "api",
            "core",
        ],
    ),
    (
        "daemon",
        &[
            "server",
            "planner",
            "machines",
            "service-levels",
            "moves",
            "storage",
            "telemetry",
            "runtime",
            "engine",
            "qemu",
            "state",
            "os",
            "api",
            "core",
        ],
    ),
    ("lab", &["console", "report", "sim", "workload", "qemu", "api", "core"]),
    (
        "cli",
        &[
            "daemon", "lab", "console", "report", "sim", "workload", "qemu", "api",
            "layout", "core",
        ],
    ),
];

/// The black-box tests drive the programs. The protocol they speak themselves, as a
/// storage server that can be told to forget.
const TESTS: &str = "tests";

#[test]
fn rooms_use_each_other_along_the_arrows_only() {
    let arrows: BTreeMap<&str, &[&str]> = ARROWS.into_iter().collect();
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
        let allowed = match arrows.get(room) {
            Some(allowed) => allowed,
            None if room == TESTS => &&["nbd"][..],
            None => {
                wrong.push(format!("{room}: no such room; see docs/ARCHITECTURE.md"));
                continue;
            }
        };
        for dependency in &package.dependencies {
            let Some(used) = dependency.name.strip_prefix("sterna-") else { continue };
            let itself = used == room && dependency.kind == DependencyKind::Development;
            if !itself && !allowed.contains(&used) {
                wrong.push(format!("{room} → {used}: there is no such arrow"));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
