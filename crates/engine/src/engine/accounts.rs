//! The accounts of the disks that are served.
//!
//! A disk gets its account with its first image at a server, or with one that is there
//! already. It ends when nothing of the disk is under way any more: then what is unflushed
//! stays so.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sterna_core::DiskId;

use crate::account::{Account, AccountSpec};
use crate::image::{OpenError, Opened};

/// By disk.
#[derive(Default)]
pub(super) struct Accounts(Mutex<HashMap<DiskId, Kept>>);

/// What is known of a disk's account.
struct Kept {
    spec: AccountSpec,
    account: Option<Arc<Account>>,
}

impl Accounts {
    /// A disk comes with this image.
    pub(super) fn take_up(
        &self,
        disk: DiskId,
        spec: Option<AccountSpec>,
        image: &mut dyn Opened,
    ) -> Result<Option<Arc<Account>>, OpenError> {
        let Some(spec) = spec else { return Ok(None) };
        let account = match image.server().is_some() || spec.is_there() {
            true => Some(take_up(disk, &spec, image)?),
            false => None,
        };
        self.lock().insert(disk, Kept { spec, account: account.clone() });
        Ok(account)
    }

    /// A disk gets another image, for a move. Gives the account if that is at a server.
    pub(super) fn add(
        &self,
        disk: DiskId,
        image: &mut dyn Opened,
    ) -> Result<Option<Arc<Account>>, OpenError> {
        let Some(now) = image.server() else { return Ok(None) };
        let mut all = self.lock();
        let Some(kept) = all.get_mut(&disk) else { return Ok(None) };
        if let Some(account) = &kept.account {
            let line = account.line(now, false);
            image.keep(line.map_err(|error| failed(&kept.spec, &error))?);
        } else {
            // There was none when the disk came, so nothing is left of a daemon before.
            kept.account = Some(take_up(disk, &kept.spec, image)?);
        }
        Ok(kept.account.clone())
    }

    /// A disk has not come after all: its account is as it was left.
    pub(super) fn forget(&self, disk: DiskId) {
        self.lock().remove(&disk);
    }

    /// A disk has gone.
    pub(super) fn end(&self, disk: DiskId) {
        let kept = self.lock().remove(&disk);
        if let Some(account) = kept.and_then(|kept| kept.account) {
            account.end();
        }
    }

    /// All have.
    pub(super) fn end_all(&self) {
        let all = std::mem::take(&mut *self.lock());
        for account in all.into_values().filter_map(|kept| kept.account) {
            account.end();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<DiskId, Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn take_up(
    disk: DiskId,
    spec: &AccountSpec,
    image: &mut dyn Opened,
) -> Result<Arc<Account>, OpenError> {
    let taken = Account::take_up(spec, disk, image.server());
    let (account, line) = taken.map_err(|error| failed(spec, &error))?;
    if let Some(line) = line {
        image.keep(line);
    }
    Ok(account)
}

fn failed(spec: &AccountSpec, error: &io::Error) -> OpenError {
    let path = spec.path.display();
    let reason = format!(
        "cannot keep in {path} whether it has unflushed writes ({error}); check the state \
         directory"
    );
    OpenError::new("the image", reason)
}
