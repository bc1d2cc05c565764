//! What a server behind several connections may have lost, and what has to be flushed so
//! that nothing can be lost.
//!
//! # Rule
//!
//! A server answers a write when the write is in its cache. The cache is gone when the
//! server's *run* ends: its process is killed, its host loses power. Nobody says so. A
//! client sees connections that break, one by one and each in its own time, and an idle one
//! may break long after another one leads to the next run.
//!
//! - A write counts where it was answered: on that connection it is *unflushed* until a
//!   flush covers it. A request that is a part of a longer operation counts like any other:
//!   it was answered, nobody will send it again.
//! - A flush covers what was answered before the flush was *sent*; of that, what was
//!   answered on its own connection, and on those that certainly lead to the same run.
//! - A connection that is lost with unflushed writes may have lost them. That is told once,
//!   and these writes are nobody's any more: no later flush covers them, because it may
//!   reach the next run.
//! - A server that fails a flush may have dropped every write that it has in its cache: its
//!   kernel takes pages that it could not write for clean, and says so once. So all that is
//!   unflushed on any connection counts as lost, once, and so does each write that was sent
//!   before the error came and is answered later. If nothing was unflushed, nothing is.
//!
//! # Which connections lead to the same run
//!
//! Runs follow one another. So two connections that were both open, and both alive, at one
//! moment lead to the same run. Of a connection it is known that it was alive when a request
//! was *sent* that it has answered. A connection is therefore *current* if it has answered a
//! request that was sent after the last connection came up, or is itself that last one: all
//! current ones were alive at that moment. A flush on a current connection covers all that
//! are current. The others are *stale*: whoever wants to cover what was answered there
//! flushes there, which makes it current or shows that it is lost.
//!
//! # Failures
//!
//! A server that serves two connections from two caches at the same time, although it says
//! that all connections see one (`CAN_MULTI_CONN`), is not found out. Of two flushes at once
//! the server may fail one and acknowledge the other, and the good answer may come first: its
//! client hears of the loss with its next flush. And a connection may break while the error
//! of a flush is on its way: then only the loss of that connection counts.

mod account;
mod cached;
mod debts;
mod lack;
mod witness;

pub use account::{Clients, Keeper, LONG_FLUSH, Legacy, Line, Loss, Past};
pub use cached::Cached;
pub use debts::{BACK, Debts};
pub use lack::Lack;
pub use witness::{
    BY_ACCIDENT, Content, Question, STRETCH, Standing, WITNESSES, Witnesses,
};

/// Connections of a server at most: a set of them is a word.
pub const CONNECTIONS_MAX: usize = 64;

/// A moment in the order of what happened to a server's connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(u64);

/// What was answered on the connections of one server, and of that what is durable.
#[derive(Clone, Debug)]
pub struct Durability {
    connections: Vec<Connection>,
    clock: u64,
    /// When the last connection came up.
    newest: Moment,
    /// When a flush last covered something, and when one last failed.
    covered: Moment,
    failed: Moment,
}

#[derive(Clone, Copy, Debug, Default)]
struct Connection {
    up: bool,
    /// It was certainly alive then.
    alive: Moment,
    /// Writes that no flush has covered: none was answered before the first of these
    /// moments, the last one at the second.
    unflushed: Option<(Moment, Moment)>,
}

/// A flush that was sent.
#[derive(Clone, Copy, Debug)]
pub struct Flush {
    sent: Moment,
    /// The connections that it covers, as bits.
    covers: u64,
}

/// Where a flush has to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Goes {
    /// On each of these connections.
    On(Vec<usize>),
    /// On any of them.
    Anywhere,
    /// Nowhere any more: all is covered.
    Nowhere,
}

/// The way of one flush: until all that was answered before it began is covered.
#[derive(Clone, Copy, Debug)]
pub struct Flushing {
    began: Moment,
    flushed: bool,
}

impl Durability {
    /// A server with so many connections, none of which is up.
    ///
    /// # Panics
    ///
    /// If there are more than [`CONNECTIONS_MAX`].
    pub fn new(connections: usize) -> Self {
        assert!(connections <= CONNECTIONS_MAX, "so many connections fit into a word");
        Durability {
            connections: vec![Connection::default(); connections],
            clock: 0,
            newest: Moment(0),
            covered: Moment(0),
            failed: Moment(0),
        }
    }

    fn tick(&mut self) -> Moment {
        self.clock += 1;
        Moment(self.clock)
    }

    /// A connection is open.
    pub fn came_up(&mut self, connection: usize) {
        let now = self.tick();
        self.newest = now;
        self.connections[connection] =
            Connection { up: true, alive: now, unflushed: None };
    }

    /// A request is being sent. The moment belongs to [`answered`](Self::answered).
    pub fn sent(&mut self) -> Moment {
        self.tick()
    }

    /// A connection has answered a request that was sent at `sent`.
    pub fn answered(&mut self, connection: usize, sent: Moment) {
        let connection = &mut self.connections[connection];
        connection.alive = connection.alive.max(sent);
    }

    /// What a connection has answered was a write, sent at `sent`, and is not durable by
    /// itself. Says whether the server may have dropped it already.
    #[must_use = "somebody is promised what may be lost"]
    pub fn wrote(&mut self, connection: usize, sent: Moment) -> bool {
        let now = self.tick();
        let unflushed = &mut self.connections[connection].unflushed;
        *unflushed = Some((unflushed.map_or(now, |(first, _)| first), now));
        sent < self.failed
    }

    /// A flush is being sent on a connection.
    pub fn flush_sent(&mut self, connection: usize) -> Flush {
        let mut covers = 1 << connection;
        if self.is_current(connection) {
            let current =
                (0..self.connections.len()).filter(|other| self.is_current(*other));
            covers |= current.fold(0, |bits, other| bits | 1 << other);
        }
        Flush { sent: self.tick(), covers }
    }

    /// A flush was answered, well.
    pub fn flushed(&mut self, flush: Flush) {
        if self.has_unflushed() {
            self.covered = self.tick();
        }
        for (number, connection) in self.connections.iter_mut().enumerate() {
            if flush.covers & 1 << number == 0 {
                continue;
            }
            // Of what was answered since, the first came later than the flush was sent.
            connection.unflushed = connection
                .unflushed
                .filter(|(_, last)| *last > flush.sent)
                .map(|(first, last)| (first.max(flush.sent), last));
        }
    }

    /// Whether writes were answered that no flush has covered, on connections that are up.
    pub fn has_unflushed(&self) -> bool {
        self.connections.iter().any(|connection| connection.unflushed.is_some())
    }

    /// A flush that was sent at `sent`, or a write that had to be durable, was answered with
    /// an error. Says whether the server may have dropped writes that it had answered.
    #[must_use = "somebody has been promised what may be lost"]
    pub fn failed(&mut self, sent: Moment) -> bool {
        self.failed = self.tick();
        let was_covered = self.covered > sent;
        let unflushed = self.has_unflushed();
        for connection in &mut self.connections {
            connection.unflushed = None;
        }
        unflushed || was_covered
    }

    /// A connection is lost. Says whether the server may have forgotten writes with it.
    #[must_use = "somebody has been promised what may be lost"]
    pub fn lost(&mut self, connection: usize) -> bool {
        std::mem::take(&mut self.connections[connection]).unflushed.is_some()
    }

    /// Begins a flush.
    pub fn flushing(&mut self) -> Flushing {
        Flushing { began: self.tick(), flushed: false }
    }

    /// Where a flush has to go next, while nothing of it is under way.
    pub fn goes(&self, flushing: &Flushing) -> Goes {
        let needs = |(_, connection): &(usize, &Connection)| {
            connection.unflushed.is_some_and(|(first, _)| first < flushing.began)
        };
        let all = self.connections.iter().enumerate();
        let (current, mut on): (Vec<usize>, Vec<usize>) = all
            .filter(needs)
            .map(|(number, _)| number)
            .partition(|number| self.is_current(*number));
        // One for all that are current.
        on.extend(current.first());
        match (on.is_empty(), flushing.flushed) {
            (false, _) => Goes::On(on),
            (true, false) => Goes::Anywhere,
            (true, true) => Goes::Nowhere,
        }
    }

    fn is_current(&self, connection: usize) -> bool {
        let connection = &self.connections[connection];
        connection.up && connection.alive >= self.newest
    }
}

impl Flushing {
    /// A request of it was answered, well.
    pub fn flushed(&mut self) {
        self.flushed = true;
    }
}
