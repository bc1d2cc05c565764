//! Migrations from outside: what the daemon calls.
//!
//! A migration is named by its id; which disk it moves is remembered (`migrations`) from
//! its start until its driver is gone. Calls about a migration that is not (or
//! no longer) known fail with `MigrateError::Unknown`, which for an answer to a
//! step of the switch-over means that nobody waits for it any more.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use sterna_core::Nanos;
use sterna_core::mirror::{
    Commit, Control, Counted, Fault, Findings, Found, Present, Progress, REGION,
};

use super::{Engine, EngineError};
use crate::disk::{Migrates, Placed};
use crate::image::{self, HeldFile, Image, ImageSpec, OpenError, Opened};
use crate::mirror::{
    MapError, MapFile, MapKey, Message, MigrationEvent, MigrationId, MigrationSpec,
    MirrorDriver, SourceLook, Start,
};
use crate::origin;

/// Why a migration cannot be started or spoken to.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    /// No such migration is under way.
    #[error("the migration {} is not under way", .0.0)]
    Unknown(MigrationId),
    /// The disk is being migrated already.
    #[error("the disk is being migrated already")]
    Migrating,
    /// One is over, and the source has not answered all that it asked for.
    #[error(
        "the disk's datastore has not answered a request of the migration before: \
         Sterna waits for the answer"
    )]
    SourceSilent,
    /// The destination is smaller than the disk.
    #[error("the destination has {image} bytes, the disk {disk}")]
    TooSmall {
        /// Bytes of the destination.
        image: u64,
        /// Bytes of the disk.
        disk: u64,
    },
    /// Another program has the destination open for writing.
    #[error("another program has {} open for writing", .0.display())]
    WrittenByOthers(PathBuf),
    /// The destination cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The region map cannot be made, or is not to be believed.
    #[error(transparent)]
    Map(#[from] MapError),
    /// There is no memory for the copier.
    #[error("cannot start the copier: {0}")]
    Memory(io::Error),
    /// The engine says no.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl Engine {
    /// Starts a migration, or takes one up again. What it has to say comes
    /// through `events`, until `Released`.
    ///
    /// # Errors
    ///
    /// If nothing could be started; the disk is then served as before. A region
    /// map that is damaged is `MigrateError::Map`; `Start::Suspect` goes on
    /// without it.
    pub fn migrate(
        &self,
        migration: &MigrationSpec,
        events: Sender<MigrationEvent>,
    ) -> Result<(), MigrateError> {
        let (id, disk, options) = (migration.id, migration.disk, migration.options);
        let size = self.on_disk(disk, |disk, _| match disk.migrates() {
            None => Ok(disk.core.size),
            Some(Migrates::Now) => Err(MigrateError::Migrating),
            Some(Migrates::AwaitsSource) => Err(MigrateError::SourceSilent),
        })??;
        let placed = self.open_destination(migration, size)?;
        self.note_locks(&migration.budget);
        // Here and not on the reactor, where guests would wait for it.
        let map = Counted::new(open_map(migration, size)?);
        let migrations = Arc::clone(&self.0.migrations);
        let started = self.on_disk(disk, move |state, cx| {
            if state.migrates().is_some() {
                return Err(MigrateError::Migrating);
            }
            state.core.notes_what_is_owed(cx.now);
            let destination = state.core.add_image(cx, placed);
            let core = &mut state.core;
            match MirrorDriver::start(core, cx, id, &options, map, destination, events) {
                Ok(driver) => state.set_driver(Box::new(driver)),
                Err(error) => {
                    core.close_image(cx, destination);
                    return Err(MigrateError::Memory(error));
                }
            }
            // Not sooner: who asks for one that is known and not there takes it for over,
            // and forgets it.
            migrations.begins(id, disk);
            Ok(())
        });
        started.map_err(MigrateError::from).and_then(|result| result)
    }

    /// A migration is to go on. Whether it has let go of its destination, because of which
    /// it stands still, and which is to be opened anew then; it does not do so any more.
    pub fn has_left(&self, id: MigrationId) -> Result<bool, MigrateError> {
        self.on_driver(id, |driver, _, _| driver.has_left())
    }

    /// Whether a migration has its destination open.
    pub fn holds_destination(&self, id: MigrationId) -> Result<bool, MigrateError> {
        self.on_driver(id, |driver, _, _| driver.holds_destination())
    }

    /// A migration that stands still because of its destination may let go of it. Says
    /// whether it stands still for that.
    pub fn leave(&self, id: MigrationId) -> Result<bool, MigrateError> {
        self.on_driver(id, |driver, core, cx| driver.leave(core, cx))
    }

    /// Opens the destination of a migration anew that has let go of it. Blocks.
    pub fn come_back(&self, migration: &MigrationSpec) -> Result<(), MigrateError> {
        let size = self.on_disk(migration.disk, |disk, _| disk.core.size)?;
        let placed = self.open_destination(migration, size)?;
        let found = found(&migration.destination);
        self.on_driver(migration.id, move |driver, core, cx| {
            core.notes_what_is_owed(cx.now);
            driver.come_back(core, cx, placed, &found);
        })
    }

    /// What others have done to a migration's source since it was looked at last, or since the
    /// migration began. If they have written to it, both sides are compared. Blocks.
    pub fn look_at_source(
        &self,
        id: MigrationId,
        source: &ImageSpec,
    ) -> Result<SourceLook, MigrateError> {
        let found = found(source);
        self.on_driver(id, move |driver, core, cx| {
            driver.look_at_source(core, cx, &found)
        })
    }

    /// While a migration stood still, others may have written to an image where nobody sees it:
    /// what was compared until then is compared again.
    pub fn compare_again(&self, id: MigrationId) -> Result<(), MigrateError> {
        self.tell(id, Message::Unwatched)
    }

    /// Pauses, resumes, cancels or limits a migration.
    pub fn control(&self, id: MigrationId, control: Control) -> Result<(), MigrateError> {
        self.tell(id, Message::Control(control))
    }

    /// The daemon's answer to `Prepare`: the intention is durable, and so long did the
    /// commit's record take; or nothing.
    pub fn prepared(
        &self,
        id: MigrationId,
        record: Option<Nanos>,
    ) -> Result<(), MigrateError> {
        self.tell(id, Message::Prepared(record))
    }

    /// The daemon's answer to `Seal`.
    pub fn sealed(
        &self,
        id: MigrationId,
        result: Result<(), Fault>,
    ) -> Result<(), MigrateError> {
        self.tell(id, Message::Sealed(result))
    }

    /// The daemon's answer to `Commit`.
    pub fn committed(&self, id: MigrationId, commit: Commit) -> Result<(), MigrateError> {
        self.tell(id, Message::Committed(commit))
    }

    /// The file of a migration's destination and its name; none where it is no file.
    pub fn held_destination(
        &self,
        id: MigrationId,
    ) -> Result<Option<Arc<HeldFile>>, MigrateError> {
        self.on_driver(id, |driver, core, _| {
            core.image(driver.destination()).and_then(Image::named)
        })
    }

    /// Somebody else has written to the destination: nothing is believed of it any more. All
    /// that was copied is compared, and what is a hole on the source is zeroed.
    pub fn distrust(&self, id: MigrationId) -> Result<(), MigrateError> {
        self.tell(id, Message::Distrust)
    }

    /// A migration in figures.
    pub fn progress(&self, id: MigrationId) -> Result<Progress, MigrateError> {
        self.on_driver(id, |driver, _, cx| driver.progress(cx.now))
    }

    /// What somebody should know of a migration's two images.
    pub fn findings(&self, id: MigrationId) -> Result<Findings, MigrateError> {
        self.on_driver(id, |driver, _, _| driver.findings())
    }

    /// Opens the destination. If it is at a server, the disk has an account then.
    fn open_destination(
        &self,
        migration: &MigrationSpec,
        size: u64,
    ) -> Result<Placed, MigrateError> {
        if let Some(path) = image::written_by_others(&migration.destination) {
            return Err(MigrateError::WrittenByOthers(path.into()));
        }
        let budget = &migration.budget;
        let mut opened = image::open(&migration.destination, budget.crew())?;
        check_size(&*opened, size)?;
        opened.belong(migration.disk, size)?;
        self.0.accounts.add(migration.disk, &mut *opened)?;
        let image = image::slowed(opened, budget);
        let pool = Arc::clone(budget.pool());
        Ok(Placed { image, pool, keeps_room: !migration.options.thin })
    }

    fn tell(&self, id: MigrationId, message: Message) -> Result<(), MigrateError> {
        self.on_driver(id, move |driver, core, cx| driver.message(core, cx, message))
    }

    fn on_driver<T: Send + 'static>(
        &self,
        id: MigrationId,
        f: impl FnOnce(&mut MirrorDriver, &mut crate::disk::Core, &mut image::Cx) -> T
        + Send
        + 'static,
    ) -> Result<T, MigrateError> {
        let disk = self.0.migrations.disk(id).ok_or(MigrateError::Unknown(id))?;
        let result = self.on_disk(disk, move |disk, cx| {
            let (driver, core) = disk.driver_mut::<MirrorDriver>()?;
            (driver.id() == id).then(|| f(driver, core, cx))
        })?;
        result.ok_or_else(|| {
            self.0.migrations.is_over(id);
            MigrateError::Unknown(id)
        })
    }
}

fn check_size(opened: &dyn Opened, disk: u64) -> Result<(), MigrateError> {
    let image = opened.size();
    if image < disk { Err(MigrateError::TooSmall { image, disk }) } else { Ok(()) }
}

fn open_map(migration: &MigrationSpec, size: u64) -> Result<MapFile, MapError> {
    // The constant is a small power of two.
    let region = REGION as u32;
    let key = MapKey { migration: migration.id.0, disk: migration.disk, size, region };
    let mut map = match migration.start {
        Start::Fresh | Start::Suspect => {
            MapFile::create(&migration.map, key, migration.boot)?
        }
        Start::Resume => MapFile::open(&migration.map, key)?,
    };
    let present = Present {
        boot: migration.boot.0,
        map: origin::storage(&migration.map),
        source: found(&migration.source),
        destination: found(&migration.destination),
        now: origin::now(),
    };
    match migration.start {
        Start::Fresh => map.adopt(&present)?,
        Start::Suspect => {
            map.suspect_all();
            map.adopt(&present)?;
        }
        Start::Resume => {
            if let Some(why) = map.believe(&present)? {
                let migration = migration.id.0;
                tracing::info!(migration, %why, "Sterna compares what was copied");
            }
        }
    }
    Ok(map)
}

/// What an image is known by now. A server's is not known again.
fn found(image: &ImageSpec) -> Found {
    match image {
        ImageSpec::File { path, .. } => origin::found(path),
        ImageSpec::Nbd(_) => Found::default(),
    }
}
