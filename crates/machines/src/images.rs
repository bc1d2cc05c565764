//! The images of a datastore: what is known of each, and the removal of an old copy.
//!
//! Disks, moves and VMs each have a part of what is known of a file (`records`). Whether an
//! old copy may go is decided in `core::old_copy`; here the facts are gathered (`facts`), a
//! refusal gets its words (`words`), and what may go is removed.
//!
//! The list tells what the records and the last looks at VMs say. A removal asks the VMs
//! anew. Of a removal only the move of a disk hears that has kept the file: it says so no
//! longer.

mod facts;
mod records;
mod words;

use std::path::{Path, PathBuf};
use std::time::Duration;

use sterna_api::{DatastoreImage, DatastoreImages, Error, ImageUse, Result};
use sterna_core::old_copy::may_go;
use sterna_engine::FoundFile;
use sterna_engine::datastore::OldCopy;
use sterna_engine::sidecar::Identity;
use sterna_moves::KEPT;
use sterna_os::lock;
use sterna_state::KnownFile;
use sterna_storage::datastores::claim_of as datastore_claim;
use sterna_storage::handle::DatastoreHandle;

pub(super) use self::records::Sight;
use self::records::{Known, Records};
use crate::Machines;

/// What a device or an export is as a whole.
enum Whole {
    /// The image of this disk.
    Disk(String),
    /// The source or the destination of this migration.
    Moving(u64),
    /// An image that no disk of this daemon has, by what it says of itself.
    Says(Identity),
    /// No image.
    Free,
}

/// How long files of VMs are waited for: as long as a VM's answer.
const ANSWER: Duration = Duration::from_secs(4);

impl Machines {
    /// The files in a datastore's directory, and what is known of each.
    pub fn list_images(&self, datastore: &str) -> Result<DatastoreImages> {
        let handle = self.storage.handle(datastore)?;
        handle.check_is_directory()?;
        let (files, left_out) = handle.files()?;
        let records = self.image_records(&handle, self.sights())?;
        let view =
            |(file, found): (String, FoundFile)| view(&file, &found, &records.of(&file));
        Ok(DatastoreImages {
            datastore: datastore.into(),
            images: files.into_iter().map(view).collect(),
            left_out,
        })
    }

    /// Removes an old copy that a move has left, and no other file.
    pub fn remove_image(&self, datastore: &str, file: &str) -> Result<DatastoreImage> {
        let handle = self.storage.handle(datastore)?;
        self.moves.put_away_overdue_at(datastore)?;
        self.check_has_files(&handle)?;
        // Nothing is made, imported or moved there meanwhile.
        let _claim = self.storage.claims.alone(datastore_claim(datastore))?;
        let look = handle.look_at_image(file)?;
        let mut known = self.image_records(&handle, self.sights())?.of(file);
        if matches!(known, Known::Vm { .. }) {
            // It may have been given another image since it was last seen.
            self.look_at_all_vms()?;
            known = self.image_records(&handle, self.sights())?.of(file);
        }
        let gathered = self.facts_of(&handle, file, &look, &known)?;
        let Some(found) = look.found else {
            return Err(Error::not_found("image", look.path.display())
                .hint(format!("see `sterna datastore images {datastore}`")));
        };
        // What says that it may go is what the next daemon finds, too.
        self.storage.store.must_be_there()?;
        may_go(&gathered.facts)
            .map_err(|why| words::refusal(why, &look.path, &known, &gathered))?;
        match handle.remove_old_copy(file, &found)? {
            OldCopy::Gone => {}
            left => return Err(words::not_removed(&left, &look.path, datastore)),
        }
        tracing::info!(datastore, file, size = found.size, "old copy removed");
        if let Known::LeftByDisk(left) = &known
            && left.note.as_ref().is_some_and(|note| note.starts_with(KEPT))
        {
            let note = "the old image was kept, and was removed later";
            if let Err(error) = self.storage.store.set_end_note(left.id, note) {
                tracing::debug!(file, %error, "its move says that it was kept");
            }
        }
        Ok(view(file, &found, &known))
    }

    /// Refuses a datastore that has no files: a device or an export is one image at most, as
    /// a whole. Says what it is, and how it gets free for a disk.
    fn check_has_files(&self, handle: &DatastoreHandle) -> Result<()> {
        let location = &handle.record().location;
        if location.directory().is_some() {
            return Ok(());
        }
        let (store, name) = (&self.storage.store, handle.name());
        let disk = store.disks()?.into_iter().find(|disk| disk.datastore == name);
        let open = store.open_migrations()?;
        let under_way = open.into_iter().find(|it| it.is_on(name));
        let whole = match (disk, under_way) {
            (Some(disk), _) => Whole::Disk(disk.name),
            (None, Some(one)) => Whole::Moving(one.id),
            (None, None) => handle.says_as_a_whole()?.map_or(Whole::Free, Whole::Says),
        };
        Err(words::no_files(&whole, name, &location.to_string()))
    }

    /// What the file of a VM's disk is known by; nothing if that is no file, or if its file
    /// system does not say it in time.
    pub(crate) fn look_at_source(&self, image: &str) -> Option<KnownFile> {
        let path = Path::new(image).is_absolute().then(|| PathBuf::from(image))?;
        let found = self.vms.files.ask(ANSWER, move || FoundFile::at(&path).ok());
        let found = found.answer()??.facts();
        found.is_file.then(|| found.file.into())
    }

    /// What is recorded of the files of a datastore.
    fn image_records(
        &self,
        handle: &DatastoreHandle,
        sights: Vec<Sight>,
    ) -> Result<Records> {
        let store = &self.storage.store;
        let mut records = Records::new(handle, sights);
        records.add_disks(store.disks()?);
        records.add_migrations(store.migrations()?);
        records.add_vm_moves(store.vm_moves()?, &store.untidy_vm_moves()?);
        Ok(records)
    }

    /// What VMs were last seen with.
    pub(super) fn sights(&self) -> Vec<Sight> {
        let mut sights = Vec::new();
        for seen in [&self.vms.last_seen, &self.vms.seen_of_libvirt] {
            let seen = lock(seen);
            sights.extend(seen.iter().flat_map(|(vm, seen)| seen.sights(vm)));
        }
        sights
    }
}

/// A file as the API shows it.
fn view(file: &str, found: &FoundFile, known: &Known) -> DatastoreImage {
    let mut image = DatastoreImage {
        image: file.into(),
        size: found.size,
        allocated: found.allocated,
        is: ImageUse::Unknown,
        disk: None,
        vm: None,
        device: None,
        migration: None,
    };
    match known {
        Known::Nothing => {}
        Known::Disk(disk) => {
            image.is = ImageUse::Disk;
            image.disk = Some(disk.clone());
        }
        Known::Vm { vm, device } => {
            image.is = ImageUse::Vm;
            (image.vm, image.device) = (Some(vm.clone()), Some(device.clone()));
        }
        Known::Moving(id) => {
            image.is = ImageUse::Migration;
            image.migration = Some(*id);
        }
        Known::Unclear(record) => {
            image.is = ImageUse::Unclear;
            image.migration = Some(record.id);
            image.vm = Some(record.vm.clone());
            image.device = Some(record.device.clone());
        }
        // Another file has its name by now.
        Known::LeftByVm(record)
            if record
                .source_file
                .map(|was| (was, KnownFile::from(found.facts().file)))
                .is_some_and(|(was, is)| {
                    was.is_another(&is) && !was.may_be_rehandled(&is)
                }) => {}
        Known::LeftByVm(record) => {
            image.is = ImageUse::OldCopy;
            image.migration = Some(record.id);
            image.vm = Some(record.vm.clone());
            image.device = Some(record.device.clone());
        }
        Known::LeftByDisk(record) => {
            image.is = ImageUse::OldCopy;
            image.migration = Some(record.id);
            image.disk = Some(record.name.clone());
        }
    }
    image
}
