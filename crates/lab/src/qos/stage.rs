//! Three disks of a daemon, three applications over NBD, and a client's clock.
//!
//! Figures are what the applications see, taken every [`TICK`] by one hand, so that
//! the windows of all of them are the same. An application that rests has windows too:
//! it got nothing.

use std::ops::Range;
use std::time::{Duration, Instant};

use anyhow::Context;
use sterna_api::{AddDatastore, Client, CreateClass, CreateDisk, Provision};
use sterna_core::measure::Window;
use sterna_workload::load::{Application, Profile};
use tokio::time::{Interval, MissedTickBehavior, interval_at};

use crate::record::{Sample, Track};

/// How long a window is: four of them still tell whether a limit was in force within a
/// second.
const TICK: Duration = Duration::from_millis(250);
/// How large each disk is: more than any cache on the way, and quickly made.
const DISK: u64 = 1 << 30;
/// The datastore's name.
const STORE: &str = "array";

/// The applications, with what they do. The first is the one that matters.
pub(super) const APPLICATIONS: [(&str, Profile); 3] = [
    ("oltp", Profile::oltp()),
    ("backup", Profile::backup()),
    ("stress", Profile::stress()),
];

/// The application that matters; its class has its name.
pub(super) const OLTP: &str = APPLICATIONS[0].0;

/// What the experiment stands on.
#[derive(Clone, Debug)]
pub(super) struct Ground {
    /// The datastore.
    pub(super) location: String,
    /// Its shape.
    pub(super) shape: Option<String>,
    /// What all chance comes from.
    pub(super) seed: u64,
}

/// An application, at work or at rest.
struct Place {
    name: &'static str,
    uri: String,
    profile: Profile,
    seed: u64,
    work: Option<Application>,
}

/// The applications and what they get.
pub(super) struct Stage {
    places: Vec<Place>,
    tracks: Vec<Track>,
    begin: Instant,
    ticker: Interval,
    /// When the last windows ended.
    cut: f64,
}

impl Stage {
    /// Makes the datastore, and a disk in a class of its own for each application.
    /// Nobody works yet, and the clock stands.
    pub(super) async fn prepare(
        client: &Client,
        ground: &Ground,
    ) -> anyhow::Result<Stage> {
        let Ground { location, shape, seed } = ground.clone();
        let store = AddDatastore { name: STORE.into(), location, shape };
        client.add_datastore(&store).await?;
        let mut places = Vec::new();
        for (at, (name, profile)) in APPLICATIONS.into_iter().enumerate() {
            let disk = CreateDisk {
                name: name.into(),
                size: DISK,
                datastore: Some(STORE.into()),
                provision: Provision::Thin,
            };
            let disk = client.create_disk(&disk).await?;
            let uri = disk.disk.uris.into_iter().next();
            let uri = uri.with_context(|| format!("disk {name} is not served"))?;
            let disks = vec![name.into()];
            let class = CreateClass { name: name.into(), disks, ..Default::default() };
            client.create_class(&class).await?;
            // Seeds of their own, or all would go to the same places.
            let seed = seed.wrapping_add(at as u64);
            places.push(Place { name, uri, profile, seed, work: None });
        }
        let tracks = APPLICATIONS
            .map(|(name, _)| Track { name: name.into(), samples: Vec::new() });
        let (begin, ticker) = clock();
        Ok(Stage { places, tracks: tracks.into(), begin, ticker, cut: 0.0 })
    }

    /// The clock begins at 0.
    pub(super) fn begin(&mut self) {
        (self.begin, self.ticker) = clock();
    }

    /// Seconds since the beginning.
    pub(super) fn now(&self) -> f64 {
        self.begin.elapsed().as_secs_f64()
    }

    /// The applications from `which` on work from now on, and no others.
    pub(super) fn work(&mut self, which: Range<usize>) -> anyhow::Result<()> {
        for (at, place) in self.places.iter_mut().enumerate() {
            let Place { name, uri, profile, seed, .. } = place;
            match place.work.take() {
                Some(work) if which.contains(&at) => place.work = Some(work),
                // What was answered since the last window belongs to no phase.
                Some(work) => {
                    work.stop().with_context(|| format!("cannot end {name}"))?;
                }
                None if which.contains(&at) => {
                    let work = Application::start(uri, profile, *seed);
                    place.work =
                        Some(work.with_context(|| format!("cannot start {name}"))?);
                }
                None => {}
            }
        }
        Ok(())
    }

    /// Waits for the end of the next window, takes it, and gives the moment.
    pub(super) async fn window(&mut self) -> anyhow::Result<f64> {
        self.ticker.tick().await;
        let now = self.now();
        for (place, track) in self.places.iter_mut().zip(&mut self.tracks) {
            let window = match &mut place.work {
                Some(work) => {
                    work.take().with_context(|| format!("cannot ask {}", place.name))?
                }
                None => idle(now - self.cut),
            };
            track.samples.push(Sample::of(now, &window));
        }
        self.cut = now;
        Ok(now)
    }

    /// What the application that matters got so far.
    pub(super) fn oltp(&self) -> &Track {
        &self.tracks[0]
    }

    /// Ends all applications, and gives what they got.
    pub(super) fn end(mut self) -> anyhow::Result<Vec<Track>> {
        self.work(0..0)?;
        Ok(self.tracks)
    }
}

/// A clock that begins now, and its windows.
fn clock() -> (Instant, Interval) {
    let now = tokio::time::Instant::now();
    let mut ticker = interval_at(now + TICK, TICK);
    ticker.set_missed_tick_behavior(MissedTickBehavior::Delay);
    (now.into_std(), ticker)
}

/// So many seconds of nothing.
fn idle(seconds: f64) -> Window {
    let span = Duration::from_secs_f64(seconds.max(0.0)).into();
    Window { span, ..Window::default() }
}
