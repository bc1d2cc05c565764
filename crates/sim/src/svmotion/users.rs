//! The database's users: what an order asks of the host and of the disks.
//!
//! An order reads the data disk and the index disks at random places, one after the
//! other in any order, computes before each, and ends with a write to the log, which it
//! waits for. Then its user pauses, and comes again: so the number of orders under way
//! is bounded, and what an order takes decides how many there are.

use sterna_core::Nanos;
use sterna_core::array::Kind;
use sterna_workload::random::Random;

use super::parameters::Parameters;
use super::scene::{Disk, Load};
use crate::dice;

/// What a user asks of a disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask {
    pub(super) disk: Disk,
    pub(super) kind: Kind,
    /// The offset, and how many bytes.
    pub(super) place: (u64, u64),
}

/// What a user does next.
#[derive(Clone, Copy, Debug)]
pub(super) enum Next {
    /// Computes, so many cycles.
    Compute(f64),
    /// Asks a disk.
    Ask(Ask),
    /// Its order is done; it pauses.
    Pause(Nanos),
}

#[derive(Clone, Debug, Default)]
struct User {
    /// The disks that its order still needs, the next one last.
    disks: Vec<Disk>,
    /// Cycles before each of them, on average.
    cycles: f64,
    /// Whether it has computed for the next one.
    computed: bool,
}

/// All users.
#[derive(Debug)]
pub(super) struct Crowd {
    users: Vec<User>,
    /// How long they pause, on average.
    pause: Nanos,
    parameters: Parameters,
    random: Random,
    /// Where the log is written next, and its size.
    log: (u64, u64),
}

/// The bytes that a database reads at once.
const READ: u64 = 64 << 10;

impl Crowd {
    /// The users at a load, with a log of so many bytes.
    pub(super) fn new(parameters: &Parameters, load: Load, log: u64, seed: u64) -> Crowd {
        let (count, pause) = match load {
            Load::Off => (0, Nanos(0)),
            Load::Low => (parameters.users, parameters.low_pause),
            Load::High => (parameters.users, parameters.high_pause),
        };
        Crowd {
            users: vec![User::default(); count],
            pause,
            parameters: *parameters,
            random: Random::new(seed),
            log: (0, log),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.users.len()
    }

    /// How long a user pauses: anything up to twice the mean.
    pub(super) fn pause(&mut self) -> Nanos {
        Nanos((2.0 * self.pause.0 as f64 * dice::part(&mut self.random)) as u64)
    }

    /// A user comes with a new order.
    pub(super) fn begin(&mut self, user: usize) -> Next {
        let mut disks = vec![Disk::Log];
        for _ in 0..self.whole(self.parameters.data_reads) {
            disks.push(Disk::Data);
        }
        for _ in 0..self.whole(self.parameters.index_reads * Disk::INDEXES as f64) {
            let which = self.random.below(Disk::INDEXES as u64) as usize;
            disks.push(Disk::Index(which));
        }
        // The log stays the last.
        for at in (2..disks.len()).rev() {
            disks.swap(at, 1 + self.random.below(at as u64) as usize);
        }
        let cycles = self.parameters.order_cycles / disks.len() as f64;
        self.users[user] = User { disks, cycles, computed: false };
        self.next(user)
    }

    /// A user goes on.
    pub(super) fn next(&mut self, user: usize) -> Next {
        let at = &mut self.users[user];
        let Some(&disk) = at.disks.last() else { return Next::Pause(self.pause()) };
        at.computed = !at.computed;
        if at.computed {
            return Next::Compute(at.cycles * dice::exponential(&mut self.random));
        }
        at.disks.pop();
        Next::Ask(self.ask(disk))
    }

    fn ask(&mut self, disk: Disk) -> Ask {
        if disk == Disk::Log {
            let (next, size) = self.log;
            let bytes = self.parameters.log_bytes;
            let offset = if next + bytes > size { 0 } else { next };
            self.log.0 = offset + bytes;
            return Ask { disk, kind: Kind::Write, place: (offset, bytes) };
        }
        let offset = self.random.below(disk.bytes() / READ) * READ;
        Ask { disk, kind: Kind::Read, place: (offset, READ) }
    }

    /// A whole number that is `mean` on average.
    fn whole(&mut self, mean: f64) -> u64 {
        mean as u64 + u64::from(dice::part(&mut self.random) < mean.fract())
    }
}
