//! The commands of a client that are under way: how they become requests of the disk, and
//! how answers become replies.
//!
//! They know nothing of the socket, nor of what is received. The connection starts a command
//! (`start`), brings payload and answers, and has the replies sent. If a reply can be given
//! no more, it is told to end (`HangUp`).
//!
//! What a command does is its `Kind`: `write`, `ranged` and `stream` know how far it is, and
//! what comes next.

mod command;
mod long_reads;
mod ranged;
mod start;
mod stream;
mod write;

use std::rc::Rc;

use sterna_core::Nanos;
use sterna_nbd::{Allocation, NbdError, Session, reply, status};

use self::command::{Command, Kind, Status};
use super::memory::Account;
use super::output::Output;
use crate::buffer::Slice;
use crate::disk::{Answer, Client, Disk, Edges, Origin};
use crate::holds::Holds;
use crate::image::{Cx, Done, ImageOp};
use crate::io::{Errno, Fd, Message, Token};
use crate::slab::Slab;

/// The commands of a connection, and their replies until these have left.
pub(super) struct Commands {
    client: Client,
    session: Session,
    account: Account,
    table: Slab<Command>,
    /// Those of the commands that are long reads.
    streams: Vec<u32>,
    /// The long read in one part that has begun to reply: nothing may come
    /// between its pieces.
    exclusive: Option<u32>,
    output: Output,
}

/// What comes next of a client whose command has started.
pub(super) enum Coming {
    /// Its next command.
    Command,
    /// The payload of this one.
    Payload(u32),
    /// Nothing: it has said good-bye.
    Nothing,
}

/// A reply has been given in part, and there is no way to say that the rest will not come:
/// the connection has to end.
pub(super) struct HangUp;

impl Commands {
    pub(super) fn new(client: Client, session: Session, holds: &Rc<Holds>) -> Commands {
        Commands {
            client,
            session,
            account: Account::new(holds),
            table: Slab::new(),
            streams: Vec::new(),
            exclusive: None,
            output: Output::default(),
        }
    }

    pub(super) fn session(&self) -> &Session {
        &self.session
    }

    /// Those that are being carried out, and replies that have not left.
    pub(super) fn count(&self) -> usize {
        self.table.len() + self.output.replies()
    }

    /// Whether nothing is being carried out.
    pub(super) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Whether all replies have left.
    pub(super) fn is_answered(&self) -> bool {
        self.table.is_empty() && self.output.is_empty()
    }

    /// Whether replies are on their way.
    pub(super) fn is_sending(&self) -> bool {
        self.output.sending()
    }

    /// Whether the disk is at a request of any of them.
    pub(super) fn are_at_the_disk(&self) -> bool {
        self.table.iter().any(|(_, command)| command.pieces > 0)
    }

    /// Whether a long read owns the output: no other command can reply then.
    pub(super) fn is_owned(&self) -> bool {
        self.exclusive.is_some()
    }

    /// Whether they hold memory that they will give back by themselves.
    pub(super) fn holds_memory(&self) -> bool {
        self.account.held() > 0
    }

    /// Replies with a head alone.
    pub(super) fn reply(&mut self, head: &[u8]) {
        self.output.push(head, None, 0);
    }

    /// Sends the replies that have gathered, if none are on their way.
    pub(super) fn flush(&mut self, cx: &mut Cx, fd: &Fd, token: Token) {
        self.output.flush(cx, fd, token);
    }

    /// Replies have left (or never will).
    pub(super) fn sent(&mut self, message: Box<Message>) {
        let cost = self.output.sent(message);
        self.account.give(cost);
    }

    /// Where the next bytes of a write's payload belong; `None` while all its buffers are
    /// being written to disk.
    pub(super) fn target(&mut self, key: u32) -> Option<Slice> {
        match &mut self.table.get_mut(key)?.kind {
            Kind::Write(write) => write.target(),
            _ => None,
        }
    }

    /// Payload of a write has come into its target. Whether that was the last of it.
    pub(super) fn payload(
        &mut self,
        cx: &mut Cx,
        disk: &mut Disk,
        key: u32,
        len: usize,
    ) -> bool {
        let Some(command) = self.table.get_mut(key) else { return false };
        let Kind::Write(write) = &mut command.kind else { return false };
        let piece = write.filled(len);
        let (complete, fua) = (write.is_complete(), write.fua);
        match piece {
            // After an error the rest of the payload only passes through.
            Some((around, buf)) if command.error.is_none() => {
                let write = ImageOp::Write { offset: around.offset, buf, fua };
                self.request_within(cx, disk, key, write, around.edges);
            }
            _ if complete && command.pieces == 0 => self.end(key),
            _ => {}
        }
        complete
    }

    /// The rest of a write's payload will not come. Half a payload is no write; what is
    /// already with the disk is carried out, and nobody hears of it.
    pub(super) fn cut_off(&mut self, key: u32) {
        if let Some(Command { kind: Kind::Write(write), .. }) = self.table.get_mut(key) {
            write.is_cut_off = true;
        }
        self.bury(key);
    }

    /// Gives the disk one more request of a command.
    fn request(&mut self, cx: &mut Cx, disk: &mut Disk, key: u32, op: ImageOp) {
        self.request_within(cx, disk, key, op, Edges::default());
    }

    /// The same of a write that does not change all bytes of its blocks.
    fn request_within(
        &mut self,
        cx: &mut Cx,
        disk: &mut Disk,
        key: u32,
        op: ImageOp,
        edges: Edges,
    ) {
        if let Some(command) = self.table.get_mut(key) {
            command.pieces += 1;
            let waited = std::mem::take(&mut command.waited);
            let came = Nanos(cx.now.0.saturating_sub(waited.0));
            let origin = Origin { client: self.client, command: key };
            disk.submit_within(cx, origin, op, edges, came);
        }
    }

    /// Asks for the next piece of a command about a range; false if nothing is left.
    fn next_piece(&mut self, cx: &mut Cx, disk: &mut Disk, key: u32) -> bool {
        let Some(Command { kind: Kind::Ranged(ranged), .. }) = self.table.get_mut(key)
        else {
            return false;
        };
        let Some((op, edges)) = ranged.next(disk) else { return false };
        self.request_within(cx, disk, key, op, edges);
        true
    }

    /// Whether an answer has to wait until the long read that owns the output is done. Other
    /// long reads take their pieces themselves; they know that they must wait.
    pub(super) fn must_wait(&self, answer: &Answer) -> bool {
        let key = answer.origin.command;
        self.exclusive.is_some_and(|owner| owner != key) && !self.streams.contains(&key)
    }

    /// The disk has answered a request.
    pub(super) fn answered(
        &mut self,
        cx: &mut Cx,
        disk: &mut Disk,
        answer: Answer,
    ) -> Result<(), HangUp> {
        let key = answer.origin.command;
        let Some(command) = self.table.get_mut(key) else { return Ok(()) };
        command.pieces -= 1;
        let done = match answer.result {
            Ok(done) => done,
            Err(errno) => {
                command.error = Some(errno.or_worse(command.error));
                Done::Ok
            }
        };
        let failed = command.error.is_some();
        let pending = command.pieces > 0;
        match (&mut command.kind, answer.op) {
            (Kind::Stream(stream), ImageOp::Read { offset, .. }) => {
                stream.arrived(offset);
                return self.advance_stream(cx, disk, key);
            }
            (Kind::Write(write), _) if !write.is_complete() || pending => {
                if write.is_cut_off {
                    self.bury(key);
                }
            }
            _ if failed => self.end(key),
            (Kind::Ranged(_), _) => {
                if !self.next_piece(cx, disk, key) {
                    self.end(key);
                }
            }
            (Kind::Read(from, len), ImageOp::Read { offset, buf }) => {
                let (from, len) = (*from, *len);
                let skip = (from - offset) as usize;
                self.end_read(key, from, buf.part(skip, len as usize));
            }
            (Kind::Status(status), ImageOp::Extents { .. }) => {
                let status = *status;
                self.end_status(key, status, &done);
            }
            _ => self.end(key),
        }
        Ok(())
    }

    fn end_read(&mut self, key: u32, offset: u64, buf: Slice) {
        if let Some(command) = self.table.remove(key) {
            self.leaves_store(&command);
            let head = self.session.read(command.cookie, offset, buf.len() as u32);
            self.output.push(&head, Some(buf), command.cost);
        }
    }

    fn end_status(&mut self, key: u32, asked: Status, done: &Done) {
        let Some(command) = self.table.get_mut(key) else { return };
        let Status { len, req_one, mut skip } = asked;
        let reply = match (done, self.session.allocation) {
            (Done::Extents(found), Some(context)) => {
                let extents = found.iter().map(|extent| {
                    let before = skip.min(extent.range.len);
                    skip -= before;
                    let state = Allocation { hole: extent.hole, zero: extent.zero };
                    status::Extent { len: extent.range.len - before, state }
                });
                status::block_status(command.cookie, context, len, req_one, extents)
            }
            _ => None,
        };
        match reply {
            Some(reply) => {
                self.table.remove(key);
                self.output.push(&reply, None, 0);
            }
            None => {
                command.error = Some(Errno(libc::EIO));
                self.end(key);
            }
        }
    }

    /// Replies to a command without content, or with its error, and forgets it.
    fn end(&mut self, key: u32) {
        let Some(command) = self.table.remove(key) else { return };
        self.leaves_store(&command);
        self.account.give(command.cost);
        match command.error {
            None => self.output.push(&self.session.ok(command.cookie), None, 0),
            Some(errno) => {
                let head = self.error_head(command.cookie, errno);
                self.output.push(&head, None, 0);
            }
        }
    }

    /// The error reply for an error of the system.
    fn error_head(&self, cookie: u64, errno: Errno) -> reply::ErrorHead {
        self.session.error(cookie, NbdError::from_errno(errno.0), &errno.to_string())
    }

    /// A command ends: nothing of it is under way at the datastore any more.
    fn leaves_store(&self, command: &Command) {
        if command.is_at_store {
            self.account.answered(command.cost);
        }
    }

    /// Forgets a command that gets no reply, if nothing of it is in flight.
    fn bury(&mut self, key: u32) {
        if self.table.get(key).is_some_and(|command| command.pieces == 0)
            && let Some(command) = self.table.remove(key)
        {
            self.leaves_store(&command);
            self.account.give(command.cost);
        }
    }

    /// The client gets no more replies. What is in flight is still to be answered
    /// (`forget`).
    pub(super) fn give_up(&mut self) {
        self.exclusive = None;
        let cost = self.output.discard();
        self.account.give(cost);
        for key in self.table.keys() {
            self.bury(key);
        }
    }

    /// The disk has answered a request for which there is no reply any more.
    pub(super) fn forget(&mut self, answer: &Answer) {
        let key = answer.origin.command;
        if let Some(command) = self.table.get_mut(key) {
            command.pieces -= 1;
            self.bury(key);
        }
    }
}
