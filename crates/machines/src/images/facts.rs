//! The facts by which it is decided whether an old copy may go.
//!
//! All VMs are asked at once, and now: what they said last may be out of date. A file is
//! compared with what VMs, disks and moves have by what it is, and not by its path alone:
//! links, and two mounts of one file system, are other paths to one file.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sterna_api::Result;
use sterna_core::old_copy::{Evidence, Facts, Others, Owner, Recorded};
use sterna_engine::sidecar::Role;
use sterna_qemu::QemuError;
use sterna_state::{MigrationRecord, Reach, VmMoveRecord, VmRecord};
use sterna_storage::handle::{DatastoreHandle, ImageLook};

use super::ANSWER;
use super::records::Known;
use crate::Machines;

/// The facts, and names for whoever is told of them.
#[derive(Debug)]
pub(super) struct Gathered {
    pub(super) facts: Facts,
    /// Who else has the file, or may have it, and why that is not known.
    pub(super) other: String,
    /// Why the disk or the VM that has left it cannot be asked or used.
    pub(super) owner: String,
}

/// What a VM has, as it says now.
#[derive(Debug)]
struct Has {
    on: bool,
    /// Its disks' names, with their images.
    drives: Vec<(String, String)>,
    files: Vec<String>,
}

type Asked = Vec<(VmRecord, std::result::Result<Has, QemuError>)>;

impl Machines {
    /// Gathers what is known of a file.
    pub(super) fn facts_of(
        &self,
        handle: &DatastoreHandle,
        file: &str,
        look: &ImageLook,
        known: &Known,
    ) -> Result<Gathered> {
        let mut gathered = Gathered {
            facts: Facts {
                recorded: recorded(known),
                found: look.found.map(|found| found.facts()),
                evidence: evidence(known, look),
                owner: Owner::Forgotten,
                others: Others::MayUse,
            },
            other: String::new(),
            owner: String::new(),
        };
        // A VM may have what no record knows: a file by another path, or one that an image is
        // based on.
        let may_be_anybodys =
            matches!(gathered.facts.recorded, Recorded::Left | Recorded::Nothing);
        if !may_be_anybodys || look.found.is_none() {
            return Ok(gathered);
        }
        let asked = self.ask_what_vms_have()?;
        (gathered.facts.owner, gathered.owner) = match known {
            Known::LeftByVm(left) => self.vm_that_left(left, &asked)?,
            Known::LeftByDisk(left) => self.disk_that_left(left)?,
            _ => (Owner::Forgotten, String::new()),
        };
        let places = self.places_of_others(handle, file, &asked)?;
        (gathered.facts.others, gathered.other) =
            match self.others_have(&look.path, places) {
                (Others::Nobody, _) => nobody_is_silent(&asked),
                found => found,
            };
        Ok(gathered)
    }

    fn ask_what_vms_have(&self) -> Result<Asked> {
        let records = self.storage.store.vms()?;
        let asked = self.vms.ask_all(&records, |link| async move {
            let vm = link.vm().await?;
            let on = vm.run().await?.on;
            let drives = vm.drives().await?.into_iter();
            let drives = drives.map(|drive| (drive.device, drive.image)).collect();
            Ok(Has { on, drives, files: vm.files().await? })
        });
        // One whose asking was broken off is missing: the daemon stops.
        match asked.len() == records.len() {
            true => Ok(asked),
            false => Err(sterna_api::Error::unavailable("the daemon is stopping")),
        }
    }

    /// How it goes with the VM whose disk has left the file.
    fn vm_that_left(
        &self,
        left: &VmMoveRecord,
        asked: &Asked,
    ) -> Result<(Owner, String)> {
        let is_it = |vm: &VmRecord| {
            vm.name == left.vm && left.ended.is_some_and(|ended| vm.added <= ended)
        };
        let Some((vm, has)) = asked.iter().find(|(vm, _)| is_it(vm)) else {
            return Ok((Owner::Forgotten, String::new()));
        };
        if let Err(error) = self.check_no_vm_migration(&left.vm) {
            return Ok((Owner::OnItsWay, error.to_string()));
        }
        let has = match has {
            Ok(has) => has,
            Err(error) if error.is_gone() => return Ok((Owner::Off, error.to_string())),
            Err(error) => return Ok((Owner::Silent, error.to_string())),
        };
        // libvirt keeps with which images a VM is to start, but not on what these are based.
        if !has.on && !self.starts_where_it_was_moved(vm, left, has)? {
            return Ok((Owner::Off, String::new()));
        }
        let drive = has.drives.iter().find(|(device, _)| *device == left.device);
        let owner = match drive {
            None => Owner::Unplugged,
            Some((_, image)) if *image == left.source => Owner::Here,
            Some(_) => Owner::Elsewhere,
        };
        Ok((owner, String::new()))
    }

    /// Whether a VM that is off is to start with the image to which its disk was moved last.
    fn starts_where_it_was_moved(
        &self,
        vm: &VmRecord,
        left: &VmMoveRecord,
        has: &Has,
    ) -> Result<bool> {
        let all = self.storage.store.last_vm_moves()?;
        let is_of_disk =
            |one: &&VmMoveRecord| one.vm == left.vm && one.device == left.device;
        let last = all.iter().find(is_of_disk);
        let drive = has.drives.iter().find(|(device, _)| *device == left.device);
        Ok(matches!(vm.reach, Reach::Libvirt { .. })
            && last
                .zip(drive)
                .is_some_and(|(last, (_, image))| *image == last.destination))
    }

    /// How it goes with the disk that has left the file.
    fn disk_that_left(&self, left: &MigrationRecord) -> Result<(Owner, String)> {
        let disks = self.storage.store.disks()?;
        let Some(disk) = disks.into_iter().find(|disk| disk.id == left.disk) else {
            return Ok((Owner::Forgotten, String::new()));
        };
        Ok(match self.storage.problem_of(disk.id) {
            Some(why) => (Owner::Silent, why),
            None => (Owner::Elsewhere, String::new()),
        })
    }

    /// The files that VMs have, and those of disks and of moves under way.
    fn places_of_others(
        &self,
        handle: &DatastoreHandle,
        file: &str,
        asked: &Asked,
    ) -> Result<Vec<(String, PathBuf)>> {
        let store = &self.storage.store;
        let mut places = Vec::new();
        for (vm, has) in asked {
            let files = has.iter().flat_map(|has| &has.files);
            let who = format!("VM {}", vm.name);
            places.extend(files.map(|file| (who.clone(), PathBuf::from(file))));
        }
        for one in store.open_vm_moves()? {
            let who = format!("migration {}", one.id);
            for image in [one.source, one.destination] {
                places.push((who.clone(), image.into()));
            }
        }
        // A file has one name, so the same file has the same name by whatever path.
        let mut add = |who: String, datastore: &str, image: &str| {
            let other = self.storage.handle(datastore).ok();
            let other = other.filter(|it| it.name() != handle.name() && image == file);
            let place = other.and_then(|it| {
                it.record().location.directory().map(|directory| directory.join(image))
            });
            places.extend(place.map(|place| (who, place)));
        };
        for disk in store.disks()? {
            add(format!("disk {}", disk.name), &disk.datastore, &disk.image);
        }
        for one in store.open_migrations()? {
            for place in [&one.from, &one.to] {
                add(format!("migration {}", one.id), &place.datastore, &place.image);
            }
        }
        Ok(places)
    }

    /// Whether one of these places is the file. Their file systems may hang, so they are
    /// asked with a time limit.
    fn others_have(
        &self,
        path: &Path,
        places: Vec<(String, PathBuf)>,
    ) -> (Others, String) {
        let path = path.to_owned();
        let asked = self.vms.files.ask(ANSWER, move || have(&path, &places));
        let silent = "a file system with images of VMs or disks does not answer";
        asked.answer().unwrap_or_else(|| (Others::MayUse, silent.into()))
    }
}

/// Whether one of these places is the file at `path`, as the file system says.
fn have(path: &Path, places: &[(String, PathBuf)]) -> (Others, String) {
    let of = |path: &Path| path.metadata().map(|found| (found.dev(), found.ino()));
    let file = match of(path) {
        Ok(file) => file,
        Err(error) => return (Others::MayUse, error.to_string()),
    };
    for (who, place) in places {
        if place == path {
            return (Others::Use, who.clone());
        }
        if !place.is_absolute() {
            // It has no path (a server's export), or one that only its user knows.
            if place.file_name() == path.file_name() {
                return (Others::MayUse, format!("{who} has {}", place.display()));
            }
            continue;
        }
        match of(place) {
            Ok(found) if found == file => return (Others::Use, who.clone()),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                let why = format!("{who} has {}, and: {error}", place.display());
                return (Others::MayUse, why);
            }
        }
    }
    (Others::Nobody, String::new())
}

/// Whether a VM may have a file that cannot be asked. One whose QEMU has ended has none.
fn nobody_is_silent(asked: &Asked) -> (Others, String) {
    let silent = asked.iter().find_map(|(vm, has)| match has {
        Err(error) if !error.is_gone() => Some(format!("VM {}: {error}", vm.name)),
        _ => None,
    });
    silent.map_or((Others::Nobody, String::new()), |why| (Others::MayUse, why))
}

fn recorded(known: &Known) -> Recorded {
    match known {
        Known::Nothing => Recorded::Nothing,
        Known::Disk(_) | Known::Vm { .. } | Known::Moving(_) => Recorded::Used,
        Known::Unclear(_) => Recorded::Unclear,
        Known::LeftByVm(_) | Known::LeftByDisk(_) => Recorded::Left,
    }
}

/// What the file has to be.
fn evidence(known: &Known, look: &ImageLook) -> Evidence {
    let Known::LeftByDisk(left) = known else {
        let file = match known {
            Known::LeftByVm(left) => left.source_file.map(Into::into),
            _ => None,
        };
        return Evidence::Record { file, has_sidecar: !matches!(look.said, Ok(None)) };
    };
    let said = look.said.as_ref().ok().and_then(Option::as_ref);
    // If its datastore did not answer at the end of the move, it was not retired.
    let is_left = said.is_some_and(|(says, _)| {
        matches!(says.role, Role::Retired | Role::Active)
            && says.id == left.disk
            && says.generation == left.source_generation
            && says.size == left.size
    });
    Evidence::Sidecar {
        is_left,
        file: said.and_then(|(_, file)| *file).map(|file| (file.number, file.made)),
        ended: left.ended.unwrap_or(0),
    }
}
