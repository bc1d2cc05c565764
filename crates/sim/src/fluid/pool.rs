//! An array's spindles as time to spend: what each kind of request costs of it.
//!
//! The array is a `core::array` model; what its spindles do is the same as there, as
//! means instead of dice: a random operation pays seek and half a turn, a small write as
//! many operations as its RAID level has, a full stripe one on each member, a stream a
//! seek for each run.
//!
//! **What is said beside the model.** How many data spindles a stream is spread over
//! (`width`): what is under way of it there at once is one *run*, read with one seek.
//! And whether destaging is sorted by place: then its seeks are short ([`SETTLE`]), as
//! of thousands of writes in the cache the next is always near. A model without these
//! is spread over all its data spindles and unsorted, like `core::array`'s.

use sterna_core::array::{Device, Level, Model};

use super::solve::Use;

/// Bytes of an element: what stays on one spindle, as in `core::array`.
pub(super) const ELEMENT: f64 = 65536.0;

/// What is left of a seek to the next of thousands of places: settling on the track.
/// Assumed; disks of that time state 0.4 to 0.6 ms from track to track.
const SETTLE: f64 = 0.5e-3;

/// An array of a scenario.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    pub(super) model: Model,
    /// Data spindles that a stream is spread over.
    width: f64,
    sorted: bool,
    /// How many times slower its spindles are.
    pub(super) slower: f64,
    /// Whether it answers nothing.
    pub(super) down: bool,
    /// The stations of its spindles and of its link.
    spindles: usize,
    link: usize,
}

impl Pool {
    pub(super) fn new(
        model: Model,
        width: Option<u32>,
        sorted: bool,
        stations: (usize, usize),
    ) -> Pool {
        let data = model.groups().iter().map(|it| it.data * it.count).sum::<u32>();
        Pool {
            width: f64::from(width.unwrap_or(data).clamp(1, data.max(1))),
            sorted,
            slower: 1.0,
            down: false,
            spindles: stations.0,
            link: stations.1,
            model,
        }
    }

    pub(super) fn spindles(&self) -> usize {
        self.spindles
    }

    fn transfer(&self, bytes: f64) -> f64 {
        self.slower * bytes / self.model.device().media() as f64
    }

    /// What it takes to get to a random place. (Flash gets at several at a time, and here at one:
    /// it answers as fast if little is asked of it, and does less at most.)
    fn access(&self) -> f64 {
        self.slower * self.model.device().mean_random(0).as_secs_f64()
    }

    /// What it takes to get to the next place of what is destaged.
    fn destage_access(&self) -> f64 {
        match self.model.device() {
            Device::Disk { revolution, .. } if self.sorted => {
                self.slower * (SETTLE + revolution.as_secs_f64() / 2.0)
            }
            _ => self.access(),
        }
    }

    /// What so many bytes take over its link.
    pub(super) fn over_link(&self, bytes: f64) -> f64 {
        bytes / self.model.link() as f64
    }

    pub(super) fn link_use(&self, bytes: f64) -> Use {
        let takes = self.over_link(bytes);
        Use { station: self.link, operations: 1.0, takes, seek: 0.0, urgent: false }
    }

    fn at_spindles(&self, operations: f64, takes: f64, urgent: bool) -> Use {
        Use { station: self.spindles, operations, takes, seek: 0.0, urgent }
    }

    /// Random reads of so many bytes, `part` of one for each request.
    pub(super) fn random_read(&self, bytes: f64, part: f64) -> Use {
        let elements = (bytes / ELEMENT).ceil().max(1.0);
        let takes = self.access() + self.transfer(bytes / elements);
        self.at_spindles(part * elements, takes, true)
    }

    /// A stream of reads, with so many bytes of it under way at once.
    pub(super) fn stream_read(&self, bytes: f64, under_way: f64) -> Use {
        let run = self.run(under_way);
        let takes = self.transfer(run * ELEMENT);
        let operations = bytes / (run * ELEMENT);
        Use { seek: self.access(), ..self.at_spindles(operations, takes, true) }
    }

    /// Elements of a stream that one spindle serves with one seek: what is under way at
    /// once, on as many spindles as it is spread over, as long as nobody is overdue.
    fn run(&self, under_way: f64) -> f64 {
        let elements = under_way / ELEMENT + f64::from(self.model.prefetch());
        (elements / self.width).max(1.0)
    }

    /// Random writes of so many bytes, each in its place.
    pub(super) fn small_write(&self, bytes: f64, part: f64) -> Use {
        let elements = (bytes / ELEMENT).ceil().max(1.0);
        let takes = self.destage_access() + self.transfer(bytes / elements);
        let operations = part * elements * self.small_operations();
        self.at_spindles(operations, takes, !self.model.caches_writes())
    }

    /// What is written in full stripes, wherever it belongs; `stream` if the stripes
    /// follow each other.
    pub(super) fn stripe_write(&self, bytes: f64, stream: bool) -> Use {
        let groups = self.model.groups();
        let data: u32 = groups.iter().map(|it| it.data * it.count).sum();
        let operations =
            bytes / ELEMENT * f64::from(self.model.spindles()) / f64::from(data);
        let (access, transfer) = (self.destage_access(), self.transfer(ELEMENT));
        let urgent = !self.model.caches_writes();
        match stream {
            true => {
                Use { seek: access, ..self.at_spindles(operations, transfer, urgent) }
            }
            false => self.at_spindles(operations, access + transfer, urgent),
        }
    }

    /// Operations of a small write. Of unlike groups, all count as busy as the busiest:
    /// what waits for one of its spindles waits, whoever else has time.
    fn small_operations(&self) -> f64 {
        let groups = self.model.groups();
        let data: u32 = groups.iter().map(|it| it.data * it.count).sum();
        let each = groups.iter().map(|it| {
            let operations = match it.level {
                Level::Raid0 => 1.0,
                Level::Raid10 => 2.0,
                Level::Raid5 => 4.0,
                Level::Raid6 => 6.0,
            };
            operations * f64::from(it.data * it.count) / f64::from(it.spindles())
        });
        let busiest = each.fold(0.0, f64::max);
        busiest * f64::from(self.model.spindles()) / f64::from(data.max(1))
    }
}
