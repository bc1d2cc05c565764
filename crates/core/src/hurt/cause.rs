//! By what a disk is hurt.

use super::watch::{Hurt, STEP};
use crate::Nanos;

/// From this part of the response time on, the wait before the device is what matters.
pub(super) const QUEUE_MATTERS: f64 = 0.5;
/// Who does this part of a device's work is named.
const MOST: f64 = 0.5;
/// So long a request takes a device as long as the same again for its being one: a compromise
/// between a disk that seeks and flash.
const REQUEST_BYTES: f64 = 32_768.0;
/// A neighbour's load may begin so much later than its effect, by how steps are counted.
const SLACK: Nanos = Nanos(2 * STEP.0);
/// A disk that sends so many times its usual requests hurts itself.
const OWN_LOAD: f64 = 2.0;

/// What somebody asks of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Share {
    /// Requests per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_second: f64,
    /// Since when, if that is known.
    pub since: Option<Nanos>,
}

/// What all ask of the device that the disk is on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shared {
    /// The disk itself.
    pub own: Share,
    /// The other disks.
    pub others: Vec<Share>,
    /// Copies of moves, from there and to there.
    pub copies: Share,
    /// The part of the disk's response time that is the wait before the device.
    pub queued: f64,
    /// How many requests per second the disk usually sends, if that is known.
    pub usual_iops: Option<f64>,
}

/// By what a disk is hurt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cause {
    /// Nothing is answered: the datastore hangs.
    Hangs,
    /// Its requests wait for their turn before the device: a limit, or the target of another
    /// class.
    Queued {
        /// The part of their time.
        part: f64,
    },
    /// Its own application sends more than usual.
    Itself {
        /// So many times as many requests.
        times: f64,
    },
    /// One other disk does most of the device's work.
    Neighbour {
        /// Which of the others.
        at: usize,
        /// Its part of the device's work.
        part: f64,
        /// When its load began, if the disk was slow before that: then it is not what made the
        /// disk slow first.
        later: Option<Nanos>,
    },
    /// Copies of moves do most of it.
    Copies {
        /// Their part.
        part: f64,
    },
    /// Nothing of the kind: the device itself is slower.
    Device,
}

/// By what a disk is hurt, by what is known of it and of the others on its device.
pub fn cause(hurt: &Hurt, shared: &Shared) -> Cause {
    let more = shared.usual_iops.map_or(0.0, |usual| shared.own.iops / usual);
    let loudest = shared
        .others
        .iter()
        .enumerate()
        .map(|(at, share)| (at, shared.part(share)))
        .max_by(|(_, a), (_, b)| a.total_cmp(b));
    let copies = shared.part(&shared.copies);
    match loudest {
        _ if hurt.took.is_none() => Cause::Hangs,
        _ if shared.queued >= QUEUE_MATTERS => Cause::Queued { part: shared.queued },
        _ if more >= OWN_LOAD => Cause::Itself { times: more },
        Some((at, part)) if part >= MOST && part >= copies => {
            let began = shared.others[at].since;
            let later = began.filter(|since| *since > hurt.since.plus(SLACK));
            Cause::Neighbour { at, part, later }
        }
        _ if copies >= MOST => Cause::Copies { part: copies },
        _ => Cause::Device,
    }
}

impl Shared {
    /// All requests per second.
    pub(super) fn iops(&self) -> f64 {
        let others: f64 = self.others.iter().map(|one| one.iops).sum();
        self.own.iops + others + self.copies.iops
    }

    /// Somebody's part of the work. All parts together are one, so no two of them are most of
    /// it.
    fn part(&self, share: &Share) -> f64 {
        let others: f64 = self.others.iter().map(Share::work).sum();
        let all = self.own.work() + others + self.copies.work();
        if all > 0.0 { share.work() / all } else { 0.0 }
    }
}

impl Share {
    /// How much work it is for a device, in requests of no length.
    fn work(&self) -> f64 {
        self.iops + self.bytes_per_second / REQUEST_BYTES
    }
}
