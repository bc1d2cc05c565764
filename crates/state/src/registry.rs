//! Hosts, pools, rules, which VM is where, and which are on their way: the registry.
//!
//! It is read as a whole, as of one moment, and changed by entries, all of which are made,
//! or none.

use std::path::PathBuf;

use rusqlite::{Connection, Row, params};
use serde::{Deserialize, Serialize};
use sterna_api::{DrsSettings, PoolTerms, RuleKind};
use sterna_core::Nanos;
use sterna_placement::hosts::{CooldownSettings, VmHistory};

use super::transfers::{self, TransferRecord};
use super::{Reach, Store, StoreError, cannot, from_json, from_sql, to_json, to_sql};

/// All of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Registry {
    /// By name.
    pub hosts: Vec<HostRecord>,
    /// As they were made: each comes after the one that it is in.
    pub pools: Vec<PoolRecord>,
    /// By the name of the VM.
    pub assignments: Vec<SeatRecord>,
    /// By name.
    pub rules: Vec<RuleRecord>,
    /// Those that have not ended, oldest first.
    pub transfers: Vec<TransferRecord>,
    /// How DRS is set.
    pub settings: DrsSettings,
}

impl Registry {
    /// For how long VMs stay on their hosts, by the settings.
    pub fn cooldown_settings(&self) -> CooldownSettings {
        let cooldown = Nanos::from_secs(self.settings.cooldown_s);
        let usual = CooldownSettings::default();
        CooldownSettings {
            rounds: self.settings.hold,
            cooldown,
            longest: usual.longest.max(cooldown),
            foreign: usual.foreign,
        }
    }
}

/// A host.
#[derive(Clone, Debug, PartialEq)]
pub struct HostRecord {
    /// Its name.
    pub name: String,
    /// Processors.
    pub cpu: f64,
    /// Bytes.
    pub memory: u64,
    /// The program that starts VMs there.
    pub program: Option<PathBuf>,
    /// When it was added (seconds since 1970).
    pub added: u64,
}

/// A pool.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolRecord {
    /// Its name.
    pub name: String,
    /// The pool that it is in, if it is in one.
    pub parent: Option<String>,
    /// Its terms for processors.
    pub cpu: PoolTerms,
    /// Its terms for memory.
    pub memory: PoolTerms,
    /// When it was created (seconds since 1970).
    pub created: u64,
}

/// Where a VM is, and which pool it is in.
#[derive(Clone, Debug, PartialEq)]
pub struct SeatRecord {
    /// The VM.
    pub vm: String,
    /// The host, if that is known.
    pub host: Option<String>,
    /// The pool, if it is in one.
    pub pool: Option<String>,
    /// Its moves, once it was seen on a host.
    pub history: Option<History>,
}

/// What is known of a VM's moves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    /// The host where it was last.
    pub host: String,
    /// When it was moved as recommended (seconds since 1970).
    pub moved: Option<u64>,
    /// How many times in a row.
    pub times: u32,
    /// When somebody else moved it.
    pub foreign: Option<u64>,
    /// When a move of it failed.
    #[serde(default)]
    pub failed: Option<u64>,
}

impl History {
    /// What `core` knows of a VM's moves, as it is kept.
    pub fn of(known: &VmHistory) -> History {
        let seconds = |at: Nanos| at.0 / 1_000_000_000;
        History {
            host: known.host.clone(),
            moved: known.moved.map(seconds),
            times: known.times,
            foreign: known.foreign.map(seconds),
            failed: known.failed.map(seconds),
        }
    }

    /// What is kept of a VM's moves, as `core` is told of it.
    pub fn known(&self) -> VmHistory {
        VmHistory {
            host: self.host.clone(),
            moved: self.moved.map(Nanos::from_secs),
            times: self.times,
            foreign: self.foreign.map(Nanos::from_secs),
            failed: self.failed.map(Nanos::from_secs),
        }
    }
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleRecord {
    /// Its name.
    pub name: String,
    /// What it asks for.
    pub kind: RuleKind,
    /// The VMs that it is about.
    pub vms: Vec<String>,
    /// The hosts, for a kind that names some.
    pub hosts: Vec<String>,
    /// Whether it must hold; else it should.
    pub must: bool,
    /// When it was made (seconds since 1970).
    pub created: u64,
}

/// A change.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// A new host, or what is said of one that there is.
    Host(HostRecord),
    /// The host of this name goes.
    RemoveHost(String),
    /// A new pool, or other terms of one that there is.
    Pool(PoolRecord),
    /// The pool of this name goes.
    RemovePool(String),
    /// Where a VM is from now on.
    Assignment(SeatRecord),
    /// How a VM is reached from now on.
    Reach {
        /// The VM.
        vm: String,
        /// How it is reached.
        reach: Reach,
    },
    /// A new transfer, or how far one is.
    Transfer(TransferRecord),
    /// A new rule.
    AddRule(RuleRecord),
    /// The rule of this name goes.
    RemoveRule(String),
    /// DRS is set so from now on.
    Settings(DrsSettings),
}

fn host(row: &Row<'_>) -> rusqlite::Result<HostRecord> {
    Ok(HostRecord {
        name: row.get("name")?,
        cpu: row.get("cpu")?,
        memory: from_sql(row.get("memory")?),
        program: row.get::<_, Option<String>>("program")?.map(PathBuf::from),
        added: from_sql(row.get("added")?),
    })
}

fn pool(row: &Row<'_>) -> rusqlite::Result<PoolRecord> {
    Ok(PoolRecord {
        name: row.get("name")?,
        parent: row.get("parent")?,
        cpu: from_json(row, "cpu")?,
        memory: from_json(row, "memory")?,
        created: from_sql(row.get("created")?),
    })
}

fn assignment(row: &Row<'_>) -> rusqlite::Result<SeatRecord> {
    Ok(SeatRecord {
        vm: row.get("vm")?,
        host: row.get("host")?,
        pool: row.get("pool")?,
        history: from_json(row, "trail")?,
    })
}

fn rule(row: &Row<'_>) -> rusqlite::Result<RuleRecord> {
    Ok(RuleRecord {
        name: row.get("name")?,
        kind: from_json(row, "kind")?,
        vms: Vec::new(),
        hosts: from_json(row, "hosts")?,
        must: row.get("must")?,
        created: from_sql(row.get("created")?),
    })
}

fn all<T>(
    connection: &Connection,
    sql: &str,
    read: fn(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    connection.prepare_cached(sql)?.query_map([], read)?.collect()
}

fn read(connection: &Connection) -> rusqlite::Result<Registry> {
    let mut rules = all(connection, "SELECT * FROM rules ORDER BY name", rule)?;
    let members: Vec<(String, String)> =
        all(connection, "SELECT rule, vm FROM rule_vms ORDER BY vm", |row| {
            Ok((row.get("rule")?, row.get("vm")?))
        })?;
    for (of, vm) in members {
        if let Some(rule) = rules.iter_mut().find(|rule| rule.name == of) {
            rule.vms.push(vm);
        }
    }
    let settings =
        all(connection, "SELECT settings FROM drs", |row| from_json(row, "settings"))?;
    Ok(Registry {
        hosts: all(connection, "SELECT * FROM hosts ORDER BY name", host)?,
        pools: all(connection, "SELECT * FROM pools ORDER BY id", pool)?,
        assignments: all(connection, "SELECT * FROM seats ORDER BY vm", assignment)?,
        rules,
        transfers: all(connection, transfers::OPEN, transfers::read)?,
        settings: settings.into_iter().next().unwrap_or_default(),
    })
}

fn enter_host(connection: &Connection, one: &HostRecord) -> rusqlite::Result<usize> {
    let program = one.program.as_ref().map(|path| path.display().to_string());
    connection.execute(
        "INSERT INTO hosts (name, cpu, memory, program, added) VALUES (?, ?, ?, ?, ?)
         ON CONFLICT (name) DO UPDATE SET program = excluded.program",
        params![one.name, one.cpu, to_sql(one.memory), program, to_sql(one.added)],
    )
}

fn add_rule(connection: &Connection, one: &RuleRecord) -> rusqlite::Result<usize> {
    connection.execute(
        "INSERT INTO rules (name, kind, hosts, must, created)
         VALUES (?, ?, ?, ?, ?)",
        params![
            one.name,
            to_json(&one.kind),
            to_json(&one.hosts),
            one.must,
            to_sql(one.created)
        ],
    )?;
    let sql = "INSERT INTO rule_vms (rule, vm) VALUES (?, ?)";
    one.vms.iter().try_fold(0, |count, vm| {
        let made = connection.execute(sql, params![one.name, vm])?;
        Ok(count + made)
    })
}

fn make(connection: &Connection, entry: &Entry) -> rusqlite::Result<()> {
    match entry {
        Entry::Host(one) => enter_host(connection, one),
        Entry::RemoveHost(name) => {
            connection.execute("DELETE FROM hosts WHERE name = ?", [name])
        }
        Entry::Pool(one) => connection.execute(
            "INSERT INTO pools (name, parent, cpu, memory, created)
             VALUES (?, ?, ?, ?, ?)
             ON CONFLICT (name)
             DO UPDATE SET cpu = excluded.cpu, memory = excluded.memory",
            params![
                one.name,
                one.parent,
                to_json(&one.cpu),
                to_json(&one.memory),
                to_sql(one.created)
            ],
        ),
        Entry::RemovePool(name) => {
            connection.execute("DELETE FROM pools WHERE name = ?", [name])
        }
        Entry::Assignment(one) => connection.execute(
            "INSERT OR REPLACE INTO seats (vm, host, pool, trail) VALUES (?, ?, ?, ?)",
            params![one.vm, one.host, one.pool, one.history.as_ref().map(to_json)],
        ),
        Entry::Reach { vm, reach } => connection.execute(
            "UPDATE vms SET reach = ? WHERE name = ?",
            params![to_json(reach), vm],
        ),
        Entry::Transfer(one) => transfers::write(connection, one),
        Entry::AddRule(one) => add_rule(connection, one),
        Entry::RemoveRule(name) => {
            connection.execute("DELETE FROM rules WHERE name = ?", [name])
        }
        Entry::Settings(settings) => connection.execute(
            "INSERT OR REPLACE INTO drs (one, settings) VALUES (1, ?)",
            [to_json(settings)],
        ),
    }
    .map(drop)
}

impl Store {
    /// All of it, as of one moment.
    pub fn registry(&self) -> Result<Registry, StoreError> {
        self.run(|connection| read(connection))?
            .map_err(cannot("read hosts, pools and rules"))
    }

    /// Makes all of these changes, or none.
    pub fn enter(&self, entries: Vec<Entry>) -> Result<(), StoreError> {
        self.transact(move |transaction| {
            let made = entries.iter().try_for_each(|entry| make(transaction, entry));
            made.map_err(cannot("change hosts, pools or rules"))
        })
    }
}
