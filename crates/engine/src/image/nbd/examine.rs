//! Reading what an export is known by, over a connection that carries nothing yet; blocking.
//!
//! All is asked for in one message, so that it takes little longer than one read. Who asks
//! decides what follows from the answers ([`sterna_core::durability::Witnesses`]).

use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use sterna_core::ByteRange;
use sterna_core::durability::{Content, Question};
use sterna_nbd::client::{Parsed, ReadPieces, ReplyLimits};
use sterna_nbd::{Command, ReplyHead, Uri};

use super::connect::{ConnectError, Connected, Stream};
use crate::image::{Vouched, Voucher};
use crate::sidecar::trailer::TRAILER_LEN;

/// How long all of it may take. A disk that was spun down takes about ten seconds to wake,
/// and the next attempt finds it awake.
pub(super) const EXAMINATION: Duration = Duration::from_secs(10);
/// How soon it is seen that nobody wants to know any more.
const GLANCE: Duration = Duration::from_millis(250);

/// What is to be read over a new connection.
pub(super) struct Examination {
    /// Where the sidecar is, or that of another disk would be.
    pub(super) sidecar: Option<u64>,
    pub(super) questions: Vec<Question>,
}

/// A connection, and what was read over it.
pub(super) struct Examined {
    pub(super) connected: Connected,
    /// The sidecar's bytes, if there is to be one and it can be read.
    pub(super) sidecar: Option<Vec<u8>>,
    /// The witnesses that can be read.
    pub(super) answers: Vec<(Question, Content)>,
    /// What somebody who was asked says: why it is another disk's place, if it is.
    pub(super) vouched: Option<Result<(), String>>,
}

/// Reads it. Ends early when `over` becomes true.
pub(super) fn examine(
    mut connected: Connected,
    examination: &Examination,
    over: &AtomicBool,
) -> Result<Examined, ConnectError> {
    let sidecar = examination.sidecar.map(trailer);
    let witnesses = examination.questions.iter().map(|question| question.range);
    let ranges: Vec<ByteRange> = sidecar.into_iter().chain(witnesses).collect();
    let mut read = read(&mut connected, &ranges, over)?.into_iter();
    let sidecar = sidecar.and_then(|_| read.next()).flatten();
    let questions = examination.questions.iter().copied();
    let answers = questions
        .zip(read)
        .filter_map(|(question, bytes)| Some((question, Content::of(&bytes?))))
        .collect();
    Ok(Examined { connected, sidecar, answers, vouched: None })
}

impl Examined {
    /// The same with what the voucher says, if there is one to be asked.
    pub(super) fn vouched_for(
        mut self,
        voucher: Option<&Voucher>,
        uri: &Uri,
    ) -> Result<Examined, ConnectError> {
        self.vouched = match voucher.map(|voucher| voucher.ask(uri)) {
            None => None,
            Some(Vouched::Fine) => Some(Ok(())),
            Some(Vouched::Another(reason)) => Some(Err(reason)),
            Some(Vouched::Unclear(reason)) => return Err(ConnectError::Unclear(reason)),
        };
        Ok(self)
    }
}

/// The range of a sidecar.
pub(super) fn trailer(at: u64) -> ByteRange {
    ByteRange::new(at, TRAILER_LEN as u64)
}

/// Reads a few short ranges; nothing of those that the server cannot read.
pub(super) fn read(
    connected: &mut Connected,
    ranges: &[ByteRange],
    over: &AtomicBool,
) -> Result<Vec<Option<Vec<u8>>>, ConnectError> {
    if ranges.is_empty() {
        return Ok(Vec::new());
    }
    let limits = ReplyLimits::of(&connected.negotiated.session);
    let deadline = Instant::now() + EXAMINATION;
    connected.stream.set_timeouts(Some(GLANCE)).map_err(ConnectError::Lost)?;
    let mut message = Vec::new();
    for (number, range) in ranges.iter().enumerate() {
        let (offset, len) = (range.offset, range.len as u32);
        let request = Command::Read { offset, len, df: false }.request(number as u64);
        message.extend_from_slice(&request.encode());
    }
    connected.stream.write_all(&message).map_err(ConnectError::Lost)?;
    let mut all: Vec<Reading> = ranges.iter().map(|range| Reading::new(*range)).collect();
    let mut input = Input { stream: &mut connected.stream, deadline, over };
    while all.iter().any(|reading| !reading.done) {
        let head = input.head(&limits)?;
        let reading = usize::try_from(head.cookie()).ok().and_then(|at| all.get_mut(at));
        let Some(reading) = reading.filter(|reading| !reading.done) else {
            return Err(ConnectError::OutOfTurn);
        };
        reading.take(&head, limits.structured, &mut input)?;
    }
    connected.stream.set_timeouts(None).map_err(ConnectError::Lost)?;
    Ok(all.into_iter().map(|it| Some(it.bytes).filter(|_| !it.failed)).collect())
}

/// A read under way.
struct Reading {
    bytes: Vec<u8>,
    pieces: ReadPieces,
    failed: bool,
    done: bool,
}

impl Reading {
    fn new(range: ByteRange) -> Reading {
        let len = range.len as u32;
        Reading {
            bytes: vec![0; len as usize],
            pieces: ReadPieces::new(range.offset, len),
            failed: false,
            done: false,
        }
    }

    /// Takes what the server says of it.
    fn take(
        &mut self,
        head: &ReplyHead,
        structured: bool,
        input: &mut Input<'_>,
    ) -> Result<(), ConnectError> {
        self.done = head.is_last();
        match *head {
            ReplyHead::Simple { error: Some(_), .. } | ReplyHead::Error { .. } => {
                self.failed = true;
            }
            ReplyHead::Simple { .. } if !structured => {
                return input.fill(&mut self.bytes);
            }
            ReplyHead::Data { offset, len, .. } | ReplyHead::Hole { offset, len, .. } => {
                let added = self.pieces.add(offset, len);
                let at = added.map_err(|_| ConnectError::OutOfTurn)?;
                let piece = &mut self.bytes[at..at + len as usize];
                match head {
                    ReplyHead::Data { .. } => input.fill(piece)?,
                    _ => piece.fill(0),
                }
            }
            ReplyHead::Done { .. } => {}
            _ => return Err(ConnectError::OutOfTurn),
        }
        match self.done && !self.failed && !self.pieces.is_complete() {
            true => Err(ConnectError::OutOfTurn),
            false => Ok(()),
        }
    }
}

/// What comes from the server, no more of it than is asked for.
struct Input<'a> {
    stream: &'a mut Stream,
    deadline: Instant,
    over: &'a AtomicBool,
}

impl Input<'_> {
    fn head(&mut self, limits: &ReplyLimits) -> Result<ReplyHead, ConnectError> {
        let mut bytes = Vec::new();
        loop {
            let parsed = ReplyHead::parse(&bytes, limits);
            match parsed.map_err(|_| ConnectError::OutOfTurn)? {
                Parsed::Need(len) => {
                    let have = bytes.len();
                    bytes.resize(len, 0);
                    self.fill(&mut bytes[have..])?;
                }
                Parsed::Head(head, _) => return Ok(head),
            }
        }
    }

    fn fill(&mut self, mut to: &mut [u8]) -> Result<(), ConnectError> {
        while !to.is_empty() {
            if self.over.load(Ordering::Relaxed) || Instant::now() >= self.deadline {
                return Err(ConnectError::Unexamined);
            }
            match self.stream.read(to) {
                Ok(0) => {
                    return Err(ConnectError::Lost(io::ErrorKind::UnexpectedEof.into()));
                }
                Ok(count) => to = &mut to[count..],
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock
                    | io::ErrorKind::TimedOut
                    | io::ErrorKind::Interrupted => {}
                    _ => return Err(ConnectError::Lost(error)),
                },
            }
        }
        Ok(())
    }
}
