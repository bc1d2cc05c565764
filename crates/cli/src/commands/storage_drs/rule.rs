//! `sterna storage-drs rule`: which disks belong together, and which do not.

use clap::{Args, Subcommand};
use sterna_api::{CreateStorageRule, RuleStrength, RuleWish, StorageRule};
use sterna_console::connect::Link;
use sterna_console::output::{Output, prose};
use sterna_console::table::{Cell, Column, Style, Table};

use crate::common::NameArg;
use crate::common::strength::StrengthArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum RuleCommand {
    /// Keep disks together on one datastore
    Together(DisksArgs),
    /// Keep disks apart, each on another datastore
    Apart(DisksArgs),
    /// List the rules
    #[command(visible_alias = "ls")]
    List,
    /// Remove a rule; no disk moves
    #[command(visible_alias = "rm")]
    Remove(NameArg),
}

/// What a rule is about.
#[derive(Debug, Args)]
pub(crate) struct DisksArgs {
    /// The rule's name
    name: String,
    /// The disks, two or more
    #[arg(required = true, num_args = 2.., value_name = "DISK")]
    disks: Vec<String>,
    #[command(flatten)]
    strength: StrengthArgs,
}

impl DisksArgs {
    fn request(self, wish: RuleWish) -> CreateStorageRule {
        let strength = if self.strength.is_must() {
            RuleStrength::Must
        } else {
            RuleStrength::Should
        };
        CreateStorageRule { name: self.name, wish, strength, disks: self.disks }
    }
}

/// Carries out a command.
pub(super) fn run(
    command: RuleCommand,
    link: &Link,
    output: Output,
) -> anyhow::Result<()> {
    let request = match command {
        RuleCommand::Together(disks) => disks.request(RuleWish::Together),
        RuleCommand::Apart(disks) => disks.request(RuleWish::Apart),
        RuleCommand::List => {
            let all = link.ask(async |client| Ok(client.storage_rules().await?))?;
            return output.answer(&all, |all| list(all, output));
        }
        RuleCommand::Remove(NameArg { name }) => {
            let gone =
                link.ask(async |client| Ok(client.remove_storage_rule(&name).await?))?;
            return output
                .answer(&gone, |gone| format!("Rule {} is removed.", gone.name));
        }
    };
    let made =
        link.ask(async |client| Ok(client.create_storage_rule(&request).await?))?;
    output.answer(&made, made_of)
}

/// A rule in a line: `must be together`.
fn wish(rule: &StorageRule) -> String {
    let strength = match rule.strength {
        RuleStrength::Must => "must",
        RuleStrength::Should => "should",
    };
    let wish = match rule.wish {
        RuleWish::Together => "together",
        RuleWish::Apart => "apart",
    };
    format!("{strength} be {wish}")
}

fn made_of(rule: &StorageRule) -> String {
    let head = format!("Rule {}: {} {}.", rule.name, rule.disks.join(", "), wish(rule));
    prose(&match (rule.broken, rule.strength) {
        (false, _) => head,
        (true, RuleStrength::Must) => format!(
            "{head}\nThe rule is violated now: `sterna storage-drs recommend` lists the \
             moves."
        ),
        (true, RuleStrength::Should) => {
            format!(
                "{head}\nThe rule is violated now; Storage DRS moves nothing for this \
                 rule alone."
            )
        }
    })
}

fn list(all: &[StorageRule], output: Output) -> String {
    if all.is_empty() {
        return "No rules yet. Make one: sterna storage-drs rule apart NAME DISK DISK"
            .into();
    }
    let mut table = Table::new(&[
        ("NAME", Column::Flexible),
        ("RULE", Column::Left),
        ("DISKS", Column::Flexible),
        ("STATE", Column::Left),
    ]);
    for rule in all {
        let state = match rule.broken {
            false => Cell::styled("holds", Style::Good),
            true => Cell::styled("broken", Style::Warn),
        };
        table.row(vec![
            rule.name.as_str().into(),
            wish(rule).into(),
            rule.disks.join(", ").into(),
            state,
        ]);
    }
    output.table(&table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_that_does_not_hold_says_what_comes_of_it() {
        let mut rule = StorageRule {
            name: "pair".into(),
            wish: RuleWish::Apart,
            strength: RuleStrength::Must,
            disks: vec!["a".into(), "b".into()],
            broken: false,
            created: 0,
        };
        assert_eq!(made_of(&rule), "Rule pair: a, b must be apart.");
        rule.broken = true;
        assert!(made_of(&rule).contains("storage-drs recommend"));
        rule.strength = RuleStrength::Should;
        assert!(made_of(&rule).contains("moves nothing for this rule alone"));
    }
}
