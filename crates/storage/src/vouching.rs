//! Whether a place that was in use is still none of another disk's, where the place itself
//! cannot tell: asked before it is used again.
//!
//! - **An export whose connections are all lost**, and of which nothing is known to be durable
//!   (`sterna_engine` asks): whatever answers there is compared with the places of all other
//!   disks, as before a move (`twins`), unless its fingerprint is the disk's own. A copy is
//!   compared in any case. Nothing is written.
//! - **The destination of a move that is taken up again**: the same. No tracers are written
//!   there: a kill would leave them in what counts as copied.
//!
//! A disk's own other place is left out: a copy is alike.
//!
//! **In doubt.** If another disk's place does not answer, it cannot be compared. A copy that
//! has lost its export then waits. A disk that clients use does not: their requests would wait
//! for the place of another disk, which may be gone for good. Nor does a move that is taken up
//! again: `fingerprints` knows other disks also while they are away.
//!
//! **What is not found**: another disk's place that has only zeroes, and two exports without
//! fingerprints that are swapped in the same moment. A clone that is equal to its original in
//! all that is read counts as its original, until the disk has a fingerprint.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use sterna_api::{ErrorCode, Result};
use sterna_core::DiskId;
use sterna_engine::Vouched;
use sterna_engine::datastore::Location;
use sterna_os::lock;

use crate::Storage;
use crate::handle::DatastoreHandle;
use crate::twins::InDoubt;

/// How long an answer that was not good stands. The right server is used that much later.
const STANDS: Duration = Duration::from_secs(10);

/// What was said of exports.
#[derive(Default)]
pub(crate) struct Answers {
    /// By their addresses.
    all: HashMap<String, (Instant, Vouched)>,
    /// How often somebody has said that a server is the right one now: an answer to a question
    /// of before says nothing any more.
    round: u64,
}

/// A disk with its size, and what is there of it.
type Owner = (DiskId, u64, String);

impl Storage {
    /// Answers for exports that the engine does not know.
    pub fn vouch(self: &Arc<Self>) {
        let storage: Weak<Storage> = Arc::downgrade(self);
        self.engine.appoint_voucher(Box::new(move |uri| {
            let location = Location::Nbd(uri.clone());
            let told = storage.upgrade().map(|storage| storage.vouch_again(&location));
            told.flatten().unwrap_or_else(|| Vouched::Unclear("the daemon stops".into()))
        }));
    }

    /// The same as a short while ago, if that was not good: to compare two places reads
    /// another disk's place for seconds, and the engine asks every second. Nothing once the
    /// daemon stops: the engine waits for the answer.
    fn vouch_again(&self, location: &Location) -> Option<Vouched> {
        let address = location.to_string();
        let round = {
            let known = lock(&self.vouched);
            match known.all.get(&address) {
                Some((since, told)) if since.elapsed() < STANDS => {
                    return Some(told.clone());
                }
                _ => known.round,
            }
        };
        let told = (!self.is_ending()).then(|| self.vouch_for(location))?;
        // What was left out for that must not count as good.
        if self.is_ending() {
            return None;
        }
        let mut known = lock(&self.vouched);
        known.all.retain(|_, (since, _)| since.elapsed() < STANDS);
        if told != Vouched::Fine && known.round == round {
            known.all.insert(address, (Instant::now(), told.clone()));
        }
        Some(told)
    }

    /// Somebody says that a datastore's server is the right one now: it is asked anew.
    pub fn ask_again(&self, datastore: &str) {
        if let Ok(on) = self.handle(datastore) {
            let mut known = lock(&self.vouched);
            known.round += 1;
            known.all.remove(&on.record().location.to_string());
        }
    }

    fn vouch_for(&self, location: &Location) -> Vouched {
        let mut handles = self.all_handles().into_iter();
        let Some(on) = handles.find(|it| it.record().location == *location) else {
            return Vouched::Fine;
        };
        let told = self.owners(&on).and_then(|(owners, in_doubt)| {
            let mut is_proven = false;
            for (disk, size, what) in &owners {
                is_proven |= self.check_place(*disk, *size, what, &on)?;
            }
            // What a copy was known by may have been learned in the moment in which another
            // export answered there. So it is compared all the same, with what can be read.
            let in_doubt = match (is_proven, in_doubt) {
                (true, InDoubt::Pass) => return Ok(()),
                (true, InDoubt::Refuse) => InDoubt::Pass,
                (false, in_doubt) => in_doubt,
            };
            let owners: Vec<DiskId> = owners.into_iter().map(|(disk, ..)| disk).collect();
            self.check_is_no_twin_of_others(&on, &on.get()?, &owners, in_doubt)
        });
        match told {
            Ok(()) => Vouched::Fine,
            Err(error) if error.code != ErrorCode::Unavailable => {
                Vouched::Another(error.message)
            }
            Err(error) => Vouched::Unclear(error.message),
        }
    }

    /// The disks that are, or have a copy, on a device or server; and what follows if that
    /// cannot be compared with the place of another disk.
    fn owners(&self, on: &DatastoreHandle) -> Result<(Vec<Owner>, InDoubt)> {
        let disks = self.store.disks()?.into_iter();
        let disks = disks.filter(|it| it.datastore == on.name());
        let mut owners: Vec<Owner> =
            disks.map(|it| (it.id, it.size, format!("disk {}", it.name))).collect();
        let in_doubt = if owners.is_empty() { InDoubt::Refuse } else { InDoubt::Pass };
        let moves = self.store.open_migrations()?.into_iter();
        let copies = moves.filter(|it| it.to.datastore == on.name());
        owners.extend(
            copies.map(|it| (it.disk, it.size, format!("the copy of disk {}", it.name))),
        );
        Ok((owners, in_doubt))
    }

    /// Refuses the destination of a move that was under way, if another disk, or the copy of
    /// another move, is there.
    pub fn check_is_still_free(&self, to: &DatastoreHandle, disk: DiskId) -> Result<()> {
        if to.is_shared() {
            return Ok(());
        }
        let _placing = self.placing(to);
        let store = to.get()?;
        self.check_is_no_twin_of_others(to, &store, &[disk], InDoubt::Pass)
    }
}
