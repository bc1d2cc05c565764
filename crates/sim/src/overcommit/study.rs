//! The whole study: each way on each medium, run side by side.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use sterna_core::Nanos;
use sterna_core::memory::{HOLD_MOST, WakeRecord};
use sterna_workload::random::{Random, scatter};

use super::customers::Core;
use super::device::{Device, speed};
use super::guest::Guest;
use super::kernel::ReadAhead;
use super::medium::Medium;
use super::parameters::Parameters;
use super::sterna::{Knows, Sterna};
use super::wake::Course;
use super::world::World;

/// An earlier wake is seen to its end, which comes before this on the slowest medium.
const EARLIER: Nanos = Nanos::from_secs(600);

/// How a guest wakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// As in the study: the hypervisor took pages out by chance, and reads each when it is touched.
    PageByPage,
    /// Sterna has taken the memory out, and Linux brings it back by itself.
    Alone,
    /// Sterna brings it back beside the running guest.
    Beside,
    /// Sterna brings it back, and may hold the guest at first.
    Held,
}

impl Way {
    /// All of them.
    pub const ALL: [Way; 4] = [Way::PageByPage, Way::Alone, Way::Beside, Way::Held];

    /// How long Sterna may hold the guest; nothing if it does nothing.
    fn hold(self) -> Option<Nanos> {
        match self {
            Way::PageByPage | Way::Alone => None,
            Way::Beside => Some(Nanos(0)),
            Way::Held => Some(HOLD_MOST),
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Way::PageByPage => "page by page",
            Way::Alone => "kernel alone",
            Way::Beside => "beside",
            Way::Held => "held",
        })
    }
}

/// The study as it went.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// Its numbers.
    pub parameters: Parameters,
    /// A guest that was never swapped out.
    pub baseline: Course,
    /// Every wake.
    pub wakes: Vec<(Medium, Way, Course)>,
}

impl Study {
    /// Runs it; `told` hears of each wake. The same seed gives the same study, on any number of
    /// threads.
    pub fn run(
        parameters: Parameters,
        seed: u64,
        told: impl Fn(Medium, Way) + Sync,
    ) -> Study {
        let ways = |medium| Way::ALL.map(|way| (medium, way));
        let all: Vec<(Medium, Way)> = Medium::ALL.into_iter().flat_map(ways).collect();
        let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let work = || {
            while let number = next.fetch_add(1, Ordering::Relaxed)
                && let Some(&(medium, way)) = all.get(number)
            {
                let course = wake(&parameters, medium, way, seed);
                done.lock()
                    .expect("no thread panics with it")
                    .push((medium, way, course));
                told(medium, way);
            }
        };
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            (0..cpus.min(all.len())).for_each(|_| drop(scope.spawn(work)));
        });
        let mut wakes = done.into_inner().expect("no thread panics with it");
        wakes.sort_by_key(|(medium, way, _)| (*medium, *way));
        Study { parameters, baseline: baseline(&parameters, seed), wakes }
    }

    /// What came out of a way on a medium.
    pub fn course(&self, medium: Medium, way: Way) -> Option<&Course> {
        let found = self.wakes.iter().find(|(on, by, _)| (*on, *by) == (medium, way));
        found.map(|(.., course)| course)
    }

    /// The part of the baseline's orders that came in each second.
    pub fn each(&self, course: &Course) -> Vec<f64> {
        (0..course.orders.len()).map(|at| self.kept(course, at, at + 1)).collect()
    }

    /// The part of the baseline's orders that came from one second until another one.
    pub fn kept(&self, course: &Course, from: usize, until: usize) -> f64 {
        course.mean(from, until) / self.baseline.whole().max(1e-9)
    }
}

fn span(parameters: &Parameters) -> Nanos {
    Nanos::from_secs(u64::from(parameters.seconds))
}

/// The customers of the wake with this number; all ways have the same ones.
fn customers(seed: u64, wake: usize) -> u64 {
    scatter(seed ^ scatter(wake as u64 + 1))
}

fn baseline(parameters: &Parameters, seed: u64) -> Course {
    let guest = Guest::new(parameters.out);
    let core = Core::new(&guest, parameters, seed);
    let device = Device::new(Medium::Flash.model(), seed);
    let parts = (guest, device);
    let seed = customers(seed, 0);
    let world = World::new(*parameters, &core, parts, (ReadAhead::none(), None), seed);
    world.run(span(parameters), false).0
}

/// The wake that counts, after the earlier ones.
fn wake(parameters: &Parameters, medium: Medium, way: Way, seed: u64) -> Course {
    let guest = Guest::new(parameters.out);
    let core = Core::new(&guest, parameters, seed);
    let model = medium.model();
    let speed = speed(&model, guest.swap_bytes(), seed);
    let mut record = WakeRecord::default();
    let earlier = if way.hold().is_some() { parameters.wakes } else { 0 };
    for number in (0..=earlier).rev() {
        let mut guest = guest.clone();
        let seed = customers(seed, number);
        let ahead = if way == Way::PageByPage {
            guest.scatter(&mut Random::new(seed));
            ReadAhead::none()
        } else {
            guest.sleep(&record);
            ReadAhead::linux()
        };
        let processors = parameters.processors as u32;
        let knows = |hold| Knows { record: record.clone(), speed, hold, processors };
        let sterna = way.hold().map(|hold| Sterna::new(knows(hold), &guest));
        let parts = (guest, Device::new(model.clone(), seed));
        let world = World::new(*parameters, &core, parts, (ahead, sterna), seed);
        let is_last = number == 0;
        let span = if is_last { span(parameters) } else { EARLIER };
        let (course, needed) = world.run(span, !is_last);
        if is_last {
            return course;
        }
        needed.into_iter().for_each(|needed| record.add(needed));
    }
    Course::default()
}
