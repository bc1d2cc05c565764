//! `sterna migration`: migrations under way and past.

pub(crate) mod report;
pub(crate) mod watch;
mod which;

use clap::{ArgGroup, Subcommand};
use sterna_api::{GuardState, Migration, MigrationState, ResumeMigration};
use sterna_console::connect::Link;
use sterna_console::format::{bytes, rate, span};
use sterna_console::output::{Output, prose};
use sterna_console::table::{Column, Table};
use sterna_core::Bytes;

use self::report::{show, state};
use crate::common::guard::{self, GuardArgs};
use crate::common::rate::parse_rate;
use which::{Purpose, WhichArg};

#[derive(Debug, Subcommand)]
pub(crate) enum MigrationCommand {
    /// List the migrations
    #[command(visible_alias = "ls")]
    List,
    /// Show one migration
    Show(WhichArg),
    /// Show the progress of a migration until it ends
    Watch(WhichArg),
    /// Pause a migration; it stays paused when the daemon restarts
    Pause(WhichArg),
    /// Resume a paused migration
    Resume {
        #[command(flatten)]
        which: WhichArg,
        /// From now on, skip unreadable source sectors; the data in these sectors is
        /// lost
        #[arg(long)]
        skip_bad_sectors: bool,
    },
    /// Cancel a migration; the disk stays on its datastore
    Cancel(WhichArg),
    /// Change a migration's rate or guard
    ///
    /// A new guard replaces the old guard completely.
    #[command(override_usage = "sterna migration set <ID|DISK> [OPTIONS]",
        group(ArgGroup::new("what").required(true).multiple(true)
        .args(["rate", "keep", "p99", "finish_by", "idle_only", "window", "no_guard"])))]
    Set {
        #[command(flatten)]
        which: WhichArg,
        /// Limit copying to this many bytes per second (50M), or `none`
        #[arg(long, value_name = "BYTES", value_parser = parse_limit)]
        rate: Option<Limit>,
        #[command(flatten)]
        guard: GuardArgs,
        /// Remove the guard
        #[arg(long, conflicts_with_all = ["keep", "p99", "finish_by", "idle_only",
            "window"])]
        no_guard: bool,
    },
}

/// A rate, or none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit(Option<Bytes>);

fn parse_limit(text: &str) -> Result<Limit, String> {
    match text {
        "none" => Ok(Limit(None)),
        _ => parse_rate(text).map(|rate| Limit(Some(rate))),
    }
}

/// Carries out a command.
pub(crate) fn run(
    command: MigrationCommand,
    link: &Link,
    output: Output,
) -> anyhow::Result<()> {
    link.ask(async move |client| match command {
        MigrationCommand::List => {
            let all = client.migrations().await?;
            output.answer(&all, |all| list(all, output))
        }
        MigrationCommand::Show(which) => {
            let id = which.id(client, Purpose::Look).await?;
            let one = client.migration(id).await?;
            output.answer(&one, |one| show(one, output))
        }
        MigrationCommand::Watch(which) => {
            let id = which.id(client, Purpose::Look).await?;
            let one = client.migration(id).await?;
            watch::to_the_end(client, one, output, watch::Show::Everything).await
        }
        MigrationCommand::Pause(which) => {
            let id = which.id(client, Purpose::Change).await?;
            let one = client.pause(id).await?;
            output.answer(&one, |one| {
                let next = match one.state {
                    MigrationState::Cancelling => {
                        format!("`sterna migration watch {id}` shows its end")
                    }
                    _ => format!("resume it with `sterna migration resume {id}`"),
                };
                said(one, &next)
            })
        }
        MigrationCommand::Resume { which, skip_bad_sectors } => {
            let id = which.id(client, Purpose::Change).await?;
            let how = ResumeMigration { skip_bad_sectors };
            let one = client.resume(id, how).await?;
            output.answer(&one, |one| {
                said(one, &format!("`sterna migration watch {id}` shows its progress"))
            })
        }
        MigrationCommand::Cancel(which) => {
            let id = which.id(client, Purpose::Change).await?;
            let one = client.cancel(id).await?;
            output.answer(&one, |one| said(one, &given_up(one)))
        }
        MigrationCommand::Set { which, rate, guard, no_guard } => {
            let id = which.id(client, Purpose::Change).await?;
            let mut one = None;
            if let Some(Limit(limit)) = rate {
                one = Some(client.set_rate(id, limit.map(|rate| rate.0)).await?);
            }
            if no_guard || !guard.is_none() {
                one = Some(client.set_guard(id, &guard.request()).await?);
            }
            let one = match one {
                Some(one) => one,
                None => client.migration(id).await?,
            };
            output.answer(&one, now_has)
        }
    })
}

/// What becomes of a disk whose migration is to be cancelled.
fn given_up(one: &Migration) -> String {
    match one.state {
        MigrationState::Cancelled | MigrationState::Cancelling => {
            format!("disk {} stays on {}", one.disk, one.from)
        }
        MigrationState::Completed => one.reason.clone().unwrap_or_default(),
        _ => format!(
            "it may be too late to cancel: `sterna migration watch {}` shows where disk \
             {} is at the end",
            one.id, one.disk
        ),
    }
}

fn now_has(one: &Migration) -> String {
    let pace = match one.rate {
        Some(limit) => format!("a rate of {}", rate(limit as f64)),
        None => "no rate limit".into(),
    };
    let guard = match &one.guard {
        Some(guard) => format!("the guard: {}", guard::asked(&guard.asked)),
        None => "no guard".into(),
    };
    format!("Migration {} of {} now has {pace},\nand {guard}.", one.id, one.disk)
}

fn said(one: &Migration, more: &str) -> String {
    let said = format!("Migration {} of {} is {}; {more}.", one.id, one.disk, one.state);
    prose(&said)
}

fn list(all: &[Migration], output: Output) -> String {
    if all.is_empty() {
        return "No migrations yet. Start one: sterna migrate DISK --to DATASTORE".into();
    }
    let mut table = Table::new(&[
        ("ID", Column::Right),
        ("DISK", Column::Flexible),
        ("FROM", Column::Flexible),
        ("TO", Column::Flexible),
        ("STATE", Column::Left),
        ("SIZE", Column::Right),
        ("DONE", Column::Right),
        ("RATE", Column::Right),
        ("LEFT", Column::Right),
    ]);
    for one in all {
        let (done, pace, left) = pace(one);
        table.row(vec![
            one.id.to_string().into(),
            one.disk.as_str().into(),
            one.from.as_str().into(),
            one.to.as_str().into(),
            match is_closed(one) {
                true => "closed".into(),
                false => state(one.state),
            },
            bytes(one.size).into(),
            done.into(),
            pace.into(),
            left.into(),
        ]);
    }
    output.table(&table)
}

/// Whether it waits for its window to open.
fn is_closed(one: &Migration) -> bool {
    let state = one.guard.as_ref().and_then(|guard| guard.state);
    one.state == MigrationState::Copying && state == Some(GuardState::Closed)
}

/// How far, how fast, how long still.
fn pace(one: &Migration) -> (String, String, String) {
    let none = || String::from("-");
    if one.state == MigrationState::Completed {
        let average = one.report.filter(|report| report.copied > 0);
        let average = average.map_or_else(none, |report| rate(report.average_rate));
        return ("100%".into(), average, none());
    }
    match one.progress {
        Some(progress) if !one.state.ended() => (
            format!("{:.0}%", watch::percent(one.state, &progress)),
            match one.state {
                MigrationState::Paused => none(),
                _ if is_closed(one) => none(),
                _ => rate(progress.rate),
            },
            progress.eta_s.map_or_else(none, span),
        ),
        _ => (none(), none(), none()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_fits_whatever_it_says() {
        let one = |id: u64, disk: &str, state| -> Migration {
            let text = serde_json::json!({
                "id": id, "disk": disk, "size": (1023_u64 << 20), "from": "old-array",
                "to": "new-array", "provision": "thin", "rate": null, "verify": true,
                "keep_source": false, "state": state, "reason": null, "hint": null,
                "started": 1, "ended": null, "application": {}, "report": null,
                "unclear": false, "progress": {
                    "total": 1000, "synced": 500, "copied": 500, "verified": null,
                    "to_copy": 500, "to_compare": 0, "late_regions": 0,
                    "rate": 1_072_693_248.0, "eta_s": 1131.0, "switch_over_ms": null,
                    "undone": 0, "patience_ms": 20.0,
                },
            });
            serde_json::from_value(text).expect("a migration")
        };
        let all =
            [one(7, "web/vdb", "copying"), one(18, "database/vda", "switching-over")];
        let text = list(&all, Output::new(false));
        assert!(text.contains("18 min 51 s"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn a_limit_can_be_lifted_but_not_be_zero() {
        assert!(matches!(parse_limit("none"), Ok(Limit(None))));
        assert!(matches!(parse_limit("50M"), Ok(Limit(Some(Bytes(52_428_800))))));
        assert!(parse_limit("50M/s").is_ok());
        assert!(parse_limit("0").is_err());
    }
}
