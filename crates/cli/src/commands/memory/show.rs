//! Memory, in words.

use sterna_api::{
    HostMemory, MemoryTerms, MemoryWorkKind, OutOnTier, VmBalloon, VmMemory,
    VmMemoryState, WakeReport,
};
use sterna_console::format::{bytes, count, moment_ago, rate, span};
use sterna_console::output::Output;
use sterna_console::table::{Column, Pairs, Table};

use super::explain;
use crate::commands::swap;

/// The host, its tiers and its VMs.
pub(super) fn host(host: &HostMemory, output: Output) -> String {
    let mut pairs = Pairs::new();
    pairs.add("memory", bytes(host.total));
    let available = format!(
        "{} (state {}: {} to be kept)",
        bytes(host.available),
        explain::state(host.state),
        bytes(host.reserve)
    );
    pairs.add("available", available);
    pairs.add("automation", explain::automation(host.settings.automation));
    if let Some(error) = host.wake_error {
        let scored = count(host.wakes_scored, "wake");
        let error = format!("half within {:.0} % ({scored})", error * 100.0);
        pairs.add("predictions", error);
    }
    if host.short > 0 {
        let lacks = format!("{}, which no VM here can give", bytes(host.short));
        pairs.add("lacks", lacks);
    }
    let parts =
        [output.pairs(&pairs), swap::list(&host.tiers, output), vms(&host.vms, output)];
    parts.map(|part| part.trim_end().to_owned()).join("\n\n")
}

fn vms(all: &[VmMemory], output: Output) -> String {
    if all.is_empty() {
        return "No VMs yet. Add one: sterna vm add NAME --qmp SOCKET".into();
    }
    let mut table = Table::new(&[
        ("VM", Column::Flexible),
        ("STATE", Column::Left),
        ("SIZE", Column::Right),
        ("RESIDENT", Column::Right),
        ("BALLOON", Column::Right),
        ("OUT", Column::Right),
        ("WOULD WAKE IN", Column::Right),
    ]);
    let amount = |value: Option<u64>| value.map_or("-".to_owned(), bytes);
    for one in all {
        let wakes = one.wake_hot_s.map_or("-".to_owned(), span);
        table.row(vec![
            one.vm.as_str().into(),
            state(one.state).into(),
            amount(one.size).into(),
            amount(one.resident).into(),
            amount(one.balloon.map(|it| it.has)).into(),
            amount(one.out).into(),
            wakes.into(),
        ]);
    }
    output.table(&table)
}

fn state(state: VmMemoryState) -> &'static str {
    match state {
        VmMemoryState::Awake => "awake",
        VmMemoryState::FallingAsleep => "falling asleep",
        VmMemoryState::Asleep => "asleep",
        VmMemoryState::Waking => "waking",
    }
}

/// One VM.
pub(super) fn vm(one: &VmMemory, output: Output) -> String {
    let mut pairs = Pairs::new();
    pairs.add("vm", one.vm.as_str());
    pairs.add("state", state(one.state));
    let sleeps = one.asleep_since.filter(|_| one.state == VmMemoryState::Asleep);
    pairs.maybe("since", sleeps.map(moment_ago));
    pairs.maybe("size", one.size.map(bytes));
    pairs.maybe("resident", one.resident.map(bytes));
    pairs.maybe("out", one.out.map(|out| format!("{}{}", bytes(out), on(&one.out_on))));
    if let (Some(hot), Some(all)) = (one.wake_hot_s, one.wake_all_s) {
        let known = match one.wakes_known {
            0 => "no wake is known yet".to_owned(),
            some => format!("from {}", count(some, "wake")),
        };
        let range = one.wake_range_s.map_or(String::new(), |[from, to]| {
            format!(" ({} to {})", span(from), span(to))
        });
        pairs.add(
            "would wake in",
            format!("{}, all back in {}{range}; {known}", span(hot), span(all)),
        );
    }
    if let Some(work) = &one.work {
        let pace =
            work.bytes_per_s.map_or(String::new(), |it| format!(", {}", rate(it as f64)));
        let what = match work.kind {
            MemoryWorkKind::Sleep => "gone out",
            MemoryWorkKind::Wake => "brought back",
        };
        pairs.add(what, format!("{} of {}{pace}", bytes(work.done), bytes(work.total)));
    }
    pairs.maybe("balloon", one.balloon.as_ref().map(balloon));
    pairs
        .maybe("uses", one.active.map(|it| format!("{:.0} % of its memory", it * 100.0)));
    pairs.maybe("entitled", one.entitled.map(bytes));
    pairs.add("terms", terms(&one.terms));
    if let Some(report) = &one.last_wake {
        pairs.add("last wake", wake(report));
    }
    pairs.maybe("problem", one.problem.clone());
    output.pairs(&pairs)
}

fn balloon(it: &VmBalloon) -> String {
    let has = format!("has {} of {} at most", bytes(it.has), bytes(it.max));
    match it.guest_available {
        Some(available) => format!("{has}; {} available in the guest", bytes(available)),
        None => format!("{has}; the guest does not say what it has available"),
    }
}

fn terms(it: &MemoryTerms) -> String {
    let limit =
        it.limit.map_or("no limit".to_owned(), |it| format!("limit {}", bytes(it)));
    let mut text =
        format!("{} reserved, {limit}, {} shares", bytes(it.reservation), it.shares);
    if let Some(within) = it.wake_within_s {
        text += &format!(", wakes within {}", span(within));
    }
    text
}

fn on(all: &[OutOnTier]) -> String {
    let one = |it: &OutOnTier| {
        let tier = it.tier.as_deref().unwrap_or("other swap");
        format!("{} on {tier} in {}", bytes(it.bytes), count(it.runs, "run"))
    };
    match all {
        [] => String::new(),
        all => format!(" ({})", all.iter().map(one).collect::<Vec<_>>().join(", ")),
    }
}

/// What became of a sleep.
pub(super) fn slept(one: &VmMemory, output: Output) -> String {
    let out = one.out.map_or(String::new(), |out| format!("; {} are out", bytes(out)));
    format!("VM {} is {}{out}.\n{}", one.vm, state(one.state), vm(one, output))
}

/// What became of a wake.
pub(super) fn woke(one: &VmMemory, output: Output) -> String {
    let back = match one.out {
        Some(0) => "; all its memory is back".to_owned(),
        Some(out) => format!("; {} are still out", bytes(out)),
        None => String::new(),
    };
    format!("VM {} is {}{back}.\n{}", one.vm, state(one.state), vm(one, output))
}

fn wake(report: &WakeReport) -> String {
    let mut text =
        format!("{}: {} came back", moment_ago(report.at), bytes(report.bytes));
    if let Some(all) = report.all_s {
        text += &format!(" in {}", span(all));
    }
    if let Some(predicted) = report.predicted_s {
        text += &format!(" ({} predicted)", span(predicted));
    }
    if report.held_ms > 0.0 {
        text += &format!(", VM held for {}", span(report.held_ms / 1e3));
    }
    if report.failed > 0 {
        text += &format!("; {} cannot be read from swap", bytes(report.failed));
    }
    text
}
