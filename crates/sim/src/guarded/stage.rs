//! The two arrays and the application.

use sterna_core::array::{Array, Completion, Kind, Model, Request};
use sterna_core::guard::Experience;
use sterna_core::measure::{Spread, Timeline, Window};
use sterna_core::{ByteRange, IdMap, Nanos};
use sterna_workload::random::Random;

use super::{Does, Fared, Scene};

/// Who asked an array for something.
#[derive(Clone, Copy, Debug)]
enum Asked {
    /// The application, by a name for it.
    Guest(u64),
    /// The mirror, for what the application of that name writes, of the destination.
    Twin(u64),
    /// A mover, for bytes of the source or of the destination, by its own number.
    Read(u64),
    Write(u64),
}

/// What has been answered.
#[derive(Clone, Copy, Debug)]
pub(super) enum Answered {
    /// A request of the application's, by the source.
    Guest(u64),
    /// And by the destination.
    Twin(u64),
    /// A mover's read of the source.
    Read(u64),
    /// A mover's write to the destination.
    Write(u64),
}

/// A percentile is taken of so many seconds at least in which the application asks, and
/// of so many requests: of fewer, the 99th is the longest.
const STRETCH: (f64, u64) = (1.0, 100);

/// Of so much before its end the daemon tells what an application does.
const LATELY: Nanos = Nanos::from_secs(10);

/// Two arrays, and an application.
pub(super) struct Stage {
    scene: Scene,
    now: Nanos,
    source: Array,
    /// Another array, unless there is one for both.
    destination: Option<Array>,
    asked: IdMap<u64, Asked>,
    /// The next name of a request.
    next: u64,
    /// What the application waits for and since when, by its name for it.
    open: IdMap<u64, (Kind, Nanos)>,
    /// The next of those names.
    next_name: u64,
    random: Random,
    /// Requests that the application has not in flight, and would.
    eager: u32,
    /// When it asks next, if it does so at a rate.
    next_at: Nanos,
    /// Where a log goes on.
    head: u64,
    window: Window,
    /// All windows before, and the last of them one by one.
    past: Window,
    timeline: Timeline,
    /// The response times of which a percentile will be taken, and since which second
    /// of those in which it asked.
    stretch: Spread,
    stretch_from: f64,
    /// The 99th percentiles of the stretches before.
    p99s: Vec<Nanos>,
}

impl Stage {
    pub(super) fn new(scene: &Scene) -> Stage {
        let array = |model: &Model| Array::new(model.clone(), scene.seed);
        Stage {
            scene: scene.clone(),
            now: Nanos(0),
            source: array(&scene.from),
            destination: scene.to.as_ref().map(array),
            asked: IdMap::default(),
            next: 0,
            open: IdMap::default(),
            next_name: 0,
            random: Random::new(scene.seed),
            eager: scene.outstanding,
            next_at: Nanos(0),
            head: Random::new(scene.seed).below(scene.size / scene.bytes) * scene.bytes,
            window: Window::default(),
            past: Window::default(),
            timeline: Timeline::default(),
            stretch: Spread::default(),
            stretch_from: 0.0,
            p99s: Vec::new(),
        }
    }

    pub(super) fn now(&self) -> Nanos {
        self.now
    }

    /// What the application asks for now, if it asks for anything, and its name.
    pub(super) fn next_request(&mut self) -> Option<(u64, Kind, ByteRange)> {
        if self.eager == 0 || self.quiet_until().is_some() || self.next_at > self.now {
            return None;
        }
        self.eager -= 1;
        if let Some(every) = self.scene.every {
            self.next_at = self.next_at.plus(every);
        }
        let name = self.next_name;
        self.next_name += 1;
        self.window.in_flight += 1;
        let Scene { size, bytes, does, .. } = self.scene;
        let at = match does {
            Does::Log => self.head,
            Does::Reads | Does::Mixed(_) => self.random.below(size / bytes) * bytes,
        };
        self.head = (at + bytes) % (size / bytes * bytes);
        let kind = self.kind();
        self.open.insert(name, (kind, self.now));
        Some((name, kind, ByteRange::new(at, bytes)))
    }

    /// The end of the pause that the application makes now.
    fn quiet_until(&self) -> Option<Nanos> {
        let (on, off) = self.scene.bursts?;
        let cycle = on.plus(off).0;
        let begun = self.now.0 / cycle * cycle;
        (self.now.0 - begun >= on.0).then_some(Nanos(begun + cycle))
    }

    /// The seconds in which it asked.
    fn asking(&self) -> f64 {
        let now = self.now.as_secs_f64();
        let Some((on, off)) = self.scene.bursts else { return now };
        let (on, cycle) = (on.as_secs_f64(), on.plus(off).as_secs_f64());
        (now / cycle).floor() * on + (now % cycle).min(on)
    }

    /// What the application does next with what it asks for.
    fn kind(&mut self) -> Kind {
        match self.scene.does {
            Does::Mixed(reads) if !self.random.percent(reads) => Kind::Write,
            Does::Log => Kind::Write,
            Does::Reads | Does::Mixed(_) => Kind::Read,
        }
    }

    /// The application asks the source for these bytes.
    pub(super) fn ask(&mut self, name: u64, kind: Kind, range: ByteRange) {
        self.submit(Asked::Guest(name), kind, range);
    }

    /// The application has its answer.
    pub(super) fn answer(&mut self, name: u64) {
        let Some((kind, since)) = self.open.remove(&name) else { return };
        let took = self.now.since(since);
        let window = &mut self.window;
        window.in_flight -= 1;
        self.eager += 1;
        let side = match kind {
            Kind::Write => &mut window.write,
            Kind::Read => &mut window.read,
        };
        side.record(self.scene.bytes, took, Nanos(0), took);
        window.response.record(took);
        self.stretch.record(took);
        let ((seconds, requests), asking) = (STRETCH, self.asking());
        if asking - self.stretch_from >= seconds && self.stretch.len() >= requests {
            let stretch = std::mem::take(&mut self.stretch);
            self.p99s.extend(stretch.quantile(0.99));
            self.stretch_from = asking;
        }
    }

    /// What the application writes is written to the destination as well.
    pub(super) fn write_twin(&mut self, name: u64, range: ByteRange) {
        self.submit(Asked::Twin(name), Kind::Write, range);
    }

    /// A mover reads these bytes of the source.
    pub(super) fn read(&mut self, number: u64, range: ByteRange) {
        self.submit(Asked::Read(number), Kind::Read, range);
    }

    /// A mover writes these bytes to the destination.
    pub(super) fn write(&mut self, number: u64, range: ByteRange) {
        self.submit(Asked::Write(number), Kind::Write, range);
    }

    fn submit(&mut self, asked: Asked, kind: Kind, range: ByteRange) {
        let id = self.next;
        self.next += 1;
        let (offset, bytes) = (range.offset, range.len);
        let lun = u32::from(matches!(asked, Asked::Write(_) | Asked::Twin(_)));
        let array = match (lun, &mut self.destination) {
            (1, Some(destination)) => destination,
            _ => &mut self.source,
        };
        self.asked.insert(id, asked);
        array.submit(self.now, Request { id, lun, kind, offset, bytes });
    }

    /// Goes on until something is answered or the application asks, but not beyond `until`;
    /// gives what was answered. What arrays do within themselves is nobody's business.
    pub(super) fn advance(&mut self, until: Nanos) -> Vec<Answered> {
        let asks =
            self.quiet_until().or((self.next_at > self.now).then_some(self.next_at));
        let begins = if self.eager > 0 { asks } else { None };
        let until = begins.map_or(until, |begins| begins.min(until)).max(self.now);
        let mut completions: Vec<Completion> = Vec::new();
        while completions.is_empty() {
            let destination = self.destination.as_ref().and_then(Array::next_event);
            let next = self.source.next_event().into_iter().chain(destination).min();
            let Some(next) = next.filter(|next| *next <= until) else {
                self.now = until;
                break;
            };
            self.now = next.max(self.now);
            self.source.advance(self.now, &mut completions);
            if let Some(destination) = &mut self.destination {
                destination.advance(self.now, &mut completions);
            }
        }
        completions.iter().filter_map(|it| self.answered(it.id)).collect()
    }

    fn answered(&mut self, id: u64) -> Option<Answered> {
        Some(match self.asked.remove(&id)? {
            Asked::Guest(name) => Answered::Guest(name),
            Asked::Twin(name) => Answered::Twin(name),
            Asked::Read(number) => Answered::Read(number),
            Asked::Write(number) => Answered::Write(number),
        })
    }

    /// Ends a window of this length, and gives it.
    pub(super) fn window(&mut self, span: Nanos) -> Window {
        let in_flight = self.window.in_flight;
        let next = Window { in_flight, ..Window::default() };
        let mut window = std::mem::replace(&mut self.window, next);
        window.span = span;
        self.past.extend(&window);
        if window.in_flight > 0 || window.total().operations > 0 {
            self.timeline.push(self.now, &window);
        }
        window
    }

    /// How the application fared until now.
    pub(super) fn fared(&mut self) -> Fared {
        self.window(Nanos(0));
        let seconds = self.asking().max(1e-9);
        Fared {
            iops: self.past.total().operations as f64 / seconds,
            p99: self.past.response.quantile(0.99).unwrap_or_default(),
            took: self.now,
            p99s: std::mem::take(&mut self.p99s),
            unreachable: None,
            experience: Experience::default(),
            lately: self.timeline.since(self.now, LATELY).unwrap_or_default(),
        }
    }
}
