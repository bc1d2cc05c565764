//! A disk that moves from one array to another while an application reads or writes it,
//! what the application keeps of its IO/s, and how long it takes.
//!
//! It is moved by the daemon's own mirror, with its guard ([`Scene::guarded`]) or without
//! one ([`Scene::unguarded`]), or by another copier at a static speed
//! ([`Scene::at_speed`]), which is what there is to compare with: its points, kept against
//! time, make a line.

mod guarded_mover;
mod stage;
mod static_mover;

use sterna_core::Nanos;
use sterna_core::array::Model;
use sterna_core::guard::{Experience, Guard, GuardAim, GuardStatus, Unreachable};
use sterna_core::measure::Summary;

use guarded_mover::GuardedMover;
use stage::Stage;
use static_mover::StaticMover;

/// So long the application is watched alone.
const ALONE: Nanos = Nanos::from_secs(120);

/// A move takes no longer: two hours.
const LONGEST: Nanos = Nanos::from_secs(7200);

/// What the application asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Does {
    /// It reads anywhere.
    Reads,
    /// It reads and writes anywhere; so many in a hundred are reads.
    Mixed(u32),
    /// It writes one place after another, around the disk. (What is written is not copied
    /// anew by a mover with a static speed.)
    Log,
}

/// What moves, and beside what.
#[derive(Clone, Debug)]
pub struct Scene {
    /// The source.
    pub from: Model,
    /// The destination, another array; nothing if both images are on one.
    pub to: Option<Model>,
    /// Bytes of the disk.
    pub size: u64,
    /// Requests that the application has in flight; nobody is there if that is zero.
    pub outstanding: u32,
    /// Bytes of each, above zero.
    pub bytes: u64,
    /// What it asks for.
    pub does: Does,
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
    /// What the guard has found out, if there was one.
    pub experience: Experience,
    /// What the daemon would have known of the application at the end: its last seconds.
    pub lately: Summary,
}

impl Scene {
    /// Nothing is moved.
    pub fn alone(&self) -> Fared {
        self.watched(ALONE)
    }

    /// Nothing is moved for so long, above zero.
    pub fn watched(&self, span: Nanos) -> Fared {
        let mut stage = Stage::new(self);
        // A copier with nothing to copy.
        StaticMover::new(0, 1).run(&mut stage, span);
        stage.fared()
    }

    /// Moved by the daemon's mirror, with its guard.
    pub fn guarded(&self, aim: GuardAim) -> Fared {
        self.guarded_by(Guard::new(aim))
    }

    /// The same with a guard that may know something.
    pub fn guarded_by(&self, guard: Guard) -> Fared {
        let mut stage = Stage::new(self);
        let mover = GuardedMover::new(self.size, Some(guard));
        let guard = mover.run(&mut stage, LONGEST);
        let unreachable = match guard.as_ref().map(Guard::status) {
            Some(GuardStatus::Unreachable(why)) => Some(why),
            _ => None,
        };
        let experience = guard.map(|guard| guard.experience()).unwrap_or_default();
        Fared { unreachable, experience, ..stage.fared() }
    }

    /// Moved by the daemon's mirror, as fast as it can.
    pub fn unguarded(&self) -> Fared {
        let mut stage = Stage::new(self);
        GuardedMover::new(self.size, None).run(&mut stage, LONGEST);
        stage.fared()
    }

    /// Moved by a copier with a speed in bytes per second, above zero.
    pub fn at_speed(&self, speed: u64) -> Fared {
        let mut stage = Stage::new(self);
        StaticMover::new(self.size, speed).run(&mut stage, LONGEST);
        stage.fared()
    }
}
