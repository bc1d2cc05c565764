//! The gate: clients come in once, and never to a disk whose mirror might miss
//! what they write.
//!
//! A region map that says `synced` is only right if every write since then went
//! through the mirror. A moving disk that clients can reach *before* it has its
//! mirror again (its destination does not answer, or the disk itself came late)
//! has writes that no mirror saw. So its map is distrusted first, in its file:
//! what was equal is then compared, never believed, however often the daemon is
//! killed meanwhile. A disk that gets its mirror before the first client can
//! connect, which is what happens after every ordinary restart, loses nothing.
//!
//! **Failure cases.** A damaged map is not believed later either: the mirror opens
//! the same file. One that cannot be read now is removed. A map that is locked is in the hands of a
//! mirror that is just starting; that takes moments, and clients wait for it.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use sterna_api::{Error, Result};
use sterna_core::mirror::{Doubt, REGION};
use sterna_engine::mirror::{MapError, MapFile, MapKey};
use sterna_os::lock;
use sterna_state::MigrationRecord;

/// How long a mirror may take from opening its map to running. It is memory and
/// one message to a reactor; a machine that is this busy is not right.
const STARTING: Duration = Duration::from_secs(10);
/// How often a map is tried that a starting mirror has.
const AGAIN: Duration = Duration::from_millis(5);

/// Whether clients can connect, and who would miss what they write.
#[derive(Debug, Default)]
pub struct Gate {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    open: bool,
    /// Disks that are served, or about to be, without their mirror.
    bare: HashMap<u64, MapKey>,
}

impl Gate {
    /// A moving disk is about to be served, and its mirror comes after that.
    pub fn serve_bare(&self, record: &MigrationRecord, map: &Path) -> Result<()> {
        let mut state = lock(&self.state);
        if state.open {
            return distrust(map, key(record));
        }
        state.bare.insert(record.id, key(record));
        Ok(())
    }

    /// The disk has its mirror, or never will.
    pub fn mirrored(&self, migration: u64) {
        lock(&self.state).bare.remove(&migration);
    }

    /// Opens the gate. From now on clients may come in.
    pub fn open(&self, map_of: impl Fn(u64) -> PathBuf) -> Result<()> {
        let deadline = Instant::now() + STARTING;
        loop {
            let mut state = lock(&self.state);
            let mut busy = None;
            for (&migration, &key) in &state.bare {
                match distrust(&map_of(migration), key) {
                    Ok(()) => {}
                    Err(error) => busy = Some(error),
                }
            }
            match busy {
                None => {
                    state.open = true;
                    return Ok(());
                }
                Some(error) if Instant::now() > deadline => return Err(error),
                Some(_) => {}
            }
            drop(state);
            thread::sleep(AGAIN);
        }
    }
}

fn key(record: &MigrationRecord) -> MapKey {
    // The constant is a small power of two.
    let region = REGION as u32;
    MapKey { migration: record.id, disk: record.disk, size: record.size, region }
}

/// Nothing that the map calls equal is believed any more.
fn distrust(path: &Path, key: MapKey) -> Result<()> {
    let distrusted = MapFile::open(path, key).and_then(|mut map| {
        map.doubt(Doubt::Everything);
        map.flush()
    });
    match distrusted {
        Ok(()) => {
            let migration = key.migration;
            tracing::info!(migration, "served before its mirror: will compare");
            Ok(())
        }
        Err(error @ MapError::Busy(_)) => Err(Error::unavailable(error)),
        // One that is not there cannot be believed.
        Err(MapError::Io { .. }) => match MapFile::remove(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                let message = format!("cannot give up {}: {error}", path.display());
                let hint = "check the state directory";
                Err(Error::unavailable(message).hint(hint))
            }
            _ => Ok(()),
        },
        // The mirror will not believe it either, and says why.
        Err(_) => Ok(()),
    }
}
