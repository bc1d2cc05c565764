//! What most tests begin with: a daemon, datastores `here` and `there`, and
//! disks on `here`.
//!
//! A test that needs a program or a right begins with [`Stage::given`] or
//! [`Stage::given_root`] and returns when there is no stage; the reason has been
//! said by then. What else is wanted is added by one call each, and lives until the
//! value that the call gives is dropped.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use crate::checker::{Checker, Options};
use crate::daemon::Daemon;
use crate::images::write_image;
use crate::places::{Loop, TinyFs};
use crate::programs;
use crate::scratch::Scratch;
use crate::servers::Nbdkit;

/// One mebibyte.
pub const MIB: u64 = 1 << 20;

/// A daemon with two directories as datastores.
pub struct Stage {
    /// The daemon. (Dropped before the directories it uses.)
    pub daemon: Daemon,
    /// The directory of the datastore `here`.
    pub here: PathBuf,
    /// The directory of the datastore `there`.
    pub there: PathBuf,
    /// Where everything is.
    pub scratch: Scratch,
}

impl Stage {
    /// Sets the stage.
    #[track_caller]
    pub fn new() -> Stage {
        Stage::with(|_| {})
    }

    /// Sets it, if all of these programs are there; if not, the test is skipped.
    #[track_caller]
    pub fn given(programs: &[&str]) -> Option<Stage> {
        programs::have(programs).then(Stage::new)
    }

    /// [`Stage::given`], and we are root.
    #[track_caller]
    pub fn given_root(programs: &[&str]) -> Option<Stage> {
        (programs::root() && programs::have(programs)).then(Stage::new)
    }

    /// Sets it with a daemon that `prepare` has changed.
    #[track_caller]
    pub fn with(prepare: impl FnOnce(&mut Daemon)) -> Stage {
        let scratch = Scratch::new();
        let mut daemon = Daemon::prepare(&scratch);
        prepare(&mut daemon);
        daemon.restart();
        let (here, there) = (scratch.dir("here"), scratch.dir("there"));
        let stage = Stage { daemon, here, there, scratch };
        stage.datastore("here", stage.here.display());
        stage.datastore("there", stage.there.display());
        stage
    }

    /// Sets it with a daemon that uses threads instead of `io_uring`.
    #[track_caller]
    pub fn with_threads() -> Stage {
        Stage::with(|daemon| daemon.arguments("--io threads"))
    }

    /// Sets it with the state directory on a file system of `size` bytes, if we are
    /// root.
    #[track_caller]
    pub fn given_tiny_state(size: u64) -> Option<(Stage, TinyFs)> {
        if !(programs::root() && programs::have(&["losetup", "mkfs.ext4"])) {
            return None;
        }
        let mut tiny = None;
        let stage = Stage::with(|daemon| {
            let file = daemon.state().with_extension("img");
            tiny = Some(TinyFs::new(&file, daemon.state(), size));
        });
        tiny.map(|tiny| (stage, tiny))
    }

    /// Adds a datastore at a location (and its shape, if it is to have one).
    #[track_caller]
    pub fn datastore(&self, name: &str, location: impl Display) {
        self.daemon.sterna(&format!("datastore add {name} {location}")).ok();
    }

    /// Adds a datastore on a fresh directory; gives the directory.
    #[track_caller]
    pub fn directory(&self, name: &str) -> PathBuf {
        let dir = self.scratch.dir(name);
        self.datastore(name, dir.display());
        dir
    }

    /// Adds a datastore on an NBD server with room for `size` bytes, behind these
    /// filters of nbdkit.
    #[track_caller]
    pub fn nbd_server(&self, name: &str, size: u64, filters: &[&str]) -> Nbdkit {
        let server = Nbdkit::on_new_file(&self.scratch, name, size, filters);
        self.datastore(name, server.location());
        server
    }

    /// Adds a datastore on a block device of `size` bytes.
    #[track_caller]
    pub fn block_device(&self, name: &str, size: u64) -> Loop {
        let device = Loop::new(&self.scratch.path(&format!("{name}.img")), size);
        self.datastore(name, device.device().display());
        device
    }

    /// Adds a datastore on a file system of `size` bytes.
    #[track_caller]
    pub fn tiny_fs(&self, name: &str, size: u64) -> TinyFs {
        let file = self.scratch.path(&format!("{name}.img"));
        let tiny = TinyFs::new(&file, &self.scratch.path(name), size);
        self.datastore(name, tiny.dir().display());
        tiny
    }

    /// The names of what disks and moves have left in `there`.
    #[track_caller]
    pub fn files_there(&self) -> Vec<String> {
        files_in(&self.there)
    }

    /// Creates a thin disk of `size` bytes on `here`; gives its URI.
    #[track_caller]
    pub fn disk(&self, name: &str, size: u64) -> String {
        self.daemon.sterna(&format!("disk create {name} --size {size} --on here")).ok();
        self.daemon.uri(name)
    }

    /// Imports a disk of `size` bytes on `here` of which the first `data` are
    /// not zero; gives its URI.
    #[track_caller]
    pub fn disk_with_data(&self, name: &str, size: u64, data: u64) -> String {
        let file = self.here.join(format!("{name}.raw"));
        write_image(&file, size, data);
        let file = file.display();
        self.daemon.sterna(&format!("disk import {name} --on here {file}")).ok();
        self.daemon.uri(name)
    }

    /// Makes an image that is no disk (yet), of which the first `data` bytes are
    /// not zero; gives its path.
    #[track_caller]
    pub fn image_file(&self, name: &str, size: u64, data: u64) -> String {
        let path = self.scratch.path(name);
        write_image(&path, size, data);
        path.display().to_string()
    }

    /// Starts a checker on a disk, with a fresh log.
    #[track_caller]
    pub fn checker(&self, disk: &str, options: &Options) -> Checker {
        let log = self.checked(disk);
        // What an earlier checker wrote there is of another load.
        let _ = std::fs::remove_file(&log);
        Checker::start(&self.daemon.uri(disk), &log, options)
    }

    /// The log of the checker on a disk.
    pub fn checked(&self, disk: &str) -> PathBuf {
        self.scratch.path(&format!("{disk}.checked"))
    }
}

impl Default for Stage {
    fn default() -> Self {
        Stage::new()
    }
}

/// The names of what disks and moves have left in a datastore's directory; the
/// datastore's own begin with a dot.
#[track_caller]
pub fn files_in(directory: &Path) -> Vec<String> {
    let found = std::fs::read_dir(directory).expect("read a directory");
    let names = found.flatten().map(|entry| entry.file_name());
    let names = names.map(|name| name.to_string_lossy().into_owned());
    names.filter(|name| !name.starts_with('.')).collect()
}
