//! A look at a place, to tell whose it is.
//!
//! **Failures.** Bad sectors are left out: a disk on a failing drive is served by what could
//! be read. Bad sectors are few: what could be read before, or other stretches of the place, can
//! be read still. If none of these can be read after an error, the place does not answer: its
//! server may have ended, and the next connection may lead to another disk. Then Sterna says
//! nothing of the place.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use sterna_api::Result;
use sterna_core::DiskId;
use sterna_core::fingerprint::{Fingerprint, STRETCH, Whose, whose};
use sterna_state::FingerprintRecord;

/// How long the stretches of all of them may take to be read: 0.3 s each of the disk's own,
/// for storage that starts dozens of disks at once.
pub(super) const LONG: Duration = Duration::from_secs(20);
/// How long they may take from a bad sector on: a failing drive tries each for seconds, and a
/// disk on it is served by what could be read.
const BAD: Duration = Duration::from_secs(2);
/// After an error, so many stretches are tried before a place counts as one that does not
/// answer: more than one may be bad.
const PROOFS: u64 = 4;

/// What a place is found to be.
pub(super) struct Looked {
    pub(super) whose: Whose<DiskId>,
    /// So much of the disk is there that nobody else need be asked.
    pub(super) is_proven: bool,
    /// The disk's own stretches could not all be looked at in time, and those that could do not
    /// prove anything.
    pub(super) is_late: bool,
    /// It does not answer.
    pub(super) is_broken: bool,
    /// Of so many stretches, if more changed than the disk's clients can have written.
    pub(super) changed: Option<(usize, usize)>,
}

impl Looked {
    /// Nothing is known.
    pub(super) fn unknown() -> Looked {
        let (whose, changed) = (Whose::Unknown, None);
        Looked { whose, is_proven: false, is_late: false, is_broken: false, changed }
    }
}

/// A place that is looked at.
pub(super) struct Place<R> {
    /// Gives the checksum of a stretch; nothing of one that cannot be read.
    read: R,
    size: u64,
    seen: BTreeMap<u64, u32>,
    until: Instant,
    has_failed: bool,
}

impl<R: FnMut(u64) -> Option<u32>> Place<R> {
    pub(super) fn new(size: u64, read: R) -> Place<R> {
        let (seen, until) = (BTreeMap::new(), Instant::now() + LONG);
        Place { read, size, seen, until, has_failed: false }
    }

    /// Whose it is.
    pub(super) fn look(
        &mut self,
        own: &Fingerprint,
        others: impl FnOnce() -> Result<Vec<FingerprintRecord>>,
    ) -> Result<Looked> {
        let is_late = !self.read_marks(own);
        if self.is_broken() {
            return Ok(Looked { is_broken: true, ..Looked::unknown() });
        }
        let holds = |at| self.seen.get(&at).copied();
        if !is_late && own.is_all_there(holds) {
            let (whose, is_proven) = (Whose::Own, own.is_proven(holds));
            return Ok(Looked { whose, is_proven, is_late, ..Looked::unknown() });
        }
        let others = others()?;
        let is_clear =
            |other: &FingerprintRecord| own.yields_to(&other.fingerprint, holds);
        // If not, nobody can tell before the places of others' stretches are read, too.
        if !own.is_proven(holds) && !others.iter().any(is_clear) {
            for other in &others {
                self.read_marks(&other.fingerprint);
            }
        }
        let is_broken = self.is_broken();
        let others = others.iter().map(|it| (it.disk, &it.fingerprint));
        let holds = |at| self.seen.get(&at).copied();
        let (is_proven, changed) = (own.is_proven(holds), own.changed_by_others(holds));
        let known = others.clone().map(|(_, it)| it);
        let is_late = is_late && !own.is_proven_by_a_part(known, holds);
        let whose = whose(own, others, holds);
        Ok(Looked { whose, is_proven, is_late, is_broken, changed })
    }

    /// Reads what is not known yet of the stretches of a fingerprint. Says whether there was
    /// time for all of them, or bad sectors took it.
    fn read_marks(&mut self, fingerprint: &Fingerprint) -> bool {
        let (mut until, mut is_bad) = (self.until, false);
        for mark in &fingerprint.marks {
            if self.seen.contains_key(&mark.at) {
                continue;
            }
            if Instant::now() >= until {
                return is_bad;
            }
            match (self.read)(mark.at) {
                Some(sum) => {
                    self.seen.insert(mark.at, sum);
                }
                None => {
                    is_bad = true;
                    self.has_failed = true;
                    until = until.min(Instant::now() + BAD);
                }
            }
        }
        true
    }

    /// Whether it does not answer: after an error, nothing can be read, not even what could be
    /// read before.
    fn is_broken(&mut self) -> bool {
        if !self.has_failed {
            return false;
        }
        let mut tried: Vec<u64> =
            self.seen.keys().copied().take(PROOFS as usize).collect();
        if tried.is_empty() {
            let anywhere = |part| self.size / PROOFS * part / STRETCH * STRETCH;
            tried.extend((0..PROOFS).map(anywhere));
        }
        !tried.into_iter().any(|at| (self.read)(at).is_some())
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use sterna_core::fingerprint::checksum;

    use super::*;

    const SIZE: u64 = 64 << 20;

    /// What is at a place: each stretch is another one.
    fn bytes(at: u64) -> Vec<u8> {
        (at / STRETCH + 1).to_le_bytes().repeat(STRETCH as usize / 8)
    }

    /// What the disk there is known by; the daemon was killed.
    fn own() -> Fingerprint {
        let taken: std::result::Result<_, Infallible> =
            Fingerprint::take(SIZE, |at| Ok(Some(bytes(at))));
        taken.unwrap_or_else(|never| match never {})
    }

    fn looked(mut reads: impl FnMut(u64) -> bool) -> Looked {
        let read = |at| reads(at).then(|| checksum(&bytes(at)));
        Place::new(SIZE, read).look(&own(), || Ok(Vec::new())).unwrap()
    }

    #[test]
    fn a_server_that_ends_while_its_place_is_looked_at_says_nothing_of_it() {
        for answers in [0, 3, 60] {
            let mut left = answers;
            let looked = looked(|_| {
                left -= i32::from(left > 0);
                left > 0
            });
            assert!(looked.is_broken, "{answers}");
        }
    }

    #[test]
    fn a_place_that_does_not_answer_for_others_stretches_says_nothing() {
        let own = own();
        let other: Vec<_> = own.marks.iter().map(|it| it.at + STRETCH).collect();
        let mut has_ended = false;
        let others = || {
            let marks =
                other.iter().map(|at| sterna_core::fingerprint::Mark { at: *at, sum: 1 });
            let fingerprint = Fingerprint { marks: marks.collect(), ..own.clone() };
            let disk = DiskId(2);
            Ok(vec![FingerprintRecord { disk, datastore: "b".into(), fingerprint }])
        };
        let read = |at| {
            has_ended |= !own.marks.iter().any(|it| it.at == at);
            // It is another disk's by now.
            (!has_ended).then_some(0)
        };
        assert!(Place::new(SIZE, read).look(&own, others).unwrap().is_broken);
    }

    #[test]
    fn a_place_that_is_slow_is_known_by_what_could_be_read_in_time() {
        for (in_time, is_late) in [(60, false), (10, true)] {
            let own = own();
            let mut place = Place::new(SIZE, |at| Some(checksum(&bytes(at))));
            let read = own.marks.iter().take(in_time).map(|it| (it.at, it.sum));
            place.seen.extend(read);
            place.until = Instant::now();
            let looked = place.look(&own, || Ok(Vec::new())).unwrap();
            assert_eq!(
                (looked.whose, looked.is_late),
                (Whose::Own, is_late),
                "{in_time}"
            );
        }
    }

    #[test]
    fn a_disk_on_a_failing_drive_is_known_by_what_can_be_read() {
        let own = own();
        let bad: Vec<u64> = own.marks.iter().skip(4).map(|it| it.at).collect();
        let looked_at = looked(|at| !bad.contains(&at));
        assert!(!looked_at.is_broken && looked_at.whose == Whose::Own);
        // None of its own stretches can be read, and others can.
        let looked_at = looked(|at| !own.marks.iter().any(|it| it.at == at));
        assert!(!looked_at.is_broken && looked_at.whose == Whose::Unknown);
    }
}
