//! Lines of the daemon's log as entries.

use sterna_api::Activity;
use sterna_core::{Bytes, Nanos};
use sterna_runtime::notes::Note;

/// What a line may be about: the first of these that it names.
const SUBJECTS: [&str; 9] =
    ["disk", "vm", "datastore", "migration", "plan", "class", "policy", "host", "pool"];

/// What the log says because somebody has asked for it: the request's own entry says that,
/// and by whom and how it was asked.
const ECHOES: [&str; 20] = [
    "datastore added",
    "datastore removed",
    "maintenance changed",
    // A datastore is marked when it is added.
    "marked",
    "disk created",
    "disk imported",
    "disk removed",
    "VM added",
    "VM removed",
    "host added",
    "host removed",
    "class created",
    "class changed",
    "class deleted",
    "pool created",
    "pool changed",
    "pool deleted",
    "rule added",
    "rule made",
    "rule removed",
];

/// The entry of a line, if it says more than a request's entry does.
pub fn entry(note: Note) -> Option<Activity> {
    if ECHOES.contains(&note.message.as_str()) {
        return None;
    }
    let subject = SUBJECTS.iter().find_map(|noun| {
        let (name, value) = note.fields.iter().find(|(name, _)| name == noun)?;
        Some((*name, format!("{noun} {value}")))
    });
    let others = note
        .fields
        .iter()
        .filter(|(name, _)| subject.as_ref().is_none_or(|(subject, _)| subject != name));
    let details: Vec<String> = others
        .map(|(name, value)| told(name, value))
        .filter(|it| !it.is_empty())
        .collect();
    let text = match details.is_empty() {
        true => note.message,
        false => format!("{}: {}", note.message, details.join(", ")),
    };
    Some(Activity {
        seq: 0,
        at_ms: note.at_ms,
        who: "sterna".into(),
        about: subject.map(|(_, about)| about),
        text,
        command: None,
        ok: note.ok,
    })
}

/// A field and its value, in words and units that people read; nothing if it has none.
fn told(name: &str, value: &str) -> String {
    let number = value.parse::<f64>().ok().filter(|number| *number >= 0.0);
    let span = |unit: f64| number.map(|number| Nanos((number * unit) as u64));
    let noun = name.replace('_', " ");
    match name {
        _ if value.is_empty() => String::new(),
        "seconds" => span(1e9).map_or(value.into(), |span| span.to_string()),
        "switch_over_ms" => {
            format!("guest held {}", span(1e6).map_or(value.into(), |it| it.to_string()))
        }
        _ => format!("{noun} {}", amount(name, value)),
    }
}

/// A value: what is in bytes, in the unit that people read.
fn amount(name: &str, value: &str) -> String {
    match value.parse() {
        Ok(bytes) if name == "rate" => format!("{}/s", Bytes(bytes)),
        // An image's is one, too.
        Ok(bytes) if name.ends_with("size") => Bytes(bytes).to_string(),
        _ => value.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_about_its_disk_and_tells_the_rest() {
        let fields = vec![("migration", "4".to_owned()), ("disk", "db".to_owned())];
        let message = "migration completed".to_owned();
        let entry = entry(Note { at_ms: 1, ok: true, message, fields }).unwrap();
        assert_eq!(entry.about.as_deref(), Some("disk db"));
        assert_eq!(entry.text, "migration completed: migration 4");
        assert_eq!((entry.who.as_str(), entry.ok), ("sterna", true));
    }

    #[test]
    fn bytes_are_in_units() {
        let text = |name: &'static str, value: &str| {
            let fields = vec![("disk", "db".into()), (name, value.to_owned())];
            entry(Note { at_ms: 1, ok: true, message: "told".into(), fields })
                .unwrap()
                .text
        };
        assert_eq!(text("rate", "209715200"), "told: rate 200 MiB/s");
        assert_eq!(text("size", "10737418240"), "told: size 10.0 GiB");
        assert_eq!(text("steps", "209715200"), "told: steps 209715200");
    }

    #[test]
    fn the_end_of_a_move_says_how_long_it_took_and_held_its_guest() {
        let fields = [("disk", "db"), ("seconds", "10.863"), ("switch_over_ms", "5.382")];
        let fields = fields.map(|(name, value)| (name, value.to_owned())).to_vec();
        let note = Note { at_ms: 1, ok: true, message: "completed".into(), fields };
        assert_eq!(entry(note).unwrap().text, "completed: 10.9 s, guest held 5.4 ms");
    }

    #[test]
    fn what_a_request_says_already_is_not_said_twice() {
        let (message, fields) = ("datastore added".to_owned(), vec![]);
        assert_eq!(entry(Note { at_ms: 1, ok: true, message, fields }), None);
    }

    #[test]
    fn a_line_about_nothing_is_about_the_daemon() {
        let note =
            Note { at_ms: 1, ok: false, message: "told to stop".into(), fields: vec![] };
        let entry = entry(note).unwrap();
        assert_eq!((entry.about, entry.text.as_str()), (None, "told to stop"));
    }
}
