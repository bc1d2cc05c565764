//! A connection in its transmission phase.
//!
//! The reactor tells it what happened (`received`, `sent`, `answered`), and at
//! the end of the iteration lets it work: cut what was received into commands, then
//! send the replies that have gathered, then receive again. At most one receive
//! and one send are in flight.
//!
//! It ends in two ways. `finish`: the client said good-bye or closed its side;
//! what is in flight is done and answered first. `close`: nothing more is said, and
//! what has not started is dropped. Either way it is gone when nothing of it is in
//! flight. A client that has gone altogether, as when its process was killed, has
//! nobody left to answer: that is a `close`.

use std::collections::VecDeque;
use std::os::fd::AsRawFd;
use std::rc::Rc;

use sterna_core::Nanos;
use sterna_nbd::{Request, Session, session::Remedy};

use crate::disk::{Answer, Client, Disk};
use crate::holds::Holds;
use crate::image::Cx;
use crate::io::{Completion, Fd, Op, Owner, Token};

use super::ahead::{Ahead, Pending};
use super::commands::{Coming, Commands, HangUp};
use super::memory::Refusal;
use super::receive::{Input, Phase, Progress};
use super::{COPY_MAX, IN_FLIGHT_MAX};

/// Tags of a connection's operations.
const RECEIVE: u32 = 0;
const RECEIVE_PAYLOAD: u32 = 1;
const SEND: u32 = 2;

/// A client that takes no byte of its replies for so long does not read them. A busy one may
/// take some milliseconds.
const UNREAD_FROM: Nanos = Nanos::from_millis(100);

/// A client that has not taken what was sent for so long stalls. The kernel says when a whole
/// message has gone, of up to 2 MiB: at this limit a slow network does 35 KiB a second.
const SEND_STALL: Nanos = Nanos::from_secs(60);

pub(crate) struct Connection {
    index: u32,
    fd: Fd,
    /// The number of its disk on the reactor.
    pub(crate) disk: u32,
    /// Commands that have started, and their replies.
    commands: Commands,
    /// Answers that wait until a long read has replied.
    deferred: VecDeque<Answer>,
    input: Input,
    phase: Phase,
    /// Commands that cannot start now.
    ahead: Ahead,
    receiving: bool,
    state: State,
    /// It has closed, and its disk has not been told.
    left: bool,
    /// How the payload comes that it has announced.
    progress: Progress,
    /// The payload stands still because there is no room for more of it.
    held_up: bool,
    /// How its client takes the replies, and when what is being sent was begun.
    sent: Progress,
    sends_since: Nanos,
    /// When the last that was sent had gone.
    send_ended: Nanos,
    /// The reactor has it on its list for this iteration.
    pub(crate) listed: bool,
    /// The reactor has it in the line for memory.
    pub(crate) waits_for_memory: bool,
    /// The reactor has it among those that wait for their datastore's portion.
    pub(crate) waits_for_portion: bool,
    /// Its disk has it among those that wait for others' admissions.
    pub(crate) behind: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    Finishing,
    Closed,
}

impl Connection {
    /// A connection whose handshake is done; `None` if there is no memory left
    /// for a receive buffer.
    pub(crate) fn new(
        cx: &Cx,
        index: u32,
        disk: u32,
        fd: Fd,
        session: Session,
        leftover: &[u8],
        holds: &Rc<Holds>,
    ) -> Option<Connection> {
        Some(Connection {
            index,
            fd,
            disk,
            commands: Commands::new(Client::Connection(index), session, holds),
            deferred: VecDeque::new(),
            input: Input::new(&cx.newcomers, leftover)?,
            phase: Phase::Head,
            ahead: Ahead::default(),
            receiving: false,
            state: State::Open,
            left: false,
            progress: Progress::anew(cx.now),
            held_up: false,
            sent: Progress::anew(cx.now),
            sends_since: cx.now,
            send_ended: cx.now,
            listed: false,
            waits_for_memory: false,
            waits_for_portion: false,
            behind: false,
        })
    }

    /// An operation of this connection is done.
    pub(crate) fn completed(
        &mut self,
        cx: &mut Cx,
        disk: &mut Disk,
        completion: Completion,
    ) {
        let Completion { token, result, op } = completion;
        match op {
            Op::Send { message, .. } => {
                if self.awaits_client(cx.now) {
                    self.ahead.come_anew(cx.now);
                }
                self.commands.sent(message);
                self.send_ended = cx.now;
                match result {
                    Ok(len) => self.sent.came(cx.now, len as usize),
                    Err(_) => self.close(),
                }
            }
            Op::Recv { .. } => {
                self.receiving = false;
                match result {
                    Ok(0) if self.is_deserted() => self.close(),
                    Ok(0) => self.finish(),
                    Ok(len) => {
                        if let Phase::Payload(_) = self.phase {
                            self.progress.came(cx.now, len as usize);
                        }
                        self.received(cx, disk, token.tag, len as usize);
                    }
                    Err(_) => self.close(),
                }
            }
            _ => {}
        }
    }

    fn received(&mut self, cx: &mut Cx, disk: &mut Disk, tag: u32, len: usize) {
        if self.state != State::Open {
            return;
        }
        match self.phase {
            Phase::Payload(key) if tag == RECEIVE_PAYLOAD => {
                self.payload(cx, disk, key, len);
            }
            _ => self.input.received(len, &cx.buffers),
        }
    }

    /// Payload of a write has come into its target.
    fn payload(&mut self, cx: &mut Cx, disk: &mut Disk, key: u32, len: usize) {
        if self.commands.payload(cx, disk, key, len) {
            self.phase = Phase::Head;
        }
    }

    /// The disk has answered a request of this connection.
    pub(crate) fn answer(&mut self, cx: &mut Cx, disk: &mut Disk, answer: Answer) {
        if self.is_closed() {
            self.commands.forget(&answer);
        } else if self.commands.must_wait(&answer) {
            self.deferred.push_back(answer);
        } else if let Err(HangUp) = self.commands.answered(cx, disk, answer) {
            self.close();
        }
    }

    /// Does all that can be done before the replies are sent. Says why it cannot go
    /// on, if there is a command that cannot start.
    pub(crate) fn work(&mut self, cx: &mut Cx, disk: &mut Disk) -> Option<Refusal> {
        if let Err(HangUp) = self.catch_up(cx, disk) {
            self.close();
        }
        if self.is_closed() {
            disk.core.ahead -= self.ahead.clear();
            return None;
        }
        while !self.commands.is_owned() && self.step(cx, disk) {}
        self.starved()
    }

    /// Replies to what has been answered, as far as that goes.
    fn catch_up(&mut self, cx: &mut Cx, disk: &mut Disk) -> Result<(), HangUp> {
        if self.is_closed() {
            return Ok(());
        }
        self.commands.advance(cx, disk)?;
        while !self.commands.is_owned()
            && let Some(answer) = self.deferred.pop_front()
        {
            self.commands.answered(cx, disk, answer)?;
        }
        Ok(())
    }

    /// Why its next command cannot start now. While a long read owns the output, all wait
    /// for that alone.
    pub(crate) fn starved(&self) -> Option<Refusal> {
        let waits = !self.is_closed() && !self.commands.is_owned();
        waits.then(|| self.ahead.starved()).flatten()
    }

    /// Uses up some of what was received; false if that is not possible now.
    fn step(&mut self, cx: &mut Cx, disk: &mut Disk) -> bool {
        if self.is_closed() {
            return false;
        }
        if let Some(pending) = self.ahead.take() {
            disk.core.ahead -= 1;
            return self.begin(cx, disk, pending);
        }
        if self.state == State::Finishing {
            return false;
        }
        match &mut self.phase {
            Phase::Head => self.next_command(cx, disk),
            Phase::Payload(key) => {
                let key = *key;
                let Some(target) = self.commands.target(key) else { return false };
                let len = self.input.fill(&target);
                drop(target);
                if len > 0 {
                    self.payload(cx, disk, key, len);
                }
                len > 0
            }
            Phase::Skip { left, reply } => {
                let len = self.input.available().min(*left);
                *left -= len;
                self.input.consume(len);
                if *left > 0 {
                    return false;
                }
                self.commands.reply(reply);
                self.phase = Phase::Head;
                true
            }
        }
    }

    fn next_command(&mut self, cx: &mut Cx, disk: &mut Disk) -> bool {
        if self.is_full() {
            return false;
        }
        let Some(head) = self.input.head() else { return false };
        let Ok(request) = Request::parse(&head) else {
            self.close();
            return false;
        };
        self.input.consume(head.len());
        disk.core.hears(cx.now, Client::Connection(self.index));
        let refusal = match self.commands.session().check(&request) {
            Ok(command) => {
                let (cookie, came) = (request.cookie, None);
                return self.begin(cx, disk, Pending { cookie, command, came });
            }
            Err(refusal) => refusal,
        };
        let error = refusal.reason.to_string();
        let session = self.commands.session();
        let reply = session.error(request.cookie, refusal.error(), &error);
        match refusal.remedy {
            Remedy::Reply => self.commands.reply(&reply),
            Remedy::DrainThenReply(left) => {
                self.phase = Phase::Skip { left: left as usize, reply };
            }
            Remedy::HangUp => self.close(),
        }
        true
    }

    fn begin(&mut self, cx: &mut Cx, disk: &mut Disk, pending: Pending) -> bool {
        match self.commands.start(cx, disk, &pending) {
            Ok(Coming::Command) => {}
            Ok(Coming::Payload(key)) => {
                self.phase = Phase::Payload(key);
                self.progress = Progress::anew(cx.now);
            }
            Ok(Coming::Nothing) => self.finish(),
            Err(refusal) => {
                self.ahead.refused(cx.now, pending, refusal);
                disk.core.ahead += 1;
                self.read_ahead(cx, disk);
                return false;
            }
        }
        true
    }

    /// Reads the heads behind a command that cannot start.
    fn read_ahead(&mut self, cx: &Cx, disk: &mut Disk) {
        while self.may_read_ahead()
            && let Some(head) = self.input.head()
            && let Ok(request) = Request::parse(&head)
            // What is wrong about one is said when it is its turn.
            && let Ok(command) = self.commands.session().check(&request)
        {
            self.input.consume(head.len());
            let (cookie, came) = (request.cookie, Some(cx.now));
            self.ahead.push(Pending { cookie, command, came });
            disk.core.ahead += 1;
        }
    }

    fn may_read_ahead(&self) -> bool {
        self.state == State::Open && self.ahead.is_open() && !self.is_full()
    }

    fn is_full(&self) -> bool {
        self.commands.count() + self.ahead.len() >= IN_FLIGHT_MAX
    }

    /// The end of an iteration: sends what has gathered and receives what it can use.
    pub(crate) fn flush(&mut self, cx: &mut Cx) {
        if self.state != State::Closed {
            let (token, was_sending) = (self.token(SEND), self.commands.is_sending());
            self.commands.flush(cx, &self.fd, token);
            if !was_sending && self.commands.is_sending() {
                self.sends_since = cx.now;
                if self.send_ended < cx.now {
                    // There was nothing to take.
                    self.sent = Progress::anew(cx.now);
                }
            }
        }
        if self.state == State::Finishing
            && self.ahead.is_empty()
            && self.commands.is_answered()
        {
            self.close();
        }
        let stopped = !self.ahead.is_empty() && !self.may_read_ahead();
        let may_use_more = !stopped && !self.commands.is_owned();
        if self.state == State::Open && !self.receiving && may_use_more {
            self.receive(cx);
        }
    }

    fn receive(&mut self, cx: &mut Cx) {
        let (tag, buf) = match &mut self.phase {
            // Something is left that cannot be used now: more would not help.
            Phase::Head if self.input.head().is_some() => return,
            Phase::Payload(key) => match self.commands.target(*key) {
                None => {
                    self.held_up = true;
                    return;
                }
                Some(target) if target.len() > COPY_MAX => (RECEIVE_PAYLOAD, target),
                Some(_) => (RECEIVE, self.input.room()),
            },
            _ => (RECEIVE, self.input.room()),
        };
        self.receiving = true;
        if std::mem::take(&mut self.held_up) {
            // Its client was not to blame.
            self.progress = Progress::anew(cx.now);
        }
        let token = self.token(tag);
        cx.io.submit(token, Op::Recv { fd: self.fd.clone(), buf });
    }

    /// No more commands; the connection ends when those in flight are answered.
    pub(crate) fn finish(&mut self) {
        if self.state != State::Open {
            return;
        }
        self.state = State::Finishing;
        if let Phase::Payload(key) = self.phase {
            self.phase = Phase::Head;
            self.commands.cut_off(key);
        }
    }

    /// Ends the connection at once.
    pub(crate) fn close(&mut self) {
        if self.state == State::Closed {
            return;
        }
        self.state = State::Closed;
        self.left = true;
        self.phase = Phase::Head;
        // SAFETY: no pointers are involved. It ends the receive and the send
        // that are in flight; if the socket is gone already, so are they.
        unsafe { libc::shutdown(self.fd.as_raw_fd(), libc::SHUT_RDWR) };
        for answer in std::mem::take(&mut self.deferred) {
            self.commands.forget(&answer);
        }
        self.commands.give_up();
    }

    /// Whether it holds memory that it will give back by itself.
    pub(crate) fn holds_memory(&self) -> bool {
        self.commands.holds_memory()
    }

    fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// Whether the client can neither send nor take anything any more. Over TCP that
    /// shows with the first replies.
    pub(crate) fn is_deserted(&self) -> bool {
        let mut asked = libc::pollfd { fd: self.fd.as_raw_fd(), events: 0, revents: 0 };
        // SAFETY: it is given one entry, which lives as long as the call.
        let found = unsafe { libc::poll(&raw mut asked, 1, 0) };
        found == 1 && asked.revents & (libc::POLLHUP | libc::POLLERR) != 0
    }

    /// Whether it has closed since this was last asked: what waits on its disk for it
    /// is to be dropped.
    pub(crate) fn has_left(&mut self) -> bool {
        std::mem::take(&mut self.left)
    }

    /// Whether nothing of it is in flight and it can be dropped.
    pub(crate) fn is_gone(&self) -> bool {
        self.is_closed()
            && !self.receiving
            && !self.commands.is_sending()
            && self.commands.is_empty()
    }

    /// Whether it waits for nothing but that its client takes replies.
    fn awaits_client(&self, now: Nanos) -> bool {
        let is_left_alone =
            self.commands.is_sending() && now.since(self.sends_since) > UNREAD_FROM;
        is_left_alone && !self.commands.are_at_the_disk()
    }

    /// Of the commands that it has read and cannot start, those that wait for its client.
    pub(crate) fn await_client(&self, now: Nanos) -> usize {
        if self.ahead.is_empty() || !self.awaits_client(now) {
            return 0;
        }
        self.ahead.len()
    }

    /// Since when its client has read nothing of the replies that it is sent, if it does not.
    pub(crate) fn unread_since(&self, now: Nanos) -> Option<Nanos> {
        let is_unread = self.awaits_client(now) && !self.is_closed();
        is_unread.then_some(self.sent.since())
    }

    /// Whether it keeps memory from others although it could give it back.
    pub(crate) fn stalls(&self, now: Nanos) -> bool {
        let waits_for_payload = self.receiving && matches!(self.phase, Phase::Payload(_));
        let stalls = waits_for_payload && self.progress.stalls(now)
            || self.commands.is_sending() && self.sent.has_lasted(now, SEND_STALL);
        self.holds_memory() && stalls
    }

    fn token(&self, tag: u32) -> Token {
        Token { owner: Owner::Connection(self.index), tag }
    }
}
