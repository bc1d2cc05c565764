//! `sterna status`: the daemon in one page, and its tasks.

use clap::Args;
use sterna_api::{Connections, HurtDisk, Status, Task};
use sterna_console::connect::Link;
use sterna_console::format::{moment_ago, span};
use sterna_console::output::Output;
use sterna_console::table::{Cell, Column, Pairs, Style, Table};
use sterna_console::terms::policies;
use sterna_core::Nanos;

use crate::commands::predict;

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct StatusArgs {
    /// List what the daemon does again and again, and how long each task takes
    #[arg(long)]
    tasks: bool,
}

/// Carries out the command.
pub(crate) fn run(args: StatusArgs, link: &Link, output: Output) -> anyhow::Result<()> {
    if args.tasks {
        let tasks = link.ask(async |client| Ok(client.tasks().await?))?;
        return output.answer(&tasks, |tasks| show_tasks(tasks, output));
    }
    let status = link.ask(async |client| Ok(client.status().await?))?;
    output.answer(&status, |status| show(status, output))
}

/// Who is connected, and how many were not let in.
fn clients(connections: &Connections) -> String {
    let Connections { guests, guests_refused, api, api_closed } = connections;
    let without = |count: u64, what: &str| match count {
        0 => String::new(),
        count => format!(" ({count} {what})"),
    };
    let refused = without(*guests_refused, "turned away");
    let closed = without(*api_closed, "closed for others");
    format!("{guests} over NBD{refused}, {api} of the API{closed}")
}

/// A disk that is hurt: how, since when, by what, and what would help.
fn hurt(one: &HurtDisk) -> String {
    let time = |micros: f64| Nanos((micros * 1e3) as u64).to_string();
    let takes = match one.response_us {
        Some(micros) if one.recovers => format!("requests take {} again", time(micros)),
        Some(micros) => format!("requests take {}", time(micros)),
        None => "requests hang".into(),
    };
    let should = match (one.promised_us, one.usual_us) {
        (Some(promised), _) => format!(", promised {}", time(promised)),
        (None, Some(usual)) => format!(", usually {}", time(usual)),
        (None, None) => String::new(),
    };
    let command = match &one.help.command {
        Some(command) => format!(": `{command}`"),
        None => String::new(),
    };
    format!(
        "{}: {takes}{should}, since {}\n{}\nwould help: {}{command}",
        one.disk,
        moment_ago(one.since),
        one.why,
        one.help.text
    ) + &one.tried.as_ref().map_or(String::new(), |tried| format!("\ntried: {tried}"))
}

/// A disk that is slower than usual, and not hurt.
fn slower(one: &HurtDisk) -> String {
    let times = match (one.response_us, one.usual_us) {
        (Some(took), Some(usual)) => {
            let time = Nanos((usual * 1e3) as u64);
            format!("{:.1} times its usual {time}", took / usual)
        }
        _ => "slower than usual".into(),
    };
    format!("{}: {times}, since {}\n{}", one.disk, moment_ago(one.since), one.why)
}

/// A disk that is slowed on purpose: by how much, and by which policy.
fn slowed(one: &HurtDisk) -> String {
    let time = |micros: f64| Nanos((micros * 1e3) as u64).to_string();
    let took = one.response_us.map_or("-".into(), time);
    let usual =
        one.usual_us.map_or(String::new(), |it| format!(", usually {}", time(it)));
    format!(
        "{}: requests take {took}{usual}, on purpose, since {}\n{}",
        one.disk,
        moment_ago(one.since),
        one.why
    )
}

fn show(status: &Status, output: Output) -> String {
    let mut pairs = Pairs::new();
    pairs.add("version", format!("{} (process {})", status.version, status.pid));
    pairs.add("started", moment_ago(status.started));
    pairs.add("state", status.state.as_str());
    pairs.add("API", status.socket.as_str());
    for uri in &status.nbd {
        pairs.add("NBD", uri.as_str());
    }
    let why = status.io.reason.as_ref().map_or(String::new(), |why| format!(" ({why})"));
    pairs.add("I/O", format!("{}{why}", status.io.engine));
    pairs.add("clients", clients(&status.connections));
    let files = &status.open_files;
    pairs.add("open files", format!("{} of {}", files.open, files.limit));
    if status.lost_log_lines > 0 {
        pairs.add("log", format!("{} lines were lost", status.lost_log_lines));
    }
    let counts = &status.counts;
    pairs.add("datastores", counts.datastores.to_string());
    pairs.add("disks", format!("{}, {} served", counts.disks, counts.disks_served));
    pairs.add("VMs", counts.vms.to_string());
    let paused = match counts.migrations_paused {
        0 => String::new(),
        paused => format!(", {paused} paused"),
    };
    pairs.add("migrations", format!("{} under way{paused}", counts.migrations));
    pairs.add("predictions", predict::scores(&status.predictions));
    let policies = policies(counts.policies);
    pairs.add("classes", format!("{}, {policies}", counts.classes));
    for one in &status.hurt {
        pairs.add("hurt disk", Cell::styled(hurt(one), Style::Warn));
    }
    let more = counts.disks_hurt.saturating_sub(status.hurt.len() as u64);
    if more > 0 {
        pairs.add("hurt disks", format!("{more} more"));
    }
    for one in &status.slower {
        pairs.add("slower disk", slower(one));
    }
    for one in &status.slowed {
        pairs.add("slowed disk", slowed(one));
    }
    if status.warnings.is_empty() {
        pairs.add("warnings", Cell::styled("none", Style::Good));
    }
    for warning in &status.warnings {
        let hint = match warning.hint.as_str() {
            "" => String::new(),
            hint => format!("\n{hint}"),
        };
        let text = format!("{}: {}{hint}", warning.about, warning.message);
        pairs.add("warning", Cell::styled(text, Style::Warn));
    }
    output.pairs(&pairs)
}

/// How long a task may be at work before it counts as hanging, in milliseconds: storage that
/// is only slow answers sooner.
const HANGS_MS: u64 = 30_000;

fn show_tasks(tasks: &[Task], output: Output) -> String {
    let mut table = Table::new(&[
        ("TASK", Column::Left),
        ("NOW", Column::Left),
        ("RUNS", Column::Right),
        ("TOOK", Column::Right),
        ("WHAT IT DOES", Column::Wrapped),
    ]);
    for task in tasks {
        let millis = |millis: u64| span(millis as f64 / 1000.0);
        let now = match (task.running_ms, task.next_ms) {
            (Some(since), _) if since >= HANGS_MS => {
                let text = format!("hangs for {}", millis(since));
                Cell::styled(text, Style::Bad)
            }
            (Some(_), _) => "at work".into(),
            (None, Some(next)) => format!("in {}", millis(next)).into(),
            (None, None) => "-".into(),
        };
        let does = match &task.failed {
            Some(why) => {
                Cell::styled(format!("cannot {}: {why}", task.does), Style::Warn)
            }
            None => task.does.as_str().into(),
        };
        let took = task.took_ms.map_or("-".into(), millis);
        let runs = task.runs.to_string();
        table.row(vec![task.name.as_str().into(), now, runs.into(), took.into(), does]);
    }
    output.table(&table)
}
