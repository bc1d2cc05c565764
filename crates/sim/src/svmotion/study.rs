//! The whole study: all of its scenes, run side by side.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use sterna_workload::random::scatter;

use super::course::Course;
use super::extent::Extent;
use super::parameters::Parameters;
use super::scene::{Disk, Load, Scene, Side};
use super::world::World;

/// Threads at most: as many as there are scenes would be.
const THREADS_MAX: usize = 8;

/// The study as it went.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// Its numbers.
    pub parameters: Parameters,
    /// How much of it was run.
    pub extent: Extent,
    /// Every scene with what came out, in the order of [`Scene::all`].
    pub courses: Vec<(Scene, Course)>,
}

impl Study {
    /// Runs it; `told` hears of each scene that has ended. The same seed gives the same
    /// study, on any number of threads.
    pub fn run(
        parameters: Parameters,
        extent: Extent,
        seed: u64,
        told: impl Fn(Scene) + Sync,
    ) -> Study {
        let scenes = Scene::all();
        let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let work = || {
            while let number = next.fetch_add(1, Ordering::Relaxed)
                && let Some(&scene) = scenes.get(number)
            {
                let seed = scatter(seed ^ scatter(number as u64));
                let course = World::run(scene, extent, &parameters, seed);
                done.lock().expect("no thread panics with it").push((scene, course));
                told(scene);
            }
        };
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            (0..cpus.min(THREADS_MAX)).for_each(|_| drop(scope.spawn(work)));
        });
        let mut courses = done.into_inner().expect("no thread panics with it");
        courses.sort_by_key(|(scene, _)| scenes.iter().position(|it| it == scene));
        Study { parameters, extent, courses }
    }

    /// What came out of a scene.
    pub fn course(&self, scene: Scene) -> Option<&Course> {
        let found = self.courses.iter().find(|(it, _)| *it == scene);
        found.map(|(_, course)| course)
    }

    /// What came out of the move of a disk from the old array, or of no move.
    pub(super) fn old(&self, disk: Option<Disk>, load: Load) -> Option<&Course> {
        self.course(Scene { from: Side::Old, disk, load })
    }
}
