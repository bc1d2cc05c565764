//! `sterna drs apply`, `moves` and `cancel`: VMs that go to other hosts.

use std::io;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use sterna_api::{
    Client, ClientError, DrsAdvice, ErrorCode, StartTransfer, Transfer, TransferState,
};
use sterna_console::connect::Failure;
use sterna_console::format::{bytes, rate, span};
use sterna_console::output::{Output, WIDTH, note, takes_colour};
use sterna_console::table::{Cell, Column, Pairs, Style, Table, wrap};
use sterna_console::terms::NOTHING;
use sterna_core::Bytes;

use crate::commands::migration::watch::new_bar;

/// How often the daemon is asked: quick enough for the eye, slow enough to be free.
const POLL: Duration = Duration::from_millis(100);

/// How often a line is printed where there is no terminal.
const LINE: Duration = Duration::from_secs(5);

/// How it is carried out.
#[derive(Clone, Debug)]
pub(super) struct How {
    pub(super) qmp: Option<String>,
    pub(super) rate: Option<Bytes>,
    pub(super) detach: bool,
}

/// Carries out what is recommended: for the VM or the place in the list that is named,
/// else all that has been so for long enough.
pub(super) async fn apply(
    client: &Client,
    which: Option<String>,
    how: &How,
    output: Output,
) -> anyhow::Result<()> {
    let mut done = Vec::new();
    match which {
        Some(which) => {
            let vm = named(client, which).await?;
            carry_out(client, vm, how, output, &mut done).await?;
        }
        None => {
            let held = |told: &DrsAdvice| -> Vec<String> {
                let held = told.moves.iter().filter(|one| one.held);
                held.map(|one| one.vm.clone()).collect()
            };
            // Each is asked for anew: what was done before it counts.
            let most = held(&client.drs_advice().await?).len();
            let mut tried: Vec<String> = Vec::new();
            while tried.len() < most {
                let now = held(&client.drs_advice().await?);
                let Some(vm) = now.into_iter().find(|vm| !tried.contains(vm)) else {
                    break;
                };
                tried.push(vm.clone());
                carry_out(client, vm, how, output, &mut done).await?;
            }
        }
    }
    output.answer(&done, |done| match done.is_empty() {
        true => "No VM migrations recommended (`sterna drs recommend` gives the \
                 reasons)."
            .into(),
        false => done.iter().map(|one| outcome(one, output)).collect(),
    })
}

/// The VM that is named, or that a recommendation is for.
async fn named(client: &Client, which: String) -> anyhow::Result<String> {
    let Ok(place) = which.parse::<usize>() else { return Ok(which) };
    let moves = client.drs_advice().await?.moves;
    let found = place.checked_sub(1).and_then(|at| moves.get(at));
    found.map(|one| one.vm.clone()).ok_or_else(|| {
        let message = format!("there is no recommendation {place}");
        let hint = "see `sterna drs recommend`".into();
        Failure { code: ErrorCode::NotFound, message, hint }.into()
    })
}

async fn carry_out(
    client: &Client,
    vm: String,
    how: &How,
    output: Output,
    done: &mut Vec<Transfer>,
) -> anyhow::Result<()> {
    let request =
        StartTransfer { vm, qmp: how.qmp.clone(), rate: how.rate.map(|rate| rate.0) };
    let begun = client.start_transfer(&request).await?;
    if how.detach {
        done.extend(begun);
        return Ok(());
    }
    for one in begun {
        done.push(to_the_end(client, one, output).await?);
    }
    Ok(())
}

/// Follows a transfer until it has ended, stands still, or Ctrl-C.
async fn to_the_end(
    client: &Client,
    transfer: Transfer,
    output: Output,
) -> anyhow::Result<Transfer> {
    let id = transfer.id;
    let bar = (!output.is_json() && takes_colour(&io::stderr())).then(new_bar);
    let end = tokio::select! {
        end = follow(client, transfer, bar.as_ref(), output) => Some(end?),
        _ = tokio::signal::ctrl_c() => None,
    };
    if let Some(bar) = &bar {
        bar.finish_and_clear();
    }
    let Some(end) = end else {
        return Err(Failure {
            code: ErrorCode::Interrupted,
            message: format!("no longer waiting; transfer {id} continues"),
            hint: format!(
                "`sterna drs migration list` shows its progress, `sterna drs migration cancel {id}` \
                 cancels it"
            ),
        }
        .into());
    };
    check(&end)?;
    Ok(end)
}

async fn follow(
    client: &Client,
    mut transfer: Transfer,
    bar: Option<&ProgressBar>,
    output: Output,
) -> anyhow::Result<Transfer> {
    let mut printed: Option<(Instant, TransferState)> = None;
    while !(transfer.state.ended() || transfer.stuck) {
        let due = printed
            .is_none_or(|(at, state)| at.elapsed() >= LINE || state != transfer.state);
        match bar {
            Some(bar) => draw(bar, &transfer),
            None if due && !output.is_json() => {
                printed = Some((Instant::now(), transfer.state));
                note(&line(&transfer));
            }
            None => {}
        }
        tokio::time::sleep(POLL).await;
        match client.transfer(transfer.id).await {
            Ok(next) => transfer = next,
            // The daemon cannot look it up now; the transfer goes on all the same.
            Err(ClientError::Refused(why)) if why.code == ErrorCode::Unavailable => {
                transfer.reason = Some(why.message);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(transfer)
}

/// One that has not moved its VM is a failure.
fn check(end: &Transfer) -> anyhow::Result<()> {
    let Transfer { id, vm, from, .. } = end;
    let why = end.reason.as_ref().map_or(String::new(), |why| format!(": {why}"));
    let failure = |code, message: String, hint: String| {
        Err(anyhow::Error::from(Failure { code, message, hint }))
    };
    match end.state {
        TransferState::Completed => Ok(()),
        TransferState::Cancelled => failure(
            ErrorCode::Cancelled,
            format!("transfer {id} of {vm} was cancelled{why}"),
            format!("{vm} runs on {from}, as before"),
        ),
        TransferState::Lost => failure(
            ErrorCode::Unavailable,
            format!("transfer {id} of {vm} has ended, and {vm} does not run{why}"),
            format!("see both QEMUs: {} and {}", end.source, end.destination),
        ),
        _ => failure(
            ErrorCode::Paused,
            format!("transfer {id} of {vm} cannot continue{why}"),
            "Sterna tries again every second; see `sterna drs migration list`".into(),
        ),
    }
}

fn draw(bar: &ProgressBar, one: &Transfer) {
    bar.set_prefix(format!("{}: {} to {}  ({})", one.vm, one.from, one.to, one.state));
    if let Some(progress) = &one.progress {
        bar.set_length(progress.sent + progress.left);
        bar.set_position(progress.sent);
    }
    bar.set_message(pace(one));
}

/// Bytes, rate, and the time left.
fn pace(one: &Transfer) -> String {
    let Some(progress) = &one.progress else { return String::new() };
    let mut text =
        format!("{} sent, {} left", bytes(progress.sent), bytes(progress.left));
    if progress.rate > 0.0 {
        text.push_str(&format!("  {}", rate(progress.rate)));
    }
    if let Some(eta) = progress.eta_s {
        text.push_str(&format!("  {}", span(eta)));
    }
    text
}

fn line(one: &Transfer) -> String {
    let text = format!("{}: {} to {}, {}  ", one.vm, one.from, one.to, one.state);
    (text + &pace(one)).trim_end().to_owned()
}

/// What came of a transfer, or that it has begun.
fn outcome(one: &Transfer, output: Output) -> String {
    let Transfer { id, vm, from, to, .. } = one;
    let Some(report) = one.report.filter(|_| one.state.ended()) else {
        return format!(
            "Transfer {id} of {vm} from {from} to {to} has begun.\n  sterna drs migration list\n"
        );
    };
    let mut pairs = Pairs::new();
    let held = report.held_ms.map(|held| format!("for {}", span(held / 1e3)));
    pairs.maybe("stood still", held.as_deref());
    let passes = if report.passes == 1 { "pass" } else { "passes" };
    let copied = format!("{} in {} {passes}", bytes(report.sent), report.passes);
    pairs.add("copied", copied);
    pairs.add("reached at", one.destination.as_str());
    pairs.maybe("but", one.reason.as_deref());
    let lines = output.pairs(&pairs);
    let indented: String = lines.lines().map(|line| format!("  {line}\n")).collect();
    format!("{vm} moved from {from} to {to} in {}.\n{indented}", span(report.seconds))
}

/// All transfers.
pub(super) fn list(all: &[Transfer], output: Output) -> String {
    if all.is_empty() {
        return "No VM migrations yet.".into();
    }
    let mut table = Table::new(&[
        ("ID", Column::Right),
        ("VM", Column::Flexible),
        ("FROM", Column::Flexible),
        ("TO", Column::Flexible),
        ("STATE", Column::Left),
        ("STOOD STILL", Column::Right),
        ("BY", Column::Left),
    ]);
    for one in all {
        let held = one.report.and_then(|report| report.held_ms);
        let style = match one.state {
            TransferState::Completed => Style::Good,
            TransferState::Lost => Style::Bad,
            _ if one.stuck => Style::Bad,
            TransferState::Cancelled => Style::Warn,
            _ => Style::Plain,
        };
        table.row(vec![
            one.id.to_string().into(),
            one.vm.as_str().into(),
            one.from.as_str().into(),
            one.to.as_str().into(),
            Cell::styled(one.state.to_string(), style),
            held.map_or(NOTHING.into(), |held| span(held / 1e3)).into(),
            if one.automatic { "itself" } else { "hand" }.into(),
        ]);
    }
    let mut text = output.table(&table);
    let told = all.iter().filter_map(|one| Some((one.id, one.reason.as_ref()?)));
    for (id, why) in told {
        text.push('\n');
        text.push_str(&wrap(&format!("{id}: {why}"), WIDTH - 3).join("\n   "));
        text.push('\n');
    }
    text
}

/// What is said of one that is to be given up.
pub(super) fn cancelling(one: &Transfer) -> String {
    format!(
        "Transfer {} of {} is given up; it runs on {}.\n  sterna drs migration list",
        one.id, one.vm, one.from
    )
}

#[cfg(test)]
mod tests {
    use sterna_api::{TransferProgress, TransferReport};

    use super::*;

    fn sample(state: TransferState) -> Transfer {
        Transfer {
            id: 12,
            vm: "a-machine-with-quite-a-long-name-for-a-machine".into(),
            from: "a-host-with-a-long-name".into(),
            to: "b".into(),
            source: "/run/web.qmp".into(),
            destination: "/run/web-b.qmp".into(),
            why: "the hosts' loads differ".into(),
            priority: 3,
            automatic: true,
            state,
            reason: None,
            stuck: false,
            started: 0,
            ended: None,
            progress: None,
            report: None,
        }
    }

    #[test]
    fn what_came_of_a_transfer_fits_and_says_how_long_the_guest_stood_still() {
        let report = TransferReport {
            seconds: 1.2,
            sent: 66 << 20,
            passes: 3,
            held_ms: Some(41.2),
        };
        let mut one = sample(TransferState::Completed);
        one.report = Some(report);
        let text = outcome(&one, Output::new(false));
        assert!(text.contains("41 ms") && text.contains("3 passes"), "{text}");
        one.reason = Some("the first QEMU, at b.qmp, does not end ".repeat(4));
        let both = list(&[one, sample(TransferState::Lost)], Output::new(false));
        for text in [&text, &both] {
            let lines = text.lines().skip(usize::from(text.starts_with("a-")));
            assert!(lines.clone().all(|it| it.chars().count() <= WIDTH), "{text}");
        }
        assert!(both.contains("lost") && both.contains("itself"), "{both}");
    }

    #[test]
    fn one_that_stays_is_a_failure_that_says_where_it_is() {
        let mut one = sample(TransferState::Cancelled);
        one.reason = Some("the second QEMU does not accept the guest".into());
        let error = check(&one).unwrap_err();
        assert!(error.to_string().contains("does not accept the guest"), "{error}");
        one.state = TransferState::Copying;
        one.progress = Some(TransferProgress { sent: 5, left: 5, ..Default::default() });
        assert!(check(&one).unwrap_err().to_string().contains("cannot continue"));
        assert!(pace(&one).contains("5 B left"), "{}", pace(&one));
    }
}
