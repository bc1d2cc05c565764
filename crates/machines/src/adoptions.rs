//! Adoptions and releases: a VM's disk becomes a disk of ours, or a file again.
//!
//! Both are moves like those from file to file (`moves`, `mover`), with an export of ours
//! at one end. What can be refused is refused here, before anything is made.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sterna_api::{AdoptVmDisk, Error, Migration, ReleaseVmDisk, Result};
use sterna_core::DiskId;
use sterna_moves::{check_rate, wanted};
use sterna_os::random;
use sterna_qemu::Drive;
use sterna_state::{DiskRecord, OurDisk, VmMoveKind, VmMoveRecord, VmRecord};
use sterna_storage::datastores::check_name;
use sterna_storage::disks::{
    check_size, claim_of as disk_claim, place_of as image_place,
};

use super::checks::{check_guard, check_room, place_of, plain};
use super::look::datastore_of;
use super::moves::new_move;
use super::vms::claim_of;
use crate::Machines;

/// How a file is to be kept, by the end of its name.
const FORMATS: [(&str, &str); 3] = [("raw", "raw"), ("img", "raw"), ("qcow2", "qcow2")];

impl Machines {
    /// Starts an adoption.
    pub fn adopt_vm_disk(
        self: &Arc<Self>,
        vm: &str,
        request: &AdoptVmDisk,
    ) -> Result<Migration> {
        check_rate(request.rate)?;
        let guard = wanted(&request.guard)?;
        let known = self.vm_record(vm)?;
        let _claim = self.storage.claims.shared(claim_of(vm))?;
        let handle = self.storage.handle(&request.on)?;
        let drive = self.movable(&known, &request.device)?;
        check_guard(&known.reach, &guard)?;
        check_size(drive.size)?;
        check_room(&handle, &drive)?;
        let name = request.name.clone().unwrap_or_else(|| name_for(vm, &drive));
        check_name("disk", &name)?;
        let _new = self.storage.claim_new(&name, &request.on)?;
        self.check_reconnects(&known)?;
        let disk = OurDisk { name, id: DiskId(random::number()?) };
        let export = self.export_of(disk.id)?.to_string();
        let from = datastore_of(&self.storage.store.datastores()?, &drive.image);
        let record = VmMoveRecord {
            kind: VmMoveKind::Adopt(disk),
            format: "raw".into(),
            from: from.unwrap_or_else(|| place_of(&drive.image)),
            to: request.on.clone(),
            ..new_move(vm, drive, request.rate, guard)
        };
        self.begin_vm_move(&known, record, |_| export)
    }

    /// Starts a release.
    pub fn release_vm_disk(
        self: &Arc<Self>,
        vm: &str,
        request: &ReleaseVmDisk,
    ) -> Result<Migration> {
        check_rate(request.rate)?;
        let guard = wanted(&request.guard)?;
        let known = self.vm_record(vm)?;
        let _claim = self.storage.claims.shared(claim_of(vm))?;
        let format = format_of(&request.to)?;
        let drive = self.drive_of(&known, &request.device)?;
        let device = &drive.device;
        let Some(disk) = self.disk_behind(&drive.image)? else {
            let message = format!("disk {device} of {vm} is not a Sterna disk");
            return Err(Error::invalid(message).hint(format!(
                "its image is {}: `sterna vm move` moves the disk",
                drive.image
            )));
        };
        check_guard(&known.reach, &guard)?;
        let _disk = self.storage.claims.alone(disk_claim(&disk.name))?;
        self.storage.check_still(&disk)?;
        check_free(&request.to)?;
        let datastore = datastore_of(&self.storage.store.datastores()?, &request.to);
        if let Some(name) = &datastore {
            let mut drive = drive.clone();
            drive.allocated = self.storage.view_disk(disk.clone())?.allocated;
            let handle = self.storage.handle(name)?;
            handle.check_takes_new()?;
            check_room(&handle, &drive)?;
        }
        let file = plain_path(&request.to);
        self.check_no_image(&file)?;
        let record = VmMoveRecord {
            kind: VmMoveKind::Release(OurDisk { name: disk.name, id: disk.id }),
            format: format.into(),
            from: disk.datastore,
            to: datastore.unwrap_or_else(|| place_of(&file)),
            ..new_move(vm, drive, request.rate, guard)
        };
        self.begin_vm_move(&known, record, |_| file)
    }

    /// Refuses a file that is a disk's image, also where that cannot be seen now.
    fn check_no_image(&self, file: &str) -> Result<()> {
        let datastores = self.storage.store.datastores()?;
        let is_there = |disk: &DiskRecord| {
            let mut known = datastores.iter();
            let place = known.find(|one| one.name == disk.datastore);
            place.is_some_and(|one| image_place(&one.location, &disk.image) == file)
        };
        match self.storage.store.disks()?.iter().find(|disk| is_there(disk)) {
            Some(disk) => {
                let message = format!("{file} is the image of disk {}", disk.name);
                Err(Error::in_use(message).hint("choose another name"))
            }
            None => Ok(()),
        }
    }

    /// A VM that would not look for this daemon again would get errors whenever it is
    /// restarted.
    fn check_reconnects(&self, known: &VmRecord) -> Result<()> {
        let link = self.vms.link(&known.reach);
        let reconnects =
            self.vms.runtime.block_on(async { link.vm().await?.reconnects().await });
        match reconnects {
            Ok(true) => Ok(()),
            Ok(false) => {
                let message = "this libvirt drops the setting with which QEMU reconnects \
                               to an NBD server (`<reconnect>`): the guest would have \
                               I/O errors whenever Sterna restarts";
                Err(Error::unavailable(message).hint(
                    "install a newer libvirt; or stop the VM, and `sterna disk import` \
                     its image",
                ))
            }
            Err(error) => Err(Error::unavailable(error)
                .hint(format!("see `sterna vm show {}`", known.name))),
        }
    }
}

/// What a VM's disk is called here, unless somebody says otherwise.
fn name_for(vm: &str, drive: &Drive) -> String {
    format!("{vm}-{}", plain(&drive.device))
}

/// How a file of this name is to be kept.
fn format_of(file: &str) -> Result<&'static str> {
    let path = Path::new(file);
    if !path.is_absolute() {
        let message = format!("{file} is not an absolute path");
        return Err(Error::invalid(message).hint("give the absolute path of the file"));
    }
    let end = path.extension().and_then(|end| end.to_str());
    let known = FORMATS.iter().find(|(known, _)| Some(*known) == end);
    known.map(|(_, format)| *format).ok_or_else(|| {
        let message = format!("the name of {file} does not show the format of the image");
        Error::invalid(message).hint(
            "use a name that ends in .raw (or .img), or in .qcow2 for a qcow2 image",
        )
    })
}

/// A path in one spelling: moves that go to one file are told by it.
fn plain_path(file: &str) -> String {
    Path::new(file).components().collect::<PathBuf>().display().to_string()
}

/// Refuses a file that is there already, or that has no directory.
fn check_free(file: &str) -> Result<()> {
    let path = Path::new(file);
    let directory = path.parent().unwrap_or(path);
    if !directory.is_dir() {
        let message = format!("there is no directory {}", directory.display());
        return Err(
            Error::invalid(message).hint("create the directory, or choose another")
        );
    }
    match path.try_exists() {
        Ok(false) => Ok(()),
        Ok(true) => {
            let message = format!("{file} exists already");
            Err(Error::in_use(message).hint("choose another name, or remove that file"))
        }
        Err(error) => Err(Error::unavailable(format!(
            "cannot check whether {file} exists: {error}"
        ))),
    }
}
