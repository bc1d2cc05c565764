//! Texts of others on their way to a terminal.
//!
//! A path or a name may have line breaks in it, escape sequences, or marks that turn the
//! direction of what follows around. On a terminal they would move the cursor, colour what
//! is beside them, or let a line look like another one. So they are shown, not obeyed.

use std::borrow::Cow;

use serde_json::Value;

/// Whether a text says nothing to a terminal, and is one line.
pub fn is_printable(text: &str) -> bool {
    !text.chars().any(says_something_else)
}

/// A text as it can be shown: what is not printable is escaped, but for the ends of lines.
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, |c| c != '\n' && says_something_else(c))
}

/// The same in one line.
pub fn printable_line(text: &str) -> Cow<'_, str> {
    escaped(text, says_something_else)
}

fn escaped(text: &str, is_bad: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&is_bad) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_bad(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown.into()
}

/// Control characters, ends of lines and paragraphs, and marks of direction.
fn says_something_else(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}'
        )
}

/// Makes all texts in a value such that they can be shown.
pub(crate) fn make_printable(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(shown) = printable(text) {
                *text = shown;
            }
        }
        Value::Array(all) => all.iter_mut().for_each(make_printable),
        Value::Object(all) => all.values_mut().for_each(make_printable),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_shown() {
        assert_eq!(printable("/a/\u{1b}[31mred\rx"), "/a/\\u{1b}[31mred\\rx");
        assert_eq!(printable("one\ntwo"), "one\ntwo");
        assert_eq!(printable_line("one\ntwo"), "one\\ntwo");
        assert_eq!(printable("\u{9b}31m\u{202e}"), "\\u{9b}31m\\u{202e}");
        assert!(matches!(printable("größer /a b"), Cow::Borrowed(_)));
    }

    #[test]
    fn it_is_so_everywhere_in_an_answer() {
        let mut value = serde_json::json!({"a": ["\u{1b}", {"b": "\u{7}"}], "c": 1});
        make_printable(&mut value);
        let shown = serde_json::json!({"a": ["\\u{1b}", {"b": "\\u{7}"}], "c": 1});
        assert_eq!(value, shown);
    }
}
