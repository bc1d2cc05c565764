//! The alerts for Prometheus and the dashboard for Grafana: what they say is well formed,
//! tested, and explained in the manual.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use sterna_tests::programs;
use sterna_tests::scratch::Scratch;

const RULES: &str = "contrib/prometheus/sterna.rules.yml";
const RULE_TESTS: &str = "contrib/prometheus/sterna.rules.test.yml";
const DASHBOARD: &str = "contrib/grafana/sterna.json";

/// What Grafana draws without a plug-in, as far as it is used.
const PANELS: [&str; 4] = ["row", "stat", "table", "timeseries"];

pub(super) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path))
        .unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The metrics of Sterna that a text names.
fn metrics_in(text: &str) -> BTreeSet<String> {
    let is_part = |it: char| it.is_ascii_alphanumeric() || it == '_';
    let words = text.split(|it| !is_part(it));
    words.filter(|word| word.starts_with("sterna_")).map(str::to_owned).collect()
}

/// What follows a key, wherever it is in a rule file.
fn all_of<'t>(text: &'t str, key: &str) -> Vec<&'t str> {
    let lines = text.lines().map(|line| line.trim_start().trim_start_matches("- "));
    lines.filter_map(|line| line.strip_prefix(key)).map(str::trim).collect()
}

fn panels(dashboard: &Value) -> &Vec<Value> {
    dashboard["panels"].as_array().expect("panels")
}

/// The expressions of the dashboard's panels.
fn expressions(dashboard: &Value) -> Vec<String> {
    let targets = panels(dashboard).iter().filter_map(|it| it["targets"].as_array());
    let text =
        |target: &Value| target["expr"].as_str().expect("an expression").to_owned();
    targets.flatten().map(text).collect()
}

fn dashboard() -> Value {
    serde_json::from_str(&read(DASHBOARD)).expect("JSON")
}

/// All metrics that alerts and dashboard speak of.
pub(super) fn spoken_of() -> BTreeSet<String> {
    let rules = metrics_in(&read(RULES));
    rules.into_iter().chain(metrics_in(&expressions(&dashboard()).join("\n"))).collect()
}

/// Those of these metrics that the manual does not have.
pub(crate) fn not_explained(names: &BTreeSet<String>) -> Vec<&String> {
    let manual = read("docs/manual/metrics.md");
    // A histogram is named once there, by its buckets.
    let is_named = |name: &String| {
        let stem = name.strip_suffix("_count").or_else(|| name.strip_suffix("_sum"));
        let histogram = stem.map(|stem| format!("`{stem}_bucket"));
        let summary = stem.map(|stem| format!("`{stem}_sum`, `_count"));
        manual.contains(&format!("`{name}"))
            || [histogram, summary].iter().flatten().any(|it| manual.contains(it))
    };
    names.iter().filter(|name| !is_named(name)).collect()
}

#[test]
fn prometheus_takes_the_alerts_and_each_fires_where_it_has_to() {
    if !programs::have(&["promtool"]) {
        return;
    }
    let path = |name: &str| root().join(name).display().to_string();
    programs::run("promtool", ["check", "rules", &path(RULES)]);
    programs::run("promtool", ["test", "rules", &path(RULE_TESTS)]);
}

#[test]
fn each_alert_is_explained_and_tested() {
    let (rules, tests, manual) =
        (read(RULES), read(RULE_TESTS), read("docs/manual/metrics.md"));
    let alerts = all_of(&rules, "alert:");
    assert!(alerts.len() >= 9, "{alerts:?}");
    for what in ["summary:", "description:", "expr:"] {
        assert_eq!(all_of(&rules, what).len(), alerts.len(), "{what}");
    }
    let runbooks = all_of(&rules, "runbook:");
    assert_eq!(runbooks.len(), alerts.len());
    let tested = all_of(&tests, "alertname:");
    for (alert, runbook) in alerts.iter().zip(runbooks) {
        let anchor = alert.to_lowercase();
        assert_eq!(runbook, format!("docs/manual/metrics.md#{anchor}"));
        assert!(manual.contains(&format!("\n### {alert}\n")), "{alert} is not explained");
        assert!(tested.contains(alert), "{alert} is not tested");
    }
}

#[test]
fn the_dashboard_needs_no_plug_in_and_asks_for_its_data_source() {
    let dashboard = dashboard();
    assert!(dashboard["schemaVersion"].as_u64() >= Some(39));
    let rows = panels(&dashboard).iter().filter(|it| it["type"] == "row");
    let rows: Vec<_> = rows.map(|it| it["title"].as_str().unwrap_or_default()).collect();
    assert_eq!(rows, ["Now", "Disks", "Moves"]);
    let variables = dashboard["templating"]["list"].as_array().expect("variables");
    assert_eq!(variables[0]["type"], "datasource");
    let name = variables[0]["name"].as_str().expect("its name");
    for panel in panels(&dashboard) {
        let kind = panel["type"].as_str().expect("a type");
        assert!(PANELS.contains(&kind), "{kind}");
        if kind != "row" {
            assert_eq!(panel["datasource"]["uid"], format!("${{{name}}}"), "{panel:#}");
            assert!(panel["description"].as_str().is_some_and(|it| !it.is_empty()));
        }
    }
}

#[test]
fn prometheus_takes_the_dashboards_expressions() {
    if !programs::have(&["promtool"]) {
        return;
    }
    let expressions = expressions(&dashboard());
    assert!(expressions.len() > 15);
    let mut rules = "groups:\n- name: dashboard\n  rules:\n".to_owned();
    for (at, text) in expressions.iter().enumerate() {
        let text = text.replace("$__rate_interval", "5m");
        let text = text.replace("$instance", ".*").replace("$disk", ".*");
        assert!(!text.contains('$'), "{text}");
        let text = serde_json::to_string(&text).expect("a string");
        rules.push_str(&format!("  - record: dashboard:{at}\n    expr: {text}\n"));
    }
    let scratch = Scratch::new();
    let file = scratch.path("dashboard.yml");
    fs::write(&file, rules).expect("write the rules");
    programs::run("promtool", ["check", "rules", &file.display().to_string()]);
}
