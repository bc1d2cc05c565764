//! What came out of a run.

use sterna_core::Nanos;

/// A count of times, and their sum.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Times {
    /// How many.
    pub count: u64,
    /// Seconds, all together.
    pub seconds: f64,
}

impl Times {
    pub(super) fn add(&mut self, time: Nanos) {
        self.count += 1;
        self.seconds += time.as_secs_f64();
    }

    fn join(&mut self, other: Times) {
        self.count += other.count;
        self.seconds += other.seconds;
    }

    /// The mean in milliseconds; nothing of nothing.
    pub fn mean_ms(self) -> Option<f64> {
        (self.count > 0).then(|| self.seconds * 1e3 / self.count as f64)
    }
}

/// What happened in a while.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stretch {
    /// How long it was, in seconds.
    pub seconds: f64,
    /// Orders that were done, with what each took.
    pub orders: Times,
    /// Chunks that the copier read at the source.
    pub copy_read: Times,
    /// Chunks that it wrote to the destination.
    pub copy_write: Times,
    /// Reads of the database on its data disk.
    pub data: Times,
    /// On its index disks.
    pub index: Times,
    /// Writes to its log.
    pub log: Times,
    /// Cycles of the host, all of them.
    pub cycles: f64,
}

impl Stretch {
    /// Adds what came next.
    pub fn extend(&mut self, next: &Stretch) {
        self.seconds += next.seconds;
        self.cycles += next.cycles;
        let pairs = [
            (&mut self.orders, next.orders),
            (&mut self.copy_read, next.copy_read),
            (&mut self.copy_write, next.copy_write),
            (&mut self.data, next.data),
            (&mut self.index, next.index),
            (&mut self.log, next.log),
        ];
        pairs.into_iter().for_each(|(all, next)| all.join(next));
    }

    /// So many of something in a second.
    pub fn per_second(&self, times: Times) -> f64 {
        if self.seconds > 0.0 { times.count as f64 / self.seconds } else { 0.0 }
    }

    /// Millions of cycles of the host for each order; nothing of no orders.
    pub fn megacycles_per_order(&self) -> Option<f64> {
        (self.orders.count > 0).then(|| self.cycles / self.orders.count as f64 / 1e6)
    }
}

/// The course of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Course {
    /// What happened, second by second.
    pub stretches: Vec<Stretch>,
    /// All of it.
    pub whole: Stretch,
    /// How long the move takes, in seconds: of the whole disk, if only a part of it was
    /// moved. Nothing if none was.
    pub moved: Option<f64>,
    /// How long the guest was held at the switch-over, in milliseconds.
    pub held_ms: f64,
}
