//! Recovery: images that say of themselves whose truth they are become disks again,
//! with the id and the name that they had. It is for a state directory that was
//! lost, or restored from an old backup.
//!
//! Which images may be taken is decided by `verdict`, with all datastores in view: a
//! datastore that cannot be looked at might hold a newer image, so while there is
//! one nothing is recovered. An image that is taken gets a much higher generation, so
//! that the daemon that had it before, should it come back with its old state, neither
//! serves it any more nor copies onto it. All else is left as it is, to the last byte.
//!
//! **Failure cases.** A crash in between leaves an image whose sidecar says active
//! and that no disk has, as it was before; doing it again goes on. What nobody can
//! know is whether another daemon that is alive has an image: locks tell it on one
//! machine, and where a file system passes them on. The operator has to.

mod verdict;
use std::slice;

use sterna_api::{
    Error, FoundImage, ImageRole, Provision, RecoverDisks, Recovery, Result, Sidecar,
};
use sterna_engine::sidecar::{Identity, Role};
use sterna_os::clock;
use sterna_state::{DiskRecord, MigrationRecord};
use verdict::{Found, judge};

use crate::Storage;
use crate::claims::Claim;
use crate::datastores::claim_of as datastore_claim;
use crate::disks::{claim_of, identity, place_of};
use crate::handle::DatastoreHandle;

/// How far the generation of an image is raised when it is taken in: past all that a
/// daemon with an older state can still write or expect without having looked at this
/// image (a fence raises by two, a seal by one more), with room to spare.
pub const MARGIN: u64 = 16;

impl Storage {
    /// Makes disks of the images that are the truth of disks that are not known.
    pub fn recover_disks(&self, request: &RecoverDisks) -> Result<Recovery> {
        let on = request.datastore.as_deref();
        on.map(|name| self.handle(name)).transpose()?;
        let _claims = match request.dry_run {
            true => Vec::new(),
            false => self.claim_all_datastores()?,
        };
        let found = self.find_images()?;
        let verdicts = judge(&found, &self.store.disks()?, on);
        let mut images = Vec::new();
        for (one, verdict) in found.iter().zip(verdicts) {
            if on.is_some_and(|on| on != one.datastore) {
                continue;
            }
            let taken = verdict.and_then(|identity| match request.dry_run {
                true => Ok(()),
                false => self.take_in(one, identity).map_err(|error| error.to_string()),
            });
            images.push(view(one, taken));
        }
        Ok(Recovery { dry_run: request.dry_run, images })
    }

    /// Keeps disks and images from coming and going meanwhile.
    fn claim_all_datastores(&self) -> Result<Vec<Claim>> {
        let handles = self.all_handles();
        let names = handles.iter().map(|handle| datastore_claim(handle.name()));
        names.map(|claim| self.claims.alone(claim)).collect()
    }

    /// The images that have a sidecar and that no disk has. What a migration has
    /// counts only if it calls itself the truth: the state may be older than that.
    fn find_images(&self) -> Result<Vec<Found>> {
        let disks = self.store.disks()?;
        let migrations = self.store.open_migrations()?;
        let mut found = Vec::new();
        for handle in self.all_handles() {
            if self.is_in_hand(&handle, &disks, &migrations) {
                continue;
            }
            for mut one in images_of(&handle)? {
                let (datastore, file) = (one.datastore.as_str(), one.file.as_str());
                let has = |it: &DiskRecord| it.datastore == datastore && it.image == file;
                if disks.iter().any(has) {
                    continue;
                }
                let holder = migrations.iter().find(|it| it.has(datastore, file));
                one.migration = holder.map(|migration| migration.id);
                if one.migration.is_none() || one.is_active() {
                    found.push(one);
                }
            }
        }
        Ok(found)
    }

    /// Whether a datastore has room for one image, and that is of a disk that is
    /// served or its copy. It is known then, and its server may take no other client.
    fn is_in_hand(
        &self,
        handle: &DatastoreHandle,
        disks: &[DiskRecord],
        migrations: &[MigrationRecord],
    ) -> bool {
        let holds_many = handle.record().location.directory().is_some();
        let here = handle.name();
        let kept = disks.iter().filter(|it| it.datastore == here).map(|it| it.id);
        let moved = migrations.iter().filter(|it| it.is_on(here)).map(|it| it.disk);
        let mut mine = kept.chain(moved);
        !holds_many && mine.any(|disk| self.problem_of(disk).is_none())
    }

    /// Makes an image a disk again.
    fn take_in(&self, one: &Found, says: &Identity) -> Result<()> {
        let _claim = self.claims.alone(claim_of(&says.name))?;
        let handle = self.handle(&one.datastore)?;
        handle.follow_growth(&one.file, slice::from_ref(says), false)?;
        let image = handle.expect(&one.file, says)?;
        let record = DiskRecord {
            id: says.id,
            name: says.name.clone(),
            size: says.size,
            datastore: one.datastore.clone(),
            image: one.file.clone(),
            // As with an import. Nobody knows any more what it was, so the image is
            // treated as the operator's own: removing the disk keeps it.
            provision: match handle.get()?.is_thick(&image, says.size) {
                true => Provision::Thick,
                false => Provision::Thin,
            },
            imported: true,
            generation: says.generation + MARGIN,
            created: clock::now(),
            vhost_user: None,
        };
        let active = identity(&record, record.generation, Role::Active);
        handle.identify(&one.file, &active)?;
        if let Err(error) = self.begin(&record, &image, &handle) {
            // As it was, for the next try.
            let _ = handle.identify(&one.file, says);
            return Err(error);
        }
        let DiskRecord { id, name, datastore, generation, .. } = &record;
        tracing::info!(disk = name, %id, datastore, generation, "disk recovered");
        Ok(())
    }
}

/// The images of a datastore that have a sidecar.
fn images_of(handle: &DatastoreHandle) -> Result<Vec<Found>> {
    let unseen = |error: Error| {
        error.hint(format!(
            "Sterna recovers nothing before it has read this datastore, which may hold \
             newer images. Repair this; only if the datastore is lost for good, `sterna \
             datastore remove {}`, and recover again",
            handle.name()
        ))
    };
    // One that hangs is not waited for as long as a list may take.
    handle.must_answer_reads().map_err(unseen)?;
    let images = handle.images().map_err(unseen)?;
    let found = images.into_iter().map(|(found, locked)| Found {
        datastore: handle.name().into(),
        place: place_of(&handle.record().location, &found.file),
        locked,
        migration: None,
        says: found.identity,
        file: found.file,
    });
    Ok(found.collect())
}

fn view(one: &Found, taken: std::result::Result<(), String>) -> FoundImage {
    let sidecar = one.says.as_ref().ok().map(|says| Sidecar {
        disk: says.name.clone(),
        id: says.id.to_string(),
        size: says.size,
        generation: says.generation,
        role: match says.role {
            Role::Active => ImageRole::Active,
            Role::Partial => ImageRole::Partial,
            Role::Retired => ImageRole::Retired,
        },
    });
    FoundImage {
        datastore: one.datastore.clone(),
        image: one.place.clone(),
        sidecar,
        taken: taken.is_ok(),
        reason: taken.err(),
    }
}
