//! `sterna drs`: which VMs should be on other hosts, why others stay, and what is done about
//! it; and the pools and rules that DRS goes by.

mod pool;
mod rule;
mod transfers;

use clap::{ArgGroup, Subcommand, ValueEnum};
use sterna_api::{
    Automation, ChangeDrs, DrsAdvice, DrsExplanation, DrsGoal, DrsMove, DrsSettings,
    DrsStatus, Imbalance, JudgedVm,
};
use sterna_console::connect::Link;
use sterna_console::format::{bytes, count, moment_ago, span};
use sterna_console::output::{Output, WIDTH};
use sterna_console::table::{Cell, Column, Pairs, Style, Table, wrap};
use sterna_console::terms::NOTHING;
use sterna_core::{Bytes, Nanos};

use self::pool::PoolCommand;
use self::rule::RuleCommand;
use self::transfers::How;
use crate::commands::host::{self, load, processors};
use crate::common::guard::parse_long;
use crate::common::rate::parse_rate;

#[derive(Debug, Subcommand)]
pub(crate) enum DrsCommand {
    /// Show hosts and VMs, with their demand and what they get
    Status,
    /// Recommend VM migrations, with reasons for VMs that stay; move nothing
    Recommend,
    /// Show for each host why a VM should or should not run there
    Explain {
        /// The VM
        vm: String,
    },
    /// Migrate the recommended VMs, from QEMU to QEMU on this machine
    Apply {
        /// A VM, or its number in the list [default: all VMs that need not wait]
        #[arg(value_name = "VM|N")]
        vm: Option<String>,
        /// The QMP socket of the QEMU that waits for the VM [default: the host's
        /// program starts a QEMU]
        #[arg(long, value_name = "PATH", requires = "vm")]
        qmp: Option<String>,
        /// Limit copying to this many bytes per second (200M) [default: 1.1 GB/s]
        #[arg(long, value_name = "BYTES", value_parser = parse_rate)]
        rate: Option<Bytes>,
        /// Return as soon as the VM migration has begun
        #[arg(long)]
        detach: bool,
    },
    /// VM migrations: running and ended
    #[command(subcommand)]
    Migration(VmMigrationCommand),
    /// Resource pools: reservations, limits and shares of VMs
    #[command(subcommand)]
    Pool(PoolCommand),
    /// Affinity rules for VMs and hosts
    #[command(subcommand)]
    Rule(RuleCommand),
    /// Change the automation and when DRS recommends
    #[command(override_usage = "sterna drs set [OPTIONS]",
        group(ArgGroup::new("what").required(true).multiple(true)
        .args(["automation", "threshold", "round", "hold", "cooldown", "moves"])))]
    Set {
        /// What DRS migrates automatically; initially manual
        #[arg(long, value_enum)]
        automation: Option<DrsAutomation>,
        /// Recommend VM migrations down to this priority, 1 (most urgent) to 5;
        /// initially 3
        #[arg(long, value_name = "PRIORITY",
            value_parser = clap::value_parser!(u8).range(1..=5))]
        threshold: Option<u8>,
        /// Time between two checks, 1s to 1h; initially 60s
        #[arg(long, value_name = "SPAN", value_parser = parse_long)]
        round: Option<Nanos>,
        /// Checks in a row that must find a problem before DRS acts, 1 to 60; initially
        /// 3
        #[arg(long, value_name = "ROUNDS",
            value_parser = clap::value_parser!(u32).range(1..=60))]
        hold: Option<u32>,
        /// Time for which a migrated VM stays on its host; initially 600s
        #[arg(long, value_name = "SPAN", value_parser = parse_long)]
        cooldown: Option<Nanos>,
        /// Recommend at most this many VM migrations at once, 1 to 100; initially 10
        #[arg(long, value_name = "COUNT",
            value_parser = clap::value_parser!(u64).range(1..=100))]
        moves: Option<u64>,
    },
}

#[derive(Clone, Copy, Debug, Subcommand)]
pub(crate) enum VmMigrationCommand {
    /// List running and ended VM migrations
    #[command(visible_alias = "ls")]
    List,
    /// Cancel a running VM migration; the VM stays on its host
    Cancel {
        /// The VM migration's number (see `sterna drs migration list`)
        id: u64,
    },
}

/// What is moved by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DrsAutomation {
    /// Nothing
    Manual,
    /// VM migrations that repair a rule that must hold, or relieve an overloaded host
    Partial,
    /// All recommended VM migrations
    Full,
}

impl From<DrsAutomation> for Automation {
    fn from(arg: DrsAutomation) -> Self {
        match arg {
            DrsAutomation::Manual => Automation::Manual,
            DrsAutomation::Partial => Automation::Partial,
            DrsAutomation::Full => Automation::Full,
        }
    }
}

/// Carries out a command.
pub(crate) fn run(
    command: DrsCommand,
    link: &Link,
    output: Output,
) -> anyhow::Result<()> {
    match command {
        DrsCommand::Pool(command) => pool::run(command, link, output),
        DrsCommand::Rule(command) => rule::run(command, link, output),
        DrsCommand::Migration(command) => migration(command, link, output),
        DrsCommand::Status => {
            let told = link.ask(async |client| Ok(client.drs().await?))?;
            output.answer(&told, |told| status(told, output))
        }
        DrsCommand::Recommend => {
            let told = link.ask(async |client| Ok(client.drs_advice().await?))?;
            let hosts = link.ask(async |client| Ok(client.hosts().await?))?;
            output.answer(&told, |told| match hosts.is_empty() {
                // There is no balance to speak of.
                true => host::list(&hosts, output),
                false => advice(told, output),
            })
        }
        DrsCommand::Explain { vm } => {
            let told = link.ask(async |client| Ok(client.explain_vm(&vm).await?))?;
            output.answer(&told, |told| explanation(told, output))
        }
        DrsCommand::Apply { vm, qmp, rate, detach } => link.ask(async move |client| {
            transfers::apply(client, vm, &How { qmp, rate, detach }, output).await
        }),
        DrsCommand::Set { automation, threshold, round, hold, cooldown, moves } => {
            // What is left of a second is not meant.
            let seconds = |span: Nanos| span.as_secs_f64().round() as u64;
            let (round_s, cooldown_s) = (round.map(seconds), cooldown.map(seconds));
            let automation = automation.map(Into::into);
            let change =
                ChangeDrs { threshold, round_s, hold, cooldown_s, moves, automation };
            let set = link.ask(async |client| Ok(client.change_drs(&change).await?))?;
            output.answer(&set, |set| paragraph(&settings(set)))
        }
    }
}

fn migration(
    command: VmMigrationCommand,
    link: &Link,
    output: Output,
) -> anyhow::Result<()> {
    match command {
        VmMigrationCommand::List => {
            let all = link.ask(async |client| Ok(client.transfers().await?))?;
            output.answer(&all, |all| transfers::list(all, output))
        }
        VmMigrationCommand::Cancel { id } => {
            let one = link.ask(async |client| Ok(client.cancel_transfer(id).await?))?;
            output.answer(&one, transfers::cancelling)
        }
    }
}

/// `Threshold 3; a look every 60 s, ...`.
fn settings(set: &DrsSettings) -> String {
    let does = match set.automation {
        Automation::Manual => "DRS migrates nothing automatically",
        Automation::Partial => {
            "DRS automatically repairs rules that must hold, and relieves hosts"
        }
        Automation::Full => "DRS migrates recommended VMs automatically",
    };
    format!(
        "Automation {}: {does}. Threshold {}; a check every {}, held for {}; at most {} \
         at once; a migrated VM stays for {}.",
        set.automation,
        set.threshold,
        span(set.round_s as f64),
        count(u64::from(set.hold), "round"),
        count(set.moves, "move"),
        span(set.cooldown_s as f64)
    )
}

/// `deviation 0.21 (CPU 0.28, memory 0.11), coefficient of variation 0.34`.
fn differs(it: &Imbalance) -> String {
    format!(
        "deviation {:.2} (CPU {:.2}, memory {:.2}), coefficient of variation {:.2}",
        it.deviation, it.of.cpu, it.of.memory, it.variation
    )
}

/// A paragraph as wide as everything.
fn paragraph(text: &str) -> String {
    wrap(text, WIDTH).join("\n") + "\n"
}

fn status(told: &DrsStatus, output: Output) -> String {
    let mut text = host::list(&told.hosts, output);
    if told.hosts.is_empty() {
        return text;
    }
    text.push_str(&paragraph(&format!("Loads: {}.", differs(&told.imbalance))));
    text.push_str(&paragraph(&settings(&told.settings)));
    if !told.vms.is_empty() {
        text.push('\n');
        text.push_str(&machines(&told.vms, output));
    }
    let list = |head: &str, names: &[String]| match names.is_empty() {
        true => String::new(),
        false => format!("\n{}", paragraph(&format!("{head}: {}.", names.join(", ")))),
    };
    text.push_str(&list("Violated rules", &told.broken));
    text.push_str(&list("On no known host (`sterna host assign`)", &told.elsewhere));
    let looked = told.looked.map_or("not yet".into(), moment_ago);
    text.push_str(&format!("\nLast check: {looked}.\n"));
    text
}

fn machines(all: &[JudgedVm], output: Output) -> String {
    let mut table = Table::new(&[
        ("VM", Column::Flexible),
        ("HOST", Column::Flexible),
        ("POOL", Column::Flexible),
        ("CPU", Column::Right),
        ("GETS", Column::Right),
        ("MEMORY", Column::Right),
        ("GETS", Column::Right),
        ("SCORE", Column::Right),
    ]);
    for one in all {
        let score = match one.score {
            None => Cell::from(NOTHING),
            Some(score) => {
                let style = match score {
                    80.0.. => Style::Good,
                    40.0.. => Style::Warn,
                    _ => Style::Bad,
                };
                Cell::styled(format!("{score:.0}"), style)
            }
        };
        let memory = |amount: f64| bytes(amount.max(0.0) as u64);
        table.row(vec![
            one.vm.as_str().into(),
            one.host.as_str().into(),
            one.pool.as_deref().unwrap_or(NOTHING).into(),
            processors(one.demand.cpu).into(),
            processors(one.entitled.cpu).into(),
            memory(one.demand.memory).into(),
            memory(one.entitled.memory).into(),
            score,
        ]);
    }
    output.table(&table)
}

fn advice(told: &DrsAdvice, output: Output) -> String {
    let mut text = paragraph(&format!("Loads: {}.", differs(&told.imbalance)));
    if told.moves.is_empty() {
        text.push_str("\nNo VM migrations recommended.\n");
    }
    for (at, one) in told.moves.iter().enumerate() {
        text.push_str(&recommended(at + 1, one));
    }
    if told.moves.iter().any(|one| !one.held) {
        text.push_str(&format!(
            "\n{}",
            paragraph(&format!(
                "Seen in {} of {} that a move needs; a move marked \"wait\" may still \
                 disappear.",
                told.rounds,
                count(u64::from(told.settings.hold), "round")
            ))
        ));
    }
    if !told.staying.is_empty() {
        text.push_str("\nThese VMs stay although there is a problem:\n");
        let mut table = Table::new(&[
            ("VM", Column::Flexible),
            ("HOST", Column::Flexible),
            ("WHY", Column::Sentence),
        ]);
        for one in &told.staying {
            table.row(vec![
                one.vm.as_str().into(),
                one.host.as_str().into(),
                one.reason.as_str().into(),
            ]);
        }
        text.push_str(&output.table(&table));
    }
    text
}

fn recommended(at: usize, one: &DrsMove) -> String {
    let back = one.back.as_ref().map(|back| format!(", and {back} back"));
    let wait = if one.held { "" } else { " (wait)" };
    let head = format!(
        "{at}. {} from {} to {}{}: {}; priority {}{wait}",
        one.vm,
        one.from,
        one.to,
        back.unwrap_or_default(),
        one.reason,
        one.priority
    );
    let change = |name: &str, [before, after]: &[sterna_api::Amounts; 2]| {
        let ([cpu, memory], [then, rest]) = (load(*before), load(*after));
        format!("{name}: CPU {cpu} to {then}, memory {memory} to {rest}")
    };
    let [before, after] = &one.imbalance;
    let worth = format!(
        "deviation {:.3} to {:.3}; copies {} in about {}; brings {:.1}, costs {:.1}, risks {:.1}",
        before.deviation,
        after.deviation,
        bytes(one.bytes),
        span(one.worth.seconds),
        one.worth.benefit,
        one.worth.cost,
        one.worth.risk
    );
    let mut lines = wrap(&change(&one.from, &one.source), WIDTH - 3);
    lines.extend(wrap(&change(&one.to, &one.destination), WIDTH - 3));
    lines.extend(wrap(&worth, WIDTH - 3));
    lines.push(format!("sterna drs apply {}", one.vm));
    lines.extend(wrap(&by_hand(one), WIDTH - 3));
    let indented: String = lines.iter().map(|line| format!("   {line}\n")).collect();
    format!("\n{}\n{indented}", wrap(&head, WIDTH).join("\n"))
}

/// What to say where somebody else moves it.
fn by_hand(one: &DrsMove) -> String {
    let back = one.back.iter();
    let back = back.map(|back| format!(", sterna host assign {} {back}", one.from));
    let back: String = back.collect();
    format!(
        "(or migrate the VM yourself, then: sterna host assign {} {}{back})",
        one.to, one.vm
    )
}

fn explanation(told: &DrsExplanation, output: Output) -> String {
    let vm = &told.vm;
    let mut pairs = Pairs::new();
    pairs.add("VM", vm.vm.as_str());
    pairs.add("host", vm.host.as_str());
    pairs.maybe("pool", vm.pool.as_deref());
    let both = |it: sterna_api::Amounts| {
        format!("{} processors, {}", processors(it.cpu), bytes(it.memory.max(0.0) as u64))
    };
    pairs.add("has", both(vm.size));
    pairs.add("asks for", both(vm.demand));
    pairs.add("entitled to", both(vm.entitled));
    let score = vm.score.map_or("unknown yet".into(), |score| format!("{score:.0}"));
    pairs.add("score", score);
    pairs.maybe("stays", vm.stays.as_deref());
    pairs.add("at issue", at_issue(told.goal));
    let mut text = output.pairs(&pairs);
    if let Some(one) = &told.recommended {
        text.push_str(&recommended(1, one));
    }
    text.push('\n');
    for one in &told.hosts {
        let line = wrap(&format!("{}: {}", one.host, one.reason), WIDTH - 2);
        text.push_str(&line.join("\n  "));
        text.push('\n');
    }
    text
}

fn at_issue(goal: DrsGoal) -> &'static str {
    match goal {
        DrsGoal::Must => "a rule that must hold is violated",
        DrsGoal::Memory => "the host has too little memory for its VMs",
        DrsGoal::Cpu => "the host has too little processor time for its VMs",
        DrsGoal::Should => "a rule that should hold is violated",
        DrsGoal::Even => "the hosts' loads differ",
    }
}

#[cfg(test)]
mod tests {
    use sterna_api::{Amounts, MoveWorth, StayingVm};

    use super::*;

    #[test]
    fn recommendations_fit_on_a_screen() {
        let amounts = |cpu, memory| Amounts { cpu, memory };
        let name = "a-machine-with-quite-a-long-name-for-a-machine";
        let one = DrsMove {
            vm: name.into(),
            from: "a".into(),
            to: "b".into(),
            back: Some("web".into()),
            goal: DrsGoal::Even,
            reason: "the hosts' loads differ".into(),
            priority: 3,
            held: false,
            bytes: 8 << 30,
            worth: MoveWorth { benefit: 60.25, cost: 1.0, risk: 12.0, seconds: 7.8 },
            source: [amounts(0.75, 0.4), amounts(0.5, 0.3)],
            destination: [amounts(0.1, 0.1), amounts(0.35, 0.2)],
            imbalance: [Imbalance::default(); 2],
        };
        let told = DrsAdvice {
            settings: DrsSettings::default(),
            imbalance: Imbalance { deviation: 0.234, ..Imbalance::default() },
            rounds: 1,
            moves: vec![one],
            staying: vec![StayingVm {
                vm: "db".into(),
                host: "a".into(),
                goal: DrsGoal::Even,
                to: None,
                reason: "its load is too small to matter".into(),
            }],
        };
        let text = advice(&told, Output::new(false));
        for part in [
            "deviation 0.23",
            "and web back: the hosts'",
            "priority 3 (wait)",
            "a: CPU 75% to 50%, memory 40% to 30%",
            "8.00 GiB in about 7.8 s",
            "brings 60.2, costs 1.0",
            "sterna host assign a web",
            "1 of 3 rounds",
            "its load is too small to matter",
        ] {
            let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(flat.contains(part), "{part} in:\n{text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
    }
}
