//! What comes back from the server.

use sterna_core::durability::Loss;
use sterna_nbd::client::ReadPieces;
use sterna_nbd::status::parse_extents;
use sterna_nbd::{Command, NbdError, ReplyHead};

use super::link::{State, Step, Want};
use super::{NbdImage, VIOLATIONS_MAX};
use crate::account::Line;
use crate::image::Cx;
use crate::io::Errno;

/// Why a connection cannot be used any more.
enum Broken {
    /// The server broke the protocol.
    Violation(String),
    /// The server says that it is going.
    Leaving,
}

impl From<String> for Broken {
    fn from(what: String) -> Broken {
        Broken::Violation(what)
    }
}

impl From<&str> for Broken {
    fn from(what: &str) -> Broken {
        Broken::Violation(what.into())
    }
}

impl NbdImage {
    /// A receive is done, well or not.
    pub(super) fn received(
        &mut self,
        cx: &mut Cx,
        at: usize,
        result: Result<u64, Errno>,
    ) {
        match result {
            _ if self.links[at].state != State::Up => self.settle(cx, at),
            Ok(0) => self.lose(cx, at, "the server closed the connection"),
            Ok(count) => {
                self.links[at].inbox.received(count as usize);
                self.process(cx, at);
            }
            Err(errno) => self.lose(cx, at, &errno.to_string()),
        }
    }

    /// Looks at what has come in, and asks for more.
    pub(super) fn process(&mut self, cx: &mut Cx, at: usize) {
        loop {
            let limits = self.links[at].limits;
            let step = self.links[at].inbox.step(&limits).map_err(Broken::from);
            let result = match step {
                Ok(Step::Receive(to)) => return self.receive(cx, at, to),
                Ok(Step::Head(head)) => self.head(cx, at, &head),
                Ok(Step::Data { part, last }) => match last {
                    true => self.complete(cx, part),
                    false => Ok(()),
                },
                Ok(Step::Extents { part, ours, bytes, last }) => {
                    self.extents(cx, part, ours, &bytes, last)
                }
                Err(broken) => Err(broken),
            };
            match result {
                Ok(()) => {}
                Err(Broken::Leaving) => {
                    return self.lose(cx, at, "the server is shutting down");
                }
                Err(Broken::Violation(what)) => return self.violated(cx, at, &what),
            }
        }
    }

    fn violated(&mut self, cx: &mut Cx, at: usize, what: &str) {
        self.violations += 1;
        self.counters.violations += 1;
        self.lose(cx, at, &format!("the server broke the protocol: {what}"));
        if self.violations >= VIOLATIONS_MAX {
            tracing::error!(
                uri = %self.uri, violations = self.counters.violations,
                "the NBD server keeps breaking the protocol; its requests fail"
            );
            self.violations = 0;
            self.fail_all(cx, Errno(libc::EIO));
        }
    }

    fn head(&mut self, cx: &mut Cx, at: usize, head: &ReplyHead) -> Result<(), Broken> {
        let link = &mut self.links[at];
        let key = head.cookie() as u32;
        let part = self.parts.get_mut(key).filter(|part| {
            part.cookie == head.cookie() && part.link == Some(at) && !part.answered
        });
        let Some(part) = part else {
            return Err("it answered a request that Sterna did not send".into());
        };
        match *head {
            ReplyHead::Simple { error: Some(error), .. } => part.failed(error)?,
            ReplyHead::Error { error, .. } => part.failed(error)?,
            ReplyHead::Simple { error: None, .. } => match part.command {
                Command::Read { offset, len, .. } if !link.limits.structured => {
                    let at = part.piece(offset, len)?;
                    let want = part.wants(key, at, len, true)?;
                    link.inbox.expect(want);
                    return Ok(());
                }
                Command::Read { .. } | Command::BlockStatus { .. } => {
                    return Err("its reply does not fit the request".into());
                }
                _ => {}
            },
            ReplyHead::Data { offset, len, done, .. } => {
                let at = part.piece(offset, len)?;
                let want = part.wants(key, at, len, done)?;
                link.inbox.expect(want);
                return Ok(());
            }
            ReplyHead::Hole { offset, len, .. } => {
                let at = part.piece(offset, len)?;
                if let Some(buf) = &part.buf {
                    buf.part(at, len as usize).zero();
                }
            }
            ReplyHead::Status { context, payload, done, .. } => {
                if !matches!(part.command, Command::BlockStatus { .. }) {
                    return Err("it sent extents that were not asked for".into());
                }
                link.inbox.expect(Want::Extents {
                    part: key,
                    ours: link.allocation == Some(context),
                    bytes: Vec::new(),
                    len: payload as usize,
                    last: done,
                });
                return Ok(());
            }
            ReplyHead::Done { .. } => {}
        }
        if head.is_last() { self.complete(cx, key) } else { Ok(()) }
    }

    fn extents(
        &mut self,
        cx: &mut Cx,
        key: u32,
        ours: bool,
        bytes: &[u8],
        last: bool,
    ) -> Result<(), Broken> {
        let Some(part) = self.parts.get_mut(key) else { return Ok(()) };
        if ours && let Command::BlockStatus { len, .. } = part.command {
            if part.told {
                return Err("it sent the same extents twice".into());
            }
            part.told = true;
            // Where they make no sense, all counts as data; what is behind them is no less right.
            let extents = parse_extents(bytes, len).unwrap_or_else(|error| {
                tracing::debug!(uri = %self.uri, %error, "unusable extents");
                Vec::new()
            });
            if let Some(flight) = self.flights.get_mut(part.flight) {
                flight.take_extents(&extents);
            }
        }
        if last { self.complete(cx, key) } else { Ok(()) }
    }

    /// The last of a reply is in.
    fn complete(&mut self, cx: &mut Cx, key: u32) -> Result<(), Broken> {
        let Some(part) = self.parts.get_mut(key) else { return Ok(()) };
        if let Some(gap) = part.gap() {
            return Err(gap.into());
        }
        part.answered = true;
        let sending = part.sending;
        let mut is_lost = false;
        if let Some(at) = part.link {
            self.links[at].outstanding -= 1;
            self.links[at].attempts = 0;
            self.durability.answered(at, part.sent);
            match (part.error, part.flush) {
                (None, Some(flush)) => self.durability.flushed(flush),
                (None, None) if part.writes_to_cache() => {
                    is_lost = self.durability.wrote(at, part.sent);
                }
                (Some(error), _) if part.may_drop(error) => {
                    is_lost = self.durability.failed(part.sent);
                }
                _ => {}
            }
        }
        if is_lost {
            self.has_dropped(cx);
        }
        self.note(cx);
        self.violations = 0;
        if !sending {
            self.finish(cx, key);
            // It was the flush that took long: before anybody is answered.
            if self.line.as_ref().is_some_and(Line::is_doubtful) {
                self.note(cx);
            }
        }
        Ok(())
    }
}

impl NbdImage {
    /// The server has failed a flush, and may have dropped what it had answered.
    fn has_dropped(&mut self, cx: &mut Cx) {
        self.look_no_more(cx);
        self.witnesses.lost();
        // Not in the place of a loss that nobody has heard of yet.
        self.forgotten.get_or_insert(Loss::FlushFailed);
        if let Some(left_out) = self.failed_flushes.happens(cx.now) {
            tracing::warn!(
                uri = %self.uri,
                left_out,
                "the NBD server failed a flush, and may have dropped writes that it had \
                 answered"
            );
        }
        // Of an image that leaves, it is asked for as long as somebody is to be told.
        if !self.closing || self.line.is_some() {
            self.tell_news(cx);
        }
    }
}

impl super::Part {
    fn failed(&mut self, error: NbdError) -> Result<(), Broken> {
        if error == NbdError::Shutdown {
            return Err(Broken::Leaving);
        }
        self.error = self.error.or(Some(Errno(error.to_errno())));
        Ok(())
    }

    /// Where a piece of a read belongs in its buffer.
    fn piece(&mut self, offset: u64, len: u32) -> Result<usize, Broken> {
        let Command::Read { offset: start, len: all, .. } = self.command else {
            return Err("it sent data that was not asked for".into());
        };
        let pieces = self.pieces.get_or_insert_with(|| ReadPieces::new(start, all));
        pieces.add(offset, len).map_err(|error| Broken::Violation(error.to_string()))
    }

    /// Data for the buffer, `len` bytes from `at`.
    fn wants(
        &mut self,
        part: u32,
        at: usize,
        len: u32,
        last: bool,
    ) -> Result<Want, Broken> {
        let Some(buf) = &self.buf else {
            return Err("it sent data that was not asked for".into());
        };
        let rest = buf.part(at, len as usize);
        Ok(Want::Data { part, rest, last })
    }
}
