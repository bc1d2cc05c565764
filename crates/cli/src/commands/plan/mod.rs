//! `sterna plan`: moving one disk or thousands, in waves.

mod report;
mod show;
mod tiles;
mod virtual_run;
mod workloads;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use sterna_api::{Plan, PlanEvacuation, PlanState};
use sterna_console::connect::Link;
use sterna_console::format::count;
use sterna_console::output::{Output, WIDTH, prose};
use sterna_core::Bytes;

use crate::common::guard::{PromiseArgs, parse_moment, parse_part, parse_schedule};
use crate::common::number::number_of;
use crate::common::rate::parse_rate;
use crate::common::verification::VerifyArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum PlanCommand {
    /// Make a plan to empty a datastore; nothing moves before `plan apply`
    Evacuate(Box<EvacuateArgs>),
    /// List the plans
    #[command(visible_alias = "ls")]
    List,
    /// Show a plan and its progress
    Show(PlanArg),
    /// Start a plan
    Apply(PlanArg),
    /// Pause a plan and its moves; they stay paused when the daemon restarts
    Pause(PlanArg),
    /// Resume a paused plan and its moves
    Resume(PlanArg),
    /// Cancel a plan; moved disks stay on their destinations
    Cancel(PlanArg),
    /// Compare the plan with the result
    Report(PlanArg),
    /// Remove a plan that has ended or was never started
    #[command(visible_alias = "rm")]
    Remove(PlanArg),
}

/// The number of one plan.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct PlanArg {
    /// The plan's number (see `sterna plan list`)
    #[arg(value_parser = number_of("plan"))]
    id: u64,
}

/// What is to be empty, and how.
#[derive(Debug, Args)]
pub(crate) struct EvacuateArgs {
    /// The datastore to empty
    datastore: String,
    /// A destination; repeatable [default: all other datastores that take more than one
    /// disk]
    #[arg(long, value_name = "DATASTORE")]
    to: Vec<String>,
    /// Check whether all moves will have ended by this time ("Sun 06:00", 06:00,
    /// "2027-01-31 06:00", 8h)
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    by: Option<String>,
    /// Bound for the used part of a destination's space [default: 80%]
    #[arg(long, value_name = "PERCENT", value_parser = parse_part)]
    space: Option<f64>,
    #[command(flatten)]
    promise: PromiseArgs,
    /// Start moves, and copy, only while this schedule is open ("22:00-06:00")
    #[arg(long, value_name = "SCHEDULE", value_parser = parse_schedule)]
    window: Option<String>,
    /// Limit each copy to this many bytes per second (200M)
    #[arg(long, value_name = "BYTES", value_parser = parse_rate)]
    rate: Option<Bytes>,
    #[command(flatten)]
    verification: VerifyArgs,
    /// Run at most this many moves at once
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    at_once: Option<u64>,
    /// Move the disks in the order of the tiles in this file (TOML)
    #[arg(long, value_name = "FILE")]
    tile: Option<PathBuf>,
    /// Show the plan in virtual time, without storing it
    #[arg(long = "virtual")]
    rehearse: bool,
}

impl EvacuateArgs {
    /// In the API's form.
    fn request(&self) -> anyhow::Result<PlanEvacuation> {
        let promise = self.promise.request();
        let tiles = self.tile.as_deref().map(tiles::read).transpose()?;
        Ok(PlanEvacuation {
            datastore: self.datastore.clone(),
            to: self.to.clone(),
            space: self.space.unwrap_or(0.8),
            by: self.by.clone(),
            keep: promise.keep,
            p99_us: promise.p99_us,
            idle_only: promise.idle_only,
            window: self.window.clone(),
            rate: self.rate.map(|rate| rate.0),
            verify: self.verification.verify(),
            at_once: self.at_once,
            tiles: tiles.unwrap_or_default(),
            dry_run: self.rehearse,
        })
    }
}

/// Carries out a command.
pub(crate) fn run(
    command: PlanCommand,
    link: &Link,
    output: Output,
) -> anyhow::Result<()> {
    link.ask(async move |client| match command {
        PlanCommand::Evacuate(args) => {
            let plan = client.plan_evacuation(&args.request()?).await?;
            output.answer(&plan, |plan| match args.rehearse {
                true => virtual_run::show(plan, output),
                false => made(plan, output),
            })
        }
        PlanCommand::List => {
            let all = client.plans().await?;
            output.answer(&all, |all| show::list(all, output))
        }
        PlanCommand::Show(PlanArg { id }) => {
            let plan = client.plan(id).await?;
            output.answer(&plan, |plan| show::show(plan, output))
        }
        PlanCommand::Apply(PlanArg { id }) => {
            let plan = client.apply_plan(id).await?;
            let next = format!("to see the progress: sterna plan show {id}");
            output.answer(&plan, |plan| said(plan, &next))
        }
        PlanCommand::Pause(PlanArg { id }) => {
            let plan = client.pause_plan(id).await?;
            let next = format!("to resume the plan: sterna plan resume {id}");
            output.answer(&plan, |plan| said(plan, &next) + &workloads::left_down(plan))
        }
        PlanCommand::Resume(PlanArg { id }) => {
            let plan = client.resume_plan(id).await?;
            let next = format!("to see the progress: sterna plan show {id}");
            output.answer(&plan, |plan| said(plan, &next))
        }
        PlanCommand::Cancel(PlanArg { id }) => {
            let plan = client.cancel_plan(id).await?;
            output.answer(&plan, |plan| {
                said(plan, "moved disks stay on their destinations")
            })
        }
        PlanCommand::Report(PlanArg { id }) => {
            let plan = client.plan(id).await?;
            output.answer(&plan, |plan| report::show(plan, output))
        }
        PlanCommand::Remove(PlanArg { id }) => {
            let gone = client.remove_plan(id).await?;
            output.answer(&gone, removed)
        }
    })
}

fn made(plan: &Plan, output: Output) -> String {
    let shown = show::show(plan, output);
    let (id, from) = (plan.id, &plan.datastore);
    if plan.moves.is_empty() {
        return shown;
    }
    let keep = format!("sterna datastore maintenance {from}");
    let why = "(keeps new disks away)";
    let is_wide = keep.len() + why.len() + 6 > WIDTH;
    let gap = if is_wide { "\n  " } else { "    " };
    format!("{shown}\nNothing has begun.\n  sterna plan apply {id}\n  {keep}{gap}{why}")
}

fn said(plan: &Plan, next: &str) -> String {
    let moves = count(plan.moves.len() as u64, "move");
    prose(&format!(
        "Plan {} to empty {}, {moves}, is {}.\n  {next}",
        plan.id, plan.datastore, plan.state
    ))
}

/// What it was, and that nothing else has changed.
fn removed(gone: &Plan) -> String {
    let (id, datastore) = (gone.id, &gone.datastore);
    let stays = match gone.state {
        PlanState::Planned => "",
        _ => "\n  moved disks stay on their destinations",
    };
    prose(&format!(
        "Plan {id} to empty {datastore}, which was {}, is removed.{stays}",
        gone.state
    ))
}

#[cfg(test)]
mod tests {
    use sterna_api::{
        Guard, LearnedFrom, Plan, PlanEstimate, PlanState, PlannedDatastore, PlannedMove,
        PlannedMoveState, Predicted, RefusedDisk, Weakest,
    };

    pub(super) fn predicted(bytes: u64, likely_s: f64) -> Predicted {
        Predicted {
            bytes,
            likely_s,
            least_s: likely_s / 2.0,
            most_s: likely_s * 2.0,
            rate: bytes as f64 / likely_s,
            share: 1.0,
            kept: None,
            weakest: Weakest::Storage,
            learned_from: LearnedFrom::Moves,
            moves: Some(3),
            guess: false,
        }
    }

    pub(super) fn a_move(disk: &str, state: PlannedMoveState) -> PlannedMove {
        PlannedMove {
            disk: disk.into(),
            from: "old".into(),
            to: "a-datastore-with-quite-a-long-name".into(),
            why: "emptiest: 43% used afterwards".into(),
            tile: None,
            wave: 1,
            bytes: 5 << 30,
            predicted: Some(predicted(5 << 30, 60.0)),
            begins_s: 0.0,
            ends_s: 60.0,
            state,
            migration: None,
            attempts: 0,
            done: None,
            verifying: false,
            began: None,
            ended: None,
            took_s: None,
            problem: None,
        }
    }

    fn datastore(name: &str, room: Option<u64>) -> PlannedDatastore {
        PlannedDatastore {
            datastore: name.into(),
            room,
            speed: Some(200e6),
            moves: 2,
            bytes: 10 << 30,
            may_grow_to: None,
            problem: None,
        }
    }

    pub(super) fn plan(state: PlanState, moves: Vec<PlannedMove>) -> Plan {
        Plan {
            id: 3,
            state,
            datastore: "old".into(),
            space: 0.8,
            guard: Guard { keep: Some(0.97), ..Guard::default() },
            rate: None,
            verify: false,
            at_once: None,
            tiles: Vec::new(),
            workloads: Vec::new(),
            created: 1_795_205_558,
            started: None,
            ended: None,
            estimate: PlanEstimate {
                bytes: 10 << 30,
                unknown: 0,
                limited: 0,
                limited_to: None,
                likely_s: Some(120.0),
                least_s: Some(60.0),
                most_s: Some(240.0),
                bound_s: Some(100.0),
                gap: Some(0.2),
            },
            opens: None,
            ends: None,
            deadline: None,
            datastores: vec![
                datastore("old", None),
                datastore("a-datastore-with-quite-a-long-name", Some(100 << 30)),
            ],
            moves,
            refused: vec![RefusedDisk {
                disk: "web".into(),
                reason: "the disk is already moving, by migration 5".into(),
            }],
        }
    }

    pub(super) fn narrow(text: &str) {
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}
