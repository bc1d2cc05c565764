//! `sterna drs rule`: which VMs are to be together, apart, or on some hosts.

use clap::{ArgGroup, Subcommand};
use sterna_api::{AddRule, Rule, RuleKind};
use sterna_console::connect::Link;
use sterna_console::output::{Output, prose};
use sterna_console::table::{Cell, Column, Style, Table};

use crate::common::NameArg;
use crate::common::strength::StrengthArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum RuleCommand {
    /// Keep VMs together on one host
    Affinity {
        /// The rule's name
        name: String,
        /// The VMs
        #[arg(required = true, num_args = 2.., value_name = "VM")]
        vms: Vec<String>,
        #[command(flatten)]
        strength: StrengthArgs,
    },
    /// Keep VMs apart, each on another host
    AntiAffinity {
        /// The rule's name
        name: String,
        /// The VMs
        #[arg(required = true, num_args = 2.., value_name = "VM")]
        vms: Vec<String>,
        #[command(flatten)]
        strength: StrengthArgs,
    },
    /// Keep VMs on some hosts, or off some hosts
    #[command(override_usage = "sterna drs rule host <NAME> <VM>... <--on|--not-on> <HOST>...",
        group(ArgGroup::new("where").required(true).args(["on", "not_on"])))]
    Host {
        /// The rule's name
        name: String,
        /// The VMs
        #[arg(required = true, value_name = "VM")]
        vms: Vec<String>,
        /// The allowed hosts
        #[arg(long, num_args = 1.., value_name = "HOST")]
        on: Vec<String>,
        /// The forbidden hosts
        #[arg(long, num_args = 1.., value_name = "HOST")]
        not_on: Vec<String>,
        #[command(flatten)]
        strength: StrengthArgs,
    },
    /// List the rules
    #[command(visible_alias = "ls")]
    List,
    /// Remove a rule
    #[command(visible_alias = "rm")]
    Remove(NameArg),
}

/// Carries out a command.
pub(crate) fn run(
    command: RuleCommand,
    link: &Link,
    output: Output,
) -> anyhow::Result<()> {
    let request = match command {
        RuleCommand::List => {
            let all = link.ask(async |client| Ok(client.rules().await?))?;
            return output.answer(&all, |all| list(all, output));
        }
        RuleCommand::Remove(NameArg { name }) => {
            let gone = link.ask(async |client| Ok(client.remove_rule(&name).await?))?;
            return output
                .answer(&gone, |gone| format!("Rule {} is removed.", gone.name));
        }
        RuleCommand::Affinity { name, vms, strength } => {
            asks(name, RuleKind::Affinity, vms, Vec::new(), strength)
        }
        RuleCommand::AntiAffinity { name, vms, strength } => {
            asks(name, RuleKind::AntiAffinity, vms, Vec::new(), strength)
        }
        RuleCommand::Host { name, vms, on, not_on, strength } => match on.is_empty() {
            false => asks(name, RuleKind::On, vms, on, strength),
            true => asks(name, RuleKind::NotOn, vms, not_on, strength),
        },
    };
    let added = link.ask(async |client| Ok(client.add_rule(&request).await?))?;
    output.answer(&added, told)
}

fn asks(
    name: String,
    kind: RuleKind,
    vms: Vec<String>,
    hosts: Vec<String>,
    strength: StrengthArgs,
) -> AddRule {
    AddRule { name, kind, vms, hosts, must: strength.is_must() }
}

/// What a rule asks: `db, web must be on a`.
fn sentence(rule: &Rule) -> String {
    let verb = if rule.must { "must" } else { "should" };
    let (vms, hosts) = (rule.vms.join(", "), rule.hosts.join(", "));
    match rule.kind {
        RuleKind::Affinity => format!("{vms} {verb} be together"),
        RuleKind::AntiAffinity => format!("{vms} {verb} be apart"),
        RuleKind::On => format!("{vms} {verb} be on {hosts}"),
        RuleKind::NotOn => format!("{vms} {verb} not be on {hosts}"),
    }
}

fn told(rule: &Rule) -> String {
    let now = match rule.holds {
        true => "The rule holds now.",
        false => "The rule is violated now: see `sterna drs recommend`.",
    };
    prose(&format!("Rule {} added: {}.\n{now}", rule.name, sentence(rule)))
}

fn list(all: &[Rule], output: Output) -> String {
    if all.is_empty() {
        return "No rules yet. Make one: sterna drs rule anti-affinity NAME VM VM".into();
    }
    let mut table = Table::new(&[
        ("RULE", Column::Flexible),
        ("HOLDS", Column::Left),
        ("WHAT IT ASKS", Column::Sentence),
    ]);
    for one in all {
        let holds = match (one.holds, one.must) {
            (true, _) => Cell::styled("yes", Style::Good),
            (false, true) => Cell::styled("no", Style::Bad),
            (false, false) => Cell::styled("no", Style::Warn),
        };
        table.row(vec![one.name.as_str().into(), holds, sentence(one).into()]);
    }
    output.table(&table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_sentences() {
        let rule = |kind, must| Rule {
            name: "r".into(),
            kind,
            vms: vec!["db".into(), "web".into()],
            hosts: vec!["a".into()],
            must,
            holds: false,
            created: 0,
        };
        assert_eq!(sentence(&rule(RuleKind::Affinity, true)), "db, web must be together");
        assert_eq!(sentence(&rule(RuleKind::NotOn, false)), "db, web should not be on a");
        let text = list(&[rule(RuleKind::On, true)], Output::new(false));
        assert!(text.contains("no     db, web must be on a"), "{text}");
        assert!(told(&rule(RuleKind::On, true)).contains("drs recommend"));
    }
}
