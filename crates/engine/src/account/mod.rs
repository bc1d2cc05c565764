//! A disk's account: whether its clients were answered what a server may drop, kept where a
//! kill of the daemon leaves it. What follows from it is decided by
//! [`sterna_core::durability`].
//!
//! The account is in two places, as a region map is. In `memory` are its words: one for what
//! clients are still to be told, one for their number, and a *line* for each server that an
//! image of the disk is on, or file. A line changes when the first write after a flush is
//! answered, and when a flush has covered all; then it is one store into memory that is mapped,
//! before anybody is answered. In the state directory is a file of 64 bytes (`record`) that names
//! that memory and the boot, and is written when the daemon takes the disk up and when it ends
//! well. It tells a memory that is gone from one that never was, and nothing waits for it on a
//! reactor.
//!
//! Each word has the checksum of the account's generation, the word's place and its value,
//! so a word of an older account, or in the wrong place, does not pass for one of ours.
//!
//! **Failure cases.** A record or a word that is damaged, and a record of another disk, make the
//! account unreadable. If the memory is gone (`/dev/shm` was emptied, in a container that was
//! made anew), the record says whether something was owed or in doubt, and in which mounting the
//! file was.
//! A record that cannot be written fails the opening of an image at a server: the disk
//! would be served without one. A disk in a file is served without if nothing is owed, and
//! gets its account when that can be written (`Engine::complete_accounts`); until then it is
//! among the troubles of disks. A kill before that is not known of.
//! A disk in a file that is not known again needs no account before clients are to be told of
//! something: that a server forgot where the disk was before, or that a flush of the file has
//! failed. For the latter it is made then (`keep`), on a thread; a kill before it is there is
//! not known of.

mod keep;
mod record;
mod words;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use sterna_core::DiskId;
use sterna_core::durability::{Clients, Keeper, Legacy, Loss, Past};

use crate::boot::BootId;
use crate::memory::{Home, Memory, Name};
pub(crate) use keep::{Keep, Late};
use record::{Record, Says, State, Written};
use words::Words;
pub(crate) use words::address;

/// Where a disk's account is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountSpec {
    /// Its file in the state directory.
    pub path: PathBuf,
    /// The present boot.
    pub boot: BootId,
}

impl AccountSpec {
    /// Whether there has been one.
    pub(crate) fn is_there(&self) -> bool {
        std::fs::symlink_metadata(&self.path).is_ok()
    }

    /// Takes it away with its disk.
    pub fn remove(&self) -> io::Result<()> {
        if let Ok(Some(record)) = record::read(&self.path) {
            Memory::remove(Name::Account(record.generation));
        }
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// The account of a disk that is served.
#[derive(Debug)]
pub(crate) struct Account {
    record: Arc<Written>,
    words: Words,
    /// The lines that an image has, a bit each.
    taken: AtomicU32,
    /// What a daemon before has left to tell.
    left: Option<Loss>,
    /// The clients of then.
    clients: Clients,
}

impl Account {
    /// Takes up the account of a disk, whose image is at this server now or in a file: what
    /// a daemon before has left comes to what is given with it, and is kept until clients
    /// have heard it. Blocks.
    pub(crate) fn take_up(
        spec: &AccountSpec,
        disk: DiskId,
        now: Option<Keeper>,
    ) -> io::Result<(Arc<Account>, Option<Line>)> {
        let (past, found, stale) = left(spec, disk);
        let Legacy { owes, clients, unflushed } = past.legacy(now);
        let says = Says { owed: owes.is_some(), kernel: kernel(now) };
        let (record, words) = match found {
            Some((record, words)) => (going_on(spec, record, says), words),
            None => {
                let begun = begin(spec, disk, says, (owes, clients))?;
                // Until then it is what makes the account unreadable, and somebody is told.
                stale.into_iter().for_each(Memory::remove);
                begun
            }
        };
        // A kill at any of these leaves at least what there was.
        words.set_owed(owes, clients);
        let old = words.lines_in_use();
        let taken = AtomicU32::new(old);
        let record = Arc::new(Written::new(spec.path.clone(), record));
        let account = Account { record, words, taken, left: owes, clients };
        let account = Arc::new(account);
        let line = now.map(|now| account.line(now, unflushed)).transpose()?;
        for at in (0..words::LINES).filter(|at| old & 1 << at != 0) {
            account.free(at);
        }
        account.words.set_doubts(0);
        Ok((account, line))
    }

    /// What a daemon before has left to tell clients.
    pub(crate) fn is_owed(spec: &AccountSpec, disk: DiskId, now: Option<Keeper>) -> bool {
        left(spec, disk).0.legacy(now).owes.is_some()
    }

    /// What a daemon before has left to tell clients, and how many there were.
    pub(crate) fn left(&self) -> (Option<Loss>, Clients) {
        (self.left, self.clients)
    }

    /// Notes what clients are still to be told. Two stores to memory; the first time, a thread
    /// has the record say so, too.
    pub(crate) fn owes(&self, loss: Option<Loss>, clients: Clients) {
        self.words.set_owed(loss, clients);
        if loss.is_some() {
            self.record.says_owed();
        }
    }

    /// A line for an image with its keeper, which may have answered unflushed writes already.
    pub(crate) fn line(
        self: &Arc<Self>,
        keeper: Keeper,
        unflushed: bool,
    ) -> io::Result<Line> {
        for at in 0..words::LINES {
            let bit = 1 << at;
            if self.taken.fetch_or(bit, Ordering::Relaxed) & bit == 0 {
                let [flushed, open] =
                    [false, true].map(|is| self.words.sealed_line(at, keeper, is));
                let account = Arc::clone(self);
                let doubtful = false;
                let mut line = Line { account, at, flushed, open, unflushed, doubtful };
                line.store();
                return Ok(line);
            }
        }
        Err(io::Error::other("the disk has too many images at once"))
    }

    /// Only the disk's reactor changes lines.
    fn set_doubtful(&self, at: u32, doubtful: bool) {
        let others = self.words.doubts().unwrap_or_default() & !(1 << at);
        self.words.set_doubts(others | u32::from(doubtful) << at);
        if doubtful {
            self.record.says_owed();
        }
    }

    fn free(&self, at: u32) {
        self.words.free_line(at);
        self.taken.fetch_and(!(1 << at), Ordering::Relaxed);
    }

    /// No client is served any more, and nothing is under way: if nothing is left to tell,
    /// the next daemon finds nothing.
    pub(crate) fn end(&self) {
        if self.words.has_open() {
            if self.words.owes() {
                // The thread that notes it may not come to that before the process ends.
                self.record.note_owed();
            }
            return;
        }
        match self.record.ends_well() {
            Ok(generation) => Memory::remove(Name::Account(generation)),
            Err(error) => tracing::warn!(
                path = %self.record.path().display(), %error,
                "cannot note that all writes of a disk are flushed; the memory that says \
                 so stays"
            ),
        }
    }
}

/// The memory of the account at `path`, if one is there that has not ended well.
pub(crate) fn memory_of(path: &Path) -> Option<Name> {
    let record = record::read(path).ok().flatten()?;
    (record.state == State::Open).then_some(Name::Account(record.generation))
}

/// This machine's kernel, if it keeps what is written.
fn kernel(now: Option<Keeper>) -> Option<u32> {
    match now {
        Some(Keeper::Kernel { address }) => Some(address),
        _ => None,
    }
}

/// The record of an account that is gone on with: written anew if it is to say something else.
/// If that fails, it does without: the memory is there.
fn going_on(spec: &AccountSpec, record: Record, says: Says) -> Record {
    let new = Record { says, ..record };
    if new == record {
        return record;
    }
    match record::write(&spec.path, &new) {
        Ok(()) => new,
        Err(error) => {
            tracing::debug!(path = %spec.path.display(), %error, "a record is as it was");
            record
        }
    }
}

/// A new account. Its record comes last: until then the one before counts.
fn begin(
    spec: &AccountSpec,
    disk: DiskId,
    says: Says,
    (owes, clients): (Option<Loss>, Clients),
) -> io::Result<(Record, Words)> {
    let generation = record::new_generation();
    let record = Record { generation, disk, boot: spec.boot, state: State::Open, says };
    let words = Words::create(generation, owes, clients, Home::of(&spec.path).as_ref())?;
    let written = record::write(&spec.path, &record);
    if written.is_err() {
        Memory::remove(Name::Account(generation));
    }
    written?;
    Ok((record, words))
}

/// What a daemon before has left, and the memory of it if that can be gone on with. If not, what
/// there is of it.
fn left(
    spec: &AccountSpec,
    disk: DiskId,
) -> (Past, Option<(Record, Words)>, Option<Name>) {
    let record = match record::read(&spec.path) {
        Ok(Some(record)) if record.disk == disk => record,
        Ok(None) => return (Past::Nothing, None, None),
        Ok(Some(_)) | Err(_) => return (Past::Unreadable, None, None),
    };
    if record.boot != spec.boot {
        return (Past::OtherBoot, None, None);
    }
    if record.state == State::EndedWell {
        return (Past::Nothing, None, None);
    }
    let name = Name::Account(record.generation);
    let is_gone = name.path().symlink_metadata().is_err_and(|error| {
        // Any other error says nothing of what it held.
        error.kind() == io::ErrorKind::NotFound
    });
    if is_gone {
        let Says { owed, kernel } = record.says;
        let kernel = kernel.map(|address| Keeper::Kernel { address });
        return (Past::MemoryGone { owed, kernel }, None, None);
    }
    match Words::open(record.generation).and_then(|words| Some((words.read()?, words))) {
        Some((past, words)) => (past, Some((record, words)), None),
        None => (Past::Unreadable, None, Some(name)),
    }
}

/// The line of an image in its disk's account. If the image goes with unflushed writes, and
/// has not closed the line, it stays.
#[derive(Debug)]
pub(crate) struct Line {
    account: Arc<Account>,
    at: u32,
    flushed: u64,
    open: u64,
    unflushed: bool,
    doubtful: bool,
}

impl Line {
    /// Whether writes were answered that no flush has covered: noted before anybody is
    /// answered.
    pub(crate) fn set(&mut self, unflushed: bool) {
        if unflushed != self.unflushed {
            self.unflushed = unflushed;
            self.store();
        }
    }

    pub(crate) fn is_unflushed(&self) -> bool {
        self.unflushed
    }

    pub(crate) fn is_doubtful(&self) -> bool {
        self.doubtful
    }

    /// Whether a flush is under way of which nobody may hear any more how it ends.
    pub(crate) fn set_doubtful(&mut self, doubtful: bool) {
        if std::mem::replace(&mut self.doubtful, doubtful) != doubtful {
            self.account.set_doubtful(self.at, doubtful);
        }
    }

    /// Whether a daemon before has left writes of which nobody knows any more what became.
    pub(crate) fn follows_a_loss(&self) -> bool {
        self.account.left.is_some()
    }

    /// The image's last writes are lost: all clients are to be told.
    pub(crate) fn is_lost(&self) {
        let all = self.account.words.clients().unwrap_or_default().all;
        let clients = Clients { all, owed: all.max(1) };
        self.account.owes(Some(Loss::FlushFailed), clients);
    }

    fn store(&mut self) {
        let word = if self.unflushed { self.open } else { self.flushed };
        self.account.words.store_line(self.at, word);
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if !self.unflushed {
            self.set_doubtful(false);
            self.account.free(self.at);
        }
    }
}

#[cfg(test)]
mod tests;
