//! VMs, as the API's requests see them.

use std::path::PathBuf;

use sterna_api::{AddVm, Error, Result, Vm, VmNames};
use sterna_os::{clock, lock};
use sterna_qemu::virsh::Virsh;
use sterna_qemu::{Identity, QemuError};
use sterna_state::{Reach, Step, VmRecord};
use sterna_storage::datastores::check_name;

use super::look::{Look, look};
use crate::Machines;

/// The most names of libvirt's VMs that are told: more than that nobody reads in a hint.
const NAMES_MOST: usize = 20;

impl Machines {
    /// All VMs, by name.
    pub fn list_vms(&self) -> Result<Vec<Vm>> {
        let records = self.storage.store.vms()?;
        let datastores = self.storage.store.datastores()?;
        let looks = self.vms.ask_all(&records, |link| async move { look(&link).await });
        self.note_last_seen(looks.iter().map(|(vm, look)| (vm, look.last_seen())));
        let view =
            |(vm, look): (VmRecord, Look)| self.view_vm(vm, look.seen, &datastores);
        Ok(looks.into_iter().map(view).collect())
    }

    /// The names of all VMs and of their disks, for whoever cannot wait for an answer.
    pub fn vm_names(&self) -> Result<Vec<VmNames>> {
        let sights = self.sights();
        let names =
            self.storage.store.vms()?.into_iter().map(|VmRecord { name, .. }| {
                let of_it = sights.iter().filter(|one| one.vm == name);
                let devices = of_it.map(|one| one.device.clone()).collect();
                VmNames { name, devices }
            });
        Ok(names.collect())
    }

    /// One VM.
    pub fn show_vm(&self, name: &str) -> Result<Vm> {
        let record = self.vm_record(name)?;
        let link = self.vms.link(&record.reach);
        let look = self.vms.runtime.block_on(look(&link));
        self.note_last_seen([(&record, look.last_seen())]);
        Ok(self.view_vm(record, look.seen, &self.storage.store.datastores()?))
    }

    /// Adds a VM that can be asked.
    pub fn add_vm(&self, request: &AddVm) -> Result<Vm> {
        let name = &request.name;
        check_name("vm", name)?;
        let reach = reach_of(request)?;
        let _claim = self.storage.claims.alone(claim_of(name))?;
        for known in self.storage.store.vms()? {
            if known.name == *name {
                return Err(Error::exists("vm", name));
            }
            if known.reach == reach {
                let message = format!("{reach} belongs to VM {} already", known.name);
                let hint = format!("see `sterna vm show {}`", known.name);
                return Err(Error::in_use(message).hint(hint));
            }
        }
        let link = self.vms.link(&reach);
        let look = self.vms.runtime.block_on(look(&link));
        let last_seen = look.last_seen();
        let seen = look.seen.map_err(|error| self.not_found(name, &reach, error))?;
        let record = VmRecord { name: name.clone(), reach, added: clock::now() };
        {
            // Whoever adds the same QEMU at the same time finds this one.
            let _turn = lock(&self.vms.adding);
            self.check_is_new_qemu(&record)?;
            self.storage.store.add_vm(record.clone())?;
        }
        tracing::info!(vm = name, reach = %record.reach, "VM added");
        self.note_last_seen([(&record, last_seen)]);
        Ok(self.view_vm(record, Ok(seen), &self.storage.store.datastores()?))
    }

    /// Why a VM cannot be added that nobody could ask. If libvirt does not know its name,
    /// with the names that libvirt knows.
    fn not_found(&self, name: &str, reach: &Reach, error: QemuError) -> Error {
        let hint = match (error.remedy(), reach) {
            (Some(remedy), _) => {
                format!("Sterna added nothing: {remedy}; then add the VM again")
            }
            (None, Reach::Libvirt { uri, domain }) if error.is_unknown() => {
                let libvirt = Virsh::at(uri);
                let has = match self.vms.runtime.block_on(libvirt.names()) {
                    Ok(names) => listed(&names),
                    Err(error) => {
                        format!(" (which ones it has it does not say: {error})")
                    }
                };
                format!(
                    "Sterna added nothing: libvirt has no VM {domain}{has}; give the name \
                     there: `sterna vm add {name} --libvirt {uri} DOMAIN`"
                )
            }
            (None, _) => "Sterna added nothing: repair this, and add the VM again".into(),
        };
        Error::unavailable(error).hint(hint)
    }

    /// Refuses a QEMU that is a known VM already, at another monitor of its: two would plan
    /// for it, each without the other. Where it cannot be told, nothing is refused.
    fn check_is_new_qemu(&self, new: &VmRecord) -> Result<()> {
        let all = self.storage.store.vms()?.into_iter().chain([new.clone()]);
        let direct: Vec<VmRecord> =
            all.filter(|vm| matches!(vm.reach, Reach::Qmp(_))).collect();
        if direct.len() < 2 || direct.last() != Some(new) {
            return Ok(());
        }
        let asked = self.vms.ask_all(&direct, |link| async move {
            link.vm().await.ok()?.identity().await.ok()?
        });
        let which = |(vm, which): (VmRecord, Option<Identity>)| Some((vm, which?));
        let mut known: Vec<(VmRecord, Identity)> =
            asked.into_iter().filter_map(which).collect();
        let Some((_, this)) = known.pop_if(|(vm, _)| *vm == *new) else {
            return Ok(());
        };
        let Some((vm, _)) = known.into_iter().find(|(_, other)| *other == this) else {
            return Ok(());
        };
        let (name, other) = (&vm.name, &new.reach);
        let message =
            format!("the QEMU at {other} belongs to VM {name} already, by {}", vm.reach);
        Err(Error::in_use(message).hint(format!(
            "use {name}; or, to use this monitor: `sterna vm remove {name}`, and add \
             the VM again"
        )))
    }

    /// Forgets a VM, which goes on as it is.
    pub fn remove_vm(&self, name: &str) -> Result<Vm> {
        let _claim = self.storage.claims.alone(claim_of(name))?;
        self.vm_record(name)?;
        self.check_no_vm_migration(name)?;
        for one in self.storage.store.open_vm_moves()? {
            if one.vm == name {
                let (id, device) = (one.id, one.device);
                let message =
                    format!("disk {device} of {name} is moved by migration {id}");
                let hint = match one.step {
                    Step::Created | Step::Copying => {
                        format!(
                            "wait for the migration, or `sterna migration cancel {id}`"
                        )
                    }
                    _ => format!(
                        "wait for the migration's end: `sterna migration watch {id}`"
                    ),
                };
                return Err(Error::in_use(message).hint(hint));
            }
        }
        let gone = self.show_vm(name)?;
        self.users.ask(|user| user.may_leave(name))?;
        self.users.tell(|user| user.leaves(name));
        self.storage.store.remove_vm(name)?;
        self.forget_processes(|vm| vm == name);
        self.vms.let_go(name);
        tracing::info!(vm = name, "VM removed");
        Ok(gone)
    }

    /// The record of a VM that exists.
    pub fn vm_record(&self, name: &str) -> Result<VmRecord> {
        let found = self.storage.store.vms()?.into_iter().find(|vm| vm.name == name);
        found.ok_or_else(|| Error::not_found("vm", name))
    }
}

/// The claim on a VM.
pub fn claim_of(name: &str) -> String {
    format!("vm {name}")
}

/// The VMs that libvirt has, in words, behind that it does not have another one.
fn listed(names: &[String]) -> String {
    let few = names.iter().take(NAMES_MOST).cloned().collect::<Vec<_>>().join(", ");
    match names.len() {
        0 => String::new(),
        1..=NAMES_MOST => format!("; it has: {few}"),
        more => format!("; it has: {few} and {} more", more - NAMES_MOST),
    }
}

fn reach_of(request: &AddVm) -> Result<Reach> {
    let AddVm { name, qmp, libvirt, domain } = request;
    match (qmp, libvirt) {
        (Some(socket), None) if domain.is_none() => {
            let socket = PathBuf::from(socket);
            if socket.is_absolute() {
                return Ok(Reach::Qmp(socket));
            }
            let message = format!("{} is not an absolute path", socket.display());
            Err(Error::invalid(message).hint("give the absolute path of the socket"))
        }
        (None, Some(uri)) => {
            let domain = domain.as_ref().unwrap_or(name).clone();
            // A name or URI that begins so would be an option to virsh.
            for text in [uri, &domain] {
                if text.is_empty() || text.starts_with('-') {
                    let message = format!("`{text}` is not a URI or VM name of libvirt");
                    return Err(Error::invalid(message)
                        .hint("see `virsh uri` and `virsh list --all --name`"));
                }
            }
            Ok(Reach::Libvirt { uri: uri.clone(), domain })
        }
        _ => Err(Error::invalid(
            "Sterna reaches a VM either over a QMP socket or over libvirt",
        )
        .hint(
            "give `qmp`, or `libvirt`; if libvirt has another name for the VM, also \
             `domain`",
        )),
    }
}
