//! Hosts, and which VM is on which, as the API's requests see them.

use std::path::{Path, PathBuf};

use sterna_api::{AddHost, Error, Host, HostProgram, PlaceVm, Placement, Result};
use sterna_core::Bytes;
use sterna_machines::claim_of;
use sterna_os::{clock, lock, program};
use sterna_placement::hosts::{Amounts, Inventory, Resource, admit};
use sterna_state::{Entry, History, HostRecord, Registry, SeatRecord};
use sterna_storage::datastores::check_name;

use super::round::now;
use super::rules::check_rules;
use super::scene::DrsScene;
use super::view::{amounts, loads};
use crate::Planner;

/// Hosts at most: all VMs are compared with all of them.
const HOSTS_MAX: usize = 1024;
/// The least memory of a host, in bytes: no VM has less. Less is a unit that was left out.
const MEMORY_MIN: u64 = 1 << 20;

/// Refuses what no host has.
fn check_capacity(cpu: f64, memory: u64) -> Result<()> {
    if !(cpu.is_finite() && cpu >= 1.0) {
        let message = format!("a host needs at least 1 processor, and not {cpu:?}");
        return Err(Error::invalid(message).hint("give the number that VMs may use"));
    }
    if memory < MEMORY_MIN {
        let message = format!(
            "a host needs at least {} of memory, and not {}",
            Bytes(MEMORY_MIN),
            Bytes(memory)
        );
        let hint = match memory {
            0 => "give the memory that VMs may use, for example 64G".into(),
            _ => format!("did you mean {memory}G?"),
        };
        return Err(Error::invalid(message).hint(hint));
    }
    Ok(())
}

impl Planner {
    /// What there is, and what was seen of it.
    pub(super) fn drs_scene(&self) -> Result<(Registry, DrsScene)> {
        let registry = self.drs.ledger.read()?;
        let mut state = lock(&self.drs.state);
        state.settle(&registry);
        let scene = DrsScene::of(&registry, &state, now());
        Ok((registry, scene))
    }

    /// All hosts, by name.
    pub fn list_hosts(&self) -> Result<Vec<Host>> {
        let (registry, scene) = self.drs_scene()?;
        Ok(view_hosts(&registry, &scene))
    }

    /// One host.
    pub fn show_host(&self, name: &str) -> Result<Host> {
        let found = self.list_hosts()?.into_iter().find(|host| host.name == name);
        found.ok_or_else(|| Error::not_found("host", name))
    }

    /// Adds a host.
    pub fn add_host(&self, request: &AddHost) -> Result<Host> {
        let AddHost { name, cpu, memory } = request;
        check_name("host", name)?;
        check_capacity(*cpu, *memory)?;
        let record = HostRecord {
            name: name.clone(),
            cpu: *cpu,
            memory: *memory,
            program: None,
            added: clock::now(),
        };
        self.drs.ledger.change(&mut |registry| {
            if registry.hosts.iter().any(|host| host.name == *name) {
                return Err(Error::exists("host", name));
            }
            if registry.hosts.len() >= HOSTS_MAX {
                let message = format!("there are {HOSTS_MAX} hosts already");
                return Err(Error::invalid(message).hint("remove one first"));
            }
            Ok(vec![Entry::Host(record.clone())])
        })?;
        tracing::info!(host = name, "host added");
        self.show_host(name)
    }

    /// Says which program starts VMs on a host.
    pub fn set_host_program(&self, name: &str, request: &HostProgram) -> Result<Host> {
        let program = request.program.as_ref().map(PathBuf::from);
        program.as_deref().map_or(Ok(()), check_program)?;
        self.drs.ledger.change(&mut |registry| {
            let known = registry.hosts.iter().find(|host| host.name == name);
            let known = known.ok_or_else(|| Error::not_found("host", name))?;
            Ok(vec![Entry::Host(HostRecord {
                program: program.clone(),
                ..known.clone()
            })])
        })?;
        match &request.program {
            Some(program) => {
                tracing::info!(host = name, program, "a program starts VMs there");
            }
            None => tracing::info!(host = name, "no program starts VMs there"),
        }
        self.show_host(name)
    }

    /// Forgets a host on which nothing is.
    pub fn remove_host(&self, name: &str) -> Result<Host> {
        let gone = self.show_host(name)?;
        let vms = self.vm_names()?;
        self.drs.ledger.change(&mut |registry| {
            let on_it =
                |assignment: &&SeatRecord| assignment.host.as_deref() == Some(name);
            if let Some(assignment) = registry.assignments.iter().find(on_it) {
                let message = format!("vm {} is on host {name}", assignment.vm);
                let hint = format!(
                    "migrate the VM, and record its host: `sterna host assign HOST {}`",
                    assignment.vm
                );
                return Err(Error::in_use(message).hint(hint));
            }
            let goes = registry.transfers.iter().find(|one| one.design.to == name);
            if let Some(one) = goes {
                let message = format!("VM {} is being migrated to host {name}", one.vm);
                let hint = format!(
                    "wait for the VM migration, or `sterna drs migration cancel {}`",
                    one.id
                );
                return Err(Error::in_use(message).hint(hint));
            }
            let names_it = |rule: &&sterna_state::RuleRecord| {
                rule.hosts.iter().any(|host| host == name)
            };
            if let Some(rule) = registry.rules.iter().find(names_it) {
                let message = format!("rule {} names host {name}", rule.name);
                let hint = format!(
                    "remove the rule first: `sterna drs rule remove {}`",
                    rule.name
                );
                return Err(Error::in_use(message).hint(hint));
            }
            let mut next = registry.clone();
            next.hosts.retain(|host| host.name != name);
            check_admission(&next)?;
            check_rules(&next, &vms)?;
            Ok(vec![Entry::RemoveHost(name.to_owned())])
        })?;
        tracing::info!(host = name, "host removed");
        Ok(gone)
    }

    /// The names of all VMs.
    pub(super) fn vm_names(&self) -> Result<Vec<String>> {
        Ok(self.storage.store.vms()?.into_iter().map(|vm| vm.name).collect())
    }

    /// Says where a VM is.
    pub fn place_vm(&self, vm: &str, request: &PlaceVm) -> Result<Placement> {
        let _claim = self.storage.claims.shared(claim_of(vm))?;
        self.machines.vm_record(vm)?;
        self.machines.check_no_vm_migration(vm)?;
        let mut recommended = false;
        self.drs.ledger.change(&mut |registry| {
            if let Some(host) = &request.host
                && !registry.hosts.iter().any(|one| one.name == *host)
            {
                return Err(Error::not_found("host", host));
            }
            let assignment =
                registry.assignments.iter().find(|assignment| assignment.vm == vm);
            let pool = assignment.and_then(|assignment| assignment.pool.clone());
            let host = request.host.clone();
            let mut state = lock(&self.drs.state);
            state.settle(registry);
            let mut kept = None;
            if let Some(host) = &host {
                recommended = state.was_told(vm, host);
                if recommended {
                    state.cooldowns.moved(now(), vm, host, &registry.cooldown_settings());
                } else if state.cooldowns.see(now(), vm, host) {
                    tracing::info!(
                        vm,
                        host,
                        "a VM was assigned to a host without a recommendation"
                    );
                }
                kept = state.cooldowns.history(vm).map(History::of);
            }
            let vm = vm.to_owned();
            Ok(vec![Entry::Assignment(SeatRecord { vm, host, pool, history: kept })])
        })?;
        let host = request.host.clone();
        Ok(Placement { vm: vm.to_owned(), host, recommended })
    }
}

/// Refuses a program that could not be run.
fn check_program(path: &Path) -> Result<()> {
    if !path.is_absolute() {
        let message = format!("{} is not an absolute path", path.display());
        return Err(Error::invalid(message).hint("give the program's absolute path"));
    }
    program::check(path).map_err(|why| {
        let message = format!("the program {} {why}", path.display());
        Error::invalid(message).hint("give a program that the daemon may run")
    })
}

/// Hosts with their loads.
pub(super) fn view_hosts(registry: &Registry, scene: &DrsScene) -> Vec<Host> {
    let loads = loads(&scene.inventory);
    let view = |(record, load): (&HostRecord, &Amounts)| {
        let on_it = |assignment: &&SeatRecord| {
            assignment.host.as_deref() == Some(record.name.as_str())
        };
        Host {
            name: record.name.clone(),
            cpu: record.cpu,
            memory: record.memory,
            load: amounts(*load),
            vms: registry
                .assignments
                .iter()
                .filter(on_it)
                .map(|assignment| assignment.vm.clone())
                .collect(),
            program: record.program.as_ref().map(|path| path.display().to_string()),
            added: record.added,
        }
    };
    registry.hosts.iter().zip(&loads).map(view).collect()
}

/// Refuses reservations that cannot be had.
pub(super) fn check_admission(registry: &Registry) -> Result<()> {
    let scene = DrsScene::of(registry, &super::State::default(), now());
    let inventory = Inventory { vms: Vec::new(), rules: Vec::new(), ..scene.inventory };
    admit(&inventory).map_err(|over| {
        let amount = |it: f64| match over.resource {
            Resource::Cpu => format!("{it} processors"),
            Resource::Memory => sterna_core::Bytes(it as u64).to_string(),
        };
        let (reserved, has) = (amount(over.reserved), amount(over.has));
        let message = match over.pool.map(|pool| &scene.pools[pool]) {
            Some(pool) => format!(
                "pools in pool {pool} would reserve {reserved}, and it has {has} reserved"
            ),
            None => format!("pools would reserve {reserved}, and all hosts have {has}"),
        };
        Error::invalid(message).hint("reserve less, or add a host")
    })
}
