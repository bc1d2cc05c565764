//! An image on an NBD server.
//!
//! Operations are cut into requests as long as the server takes ([`flight`]);
//! requests wait in one queue and leave on whichever connection is free
//! ([`link`]), many in one message, and replies come back in any order. There
//! are up to [`LINKS`] connections if the server says that they see the same
//! bytes (`CAN_MULTI_CONN`), else one.
//!
//! **A lost connection is not an error.** It is opened anew, with growing pauses
//! ([`RETRY_MIN`] to [`RETRY_MAX`]), for as long as it takes, and what was not
//! answered is sent again; the disk sees a slow answer.
//! The server must still be what it was: not smaller, with the abilities that the image
//! relies on, and the same export with the bytes that must be there: each new connection
//! is examined first ([`examine`], [`known`]). Another export is not used, nor is one that
//! lacks something, and what is behind the address is looked at again and again. An older
//! state of the same one is used, and is told (`has_gone_back`); abilities that are a
//! convenience are done without from then on ([`adapting`]). Who does not want to wait calls
//! `abort`; who wants to know is told when the last connection is lost and when there is
//! one again (`is_in_reach`).
//!
//! **Failure cases.** An error of the server is the answer to the operation. A
//! server that breaks the protocol loses its connection and gets the requests
//! again; if it does that [`VIOLATIONS_MAX`] times without a good reply between,
//! what it holds up fails with `EIO`. `ESHUTDOWN` counts as a lost connection:
//! the server says itself that it is going.
//!
//! **What the server may have forgotten** is decided by [`sterna_core::durability`]: writes
//! count where they were answered, part by part; a flush goes to each connection whose writes
//! no other flush would certainly cover; and a connection that is lost with unflushed writes
//! makes `has_forgotten` true, and news, before any flush is answered that was under way. So
//! does a flush that the server fails while writes are unflushed: its next flush may succeed
//! although the server has dropped them. A server that takes no flush has promised nothing:
//! there each lost connection that has written counts. Whether there are such writes is kept
//! in the disk's account ([`crate::account`]) for the daemon after this one.
//!
//! **Leaving.** A server may drop with its connections what was not flushed. So the image
//! that is a disk's truth is flushed before it is closed ([`leave`]), for [`LEAVE_WITHIN`]
//! at most: what is still unflushed then stays in the account.
//!
//! **Requests that are sent again.** A server may still be working on a write of a
//! connection that it has lost, while the same write arrives on a new one. So a newer write
//! that overlaps one which was sent again waits until that is answered: then the older
//! bytes have landed at least once before the newer ones are sent. What cannot be helped: a
//! server that is still at the write of the lost connection even then can put old bytes
//! over newer ones. Servers that end with their connections, or finish what they have read
//! before they take new ones, do not.
//!
//! **Buffers.** An operation is answered only when the kernel has given back
//! every buffer of it, also after a reply, an abort or a lost connection. All
//! queues are bounded by what the disk has in flight: a few requests for each
//! operation.

mod adapting;
pub(crate) mod connect;
mod examine;
mod flight;
mod known;
mod leave;
mod link;
mod opened;
mod replies;
mod retry;
mod sending;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sterna_core::durability::{Durability, Lack, Loss, Witnesses};
use sterna_core::{ByteRange, DiskId, Nanos};
use sterna_nbd::{TransmissionFlags, Uri};

use super::doubt::{DOUBT, Doubt};
use super::{Cx, Done, Image, ImageInfo, ImageOp, LEAVING, Ticket, token};
use crate::account::Line;
use crate::buffer::Slice;
use crate::io::{Completion, Crew, Errno, Fd, ImageId, Op};
use crate::seldom::Seldom;
use crate::sidecar::Identity;
use crate::slab::Slab;
use crate::timer::Alarm;
use connect::Connected;
use flight::{Abilities, Flight, Part, Queue};
use known::Looks;
use link::{Link, State};
pub(crate) use opened::{Memory, OpenedNbd};

/// The largest minimum block size of a server: the block size of disks.
pub(crate) const MIN_BLOCK_MAX: u32 = 512;

/// Connections to a server that allows several.
const LINKS: usize = 4;
/// The pause before the first attempt to connect again.
const RETRY_MIN: Nanos = Nanos::from_millis(20);
/// The longest pause between attempts. A server that comes back is found in time
/// before it counts as lost (`REACH_TIMEOUT`), and soon after a `resume`.
const RETRY_MAX: Nanos = Nanos::from_millis(500);
/// Attempts after which a further connection that never came up is done without:
/// the server does not allow so many.
const STAY_AWAY: u32 = 3;
/// Violations of the protocol without a good reply between.
const VIOLATIONS_MAX: u32 = 5;
/// Requests in a message. More would leave the other connections idle.
const BATCH: usize = 32;

/// The kinds of operations of a connection, in the low bits of a token's tag.
const RECV: u32 = 0;
const SEND: u32 = 1;
const CONNECT: u32 = 2;
const KINDS: u32 = 4;

/// What happened, for log lines and statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counters {
    lost: u64,
    violations: u64,
    resent: u64,
}

struct NbdImage {
    id: ImageId,
    uri: Arc<Uri>,
    /// Who connects to its server.
    crew: Arc<Crew>,
    able: Abilities,
    min_block: u32,
    flights: Slab<Flight>,
    parts: Slab<Part>,
    queue: Queue,
    /// Writes that wait for older ones which were sent again.
    held: VecDeque<(Ticket, ImageOp)>,
    links: Vec<Link>,
    /// Makes cookies different from those of lost connections.
    sequence: u32,
    /// Violations since the last good reply.
    violations: u32,
    counters: Counters,
    closing: bool,
    durability: Durability,
    /// Why writes may have been lost, since this was last asked.
    forgotten: Option<Loss>,
    /// What a kill leaves of that, and of what is unflushed.
    line: Option<Line>,
    doubt: Doubt,
    /// The server has unflushed writes of a daemon before. Which connection wrote them is of
    /// no account: the first one answers for them.
    inherits: bool,
    /// When the last flush is given up.
    leaving: Alarm,
    /// Where the sidecar is, and what it said.
    sidecar: Option<(u64, Identity)>,
    /// The disk whose sidecar was where this disk's own bytes are.
    left: Option<DiskId>,
    /// How many bytes the export has.
    capacity: u64,
    witnesses: Witnesses,
    looks: Looks,
    /// Since when another export answers.
    another: Option<Nanos>,
    /// Since when the export lacks what the image relies on.
    lack: Option<(Nanos, Lack)>,
    /// Why the last attempt to connect failed, as the log says it.
    complaint: Option<String>,
    /// The server came back in an older state, since this was last asked.
    gone_back: bool,
    /// Nobody wants a new connection any more.
    over: Arc<AtomicBool>,
    failed_flushes: Seldom,
}

impl NbdImage {
    fn start(opened: OpenedNbd, cx: &mut Cx, id: ImageId) -> NbdImage {
        let OpenedNbd { uri, crew, connected, line, size, sidecar, mut left, memory } =
            opened;
        let session = connected.negotiated.session;
        let several = session.flags.has(TransmissionFlags::CAN_MULTI_CONN);
        let links = if several { LINKS } else { 1 };
        let told = connected.negotiated.block_sizes_told;
        let is_known = memory.is_some();
        let (sidecar, mut witnesses) = match memory {
            Some(known) => {
                left = known.left;
                (sidecar.or(known.sidecar), (*known.witnesses).clone())
            }
            None => (sidecar, Witnesses::new(size, cx.now.0)),
        };
        if line.as_ref().is_some_and(Line::follows_a_loss) {
            witnesses.lost();
        }
        let inherits = line.as_ref().is_some_and(Line::is_unflushed);
        let mut image = NbdImage {
            id,
            uri: Arc::new(uri),
            crew,
            able: Abilities::of(&session),
            min_block: if told { session.block_sizes.minimum() } else { MIN_BLOCK_MAX },
            flights: Slab::new(),
            parts: Slab::new(),
            queue: Queue::new(),
            held: VecDeque::new(),
            links: (0..links).map(|_| Link::new(&session)).collect(),
            sequence: 0,
            violations: 0,
            counters: Counters::default(),
            durability: Durability::new(links),
            forgotten: None,
            line,
            doubt: Doubt::default(),
            inherits,
            leaving: Alarm::default(),
            sidecar,
            left,
            capacity: session.size,
            witnesses,
            looks: Looks::default(),
            another: None,
            lack: None,
            complaint: None,
            gone_back: false,
            over: Arc::default(),
            failed_flushes: Seldom::default(),
            closing: false,
        };
        // What was opened is not known to be what was there before.
        let mut first = Some(connected).filter(|_| !is_known);
        for link in 0..links {
            match first.take() {
                Some(connected) => image.come_up(cx, link, connected),
                None => image.connect(cx, link),
            }
        }
        image
    }

    /// The image is to end: it needs to be known no more.
    fn close_looks(&mut self, cx: &mut Cx) {
        self.closing = true;
        self.over.store(true, Ordering::Relaxed);
        self.look_no_more(cx);
    }

    /// Has whoever uses the image look at it.
    fn tell_news(&self, cx: &mut Cx) {
        let ticket = Ticket { disk: self.id.disk, id: Ticket::NEWS };
        cx.finished.push((ticket, Ok(Done::Ok)));
    }

    fn token(&self, link: usize, kind: u32) -> crate::io::Token {
        token(self.id, link as u32 * KINDS + kind)
    }

    fn receive(&mut self, cx: &mut Cx, at: usize, to: Slice) {
        let link = &mut self.links[at];
        let Some(fd) = link.fd.clone() else { return };
        link.receiving = true;
        cx.io.submit(self.token(at, RECV), Op::Recv { fd, buf: to });
    }

    /// Starts to use a new connection.
    fn come_up(&mut self, cx: &mut Cx, at: usize, connected: Connected) {
        let session = connected.negotiated.session;
        let link = &mut self.links[at];
        let staging = link.inbox.take_staging();
        let staging = staging.or_else(|| cx.links.get(link::STAGING));
        let staging = staging.or_else(|| cx.buffers.get(link::STAGING));
        let Some(staging) = staging else {
            tracing::debug!(uri = %self.uri, "no memory for a connection now");
            return self.retry_later(cx, at);
        };
        let fresh = Link::new(&session);
        (link.limits, link.allocation) = (fresh.limits, fresh.allocation);
        link.inbox.reset(staging);
        link.fd = Some(Fd::from(std::os::fd::OwnedFd::from(connected.stream)));
        link.outstanding = 0;
        link.proven = true;
        (self.another, self.lack, self.complaint) = (None, None, None);
        self.adapt(cx, &session);
        self.durability.came_up(at);
        if std::mem::take(&mut self.inherits) {
            let sent = self.durability.sent();
            // Nothing has failed since.
            let _ = self.durability.wrote(at, sent);
        }
        let back = !self.is_in_reach();
        self.links[at].state = State::Up;
        if back {
            self.tell_news(cx);
            self.look_first(cx);
        }
        self.process(cx, at);
        self.pump(cx);
    }
}

impl Image for NbdImage {
    fn has_forgotten(&mut self) -> Option<Loss> {
        self.forgotten.take()
    }

    fn has_gone_back(&mut self) -> bool {
        std::mem::take(&mut self.gone_back)
    }

    fn another_since(&self) -> Option<Nanos> {
        self.another
    }

    fn lacks(&self) -> Option<(Nanos, Lack)> {
        self.lack
    }

    fn memory(&self) -> Option<Memory> {
        Some(self.remember())
    }

    fn is_in_reach(&self) -> bool {
        self.links.iter().any(|link| link.state == State::Up)
    }

    fn ways_lost(&self) -> u64 {
        self.counters.lost
    }

    fn submit(&mut self, cx: &mut Cx, ticket: Ticket, op: ImageOp) {
        if self.must_wait(&op) {
            self.held.push_back((ticket, op));
            return;
        }
        if let Some(result) = flight::at_once(&op, &self.able) {
            cx.finished.push((ticket, result));
            return;
        }
        match (&op, flight::changes(&op)) {
            (_, Some(range)) => self.witnesses.writes(range),
            (ImageOp::Read { offset, buf }, None) => {
                self.witnesses.uses(ByteRange::new(*offset, buf.len() as u64));
            }
            _ => {}
        }
        if op.makes_durable() && self.line.is_some() {
            self.doubt.flush_begins(cx, self.id);
        }
        let key = self.flights.insert(Flight::new(ticket, op, cx.now));
        self.advance(cx, key);
        self.pump(cx);
    }

    fn completed(&mut self, cx: &mut Cx, completion: Completion) {
        let (at, kind) = (completion.token.tag / KINDS, completion.token.tag % KINDS);
        let at = at as usize;
        match kind {
            RECV => {
                self.links[at].receiving = false;
                self.received(cx, at, completion.result);
            }
            SEND => self.sent(cx, at, completion),
            _ => self.connected(cx, at),
        }
        self.pump(cx);
        self.say_goodbye(cx);
    }

    fn timer(&mut self, cx: &mut Cx, tag: u32) {
        match tag {
            LEAVING => return self.leave_as_it_is(cx),
            DOUBT => return self.looks_for_long_flushes(cx),
            _ => {}
        }
        let at = tag as usize;
        self.links[at].timer = None;
        self.connect(cx, at);
        self.say_goodbye(cx);
    }

    fn info(&self) -> ImageInfo {
        ImageInfo {
            size: self.able.size,
            min_block: self.min_block,
            direct: false,
            finds_holes: self.able.allocation,
            fast_zero: self.able.has(TransmissionFlags::SEND_FAST_ZERO),
        }
    }

    fn moves_bytes(&self, op: &ImageOp) -> bool {
        flight::moves_bytes(op, &self.able)
    }

    fn in_flight(&self) -> usize {
        let own = usize::from(self.looks.under_way.is_some());
        self.flights.len() - own + self.held.len()
    }

    fn abort(&mut self, cx: &mut Cx) {
        tracing::info!(
            uri = %self.uri, operations = self.flights.len(),
            "giving up the requests that the NBD server has not answered"
        );
        self.fail_all(cx, Errno(libc::ECANCELED));
        for at in 0..self.links.len() {
            if self.links[at].outstanding > 0 {
                self.lose(cx, at, "Sterna has given up its requests");
            }
        }
    }

    fn close(&mut self, cx: &mut Cx) {
        self.close_looks(cx);
        self.doubt.ends_for_good(cx, self.id);
        self.close_line();
        self.say_goodbye(cx);
    }

    fn take_leave(&mut self, cx: &mut Cx) {
        self.flush_last(cx);
    }

    fn idle(&self) -> bool {
        let nothing = self.flights.is_empty() && self.held.is_empty();
        nothing && self.links.iter().all(Link::is_quiet)
    }
}
