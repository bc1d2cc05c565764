//! Whether the export behind a new connection is the one that was there before, with the
//! bytes that must be there.
//!
//! An address says nothing of what answers there: a server that is started anew may serve
//! another disk's file, or an older state of the right one. So an image keeps *witnesses*: a
//! few stretches of 4 KiB, and what was read there. A new connection carries nothing until
//! they have been read over it and [`Witnesses::judge`] has said what it leads to.
//!
//! # Rule
//!
//! - A witness is what was *read* while no write to its stretch was under way. (What is
//!   written may change in the guest's memory while it is sent.)
//! - It *counts* as soon as a flush covers all that was answered before the read began: one
//!   that began after that, or the knowledge that nothing is unflushed. A server may forget
//!   the rest by right. A connection that is lost before takes the witness with it.
//!   After that, only a flush makes others count: it is not known what is unflushed.
//! - A write takes the witnesses away that it overlaps, when it is submitted. One that has
//!   failed may still end, or may have ended in part: no witness is taken there any more.
//! - Answers are judged by the witnesses that are still there when all have come: what was
//!   written meanwhile, over other connections, is no evidence.
//!
//! | witnesses that count | the export is |
//! |---|---|
//! | all that were read are equal, or there is none | the same |
//! | some differ, and more than one in [`BY_ACCIDENT`] is equal | the same in an older state: what was flushed is gone |
//! | some differ, and no more than that are equal | another |
//!
//! Zeroes prove a change, and no identity: all disks have them, so they count where they
//! differ. Other disks may also have a few blocks in common that are not zeroes, such as
//! those of an empty file system.
//!
//! # Invariants
//!
//! 1. The same server is never taken for another, nor for an older state, whatever it has
//!    forgotten of what no flush covers.
//! 2. A server that differs from a witness, and has none that is not zeroes, is never used.
//!
//! # What cannot be told
//!
//! As long as no witness counts that is not zeroes, nothing proves the same export: whoever
//! knows the other disks is asked then ([`Witnesses::strength`]). A disk that has only zeroes
//! cannot be told from any other; nor can two disks that were cloned from one image,
//! where more than one witness in [`BY_ACCIDENT`] is in what they have in common.

use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;

use crate::ByteRange;
use crate::dice::Dice;

/// Witnesses at most. As many 4 KiB are read over each new connection.
pub const WITNESSES: usize = 64;
/// The length of a stretch.
pub const STRETCH: u64 = 4096;
/// One in so many may be equal by accident.
pub const BY_ACCIDENT: usize = 8;
/// Witnesses of zeroes at most: they must not take the place of better ones.
const ZEROES_MAX: usize = WITNESSES / 4;
/// Witnesses at most that do not count yet.
const PENDING: usize = WITNESSES / 4;
/// Places that guests have used, where the next witnesses are looked for.
const PLACES: usize = 32;
/// A place that is used now takes that of another about once in so many.
const MEMORY: u64 = 256;
/// Attempts to find a stretch.
const TRIES: usize = 16;

/// What a stretch holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    hash: u64,
    is_zero: bool,
}

impl Content {
    /// That of these bytes. Comparable within a process only.
    pub fn of(bytes: &[u8]) -> Content {
        let mut hasher = DefaultHasher::new();
        hasher.write(bytes);
        let is_zero = bytes.iter().all(|&byte| byte == 0);
        Content { hash: hasher.finish(), is_zero }
    }
}

/// A witness, to be asked for over a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    id: u64,
    /// What to read.
    pub range: ByteRange,
}

/// What a new connection leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The same export, as far as is known.
    Same,
    /// The same one, without some of what was flushed.
    Older,
    /// Another one.
    Another {
        /// So many places say something.
        read: usize,
    },
}

#[derive(Clone, Copy, Debug)]
struct Witness {
    id: u64,
    at: u64,
    content: Content,
    /// A flush covers it.
    counts: bool,
}

/// A stretch that is being read.
#[derive(Clone, Copy, Debug)]
struct Look {
    id: u64,
    at: u64,
    counts: bool,
}

/// The witnesses of an image.
#[derive(Clone, Debug)]
pub struct Witnesses {
    size: u64,
    /// By their places.
    all: Vec<Witness>,
    looking: Option<Look>,
    /// The number of the last look, or loss of a connection.
    last: u64,
    /// A connection was lost then, and what was answered on it may be unflushed still.
    stray: Option<u64>,
    /// Where a write has failed.
    doubtful: Option<ByteRange>,
    places: Vec<u64>,
    used: u64,
    dice: Dice,
}

impl Witnesses {
    /// None yet, of a disk of this size. The seed decides where they are looked for.
    pub fn new(size: u64, seed: u64) -> Witnesses {
        Witnesses {
            size,
            all: Vec::with_capacity(WITNESSES + PENDING),
            looking: None,
            last: 0,
            stray: None,
            doubtful: None,
            // The first block is seldom zeroes.
            places: vec![0],
            used: 0,
            dice: Dice::new(seed),
        }
    }

    /// A write to `range`, or zeroes, begin.
    pub fn writes(&mut self, range: ByteRange) {
        if self.looking.is_some_and(|look| stretch(look.at).overlaps(range)) {
            self.looking = None;
        }
        let first = self.all.partition_point(|it| it.at + STRETCH <= range.offset);
        let count = self.all[first..].partition_point(|it| it.at < range.end());
        self.all.drain(first..first + count);
        self.uses(range);
    }

    /// A client reads or writes there: something may be there that is worth a look.
    pub fn uses(&mut self, range: ByteRange) {
        self.used = (self.used + 1).min(MEMORY);
        let (slot, within) =
            (self.dice.below(self.used) as usize, self.dice.below(range.len));
        let at = range.offset + within;
        let known = self.places.len();
        match self.places.get_mut(slot) {
            Some(place) => *place = at,
            None if known < PLACES => self.places.push(at),
            None => {}
        }
    }

    /// A write to `range` has failed.
    pub fn failed(&mut self, range: ByteRange) {
        self.writes(range);
        self.doubtful = Some(self.doubtful.map_or(range, |old| {
            let first = old.offset.min(range.offset);
            ByteRange::new(first, old.end().max(range.end()) - first)
        }));
    }

    /// A stretch to be read next, where no write is under way (`is_busy`).
    pub fn look(&mut self, is_busy: impl Fn(ByteRange) -> bool) -> Option<ByteRange> {
        let stretches = self.size / STRETCH;
        for _ in 0..TRIES {
            let number = match self.places.len() as u64 {
                places if places > 0 && self.dice.below(2) == 0 => {
                    let place = self.dice.below(places) as usize;
                    self.places.swap_remove(place) / STRETCH
                }
                _ => self.dice.below(stretches),
            };
            let range = stretch(number * STRETCH);
            let is_doubtful = self.doubtful.is_some_and(|it| it.overlaps(range));
            let known = self.all.binary_search_by_key(&range.offset, |it| it.at).is_ok();
            if number < stretches && !known && !is_doubtful && !is_busy(range) {
                self.last += 1;
                let (id, at) = (self.last, range.offset);
                self.looking = Some(Look { id, at, counts: false });
                return Some(range);
            }
        }
        None
    }

    /// The stretch was read. It counts at once if nothing is unflushed now.
    pub fn saw(&mut self, bytes: &[u8], all_is_flushed: bool) {
        let Some(look) = self.looking.take() else { return };
        let content = Content::of(bytes);
        let zeroes = self.all.iter().filter(|it| it.content.is_zero).count();
        if content.is_zero && zeroes >= ZEROES_MAX {
            return;
        }
        let Look { id, at, counts } = look;
        let counts = counts || all_is_flushed && self.stray.is_none();
        if counts || self.all.len() - self.counting() < PENDING {
            let place = self.all.partition_point(|it| it.at < at);
            self.all.insert(place, Witness { id, at, content, counts });
        }
        self.keep_within_bounds();
    }

    fn counting(&self) -> usize {
        self.all.iter().filter(|witness| witness.counts).count()
    }

    /// Any of them goes: so there are old ones and new ones. None goes for another that
    /// does not count yet, and may never do.
    fn keep_within_bounds(&mut self) {
        for counting in (WITNESSES + 1..=self.counting()).rev() {
            let out = self.dice.below(counting as u64) as usize;
            let mut all = self.all.iter().enumerate().filter(|(_, it)| it.counts);
            if let Some((at, _)) = all.nth(out) {
                self.all.remove(at);
            }
        }
    }

    /// The stretch cannot be read, or not now.
    pub fn saw_nothing(&mut self) {
        self.looking = None;
    }

    /// What a flush that begins now covers, if it succeeds.
    pub fn flush_begins(&self) -> u64 {
        self.last
    }

    /// A flush that covers this much has succeeded.
    pub fn flushed(&mut self, covers: u64) {
        if let Some(look) = &mut self.looking {
            look.counts |= look.id <= covers;
        }
        for witness in &mut self.all {
            witness.counts |= witness.id <= covers;
        }
        self.stray = self.stray.filter(|since| *since > covers);
        self.keep_within_bounds();
    }

    /// A connection is lost: what no flush has covered may be gone. That it is not known to
    /// be unflushed any more does not make it durable.
    pub fn lost(&mut self) {
        self.looking = None;
        self.all.retain(|witness| witness.counts);
        self.last += 1;
        self.stray = Some(self.last);
    }

    /// What is to be read over a new connection.
    pub fn questions(&self) -> Vec<Question> {
        let counting = self.all.iter().filter(|witness| witness.counts);
        counting.map(|it| Question { id: it.id, range: stretch(it.at) }).collect()
    }

    /// How many witnesses count that are not zeroes.
    pub fn strength(&self) -> usize {
        self.all.iter().filter(|it| it.counts && !it.content.is_zero).count()
    }

    /// What a connection leads to that has answered so. After [`Standing::Older`] the
    /// answers are what is there.
    pub fn judge(&mut self, answers: &[(Question, Content)]) -> Standing {
        let (mut equal, mut read, mut differs) = (0, 0, Vec::new());
        for (question, content) in answers {
            let Some(witness) = self.all.iter().find(|it| it.id == question.id) else {
                continue;
            };
            let is_equal = witness.content == *content;
            if !is_equal {
                differs.push(witness.id);
            }
            let is_proof = !(is_equal && content.is_zero);
            read += usize::from(is_proof);
            equal += usize::from(is_proof && is_equal);
        }
        if differs.is_empty() {
            return Standing::Same;
        }
        if equal <= read / BY_ACCIDENT {
            return Standing::Another { read };
        }
        self.all.retain(|witness| !differs.contains(&witness.id));
        Standing::Older
    }
}

fn stretch(at: u64) -> ByteRange {
    ByteRange::new(at, STRETCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u64 = 1 << 20;

    /// Looks at `count` stretches of a disk whose blocks `holds` gives the bytes of.
    fn looked(count: usize, holds: impl Fn(u64) -> u8) -> Witnesses {
        let mut witnesses = Witnesses::new(SIZE, 7);
        for _ in 0..count {
            let range = witnesses.look(|_| false).expect("there is a stretch");
            witnesses.saw(&[holds(range.offset); STRETCH as usize], true);
        }
        witnesses
    }

    fn answers(of: &Witnesses, holds: impl Fn(u64) -> u8) -> Vec<(Question, Content)> {
        let questions = of.questions().into_iter();
        let read =
            |it: Question| Content::of(&[holds(it.range.offset); STRETCH as usize]);
        questions.map(|it| (it, read(it))).collect()
    }

    fn judged(witnesses: &mut Witnesses, holds: impl Fn(u64) -> u8) -> Standing {
        let answers = answers(witnesses, holds);
        witnesses.judge(&answers)
    }

    #[test]
    fn an_export_is_known_by_what_it_holds() {
        let mut witnesses = looked(16, |_| 1);
        assert_eq!(witnesses.strength(), 16);
        assert_eq!(judged(&mut witnesses, |_| 1), Standing::Same);
        assert_eq!(judged(&mut witnesses, |_| 2), Standing::Another { read: 16 });
        assert_eq!(judged(&mut witnesses, |_| 0), Standing::Another { read: 16 });
        // Asked again it is no other.
        assert_eq!(judged(&mut witnesses, |_| 2), Standing::Another { read: 16 });
        assert_eq!(judged(&mut witnesses, |_| 1), Standing::Same);
    }

    #[test]
    fn an_older_state_is_used_and_is_what_is_there_from_then_on() {
        let mut witnesses = looked(16, |_| 1);
        let ends = |at| u8::from(at < SIZE / 2);
        assert_eq!(judged(&mut witnesses, ends), Standing::Older);
        assert_eq!(judged(&mut witnesses, ends), Standing::Same);
    }

    #[test]
    fn a_few_equal_blocks_are_an_accident_among_many() {
        let mut witnesses = looked(40, |_| 1);
        let places = witnesses.questions();
        for equal in [0, 4, 5, 6] {
            let known: Vec<u64> =
                places[..equal].iter().map(|it| it.range.offset).collect();
            let holds = |at| if known.contains(&at) { 1 } else { 2 };
            let all = answers(&witnesses, holds);
            let standing = witnesses.clone().judge(&all[..]);
            let is_another = matches!(standing, Standing::Another { .. });
            assert_eq!(is_another, equal <= witnesses.strength() / BY_ACCIDENT);
        }
        assert_eq!(judged(&mut witnesses, |_| 1), Standing::Same);
    }

    #[test]
    fn zeroes_prove_a_change_and_no_identity() {
        let mut witnesses = looked(40, |_| 0);
        assert_eq!((witnesses.strength(), witnesses.all.len()), (0, ZEROES_MAX));
        let read = ZEROES_MAX;
        assert_eq!(judged(&mut witnesses, |_| 0), Standing::Same);
        assert_eq!(judged(&mut witnesses, |_| 3), Standing::Another { read });
        assert_eq!(Witnesses::new(SIZE, 1).judge(&[]), Standing::Same);
        // Of one that is half empty, both halves count only where they differ.
        let holds = |at| u8::from(at < SIZE / 2);
        let mut half = looked(40, holds);
        assert_eq!(judged(&mut half, holds), Standing::Same);
        assert!(matches!(judged(&mut half, |_| 0), Standing::Another { .. }));
        assert_eq!(judged(&mut half, |_| 1), Standing::Older);
    }

    #[test]
    fn what_is_written_is_no_evidence_not_even_of_a_look_that_has_begun() {
        let mut witnesses = looked(16, |_| 1);
        let before = answers(&witnesses, |_| 2);
        witnesses.writes(ByteRange::new(0, SIZE));
        assert_eq!(witnesses.judge(&before), Standing::Same);
        assert_eq!(witnesses.questions(), []);
        let range = witnesses.look(|_| false).expect("there is a stretch");
        witnesses.writes(ByteRange::new(range.offset + 512, 512));
        witnesses.saw(&[1; STRETCH as usize], true);
        assert_eq!(witnesses.questions(), []);
        // A write beside it is nothing to it.
        let range = witnesses.look(|_| false).expect("there is a stretch");
        witnesses.writes(ByteRange::new(range.end(), 512));
        witnesses.saw(&[1; STRETCH as usize], true);
        assert_eq!(witnesses.questions().len(), 1);
    }

    #[test]
    fn only_what_a_flush_covers_counts() {
        let mut witnesses = Witnesses::new(SIZE, 3);
        let before = witnesses.flush_begins();
        let look = |witnesses: &mut Witnesses| {
            witnesses.look(|_| false).expect("there is a stretch");
            witnesses.saw(&[1; STRETCH as usize], false);
        };
        look(&mut witnesses);
        witnesses.flushed(before);
        assert_eq!(witnesses.questions(), []);
        let covers = witnesses.flush_begins();
        look(&mut witnesses);
        witnesses.flushed(covers);
        assert_eq!(witnesses.questions().len(), 1);
        witnesses.lost();
        assert_eq!((witnesses.questions().len(), witnesses.all.len()), (1, 1));
        // A look that was under way while the flush was counts when it ends.
        witnesses.look(|_| false).expect("there is a stretch");
        witnesses.flushed(witnesses.flush_begins());
        witnesses.saw(&[1; STRETCH as usize], false);
        assert_eq!(witnesses.questions().len(), 2);
    }

    #[test]
    fn no_place_is_looked_at_where_a_write_goes_or_has_failed() {
        let mut witnesses = Witnesses::new(SIZE, 3);
        assert_eq!(witnesses.look(|_| true), None);
        witnesses.failed(ByteRange::new(0, SIZE / 2));
        for _ in 0..100 {
            witnesses.uses(ByteRange::new(0, SIZE));
            if let Some(range) = witnesses.look(|_| false) {
                assert!(range.offset >= SIZE / 2);
                witnesses.saw_nothing();
            }
        }
        assert_eq!(Witnesses::new(STRETCH - 1, 3).look(|_| false), None);
    }

    #[test]
    fn there_is_a_bound_and_what_is_used_is_looked_at() {
        let witnesses = looked(200, |_| 1);
        assert_eq!(witnesses.all.len(), WITNESSES);
        // Of a large disk of zeroes a few blocks are used.
        let mut witnesses = Witnesses::new(1 << 40, 5);
        for round in 0..40 {
            witnesses.uses(ByteRange::new(round % 8 * 65536, 512));
            witnesses.look(|_| false).expect("there is a stretch");
            let at = witnesses.looking.expect("it is being read").at;
            let byte = u8::from(at < 1 << 20);
            witnesses.saw(&[byte; STRETCH as usize], true);
        }
        assert!(witnesses.strength() >= 3, "{}", witnesses.strength());
    }
}
