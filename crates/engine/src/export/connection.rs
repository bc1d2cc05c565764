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
use crate::io::{Completion, Fd, Message, Op, Owner, Token};
use crate::slab::Slab;

use super::ahead::{Ahead, Pending};
use super::command::{Command, Kind};
use super::memory::{Account, Refusal};
use super::output::Output;
use super::receive::{Input, Phase};
use super::{COPY_MAX, IN_FLIGHT_MAX, STALL};

/// Tags of a connection's operations.
const RECEIVE: u32 = 0;
const RECEIVE_PAYLOAD: u32 = 1;
const SEND: u32 = 2;

pub(crate) struct Connection {
    pub(super) index: u32,
    fd: Fd,
    /// The number of its disk on the reactor.
    pub(crate) disk: u32,
    pub(super) session: Session,
    pub(super) account: Account,
    pub(super) commands: Slab<Command>,
    /// Those of the commands that are long reads.
    pub(super) streams: Vec<u32>,
    /// The long read in one part that has begun to reply: nothing may come
    /// between its pieces.
    pub(super) exclusive: Option<u32>,
    /// Answers that wait behind it.
    deferred: VecDeque<Answer>,
    pub(super) output: Output,
    input: Input,
    pub(super) phase: Phase,
    /// Commands that cannot start now.
    ahead: Ahead,
    receiving: bool,
    state: State,
    /// It has closed, and its disk has not been told.
    left: bool,
    /// When the client last moved a byte.
    moved: Nanos,
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
            session,
            account: Account::new(holds),
            commands: Slab::new(),
            streams: Vec::new(),
            exclusive: None,
            deferred: VecDeque::new(),
            output: Output::default(),
            input: Input::new(&cx.newcomers, leftover)?,
            phase: Phase::Head,
            ahead: Ahead::default(),
            receiving: false,
            state: State::Open,
            left: false,
            moved: cx.now,
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
            Op::Send { message, .. } => self.sent(cx, message, result.is_ok()),
            Op::Recv { .. } => {
                self.receiving = false;
                match result {
                    Ok(0) if self.is_deserted() => self.close(),
                    Ok(0) => self.finish(),
                    Ok(len) => {
                        self.moved = cx.now;
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

    fn sent(&mut self, cx: &mut Cx, message: Box<Message>, ok: bool) {
        let cost = self.output.sent(message);
        self.account.give(cost);
        self.moved = cx.now;
        if !ok {
            self.close();
        }
    }

    /// The disk has answered a request of this connection.
    pub(crate) fn answer(&mut self, cx: &mut Cx, disk: &mut Disk, answer: Answer) {
        let key = answer.origin.command;
        let behind = self.exclusive.is_some_and(|owner| owner != key);
        // A long read takes its pieces itself; it knows that it must wait.
        if behind && !self.is_closed() && !self.streams.contains(&key) {
            self.deferred.push_back(answer);
        } else {
            self.answered(cx, disk, answer);
        }
    }

    /// Does all that can be done before the replies are sent. Says why it cannot go
    /// on, if there is a command that cannot start.
    pub(crate) fn work(&mut self, cx: &mut Cx, disk: &mut Disk) -> Option<Refusal> {
        if self.is_closed() {
            disk.core.ahead -= self.ahead.clear();
            return None;
        }
        for at in (0..self.streams.len()).rev() {
            if let Some(&key) = self.streams.get(at) {
                self.advance_stream(cx, disk, key);
            }
        }
        while self.exclusive.is_none()
            && let Some(answer) = self.deferred.pop_front()
        {
            self.answered(cx, disk, answer);
        }
        while self.exclusive.is_none() && self.step(cx, disk) {}
        self.starved()
    }

    /// Why its next command cannot start now. While a long read owns the output, all wait
    /// for that alone.
    pub(crate) fn starved(&self) -> Option<Refusal> {
        let waits = !self.is_closed() && self.exclusive.is_none();
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
                let Some(Command { kind: Kind::Write(write), .. }) =
                    self.commands.get_mut(key)
                else {
                    return false;
                };
                let Some(target) = write.target() else { return false };
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
                self.output.push(reply, None, 0);
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
        disk.core.hears(Client::Connection(self.index));
        let refusal = match self.session.check(&request) {
            Ok(command) => {
                let (cookie, came) = (request.cookie, None);
                return self.begin(cx, disk, Pending { cookie, command, came });
            }
            Err(refusal) => refusal,
        };
        let error = refusal.reason.to_string();
        let reply = self.session.error(request.cookie, refusal.error(), &error);
        match refusal.remedy {
            Remedy::Reply => self.output.push(&reply, None, 0),
            Remedy::DrainThenReply(left) => {
                self.phase = Phase::Skip { left: left as usize, reply };
            }
            Remedy::HangUp => self.close(),
        }
        true
    }

    fn begin(&mut self, cx: &mut Cx, disk: &mut Disk, pending: Pending) -> bool {
        let Err(refusal) = self.start(cx, disk, &pending) else { return true };
        self.ahead.refused(cx.now, pending, refusal);
        disk.core.ahead += 1;
        self.read_ahead(cx, disk);
        false
    }

    /// Reads the heads behind a command that cannot start.
    fn read_ahead(&mut self, cx: &Cx, disk: &mut Disk) {
        while self.may_read_ahead()
            && let Some(head) = self.input.head()
            && let Ok(request) = Request::parse(&head)
            // What is wrong about one is said when it is its turn.
            && let Ok(command) = self.session.check(&request)
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
        self.commands.len() + self.ahead.len() + self.output.replies() >= IN_FLIGHT_MAX
    }

    /// The end of an iteration: sends what has gathered and receives what it can use.
    pub(crate) fn flush(&mut self, cx: &mut Cx) {
        if self.state != State::Closed {
            self.output.flush(cx, &self.fd, self.token(SEND));
        }
        if self.state == State::Finishing
            && self.ahead.is_empty()
            && self.commands.is_empty()
            && self.output.is_empty()
        {
            self.close();
        }
        let stopped = !self.ahead.is_empty() && !self.may_read_ahead();
        let may_use_more = !stopped && self.exclusive.is_none();
        if self.state == State::Open && !self.receiving && may_use_more {
            self.receive(cx);
        }
    }

    fn receive(&mut self, cx: &mut Cx) {
        let (tag, buf) = match &mut self.phase {
            // Something is left that cannot be used now: more would not help.
            Phase::Head if self.input.head().is_some() => return,
            Phase::Payload(key) => {
                let Some(Command { kind: Kind::Write(write), .. }) =
                    self.commands.get_mut(*key)
                else {
                    return;
                };
                match write.target() {
                    None => return,
                    Some(target) if target.len() > COPY_MAX => (RECEIVE_PAYLOAD, target),
                    Some(_) => (RECEIVE, self.input.room()),
                }
            }
            _ => (RECEIVE, self.input.room()),
        };
        self.receiving = true;
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
            // Half a payload is no write. What is already with the disk is
            // carried out; nobody hears of it.
            self.phase = Phase::Head;
            self.bury(key);
        }
    }

    /// Ends the connection at once.
    pub(crate) fn close(&mut self) {
        if self.state == State::Closed {
            return;
        }
        self.state = State::Closed;
        self.left = true;
        self.exclusive = None;
        self.phase = Phase::Head;
        // SAFETY: no pointers are involved. It ends the receive and the send
        // that are in flight; if the socket is gone already, so are they.
        unsafe { libc::shutdown(self.fd.as_raw_fd(), libc::SHUT_RDWR) };
        let cost = self.output.discard();
        self.account.give(cost);
        for answer in std::mem::take(&mut self.deferred) {
            if let Some(command) = self.commands.get_mut(answer.origin.command) {
                command.pieces -= 1;
            }
        }
        for key in self.commands.keys() {
            self.bury(key);
        }
    }

    /// Forgets a command that gets no reply, if nothing of it is in flight.
    pub(super) fn bury(&mut self, key: u32) {
        if self.commands.get(key).is_some_and(|command| command.pieces == 0)
            && let Some(command) = self.commands.remove(key)
        {
            self.account.answered(command.cost);
            self.account.give(command.cost);
        }
    }

    /// Whether it holds memory that it will give back by itself.
    pub(crate) fn holds_memory(&self) -> bool {
        self.account.held() > 0
    }

    pub(super) fn is_open(&self) -> bool {
        self.state == State::Open
    }

    pub(super) fn is_closed(&self) -> bool {
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
            && !self.output.sending()
            && self.commands.is_empty()
    }

    /// Whether it keeps memory from others although it could give it back.
    pub(crate) fn stalls(&self, now: Nanos) -> bool {
        let payload = self.receiving && matches!(self.phase, Phase::Payload(_));
        let waits_for_client = self.output.sending() || payload;
        self.account.held() > 0 && waits_for_client && now.since(self.moved) > STALL
    }

    fn token(&self, tag: u32) -> Token {
        Token { owner: Owner::Connection(self.index), tag }
    }
}
