//! `sterna status`: the daemon in one page.

use sterna_api::{Connections, Status};
use sterna_console::connect::Link;
use sterna_console::format::moment_ago;
use sterna_console::output::Output;
use sterna_console::table::{Cell, Pairs, Style};
use sterna_console::terms::policies;

use crate::commands::predict;

/// Carries out the command.
pub(crate) fn run(link: &Link, output: Output) -> anyhow::Result<()> {
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
    let paused = match counts.migrations_paused {
        0 => String::new(),
        paused => format!(", {paused} paused"),
    };
    pairs.add("migrations", format!("{} under way{paused}", counts.migrations));
    pairs.add("predictions", predict::scores(&status.predictions));
    let policies = policies(counts.policies);
    pairs.add("classes", format!("{}, {policies}", counts.classes));
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
