//! One request after the other to an NBD server, blocking: what datastores
//! need of one. Disks go through `image::nbd`.

use std::io::{self, Read, Write};
use std::time::Duration;

use sterna_nbd::client::{ReadPieces, ReplyLimits};
use sterna_nbd::status::parse_extents;
use sterna_nbd::{
    Command, Extent, Negotiated, ReplyHead, TransmissionFlags, Uri, client::Parsed,
};

use super::DatastoreError;
use crate::image::nbd::connect::{Stream, connect};

/// How long a server may take over one read or write of the socket. Spun-down
/// disks take ten seconds to wake.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// A connection with at most one request under way.
pub(super) struct Exchange {
    uri: Uri,
    stream: Stream,
    negotiated: Negotiated,
    limits: ReplyLimits,
    cookie: u64,
}

impl Exchange {
    pub(super) fn open(uri: &Uri) -> Result<Exchange, DatastoreError> {
        let connected = connect(uri).map_err(|error| remote(uri, error))?;
        connected
            .stream
            .set_timeouts(Some(ANSWER_WITHIN))
            .map_err(|error| remote(uri, error))?;
        Ok(Exchange {
            uri: uri.clone(),
            stream: connected.stream,
            limits: ReplyLimits::of(&connected.negotiated.session),
            negotiated: connected.negotiated,
            cookie: 0,
        })
    }

    pub(super) fn negotiated(&self) -> &Negotiated {
        &self.negotiated
    }

    fn offers(&self, flag: TransmissionFlags) -> bool {
        self.negotiated.session.flags.has(flag)
    }

    pub(super) fn read(
        &mut self,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<(), DatastoreError> {
        self.read_in(offset, buf, false)
    }

    /// The same in one piece, if the server lets us ask for that: then it reads, and does
    /// not only look where nothing is.
    pub(super) fn read_at_once(
        &mut self,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<(), DatastoreError> {
        self.read_in(offset, buf, self.offers(TransmissionFlags::SEND_DF))
    }

    fn read_in(
        &mut self,
        offset: u64,
        buf: &mut [u8],
        df: bool,
    ) -> Result<(), DatastoreError> {
        let len = u32::try_from(buf.len()).unwrap_or(u32::MAX);
        let mut pieces = ReadPieces::new(offset, len);
        self.send(Command::Read { offset, len, df }, &[])?;
        loop {
            let head = self.head()?;
            match head {
                ReplyHead::Simple { .. } if !self.limits.structured => {
                    return self.payload(buf);
                }
                ReplyHead::Data { offset, len, .. }
                | ReplyHead::Hole { offset, len, .. } => {
                    let at = pieces
                        .add(offset, len)
                        .map_err(|error| remote(&self.uri, error))?;
                    let piece = &mut buf[at..at + len as usize];
                    match head {
                        ReplyHead::Data { .. } => self.payload(piece)?,
                        _ => piece.fill(0),
                    }
                }
                ReplyHead::Done { .. } => {}
                _ => return Err(self.out_of_turn()),
            }
            if head.is_last() && !pieces.is_complete() {
                return Err(remote(&self.uri, "the server left out a part of a read"));
            }
            if head.is_last() {
                return Ok(());
            }
        }
    }

    pub(super) fn write(
        &mut self,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), DatastoreError> {
        let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.send(Command::Write { offset, len, fua: false }, bytes)?;
        self.plain_answer()
    }

    /// Makes what was written durable, as far as the server lets us.
    pub(super) fn flush(&mut self) -> Result<(), DatastoreError> {
        if !self.offers(TransmissionFlags::SEND_FLUSH) {
            return Ok(());
        }
        self.send(Command::Flush, &[])?;
        self.plain_answer()
    }

    /// The extents of a range (at least one byte of it); `None` if the server
    /// cannot tell.
    pub(super) fn status(
        &mut self,
        offset: u64,
        len: u32,
    ) -> Result<Option<Vec<Extent>>, DatastoreError> {
        let Some(allocation) = self.negotiated.session.allocation else {
            return Ok(None);
        };
        self.send(Command::BlockStatus { offset, len, req_one: false }, &[])?;
        let mut found = None;
        loop {
            let head = self.head()?;
            match head {
                ReplyHead::Status { context, payload, .. } => {
                    let mut bytes = vec![0; payload as usize];
                    self.payload(&mut bytes)?;
                    if context == allocation {
                        // Where they make no sense, nothing is known.
                        found = parse_extents(&bytes, len).ok();
                    }
                }
                ReplyHead::Done { .. } => {}
                _ => return Err(self.out_of_turn()),
            }
            if head.is_last() {
                return Ok(found);
            }
        }
    }

    /// The answer to a request that brings nothing back.
    fn plain_answer(&mut self) -> Result<(), DatastoreError> {
        match self.head()? {
            ReplyHead::Simple { .. } | ReplyHead::Done { .. } => Ok(()),
            _ => Err(self.out_of_turn()),
        }
    }

    fn send(&mut self, command: Command, payload: &[u8]) -> Result<(), DatastoreError> {
        self.cookie += 1;
        let head = command.request(self.cookie).encode();
        self.stream
            .write_all(&head)
            .and_then(|()| self.stream.write_all(payload))
            .map_err(|error| self.broken(&error))
    }

    /// The next head of a reply to the request under way; an error that it
    /// brings is an error.
    fn head(&mut self) -> Result<ReplyHead, DatastoreError> {
        let mut bytes = Vec::new();
        let head = loop {
            match ReplyHead::parse(&bytes, &self.limits)
                .map_err(|error| remote(&self.uri, error))?
            {
                Parsed::Need(len) => {
                    let have = bytes.len();
                    bytes.resize(len, 0);
                    self.payload(&mut bytes[have..])?;
                }
                Parsed::Head(head, _) => break head,
            }
        };
        if head.cookie() != self.cookie {
            return Err(self.out_of_turn());
        }
        match head {
            ReplyHead::Simple { error: Some(error), .. } => Err(remote(&self.uri, error)),
            ReplyHead::Error { error, ref message, .. } if message.is_empty() => {
                Err(remote(&self.uri, error))
            }
            ReplyHead::Error { error, message, .. } => {
                Err(remote(&self.uri, format!("{error} ({message})")))
            }
            head => Ok(head),
        }
    }

    fn payload(&mut self, buf: &mut [u8]) -> Result<(), DatastoreError> {
        self.stream.read_exact(buf).map_err(|error| self.broken(&error))
    }

    fn broken(&self, error: &io::Error) -> DatastoreError {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                let seconds = ANSWER_WITHIN.as_secs();
                remote(&self.uri, format!("the server has not answered for {seconds} s"))
            }
            _ => remote(&self.uri, format!("the connection broke: {error}")),
        }
    }

    fn out_of_turn(&self) -> DatastoreError {
        remote(&self.uri, "the server's reply does not fit the request")
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        // A courtesy: the server would notice anyway.
        let head = Command::Disconnect.request(0).encode();
        let _ = self.stream.write_all(&head);
    }
}

/// An error of the server at `uri`.
pub(super) fn remote(uri: &Uri, reason: impl std::fmt::Display) -> DatastoreError {
    DatastoreError::Remote { uri: uri.to_string(), reason: reason.to_string() }
}
