//! The samples: what disks, classes and datastores did, ten times a second.
//!
//! One thread (the sampler of `sterna_storage`) takes the windows of all disks from the engine
//! and enters them here; whoever decides something ten times a second listens; whoever wants
//! to know later asks for a span of the last day.
//!
//! A class's window is its disks' joined, and that of the disks in none is another; the
//! built-in class `migration` is what was copied. A datastore's is that of the disks whose
//! image it holds and of what was copied from and to it, so it is what its device did. A
//! disk that moved counts where its image was at the time.
//!
//! Nothing is kept of what did nothing for a day, but its total (`totals`).

mod chart;
mod device;
mod look;
mod totals;

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use sterna_api::{Device, Error, Result};
use sterna_core::measure::{LqFit, Summary, Timeline, Window};
use sterna_core::qos::ClassId;
use sterna_core::{DiskId, Nanos};
use sterna_os::lock;

pub use self::chart::Subject;
use self::device::DeviceLine;
pub use self::look::load;
pub use self::totals::{Total, Totals};

/// How often.
pub const EVERY: Duration = Duration::from_millis(100);

/// A window of time that somebody asks about, in seconds; refused if it is not between
/// these.
pub fn window(asked_s: f64, least_s: f64, most_s: f64) -> Result<Nanos> {
    if !(least_s..=most_s).contains(&asked_s) {
        let message = format!("a window cannot have {asked_s:?} s");
        let hint = format!("it can have {least_s} to {most_s} s");
        return Err(Error::invalid(message).hint(hint));
    }
    Ok(Nanos((asked_s * 1e9) as u64))
}

/// What happened since the sample before.
#[derive(Debug, Default)]
pub struct Tick {
    /// How long that was.
    pub span: Nanos,
    /// Disks that did something, or had just before.
    pub disks: Vec<Sample>,
    /// What was copied from and to datastores.
    pub copied: Vec<(String, Window)>,
}

/// What a disk did.
#[derive(Debug)]
pub struct Sample {
    /// Which disk.
    pub disk: DiskId,
    /// Where its image was.
    pub datastore: Option<String>,
    /// The class that the disk was in.
    pub class: Option<ClassId>,
    /// What it did since the sample before.
    pub window: Window,
}

impl Tick {
    /// A disk's window: an empty one if it did nothing.
    pub fn window(&self, disk: DiskId) -> Window {
        let found = self.disks.iter().find(|sample| sample.disk == disk);
        let idle = || Window { span: self.span, ..Window::default() };
        found.map_or_else(idle, |sample| sample.window.clone())
    }
}

/// Who is told of each tick. It must not wait for anything.
type Listener = Box<dyn FnMut(&Tick) + Send>;

/// The samples.
pub struct Samples {
    epoch: Instant,
    table: Mutex<Table>,
    listeners: Mutex<Vec<Listener>>,
}

impl Default for Samples {
    fn default() -> Self {
        let (table, listeners) = Default::default();
        Samples { epoch: Instant::now(), table, listeners }
    }
}

/// What is kept.
#[derive(Debug, Default)]
struct Table {
    /// The end of the last tick.
    now: Nanos,
    all: Timeline,
    disks: Rows<DiskId>,
    classes: Rows<ClassId>,
    datastores: Rows<String>,
    devices: HashMap<String, DeviceLine>,
    totals: Totals,
}

/// Timelines by what they are of.
#[derive(Debug)]
struct Rows<K>(HashMap<K, Timeline>);

impl<K> Default for Rows<K> {
    fn default() -> Self {
        Rows(HashMap::new())
    }
}

impl<K: Eq + Hash> Rows<K> {
    fn push(&mut self, key: K, now: Nanos, window: &Window) {
        self.0.entry(key).or_default().push(now, window);
    }

    /// Of what did nothing, that it did nothing.
    fn since(&self, key: &K, now: Nanos, span: Nanos) -> Summary {
        let known = self.0.get(key).and_then(|timeline| timeline.since(now, span));
        known.unwrap_or(Summary { span: span.min(now), ..Summary::default() })
    }
}

impl Samples {
    /// Whoever is added here is called after each tick, for ever.
    pub fn listen(&self, listener: impl FnMut(&Tick) + Send + 'static) {
        lock(&self.listeners).push(Box::new(listener));
    }

    /// What a disk did in the last `span`, up to a day.
    pub fn of_disk(&self, disk: DiskId, span: Nanos) -> Summary {
        self.look(span).disk(disk)
    }

    /// What a datastore's device did in the last `span`, up to a day.
    pub fn of_datastore(&self, datastore: &str, span: Nanos) -> Summary {
        self.look(span).datastore(datastore).0
    }

    /// What a datastore's device can do; nothing if nothing is known of it.
    pub fn device(&self, datastore: &str) -> Option<LqFit> {
        let table = lock(&self.table);
        table.devices.get(datastore).map(|device| device.fit(table.now))
    }

    /// Learns what a probe of a datastore's device has found; gives what is known now.
    pub fn probed(&self, datastore: &str, found: LqFit) -> Device {
        let mut table = lock(&self.table);
        let now = table.now;
        let device = table.devices.entry(datastore.to_owned()).or_default();
        device.probed(now, found);
        device.view(now)
    }

    /// The most requests per second that a datastore's device has done lately.
    pub fn most(&self, datastore: &str) -> Option<f64> {
        let table = lock(&self.table);
        table.devices.get(datastore).and_then(|device| device.most(table.now))
    }

    /// Forgets what was measured of a datastore that is there no more: another one may get
    /// its name.
    pub fn forget(&self, datastore: &str) {
        let mut table = lock(&self.table);
        table.datastores.0.remove(datastore);
        table.devices.remove(datastore);
        table.totals.datastores.remove(datastore);
    }

    /// Enters a tick that ends now, and tells who listens.
    pub fn enter(&self, tick: &Tick) {
        let now = Nanos::from(self.epoch.elapsed());
        lock(&self.table).enter(now, tick);
        for listener in lock(&self.listeners).iter_mut() {
            listener(tick);
        }
    }
}

impl Samples {
    /// Drops what did nothing for a day.
    pub fn tidy(&self) {
        lock(&self.table).tidy();
    }
}

impl Table {
    fn enter(&mut self, now: Nanos, tick: &Tick) {
        self.now = now;
        let mut all = Joined::default();
        let mut classes: HashMap<ClassId, Joined> = HashMap::new();
        let mut datastores: HashMap<&str, Joined> = HashMap::new();
        for Sample { disk, datastore, class, window } in &tick.disks {
            self.disks.push(*disk, now, window);
            self.totals.disks.entry(*disk).or_default().add(now, window);
            all.join(window);
            let class = class.unwrap_or(ClassId::OTHERS);
            classes.entry(class).or_default().join(window);
            if let Some(datastore) = datastore {
                datastores.entry(datastore).or_default().join(window);
            }
        }
        for (datastore, window) in &tick.copied {
            classes.entry(ClassId::MIGRATION).or_default().join(window);
            datastores.entry(datastore).or_default().join(window);
        }
        if let Some(window) = all.0 {
            self.all.push(now, &window);
        }
        for (class, joined) in classes {
            let window = joined.0.unwrap_or_default();
            self.totals.classes.entry(class).or_default().add(now, &window);
            self.classes.push(class, now, &window);
        }
        for (datastore, joined) in datastores {
            let window = joined.0.unwrap_or_default();
            let total = self.totals.datastores.entry(datastore.to_owned());
            total.or_default().add(now, &window);
            self.datastores.push(datastore.to_owned(), now, &window);
            let device = self.devices.entry(datastore.to_owned()).or_default();
            device.add(now, &window);
        }
    }

    /// Drops what did nothing for a day.
    fn tidy(&mut self) {
        let now = self.now;
        self.disks.0.retain(|_, timeline| !timeline.is_over(now));
        self.classes.0.retain(|_, timeline| !timeline.is_over(now));
        self.datastores.0.retain(|_, timeline| !timeline.is_over(now));
        let datastores = &self.datastores;
        self.devices.retain(|name, _| datastores.0.contains_key(name));
    }
}

/// Windows of the same tick in one.
#[derive(Debug, Default)]
struct Joined(Option<Window>);

impl Joined {
    fn join(&mut self, window: &Window) {
        match &mut self.0 {
            Some(joined) => joined.join(window),
            None => self.0 = Some(window.clone()),
        }
    }
}
