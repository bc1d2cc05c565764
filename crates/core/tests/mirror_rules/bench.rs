//! A mirror to be told things, with its time and what it asked for.

use sterna_core::mirror::{
    Action, Config, Counted, Event, FLUSH_EVERY, HOLD_BUDGET, Job, JobOutcome, MemoryMap,
    Mirror, RegionMap, Request, RequestId, RequestKind, Stored,
};
use sterna_core::{ByteRange, Nanos};

pub(crate) const REGION: u64 = 64 << 10;
pub(crate) const REGIONS: u64 = 16;

/// A mirror, its time, and what it asked for last.
pub(crate) struct Bench {
    pub(crate) mirror: Mirror<MemoryMap>,
    pub(crate) now: Nanos,
    pub(crate) asked: Vec<Action>,
    /// The source answers flushes at once.
    pub(crate) source_flushes: bool,
}

impl Bench {
    /// A mirror in which all regions are as `stored` says.
    pub(crate) fn with(stored: Stored, config: Config) -> Bench {
        let map = MemoryMap::new(config.regions(), stored);
        let now = Nanos::from_secs(1);
        Bench {
            mirror: Mirror::new(now, config, Counted::new(map)),
            now,
            asked: Vec::new(),
            source_flushes: true,
        }
    }

    pub(crate) fn config() -> Config {
        Config { scan: false, ..Config::new(REGIONS * REGION) }
    }

    /// A mirror whose regions are synced but the last, which keeps the
    /// switch-over from beginning: its copy is in flight and never ends.
    pub(crate) fn almost_done() -> Bench {
        let mut map = MemoryMap::new(REGIONS, Stored::Synced);
        map.set(REGIONS - 1, Stored::Late);
        let now = Nanos::from_secs(1);
        let mirror = Mirror::new(now, Bench::config(), Counted::new(map));
        let mut bench = Bench { mirror, now, asked: Vec::new(), source_flushes: true };
        bench.tell(Event::Tick);
        bench
    }

    pub(crate) fn tell(&mut self, event: Event) -> &[Action] {
        self.asked.clear();
        self.mirror.handle(self.now, event, &mut self.asked);
        if self.source_flushes && self.asked.contains(&Action::FlushSource) {
            self.asked.retain(|action| *action != Action::FlushSource);
            self.mirror.handle(self.now, Event::SourceFlushed(true), &mut self.asked);
        }
        &self.asked
    }

    pub(crate) fn after(&mut self, span: Nanos) -> &mut Bench {
        self.now = self.now.plus(span);
        self
    }

    /// A guest write of one block in `region`.
    pub(crate) fn write(&mut self, id: u64, region: u64) -> &[Action] {
        let range = ByteRange::new(region * REGION, 4096);
        self.arrive(id, RequestKind::Write, range)
    }

    pub(crate) fn arrive(
        &mut self,
        id: u64,
        kind: RequestKind,
        range: ByteRange,
    ) -> &[Action] {
        self.tell(Event::Arrived(Request { id: RequestId(id), kind, range }))
    }

    pub(crate) fn source_done(&mut self, id: u64) -> &[Action] {
        self.tell(Event::SourceDone { id: RequestId(id), ok: true })
    }

    pub(crate) fn destination_done(&mut self, id: u64) -> &[Action] {
        self.tell(Event::DestinationDone { id: RequestId(id), result: Ok(()) })
    }

    pub(crate) fn jobs(&self) -> Vec<Job> {
        jobs(&self.asked)
    }

    pub(crate) fn copied(&mut self, job: Job) -> &[Action] {
        let outcome = JobOutcome::Copied { written: job.range.len };
        self.tell(Event::JobDone { job: job.id, outcome })
    }

    /// A write that the destination takes later than patience allows, and that is copied.
    pub(crate) fn copied_late(&mut self, id: u64) {
        self.write(id, 0);
        self.source_done(id);
        self.after(HOLD_BUDGET).tell(Event::Tick);
        self.destination_done(id);
        let job = self.jobs().pop().expect("the region is copied");
        self.copied(job);
    }

    pub(crate) fn stored(&self, region: u64) -> Stored {
        self.mirror.map().get(region)
    }

    /// Lets the time come at which the destination is flushed, and flushes it.
    pub(crate) fn flush(&mut self) {
        self.flush_begins();
        self.tell(Event::Flushed(Ok(())));
    }

    /// Lets that time come.
    pub(crate) fn flush_begins(&mut self) {
        self.after(FLUSH_EVERY).tell(Event::Tick);
        assert!(self.asked.contains(&Action::FlushDestination), "{:?}", self.asked);
    }

    /// Brings a fully synced mirror to the step in which the seal is asked for.
    pub(crate) fn reach_seal(&mut self) {
        assert_eq!(self.asked.last(), Some(&Action::FlushDestination));
        assert_eq!(self.tell(Event::Flushed(Ok(()))), [Action::Prepare]);
        self.tell(Event::Prepared(Some(Nanos(0))));
        assert!(self.mirror.holding());
        assert_eq!(self.asked.last(), Some(&Action::FlushDestination));
        assert_eq!(self.tell(Event::Flushed(Ok(()))), [Action::Seal]);
    }

    /// Brings a fully synced mirror to the step in which the commit is asked for.
    pub(crate) fn reach_commit(&mut self) {
        self.reach_seal();
        assert_eq!(self.tell(Event::Sealed(Ok(()))), [Action::Commit]);
    }
}

/// The jobs that are started by these.
pub(crate) fn jobs(asked: &[Action]) -> Vec<Job> {
    let job = |action: &Action| match action {
        Action::Start(job) => Some(*job),
        _ => None,
    };
    asked.iter().filter_map(job).collect()
}

pub(crate) fn source(id: u64) -> Action {
    Action::Source(RequestId(id))
}

pub(crate) fn destination(id: u64) -> Action {
    Action::Destination(RequestId(id))
}

pub(crate) fn answer(id: u64) -> Action {
    Action::Answer(RequestId(id))
}
