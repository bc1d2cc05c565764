//! The accounts of the disks that are served.
//!
//! A disk gets its account with its first image whose keeper is known, with one that is there
//! already, or when its clients are to be told of a loss ([`Keep`]). It ends when nothing of the
//! disk is under way any more: then what is unflushed stays so.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sterna_core::DiskId;
use sterna_core::durability::Keeper;

use crate::account::{AccountSpec, Keep};
use crate::image::{OpenError, Opened};

/// By disk.
#[derive(Default)]
pub(super) struct Accounts(Mutex<HashMap<DiskId, Arc<Keep>>>);

impl Accounts {
    /// A disk comes with this image.
    pub(super) fn take_up(
        &self,
        disk: DiskId,
        spec: Option<AccountSpec>,
        image: &mut dyn Opened,
    ) -> Result<Option<Arc<Keep>>, OpenError> {
        let Some(spec) = spec else { return Ok(None) };
        let keep = Keep::new(disk, spec);
        if image.keeper().is_some() || keep.spec().is_there() {
            take_up(&keep, image)?;
        }
        self.lock().insert(disk, Arc::clone(&keep));
        Ok(Some(keep))
    }

    /// A disk gets another image, for a move. If its keeper is known, it has a line in the
    /// disk's account. (If there was none when the disk came, nothing is left of a daemon
    /// before.)
    pub(super) fn add(
        &self,
        disk: DiskId,
        image: &mut dyn Opened,
    ) -> Result<(), OpenError> {
        let keep = self.lock().get(&disk).cloned();
        match keep.filter(|_| image.keeper().is_some()) {
            Some(keep) => take_up(&keep, image),
            None => Ok(()),
        }
    }

    /// A disk has not come after all: its account is as it was left.
    pub(super) fn forget(&self, disk: DiskId) {
        self.lock().remove(&disk);
    }

    /// A disk has gone.
    pub(super) fn end(&self, disk: DiskId) {
        let keep = self.lock().remove(&disk);
        if let Some(keep) = keep {
            keep.end();
        }
    }

    /// All have.
    pub(super) fn end_all(&self) {
        let all = std::mem::take(&mut *self.lock());
        all.into_values().for_each(|keep| keep.end());
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<DiskId, Arc<Keep>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn take_up(keep: &Keep, image: &mut dyn Opened) -> Result<(), OpenError> {
    let (keeper, was_there) = (image.keeper(), keep.spec().is_there());
    match keep.take_up(keeper) {
        Ok(Some(line)) => image.keep(line),
        Ok(None) => {}
        // Nothing was to be told, and nothing is lost while the file system stays mounted.
        Err(error) if matches!(keeper, Some(Keeper::Kernel { .. })) && !was_there => {
            tracing::warn!(
                path = %keep.spec().path.display(), %error,
                "cannot keep whether a disk has unflushed writes; if the daemon ends and \
                 the file system is then mounted anew, clients are not told what they lost"
            );
        }
        Err(error) => return Err(failed(keep.spec(), &error)),
    }
    Ok(())
}

fn failed(spec: &AccountSpec, error: &io::Error) -> OpenError {
    let path = spec.path.display();
    let reason = format!(
        "cannot keep in {path} whether it has unflushed writes ({error}); check the state \
         directory"
    );
    OpenError::new("the image", reason)
}
