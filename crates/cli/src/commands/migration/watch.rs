//! Following a migration to its end.
//!
//! On a terminal a bar is drawn; elsewhere a line is printed every few seconds
//! and at every change of state. The wait ends when the migration has ended, or
//! when it stands still because something failed: then only a person can help,
//! and the command fails with the reason. A pause that somebody asked for is
//! waited out. Ctrl-C ends the wait, never the migration.

use std::io;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use sterna_api::{
    Client, ClientError, ErrorCode, GuardState, Migration, MigrationState, Progress,
};
use sterna_console::connect::{Failure, explain};
use sterna_console::format::{bytes, iops, now, rate, response, span};
use sterna_console::output::{Output, WIDTH, note, takes_colour};
use sterna_console::table::wrap;

use crate::commands::migration::report::summary;

/// How often the daemon is asked: quick enough for the eye, slow enough to be
/// free.
const POLL: Duration = Duration::from_millis(100);
/// How often a line is printed where there is no terminal.
const LINE: Duration = Duration::from_secs(5);
/// The least time between two lines, though the state changes more often.
const CHANGE: Duration = Duration::from_secs(1);
/// How often `watch --json` prints the migration.
const JSON_LINE: Duration = Duration::from_secs(1);

/// What is shown with `--json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Show {
    /// The migration as it ended.
    End,
    /// A line each second, and the migration as it ended.
    Everything,
}

/// Follows `migration` until it has ended, stands still, or Ctrl-C.
pub(crate) async fn to_the_end(
    client: &Client,
    migration: Migration,
    output: Output,
    show: Show,
) -> anyhow::Result<()> {
    let id = migration.id;
    let mut screen = Screen::new(output, show);
    let wait = follow(client, migration, &mut screen);
    let end = tokio::select! {
        end = wait => Some(end?),
        _ = tokio::signal::ctrl_c() => None,
    };
    screen.clear();
    let Some(end) = end else {
        return Err(Failure {
            code: ErrorCode::Interrupted,
            message: format!("no longer waiting; migration {id} continues"),
            hint: format!(
                "`sterna migration watch {id}` shows its progress, `sterna migration \
                 cancel {id}` cancels it"
            ),
        }
        .into());
    };
    finish(&end, output, show)
}

async fn follow(
    client: &Client,
    mut migration: Migration,
    screen: &mut Screen,
) -> anyhow::Result<Migration> {
    while !(migration.state.ended() || needs_help(&migration)) {
        screen.draw(&migration)?;
        tokio::time::sleep(POLL).await;
        match client.migration(migration.id).await {
            Ok(next) => migration = next,
            // The daemon cannot look it up now; the migration goes on all the same.
            Err(ClientError::Refused(why)) if why.code == ErrorCode::Unavailable => {
                migration.reason = Some(why.message);
            }
            Err(error) => return Err(out_of_sight(error, &migration)),
        }
    }
    Ok(migration)
}

/// Nothing is known of it at the moment. A daemon that is gone takes it up again when it
/// is started.
fn out_of_sight(error: ClientError, migration: &Migration) -> anyhow::Error {
    if !matches!(error, ClientError::NoDaemon { .. } | ClientError::Broken(_)) {
        return error.into();
    }
    let Migration { id, disk, .. } = migration;
    let message = explain(&error.into()).message;
    let hint = format!(
        "migration {id} of {disk} continues when the daemon starts again; `sterna \
         migration watch {id}` then follows it"
    );
    Failure { code: ErrorCode::Unavailable, message, hint }.into()
}

/// Whether it stands still with something that somebody must do about it.
fn needs_help(migration: &Migration) -> bool {
    migration.state == MigrationState::Paused && migration.hint.is_some()
}

fn finish(end: &Migration, output: Output, show: Show) -> anyhow::Result<()> {
    match (output.is_json(), show) {
        (true, Show::Everything) => output.line(end)?,
        (true, Show::End) => output.answer(end, |_| String::new())?,
        (false, _) if end.state.ended() => {
            output.print(summary(end, output).trim_end())?;
        }
        (false, _) => {}
    }
    let id = end.id;
    match end.state {
        MigrationState::Completed => Ok(()),
        MigrationState::Cancelled if end.unclear => Err(Failure {
            code: ErrorCode::Cancelled,
            message: format!(
                "the end of migration {id} of {} is unknown: the disk is on {} or {}",
                end.disk, end.from, end.to
            ),
            hint: end.hint.clone().unwrap_or_default(),
        }
        .into()),
        MigrationState::Cancelled => Err(Failure {
            code: ErrorCode::Cancelled,
            message: format!("migration {id} of {} was cancelled", end.disk),
            hint: format!("disk {} is on {}, as before", end.disk, end.from),
        }
        .into()),
        _ => Err(Failure {
            code: ErrorCode::Paused,
            message: format!(
                "migration {id} of {} is paused: {}",
                end.disk,
                end.reason.as_deref().unwrap_or("no reason known")
            ),
            hint: end.hint.clone().unwrap_or_default(),
        }
        .into()),
    }
}

/// How far a migration is, of 100.
pub(crate) fn percent(state: MigrationState, progress: &Progress) -> f64 {
    let (done, total) = position(state, progress);
    if total == 0 { 100.0 } else { (done as f64 / total as f64 * 100.0).min(100.0) }
}

/// Where the bar stands, and its end.
fn position(state: MigrationState, progress: &Progress) -> (u64, u64) {
    match (state, progress.verified) {
        (MigrationState::Verifying, Some(verified)) => (verified, progress.total),
        // A comparison that is paused is one still; before one has begun, the copy is paused.
        (MigrationState::Paused, Some(verified)) if verified > 0 => {
            (verified, progress.total)
        }
        _ => (progress.synced, progress.total),
    }
}

/// Where progress is shown.
struct Screen {
    output: Output,
    show: Show,
    bar: Option<ProgressBar>,
    printed: Option<(Instant, MigrationState)>,
}

impl Screen {
    fn new(output: Output, show: Show) -> Self {
        let bar = !output.is_json() && takes_colour(&io::stderr());
        Screen { output, show, bar: bar.then(new_bar), printed: None }
    }

    fn draw(&mut self, migration: &Migration) -> anyhow::Result<()> {
        if let Some(bar) = &self.bar {
            draw_bar(bar, migration);
            return Ok(());
        }
        let interval = if self.output.is_json() { JSON_LINE } else { LINE };
        let due = self.printed.is_none_or(|(at, state)| {
            let least = if state == migration.state { interval } else { CHANGE };
            at.elapsed() >= least
        });
        if !due {
            return Ok(());
        }
        self.printed = Some((Instant::now(), migration.state));
        if !self.output.is_json() {
            note(&lines(migration));
        } else if self.show == Show::Everything {
            self.output.line(migration)?;
        }
        Ok(())
    }

    fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A bar below a line of what it is about.
pub(crate) fn new_bar() -> ProgressBar {
    let bar = ProgressBar::new(0);
    let template = "{prefix}\n[{bar:20}] {percent:>3}%  {msg}";
    let style = ProgressStyle::with_template(template).expect("the template is valid");
    bar.set_style(style.progress_chars("=> "));
    bar
}

fn draw_bar(bar: &ProgressBar, migration: &Migration) {
    let mut head = format!("{}: {} to {}", migration.disk, migration.from, migration.to);
    head.push_str(&format!("  ({})", migration.state));
    let mut tail = String::new();
    if let Some(progress) = &migration.progress {
        let (done, total) = position(migration.state, progress);
        bar.set_length(total);
        bar.set_position(done);
        tail = pace(migration, progress);
    }
    if let Some(reason) = &migration.reason {
        head.push_str(&format!(": {reason}"));
    }
    bar.set_prefix(head);
    bar.set_message(format!("{tail}\n{}", application(migration)));
}

/// Bytes, rate and the time left.
fn pace(migration: &Migration, progress: &Progress) -> String {
    let (done, total) = position(migration.state, progress);
    let mut text = format!("{} of {}", bytes(done), bytes(total));
    if migration.state != MigrationState::Paused && progress.rate > 0.0 {
        text.push_str(&format!("  {}", rate(progress.rate)));
        if let Some(eta) = progress.eta_s {
            text.push_str(&format!("  {}", left(migration, eta, now())));
        }
    }
    text
}

/// The time left. A guard with a deadline copies slowly at first and faster later, so a
/// rest that today's rate would not do until then is in time all the same, unless the
/// guard says otherwise.
fn left(migration: &Migration, eta_s: f64, now: u64) -> String {
    let guard = migration.guard.as_ref();
    let deadline = guard.and_then(|guard| guard.asked.finish_by);
    let is_late = guard.is_some_and(|guard| {
        let missed = [Some(GuardState::Late), Some(GuardState::Unreachable)];
        guard.late_s.is_some() || missed.contains(&guard.state)
    });
    match deadline {
        Some(by) if !is_late && by > now && eta_s > (by - now) as f64 => "in time".into(),
        _ => span(eta_s),
    }
}

/// What the application gets now, against before.
fn application(migration: &Migration) -> String {
    let (before, now) = (migration.application.before, migration.application.now);
    let Some(now) = now else { return "application: no figures yet".into() };
    let was =
        |text: Option<String>| text.map_or(String::new(), |it| format!(" (was {it})"));
    let ios = was(before.map(|before| iops(before.iops)));
    let p99 = was(before.and_then(|it| it.p99_us).map(|it| response(Some(it))));
    let (io_now, p99_now) = (iops(now.iops), response(now.p99_us));
    format!("application: {io_now} IO/s{ios}, p99 {p99_now}{p99}")
}

/// One line where there is no terminal; a reason may need more. What does not
/// fit any more is left out, the figures of the application first.
fn lines(migration: &Migration) -> String {
    let mut text = format!("{}: {}", migration.disk, migration.state);
    if let Some(reason) = &migration.reason {
        text.push_str(&format!(" ({reason})"));
    }
    let mut more = Vec::new();
    if let Some(progress) = &migration.progress {
        let percent = percent(migration.state, progress);
        text.push_str(&format!(" {percent:.0}%"));
        more.push(format!("  {}", pace(migration, progress)));
    }
    if let Some(now) = migration.application.now {
        more.push(format!("  | {} IO/s", iops(now.iops)));
        more.push(format!(", p99 {}", response(now.p99_us)));
    }
    let mut lines = wrap(&text, WIDTH);
    if let Some(last) = lines.last_mut() {
        for part in more {
            if last.chars().count() + part.chars().count() > WIDTH {
                break;
            }
            last.push_str(&part);
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use sterna_api::Figures;

    use super::*;
    use crate::commands::migration::report::sample;

    #[test]
    fn a_line_fits_and_loses_the_least_first() {
        let progress = Progress {
            total: 100 << 30,
            synced: 31 << 30,
            rate: 59.9 * 1_048_576.0,
            eta_s: Some(7500.0),
            ..Progress::default()
        };
        let now = Figures { iops: 12_345.0, p99_us: Some(2300.0), ..Figures::default() };
        let mut one = sample(MigrationState::Copying);
        one.progress = Some(progress);
        one.application.now = Some(now);
        let text = lines(&one);
        let whole =
            "db: copying 31%  31.0 GiB of 100 GiB  59.9 MiB/s  2 h 05 min  | 12.3k IO/s";
        assert_eq!(text, whole);
        one.reason = Some("the destination ".repeat(9));
        assert!(lines(&one).lines().all(|line| line.chars().count() <= WIDTH));
    }

    #[test]
    fn a_move_that_its_guard_finishes_by_a_deadline_is_in_time() {
        let asked = sterna_api::Guard { finish_by: Some(1020), ..Default::default() };
        let mut one = sample(MigrationState::Copying);
        let mut guard = guarding(asked, GuardState::Holding);
        one.guard = Some(guard.clone());
        assert_eq!(left(&one, 11_000.0, 1000), "in time");
        assert_eq!(left(&one, 12.0, 1000), span(12.0));
        guard.state = Some(GuardState::Late);
        one.guard = Some(guard);
        assert_eq!(left(&one, 11_000.0, 1000), span(11_000.0));
    }

    fn guarding(asked: sterna_api::Guard, state: GuardState) -> sterna_api::Guarding {
        sterna_api::Guarding {
            asked,
            state: Some(state),
            reason: None,
            baseline_iops: None,
            kept: None,
            p99_us: None,
            allowance: None,
            late_s: None,
        }
    }

    #[test]
    fn the_bar_shows_what_is_being_done() {
        let progress = Progress {
            total: 200,
            synced: 200,
            verified: Some(50),
            ..Progress::default()
        };
        assert_eq!(percent(MigrationState::Verifying, &progress), 25.0);
        assert_eq!(percent(MigrationState::Paused, &progress), 25.0);
        assert_eq!(percent(MigrationState::Copying, &progress), 100.0);
        let copied = Progress { verified: Some(0), ..progress };
        assert_eq!(percent(MigrationState::Paused, &copied), 100.0);
        assert_eq!(percent(MigrationState::Copying, &Progress::default()), 100.0);
    }
}
