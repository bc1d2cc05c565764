//! Rules, as the API's requests see them.

use std::collections::BTreeSet;

use sterna_api::{AddRule, Error, Result, Rule, RuleKind, Warning};
use sterna_os::clock;
use sterna_placement::hosts::{self, Clash, Kind, clash};
use sterna_state::{Entry, Registry, RuleRecord};
use sterna_storage::datastores::check_name;

use super::scene::at;
use crate::Planner;

/// Rules at most. Each is looked at for each move of its VMs.
const RULES_MAX: usize = 1024;

impl Planner {
    /// All rules, by name.
    pub fn list_rules(&self) -> Result<Vec<Rule>> {
        let registry = self.drs.ledger.read()?;
        Ok(registry.rules.iter().map(|rule| view_rule(&registry, rule)).collect())
    }

    /// The rules that must hold and do not.
    pub fn broken_rules(&self) -> Result<Vec<Warning>> {
        let rules = self.list_rules()?.into_iter();
        let warning = |rule: Rule| Warning {
            about: format!("rule {}", rule.name),
            message: "the rule must hold, but is violated".into(),
            hint: "see `sterna drs recommend`".into(),
        };
        Ok(rules.filter(|rule| rule.must && !rule.holds).map(warning).collect())
    }

    /// Adds a rule.
    pub fn add_rule(&self, request: &AddRule) -> Result<Rule> {
        check_name("rule", &request.name)?;
        let unique = |names: &[String]| -> Vec<String> {
            names.iter().cloned().collect::<BTreeSet<_>>().into_iter().collect()
        };
        let record = RuleRecord {
            name: request.name.clone(),
            kind: request.kind,
            vms: unique(&request.vms),
            hosts: unique(&request.hosts),
            must: request.must,
            created: clock::now(),
        };
        check_shape(&record)?;
        for vm in &record.vms {
            self.machines.vm_record(vm)?;
        }
        let vms = self.vm_names()?;
        let registry = self.drs.ledger.change(&mut |registry| {
            if registry.rules.iter().any(|rule| rule.name == record.name) {
                let message = format!("there is a rule {} already", record.name);
                let hint = "choose another name, or see `sterna drs rule list`";
                return Err(Error::new(sterna_api::ErrorCode::Exists, message).hint(hint));
            }
            if registry.rules.len() >= RULES_MAX {
                let message = format!("there are {RULES_MAX} rules already");
                return Err(Error::invalid(message).hint("remove one first"));
            }
            let known =
                |host: &&String| registry.hosts.iter().any(|one| one.name == **host);
            if let Some(host) = record.hosts.iter().find(|host| !known(host)) {
                return Err(Error::not_found("host", host));
            }
            let mut next = registry.clone();
            next.rules.push(record.clone());
            check_rules(&next, &vms)?;
            Ok(vec![Entry::AddRule(record.clone())])
        })?;
        tracing::info!(rule = record.name, "rule added");
        Ok(view_rule(&registry, &record))
    }

    /// Removes a rule.
    pub fn remove_rule(&self, name: &str) -> Result<Rule> {
        let mut gone = None;
        self.drs.ledger.change(&mut |registry| {
            let rule = registry.rules.iter().find(|rule| rule.name == name);
            let rule = rule.ok_or_else(|| Error::not_found("rule", name))?;
            gone = Some(view_rule(registry, rule));
            Ok(vec![Entry::RemoveRule(name.to_owned())])
        })?;
        tracing::info!(rule = name, "rule removed");
        gone.ok_or_else(|| Error::not_found("rule", name))
    }
}

/// Refuses a rule that says nothing.
fn check_shape(rule: &RuleRecord) -> Result<()> {
    let about_hosts = matches!(rule.kind, RuleKind::On | RuleKind::NotOn);
    let (vms, hosts) = (rule.vms.len(), rule.hosts.len());
    if about_hosts && (vms == 0 || hosts == 0) {
        let message = "a rule about hosts needs at least one VM and one host";
        return Err(Error::invalid(message).hint("see `sterna drs rule host --help`"));
    }
    if !about_hosts && vms < 2 {
        let message = "an affinity rule needs at least two VMs";
        return Err(Error::invalid(message).hint("give another VM"));
    }
    if !about_hosts && hosts > 0 {
        let message = format!("a rule of kind {} has no hosts", rule.kind);
        return Err(Error::invalid(message).hint("leave `hosts` out"));
    }
    Ok(())
}

/// Refuses rules that cannot all hold.
pub(super) fn check_rules(registry: &Registry, vms: &[String]) -> Result<()> {
    let names: Vec<String> =
        registry.hosts.iter().map(|host| host.name.clone()).collect();
    let told: Vec<hosts::Rule> =
        registry.rules.iter().map(|rule| numbered(rule, vms, &names)).collect();
    let Some(clash) = clash(&told, vms.len(), names.len()) else { return Ok(()) };
    let message = match clash {
        Clash::Apart { rule, vms: [one, other] } => format!(
            "other rules keep {} and {} together, and rule {} would keep them apart",
            vms[one], vms[other], registry.rules[rule].name
        ),
        Clash::TooMany { rule, hosts } => format!(
            "rule {} keeps {} VMs apart, and there are {hosts} hosts for them",
            registry.rules[rule].name,
            told[rule].vms.len()
        ),
        Clash::Nowhere { vm } => format!(
            "no host would be allowed for {} and the VMs that must be with it",
            vms[vm]
        ),
    };
    Err(Error::invalid(message).hint(
        "see `sterna drs rule list` and `sterna host list`; remove the conflicting rule \
         first",
    ))
}

fn numbered(rule: &RuleRecord, vms: &[String], hosts: &[String]) -> hosts::Rule {
    let those = |names: &[String], all: &[String]| -> Vec<usize> {
        names.iter().filter_map(|name| at(all, name)).collect()
    };
    let on = || those(&rule.hosts, hosts);
    let kind = match rule.kind {
        RuleKind::Affinity => Kind::Affinity,
        RuleKind::AntiAffinity => Kind::AntiAffinity,
        RuleKind::On => Kind::On(on()),
        RuleKind::NotOn => Kind::NotOn(on()),
    };
    hosts::Rule { kind, vms: those(&rule.vms, vms), must: rule.must }
}

/// Whether a rule holds, as far as it is known where its VMs are.
pub(super) fn holds(registry: &Registry, rule: &RuleRecord) -> bool {
    let assignments = registry
        .assignments
        .iter()
        .filter(|assignment| rule.vms.contains(&assignment.vm));
    let on: Vec<&String> =
        assignments.filter_map(|assignment| assignment.host.as_ref()).collect();
    let different = on.iter().collect::<BTreeSet<_>>().len();
    match rule.kind {
        RuleKind::Affinity => different <= 1,
        RuleKind::AntiAffinity => different == on.len(),
        RuleKind::On => on.iter().all(|host| rule.hosts.contains(host)),
        RuleKind::NotOn => !on.iter().any(|host| rule.hosts.contains(host)),
    }
}

fn view_rule(registry: &Registry, rule: &RuleRecord) -> Rule {
    Rule {
        name: rule.name.clone(),
        kind: rule.kind,
        vms: rule.vms.clone(),
        hosts: rule.hosts.clone(),
        must: rule.must,
        holds: holds(registry, rule),
        created: rule.created,
    }
}
