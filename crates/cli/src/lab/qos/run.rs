//! The experiment for real: three disks of a daemon, three applications over NBD, and
//! a client's clock.
//!
//! Figures are what the applications see, taken every [`TICK`] by one hand, so that
//! the windows of all of them are the same. An application that rests has windows too:
//! it got nothing.

use std::time::{Duration, Instant};

use anyhow::Context;
use sterna_api::{AddDatastore, CreateDisk, Provision};
use sterna_core::measure::Window;
use sterna_workload::load::{Application, Profile};
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::plan::{Phase, Step};
use crate::lab::record::{Mark, Record, Sample, Track};
use crate::lab::screen::Screen;
use crate::lab::site::Site;

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

/// What the experiment stands on.
#[derive(Clone, Debug)]
pub(super) struct Ground {
    /// The datastore; a directory of the site's own if absent.
    pub(super) location: Option<String>,
    /// Its shape.
    pub(super) shape: Option<String>,
    /// What all chance comes from.
    pub(super) seed: u64,
}

/// A phase as it went.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stretch {
    /// What was done.
    pub(super) step: Step,
    /// When it began, in seconds from the experiment's start.
    pub(super) from: f64,
    /// When it ended.
    pub(super) until: f64,
}

/// The experiment as it went.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Outcome {
    /// What was measured.
    pub(super) record: Record,
    /// The phases.
    pub(super) stretches: Vec<Stretch>,
}

/// An application, at work or at rest.
struct Place {
    uri: String,
    profile: Profile,
    seed: u64,
    work: Option<Application>,
}

/// The experiment under way.
pub(super) struct Run<'s> {
    screen: &'s Screen,
    /// Before the site: applications end before their disks do.
    places: Vec<Place>,
    site: Site,
    outcome: Outcome,
    begin: Instant,
    ticker: Interval,
    /// When the last windows ended.
    cut: f64,
}

impl<'s> Run<'s> {
    /// Makes the datastore and the disks. Nobody works yet.
    pub(super) async fn prepare(
        site: Site,
        ground: &Ground,
        screen: &'s Screen,
    ) -> anyhow::Result<Run<'s>> {
        let location = match &ground.location {
            Some(location) => location.clone(),
            None => site.directory(STORE)?.display().to_string(),
        };
        let shape = ground.shape.clone();
        let store = AddDatastore { name: STORE.into(), location, shape };
        site.client().add_datastore(&store).await?;
        let mut places = Vec::new();
        let mut record = Record::default();
        for (at, (name, profile)) in APPLICATIONS.into_iter().enumerate() {
            let disk = CreateDisk {
                name: name.into(),
                size: DISK,
                datastore: STORE.into(),
                provision: Provision::Thin,
            };
            let disk = site.client().create_disk(&disk).await?;
            let uri = disk.uris.into_iter().next();
            let uri = uri.with_context(|| format!("disk {name} is not served"))?;
            // Seeds of their own, or all would go to the same places.
            let seed = ground.seed.wrapping_add(at as u64);
            places.push(Place { uri, profile, seed, work: None });
            record.tracks.push(Track { name: name.into(), samples: Vec::new() });
        }
        let mut ticker = interval(TICK);
        ticker.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(Run {
            screen,
            places,
            site,
            outcome: Outcome { record, stretches: Vec::new() },
            begin: Instant::now(),
            ticker,
            cut: 0.0,
        })
    }

    /// Goes through the phases, and ends everything.
    pub(super) async fn go(mut self, phases: &[Phase]) -> anyhow::Result<Outcome> {
        self.begin = Instant::now();
        for phase in phases {
            self.screen.phase(self.now(), &phase.step.words());
            self.mark(phase.step.words());
            let from = self.now();
            self.begin(phase.step)?;
            self.watch(from + phase.seconds).await?;
            let until = self.cut;
            let step = phase.step;
            self.outcome.stretches.push(Stretch { step, from, until });
        }
        for (place, (name, _)) in self.places.iter_mut().zip(APPLICATIONS) {
            if let Some(work) = place.work.take() {
                work.stop().with_context(|| format!("end {name}"))?;
            }
        }
        Ok(self.outcome)
    }

    fn now(&self) -> f64 {
        self.begin.elapsed().as_secs_f64()
    }

    fn mark(&mut self, text: String) {
        let at = self.now();
        self.outcome.record.marks.push(Mark { at, text });
    }

    fn begin(&mut self, step: Step) -> anyhow::Result<()> {
        match step {
            Step::Alone => self.work(0..1),
            Step::Contention => self.work(0..APPLICATIONS.len()),
        }
    }

    /// These applications work from now on, and no others.
    fn work(&mut self, which: std::ops::Range<usize>) -> anyhow::Result<()> {
        for (at, place) in self.places.iter_mut().enumerate() {
            let name = APPLICATIONS[at].0;
            match place.work.take() {
                Some(work) if which.contains(&at) => place.work = Some(work),
                // What was answered since the last window belongs to no phase.
                Some(work) => {
                    work.stop().with_context(|| format!("end {name}"))?;
                }
                None if which.contains(&at) => {
                    let Place { uri, profile, seed, .. } = &*place;
                    let work = Application::start(uri, profile, *seed);
                    place.work = Some(work.with_context(|| format!("start {name}"))?);
                }
                None => {}
            }
        }
        Ok(())
    }

    /// Takes windows until that moment.
    async fn watch(&mut self, until: f64) -> anyhow::Result<()> {
        while self.now() < until {
            self.ticker.tick().await;
            let now = self.now();
            for (at, place) in self.places.iter_mut().enumerate() {
                let name = APPLICATIONS[at].0;
                let window = match &mut place.work {
                    Some(work) => work.take().with_context(|| format!("ask {name}"))?,
                    None => idle(now - self.cut),
                };
                let samples = &mut self.outcome.record.tracks[at].samples;
                samples.push(Sample::of(now, &window));
            }
            self.cut = now;
            self.screen.tick(now);
        }
        Ok(())
    }
}

/// So many seconds of nothing.
fn idle(seconds: f64) -> Window {
    let span = Duration::from_secs_f64(seconds.max(0.0)).into();
    Window { span, ..Window::default() }
}
