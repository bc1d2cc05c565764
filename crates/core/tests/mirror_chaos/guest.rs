//! The guest: it reads, writes, discards and flushes at random, and remembers
//! what it may be told.
//!
//! A request is *open* until the guest has its answer. An answered write may still
//! be under way on the destination (it is overdue); it *lingers* here, because what
//! lands late must be known. What each block may hold is its [`History`], and what
//! the mirror promises about answers is checked here, where they arrive.

use std::collections::HashMap;
use std::ops::Range;

use sterna_core::Nanos;
use sterna_core::mirror::{
    HOLD_BUDGET, PATIENCE, PATIENCE_RAISE_MAX, Request, RequestId, RequestKind,
};

use crate::history::History;
use crate::images::range_of;
use crate::random::Random;
use crate::setup::Setup;

/// How long the error of a write may be kept back.
const ERROR_WAITS_MOST: Nanos = Nanos::from_secs(2);

/// A request that was sent.
#[derive(Debug)]
pub(crate) struct GuestRequest {
    pub(crate) kind: RequestKind,
    pub(crate) blocks: Range<u64>,
    /// What a write writes.
    pub(crate) value: u64,
    arrived: Nanos,
    source_started: Option<Nanos>,
    source_done: Option<Nanos>,
    ok: bool,
    /// What each block might hold when a read was sent.
    possible: Vec<Vec<u64>>,
}

/// The guest of one disk.
pub(crate) struct Guest {
    open: HashMap<RequestId, GuestRequest>,
    /// Answered, but a side is still at work.
    lingering: HashMap<RequestId, GuestRequest>,
    histories: Vec<History>,
    next_id: u64,
    next_value: u64,
    /// The block that a log goes on with.
    head: u64,
}

impl Guest {
    /// A guest of a disk that holds this.
    pub(crate) fn new(disk: &[u64]) -> Self {
        Guest {
            open: HashMap::new(),
            lingering: HashMap::new(),
            histories: disk.iter().map(|value| History::new(*value)).collect(),
            next_id: 1,
            next_value: 1_000_000,
            head: 0,
        }
    }

    /// The requests that it waits for.
    pub(crate) fn open(&self) -> &HashMap<RequestId, GuestRequest> {
        &self.open
    }

    /// Sends a request of its own choice.
    pub(crate) fn send(
        &mut self,
        setup: &Setup,
        random: &mut Random,
        now: Nanos,
        clock: u64,
    ) -> Request {
        let id = RequestId(self.next_id);
        self.next_id += 1;
        let kind = match random.below(10) {
            0..=2 => RequestKind::Read,
            3 => RequestKind::Flush,
            _ => RequestKind::Write,
        };
        // A third of the writes go to a few hot blocks.
        let span = if random.one_in(3) { 6.min(setup.blocks) } else { setup.blocks };
        let logs = setup.log && kind == RequestKind::Write && !random.one_in(8);
        let start = if logs { self.head % setup.blocks } else { random.below(span) };
        let len = 1 + random.below((setup.blocks - start).min(11));
        let blocks = if kind == RequestKind::Flush { 0..0 } else { start..start + len };
        if logs {
            self.head = blocks.end;
        }
        let discard = random.one_in(setup.discards);
        let value = if discard { 0 } else { self.next_value };
        self.next_value += 1;
        let mut possible = Vec::new();
        for block in blocks.clone() {
            let history = &mut self.histories[block as usize];
            possible.push(history.possible());
            if kind == RequestKind::Write {
                history.issue(clock, id.0, value);
            }
        }
        let range = range_of(&blocks);
        let request = GuestRequest {
            kind,
            blocks,
            value,
            arrived: now,
            source_started: None,
            source_done: None,
            ok: true,
            possible,
        };
        self.open.insert(id, request);
        Request { id, kind, range }
    }

    /// What a write, open or lingering, writes.
    pub(crate) fn value(&self, id: RequestId) -> u64 {
        let request = self.open.get(&id).or(self.lingering.get(&id));
        request.expect("it is under way").value
    }

    /// Whether an open request is a write.
    pub(crate) fn writes(&self, id: RequestId) -> bool {
        self.open.get(&id).is_some_and(|request| request.kind == RequestKind::Write)
    }

    /// Whether any write is open or lingers.
    pub(crate) fn writes_any(&self) -> bool {
        let mut all = self.open.values().chain(self.lingering.values());
        all.any(|request| request.kind == RequestKind::Write)
    }

    /// A block may hold this from now on: it was left behind knowingly.
    pub(crate) fn gives_up_block(&mut self, clock: u64, block: u64, value: u64) {
        let history = &mut self.histories[block as usize];
        history.issue(clock, self.next_id, value);
        history.end(clock, self.next_id, false);
        self.next_id += 1;
    }

    /// A block holds this instead of what was acknowledged: clients were told, and look.
    pub(crate) fn finds_instead(&mut self, clock: u64, block: u64, value: u64) {
        let history = &mut self.histories[block as usize];
        history.issue(clock, self.next_id, value);
        history.end(clock, self.next_id, true);
        self.next_id += 1;
    }

    /// The blocks of a write, open or lingering.
    pub(crate) fn blocks(&self, id: RequestId) -> Range<u64> {
        let request = self.open.get(&id).or(self.lingering.get(&id));
        request.expect("it is under way").blocks.clone()
    }

    /// A read that is under way has found this.
    pub(crate) fn finds(&self, id: RequestId, block: u64, value: u64) {
        let request = &self.open[&id];
        let before = &request.possible[(block - request.blocks.start) as usize];
        let possible = before.contains(&value) || self.may_hold(block).contains(&value);
        assert!(possible, "a read of block {block} is wrong");
    }

    /// What a read of this block may return now.
    pub(crate) fn may_hold(&self, block: u64) -> Vec<u64> {
        self.histories[block as usize].possible()
    }

    /// The source begins to work on it.
    pub(crate) fn source_started(&mut self, id: RequestId, now: Nanos) -> &GuestRequest {
        let request = self.open.get_mut(&id).expect("started once");
        request.source_started = Some(now);
        request
    }

    /// The source's part of it is done.
    pub(crate) fn source_done(&mut self, id: RequestId, now: Nanos, ok: bool) {
        let request = self.open.get_mut(&id).expect("the guest waits for it");
        request.ok = ok;
        request.source_done = Some(now);
    }

    /// The guest has its answer, and must not have waited too long for it.
    pub(crate) fn answered(
        &mut self,
        id: RequestId,
        now: Nanos,
        clock: u64,
        longest_hold: Nanos,
    ) {
        let request = self.open.remove(&id).expect("answered once");
        let patience = PATIENCE.plus(PATIENCE_RAISE_MAX);
        if let Some(done) = request.source_done {
            let waited = now.since(done);
            // An error may wait for the switch-over to be decided.
            let most = if request.ok { patience } else { ERROR_WAITS_MOST };
            assert!(waited <= most, "the answer waited {waited} for the destination");
        }
        if let Some(started) = request.source_started {
            let waited = started.since(request.arrived);
            // A request may be held, undone and held again before it starts.
            let slack = Nanos(2 * longest_hold.0);
            let bound = match request.kind {
                RequestKind::Write => patience.plus(HOLD_BUDGET).plus(slack),
                RequestKind::Read | RequestKind::Flush => Nanos(0),
            };
            assert!(waited <= bound, "the start waited {waited}");
        }
        if request.kind == RequestKind::Write {
            for block in request.blocks.clone() {
                self.histories[block as usize].end(clock, id.0, request.ok);
            }
        }
        self.lingering.insert(id, request);
    }

    /// No side works on it any more.
    pub(crate) fn settled(&mut self, id: RequestId) {
        self.lingering.remove(&id);
    }

    /// The daemon was killed, and what it still had to do with it.
    pub(crate) fn is_cut_off(&mut self) {
        self.lingering.clear();
    }

    /// Nothing is waited for any more.
    pub(crate) fn gives_up(&mut self) {
        self.open.clear();
    }

    /// The guest is gone too; what it had not heard of may be so or so.
    pub(crate) fn is_lost(&mut self, clock: u64) {
        self.gives_up();
        for history in &mut self.histories {
            history.forget_open(clock);
        }
    }

    /// Somebody else writes to its disk while it is not connected. Gives the value.
    pub(crate) fn is_overwritten(&mut self, clock: u64, block: u64) -> u64 {
        let (id, value) = (self.next_id, self.next_value);
        self.next_id += 1;
        self.next_value += 1;
        let history = &mut self.histories[block as usize];
        history.issue(clock, id, value);
        history.end(clock, id, true);
        value
    }

    /// Connected again, it sends again what was not answered.
    pub(crate) fn sends_again(&mut self, now: Nanos) -> Vec<Request> {
        let mut again: Vec<Request> = Vec::new();
        for (id, request) in &mut self.open {
            request.arrived = now;
            request.source_started = None;
            request.source_done = None;
            let range = range_of(&request.blocks);
            again.push(Request { id: *id, kind: request.kind, range });
        }
        again.sort_unstable_by_key(|request| request.id);
        again
    }
}
