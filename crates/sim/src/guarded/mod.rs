//! A disk that moves from one array to another while an application reads or writes it,
//! and what the application keeps of its IO/s.
//!
//! It is moved by the daemon's own mirror and guard ([`Scene::guarded`]), or by another
//! copier at a static speed ([`Scene::at_speed`]), which is what there is to compare
//! with: its points, kept against time, make a line.

mod guarded_mover;
mod stage;
mod static_mover;

use sterna_core::Nanos;
use sterna_core::array::Preset;
use sterna_core::guard::{Aim, Unreachable};

use guarded_mover::GuardedMover;
use stage::Stage;
use static_mover::StaticMover;

/// So long the application is watched alone.
const ALONE: Nanos = Nanos::from_secs(120);

/// A move takes no longer: two hours.
const LONGEST: Nanos = Nanos::from_secs(7200);

/// What moves, and beside what.
#[derive(Clone, Copy, Debug)]
pub struct Scene {
    /// The source and, a second of the same kind, the destination.
    pub array: Preset,
    /// There is no second: both images are on one.
    pub one_array: bool,
    /// Bytes of the disk.
    pub size: u64,
    /// Requests that the application has in flight, above zero.
    pub outstanding: u32,
    /// Bytes of each, above zero.
    pub bytes: u64,
    /// It writes one place after another, around the disk; or it reads anywhere. (What is
    /// written is not copied anew by a mover with a static speed.)
    pub log: bool,
    /// It reads for so long and is quiet for so long, both above zero; or it reads all
    /// the time.
    pub bursts: Option<(Nanos, Nanos)>,
    /// It asks at this interval, above zero, where it has not so many in flight; or as
    /// soon as it is answered.
    pub every: Option<Nanos>,
    /// Where it reads, or begins to write, follows from this.
    pub seed: u64,
}

/// How the application fared, and the move.
#[derive(Clone, Debug)]
pub struct Fared {
    /// Requests that the application was answered, per second in which it asked.
    pub iops: f64,
    /// The 99th percentile of its response times.
    pub p99: Nanos,
    /// How long the move took.
    pub took: Nanos,
    /// The 99th percentiles of the seconds, or of a hundred requests each where those
    /// take longer.
    pub p99s: Vec<Nanos>,
    /// Why the guard said at last that what it holds is out of reach, if it did.
    pub unreachable: Option<Unreachable>,
}

impl Scene {
    /// Nothing is moved.
    pub fn alone(&self) -> Fared {
        let mut stage = Stage::new(self);
        // A copier with nothing to copy.
        StaticMover::new(0, 1).run(&mut stage, ALONE);
        stage.fared()
    }

    /// Moved by the daemon's mirror, with its guard.
    pub fn guarded(&self, aim: Aim) -> Fared {
        let mut stage = Stage::new(self);
        let unreachable = GuardedMover::new(self.size, aim).run(&mut stage, LONGEST);
        Fared { unreachable, ..stage.fared() }
    }

    /// Moved by a copier with a speed in bytes per second, above zero.
    pub fn at_speed(&self, speed: u64) -> Fared {
        let mut stage = Stage::new(self);
        StaticMover::new(self.size, speed).run(&mut stage, LONGEST);
        stage.fared()
    }
}
