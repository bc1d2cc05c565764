//! Directories that go away again.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A directory for disks, on a real file system (direct I/O, holes), and one
/// for sockets, with a path short enough for them.
pub struct Scratch {
    disks: TempDir,
    sockets: TempDir,
}

impl Scratch {
    /// Fresh directories.
    pub fn new() -> Scratch {
        let base = base();
        fs::create_dir_all(&base).expect("make the scratch directory");
        let make = |dir: &Path| {
            tempfile::Builder::new()
                .prefix("t-")
                .tempdir_in(dir)
                .expect("make a temporary directory")
        };
        Scratch { disks: make(&base), sockets: make(&std::env::temp_dir()) }
    }

    /// A path in the directory for disks.
    pub fn path(&self, name: &str) -> PathBuf {
        self.disks.path().join(name)
    }

    /// A directory, made, in the directory for disks.
    pub fn dir(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(&path).expect("make a directory");
        path
    }

    /// A path for a socket.
    pub fn socket(&self, name: &str) -> PathBuf {
        self.sockets.path().join(name)
    }
}

impl Default for Scratch {
    fn default() -> Self {
        Scratch::new()
    }
}

/// Where scratch directories are: `STERNA_TEST_DIR`, or `tmp` in the build
/// directory, which is where the space is.
fn base() -> PathBuf {
    if let Some(dir) = std::env::var_os("STERNA_TEST_DIR") {
        return dir.into();
    }
    target_dir().join("tmp")
}

/// The build directory that this test was built into.
pub fn target_dir() -> PathBuf {
    // <target>/<profile>/deps/<test>
    let exe = std::env::current_exe().expect("the test's own path");
    exe.ancestors().nth(3).expect("a test is three levels deep").to_owned()
}
