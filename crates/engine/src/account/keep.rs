//! The place of a disk's account, whether the disk has one yet or not.
//!
//! A disk has one from the beginning, or gets one with its first image at a server. If the
//! state directory has no room for that of a disk in a file, the disk is served all the same, and
//! its images get their lines late, when there is room (`take_up_late`). If its clients are to
//! be told of a loss before, the account is tried at once: a reactor must not wait for the
//! state directory, so that is done on a thread of its own, and what is to be told is noted
//! when the account is there.
//!
//! An account that is made late is made while no disk takes up its own ([`Late`]): its disk may
//! go meanwhile, come again, and find the account as it was left; what is written late must
//! not be written over what the disk notes then.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::thread;

use sterna_core::DiskId;
use sterna_core::durability::{Clients, Keeper, Loss};

use super::{Account, AccountSpec, Line};

/// Whoever makes an account late holds this alone, and each disk that takes up its own shares it.
/// All accounts are in one directory: if it hangs, so would the next account.
pub(crate) type Late = Arc<RwLock<()>>;

/// Where a disk's account is, or will be.
#[derive(Debug)]
pub(crate) struct Keep {
    spec: AccountSpec,
    disk: DiskId,
    account: OnceLock<Arc<Account>>,
    /// Whoever makes it holds this, for as long as the state directory may hang.
    making: Mutex<()>,
    late: Late,
    /// It is being made because of a loss. If that fails, the next loss or client tries again.
    is_asked_for: AtomicBool,
    /// No client is served any more. Whoever makes an account looks here after it has set
    /// the account, and whoever ends looks for the account after this: one of the two ends it.
    ended: AtomicBool,
}

impl Keep {
    /// A place where nothing was looked for yet.
    pub(crate) fn new(disk: DiskId, spec: AccountSpec, late: Late) -> Arc<Keep> {
        let (account, making) = (OnceLock::new(), Mutex::default());
        let (is_asked_for, ended) = (AtomicBool::default(), AtomicBool::default());
        Arc::new(Keep { spec, disk, account, making, late, is_asked_for, ended })
    }

    /// Where it is.
    pub(crate) fn spec(&self) -> &AccountSpec {
        &self.spec
    }

    /// The account, if there is one.
    pub(crate) fn account(&self) -> Option<&Arc<Account>> {
        self.account.get()
    }

    /// Whether one is being made, or was, because of a loss.
    pub(crate) fn is_asked_for(&self) -> bool {
        self.is_asked_for.load(Ordering::Relaxed)
    }

    /// The account is needed for an image at this server, or for what a daemon before has
    /// left. Gives the image's line. Blocks.
    pub(crate) fn take_up(&self, now: Option<Keeper>) -> io::Result<Option<Line>> {
        if let Some(account) = self.account.get() {
            return now.map(|now| account.line(now, false)).transpose();
        }
        let _shared = self.late.read().unwrap_or_else(PoisonError::into_inner);
        self.make(now)
    }

    fn make(&self, now: Option<Keeper>) -> io::Result<Option<Line>> {
        let _making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(account) = self.account.get() {
            return now.map(|now| account.line(now, false)).transpose();
        }
        let (account, line) = Account::take_up(&self.spec, self.disk, now)?;
        let _ = self.account.set(account);
        Ok(line)
    }

    /// The same for an image that was opened without a line. Nothing if its disk has gone.
    pub(crate) fn take_up_late(&self, now: Keeper) -> io::Result<Option<Line>> {
        let _alone = self.late.write().unwrap_or_else(PoisonError::into_inner);
        if self.ended.load(Ordering::SeqCst) {
            return Ok(None);
        }
        let line = self.make(Some(now))?;
        if !self.ended.load(Ordering::SeqCst) {
            return Ok(line);
        }
        drop(line);
        if let Some(account) = self.account.get() {
            account.end();
        }
        Ok(None)
    }

    /// Whether a daemon before has left something to tell, although no account can be made.
    pub(crate) fn owes(&self, now: Option<Keeper>) -> bool {
        self.account.get().is_none() && Account::is_owed(&self.spec, self.disk, now)
    }

    /// Clients are to be told of this, and there is no account yet. What fails now may succeed
    /// at the next call: the state directory was full for a moment.
    pub(crate) fn make_for(self: &Arc<Self>, loss: Loss, clients: Clients) {
        if self.is_asked_for.swap(true, Ordering::Relaxed) {
            return;
        }
        let keep = Arc::clone(self);
        let make = move || {
            let _alone = keep.late.write().unwrap_or_else(PoisonError::into_inner);
            let _making = keep.making.lock().unwrap_or_else(PoisonError::into_inner);
            if keep.ended.load(Ordering::SeqCst) || keep.account.get().is_some() {
                return;
            }
            match Account::take_up(&keep.spec, keep.disk, None) {
                Ok((account, _)) => {
                    account.owes(Some(loss), clients);
                    let _ = keep.account.set(Arc::clone(&account));
                    if keep.ended.load(Ordering::SeqCst) {
                        account.end();
                    }
                }
                Err(error) => {
                    tracing::warn!(
                        path = %keep.spec.path.display(), %error,
                        "cannot keep what clients of a disk are still to be told; if the \
                         daemon ends now, they are not told"
                    );
                    keep.is_asked_for.store(false, Ordering::Relaxed);
                }
            }
        };
        let spawned = thread::Builder::new().name("sterna-account".into()).spawn(make);
        if let Err(error) = spawned {
            tracing::warn!(%error, "no thread to keep what clients are still to be told");
            self.is_asked_for.store(false, Ordering::Relaxed);
        }
    }

    /// No client is served any more. Does not wait for who makes an account.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
        if let Some(account) = self.account.get() {
            account.end();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::boot::BootId;

    fn keep_in(directory: &tempfile::TempDir) -> Arc<Keep> {
        let path = directory.path().join("account");
        Keep::new(DiskId(9), AccountSpec { path, boot: BootId([3; 16]) }, Late::default())
    }

    #[test]
    fn an_account_that_is_made_for_a_loss_tells_the_next_daemon() {
        let directory = tempfile::tempdir().unwrap();
        let keep = keep_in(&directory);
        let clients = Clients { all: 2, owed: 1 };
        keep.make_for(Loss::FlushFailed, clients);
        let end = Instant::now() + Duration::from_secs(20);
        while keep.account().is_none() {
            assert!(Instant::now() < end, "no account was made");
            thread::yield_now();
        }
        // The daemon ends well, and something is left to tell.
        keep.end();
        let next = keep_in(&directory);
        next.take_up(None).unwrap();
        let found = next.account().map(|account| account.left());
        assert_eq!(found, Some((Some(Loss::FlushFailed), clients)));
        next.spec().remove().unwrap();
    }

    #[test]
    fn an_account_that_could_not_be_made_is_made_at_the_next_loss() {
        let directory = tempfile::tempdir().unwrap();
        let there = directory.path().join("accounts");
        let spec = AccountSpec { path: there.join("9"), boot: BootId([3; 16]) };
        let keep = Keep::new(DiskId(9), spec, Late::default());
        let clients = Clients { all: 2, owed: 1 };
        keep.make_for(Loss::FlushFailed, clients);
        let end = Instant::now() + Duration::from_secs(20);
        while keep.is_asked_for() {
            assert!(Instant::now() < end, "it is still being made");
            thread::yield_now();
        }
        assert!(keep.account().is_none());
        std::fs::create_dir(&there).unwrap();
        keep.make_for(Loss::FlushFailed, clients);
        while keep.account().is_none() {
            assert!(Instant::now() < end, "no account was made");
            thread::yield_now();
        }
        keep.spec().remove().unwrap();
    }

    #[test]
    fn a_disk_that_comes_again_waits_for_the_account_that_is_made_late() {
        let directory = tempfile::tempdir().unwrap();
        let gone = keep_in(&directory);
        // As if the state directory hung while the account of the disk that went is made.
        let late = gone.late.write().unwrap();
        gone.end();
        let again = Keep::new(gone.disk, gone.spec.clone(), Arc::clone(&gone.late));
        let comes = Arc::clone(&again);
        let server = Keeper::Kernel { address: 7 };
        let coming =
            thread::spawn(move || comes.take_up(Some(server)).unwrap().is_some());
        thread::sleep(Duration::from_millis(50));
        assert!(again.account().is_none() && !coming.is_finished());
        drop(late);
        assert!(coming.join().unwrap() && again.account().is_some());
        again.spec().remove().unwrap();
    }

    #[test]
    fn after_the_end_no_account_is_made() {
        let directory = tempfile::tempdir().unwrap();
        let keep = keep_in(&directory);
        keep.end();
        let late = keep.take_up_late(Keeper::Kernel { address: 7 });
        assert!(late.unwrap().is_none() && !keep.spec().is_there());
        keep.make_for(Loss::FlushFailed, Clients::default());
        while Arc::strong_count(&keep) > 1 {
            thread::yield_now();
        }
        assert!(keep.account().is_none() && !keep.spec().is_there());
    }
}
