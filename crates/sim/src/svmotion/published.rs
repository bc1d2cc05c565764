//! What the study published, and what the model makes of it.
//!
//! A figure is a *check* only if no number of the model was fitted to it
//! (`parameters`); the others show how well the fit is. What *follows* are changes that
//! can be worked out of published figures: being differences, they show more of what the
//! model lacks than the figures themselves.

use super::course::Course;
use super::scene::{Disk, Load};
use super::study::Study;

/// How far off a figure may be, as a part of the published one.
pub const TOLERANCE: f64 = 0.1;

const DATA: Option<Disk> = Some(Disk::Data);
const INDEX: Option<Disk> = Some(Disk::Index(0));
const LOG: Option<Disk> = Some(Disk::Log);

/// What a figure shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// A number of the model was fitted to it.
    Fitted,
    /// None was: it checks the model.
    Check,
}

/// What was published of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Published {
    /// Its value.
    Value(f64),
    /// That it is at least this.
    AtLeast(f64),
}

/// A published figure beside the model's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// What it is, of what.
    pub what: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// What was published.
    pub published: Published,
    /// What the model says.
    pub ours: f64,
    /// What it shows.
    pub basis: Basis,
}

impl Figure {
    /// How far the model is off, as a part of the published figure; at least that much
    /// is never off.
    pub fn off(&self) -> f64 {
        match self.published {
            Published::Value(value) => self.ours / value - 1.0,
            Published::AtLeast(least) => (self.ours / least - 1.0).min(0.0),
        }
    }

    /// Whether it is near enough.
    pub fn holds(&self) -> bool {
        self.off().abs() <= TOLERANCE
    }
}

/// A published figure, and where to find it in the study.
struct Entry {
    what: &'static str,
    unit: &'static str,
    published: Published,
    basis: Basis,
    ours: fn(&Study) -> Option<f64>,
}

const fn entry(
    what: &'static str,
    unit: &'static str,
    published: Published,
    basis: Basis,
    ours: fn(&Study) -> Option<f64>,
) -> Entry {
    Entry { what, unit, published, basis, ours }
}

use Basis::{Check, Fitted};
use Published::{AtLeast, Value};

/// What was published.
const PUBLISHED: [Entry; 20] = [
    entry("VM off, data: time", "s", Value(1843.0), Fitted, |it| {
        it.seconds(DATA, Load::Off)
    }),
    entry("VM off, data: chunks/s", "IO/s", Value(5400.0), Fitted, |it| {
        it.old(DATA, Load::Off).map(chunks_per_second)
    }),
    entry("VM off, data: read latency", "ms", Value(4.5), Fitted, |it| {
        it.old(DATA, Load::Off)?.whole.copy_read.mean_ms()
    }),
    // "Close to 1 ms"; Little's law on the figures above makes it 1.1.
    entry("VM off, data: write latency", "ms", Value(1.1), Fitted, |it| {
        it.old(DATA, Load::Off)?.whole.copy_write.mean_ms()
    }),
    entry("VM off, index: time", "s", Value(258.0), Fitted, |it| {
        it.seconds(INDEX, Load::Off)
    }),
    entry("VM off, log: time", "s", Value(155.0), Check, |it| it.seconds(LOG, Load::Off)),
    entry("low load, data: time", "s", Value(2250.0), Fitted, |it| {
        it.seconds(DATA, Load::Low)
    }),
    entry("high load, data: time", "s", AtLeast(3731.0), Check, |it| {
        it.seconds(DATA, Load::High)
    }),
    entry("high load, data: speed lost", "%", Value(56.0), Fitted, |it| {
        let alone = it.old(DATA, Load::Off).map(chunks_per_second)?;
        let loaded = it.old(DATA, Load::High).map(chunks_per_second)?;
        Some(100.0 * (1.0 - loaded / alone))
    }),
    entry("high load, index: time", "s", Value(318.0), Fitted, |it| {
        it.seconds(INDEX, Load::High)
    }),
    entry("low load: orders/s", "", Value(89.41), Fitted, |it| {
        it.orders(None, Load::Low)
    }),
    entry("low load, data: orders/s", "", Value(87.92), Check, |it| {
        it.orders(DATA, Load::Low)
    }),
    entry("high load: orders/s", "", Value(455.27), Fitted, |it| {
        it.orders(None, Load::High)
    }),
    entry("high load, data: orders/s", "", Value(427.0), Fitted, |it| {
        it.orders(DATA, Load::High)
    }),
    entry("high load, index: orders/s", "", Value(404.78), Check, |it| {
        it.orders(INDEX, Load::High)
    }),
    entry("low load: CPU", "%", Value(25.0), Fitted, |it| it.processor(Load::Low)),
    entry("high load: CPU", "%", AtLeast(90.0), Check, |it| it.processor(Load::High)),
    entry("low load: CPU per order", "Mcycles", Value(33.68), Fitted, |it| {
        it.old(None, Load::Low)?.whole.megacycles_per_order()
    }),
    entry("high load: CPU per order", "Mcycles", Value(24.57), Fitted, |it| {
        it.old(None, Load::High)?.whole.megacycles_per_order()
    }),
    entry("CPU per chunk", "kcycles", Value(110.0), Fitted, |it| {
        it.kilocycles_per_chunk()
    }),
];

/// What follows from what was published.
const FOLLOWS: [Entry; 5] = [
    entry("low load, data: longer than VM off", "%", Value(22.1), Fitted, |it| {
        it.longer(DATA, Load::Low)
    }),
    entry("high load, index: longer than VM off", "%", Value(23.3), Fitted, |it| {
        it.longer(INDEX, Load::High)
    }),
    entry("low load, data: orders lost", "%", Value(1.67), Check, |it| {
        it.lost(DATA, Load::Low)
    }),
    entry("high load, data: orders lost", "%", Value(6.21), Fitted, |it| {
        it.lost(DATA, Load::High)
    }),
    entry("high load, index: orders lost", "%", Value(11.1), Check, |it| {
        it.lost(INDEX, Load::High)
    }),
];

impl Study {
    /// The published figures.
    pub fn published(&self) -> Vec<Figure> {
        self.figures(&PUBLISHED)
    }

    /// What follows from them.
    pub fn follows(&self) -> Vec<Figure> {
        self.figures(&FOLLOWS)
    }

    fn figures(&self, entries: &[Entry]) -> Vec<Figure> {
        let figure = |entry: &Entry| {
            let Entry { what, unit, published, basis, ours } = *entry;
            Some(Figure { what, unit, published, ours: ours(self)?, basis })
        };
        entries.iter().filter_map(figure).collect()
    }

    fn seconds(&self, disk: Option<Disk>, load: Load) -> Option<f64> {
        self.old(disk, load)?.moved
    }

    /// Percent that a move takes longer than with the VM off.
    fn longer(&self, disk: Option<Disk>, load: Load) -> Option<f64> {
        let off = self.seconds(disk, Load::Off)?;
        Some(100.0 * (self.seconds(disk, load)? / off - 1.0))
    }

    fn orders(&self, disk: Option<Disk>, load: Load) -> Option<f64> {
        let whole = &self.old(disk, load)?.whole;
        Some(whole.per_second(whole.orders))
    }

    /// Percent of the orders that a move costs.
    fn lost(&self, disk: Option<Disk>, load: Load) -> Option<f64> {
        let alone = self.orders(None, load)?;
        Some(100.0 * (1.0 - self.orders(disk, load)? / alone))
    }

    /// Percent of all cores that are at work without a move.
    fn processor(&self, load: Load) -> Option<f64> {
        let whole = &self.old(None, load)?.whole;
        Some(100.0 * whole.cycles / whole.seconds / self.parameters.cycles())
    }

    /// What the host does for a chunk.
    fn kilocycles_per_chunk(&self) -> Option<f64> {
        let whole = &self.old(DATA, Load::Off)?.whole;
        let always = self.parameters.background * whole.seconds;
        Some((whole.cycles - always) / whole.copy_write.count as f64 / 1e3)
    }
}

fn chunks_per_second(course: &Course) -> f64 {
    course.whole.per_second(course.whole.copy_read)
}
