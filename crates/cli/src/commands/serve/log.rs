//! How the daemon's log looks: one line an event, the values of its fields in quotes.
//!
//! Names, paths and reasons may have spaces, quotes or a `=` in them; so all that is no
//! number is quoted and escaped, however it was handed over. Whoever reads the log, a
//! program or somebody in a hurry, sees where a value ends.

use std::borrow::Cow;

use sterna_api::printable_line;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::fmt::{FormatFields, format};

/// The fields of a line.
pub(crate) fn fields() -> impl for<'writer> FormatFields<'writer> + 'static {
    let one = format::debug_fn(|line, field, value| match field.name() {
        "message" => write!(line, "{}", printable_line(&format!("{value:?}"))),
        name => write!(line, "{name}={}", quoted(&format!("{value:?}"))),
    });
    one.delimited(" ")
}

/// A value as it is to be shown: numbers and what has its quotes stay as they are.
fn quoted(value: &str) -> Cow<'_, str> {
    let number = value.starts_with(|c: char| c.is_ascii_digit() || c == '-')
        && value.parse::<f64>().is_ok();
    match number || value.starts_with('"') || matches!(value, "true" | "false") {
        true => value.into(),
        false => format!("{value:?}").into(),
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn all_but_numbers_is_in_quotes() {
        let lines = Lines::default();
        let writer = lines.clone();
        let log = tracing_subscriber::fmt()
            .fmt_fields(fields())
            .with_writer(move || writer.clone())
            .with_ansi(false)
            .without_time()
            .with_target(false)
            .finish();
        tracing::subscriber::with_default(log, || {
            let reason = std::fmt::Error.to_string();
            let (place, took) = ("/mnt/a b=\"c\"", std::time::Duration::from_millis(2));
            tracing::info!(
                disk = "db", %reason, %place, ?took, migration = 3, rate = -0.5, keep = true,
                "paused"
            );
        });
        let said = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        assert_eq!(
            said.trim(),
            "INFO paused disk=\"db\" reason=\"an error occurred when formatting an argument\" \
             place=\"/mnt/a b=\\\"c\\\"\" took=\"2ms\" migration=3 rate=-0.5 keep=true"
        );
    }
}
