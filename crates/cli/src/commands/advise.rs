//! `sterna advise`: what to do about disks and datastores, seen from what was measured.

use clap::Args;
use sterna_api::{Advice, Advised, Nature, SeenDisk};
use sterna_console::connect::Link;
use sterna_console::format::{bytes, iops, span};
use sterna_console::output::{Output, WIDTH};
use sterna_console::table::{Column, Table, wrap};
use sterna_core::Nanos;

use crate::common::guard::parse_long;

/// What advice is asked about.
#[derive(Debug, Args)]
pub(crate) struct AdviseArgs {
    /// A disk, datastore or VM [default: all]
    about: Option<String>,
    /// Consider the load of this past time, 1s to 1h [default: 10min]
    #[arg(long, value_name = "SPAN", value_parser = parse_window)]
    window: Option<Nanos>,
}

/// Of what lies longer ago nothing is kept.
fn parse_window(text: &str) -> Result<Nanos, String> {
    let window = parse_long(text)?;
    let kept = Nanos::from_secs(1)..=Nanos::from_secs(3600);
    let wrong = || "it can be 1s to 1h".to_owned();
    Some(window).filter(|window| kept.contains(window)).ok_or_else(wrong)
}

/// Carries out the command.
pub(crate) fn run(args: &AdviseArgs, link: &Link, output: Output) -> anyhow::Result<()> {
    let window = args.window.unwrap_or(Nanos::from_secs(600)).as_secs_f64();
    let about = args.about.as_deref();
    let said = link.ask(async |client| Ok(client.advise(about, window).await?))?;
    output.answer(&said, |said| show(said, output))
}

fn show(said: &Advised, output: Output) -> String {
    let mut text = String::new();
    if !said.disks.is_empty() {
        text = disks(&said.disks, output);
        let window = span(said.window_s);
        text.push_str(&format!("From the load of the last {window}.\n"));
    }
    if said.advice.is_empty() {
        text.push_str("\nNothing to advise.\n");
    }
    let mut about = None;
    for one in &said.advice {
        if about.replace(&one.about) != Some(&one.about) {
            text.push_str(&format!("\n{}\n", output.head(&one.about)));
        }
        text.push_str(&advice(one));
    }
    text.trim_start_matches('\n').to_owned()
}

fn disks(disks: &[SeenDisk], output: Output) -> String {
    let mut table = Table::new(&[
        ("DISK", Column::Flexible),
        ("ON", Column::Flexible),
        ("NATURE", Column::Left),
        ("IO/s", Column::Right),
        ("LENGTH", Column::Right),
        ("IN ORDER", Column::Right),
        ("THERE", Column::Right),
    ]);
    let percent = |part: f64| format!("{:.0}%", part * 100.0);
    for one in disks {
        table.row(vec![
            one.disk.as_str().into(),
            one.datastore.as_str().into(),
            nature(one.nature).into(),
            iops(one.iops).into(),
            one.length.map_or("-".into(), |length| bytes(length as u64)).into(),
            one.in_order.map_or("-".into(), percent).into(),
            percent(one.there).into(),
        ]);
    }
    output.table(&table)
}

fn nature(nature: Nature) -> &'static str {
    match nature {
        Nature::Idle => "idle",
        Nature::Random => "random",
        Nature::Log => "log",
        Nature::Stream => "stream",
        Nature::Mixed => "mixed",
    }
}

/// What was found, and below it what to do.
fn advice(one: &Advice) -> String {
    let message = wrap(&one.message, WIDTH - 4).into_iter();
    let hint = wrap(&one.hint, WIDTH - 6).into_iter();
    let message = message.enumerate().map(|(at, line)| match at {
        0 => format!("  - {line}\n"),
        _ => format!("    {line}\n"),
    });
    message.chain(hint.map(|line| format!("      {line}\n"))).collect()
}

#[cfg(test)]
mod tests {
    use sterna_api::AdviceKind;

    use super::*;

    #[test]
    fn advice_fits_on_a_screen() {
        let name = "a-datastore-with-quite-a-long-name-that-does-not-end";
        let said = Advised {
            window_s: 600.0,
            disks: vec![SeenDisk {
                disk: "db".into(),
                datastore: name.into(),
                nature: Nature::Random,
                iops: 104.2,
                length: Some(65_536.0),
                in_order: Some(0.02),
                there: 0.93,
            }],
            advice: vec![Advice {
                about: "disk db".into(),
                kind: AdviceKind::MoveWhenQuiet,
                message: "98% of its requests go anywhere, and it asks for something \
                          93% of the time: it and a copy are in each other's way"
                    .into(),
                hint: format!("`sterna migrate db --to {name} --keep 97%`"),
            }],
        };
        let text = show(&said, Output::new(false));
        for part in ["random", "64.0 KiB", "\ndisk db\n  - 98% of", "--keep 97%"] {
            assert!(text.contains(part), "{part} in:\n{text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn where_there_is_nothing_to_advise_that_is_said() {
        let said = Advised { window_s: 600.0, disks: Vec::new(), advice: Vec::new() };
        assert!(show(&said, Output::new(false)).contains("Nothing to advise."));
    }
}
