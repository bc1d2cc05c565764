//! What most tests begin with: a daemon, datastores `here` and `there`, and a
//! disk on `here`.

use std::path::PathBuf;

use crate::checker::{Checker, Options};
use crate::daemon::Daemon;
use crate::scratch::Scratch;

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

    /// Sets it with a daemon that `prepare` has changed.
    #[track_caller]
    pub fn with(prepare: impl FnOnce(&mut Daemon)) -> Stage {
        let scratch = Scratch::new();
        let mut daemon = Daemon::prepare(&scratch);
        prepare(&mut daemon);
        daemon.restart();
        let here = daemon.directory(&scratch, "here");
        let there = daemon.directory(&scratch, "there");
        Stage { daemon, here, there, scratch }
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
        crate::daemon::write_image(&file, size, data);
        let file = file.display();
        self.daemon.sterna(&format!("disk import {name} --on here {file}")).ok();
        self.daemon.uri(name)
    }

    /// Starts a checker on a disk, with its log beside the disks.
    #[track_caller]
    pub fn checker(&self, disk: &str, options: &Options) -> Checker {
        let log = self.scratch.path(&format!("{disk}.checked"));
        Checker::start(&self.daemon.uri(disk), &log, options)
    }
}

impl Default for Stage {
    fn default() -> Self {
        Stage::new()
    }
}
