//! Storage for tests: directories on a file system of this machine, and disks there.

use std::path::PathBuf;
use std::sync::{Arc, mpsc};

use sterna_api::{AddDatastore, Provision};
use sterna_core::DiskId;
use sterna_engine::boot::BootId;
use sterna_engine::datastore;
use sterna_engine::sidecar::Role;
use sterna_engine::{Config, Engine};
use sterna_os::{Descriptors, lock};
use sterna_state::{DiskRecord, Store};

use crate::Storage;
use crate::disks::identity;
use crate::handle::DatastoreHandle;
use crate::places::DaemonPlaces;

/// How large disks of tests are.
const SIZE: u64 = 1 << 20;

pub(crate) struct Stage {
    pub(crate) storage: Storage,
    scratch: tempfile::TempDir,
}

impl Stage {
    /// Storage with these datastores.
    pub(crate) fn with(datastores: &[&str]) -> Stage {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        // Datastores are outside of the state directory.
        let (state, socket) = (at("state"), at("api.sock"));
        std::fs::create_dir_all(state.join("accounts")).unwrap();
        let store = Store::open(&state.join("state.db")).unwrap();
        let places = DaemonPlaces { state, socket, nbd: Vec::new() };
        let engine = Engine::start(&Config { reactors: 1, ..Config::default() }).unwrap();
        let (held, _) = mpsc::channel();
        let (boot, descriptors) = (BootId([0; 16]), Descriptors::raise());
        let storage = Storage::new(store, engine, boot, places, descriptors, held);
        let stage = Stage { storage, scratch };
        for name in datastores {
            std::fs::create_dir(stage.directory(name)).unwrap();
            let location = stage.directory(name).display().to_string();
            let request = AddDatastore { name: (*name).into(), location, shape: None };
            stage.storage.add_datastore(&request).unwrap();
        }
        stage
    }

    pub(crate) fn directory(&self, datastore: &str) -> PathBuf {
        self.scratch.path().join(datastore)
    }

    pub(crate) fn handle(&self, datastore: &str) -> Arc<DatastoreHandle> {
        self.storage.handle(datastore).unwrap()
    }

    /// The disk `x` as a state knows it, and its image with that generation.
    pub(crate) fn image_of_x(&self, datastore: &str, generation: u64) -> DiskRecord {
        let disk = DiskRecord {
            id: DiskId(7),
            name: "x".into(),
            size: SIZE,
            datastore: datastore.into(),
            image: "x.raw".into(),
            provision: Provision::Thin,
            imported: false,
            generation,
            created: 0,
            vhost_user: None,
        };
        let says = identity(&disk, generation, Role::Active);
        let store = self.handle(datastore).get().unwrap();
        store.create_image(&says, datastore::Provision::Thin).unwrap();
        disk
    }

    /// The same, as a disk of this state.
    pub(crate) fn disk_x(&self, datastore: &str, generation: u64) -> DiskRecord {
        let disk = self.image_of_x(datastore, generation);
        self.storage.store.add_disk(disk.clone()).unwrap();
        disk
    }

    /// The disk is served from now on.
    pub(crate) fn is_served(&self, disk: &DiskRecord) {
        lock(&self.storage.served).insert(disk.id, Ok(()));
    }
}
