//! The records of Storage DRS: its settings, its rules, and what came of its moves.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, Row, params};
use sterna_api::{Balanced, RuleStrength, RuleWish, StorageDrsSettings};
use sterna_core::DiskId;

use super::{Store, StoreError, cannot, from_json, from_sql, parsed, to_json, to_sql};

/// A rule about disks, as the state knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageRuleRecord {
    /// Its name.
    pub name: String,
    /// What it asks.
    pub wish: RuleWish,
    /// How much it matters.
    pub strength: RuleStrength,
    /// Its disks. There may be fewer than it was made with.
    pub disks: Vec<DiskId>,
    /// When it was made (seconds since 1970).
    pub created: u64,
}

fn read(row: &Row<'_>) -> rusqlite::Result<StorageRuleRecord> {
    Ok(StorageRuleRecord {
        name: row.get("name")?,
        wish: from_json(row, "wish")?,
        strength: from_json(row, "strength")?,
        disks: Vec::new(),
        created: from_sql(row.get("created")?),
    })
}

fn read_all(connection: &Connection) -> rusqlite::Result<Vec<StorageRuleRecord>> {
    let sql = "SELECT * FROM storage_rules ORDER BY name";
    let mut statement = connection.prepare_cached(sql)?;
    let rules = statement.query_map([], read)?;
    let mut rules: Vec<StorageRuleRecord> = rules.collect::<rusqlite::Result<_>>()?;
    let sql = "SELECT disk FROM storage_rule_disks JOIN disks ON disks.id = disk
               WHERE rule = ? ORDER BY disks.name";
    let mut statement = connection.prepare_cached(sql)?;
    for rule in &mut rules {
        let disks = statement.query_map([&rule.name], |row| parsed(row, "disk"))?;
        rule.disks = disks.collect::<rusqlite::Result<_>>()?;
    }
    Ok(rules)
}

fn insert(connection: &Connection, rule: &StorageRuleRecord) -> rusqlite::Result<()> {
    connection.execute(
        "INSERT INTO storage_rules (name, wish, strength, created) VALUES (?, ?, ?, ?)",
        params![
            rule.name,
            to_json(&rule.wish),
            to_json(&rule.strength),
            to_sql(rule.created)
        ],
    )?;
    let sql = "INSERT INTO storage_rule_disks (rule, disk) VALUES (?, ?)";
    rule.disks.iter().try_for_each(|disk| {
        let one = params![rule.name, disk.to_string()];
        connection.prepare_cached(sql)?.execute(one).map(drop)
    })
}

impl Store {
    /// The settings of Storage DRS; the usual ones before anything was changed.
    pub fn storage_drs(&self) -> Result<StorageDrsSettings, StoreError> {
        let settings = self.run(|connection| {
            let sql = "SELECT settings FROM storage_drs";
            let read = |row: &Row<'_>| from_json(row, "settings");
            connection.prepare_cached(sql)?.query_row([], read).optional()
        })?;
        Ok(settings.map_err(cannot("read the settings"))?.unwrap_or_default())
    }

    /// Changes the settings of Storage DRS.
    pub fn set_storage_drs(
        &self,
        settings: &StorageDrsSettings,
    ) -> Result<(), StoreError> {
        let text = to_json(settings);
        self.run(move |connection| {
            let sql = "INSERT INTO storage_drs (id, settings) VALUES (1, ?1)
                       ON CONFLICT (id) DO UPDATE SET settings = ?1";
            connection.execute(sql, [text])
        })?
        .map_err(cannot("change the settings"))?;
        Ok(())
    }

    /// The rules of Storage DRS, by name.
    pub fn storage_rules(&self) -> Result<Vec<StorageRuleRecord>, StoreError> {
        self.run(|connection| read_all(connection))?.map_err(cannot("list the rules"))
    }

    /// Adds a rule.
    pub fn add_storage_rule(&self, rule: StorageRuleRecord) -> Result<(), StoreError> {
        self.transact(move |transaction| {
            insert(transaction, &rule).map_err(cannot("add a rule"))
        })
    }

    /// Forgets a rule.
    pub fn remove_storage_rule(&self, name: &str) -> Result<(), StoreError> {
        let name = name.to_owned();
        self.run(move |connection| {
            connection.execute("DELETE FROM storage_rules WHERE name = ?", [name])
        })?
        .map_err(cannot("remove a rule"))?;
        Ok(())
    }

    /// The migrations that Storage DRS has begun, by number.
    pub fn balanced_moves(&self) -> Result<BTreeMap<u64, Balanced>, StoreError> {
        self.run(|connection| {
            let sql = "SELECT migration, balanced FROM balanced_moves";
            let mut statement = connection.prepare_cached(sql)?;
            let read = |row: &Row<'_>| {
                Ok((from_sql(row.get("migration")?), from_json(row, "balanced")?))
            };
            statement.query_map([], read)?.collect::<rusqlite::Result<_>>()
        })?
        .map_err(cannot("list the moves of Storage DRS"))
    }

    /// A migration is one that Storage DRS has begun; or more is known of it.
    pub fn set_balanced(
        &self,
        migration: u64,
        balanced: &Balanced,
    ) -> Result<(), StoreError> {
        let text = to_json(balanced);
        self.run(move |connection| {
            let sql = "INSERT INTO balanced_moves (migration, balanced) VALUES (?1, ?2)
                       ON CONFLICT (migration) DO UPDATE SET balanced = ?2";
            connection.execute(sql, params![to_sql(migration), text])
        })?
        .map_err(cannot("record a move of Storage DRS"))?;
        Ok(())
    }
}
