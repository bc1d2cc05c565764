//! How long reads go on: what their streams ask the disk for, and how pieces are sent.

use sterna_nbd::reply;

use super::command::{Command, Kind};
use super::stream::{Next, Piece};
use super::{Commands, HangUp};
use crate::disk::Disk;
use crate::image::{Cx, ImageOp};
use crate::io::Errno;

impl Commands {
    /// Does what can be done for all long reads now.
    pub(in crate::export) fn advance(
        &mut self,
        cx: &mut Cx,
        disk: &mut Disk,
    ) -> Result<(), HangUp> {
        for at in (0..self.streams.len()).rev() {
            if let Some(&key) = self.streams.get(at) {
                self.advance_stream(cx, disk, key)?;
            }
        }
        Ok(())
    }

    /// Does what can be done for a long read now.
    pub(super) fn advance_stream(
        &mut self,
        cx: &mut Cx,
        disk: &mut Disk,
        key: u32,
    ) -> Result<(), HangUp> {
        match self.table.get(key) {
            Some(command) if command.error.is_none() => self.go_on(cx, disk, key),
            Some(_) if self.may_send(key) => return self.fail_stream(key),
            _ => {}
        }
        Ok(())
    }

    /// Reads and sends, as far as that goes.
    pub(super) fn go_on(&mut self, cx: &mut Cx, disk: &mut Disk, key: u32) {
        loop {
            let may_send = self.may_send(key);
            let Some(command) = self.table.get_mut(key) else { return };
            let (cookie, cost) = (command.cookie, command.cost);
            let Kind::Stream(stream) = &mut command.kind else { return };
            match stream.next(may_send) {
                Next::Read { offset, buf } => {
                    self.set_at_store(key, true);
                    self.request(cx, disk, key, ImageOp::Read { offset, buf });
                }
                Next::Send(Piece { offset, buf, is_first, is_last }) => {
                    // The buffers are paid for until the last piece has left.
                    let cost = if is_last { cost } else { 0 };
                    if stream.is_chunked() {
                        let len = buf.len() as u32;
                        let head = reply::offset_data(cookie, offset, len, is_last);
                        self.output.push(&head, Some(buf), cost);
                    } else {
                        let head = self.session.read(cookie, offset, stream.len());
                        let head: &[u8] = if is_first { &head } else { &[] };
                        self.output.push(head, Some(buf), cost);
                        self.exclusive = (!is_last).then_some(key);
                    }
                }
                Next::Wait => {
                    let is_at_store = command.pieces > 0;
                    return self.set_at_store(key, is_at_store);
                }
                Next::Done => {
                    self.set_at_store(key, false);
                    self.table.remove(key);
                    self.streams.retain(|stream| *stream != key);
                    return;
                }
            }
        }
    }

    /// Something of a long read is under way at the datastore, or nothing is: whoever waits for
    /// its client does not wait for that.
    fn set_at_store(&mut self, key: u32, is: bool) {
        let Some(command) = self.table.get_mut(key) else { return };
        if std::mem::replace(&mut command.is_at_store, is) == is {
            return;
        }
        match is {
            true => self.account.asked(command.cost),
            false => self.account.answered(command.cost),
        }
    }

    fn may_send(&self, key: u32) -> bool {
        self.exclusive.is_none_or(|owner| owner == key)
    }

    /// A piece could not be read. Once the others are back, the client is told,
    /// if that is possible.
    fn fail_stream(&mut self, key: u32) -> Result<(), HangUp> {
        let Some(Command {
            cookie, error, pieces: 0, kind: Kind::Stream(stream), ..
        }) = self.table.get(key)
        else {
            return Ok(());
        };
        if !stream.is_chunked() && stream.has_started() {
            return Err(HangUp);
        }
        let head = self.error_head(*cookie, error.unwrap_or(Errno(libc::EIO)));
        if let Some(command) = self.table.remove(key) {
            self.leaves_store(&command);
            self.output.push(&head, None, command.cost);
        }
        self.streams.retain(|stream| *stream != key);
        Ok(())
    }
}
