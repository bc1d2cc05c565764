//! Whether a disk's place is still that disk's, after a time in which nobody looked.
//!
//! A disk that fills its device or its export has no room for a sidecar there. While the
//! daemon is down, two devices may swap their names, or a server may be started with another
//! file, and nothing at the place says so. So Sterna keeps a *fingerprint* of each such disk:
//! checksums of a few stretches of 4 KiB that are not zeroes. Before the disk is served again,
//! its place is asked for the same stretches, and [`whose`] judges the answers.
//!
//! # Rule
//!
//! | the place holds | it is |
//! |---|---|
//! | what another disk holds, wherever both disks are known to differ, and nowhere what this one holds, and the disk's clients cannot have written that | the other disk's |
//! | stretches of another disk that this one has not, at least [`CONTESTED`] and more than one in [`BY_ACCIDENT`] of them, and (nearly) none of those that only this one has, which are most of its own (all of it beyond the beginning) | the other disk's, whose clients went on writing after its last look |
//! | more than one in [`BY_ACCIDENT`] of the disk's stretches | the disk's own |
//! | no more than that, and nearly all stretches of another disk | the other disk's |
//! | no more than that, of at least [`FEWEST`], and the disk's clients cannot have written so much since | a stranger's |
//! | anything else | not known: the disk is served |
//!
//! All disks of one size are looked at in the same stretches, so that two clones of one image
//! are told apart by those in which they differ. So are two disks with the same kind of file
//! system, whose beginnings are alike. If only few stretches differ, the two may also be halves
//! of a mirror that a guest makes, one of them looked at later than the other.
//!
//! **A copy** must be as the daemon left it. If it has changed by more than its disk's clients
//! can have written ([`Fingerprint::changed_by_others`]), its place has got another use: the
//! state may come from a backup, and another disk have the place since. A disk may be written
//! to by others while no daemon runs.
//!
//! A fingerprint is as old as its last look. What clients have written since then is known
//! exactly if the daemon ended in good order. If it was killed, [`UNSEEN`] is added.
//!
//! # What cannot be told
//!
//! A disk of zeroes, or with fewer than [`FEWEST`] stretches of data among those that were
//! looked at; a disk that is rewritten as a whole in the minutes before a kill; two clones
//! that differ in fewer than [`CONTESTED`] of these, or were in use until a kill; and an older
//! state of the right disk: most stretches are equal there.

use crate::Nanos;
use crate::dice::Dice;

/// Stretches of a fingerprint, at most.
pub const MARKS: usize = 64;
/// The length of a stretch: a block of a file system, and of every device.
pub const STRETCH: u64 = 4096;
/// With fewer stretches, a place is not called a stranger's.
pub const FEWEST: usize = 8;
/// One stretch in so many may be equal by accident: empty file systems are alike.
pub const BY_ACCIDENT: usize = 8;
/// In so many stretches two disks must differ, to tell their places apart by these alone.
pub const CONTESTED: usize = 4;
/// Of a few stretches follows how much of a disk has changed, to a factor of about this.
const CERTAINLY: u64 = 2;
/// How often is looked whether a fingerprint is out of date.
pub const LOOK: Nanos = Nanos::from_secs(5);
/// The most that clients write between two looks, and what may be unrecorded, in bytes:
/// 6 GiB/s, which no single disk takes today.
pub const UNSEEN: u64 = 31 * GIB + UNRECORDED;
const GIB: u64 = 1 << 30;

/// Stretches at the beginning of a disk that make a fingerprint, at most: the others are
/// anywhere, where less is written.
const BEGINNING: usize = 24;
/// Where disks have something: at their beginning, and where a first partition begins.
const BEGINNINGS: [u64; 2] = [0, 1 << 20];
/// So many stretches of each beginning are looked at.
const RUN: u64 = 32;
/// So many stretches anywhere are looked at.
const ANYWHERE: usize = 256;
/// A fingerprint of which anything may be overwritten gets this old.
const OLD: Nanos = Nanos::from_secs(600);
/// And one of which much may be overwritten: ten reads a second are little to a disk whose
/// clients rewrite a quarter of it in that time.
const AGED: Nanos = Nanos::from_secs(30);
/// So much must be written before a fingerprint with few stretches is worth a new look.
const GROWN: u64 = 16 << 20;
/// What was written is recorded as soon as this much is not recorded yet, in bytes.
pub const UNRECORDED: u64 = 1 << 30;

/// Whether a stretch is where disks begin: clients write there again and again, and file
/// systems of one kind are alike there.
fn is_beginning(at: u64) -> bool {
    BEGINNINGS.iter().any(|start| (*start..start + RUN * STRETCH).contains(&at))
}

/// A stretch that is not zeroes, and its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Where it is, in bytes.
    pub at: u64,
    /// The checksum of its bytes.
    pub sum: u32,
}

/// The checksum of a stretch (CRC-32C).
pub fn checksum(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}

impl Mark {
    /// That of these bytes; none of zeroes, as all disks have them.
    pub fn of(at: u64, bytes: &[u8]) -> Option<Mark> {
        let sum = checksum(bytes);
        bytes.iter().any(|&byte| byte != 0).then_some(Mark { at, sum })
    }
}

/// What a disk is known by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fingerprint {
    /// Its stretches, [`MARKS`] at most.
    pub marks: Vec<Mark>,
    /// About how much of the disk is not zeroes, in bytes.
    pub data: u64,
    /// What its clients have written since, in bytes.
    pub written: u64,
    /// That is all they have written. If not, the daemon may have been killed.
    pub is_complete: bool,
}

impl Fingerprint {
    /// Looks at a disk of this size: `read` gives the bytes of a stretch, and nothing of one
    /// that cannot be read.
    pub fn take<E>(
        size: u64,
        mut read: impl FnMut(u64) -> Result<Option<Vec<u8>>, E>,
    ) -> Result<Fingerprint, E> {
        let stretches = size / STRETCH;
        let mut marks: Vec<Mark> = Vec::new();
        let beginnings = BEGINNINGS.iter().flat_map(|start| {
            let first = start / STRETCH;
            first..(first + RUN).min(stretches)
        });
        for number in beginnings {
            if marks.len() == BEGINNING {
                break;
            }
            let at = number * STRETCH;
            marks.extend(read(at)?.and_then(|bytes| Mark::of(at, &bytes)));
        }
        let (mut looked, mut found): (u128, u128) = (0, 0);
        // The same for all disks of a size.
        let mut dice = Dice::new(0);
        for _ in (0..ANYWHERE).filter(|_| stretches > 0) {
            if marks.len() == MARKS {
                break;
            }
            let at = dice.below(stretches) * STRETCH;
            let mark = read(at)?.and_then(|bytes| Mark::of(at, &bytes));
            looked += 1;
            found += u128::from(mark.is_some());
            marks.extend(mark.filter(|mark| marks.iter().all(|it| it.at != mark.at)));
        }
        let part = u128::from(size) * found / looked.max(1);
        let data = (part as u64).max(marks.len() as u64 * STRETCH);
        Ok(Fingerprint { marks, data, written: 0, is_complete: false })
    }

    /// Whether much of it may be overwritten, or more to be found, if its disk's clients
    /// have written so many bytes since it was taken.
    pub fn is_stale(&self, written: u64) -> bool {
        let is_weak = self.marks.len() < MARKS / 2;
        written > self.data / 4 || is_weak && written >= GROWN
    }

    /// Whether it is to be taken anew, if so much was written since it was taken `ago`.
    pub fn is_due(&self, written: u64, ago: Nanos) -> bool {
        let age = if self.marks.is_empty() { Nanos(0) } else { AGED };
        written > 0 && ago >= OLD || self.is_stale(written) && ago >= age
    }

    /// How many stretches could be read, and how many of them hold what they held.
    fn compare(&self, holds: &impl Fn(u64) -> Option<u32>) -> (usize, usize) {
        tally(self.marks.iter(), holds)
    }

    /// What has changed at a place by others than this disk's clients, if that much has:
    /// stretches that changed, and those that were read. Only the stretches that are anywhere
    /// count: clients write to the beginning again and again.
    pub fn changed_by_others(
        &self,
        holds: impl Fn(u64) -> Option<u32>,
    ) -> Option<(usize, usize)> {
        let (read, equal) = tally(self.anywhere(), &holds);
        let changed = read - equal;
        let surely = changed.saturating_sub(CONTESTED);
        let bytes = u128::from(self.data) * surely as u128 / (read as u128).max(1);
        let is_much = bytes > u128::from(CERTAINLY) * u128::from(self.written_at_most());
        is_much.then_some((changed, read))
    }

    /// Whether a place that holds these checksums may be this disk's.
    fn fits(&self, holds: impl Fn(u64) -> Option<u32>) -> bool {
        let (read, equal) = self.compare(&holds);
        equal * BY_ACCIDENT > read
    }

    /// Whether a place holds all of it, as far as that can be read: then [`whose`] finds that
    /// it is the disk's own, whatever others are known by.
    pub fn is_all_there(&self, holds: impl Fn(u64) -> Option<u32>) -> bool {
        let (read, equal) = self.compare(&holds);
        read > 0 && equal == read
    }

    /// Whether it is very likely this disk's.
    fn is_met(&self, holds: &impl Fn(u64) -> Option<u32>) -> bool {
        let (read, equal) = self.compare(holds);
        read >= FEWEST && (read - equal) * BY_ACCIDENT <= read
    }

    /// Its stretches beyond the beginning.
    fn anywhere(&self) -> impl Iterator<Item = &Mark> {
        self.marks.iter().filter(|mark| !is_beginning(mark.at))
    }

    /// Its stretches beyond the beginning that `other` has not: how many were read at a place,
    /// and how many of these the place holds.
    fn alone(
        &self,
        other: &Fingerprint,
        holds: &impl Fn(u64) -> Option<u32>,
    ) -> (usize, usize) {
        tally(self.anywhere().filter(|mark| !other.marks.contains(mark)), holds)
    }

    /// How much of what only `other` has a place holds, if the place is rather that disk's than
    /// this one's, and the two are no halves of a mirror.
    fn is_rather(
        &self,
        other: &Fingerprint,
        holds: &impl Fn(u64) -> Option<u32>,
    ) -> Option<usize> {
        let (own_read, own) = self.alone(other, holds);
        let (read, theirs) = other.alone(self, holds);
        let are_strangers =
            own_read >= CONTESTED && own_read * 2 > self.anywhere().count();
        let is_theirs = theirs >= CONTESTED && theirs * BY_ACCIDENT > read;
        (are_strangers && is_theirs && own * BY_ACCIDENT <= theirs).then_some(theirs)
    }

    /// Whether a place holds so much of it that it is proven to be this disk's.
    pub fn is_proven(&self, holds: impl Fn(u64) -> Option<u32>) -> bool {
        let (read, equal) = self.compare(&holds);
        read >= FEWEST && equal * 2 > read
    }

    /// The same of a place of which only a part could be read in time: enough beyond the
    /// beginning, and it holds nothing by which one of `others` would be known.
    pub fn is_proven_by_a_part<'a>(
        &self,
        mut others: impl Iterator<Item = &'a Fingerprint>,
        holds: impl Fn(u64) -> Option<u32>,
    ) -> bool {
        let (read, equal) = tally(self.anywhere(), &holds);
        let is_enough = read >= FEWEST && equal * 2 > read;
        is_enough && self.is_proven(&holds) && !others.any(|it| it.fits(&holds))
    }

    /// Whether a place holds what `other` holds wherever the two differ, and nowhere what
    /// this one holds, and the disk's clients cannot have written that: the two halves of a
    /// mirror that a guest makes change alike.
    pub fn yields_to(
        &self,
        other: &Fingerprint,
        holds: impl Fn(u64) -> Option<u32>,
    ) -> bool {
        let (mut own, mut others) = (0, 0);
        for mark in &self.marks {
            let there = other.marks.iter().find(|it| it.at == mark.at);
            let Some(theirs) = there.filter(|it| it.sum != mark.sum) else { continue };
            let held = holds(mark.at);
            own += usize::from(held == Some(mark.sum));
            others += usize::from(held == Some(theirs.sum));
        }
        let changed = others as u64 * STRETCH;
        own == 0 && others >= CONTESTED && self.written_at_most() < changed
    }

    /// The most that clients may have written since.
    fn written_at_most(&self) -> u64 {
        let unseen = if self.is_complete { 0 } else { UNSEEN };
        self.written.saturating_add(unseen)
    }
}

/// Of these stretches, how many could be read at a place, and how many of them hold what they
/// held.
fn tally<'a>(
    marks: impl Iterator<Item = &'a Mark>,
    holds: &impl Fn(u64) -> Option<u32>,
) -> (usize, usize) {
    let answers = marks.filter_map(|mark| Some(mark.sum == holds(mark.at)?));
    answers
        .fold((0, 0), |(read, equal), is_equal| (read + 1, equal + usize::from(is_equal)))
}

/// To whom a place belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose<T> {
    /// To the disk that is expected there.
    Own,
    /// To another disk that Sterna knows.
    Others(T),
    /// To nobody that Sterna knows.
    Strangers {
        /// So many stretches were compared.
        read: usize,
    },
    /// That cannot be told.
    Unknown,
}

/// Says whose a place is: `own` is what is expected there, `others` are other disks, and
/// `holds` gives the checksum of a stretch at the place, if that can be read.
pub fn whose<'a, T>(
    own: &Fingerprint,
    others: impl IntoIterator<Item = (T, &'a Fingerprint)> + Clone,
    holds: impl Fn(u64) -> Option<u32>,
) -> Whose<T> {
    let clone = others.clone().into_iter().find(|(_, it)| own.yields_to(it, &holds));
    if let Some((other, _)) = clone {
        return Whose::Others(other);
    }
    let rather =
        |(other, it): (T, &Fingerprint)| Some((own.is_rather(it, &holds)?, other));
    let rather = others.clone().into_iter().filter_map(rather);
    if let Some((_, other)) = rather.max_by_key(|(theirs, _)| *theirs) {
        return Whose::Others(other);
    }
    if own.fits(&holds) {
        return Whose::Own;
    }
    if let Some((other, _)) = others.into_iter().find(|(_, it)| it.is_met(&holds)) {
        return Whose::Others(other);
    }
    let (read, _) = own.compare(&holds);
    // Clients discard all of a disk in a moment, and a kill may come before that is recorded.
    let zero = checksum(&[0; STRETCH as usize]);
    let is_wiped =
        own.marks.iter().all(|mark| holds(mark.at).is_none_or(|sum| sum == zero));
    if is_wiped && !own.is_complete {
        return Whose::Unknown;
    }
    match read >= FEWEST && own.written_at_most() <= own.data / 2 {
        true => Whose::Strangers { read },
        false => Whose::Unknown,
    }
}

#[cfg(test)]
mod tests;
