//! The accounts of the disks that are served.
//!
//! A disk gets its account with its first image whose keeper is known, with one that is there
//! already, or when its clients are to be told of a loss ([`Keep`]). It ends when nothing of the
//! disk is under way any more: then what is unflushed stays so. A disk in a file whose account
//! cannot be written is served without one if nobody is to be told of anything; the account is
//! tried again until it is there ([`Engine::complete_accounts`]).

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sterna_core::DiskId;
use sterna_core::durability::Keeper;

use super::{Engine, EngineError};
use crate::account::{AccountSpec, Keep, Late, Line};
use crate::disk::Disk;
use crate::image::{Cx, OpenError, Opened};

/// The places of the accounts of all disks that are served.
#[derive(Default)]
pub(super) struct Accounts {
    by_disk: Mutex<HashMap<DiskId, Arc<Keep>>>,
    late: Late,
}

impl Accounts {
    /// A disk comes with this image.
    pub(super) fn take_up(
        &self,
        disk: DiskId,
        spec: Option<AccountSpec>,
        image: &mut dyn Opened,
    ) -> Result<Option<Arc<Keep>>, OpenError> {
        let Some(spec) = spec else { return Ok(None) };
        let keep = Keep::new(disk, spec, Arc::clone(&self.late));
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

    /// The line of an image that was opened without. Nothing if its disk has gone.
    fn line_for(&self, disk: DiskId, keeper: Keeper) -> io::Result<Option<Line>> {
        let keep = self.lock().get(&disk).cloned();
        keep.map_or(Ok(None), |keep| keep.take_up_late(keeper))
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
        self.by_disk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine {
    /// Makes the accounts that could not be made when their disks came: what is unflushed by
    /// now is noted there. For one caller, again and again. Blocks for as long as the state
    /// directory hangs.
    pub fn complete_accounts(&self) -> Result<(), EngineError> {
        let lacking = self.call_all(|reactor| reactor.without_line())?;
        for (disk, image, keeper) in lacking.into_iter().flatten() {
            match self.0.accounts.line_for(disk, keeper) {
                Ok(Some(line)) => {
                    let keep = move |disk: &mut Disk, cx: &mut Cx| {
                        disk.core.keep_late(cx, image, line);
                    };
                    // A disk that has gone meanwhile needs none.
                    if self.on_disk(disk, keep).is_ok() {
                        tracing::info!(%disk, "a disk has its account now");
                    }
                }
                Ok(None) => {}
                Err(error) => tracing::debug!(%disk, %error, "a disk has no account yet"),
            }
        }
        Ok(())
    }
}

fn take_up(keep: &Keep, image: &mut dyn Opened) -> Result<(), OpenError> {
    let keeper = image.keeper();
    let is_a_file = !matches!(keeper, Some(Keeper::Server { .. }));
    match keep.take_up(keeper) {
        Ok(Some(line)) => image.keep(line),
        Ok(None) => {}
        // Nothing is lost while the file system stays mounted.
        Err(error) if is_a_file && !keep.owes(keeper) => {
            tracing::warn!(
                path = %keep.spec().path.display(), %error,
                "cannot keep whether a disk has unflushed writes, and tries again every few \
                 seconds; if the daemon ends before, and the file system is then mounted \
                 anew, clients are not told what they lost"
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::BootId;
    use crate::image::Image;
    use crate::io::ImageId;

    const DISK: DiskId = DiskId(9);

    /// An image with a keeper, and its line.
    struct Kept(Keeper, Option<Line>);

    impl Opened for Kept {
        fn size(&self) -> u64 {
            1 << 20
        }

        fn keeper(&self) -> Option<Keeper> {
            Some(self.0)
        }

        fn keep(&mut self, line: Line) {
            self.1 = Some(line);
        }

        fn start(self: Box<Self>, _cx: &mut Cx, _id: ImageId) -> Box<dyn Image> {
            unreachable!("it is only opened")
        }
    }

    const FILE: Keeper = Keeper::Kernel { address: 4 };
    const SERVER: Keeper = Keeper::Server { address: 7, shares: true };

    #[test]
    fn a_disk_in_a_file_is_served_without_an_account_if_nothing_is_owed() {
        let directory = tempfile::tempdir().unwrap();
        // In the first nothing can be written; in the second's place is what nobody can read,
        // and the third's directory is away: they may have said anything.
        let away = directory.path().join("nosuch/account");
        let paths = ["/proc/account".into(), directory.path().into(), away];
        let served = [(FILE, [true, false, false]), (SERVER, [false; 3])];
        for (keeper, is_served) in served {
            for (path, is_served) in paths.iter().zip(is_served) {
                let spec = AccountSpec { path: path.clone(), boot: BootId([3; 16]) };
                let mut image = Kept(keeper, None);
                let taken = Accounts::default().take_up(DISK, Some(spec), &mut image);
                assert_eq!(taken.is_ok(), is_served, "{keeper:?} {path:?}");
                assert!(image.1.is_none());
            }
        }
    }

    #[test]
    fn an_account_that_has_ended_well_owes_nothing() {
        for unflushed in [false, true] {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("account");
            let spec = AccountSpec { path, boot: BootId([3; 16]) };
            let (accounts, mut image) = (Accounts::default(), Kept(FILE, None));
            accounts.take_up(DISK, Some(spec.clone()), &mut image).unwrap();
            image.1.as_mut().unwrap().set(unflushed);
            drop(image);
            accounts.end(DISK);
            let anew = Some(Keeper::Kernel { address: 5 });
            let next = Keep::new(DISK, spec.clone(), Late::default());
            assert_eq!(next.owes(anew), unflushed);
            spec.remove().unwrap();
        }
    }
}
