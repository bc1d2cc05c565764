//! The datastores, the disks and who uses them, for real.
//!
//! A machine *holds its target* if it gets what it asks for: its requests come at random
//! moments, so how many there were is counted, and not taken from the rate. One request
//! is always allowed to be under way.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use anyhow::Context;
use sterna_api::{AddDatastore, Client, ImportDisk};
use sterna_sim::fluid::{Done, Phase, Sample};
use sterna_workload::load::Application;

use super::cast::{Cast, Machine, NAS};

/// The part of what a machine asks for that it must get, as published.
const HELD: f64 = 0.99;

/// What is written to a disk at a time before the experiment begins.
const PIECE: usize = 1 << 20;

/// A small disk on each datastore that is left. What it takes to move it is what
/// predictions know of that datastore before the first wave.
const SCOUT: u64 = 64 << 20;

/// A machine, at work or at rest.
struct Place {
    machine: Machine,
    uri: String,
    seed: u64,
    work: Option<Application>,
    /// Requests answered since it was started.
    answered: u64,
    /// Requests asked for and answered when the phase began.
    before: (u64, u64),
}

impl Place {
    /// The part of what it asked for in this phase that it got; nothing if it asked for
    /// nothing.
    fn kept(&self) -> Option<f64> {
        let asked = self.work.as_ref()?.asked() - self.before.0;
        let answered = self.answered - self.before.1;
        (asked > 0).then(|| (answered + 1).min(asked) as f64 / asked as f64)
    }
}

/// All machines, and the clock.
pub(super) struct Stage {
    places: Vec<Place>,
    begin: Instant,
    /// When the last window ended.
    cut: f64,
    /// Of each profile, in this phase.
    done: Vec<Done>,
}

impl Stage {
    /// Makes datastores and disks in a directory. Nobody works yet.
    pub(super) async fn prepare(
        client: &Client,
        dir: &Path,
        cast: &Cast,
        array: &str,
        seed: u64,
    ) -> anyhow::Result<Stage> {
        for name in cast.datastores() {
            let path = dir.join(&name);
            fs::create_dir(&path)
                .with_context(|| format!("cannot make {}", path.display()))?;
            let location = format!("{array}&path={}", path.display());
            let add = AddDatastore { name: name.clone(), location, shape: None };
            client.add_datastore(&add).await?;
            if name != NAS {
                import(client, dir, &name, &scout(&name), SCOUT, SCOUT).await?;
            }
        }
        let mut places = Vec::new();
        for (at, machine) in cast.machines.iter().cloned().enumerate() {
            let Machine { name, size, written, .. } = &machine;
            let store = Cast::block(machine.wave);
            let uri = import(client, dir, &store, name, *size, *written).await?;
            let seed = seed.wrapping_add(at as u64);
            let (work, answered, before) = (None, 0, (0, 0));
            places.push(Place { machine, uri, seed, work, answered, before });
        }
        let done = vec![Done::default(); cast.scenario.profiles.len()];
        Ok(Stage { places, begin: Instant::now(), cut: 0.0, done })
    }

    /// The clock begins at 0, and all machines begin to work.
    pub(super) fn begin(&mut self) -> anyhow::Result<()> {
        (self.begin, self.cut) = (Instant::now(), 0.0);
        self.places.iter_mut().try_for_each(start)
    }

    /// Seconds since the beginning.
    pub(super) fn now(&self) -> f64 {
        self.begin.elapsed().as_secs_f64()
    }

    /// The machines of a wave stop.
    pub(super) fn stop(&mut self, wave: usize) -> anyhow::Result<()> {
        for place in self.places.iter_mut().filter(|it| it.machine.wave == wave) {
            if let Some(work) = place.work.take() {
                let name = &place.machine.name;
                work.stop().with_context(|| format!("cannot stop {name}"))?;
            }
        }
        Ok(())
    }

    /// The machines of a wave work again.
    pub(super) fn start(&mut self, wave: usize) -> anyhow::Result<()> {
        let of_it = self.places.iter_mut().filter(|it| it.machine.wave == wave);
        of_it.into_iter().try_for_each(start)
    }

    /// A phase begins: what was before does not count for it.
    pub(super) fn phase(&mut self) -> anyhow::Result<()> {
        self.window()?;
        self.done.fill(Done::default());
        for place in &mut self.places {
            let asked = place.work.as_ref().map_or(0, Application::asked);
            place.before = (asked, place.answered);
        }
        Ok(())
    }

    /// What happened since the last window; of copies it knows nothing.
    pub(super) fn window(&mut self) -> anyhow::Result<Sample> {
        let mut sample = Sample { at: self.now(), ..Sample::default() };
        let (mut requests, mut seconds) = (0, 0.0);
        for place in &mut self.places {
            let Some(work) = &mut place.work else { continue };
            let name = &place.machine.name;
            let window = work.take().with_context(|| format!("cannot ask {name}"))?;
            let total = window.total();
            let response = total.response.as_millis_f64() / 1e3;
            place.answered += total.operations;
            (requests, seconds) = (requests + total.operations, seconds + response);
            let done = &mut self.done[place.machine.profile];
            done.requests += total.operations as f64;
            done.seconds += response;
            if let sterna_workload::load::Pace::Open { rate } = place.machine.load.pace {
                sample.wanted += rate;
                done.wanted += rate * (sample.at - self.cut);
            }
        }
        sample.iops = requests as f64 / (sample.at - self.cut).max(f64::EPSILON);
        sample.response = seconds / requests.max(1) as f64;
        self.cut = sample.at;
        Ok(sample)
    }

    /// Tells of a phase what its machines got.
    pub(super) fn tell(&self, phase: &mut Phase) {
        let kept: Vec<f64> = self.places.iter().filter_map(Place::kept).collect();
        phase.working = kept.len();
        phase.held = kept.iter().filter(|kept| **kept >= HELD).count();
        phase.least = kept.into_iter().reduce(f64::min);
        phase.profiles = self.done.clone();
    }
}

/// The small disk of a datastore.
pub(super) fn scout(datastore: &str) -> String {
    format!("first-of-{datastore}")
}

fn start(place: &mut Place) -> anyhow::Result<()> {
    let Machine { name, load, .. } = &place.machine;
    let work = Application::start(&place.uri, load, place.seed);
    place.work = Some(work.with_context(|| format!("cannot start {name}"))?);
    (place.answered, place.before) = (0, (0, 0));
    Ok(())
}

/// Makes an image of which the first bytes are `written`, and a disk of it. Gives where it
/// is served.
async fn import(
    client: &Client,
    dir: &Path,
    datastore: &str,
    name: &str,
    size: u64,
    written: u64,
) -> anyhow::Result<String> {
    let path = dir.join(datastore).join(format!("{name}.img"));
    fill(&path, size, written)
        .with_context(|| format!("cannot write {}", path.display()))?;
    let request = ImportDisk {
        name: name.into(),
        datastore: datastore.into(),
        file: path.display().to_string(),
    };
    let disk = client.import_disk(&request).await?;
    let uri = disk.uris.into_iter().next();
    uri.with_context(|| format!("disk {name} is not served"))
}

fn fill(path: &Path, size: u64, written: u64) -> std::io::Result<()> {
    let mut file = File::create_new(path)?;
    file.set_len(size)?;
    // Nothing of it is zero; more is not wanted of it.
    let piece: Vec<u8> = (0..PIECE).map(|at| (at % 251) as u8 + 1).collect();
    let mut left = written;
    while left > 0 {
        let len = left.min(PIECE as u64);
        file.write_all(&piece[..len as usize])?;
        left -= len;
    }
    Ok(())
}
