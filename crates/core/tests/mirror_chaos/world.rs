//! The world around the mirror: two images, a guest, time, and trouble.

use std::collections::{BTreeMap, HashMap};

use sterna_core::mirror::{
    Action, Commit, Config, Control, Counted, End, Event, Fault, HOLD_BUDGET, Job,
    JobKind, MemoryMap, Mirror, Outcome, PATIENCE, PATIENCE_RAISE_MAX, PauseReason,
    Phase, RegionMap, Request, RequestId, RequestKind, Stored,
};
use sterna_core::{ByteRange, Nanos};

use crate::history::History;
use crate::random::Random;

/// Large blocks, so that the copier's chunks are a part of the disk.
const BLOCK: u64 = 16 << 10;
const REGION: u64 = 4 * BLOCK;

/// What a world is like. Numbers are "once in so many steps"; zero is never.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) blocks: u64,
    pub(crate) chaos_steps: u64,
    pub(crate) guest_depth: usize,
    pub(crate) verify: bool,
    pub(crate) reads_zero: bool,
    pub(crate) scan: bool,
    pub(crate) rate: Option<u64>,
    pub(crate) destination_slow: bool,
    pub(crate) destination_fails: u64,
    pub(crate) source_fails: u64,
    pub(crate) hangs: u64,
    /// The destination goes out of reach, or comes back.
    pub(crate) outages: u64,
    pub(crate) kills: u64,
    pub(crate) power_losses: u64,
    pub(crate) controls: u64,
    pub(crate) discards: u64,
    /// Blocks that the copier writes and the destination silently drops.
    pub(crate) lies: u64,
    /// Mirrored writes for which there is no memory.
    pub(crate) skips: u64,
}

impl Setup {
    pub(crate) fn calm(random: &mut Random) -> Self {
        Setup {
            blocks: 4 + random.below(200),
            chaos_steps: 300 + random.below(600),
            guest_depth: 1 + random.below(12) as usize,
            verify: false,
            reads_zero: random.one_in(2),
            scan: !random.one_in(4),
            rate: random.one_in(5).then_some(8 << 20),
            destination_slow: false,
            destination_fails: 0,
            source_fails: 0,
            hangs: 0,
            outages: 0,
            kills: 0,
            power_losses: 0,
            controls: 0,
            discards: 5,
            lies: 0,
            skips: 0,
        }
    }
}

/// Something under way that lands block by block and then completes.
#[derive(Debug)]
enum Effect {
    Read { id: RequestId, moved: bool },
    Write { id: RequestId, on: Side },
    Flush { id: RequestId },
    CopyRead { job: Job, data: BTreeMap<u64, u64> },
    CopyWrite { job: Job, data: BTreeMap<u64, u64> },
    Scan { job: Job, holes: Vec<u64> },
    Compare { job: Job, seen: BTreeMap<u64, [Option<u64>; 2]> },
    FlushDestination,
    Prepare,
    Seal,
    Commit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Source,
    Destination,
    Moved,
}

#[derive(Debug)]
struct Operation {
    effect: Effect,
    /// Blocks (and for comparisons, sides) that have not landed yet.
    left: Vec<u64>,
    /// Cannot complete before this.
    not_before: Nanos,
    /// It will fail, having done no more than what is `left` now.
    fails: bool,
}

#[derive(Debug)]
struct GuestRequest {
    kind: RequestKind,
    blocks: std::ops::Range<u64>,
    value: u64,
    arrived: Nanos,
    source_started: Option<Nanos>,
    source_done: Option<Nanos>,
    ok: bool,
    possible: Vec<Vec<u64>>,
}

pub(crate) struct World {
    setup: Setup,
    random: Random,
    now: Nanos,
    clock: u64,
    mirror: Mirror<MemoryMap>,
    source: Vec<u64>,
    destination: Vec<u64>,
    /// What of the destination would survive a power loss, and the map as it was
    /// then or since.
    durable: Vec<u64>,
    old_map: MemoryMap,
    histories: Vec<History>,
    operations: Vec<Operation>,
    guest: HashMap<RequestId, GuestRequest>,
    /// Answered, but a side is still at work (overdue writes).
    lingering: HashMap<RequestId, GuestRequest>,
    next_id: u64,
    next_value: u64,
    actions: Vec<Action>,
    later: Vec<Event>,
    held_from: Option<Nanos>,
    longest_hold: Nanos,
    calm: bool,
    ended: Option<End>,
    steps: u64,
}

impl World {
    pub(crate) fn new(setup: Setup, mut random: Random) -> Self {
        let blocks = setup.blocks as usize;
        // About half the source is holes; a destination that does not read as
        // zeroes is full of something else.
        let source: Vec<u64> = (0..blocks as u64)
            .map(|b| if (b / 9) % 2 == 0 { 0 } else { b + 1 })
            .collect();
        let junk = if setup.reads_zero { 0 } else { 7_000_000 };
        let destination: Vec<u64> =
            (0..blocks as u64).map(|b| if junk == 0 { 0 } else { junk + b }).collect();
        let config = Self::config(&setup);
        let map = MemoryMap::new(config.regions(), Stored::Absent);
        let now = Nanos(random.below(1_000_000));
        World {
            now,
            clock: 1,
            mirror: Mirror::new_paused(
                now,
                config,
                Counted::new(map.clone()),
                PauseReason::Asked,
            ),
            histories: source.iter().map(|value| History::new(*value)).collect(),
            durable: destination.clone(),
            old_map: map,
            source,
            destination,
            operations: Vec::new(),
            guest: HashMap::new(),
            lingering: HashMap::new(),
            next_id: 1,
            next_value: 1_000_000,
            actions: Vec::new(),
            later: Vec::new(),
            held_from: None,
            longest_hold: Nanos(0),
            calm: false,
            ended: None,
            steps: 0,
            setup,
            random,
        }
    }

    fn config(setup: &Setup) -> Config {
        Config {
            region: REGION,
            scan: setup.scan,
            reads_zero: setup.reads_zero,
            verify: setup.verify,
            rate: setup.rate,
            ..Config::new(setup.blocks * BLOCK)
        }
    }

    /// Runs chaos, then calm until the migration has ended. Gives the steps.
    pub(crate) fn run(mut self) -> u64 {
        // As a driver does it: what is in flight when the migration begins is told
        // to a paused mirror.
        for _ in 0..self.setup.guest_depth {
            self.guest_request();
        }
        self.tell(Event::Control(Control::Resume));
        while self.steps < self.setup.chaos_steps && self.ended.is_none() {
            self.step();
        }
        self.calm = true;
        self.tell(Event::DestinationInReach(true));
        // Enough for a hang of half a minute to end: a step takes 0.2 ms or so.
        let end = self.steps + 500_000;
        while self.ended.is_none() {
            assert!(self.steps < end, "no end: {:?}", self.mirror.progress());
            if let Phase::Paused(_) = self.mirror.progress().phase {
                self.tell(Event::Control(Control::Resume));
            }
            self.step();
        }
        // Whatever is in flight is still answered.
        while !self.operations.is_empty() || !self.guest.is_empty() {
            assert!(self.steps < end + 100_000, "requests left: {:?}", self.guest);
            self.advance();
            self.steps += 1;
        }
        let truth = match self.ended {
            Some(End::Completed) => self.destination.clone(),
            _ => self.source.clone(),
        };
        for (block, value) in truth.iter().enumerate() {
            let possible = self.histories[block].possible();
            assert!(
                possible.contains(value),
                "block {block}: {value} not in {possible:?}"
            );
        }
        self.steps
    }

    fn step(&mut self) {
        self.steps += 1;
        self.clock += 1;
        if !self.calm {
            if self.random.one_in(self.setup.kills) {
                return self.crash(false);
            }
            if self.random.one_in(self.setup.power_losses) {
                return self.crash(true);
            }
            if self.random.one_in(self.setup.controls) {
                return self.control();
            }
            if self.random.one_in(self.setup.outages) {
                let is = self.random.one_in(2);
                return self.tell(Event::DestinationInReach(is));
            }
        }
        let guest_more = self.guest.len() < self.setup.guest_depth;
        let appetite = if self.calm { 6 } else { 2 };
        if guest_more && self.random.one_in(appetite) {
            self.guest_request();
        } else {
            self.advance();
        }
    }

    fn control(&mut self) {
        let control = match self.random.below(8) {
            0..=2 => Control::Pause,
            3..=5 => Control::Resume,
            6 => Control::SetRate(self.random.one_in(2).then_some(16 << 20)),
            _ => Control::Cancel,
        };
        self.tell(Event::Control(control));
    }

    /// Lets time pass or an operation go a step further.
    fn advance(&mut self) {
        let ready: Vec<usize> = (0..self.operations.len())
            .filter(|i| self.operations[*i].not_before <= self.now)
            .collect();
        if ready.is_empty() || self.random.one_in(12) {
            self.pass_time();
            return;
        }
        let pick = ready[self.random.below(ready.len() as u64) as usize];
        if self.operations[pick].left.is_empty() {
            let operation = self.operations.swap_remove(pick);
            self.complete(operation.effect, operation.fails);
        } else {
            let left = self.operations[pick].left.len() as u64;
            let at = self.random.below(left) as usize;
            let block = self.operations[pick].left.swap_remove(at);
            self.land(pick, block);
        }
    }

    fn pass_time(&mut self) {
        let mut to = self.now.plus(Nanos(self.random.below(4_000_000)));
        if self.operations.iter().all(|o| o.not_before > self.now) {
            let next = self.operations.iter().map(|o| o.not_before).min();
            to = next.unwrap_or(to).max(to);
        }
        if let Some(deadline) = self.mirror.deadline()
            && deadline <= to
        {
            self.now = self.now.max(deadline);
            self.tell(Event::Tick);
            let again = self.mirror.deadline();
            assert!(again.is_none_or(|d| d > self.now), "a deadline that does not pass");
            return;
        }
        self.now = to;
    }

    /// One block of an operation takes effect.
    fn land(&mut self, pick: usize, block: u64) {
        let b = (block & 0xffff_ffff) as usize;
        match &mut self.operations[pick].effect {
            Effect::Write { id, on } => {
                let value = self.guest.get(id).or(self.lingering.get(id)).unwrap().value;
                match on {
                    Side::Source => self.source[b] = value,
                    Side::Destination | Side::Moved => self.destination[b] = value,
                }
            }
            Effect::Read { id, moved } => {
                let image = if *moved { &self.destination } else { &self.source };
                let request = &self.guest[id];
                let at = (block - request.blocks.start) as usize;
                let mut possible = request.possible[at].clone();
                possible.extend(self.histories[b].possible());
                assert!(possible.contains(&image[b]), "a read of block {b} is wrong");
            }
            Effect::CopyRead { data, .. } => {
                data.insert(block, self.source[b]);
            }
            Effect::CopyWrite { job, data } => {
                let fresh = job.kind == JobKind::Copy { fresh: true };
                let value = data[&block];
                let lie = !self.calm && self.random.one_in(self.setup.lies);
                let skipped = fresh && value == 0;
                if !skipped && !lie {
                    self.destination[b] = value;
                }
            }
            Effect::Scan { holes, .. } if self.source[b] == 0 => holes.push(block),
            Effect::Compare { seen, .. } => {
                let side = (block >> 32) as usize;
                let image = if side == 0 { &self.source } else { &self.destination };
                seen.entry(b as u64).or_default()[side] = Some(image[b]);
            }
            _ => {}
        }
    }

    fn complete(&mut self, effect: Effect, fails: bool) {
        let fault =
            [Fault::Full, Fault::Error(5), Fault::Lost][self.random.below(3) as usize];
        let result = if fails { Err(fault) } else { Ok(()) };
        match effect {
            Effect::Read { id, moved: false } | Effect::Flush { id } => {
                self.source_done(id, true);
            }
            Effect::Read { id, moved: true } => self.answered(id),
            Effect::Write { id, on: Side::Moved } => self.answered(id),
            Effect::Write { id, on: Side::Source } => self.source_done(id, !fails),
            Effect::Write { id, on: Side::Destination } => {
                self.tell(Event::DestinationDone { id, result });
                self.lingering.remove(&id);
            }
            Effect::CopyRead { job, data } => self.copy_read(job, data, fails),
            Effect::CopyWrite { job, data } => {
                let written = data.len() as u64 * BLOCK;
                let outcome = match result {
                    Ok(()) => Outcome::Copied { written },
                    Err(fault) => Outcome::DestinationFailed(fault),
                };
                self.tell(Event::JobDone { job: job.id, outcome });
            }
            Effect::Scan { job, holes } => {
                let holes = holes.iter().map(|b| ByteRange::new(b * BLOCK, BLOCK));
                let outcome = Outcome::Scanned(merge(holes));
                self.tell(Event::JobDone { job: job.id, outcome });
            }
            Effect::Compare { job, seen } => {
                let differing = seen
                    .iter()
                    .filter(|(_, sides)| sides[0] != sides[1])
                    .map(|(block, _)| ByteRange::new(block * BLOCK, BLOCK));
                let outcome = Outcome::Compared { differing: merge(differing) };
                self.tell(Event::JobDone { job: job.id, outcome });
            }
            Effect::FlushDestination => {
                if result.is_ok() {
                    self.durable = self.destination.clone();
                    self.old_map = self.mirror.map().clone();
                } else {
                    // What could not be made durable is gone.
                    for (block, kept) in self.durable.iter().enumerate() {
                        if self.random.one_in(3) {
                            self.destination[block] = *kept;
                        }
                    }
                }
                self.tell(Event::Flushed(result));
            }
            Effect::Prepare => self.tell(Event::Prepared(!fails)),
            Effect::Seal => self.tell(Event::Sealed(result)),
            Effect::Commit => {
                let failed = [Commit::Refused, Commit::Failed];
                let failed = failed[self.random.below(2) as usize];
                let commit = if fails { failed } else { Commit::Durable };
                self.tell(Event::Committed(commit));
            }
        }
    }

    fn copy_read(&mut self, job: Job, data: BTreeMap<u64, u64>, fails: bool) {
        if fails {
            let outcome = Outcome::SourceFailed(5);
            self.tell(Event::JobDone { job: job.id, outcome });
            return;
        }
        let blocks = data.keys().copied().collect();
        self.begin(Effect::CopyWrite { job, data }, blocks);
    }

    fn source_done(&mut self, id: RequestId, ok: bool) {
        let request = self.guest.get_mut(&id).expect("the guest waits for it");
        request.ok = ok;
        request.source_done = Some(self.now);
        self.tell(Event::SourceDone { id, ok });
    }

    /// The guest has its answer.
    fn answered(&mut self, id: RequestId) {
        let request = self.guest.remove(&id).expect("answered once");
        if let Some(done) = request.source_done {
            let waited = self.now.since(done);
            let bound = PATIENCE.plus(PATIENCE_RAISE_MAX);
            assert!(waited <= bound, "the answer waited {waited} for the destination");
        }
        if let Some(started) = request.source_started {
            let waited = started.since(request.arrived);
            let bound = PATIENCE.plus(PATIENCE_RAISE_MAX).plus(HOLD_BUDGET);
            // A request may be held, undone and held again before it starts.
            let slack = Nanos(2 * self.longest_hold.0);
            assert!(waited <= bound.plus(slack), "the start waited {waited}");
        }
        if request.kind == RequestKind::Write {
            for block in request.blocks.clone() {
                self.histories[block as usize].end(self.clock, id.0, request.ok);
            }
        }
        self.lingering.insert(id, request);
    }

    fn guest_request(&mut self) {
        let id = RequestId(self.next_id);
        self.next_id += 1;
        let kind = match self.random.below(10) {
            0..=2 => RequestKind::Read,
            3 => RequestKind::Flush,
            _ => RequestKind::Write,
        };
        // A third of the writes go to a few hot blocks.
        let span = if self.random.one_in(3) {
            6.min(self.setup.blocks)
        } else {
            self.setup.blocks
        };
        let start = self.random.below(span);
        let len = 1 + self.random.below((self.setup.blocks - start).min(11));
        let blocks = if kind == RequestKind::Flush { 0..0 } else { start..start + len };
        let discard = self.random.one_in(self.setup.discards);
        let value = if discard { 0 } else { self.next_value };
        self.next_value += 1;
        let mut possible = Vec::new();
        for block in blocks.clone() {
            possible.push(self.histories[block as usize].possible());
            if kind == RequestKind::Write {
                self.histories[block as usize].issue(self.clock, id.0, value);
            }
        }
        let request = GuestRequest {
            kind,
            value,
            arrived: self.now,
            source_started: None,
            source_done: None,
            ok: true,
            possible,
            blocks: blocks.clone(),
        };
        self.guest.insert(id, request);
        let range =
            ByteRange::new(blocks.start * BLOCK, (blocks.end - blocks.start) * BLOCK);
        self.tell(Event::Arrived(Request { id, kind, range }));
    }

    /// Tells the mirror and does what it asks for.
    fn tell(&mut self, event: Event) {
        let mut actions = std::mem::take(&mut self.actions);
        self.mirror.handle(self.now, event, &mut actions);
        for action in actions.drain(..) {
            self.act(&action);
        }
        self.actions = actions;
        while let Some(event) = self.later.pop() {
            self.tell(event);
        }
        match (self.mirror.holding(), self.held_from) {
            (true, None) => self.held_from = Some(self.now),
            (false, Some(since)) => {
                self.longest_hold = self.longest_hold.max(self.now.since(since));
                self.held_from = None;
            }
            _ => {}
        }
    }

    fn act(&mut self, action: &Action) {
        match *action {
            Action::Source(id) => self.start_source(id),
            Action::Destination(id)
                if !self.calm && self.random.one_in(self.setup.skips) =>
            {
                self.later.push(Event::DestinationSkipped { id });
            }
            Action::Destination(id) => {
                let blocks = self.guest[&id].blocks.clone().collect();
                self.begin(Effect::Write { id, on: Side::Destination }, blocks);
            }
            Action::Answer(id) => self.answered(id),
            Action::Moved(id) => {
                let request = &self.guest[&id];
                let blocks: Vec<u64> = request.blocks.clone().collect();
                match request.kind {
                    RequestKind::Write => {
                        self.begin(Effect::Write { id, on: Side::Moved }, blocks);
                    }
                    _ => self.begin(Effect::Read { id, moved: true }, blocks),
                }
            }
            Action::Start(job) => self.start_job(job),
            Action::FlushDestination => self.begin(Effect::FlushDestination, vec![]),
            Action::Prepare => self.begin(Effect::Prepare, vec![]),
            Action::Seal => self.begin(Effect::Seal, vec![]),
            Action::Unseal | Action::Notice(_) => {}
            Action::Commit => {
                assert_eq!(
                    self.source, self.destination,
                    "the images differ at the commit"
                );
                assert_eq!(
                    self.destination, self.durable,
                    "the destination is not flushed"
                );
                let busy = |o: &Operation| {
                    matches!(
                        o.effect,
                        Effect::Read { .. }
                            | Effect::Write { .. }
                            | Effect::CopyWrite { .. }
                    )
                };
                assert!(!self.operations.iter().any(busy), "in flight at the commit");
                self.begin(Effect::Commit, vec![]);
            }
            Action::Ended(end) => self.ended = Some(end),
        }
    }

    fn start_source(&mut self, id: RequestId) {
        let request = self.guest.get_mut(&id).expect("started once");
        request.source_started = Some(self.now);
        let blocks: Vec<u64> = request.blocks.clone().collect();
        let effect = match request.kind {
            RequestKind::Read => Effect::Read { id, moved: false },
            RequestKind::Write => Effect::Write { id, on: Side::Source },
            RequestKind::Flush => Effect::Flush { id },
        };
        self.begin(effect, blocks);
    }

    fn start_job(&mut self, job: Job) {
        let blocks: Vec<u64> =
            (job.range.offset / BLOCK..job.range.end() / BLOCK).collect();
        match job.kind {
            JobKind::Scan => self.begin(Effect::Scan { job, holes: vec![] }, blocks),
            JobKind::Copy { .. } => {
                self.begin(Effect::CopyRead { job, data: BTreeMap::new() }, blocks);
            }
            JobKind::Zero => {
                let data = blocks.iter().map(|block| (*block, 0)).collect();
                self.begin(Effect::CopyWrite { job, data }, blocks);
            }
            JobKind::Compare => {
                let both = blocks.iter().flat_map(|b| [*b, b | 1 << 32]).collect();
                self.begin(Effect::Compare { job, seen: BTreeMap::new() }, both);
            }
        }
    }

    fn begin(&mut self, effect: Effect, mut left: Vec<u64>) {
        let (source, destination) = match effect {
            Effect::Write { on: Side::Source, .. } | Effect::CopyRead { .. } => {
                (true, false)
            }
            Effect::Read { .. }
            | Effect::Flush { .. }
            | Effect::Scan { .. }
            | Effect::Compare { .. }
            | Effect::Write { on: Side::Moved, .. } => (false, false),
            _ => (false, true),
        };
        let mut delay = self.random.below(200_000);
        let mut fails = false;
        if !self.calm {
            if destination && self.setup.destination_slow {
                delay += self.random.below(90_000_000);
            }
            if destination && self.random.one_in(self.setup.hangs) {
                delay += 30_000_000_000;
            }
            fails = destination && self.random.one_in(self.setup.destination_fails)
                || source && self.random.one_in(self.setup.source_fails);
        }
        if fails {
            left.truncate(self.random.below(left.len() as u64 + 1) as usize);
        }
        let not_before = self.now.plus(Nanos(delay));
        self.operations.push(Operation { effect, left, not_before, fails });
    }

    /// The daemon is killed, or the power fails. The guest reconnects and sends
    /// again what was not answered.
    fn crash(&mut self, power: bool) {
        let mut committed = false;
        for operation in std::mem::take(&mut self.operations) {
            if matches!(operation.effect, Effect::Commit) {
                committed = self.random.one_in(2);
            }
            self.operations.push(operation);
            let pick = self.operations.len() - 1;
            let lands = !matches!(self.operations[pick].effect, Effect::Read { .. });
            for block in self.operations[pick].left.clone() {
                if lands && self.random.one_in(2) {
                    self.land(pick, block);
                }
            }
            self.operations.clear();
        }
        self.lingering.clear();
        let mut map = self.mirror.map().clone();
        if power {
            self.lose_power(&mut map);
        }
        if committed {
            assert!(!power || self.destination == self.durable);
            self.ended = Some(End::Completed);
            self.guest.clear();
            return;
        }
        self.held_from = None;
        let paused = matches!(self.mirror.progress().phase, Phase::Paused(_));
        let config = Self::config(&self.setup);
        let map = Counted::new(map);
        self.mirror = if paused {
            Mirror::new_paused(self.now, config, map, PauseReason::Asked)
        } else {
            Mirror::new(self.now, config, map)
        };
        self.send_again();
    }

    /// What was not flushed may be gone, and the map's file may be older.
    fn lose_power(&mut self, map: &mut MemoryMap) {
        for block in 0..self.destination.len() {
            if self.random.one_in(2) {
                self.destination[block] = self.durable[block];
            }
        }
        for region in 0..map.regions() {
            if self.random.one_in(2) {
                map.set(region, self.old_map.get(region));
            }
        }
        map.suspect_all();
        self.durable = self.destination.clone();
        self.old_map = map.clone();
    }

    fn send_again(&mut self) {
        if self.random.one_in(3) {
            // The guest is gone too; what it had not heard of may be so or so.
            self.guest.clear();
            for history in &mut self.histories {
                history.forget_open(self.clock);
            }
            self.tell(Event::Tick);
            return;
        }
        let mut again: Vec<_> = self.guest.keys().copied().collect();
        again.sort_unstable();
        for id in again {
            let request = self.guest.get_mut(&id).unwrap();
            request.arrived = self.now;
            request.source_started = None;
            request.source_done = None;
            let (kind, blocks) = (request.kind, request.blocks.clone());
            let len = (blocks.end - blocks.start) * BLOCK;
            let range = ByteRange::new(blocks.start * BLOCK, len);
            self.tell(Event::Arrived(Request { id, kind, range }));
        }
        self.tell(Event::Tick);
    }
}

/// Joins neighbouring ranges; they come in any order.
fn merge(ranges: impl Iterator<Item = ByteRange>) -> Vec<ByteRange> {
    let mut sorted: Vec<_> = ranges.collect();
    sorted.sort_unstable_by_key(|range| range.offset);
    let mut merged: Vec<ByteRange> = Vec::new();
    for range in sorted {
        match merged.last_mut() {
            Some(last) if last.end() == range.offset => last.len += range.len,
            _ => merged.push(range),
        }
    }
    merged
}
