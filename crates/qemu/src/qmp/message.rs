//! One line from a monitor: a greeting, an answer, a refusal or an event.

use serde::Deserialize;
use serde_json::Value;

use super::Event;

/// QEMU's version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct Version {
    /// 7 of 7.2.22.
    pub major: u64,
    /// 2 of 7.2.22.
    pub minor: u64,
    /// 22 of 7.2.22.
    pub micro: u64,
}

/// What a monitor says.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// The first line of a connection.
    Greeting(Version),
    /// A command was carried out.
    Return {
        /// Which one.
        id: Option<u64>,
        /// What it gives.
        value: Value,
    },
    /// A command was refused, or failed.
    Refusal {
        /// Which one; none if it could not even be read.
        id: Option<u64>,
        /// What kind of trouble it is, for programs.
        class: String,
        /// What is wrong.
        description: String,
    },
    /// Something happened.
    Event(Event),
}

/// A line that no monitor says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{excerpt}` is not a message of a QEMU monitor")]
pub struct NotAMessage {
    /// How it begins.
    excerpt: String,
}

/// How much of a line that makes no sense is shown.
const EXCERPT: usize = 60;

#[derive(Deserialize)]
struct Greeting {
    version: Versions,
}

#[derive(Deserialize)]
struct Versions {
    qemu: Version,
}

#[derive(Deserialize)]
struct Refusal {
    class: String,
    desc: String,
}

/// A line as it comes. Which of its parts are there says what it is.
#[derive(Deserialize)]
struct Line {
    #[serde(rename = "QMP")]
    greeting: Option<Greeting>,
    // A command may give `null`, which is not the same as nothing.
    #[serde(default, rename = "return", deserialize_with = "present")]
    value: Option<Value>,
    error: Option<Refusal>,
    event: Option<String>,
    #[serde(default)]
    data: Value,
    id: Option<u64>,
}

fn present<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

impl Message {
    /// Reads a line.
    pub fn parse(line: &[u8]) -> Result<Message, NotAMessage> {
        let not = || {
            let text = String::from_utf8_lossy(line);
            NotAMessage { excerpt: text.chars().take(EXCERPT).collect() }
        };
        match serde_json::from_slice(line).map_err(|_| not())? {
            Line { greeting: Some(greeting), .. } => {
                Ok(Message::Greeting(greeting.version.qemu))
            }
            Line { value: Some(value), id, .. } => Ok(Message::Return { id, value }),
            Line { error: Some(Refusal { class, desc }), id, .. } => {
                Ok(Message::Refusal { id, class, description: desc })
            }
            Line { event: Some(name), data, .. } => {
                Ok(Message::Event(Event::new(&name, &data)))
            }
            _ => Err(not()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(line: &str) -> Result<Message, NotAMessage> {
        Message::parse(line.as_bytes())
    }

    #[test]
    fn messages_are_told_apart_by_their_parts() {
        let greeting = r#"{"QMP": {"version": {"qemu": {"micro": 22, "minor": 2, "major":
            7}, "package": "Debian"}, "capabilities": ["oob"]}}"#;
        let version = Version { major: 7, minor: 2, micro: 22 };
        assert_eq!(parse(greeting), Ok(Message::Greeting(version)));
        let given = Message::Return { id: Some(7), value: Value::Null };
        assert_eq!(parse(r#"{"return": null, "id": 7}"#), Ok(given));
        let refusal = r#"{"error": {"class": "GenericError", "desc": "no"}, "id": 1}"#;
        assert!(matches!(parse(refusal), Ok(Message::Refusal { id: Some(1), .. })));
        let event = r#"{"event": "RESET", "timestamp": {"seconds": 1}, "data": {}}"#;
        assert_eq!(parse(event), Ok(Message::Event(Event::Reset)));
    }

    #[test]
    fn other_lines_are_no_messages() {
        for line in ["", "{}", "[]", "SSH-2.0-OpenSSH_9.2", r#"{"id": 1}"#, "\u{7f}"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    proptest! {
        #[test]
        fn no_line_is_too_much(line in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Message::parse(&line);
        }

        #[test]
        fn a_message_that_is_cut_short_is_none(at in 0usize..64) {
            let line = r#"{"return": {"status": "running", "running": true}, "id": 4711}"#;
            prop_assert_eq!(parse(&line[..at.min(line.len())]).is_ok(), at >= line.len());
        }
    }
}
