//! Requests that change something, as entries.
//!
//! What was asked is told by the operation's name in the API's document, and by what the
//! request says; the command that stands for it, by the client itself (`sterna-command`),
//! which nobody else checks.

use serde_json::Value;
use sterna_api::{Activity, printable_line};
use sterna_core::{Bytes, Nanos};

use super::words::object;

/// The most that is told of a request, in characters.
const TEXT_MOST: usize = 400;

/// Where the API's paths begin that are about something with a name, and how that is called.
const SUBJECTS: [(&str, &str); 14] = [
    ("disks", "disk"),
    ("datastores", "datastore"),
    ("migrations", "migration"),
    ("plans", "plan"),
    ("classes", "class"),
    ("policies", "policy"),
    ("vms", "vm"),
    ("placements", "vm"),
    ("hosts", "host"),
    ("pools", "pool"),
    ("imports", "disk"),
    ("rules", "rule"),
    ("memory", "vm"),
    ("swap", "swap tier"),
];

/// Fields that are told whatever they say: no other one says whether it begins or ends.
const SWITCHES: [&str; 1] = ["maintenance"];

/// Fields that hold if nothing is said: they are told if they do not.
const USUAL: [&str; 1] = ["verify"];

/// Fields whose numbers are bytes, or bytes per second.
const SIZES: [&str; 7] =
    ["size", "rate", "bytes", "bytes_per_second", "memory", "reserve", "balloon_max"];

/// What bodies call what they are about.
const NAMED: [&str; 3] = ["disk", "vm", "class"];

/// A request that changes something.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Asked {
    /// Who asks.
    pub(crate) who: String,
    /// What the API calls it: `start_migration`.
    pub(crate) operation: String,
    /// The path.
    pub(crate) path: String,
    /// What it says; nothing if it has no body.
    pub(crate) body: Value,
    /// The command that stands for it, as the client says.
    pub(crate) command: Option<String>,
}

/// How it was answered.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outcome<'a> {
    Done,
    /// Nothing was changed, and why.
    Refused(&'a str),
    /// It has failed, perhaps with a part of it done.
    Failed(&'a str),
}

impl Asked {
    /// Whether it only asks what would be done.
    pub(crate) fn is_rehearsal(&self) -> bool {
        self.body.get("dry_run") == Some(&Value::Bool(true))
    }

    /// The entry of it, once it is answered.
    pub(crate) fn entry(&self, at_ms: u64, outcome: Outcome<'_>) -> Activity {
        let (about, name) = self.subject();
        let mut text = self.operation.replace('_', " ");
        if let Value::Object(fields) = &self.body {
            let told = fields.iter().filter(|(field, value)| says(field, value));
            // What it is about is told already.
            let told = told.filter(|(_, value)| value.as_str() != name.as_deref());
            let told: Vec<String> = told
                .map(|(field, value)| match text.ends_with(field.as_str()) {
                    // `set maintenance: off`.
                    true => words(field, value),
                    // `without verification` says it all, and an aim its kind.
                    false if field == "verify" || field == "aim" => words(field, value),
                    false => format!("{} {}", noun(field), words(field, value)),
                })
                .collect();
            if !told.is_empty() {
                text = format!("{text}: {}", told.join(", "));
            }
        }
        match outcome {
            Outcome::Done => {}
            Outcome::Refused(why) => text = format!("{text}; refused: {why}"),
            Outcome::Failed(why) => text = format!("{text}; failed: {why}"),
        }
        Activity {
            seq: 0,
            at_ms,
            who: self.who.clone(),
            about,
            text: cut(&text),
            command: self.command.as_deref().map(cut),
            ok: matches!(outcome, Outcome::Done),
        }
    }

    /// What it is about, and the name of that.
    fn subject(&self) -> (Option<String>, Option<String>) {
        let mut parts = self.path.trim_start_matches("/v1/").split('/');
        let kind = parts.next().unwrap_or_default();
        let noun = SUBJECTS.iter().find(|(path, _)| *path == kind).map(|(_, noun)| noun);
        let in_body = |field: &str| self.body.get(field)?.as_str().map(str::to_owned);
        if let (Some(noun), Some(name)) = (noun, parts.next()) {
            return (Some(format!("{noun} {name}")), Some(name.into()));
        }
        let named = NAMED.iter().find_map(|noun| Some((*noun, in_body(noun)?)));
        let created = || Some((*noun?, in_body("name")?));
        match named.or_else(created) {
            Some((noun, name)) => (Some(format!("{noun} {name}")), Some(name)),
            None => (None, None),
        }
    }
}

/// What a field is called.
fn noun(field: &str) -> String {
    field.trim_end_matches("_us").trim_end_matches("_ms").replace('_', " ")
}

/// A field's value in words, without what says nothing.
fn words(field: &str, value: &Value) -> String {
    let number = value.as_f64().filter(|number| *number >= 0.0);
    match (value, number) {
        (Value::String(text), _) => text.clone(),
        (Value::Bool(is_on), _) if SWITCHES.contains(&field) => {
            if *is_on { "on" } else { "off" }.into()
        }
        (Value::Bool(false), _) if field == "verify" => "without verification".into(),
        (Value::Array(all), _) => {
            all.iter().map(|one| words(field, one)).collect::<Vec<_>>().join(" ")
        }
        (Value::Object(all), _) => {
            if let Some(said) = object(field, value) {
                return said;
            }
            let told = all.iter().filter(|(field, value)| says(field, value));
            let told = told
                .map(|(field, value)| format!("{} {}", noun(field), words(field, value)));
            told.collect::<Vec<_>>().join(" ")
        }
        (_, Some(number)) if field == "rate" || field == "bytes_per_second" => {
            format!("{}/s", Bytes(number as u64))
        }
        (_, Some(number)) if SIZES.contains(&field) => Bytes(number as u64).to_string(),
        (_, Some(number)) if field.ends_with("_us") => {
            Nanos((number * 1e3) as u64).to_string()
        }
        (_, Some(number)) if field.ends_with("_ms") => {
            Nanos((number * 1e6) as u64).to_string()
        }
        (other, _) => other.to_string(),
    }
}

/// Whether a field is told.
fn says(field: &str, value: &Value) -> bool {
    match value {
        Value::Bool(is_on) if USUAL.contains(&field) => !is_on,
        Value::Bool(_) if SWITCHES.contains(&field) => true,
        _ => says_something(value),
    }
}

/// Whether a value is more than what holds anyway.
fn says_something(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Array(all) => !all.is_empty(),
        Value::Object(all) => all.values().any(says_something),
        _ => true,
    }
}

/// A line, not too long, that a terminal may show.
fn cut(text: &str) -> String {
    let line = printable_line(text);
    match line.char_indices().nth(TEXT_MOST) {
        Some((end, _)) => format!("{}\u{2026}", &line[..end]),
        None => line.into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asked(operation: &str, path: &str, body: Value) -> Asked {
        Asked {
            who: "root".into(),
            operation: operation.into(),
            path: path.into(),
            body,
            command: Some("sterna migrate db --to slow".into()),
        }
    }

    #[test]
    fn a_request_is_told_with_what_it_is_about() {
        let guard = json!({"keep": 0.97, "idle_only": false, "finish_by": null});
        let body = json!({"disk": "db", "to": "slow", "guard": guard, "verify": true});
        let entry =
            asked("start_migration", "/v1/migrations", body).entry(7, Outcome::Done);
        assert_eq!(entry.about.as_deref(), Some("disk db"));
        assert_eq!(entry.text, "start migration: guard keep 97%, to slow");
        assert_eq!(entry.command.as_deref(), Some("sterna migrate db --to slow"));
        assert!(entry.ok);
    }

    #[test]
    fn a_refused_request_says_why() {
        let asked = asked("cancel_migration", "/v1/migrations/4/cancel", Value::Null);
        let entry = asked.entry(7, Outcome::Refused("migration 4 has ended"));
        assert_eq!(entry.about.as_deref(), Some("migration 4"));
        assert_eq!(entry.text, "cancel migration; refused: migration 4 has ended");
        assert!(!entry.ok);
        let failed =
            asked.entry(7, Outcome::Failed("disk db is removed, but its image stays"));
        assert!(failed.text.contains("; failed: disk db is removed"), "{failed:?}");
        assert!(!failed.ok);
    }

    #[test]
    fn what_is_made_is_about_its_own_name() {
        let entry = asked("create_disk", "/v1/disks", json!({"name": "db", "size": 5}));
        let entry = entry.entry(7, Outcome::Done);
        assert_eq!(entry.about.as_deref(), Some("disk db"));
        assert_eq!(entry.text, "create disk: size 5 B");
    }

    #[test]
    fn a_move_that_is_not_verified_says_so() {
        let body = json!({"disk": "db", "to": "slow", "verify": false});
        let text =
            asked("start_migration", "/v1/migrations", body).entry(7, Outcome::Done).text;
        assert_eq!(text, "start migration: to slow, without verification");
    }

    #[test]
    fn maintenance_says_whether_it_begins_or_ends() {
        let text = |on: bool| {
            let body = json!({"maintenance": on});
            asked("set_maintenance", "/v1/datastores/fast/maintenance", body)
                .entry(7, Outcome::Done)
                .text
        };
        assert_eq!(
            [true, false].map(text),
            ["set maintenance: on", "set maintenance: off"]
        );
    }

    #[test]
    fn sizes_rates_and_times_are_in_units() {
        let guard = json!({"p99_us": 5000});
        let body =
            json!({"disk": "db", "to": "slow", "guard": guard, "rate": 209_715_200});
        let text =
            asked("start_migration", "/v1/migrations", body).entry(7, Outcome::Done).text;
        assert_eq!(
            text,
            "start migration: guard p99 below 5.0 ms, rate 200 MiB/s, to slow"
        );
        let goal = json!({"bytes_per_second": 20 << 20});
        let body = json!({"class": "batch", "aim": {"kind": "limit", "goal": goal}});
        let text =
            asked("create_policy", "/v1/policies", body).entry(7, Outcome::Done).text;
        assert_eq!(text, "create policy: limit to 20.0 MiB/s");
    }

    #[test]
    fn no_text_is_endless_or_moves_a_cursor() {
        let body = json!({"name": "a\u{1b}[31m".repeat(500)});
        let entry =
            asked("add_datastore", "/v1/datastores", body).entry(7, Outcome::Done);
        assert!(entry.text.chars().count() <= TEXT_MOST + 1);
        assert!(!entry.text.contains('\u{1b}'));
    }
}
