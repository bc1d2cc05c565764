//! Lines of the daemon's log as entries.

use sterna_api::Activity;
use sterna_core::Bytes;
use sterna_runtime::notes::Note;

/// What a line may be about: the first of these that it names.
const SUBJECTS: [&str; 9] =
    ["disk", "vm", "datastore", "migration", "plan", "class", "policy", "host", "pool"];

/// The entry of a line.
pub fn entry(note: Note) -> Activity {
    let subject = SUBJECTS.iter().find_map(|noun| {
        let (name, value) = note.fields.iter().find(|(name, _)| name == noun)?;
        Some((*name, format!("{noun} {value}")))
    });
    let others = note
        .fields
        .iter()
        .filter(|(name, _)| subject.as_ref().is_none_or(|(subject, _)| subject != name));
    let details: Vec<String> = others
        .map(|(name, value)| format!("{} {}", name.replace('_', " "), told(name, value)))
        .collect();
    let text = match details.is_empty() {
        true => note.message,
        false => format!("{}: {}", note.message, details.join(", ")),
    };
    Activity {
        seq: 0,
        at_ms: note.at_ms,
        who: "sterna".into(),
        about: subject.map(|(_, about)| about),
        text,
        command: None,
        ok: note.ok,
    }
}

/// A field's value: what is in bytes, in the unit that people read.
fn told(name: &str, value: &str) -> String {
    if name == "maintenance" {
        return if value == "true" { "on" } else { "off" }.into();
    }
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
        let entry = entry(Note { at_ms: 1, ok: true, message, fields });
        assert_eq!(entry.about.as_deref(), Some("disk db"));
        assert_eq!(entry.text, "migration completed: migration 4");
        assert_eq!((entry.who.as_str(), entry.ok), ("sterna", true));
    }

    #[test]
    fn bytes_are_in_units() {
        let text = |name: &'static str, value: &str| {
            let fields = vec![("disk", "db".into()), (name, value.to_owned())];
            entry(Note { at_ms: 1, ok: true, message: "told".into(), fields }).text
        };
        assert_eq!(text("rate", "209715200"), "told: rate 200 MiB/s");
        assert_eq!(text("size", "10737418240"), "told: size 10.0 GiB");
        assert_eq!(text("steps", "209715200"), "told: steps 209715200");
    }

    #[test]
    fn a_line_about_nothing_is_about_the_daemon() {
        let note =
            Note { at_ms: 1, ok: false, message: "told to stop".into(), fields: vec![] };
        let entry = entry(note);
        assert_eq!((entry.about, entry.text.as_str()), (None, "told to stop"));
    }
}
