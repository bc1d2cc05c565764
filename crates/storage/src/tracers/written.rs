//! Tracers at one place: written over zeroes, handed over to whoever looks for them elsewhere,
//! and taken back.
//!
//! None stays because of an error: what was written before it is taken back at once, and one
//! that cannot be taken back keeps no other there. Whoever writes may be too late for whoever
//! waits; then nobody else would take the tracers back, and the writer does.

use std::mem;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use sterna_engine::datastore::{DatastoreError, Visit};
use sterna_os::lock;

/// How long a tracer is: a block of every device.
const LEN: u64 = 4096;
/// So many are written.
const TRACERS: usize = 3;

/// Bytes of chance at an empty place.
#[derive(Clone, Debug)]
pub(super) struct Tracer {
    at: u64,
    pub(super) bytes: Vec<u8>,
}

impl Tracer {
    pub(super) fn range(&self) -> Range<u64> {
        self.at..self.at + LEN
    }
}

/// Where tracers are written.
pub(super) trait Ground {
    /// How many bytes it has.
    fn size(&self) -> u64;
    fn read(&mut self, bytes: &Range<u64>) -> Outcome<Vec<u8>>;
    fn write(&mut self, at: u64, bytes: &[u8]) -> Outcome<()>;
}

pub(super) type Outcome<T> = std::result::Result<T, DatastoreError>;

impl Ground for Visit {
    fn size(&self) -> u64 {
        Visit::size(self)
    }

    fn read(&mut self, bytes: &Range<u64>) -> Outcome<Vec<u8>> {
        Visit::read(self, bytes)
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> Outcome<()> {
        Visit::write(self, at, bytes)
    }
}

/// From whoever writes tracers to whoever looks for them, if there still is somebody.
#[derive(Debug, Default)]
pub(super) struct Handover(Mutex<Hand>);

#[derive(Debug, Default)]
enum Hand {
    /// They are being written.
    #[default]
    Empty,
    Full(Vec<Tracer>),
    /// Nobody waits for them any more.
    Left,
}

impl Handover {
    /// Gives them; they come back if nobody waits for them.
    fn give(&self, tracers: Vec<Tracer>) -> Option<Vec<Tracer>> {
        let mut hand = lock(&self.0);
        match *hand {
            Hand::Left => Some(tracers),
            Hand::Empty | Hand::Full(_) => {
                *hand = Hand::Full(tracers);
                None
            }
        }
    }

    /// Whether nobody waits for them any more.
    fn is_left(&self) -> bool {
        matches!(*lock(&self.0), Hand::Left)
    }

    /// Takes what was given; from now on nobody waits for more.
    pub(super) fn take(&self) -> Arc<[Tracer]> {
        match mem::replace(&mut *lock(&self.0), Hand::Left) {
            Hand::Full(tracers) => tracers.into(),
            Hand::Empty | Hand::Left => Arc::new([]),
        }
    }
}

/// Writes tracers and gives them; takes them back if nobody waits for them any more, or if
/// not all could be written. What cannot be taken back then is given all the same: over
/// another connection it may go.
pub(super) fn hand_over(
    there: &mut impl Ground,
    numbers: &[u128],
    handover: &Handover,
) -> Outcome<()> {
    let mut tracers = Vec::new();
    if let Err(error) = put(there, numbers, handover, &mut tracers) {
        if take_back(there, &tracers).is_err() {
            handover.give(tracers);
        }
        return Err(error);
    }
    match handover.give(tracers) {
        Some(tracers) => take_back(there, &tracers).map(drop),
        None => Ok(()),
    }
}

/// Writes tracers where there are zeroes; adds each before it is written. Not once nobody waits
/// for them: whoever asks again finds the place free, and its bytes there.
fn put(
    there: &mut impl Ground,
    numbers: &[u128],
    handover: &Handover,
    tracers: &mut Vec<Tracer>,
) -> Outcome<()> {
    let blocks = there.size() / LEN;
    for number in numbers.iter().filter(|_| blocks > 0) {
        let tracer = tracer(*number, blocks);
        let is_new = tracers.iter().all(|it| it.at != tracer.at);
        if !is_new || there.read(&tracer.range())?.iter().any(|byte| *byte != 0) {
            continue;
        }
        if handover.is_left() {
            break;
        }
        // A write that fails may have come there all the same.
        tracers.push(tracer.clone());
        there.write(tracer.at, &tracer.bytes)?;
        if tracers.len() == TRACERS {
            break;
        }
    }
    Ok(())
}

/// The tracer of a number, in a place of so many blocks.
fn tracer(number: u128, blocks: u64) -> Tracer {
    let at = (number % u128::from(blocks)) as u64 * LEN;
    let word = |step: u64| {
        // Each word is another one (the steps of splitmix64); none is all zeroes.
        let mixed = (number as u64 ^ (number >> 64) as u64)
            .wrapping_add(step.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) | 1
    };
    let bytes = (0..LEN / 8).flat_map(|step| word(step).to_le_bytes()).collect();
    Tracer { at, bytes }
}

/// Puts zeroes where a tracer still is; says whether all still were. One that cannot be taken
/// back is told, and keeps none of the others there.
pub(super) fn take_back(there: &mut impl Ground, tracers: &[Tracer]) -> Outcome<bool> {
    let mut are_all_there = true;
    let mut failed = None;
    for tracer in tracers {
        let done = there.read(&tracer.range()).and_then(|read| {
            let is_there = read == tracer.bytes;
            if is_there {
                there.write(tracer.at, &[0; LEN as usize])?;
            }
            Ok(is_there)
        });
        match done {
            Ok(is_there) => are_all_there &= is_there,
            Err(error) => {
                let (at, len) = (tracer.at, LEN);
                tracing::warn!(at, len, %error, "cannot take back what was written to find \
                                                 out whether two places are one");
                failed.get_or_insert(error);
            }
        }
    }
    match failed {
        Some(error) => Err(error),
        None => Ok(are_all_there),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    /// A place in memory that fails at some of the questions.
    struct Memory {
        bytes: Vec<u8>,
        asked: usize,
        fails: fn(usize) -> bool,
        /// Who waits goes away during the question of that number.
        leaves: Option<(usize, Arc<Handover>)>,
        written: Vec<u64>,
    }

    impl Memory {
        fn new(fails: fn(usize) -> bool) -> Memory {
            let bytes = vec![0; 64 * LEN as usize];
            Memory { bytes, asked: 0, fails, leaves: None, written: Vec::new() }
        }

        fn question(&mut self) -> Outcome<()> {
            self.asked += 1;
            if let Some((at, handover)) = &self.leaves
                && *at == self.asked
            {
                assert!(handover.take().is_empty());
            }
            match (self.fails)(self.asked) {
                true => Err(DatastoreError::Io {
                    what: "read",
                    path: "/dev/nosuch".into(),
                    source: io::ErrorKind::TimedOut.into(),
                }),
                false => Ok(()),
            }
        }

        fn is_empty(&self) -> bool {
            self.bytes.iter().all(|byte| *byte == 0)
        }
    }

    impl Ground for Memory {
        fn size(&self) -> u64 {
            self.bytes.len() as u64
        }

        fn read(&mut self, bytes: &Range<u64>) -> Outcome<Vec<u8>> {
            self.question()?;
            Ok(self.bytes[bytes.start as usize..bytes.end as usize].to_vec())
        }

        /// What fails is written all the same.
        fn write(&mut self, at: u64, bytes: &[u8]) -> Outcome<()> {
            self.bytes[at as usize..][..bytes.len()].copy_from_slice(bytes);
            self.written.extend(bytes.iter().any(|byte| *byte != 0).then_some(at));
            self.question()
        }
    }

    const NUMBERS: [u128; 4] = [1, 2, 2, 7];

    #[test]
    fn a_place_that_fails_while_tracers_are_written_keeps_none() {
        let fails: [fn(usize) -> bool; 6] = [
            |it| it == 1,
            |it| it == 2,
            |it| it == 3,
            |it| it == 4,
            |it| it == 5,
            |it| it == 6,
        ];
        for fails in fails {
            let (mut there, handover) = (Memory::new(fails), Handover::default());
            assert!(hand_over(&mut there, &NUMBERS, &handover).is_err());
            assert!(there.is_empty(), "after {} questions", there.asked);
            assert!(handover.take().is_empty());
        }
    }

    #[test]
    fn what_a_broken_connection_leaves_is_taken_back_over_another_one() {
        let (mut there, handover) = (Memory::new(|it| it > 2), Handover::default());
        assert!(hand_over(&mut there, &NUMBERS, &handover).is_err());
        assert!(!there.is_empty());
        there.fails = |_| false;
        take_back(&mut there, &handover.take()).unwrap();
        assert!(there.is_empty());
    }

    #[test]
    fn a_tracer_that_cannot_be_taken_back_keeps_no_other_there() {
        let (mut there, mut tracers) = (Memory::new(|_| false), Vec::new());
        put(&mut there, &NUMBERS, &Handover::default(), &mut tracers).unwrap();
        assert_eq!(tracers.len(), TRACERS);
        there.asked = 0;
        there.fails = |it| it == 1;
        assert!(take_back(&mut there, &tracers).is_err());
        let left = there.bytes.chunks(LEN as usize).filter(|it| it[0] != 0).count();
        assert_eq!(left, 1);
        there.fails = |_| false;
        assert!(!take_back(&mut there, &tracers).unwrap(), "two are not there any more");
        assert!(there.is_empty());
    }

    #[test]
    fn tracers_that_nobody_waits_for_any_more_are_taken_back() {
        let (mut there, handover) = (Memory::new(|_| false), Handover::default());
        hand_over(&mut there, &NUMBERS, &handover).unwrap();
        let tracers = handover.take();
        assert_eq!(tracers.len(), TRACERS, "somebody waits");
        assert!(take_back(&mut there, &tracers).unwrap() && there.is_empty());
        hand_over(&mut there, &NUMBERS, &handover).unwrap();
        assert!(there.is_empty() && handover.take().is_empty());
    }

    #[test]
    fn once_nobody_waits_no_tracer_is_written() {
        // It is read and written by turns, so a server that stalls during the question of
        // that number has so many tracers.
        for (at, written) in [(1, 0), (2, 1), (3, 1), (4, 2)] {
            let handover = Arc::new(Handover::default());
            let mut there = Memory::new(|_| false);
            there.leaves = Some((at, handover.clone()));
            hand_over(&mut there, &NUMBERS, &handover).unwrap();
            assert_eq!(there.written.len(), written, "after question {at}");
            assert!(there.is_empty());
        }
    }

    #[test]
    fn tracers_lie_within_the_place_and_no_two_words_of_one_are_alike() {
        for number in [1, 77, u128::MAX, 1 << 90] {
            let tracer = tracer(number, 10);
            assert!(tracer.range().end <= 10 * LEN && tracer.bytes.len() as u64 == LEN);
            let mut words: Vec<&[u8]> = tracer.bytes.chunks(8).collect();
            words.sort_unstable();
            words.dedup();
            assert_eq!(words.len() as u64, LEN / 8);
        }
        assert_ne!(tracer(5, 10).bytes, tracer(6, 10).bytes);
    }
}
