//! A VM's memory explained, in words.

use sterna_api::{
    HostMemoryState, MemoryAutomation, MemoryExplanation, MemoryMeans, MemoryMeansKind,
};
use sterna_console::format::{bytes, count, span};
use sterna_console::output::Output;
use sterna_console::table::Pairs;

/// Why a VM has the memory that it has.
pub(super) fn explanation(it: &MemoryExplanation, output: Output) -> String {
    let mut pairs = Pairs::new();
    pairs.add("host", host(it));
    pairs.add("vm", it.vm.as_str());
    let resident = format!("{} of {}", bytes(it.resident), bytes(it.size));
    pairs.add("resident", resident);
    pairs.add("uses", uses(it));
    pairs.add("entitled", entitled(it));
    for one in &it.means {
        pairs.add(means_word(one.means), means(one));
    }
    format!("{}\n\n{}", output.pairs(&pairs).trim_end(), it.says)
}

fn host(it: &MemoryExplanation) -> String {
    let has =
        format!("{} available, {} to be kept", bytes(it.available), bytes(it.reserve));
    match it.lacks {
        0 => format!("{}: {has}", state(it.state)),
        lacks => format!("{}: {has}; lacks {}", state(it.state), bytes(lacks)),
    }
}

fn uses(it: &MemoryExplanation) -> String {
    let part = format!("{:.0} % of its memory", it.active * 100.0);
    let price = format!("a share of it counts as {:.2}", it.price);
    match it.idle_s {
        idle if idle >= 1.0 => format!("{part}; idle for {}; {price}", span(idle)),
        _ => format!("{part}; {price}"),
    }
}

fn entitled(it: &MemoryExplanation) -> String {
    let terms = &it.terms;
    let limit =
        terms.limit.map_or("no limit".to_owned(), |it| format!("limit {}", bytes(it)));
    format!(
        "{} of {} ({} of {}, {} reserved, {limit})",
        bytes(it.entitled),
        bytes(it.wants),
        terms.shares,
        count(it.all_shares, "share"),
        bytes(terms.reservation),
    )
}

fn means(one: &MemoryMeans) -> String {
    let can = one.can_give.map(|it| format!("can give {}", bytes(it)));
    let gives = (one.gives > 0).then(|| format!("gives {}", bytes(one.gives)));
    let amounts: Vec<String> = can.into_iter().chain(gives).collect();
    match amounts.as_slice() {
        [] => one.cost.clone(),
        amounts => format!("{}; costs {}", amounts.join(", "), one.cost),
    }
}

fn means_word(means: MemoryMeansKind) -> &'static str {
    match means {
        MemoryMeansKind::FreePages => "free pages",
        MemoryMeansKind::Balloon => "balloon",
        MemoryMeansKind::Swap => "swap",
        MemoryMeansKind::Migration => "migration",
    }
}

/// How short of memory a host is.
pub(super) fn state(state: HostMemoryState) -> &'static str {
    match state {
        HostMemoryState::High => "high",
        HostMemoryState::Soft => "soft",
        HostMemoryState::Hard => "hard",
        HostMemoryState::Low => "low",
    }
}

/// What Sterna does by itself.
pub(super) fn automation(automation: MemoryAutomation) -> &'static str {
    match automation {
        MemoryAutomation::Manual => "manual",
        MemoryAutomation::Partial => "partial",
        MemoryAutomation::Full => "full",
    }
}
