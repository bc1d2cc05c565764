//! Whether a state directory is older than a disk, where the disk's own place cannot tell.
//!
//! An image says of itself whose it is, and its generation: an old state (a backup that was
//! restored) expects a lower one, and serves nothing. A disk that fills its device or export
//! has no room for that; what it says is kept in the state directory, and is as old as the
//! state. So before such a disk is served, the other datastores are asked for an image of the
//! disk with a higher generation.
//!
//! **What is not found**: an image on a datastore that does not answer in time, one whose
//! file has another name than the disk's, and one that fills its place as well. A disk is not
//! kept from its clients because a datastore that it is not on is away.

use std::sync::Arc;
use std::time::Duration;

use sterna_api::{Error, Result};
use sterna_engine::sidecar::Role;
use sterna_state::DiskRecord;

use crate::Storage;
use crate::asker::{Asked, Asker};
use crate::fingerprints::fills;
use crate::handle::DatastoreHandle;

/// How long others may take to tell: clients wait for the disk.
const TELLING: Duration = Duration::from_secs(2);

impl Storage {
    /// Refuses a disk that fills its place, if another datastore has a newer image of it.
    pub fn check_is_newest(&self, disk: &DiskRecord, on: &DatastoreHandle) -> Result<()> {
        if !fills(disk.size, on.get()?.size_at_opening()) {
            return Ok(());
        }
        let mut others = self.all_handles();
        others.retain(|it| it.name() != disk.datastore);
        let asked: Vec<(Arc<DatastoreHandle>, Asked<Option<u64>>)> =
            others.into_iter().map(|other| (other.clone(), ask(other, disk))).collect();
        let newer = asked.into_iter().filter_map(|(other, asked)| {
            let generation = asked.answer()??;
            (generation > disk.generation).then_some((generation, other))
        });
        match newer.max_by_key(|(generation, _)| *generation) {
            Some((generation, other)) => Err(is_older(disk, generation, other.name())),
            None => Ok(()),
        }
    }
}

/// Asks a datastore for the generation of an image of that disk which is, or was, in use.
fn ask(other: Arc<DatastoreHandle>, disk: &DiskRecord) -> Asked<Option<u64>> {
    let (id, size) = (disk.id, disk.size);
    let file = match other.is_shared() {
        true => format!("{}.raw", disk.name),
        false => String::new(),
    };
    Asker::default().ask(TELLING, move || {
        other.open().ok()?;
        let says = other.says(&file, size).ok()??;
        // A copy that was not finished is nobody's truth.
        (says.id == id && says.role == Role::Active).then_some(says.generation)
    })
}

fn is_older(disk: &DiskRecord, generation: u64, there: &str) -> Error {
    let name = &disk.name;
    let message = format!(
        "datastore {there} has a newer image of the disk (generation {generation}; this state \
         knows {}): the state directory is older than the disk",
        disk.generation
    );
    Error::in_use(message).hint(format!(
        "restore the newest state directory; if there is none, `sterna disk remove {name} \
         --keep-image`, then `sterna disk recover`"
    ))
}
