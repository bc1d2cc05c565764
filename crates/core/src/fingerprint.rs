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
//! looked at; a disk that is rewritten as a whole in the minutes before a kill; two clones that
//! differ in fewer than [`CONTESTED`] of these, or were in use until a kill; and an older state of the right disk: most
//! stretches are equal there.

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
        let answers = self.marks.iter().filter_map(|mark| Some((mark, holds(mark.at)?)));
        answers.fold((0, 0), |(read, equal), (mark, sum)| {
            (read + 1, equal + usize::from(mark.sum == sum))
        })
    }

    /// What has changed at a place by others than this disk's clients, if that much has:
    /// stretches that changed, and those that were read. Only the stretches that are anywhere
    /// count: clients write to the beginning again and again.
    pub fn changed_by_others(
        &self,
        holds: impl Fn(u64) -> Option<u32>,
    ) -> Option<(usize, usize)> {
        let answers =
            self.anywhere().filter_map(|mark| Some(mark.sum == holds(mark.at)?));
        let (read, equal) = answers.fold((0, 0), |(read, equal), is_equal| {
            (read + 1, equal + usize::from(is_equal))
        });
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
        let alone = self.anywhere().filter(|mark| !other.marks.contains(mark));
        let answers = alone.filter_map(|mark| Some(mark.sum == holds(mark.at)?));
        answers
            .fold((0, 0), |(read, held), is_held| (read + 1, held + usize::from(is_held)))
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

    /// Whether so much of it is there that what others have need not be read.
    pub fn is_mostly_there(&self, holds: impl Fn(u64) -> Option<u32>) -> bool {
        let (read, equal) = self.compare(&holds);
        equal * 2 > read
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
mod tests {
    use std::convert::Infallible;

    use super::*;

    const SIZE: u64 = 64 << 30;

    /// The disk's bytes: each stretch is filled with one byte.
    fn taken(size: u64, byte: impl Fn(u64) -> u8) -> Fingerprint {
        let read = |at| Ok::<_, Infallible>(Some(vec![byte(at); STRETCH as usize]));
        let Ok(fingerprint) = Fingerprint::take(size, read);
        fingerprint
    }

    fn holds(byte: impl Fn(u64) -> u8) -> impl Fn(u64) -> Option<u32> {
        move |at| Some(checksum(&[byte(at); STRETCH as usize]))
    }

    fn nobody() -> [(&'static str, &'static Fingerprint); 0] {
        []
    }

    #[test]
    fn a_disk_is_known_by_what_it_holds() {
        let own = Fingerprint { is_complete: true, ..taken(SIZE, |_| 1) };
        assert_eq!((own.marks.len(), own.data), (MARKS, SIZE));
        assert_eq!(whose(&own, nobody(), holds(|_| 1)), Whose::Own);
        let read = MARKS;
        assert_eq!(whose(&own, nobody(), holds(|_| 2)), Whose::Strangers { read });
        assert_eq!(whose(&own, nobody(), holds(|_| 0)), Whose::Strangers { read });
        // An older state, or what its clients have written since.
        let changed = holds(|at| u8::from(at < SIZE / 2));
        assert_eq!(whose(&own, nobody(), changed), Whose::Own);
    }

    #[test]
    fn a_disk_at_the_place_of_another_is_named() {
        let one = taken(1 << 30, |_| 1);
        let two = taken(1 << 30, |_| 2);
        let both = || [("one", &one), ("two", &two)];
        // The daemon may have been killed: of a stranger nothing could be said.
        assert_eq!(whose(&one, both(), holds(|_| 2)), Whose::Others("two"));
        assert_eq!(whose(&one, both(), holds(|_| 1)), Whose::Own);
        assert_eq!(whose(&one, both(), holds(|_| 3)), Whose::Unknown);
        // An empty disk, where there is another's data now.
        let empty = taken(1 << 30, |_| 0);
        assert_eq!(whose(&empty, both(), holds(|_| 2)), Whose::Others("two"));
        assert_eq!(whose(&empty, both(), holds(|_| 3)), Whose::Unknown);
    }

    #[test]
    fn what_its_clients_may_have_written_makes_nobody_a_stranger() {
        let small = taken(1 << 30, |_| 1);
        for (written, is_complete, is_known) in [
            (0, false, false),
            (0, true, true),
            (small.data / 2, true, true),
            (small.data / 2 + 1, true, false),
        ] {
            let own = Fingerprint { written, is_complete, ..small.clone() };
            let told = whose(&own, nobody(), holds(|_| 2)) != Whose::Unknown;
            assert_eq!(told, is_known, "{written} {is_complete}");
        }
        let large = taken(1 << 40, |_| 1);
        let told = whose(&large, nobody(), holds(|_| 2));
        assert_eq!(told, Whose::Strangers { read: MARKS });
    }

    #[test]
    fn clones_are_told_apart_by_what_they_differ_in() {
        // Three quarters of both are the image they were cloned from.
        let bytes = |own: u8| move |at: u64| if at < SIZE / 4 { own } else { 9 };
        let all = |own| Fingerprint { is_complete: true, ..taken(SIZE, bytes(own)) };
        let (one, two) = (all(1), all(2));
        assert!(
            one.yields_to(&two, holds(bytes(2))) && !one.yields_to(&two, holds(bytes(1)))
        );
        let both = || [("one", &one), ("two", &two)];
        assert_eq!(whose(&one, both(), holds(bytes(2))), Whose::Others("two"));
        assert_eq!(whose(&one, both(), holds(bytes(1))), Whose::Own);
        // Some of its own was overwritten since, or all of that.
        let some = holds(|at| if at < SIZE / 8 { 1 } else { bytes(3)(at) });
        assert_eq!(whose(&one, both(), some), Whose::Own);
        // Both halves of a guest's mirror were written alike since this one was looked at.
        let half = Fingerprint { written: 1 << 20, ..one.clone() };
        assert_eq!(whose(&half, both(), holds(bytes(2))), Whose::Own);
        assert_eq!(whose(&one, both(), holds(bytes(3))), Whose::Own);
    }

    #[test]
    fn a_disk_that_was_written_to_until_a_kill_is_known_at_another_s_place() {
        let one = taken(1 << 30, |_| 1);
        let two = taken(1 << 30, |_| 2);
        let both = || [("one", &one), ("two", &two)];
        // Of each, the beginning is rewritten again and again: more than a third of the marks.
        let hot = |own: u8| holds(move |at| if at < 2 << 20 { 10 + own } else { own });
        assert_eq!(whose(&one, both(), hot(2)), Whose::Others("two"));
        assert_eq!(whose(&two, both(), hot(1)), Whose::Others("one"));
        assert_eq!(whose(&one, both(), hot(1)), Whose::Own);
        // Or five sixths of all.
        let sixth = |own: u8| {
            holds(move |at| if (at / STRETCH).is_multiple_of(6) { own } else { 10 + own })
        };
        assert_eq!(whose(&one, both(), sixth(2)), Whose::Others("two"));
        assert_eq!(whose(&one, both(), sixth(1)), Whose::Own);
        // Nothing is known of a disk of zeroes.
        let empty = taken(1 << 30, |_| 0);
        assert_eq!(whose(&empty, both(), sixth(2)), Whose::Unknown);
    }

    #[test]
    fn file_systems_of_one_kind_are_known_though_their_beginnings_are_alike() {
        let bytes = |own: u8| move |at: u64| if at < 2 << 20 { 9 } else { own };
        let (one, two) = (taken(1 << 30, bytes(1)), taken(1 << 30, bytes(2)));
        let both = || [("one", &one), ("two", &two)];
        // Half of each was written since it was looked at, and the daemon was killed.
        let half = |own: u8| {
            holds(
                move |at| {
                    if (at / STRETCH).is_multiple_of(2) { bytes(own)(at) } else { 7 }
                },
            )
        };
        assert_eq!(whose(&one, both(), half(2)), Whose::Others("two"));
        assert_eq!(whose(&two, both(), half(1)), Whose::Others("one"));
        assert_eq!(whose(&one, both(), half(1)), Whose::Own);
        // Of all that only they had, nothing is left: what is alike says nothing.
        assert_eq!(whose(&one, both(), half(3)), Whose::Own);
        // Halves of a mirror, one looked at when an eighth of it had changed.
        let all = |own: u8| {
            move |at: u64| if (at / STRETCH).is_multiple_of(8) { own } else { 9 }
        };
        let (older, newer) = (taken(1 << 30, all(1)), taken(1 << 30, all(2)));
        let both = [("older", &older), ("newer", &newer)];
        assert_eq!(whose(&older, both, holds(all(2))), Whose::Own);
    }

    #[test]
    fn a_copy_that_others_wrote_to_is_noticed() {
        let copy =
            Fingerprint { is_complete: true, written: 1 << 30, ..taken(SIZE, |_| 1) };
        let changed = |part: u64| holds(move |at| 1 + u8::from(at / STRETCH % 10 < part));
        assert_eq!(copy.changed_by_others(changed(0)), None);
        let (changes, read) = copy.changed_by_others(changed(4)).expect("it has changed");
        assert!(changes > read / 5 && changes < read * 3 / 5, "{changes} of {read}");
        // Its disk's clients may have written as much, or nobody knows what they have written.
        let wrote = Fingerprint { written: SIZE / 4, ..copy.clone() };
        assert_eq!(wrote.changed_by_others(changed(4)), None);
        let killed = Fingerprint { is_complete: false, ..taken(1 << 30, |_| 1) };
        assert_eq!(killed.changed_by_others(changed(4)), None);
        // They write to the beginning again and again.
        assert_eq!(copy.changed_by_others(holds(|at| 1 + u8::from(at < 2 << 20))), None);
        assert_eq!(copy.changed_by_others(|_| None), None);
    }

    #[test]
    fn where_all_is_there_nobody_else_need_be_known() {
        let bytes = |own: u8| move |at: u64| if at < SIZE / 4 { own } else { 9 };
        let (one, clone) = (taken(SIZE, bytes(1)), taken(SIZE, bytes(2)));
        let others = || [("clone", &clone), ("equal", &one)];
        assert!(one.is_all_there(holds(bytes(1))));
        assert_eq!(whose(&one, others(), holds(bytes(1))), Whose::Own);
        // Some of it cannot be read.
        let some = |at| (at > 0).then(|| checksum(&[bytes(1)(at); STRETCH as usize]));
        assert!(one.is_all_there(some));
        assert_eq!(whose(&one, others(), some), Whose::Own);
        assert!(!one.is_all_there(holds(bytes(2))) && !one.is_all_there(|_| None));
        assert!(!taken(SIZE, |_| 0).is_all_there(holds(|_| 0)), "nothing is known of it");
    }

    #[test]
    fn what_cannot_be_read_says_nothing() {
        let own = Fingerprint { is_complete: true, ..taken(SIZE, |_| 1) };
        assert_eq!(whose(&own, nobody(), |_| None), Whose::Unknown);
        let few: Vec<u64> = own.marks.iter().take(FEWEST - 1).map(|it| it.at).collect();
        let some = |at: u64| few.contains(&at).then_some(0);
        assert_eq!(whose(&own, nobody(), some), Whose::Unknown);
    }

    #[test]
    fn a_small_or_a_sparse_disk_gives_what_it_has() {
        assert_eq!(taken(STRETCH - 1, |_| 1), Fingerprint::default());
        assert_eq!(taken(STRETCH, |_| 1).marks.len(), 1);
        let sparse = taken(SIZE, |at| u8::from(at < 8 * STRETCH));
        assert_eq!((sparse.marks.len(), sparse.data), (8, 8 * STRETCH));
        assert!(taken(SIZE, |_| 0).marks.is_empty());
    }

    #[test]
    fn it_is_taken_anew_when_it_may_be_out_of_date() {
        let full = taken(SIZE, |_| 1);
        assert!(!full.is_due(0, OLD) && !full.is_due(4096, AGED));
        assert!(full.is_due(4096, OLD) && full.is_due(SIZE / 4 + 1, AGED));
        assert!(!full.is_due(SIZE, LOOK) && full.is_stale(SIZE));
        let weak = taken(SIZE, |at| u8::from(at == 0));
        assert!(!weak.is_due(GROWN, LOOK) && weak.is_due(GROWN, AGED));
        let empty = taken(SIZE, |_| 0);
        assert!(!empty.is_due(0, OLD) && empty.is_due(1, LOOK));
    }
}
