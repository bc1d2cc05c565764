//! `sterna storage-drs`: which disks should be elsewhere, why the rest should not, and what
//! is done about it without being asked.

mod page;
mod recommend;
mod rule;

use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use sterna_api::{
    AskGuard, AskStorageDrs, Automation, ChangeStorageDrs, Client, Error, Migration,
    RecommendedMove, StartMigration,
};
use sterna_console::connect::{Failure, Link, explain};
use sterna_console::output::Output;
use sterna_core::Nanos;

use crate::common::guard::{PromiseArgs, parse_long, parse_part, parse_span};

pub(crate) use self::page::add_balanced;
use self::rule::RuleCommand;

#[derive(Debug, Subcommand)]
pub(crate) enum StorageDrsCommand {
    /// Show settings, datastores, the last moves and their results
    Status,
    /// Recommend moves, with reasons for disks that stay; change nothing
    Recommend(BoundArgs),
    /// Start the recommended moves
    Apply {
        #[command(flatten)]
        bounds: BoundArgs,
        #[command(flatten)]
        promise: PromiseArgs,
        /// Move the disks without a performance guard [default: the guard of the settings]
        #[arg(long, conflicts_with_all = ["keep", "p99", "idle_only"])]
        no_guard: bool,
    },
    /// Change the automation and the bounds
    #[command(override_usage = "sterna storage-drs set [OPTIONS]")]
    Set(SetArgs),
    /// Rules: keep disks together or apart
    #[command(subcommand)]
    Rule(RuleCommand),
}

/// When a datastore is over its bound, for one question.
#[derive(Debug, Args)]
pub(crate) struct BoundArgs {
    /// Bound for the used part of a datastore's space [default: the setting]
    #[arg(long, value_name = "PERCENT", value_parser = parse_part)]
    space: Option<f64>,
    /// Bound for the p95 response time of a datastore [default: the setting]
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    latency: Option<Nanos>,
    /// Consider the load of this past time, 10s to 24h [default: the setting]
    #[arg(long, value_name = "SPAN", value_parser = parse_day)]
    window: Option<Nanos>,
    /// Recommend at most this many moves, 1 to 100 [default: 10]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..=100))]
    moves: Option<u64>,
    /// Also recommend disks that were moved recently
    #[arg(long)]
    ignore_rest: bool,
}

/// What changes; the rest stays.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("what").required(true).multiple(true).args([
    "automation", "space", "latency", "window", "every", "keep", "p99", "idle_only",
    "no_guard",
])))]
pub(crate) struct SetArgs {
    /// What Storage DRS does automatically
    #[arg(long, value_enum)]
    automation: Option<AutomationArg>,
    /// Bound for the used part of a datastore's space (80%)
    #[arg(long, value_name = "PERCENT", value_parser = parse_part)]
    space: Option<f64>,
    /// Bound for the p95 response time of a datastore (15ms)
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    latency: Option<Nanos>,
    /// Consider the load of this past time, 10s to 24h
    #[arg(long, value_name = "SPAN", value_parser = parse_day)]
    window: Option<Nanos>,
    /// Time between two runs, 10s to 24h
    #[arg(long, value_name = "SPAN", value_parser = parse_day)]
    every: Option<Nanos>,
    #[command(flatten)]
    promise: PromiseArgs,
    /// Move disks without a performance guard
    #[arg(long, conflicts_with_all = ["keep", "p99", "idle_only"])]
    no_guard: bool,
}

/// What Storage DRS does automatically.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AutomationArg {
    /// Nothing
    Manual,
    /// Choose datastores for new disks
    Partial,
    /// Choose datastores for new disks, and start the recommended moves
    Full,
}

impl From<AutomationArg> for Automation {
    fn from(arg: AutomationArg) -> Self {
        match arg {
            AutomationArg::Manual => Automation::Manual,
            AutomationArg::Partial => Automation::Partial,
            AutomationArg::Full => Automation::Full,
        }
    }
}

/// In the API's form.
fn micros(span: Nanos) -> u64 {
    span.0.div_ceil(1000)
}

impl BoundArgs {
    fn request(&self) -> AskStorageDrs {
        AskStorageDrs {
            window_s: self.window.map(Nanos::as_secs_f64),
            space: self.space,
            latency_us: self.latency.map(micros),
            moves: self.moves,
            ignore_rest: self.ignore_rest,
        }
    }
}

impl SetArgs {
    fn request(&self) -> ChangeStorageDrs {
        let guard = Some(self.promise.request());
        let is_asked = |guard: &AskGuard| *guard != AskGuard::default() || self.no_guard;
        ChangeStorageDrs {
            automation: self.automation.map(Into::into),
            space: self.space,
            latency_us: self.latency.map(micros),
            window_s: self.window.map(Nanos::as_secs_f64),
            every_s: self.every.map(Nanos::as_secs_f64),
            guard: guard.filter(is_asked),
        }
    }
}

/// Of less nothing can be said, and more is not kept; and who acts less often need not.
fn parse_day(text: &str) -> Result<Nanos, String> {
    let day = Nanos::from_secs(10)..=Nanos::from_secs(24 * 3600);
    let span = Some(parse_long(text)?).filter(|span| day.contains(span));
    span.ok_or_else(|| "it can be 10s to 24h".into())
}

/// Carries out a command.
pub(crate) fn run(
    command: StorageDrsCommand,
    link: &Link,
    output: Output,
) -> anyhow::Result<()> {
    match command {
        StorageDrsCommand::Status => {
            let told = link.ask(async |client| Ok(client.storage_drs().await?))?;
            output.answer(&told, |told| page::show(told, output))
        }
        StorageDrsCommand::Recommend(bounds) => {
            let asked = bounds.request();
            let told = link.ask(async |client| Ok(client.recommend(&asked).await?))?;
            output.answer(&told, |told| recommend::show(told, output))
        }
        StorageDrsCommand::Apply { bounds, promise, no_guard } => {
            let started = link.ask(async |client| {
                let told = client.recommend(&bounds.request()).await?;
                let asked = promise.request();
                let guard = match no_guard || asked != AskGuard::default() {
                    true => asked,
                    false => told.guard,
                };
                let mut started = Vec::new();
                for step in told.moves.chunk_by(|one, other| one.step == other.step) {
                    let begun = begin(client, step, &guard).await;
                    started.extend(begun.map_err(|error| half_way(&started, error))?);
                }
                Ok(started)
            })?;
            output.answer(&started, |started| applied(started))
        }
        StorageDrsCommand::Set(set) => {
            let change = set.request();
            let now =
                link.ask(async |client| Ok(client.change_storage_drs(&change).await?))?;
            output.answer(&now, |now| page::settings(now, output))
        }
        StorageDrsCommand::Rule(command) => rule::run(command, link, output),
    }
}

/// Begins the moves of one step, whose disks must be together: all, or none.
async fn begin(
    client: &Client,
    step: &[RecommendedMove],
    guard: &AskGuard,
) -> anyhow::Result<Vec<Migration>> {
    let mut begun: Vec<Migration> = Vec::new();
    for one in step {
        let error = match client.migrate(&request(one, guard)).await {
            Ok(migration) => {
                begun.push(migration);
                continue;
            }
            Err(error) => anyhow::Error::from(error),
        };
        let mut said = Vec::new();
        for Migration { id, disk, .. } in &begun {
            said.push(match client.cancel(*id).await {
                Ok(_) => {
                    format!("{disk} must stay with this disk: its move is cancelled")
                }
                Err(why) => format!(
                    "{disk} must stay with this disk, but its move continues: `sterna \
                     migration cancel {id}` ({why})"
                ),
            });
        }
        return Err(and_more(error, &said));
    }
    Ok(begun)
}

fn request(one: &RecommendedMove, guard: &AskGuard) -> StartMigration {
    StartMigration {
        disk: one.disk.clone(),
        to: one.to.clone(),
        provision: None,
        rate: None,
        verify: true,
        keep_source: false,
        skip_bad_sectors: false,
        guard: guard.clone(),
    }
}

/// One did not begin: the steps before it go on, and that is said.
fn half_way(started: &[Migration], error: anyhow::Error) -> anyhow::Error {
    let ids: Vec<String> = started.iter().map(|one| one.id.to_string()).collect();
    let said = format!("migrations {} have begun and continue", ids.join(", "));
    let said = (!ids.is_empty()).then_some(said);
    and_more(error, said.as_slice())
}

/// An error, and what else has to be known.
fn and_more(error: anyhow::Error, said: &[String]) -> anyhow::Error {
    if said.is_empty() {
        return error;
    }
    let Error { code, message, hint } = explain(&error);
    let message = format!("{message}; {}", said.join("; "));
    Failure { code, message, hint }.into()
}

fn applied(started: &[Migration]) -> String {
    if started.is_empty() {
        return "No moves recommended (`sterna storage-drs recommend` gives the \
                reasons)."
            .into();
    }
    let line = |one: &Migration| {
        format!("Migration {} of {} from {} to {}\n", one.id, one.disk, one.from, one.to)
    };
    let lines: String = started.iter().map(line).collect();
    format!("{lines}have begun.\n  sterna migration list")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_before_an_error_is_said_with_it() {
        let refused = || anyhow::anyhow!("disk log cannot be moved");
        let told = and_more(
            refused(),
            &["db must stay with this disk: its move is cancelled".into()],
        );
        let told = explain(&told).message;
        assert_eq!(
            told,
            "disk log cannot be moved; db must stay with this disk: its move is \
             cancelled"
        );
        assert_eq!(half_way(&[], refused()).to_string(), "disk log cannot be moved");
    }

    #[test]
    fn spans_may_have_hours_and_minutes() {
        assert_eq!(parse_day("1h"), Ok(Nanos::from_secs(3600)));
        assert_eq!(parse_day("600s"), Ok(Nanos::from_secs(600)));
        for wrong in ["5s", "0h", "h", "hourly", "-1min", "600"] {
            assert!(parse_day(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse_day("25h").unwrap_err(), "it can be 10s to 24h");
    }
}
