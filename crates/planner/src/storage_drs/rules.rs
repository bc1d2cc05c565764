//! Rules about disks: made, shown and removed.
//!
//! A rule that cannot hold together with the others, wherever the disks are, is refused.
//! One that only does not hold now is not: to mend it is what it is for.

use std::collections::HashMap;

use sterna_api::{
    CreateStorageRule, Error, ErrorCode, Result, RuleStrength, RuleWish, StorageRule,
};
use sterna_core::DiskId;
use sterna_os::{clock, lock};
use sterna_placement::storage::{Rule, Strength, Wish, conflict};
use sterna_state::{DiskRecord, StorageRuleRecord};
use sterna_storage::datastores::check_name;

use crate::Planner;

/// Fewer disks are neither together nor apart.
const DISKS_LEAST: usize = 2;

impl Planner {
    /// The rules, by name.
    pub fn list_storage_rules(&self) -> Result<Vec<StorageRule>> {
        let disks = self.storage.store.disks()?;
        let rules = self.storage.store.storage_rules()?;
        Ok(rules.iter().map(|rule| view(rule, &disks)).collect())
    }

    /// Makes a rule.
    pub fn create_storage_rule(
        &self,
        request: &CreateStorageRule,
    ) -> Result<StorageRule> {
        let CreateStorageRule { name, wish, strength, disks: asked } = request;
        check_name("rule", name)?;
        let _turn = lock(&self.balancer.turn);
        let mut disks = Vec::new();
        for name in asked {
            let disk = self.storage.disk_record(name)?.id;
            if disks.contains(&disk) {
                let message = format!("disk {name} is in the rule twice");
                return Err(Error::invalid(message).hint("name each disk once"));
            }
            disks.push(disk);
        }
        if disks.len() < DISKS_LEAST {
            let message = format!("a rule is about {DISKS_LEAST} disks or more");
            return Err(Error::invalid(message).hint("name another disk"));
        }
        let mut rules = self.storage.store.storage_rules()?;
        if rules.iter().any(|rule| rule.name == *name) {
            let message = format!("there is a rule {name} already");
            return Err(Error::new(ErrorCode::Exists, message)
                .hint("choose another name, or see `sterna storage-drs rule list`"));
        }
        let (name, created) = (name.clone(), clock::now());
        let record =
            StorageRuleRecord { name, wish: *wish, strength: *strength, disks, created };
        rules.push(record.clone());
        let disks = self.storage.store.disks()?;
        check_conflict(&rules, &disks)?;
        self.storage.store.add_storage_rule(record.clone())?;
        tracing::info!(rule = record.name, "rule made");
        Ok(view(&record, &disks))
    }

    /// Removes a rule.
    pub fn remove_storage_rule(&self, name: &str) -> Result<StorageRule> {
        let _turn = lock(&self.balancer.turn);
        let all = self.list_storage_rules()?;
        let gone = all.into_iter().find(|rule| rule.name == name);
        let gone = gone.ok_or_else(|| {
            Error::not_found("rule", name).hint("see `sterna storage-drs rule list`")
        })?;
        self.storage.store.remove_storage_rule(name)?;
        tracing::info!(rule = name, "rule removed");
        Ok(gone)
    }
}

/// Rules in `core`'s terms, of disks that go by their places in a list.
pub(super) fn rules_of(records: &[StorageRuleRecord], disks: &[DiskRecord]) -> Vec<Rule> {
    let at: HashMap<DiskId, usize> =
        disks.iter().enumerate().map(|(at, disk)| (disk.id, at)).collect();
    let rule = |record: &StorageRuleRecord| Rule {
        wish: match record.wish {
            RuleWish::Together => Wish::Together,
            RuleWish::Apart => Wish::Apart,
        },
        strength: match record.strength {
            RuleStrength::Must => Strength::Must,
            RuleStrength::Should => Strength::Should,
        },
        disks: record.disks.iter().filter_map(|disk| at.get(disk).copied()).collect(),
    };
    records.iter().map(rule).collect()
}

/// Where each disk is, by numbers that stand for names.
fn places(disks: &[DiskRecord]) -> Vec<usize> {
    let mut known: HashMap<&str, usize> = HashMap::new();
    let place = |disk| {
        let next = known.len();
        *known.entry(disk).or_insert(next)
    };
    disks.iter().map(|disk| disk.datastore.as_str()).map(place).collect()
}

fn view(record: &StorageRuleRecord, disks: &[DiskRecord]) -> StorageRule {
    let rule = &rules_of(std::slice::from_ref(record), disks)[0];
    StorageRule {
        name: record.name.clone(),
        wish: record.wish,
        strength: record.strength,
        disks: rule.disks.iter().map(|at| disks[*at].name.clone()).collect(),
        broken: rule.is_broken(&places(disks)),
        created: record.created,
    }
}

/// Refuses rules that cannot all hold.
fn check_conflict(records: &[StorageRuleRecord], disks: &[DiskRecord]) -> Result<()> {
    let Some(found) = conflict(&rules_of(records, disks)) else { return Ok(()) };
    let [one, other] = found.disks.map(|disk| &disks[disk].name);
    let (apart, together) = (&records[found.apart].name, &records[found.together].name);
    let message = format!(
        "{one} and {other} cannot be apart, as rule {apart} wants, and together, as rule \
         {together} does"
    );
    let hint = "remove one of the two rules first: `sterna storage-drs rule remove NAME`";
    Err(Error::invalid(message).hint(hint))
}
