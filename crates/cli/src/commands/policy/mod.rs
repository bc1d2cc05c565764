//! `sterna policy`: what is asked for a class, and when.

mod explain;

use clap::{Args, Subcommand};
use sterna_api::{Aim, CreatePolicy, CruisePhase, Policy, Standing};
use sterna_console::connect::Link;
use sterna_console::format::{moment_ago, moment_ahead};
use sterna_console::output::Output;
use sterna_console::table::{Cell, Column, Pairs, Style, Table};
use sterna_console::terms::{NOTHING, fallback, goal, kind, rate, wish};
use sterna_core::qos::policy::{self, Cruise, DEPTH_MAX, Fallback, Tolerance};
use sterna_core::qos::{Goal, Rate};
use sterna_core::schedule::Schedule;

use crate::common::number::number_of;

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Limit a class
    Limit {
        #[command(flatten)]
        class: ClassArg,
        /// The limit: bytes per second (2M), requests per second (100iops), or a mean
        /// response time to which requests are slowed down (20ms)
        goal: Goal,
        #[command(flatten)]
        when: WhenArgs,
    },
    /// Hold a class at a target by slowing down other classes
    Cruise {
        #[command(flatten)]
        class: ClassArg,
        /// The target: bytes per second (15M), requests per second (1000iops), or mean
        /// response time (5ms)
        target: Goal,
        /// Tolerance around the target, 1% to 50%
        #[arg(long, value_name = "PERCENT", allow_hyphen_values = true)]
        tolerance: Tolerance,
        /// Reservation of the class while the policy is in force (500iops, 5M)
        #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
        floor: Option<Rate>,
        /// If the target cannot be reached: keep other classes slow (none), limit each
        /// (limit=2M), or release them (release)
        #[arg(long, default_value = "none")]
        fallback: Fallback,
        #[command(flatten)]
        when: WhenArgs,
    },
    /// Limit the number of requests that a class has at the device
    QueueDepth {
        #[command(flatten)]
        class: ClassArg,
        /// The number of requests, 1 to 65535
        #[arg(value_parser = clap::value_parser!(u32).range(1..=DEPTH_MAX.into()))]
        depth: u32,
        #[command(flatten)]
        when: WhenArgs,
    },
    /// List the policies
    #[command(visible_alias = "ls")]
    List,
    /// Show one policy
    Show(PolicyArg),
    /// Remove a policy
    #[command(visible_alias = "rm")]
    Remove(PolicyArg),
    /// Show what limits a class now, since when, and what would change this
    Explain(ClassArg),
}

/// The name of one class.
#[derive(Debug, Args)]
pub(crate) struct ClassArg {
    /// The class (see `sterna class list`)
    class: String,
}

/// The number of one policy.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct PolicyArg {
    /// The policy's number (see `sterna policy list`)
    #[arg(value_parser = number_of("policy"))]
    id: u64,
}

/// When a policy holds.
#[derive(Debug, Args)]
pub(crate) struct WhenArgs {
    /// When the policy is in force, in the daemon's local time: days, hours, or both
    /// ("Mon-Fri 22:00-06:00", "22:00-06:00", "Sat,Sun")
    #[arg(long)]
    schedule: Option<Schedule>,
    /// Remove the policy when this migration ends
    #[arg(long, value_name = "MIGRATION", value_parser = number_of("migration"))]
    until_job: Option<u64>,
}

/// Carries out a command.
pub(crate) fn run(
    command: PolicyCommand,
    link: &Link,
    output: Output,
) -> anyhow::Result<()> {
    match command {
        PolicyCommand::Limit { class, goal, when } => {
            make(class, policy::Aim::Limit(goal), &when, link, output)
        }
        PolicyCommand::Cruise { class, target, tolerance, floor, fallback, when } => {
            let cruise = Cruise { target, tolerance, floor, fallback };
            make(class, policy::Aim::Cruise(cruise), &when, link, output)
        }
        PolicyCommand::QueueDepth { class, depth, when } => {
            make(class, policy::Aim::Depth(depth), &when, link, output)
        }
        PolicyCommand::List => {
            let all = link.ask(async |client| Ok(client.policies().await?))?;
            output.answer(&all, |all| list(all, output))
        }
        PolicyCommand::Show(PolicyArg { id }) => {
            let one = link.ask(async |client| Ok(client.policy(id).await?))?;
            output.answer(&one, |one| show(one, output))
        }
        PolicyCommand::Remove(PolicyArg { id }) => {
            let gone = link.ask(async |client| Ok(client.remove_policy(id).await?))?;
            output.answer(&gone, |gone| format!("{} is removed.", title(gone)))
        }
        PolicyCommand::Explain(ClassArg { class }) => {
            let said = link.ask(async |client| Ok(client.explain(&class).await?))?;
            output.answer(&said, |said| explain::words(said, output))
        }
    }
}

fn make(
    ClassArg { class }: ClassArg,
    aim: policy::Aim,
    when: &WhenArgs,
    link: &Link,
    output: Output,
) -> anyhow::Result<()> {
    let schedule = when.schedule.as_ref().map(ToString::to_string);
    let (aim, until_job) = (Aim::from(aim), when.until_job);
    let request = CreatePolicy { class, aim, schedule, until_job };
    let (made, notes) = link.ask(async |client| {
        let made = client.create_policy(&request).await?;
        // The policy is made, whatever becomes of a question about its class.
        let class = client.class(&made.class).await.ok();
        Ok((made, class.map_or(Vec::new(), |class| class.notes)))
    })?;
    output.answer(&made, |made| {
        let shown = show(made, output);
        let see = format!("sterna policy explain {}", made.class);
        let slows = match made.aim {
            Aim::Limit { goal: wanted @ sterna_api::Goal::ResponseMs(_) } => format!(
                "The limit slows requests to {}. To stay below, use `sterna policy \
                 cruise`.\n",
                goal(wanted)
            ),
            _ => String::new(),
        };
        let notes = about(made, &notes);
        format!("{} made.\n{shown}{slows}{notes}The effect: {see}", title(made))
    })
}

/// The notes of the class that name this policy, as warnings: the policy breaks a reservation.
fn about(one: &Policy, notes: &[String]) -> String {
    let name = format!("(policy {})", one.id);
    let its = notes.iter().filter(|note| note.contains(&name));
    its.map(|note| format!("Warning: {note}.\n")).collect()
}

/// `Policy 3 (limit of class oltp)`.
fn title(one: &Policy) -> String {
    format!("Policy {} ({} of class {})", one.id, kind(&one.aim), one.class)
}

/// Whether it counts now; of a target that does, what has become of it.
fn state(one: &Policy) -> Cell {
    match (one.standing, &one.cruise) {
        (Standing::Closed | Standing::Looser, _) => one.standing.to_string().into(),
        (Standing::Binds, None) => Cell::styled("binds", Style::Good),
        (Standing::Binds, Some(cruise)) => {
            let style = match cruise.phase {
                CruisePhase::NotStarted => Style::Plain,
                CruisePhase::Holding => Style::Good,
                CruisePhase::Converging => Style::Warn,
                CruisePhase::Unreachable => Style::Bad,
            };
            Cell::styled(cruise.phase.to_string(), style)
        }
    }
}

/// What becomes of the class itself for its target.
fn itself(one: &Policy) -> String {
    match one.aim {
        Aim::Cruise { goal: sterna_api::Goal::ResponseMs(_), .. } => {
            format!("{} is never delayed", one.class)
        }
        _ => {
            format!("{} is limited to about this while others are slowed down", one.class)
        }
    }
}

/// When it holds.
fn when(one: &Policy) -> String {
    let schedule = one.schedule.clone();
    let job = one.until_job.map(|job| format!("until migration {job} ends"));
    match (schedule, job) {
        (None, None) => "always".into(),
        (schedule, job) => {
            [schedule, job].into_iter().flatten().collect::<Vec<_>>().join(", ")
        }
    }
}

fn list(all: &[Policy], output: Output) -> String {
    if all.is_empty() {
        return "No policies yet. Make one: sterna policy limit CLASS 2M".into();
    }
    let mut table = Table::new(&[
        ("ID", Column::Right),
        ("CLASS", Column::Flexible),
        ("KIND", Column::Left),
        ("WANTS", Column::Left),
        ("STATE", Column::Left),
        ("WHEN", Column::Flexible),
    ]);
    for one in all {
        table.row(vec![
            one.id.to_string().into(),
            one.class.as_str().into(),
            kind(&one.aim).into(),
            wish(&one.aim).into(),
            state(one),
            when(one).into(),
        ]);
    }
    output.table(&table)
}

fn show(one: &Policy, output: Output) -> String {
    let mut pairs = Pairs::new();
    pairs.add("policy", one.id.to_string());
    pairs.add("class", one.class.as_str());
    pairs.add(kind(&one.aim), wish(&one.aim));
    if let Aim::Cruise { floor, fallback: then, .. } = one.aim {
        pairs.add("floor", floor.map_or(NOTHING.into(), rate));
        pairs.add("fallback", fallback(then));
        pairs.add("itself", itself(one));
    }
    pairs.add("when", when(one));
    pairs.add("state", state(one));
    pairs.maybe("tighter", one.looser_than.map(|id| format!("policy {id}")));
    let state_since = one.cruise.as_ref().and_then(|cruise| cruise.since);
    pairs.add("since", moment_ago(state_since.unwrap_or(one.since)));
    pairs.maybe("until", one.until.map(moment_ahead));
    if let Some(cruise) = &one.cruise {
        pairs.maybe("reason", cruise.reason.as_deref());
    }
    output.pairs(&pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_breaks_a_reservation_says_so_when_it_is_made() {
        let made = Policy {
            id: 3,
            class: "oltp".into(),
            aim: Aim::Limit { goal: sterna_api::Goal::BytesPerSecond(18 << 20) },
            schedule: None,
            until_job: None,
            created: 0,
            standing: Standing::Binds,
            looser_than: None,
            since: 0,
            until: None,
            cruise: None,
        };
        let breaks = |id| {
            format!(
                "the limit of 18.0 MiB/s (policy {id}) breaks the reservation: 576 of 1200"
            )
        };
        let notes =
            ["datastore slow: too much is reserved".into(), breaks(3), breaks(31)];
        assert_eq!(about(&made, &notes), format!("Warning: {}.\n", breaks(3)));
        assert_eq!(about(&made, &[]), "");
    }
}
