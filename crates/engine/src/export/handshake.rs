//! A connection that is shaking hands, on reactor 0.
//!
//! The rules are in `sterna_nbd::server`; here its machine gets its bytes. One
//! operation is in flight at a time, so whatever happens, the completion of
//! that one finds the handshake where it was.

use std::os::fd::{AsRawFd, OwnedFd};

use sterna_core::Nanos;
use sterna_nbd::server::Ready;
use sterna_nbd::{ServerHandshake, ServerStep};

use crate::buffer::Buf;
use crate::directory::Directory;
use crate::image::Cx;
use crate::io::{Completion, Fd, Message, Op, Owner, Token};
use crate::timer::TimerId;

use super::HANDSHAKE_TIME;

/// Bytes received at a time. Whatever a client sends ahead of the handshake's
/// end is handed on, so this bounds it.
const RECEIVE: usize = 4 << 10;

pub(crate) struct Handshake {
    index: u32,
    fd: Fd,
    machine: ServerHandshake,
    buf: Buf,
    /// Fires when it takes too long.
    timer: TimerId,
    /// When it began; none if it is to end.
    since: Option<Nanos>,
}

/// How far a handshake is.
pub(crate) enum Progress {
    Going,
    /// The client is gone, or must go.
    Failed,
    Ready(Box<Ready>),
}

impl Handshake {
    /// `None` if there is no memory for it now.
    pub(crate) fn new(cx: &mut Cx, index: u32, fd: OwnedFd) -> Option<Handshake> {
        let buf = cx.newcomers.get(RECEIVE)?;
        let token = Token { owner: Owner::Handshake(index), tag: 0 };
        let timer = cx.timers.set(cx.now.plus(HANDSHAKE_TIME), token);
        let machine = ServerHandshake::new();
        let since = Some(cx.now);
        Some(Handshake { index, fd: fd.into(), machine, buf, timer, since })
    }

    /// Its operation is done.
    pub(crate) fn completed(
        &mut self,
        cx: &mut Cx,
        directory: &Directory,
        completion: Completion,
    ) -> Progress {
        match (completion.op, completion.result) {
            (_, Err(_)) | (Op::Recv { .. }, Ok(0)) => return Progress::Failed,
            (Op::Recv { buf, .. }, Ok(len)) => {
                let bytes = buf.bytes();
                let len = (len as usize).min(bytes.len());
                if self.machine.push(&bytes[..len]) < len {
                    return Progress::Failed;
                }
            }
            _ => {}
        }
        self.advance(cx, directory)
    }

    /// Goes on until there is something to wait for.
    pub(crate) fn advance(&mut self, cx: &mut Cx, directory: &Directory) -> Progress {
        let token = Token { owner: Owner::Handshake(self.index), tag: 0 };
        loop {
            match self.machine.step() {
                ServerStep::Send(bytes) => {
                    let mut message = Box::new(Message::default());
                    message.head(|head| *head = bytes);
                    cx.io.submit(token, Op::Send { fd: self.fd.clone(), message });
                    return Progress::Going;
                }
                ServerStep::Receive => {
                    let buf = self.buf.slice(0, self.machine.room().min(RECEIVE));
                    cx.io.submit(token, Op::Recv { fd: self.fd.clone(), buf });
                    return Progress::Going;
                }
                ServerStep::NeedExport(question) => {
                    self.machine.answer_export(directory.export(&question.name));
                }
                ServerStep::NeedList => self.machine.answer_list(Ok(directory.list())),
                ServerStep::Ready(ready) => return Progress::Ready(ready),
                ServerStep::Closed(_) => return Progress::Failed,
            }
        }
    }

    /// Makes the operation in flight end, and the handshake fail with it.
    pub(crate) fn abort(&mut self) {
        self.since = None;
        // SAFETY: no pointers are involved; a socket that is gone is as good.
        unsafe { libc::shutdown(self.fd.as_raw_fd(), libc::SHUT_RDWR) };
    }

    /// When it began, unless it is about to end.
    pub(crate) fn since(&self) -> Option<Nanos> {
        self.since
    }

    /// Ends it; the socket remains, if nothing of it is in flight.
    pub(crate) fn into_socket(self, cx: &mut Cx) -> Option<OwnedFd> {
        cx.timers.cancel(self.timer);
        cx.io.forget(&self.fd);
        self.fd.into_owned()
    }
}
