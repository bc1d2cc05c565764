//! `sterna activity`: what was done, by whom, and what the daemon decided.

use clap::Args;
use sterna_api::Activity;
use sterna_console::connect::Link;
use sterna_console::format::{moment, now};
use sterna_console::output::{Output, WIDTH};
use sterna_console::table::wrap;
use sterna_core::Nanos;

use crate::common::guard::parse_long;

/// How far the lines below an entry's first one are indented.
const INDENT: &str = "    ";

#[derive(Debug, Args)]
pub(crate) struct ActivityArgs {
    /// Only entries about this: KIND:NAME, where KIND is disk, datastore, migration,
    /// plan, class, policy, vm, host, pool or rule (disk:db, migration:4)
    #[arg(value_name = "WHAT")]
    about: Option<String>,
    /// Only entries of this past time
    #[arg(long, value_name = "SPAN", value_parser = parse_long)]
    since: Option<Nanos>,
    /// At most this many, up to 5000
    #[arg(long, value_name = "N", default_value_t = 50,
          value_parser = clap::value_parser!(u16).range(1..=5000))]
    limit: u16,
}

/// Carries out the command.
pub(crate) fn run(
    args: &ActivityArgs,
    link: &Link,
    output: Output,
) -> anyhow::Result<()> {
    let since = args.since.map(|span| now().saturating_sub(span.as_secs_f64() as u64));
    let (about, limit) = (args.about.as_deref(), usize::from(args.limit));
    let found =
        link.ask(async |client| Ok(client.activity(about, since, limit).await?))?;
    output.answer(&found.entries, |entries| show(entries, args))
}

/// The latest last, where the eye is.
fn show(entries: &[Activity], args: &ActivityArgs) -> String {
    if entries.is_empty() {
        return match (&args.about, args.since) {
            (Some(about), None) => format!("No entry about {about}.\n"),
            (Some(about), Some(_)) => format!("No entry about {about} in this time.\n"),
            (None, Some(_)) => "No entry in this time.\n".into(),
            (None, None) => "Nothing was done yet.\n".into(),
        };
    }
    entries.iter().rev().map(entry).collect()
}

fn entry(it: &Activity) -> String {
    let about = it.about.as_ref().map_or(String::new(), |about| format!("  {about}"));
    let mut text = format!("{}  {}{about}\n", moment(it.at_ms / 1000), it.who);
    let wrong = if it.ok { "" } else { "! " };
    for line in wrap(&format!("{wrong}{}", it.text), WIDTH - INDENT.len()) {
        text.push_str(&format!("{INDENT}{line}\n"));
    }
    if let Some(command) = &it.command {
        text.push_str(&format!("{INDENT}$ {command}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_is_last_and_what_went_wrong_is_marked() {
        let one = |seq, ok, text: &str| Activity {
            seq,
            at_ms: 1_795_205_558_123,
            who: "root".into(),
            about: Some("disk db".into()),
            text: text.into(),
            command: Some("sterna migrate db --to slow".into()),
            ok,
        };
        let all = ActivityArgs { about: None, since: None, limit: 50 };
        let entries = [one(2, false, "refused"), one(1, true, "start migration")];
        let text = show(&entries, &all);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].ends_with("root  disk db"), "{text}");
        assert_eq!(lines[1], "    start migration");
        assert_eq!(lines[2], "    $ sterna migrate db --to slow");
        assert_eq!(lines[4], "    ! refused");
    }

    #[test]
    fn an_empty_list_says_what_there_is_no_entry_about() {
        let mut args = ActivityArgs { about: None, since: None, limit: 50 };
        assert_eq!(show(&[], &args), "Nothing was done yet.\n");
        args.since = Some(Nanos::from_secs(60));
        assert_eq!(show(&[], &args), "No entry in this time.\n");
        args = ActivityArgs { about: Some("disk:nosuch".into()), since: None, limit: 50 };
        assert_eq!(show(&[], &args), "No entry about disk:nosuch.\n");
    }
}
