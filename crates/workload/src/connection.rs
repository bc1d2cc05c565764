//! One NBD connection over a socket of the operating system.
//!
//! The handshake is done with blocking calls and a time limit; after it the
//! socket never blocks. Bytes that can't be sent yet wait in `output`, so a
//! server that stops reading until its answers are taken is no deadlock.
//!
//! The checker compares what it reads. Who only wants to know how long a read
//! takes says so at the start, and its bytes are checked for being all there
//! and then dropped where they came in.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sterna_nbd::client::{
    ClientConfig, ClientHandshake, ClientStep, Parsed, ReadPieces, ReplyHead, ReplyLimits,
};
use sterna_nbd::{Command, NbdError, Session, TransmissionFlags, Transport, Uri};

/// How long a server may take for one step of the handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// How much room there is for what comes from the socket at once; it grows if one
/// piece of an answer is larger.
const GULP: usize = 1 << 20;

/// What becomes of the data of reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reads {
    /// It is in the answer.
    Kept,
    /// It is counted and dropped; the answer has none.
    Dropped,
}

enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Socket {
    fn stream(&mut self) -> &mut dyn Stream {
        match self {
            Socket::Unix(stream) => stream,
            Socket::Tcp(stream) => stream,
        }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Socket::Unix(stream) => stream.as_fd(),
            Socket::Tcp(stream) => stream.as_fd(),
        }
    }

    fn timeouts(&self, limit: Option<Duration>) -> io::Result<()> {
        match self {
            Socket::Unix(stream) => {
                stream.set_read_timeout(limit)?;
                stream.set_write_timeout(limit)
            }
            Socket::Tcp(stream) => {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(limit)?;
                stream.set_write_timeout(limit)
            }
        }
    }

    fn stop_blocking(&self) -> io::Result<()> {
        match self {
            Socket::Unix(stream) => stream.set_nonblocking(true),
            Socket::Tcp(stream) => stream.set_nonblocking(true),
        }
    }
}

trait Stream: Read + Write {}
impl<S: Read + Write> Stream for S {}

/// The answer to a request.
pub(crate) struct Answer {
    pub(crate) cookie: u64,
    /// The data of a read, if it is kept (empty for everything else).
    pub(crate) result: Result<Vec<u8>, NbdError>,
}

/// A request that was sent.
struct Sent {
    read: Option<Reading>,
    error: Option<NbdError>,
}

/// A read that is being answered.
struct Reading {
    len: usize,
    /// Its data so far; empty if reads are dropped.
    data: Vec<u8>,
    /// What of it has come.
    pieces: ReadPieces,
}

/// A connection in its transmission phase.
pub(crate) struct Connection {
    socket: Socket,
    session: Session,
    limits: ReplyLimits,
    reads: Reads,
    output: Vec<u8>,
    sent_of_output: usize,
    /// What has come is in its first `filled` bytes.
    input: Vec<u8>,
    filled: usize,
    requests: HashMap<u64, Sent>,
}

/// Makes a call again that a signal has cut off: whoever sent it is heard elsewhere.
fn uninterrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// Connects and shakes hands.
pub(crate) fn connect(uri: &Uri, reads: Reads) -> anyhow::Result<Connection> {
    let mut socket = match &uri.transport {
        Transport::Unix { socket } => Socket::Unix(
            uninterrupted(|| UnixStream::connect(socket))
                .with_context(|| format!("connect to {}", socket.display()))?,
        ),
        Transport::Tcp { host, port } => Socket::Tcp(
            TcpStream::connect((host.as_str(), *port))
                .with_context(|| format!("connect to {host}:{port}"))?,
        ),
    };
    socket.timeouts(Some(HANDSHAKE))?;
    let mut handshake = ClientHandshake::new(ClientConfig::new(uri.export.clone()));
    let ready = loop {
        match handshake.step() {
            ClientStep::Send(bytes) => socket.stream().write_all(&bytes)?,
            ClientStep::Ready(ready) => break ready,
            ClientStep::Failed(error) => return Err(anyhow!("{error}")),
            ClientStep::Receive => {
                let mut bytes = vec![0; handshake.room().min(4096)];
                let count = uninterrupted(|| socket.stream().read(&mut bytes))?;
                if count == 0 {
                    return Err(anyhow!("{}", handshake.end_of_input()));
                }
                let taken = handshake.push(&bytes[..count]);
                debug_assert_eq!(taken, count, "no more was read than there is room");
            }
        }
    };
    socket.stop_blocking()?;
    let session = ready.negotiated.session;
    let mut input = ready.leftover;
    let filled = input.len();
    input.resize(filled.max(GULP), 0);
    Ok(Connection {
        socket,
        session,
        limits: ReplyLimits::of(&session),
        reads,
        output: Vec::new(),
        sent_of_output: 0,
        input,
        filled,
        requests: HashMap::new(),
    })
}

impl Connection {
    /// The disk's size.
    pub(crate) fn size(&self) -> u64 {
        self.session.size
    }

    /// How many requests have no answer yet.
    pub(crate) fn outstanding(&self) -> usize {
        self.requests.len()
    }

    /// What the server can do.
    pub(crate) fn flags(&self) -> TransmissionFlags {
        self.session.flags
    }

    /// The smallest request that the server takes, in bytes.
    pub(crate) fn block(&self) -> u32 {
        self.session.block_sizes.minimum()
    }

    /// The longest read or write that the server takes, in bytes.
    pub(crate) fn longest(&self) -> u32 {
        self.session.block_sizes.maximum()
    }

    /// Puts a request into the queue for the socket; `payload` fills in the
    /// data of a write.
    pub(crate) fn send(
        &mut self,
        cookie: u64,
        command: Command,
        payload: impl FnOnce(&mut [u8]),
    ) {
        self.output.extend_from_slice(&command.request(cookie).encode());
        let mut read = None;
        match command {
            Command::Write { len, .. } => {
                let at = self.output.len();
                self.output.resize(at + len as usize, 0);
                payload(&mut self.output[at..]);
            }
            Command::Read { offset, len, .. } => {
                let len_kept = if self.reads == Reads::Kept { len as usize } else { 0 };
                let pieces = ReadPieces::new(offset, len);
                read =
                    Some(Reading { len: len as usize, data: vec![0; len_kept], pieces });
            }
            _ => {}
        }
        self.requests.insert(cookie, Sent { read, error: None });
    }

    fn wants_to_send(&self) -> bool {
        self.sent_of_output < self.output.len()
    }

    /// Sends as much as the socket takes.
    fn pump_out(&mut self) -> anyhow::Result<()> {
        while self.wants_to_send() {
            let rest = &self.output[self.sent_of_output..];
            match self.socket.stream().write(rest) {
                Ok(count) => self.sent_of_output += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        if !self.wants_to_send() {
            self.output.clear();
            self.sent_of_output = 0;
        }
        Ok(())
    }

    /// Takes what has come, and gives the answers that are complete.
    fn pump_in(&mut self, answers: &mut dyn FnMut(Answer)) -> anyhow::Result<()> {
        match self.socket.stream().read(&mut self.input[self.filled..]) {
            Ok(0) => bail!("the server closed the connection"),
            Ok(count) => {
                self.filled += count;
                self.parse(answers)
            }
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(()),
                _ => Err(error.into()),
            },
        }
    }

    fn parse(&mut self, answers: &mut dyn FnMut(Answer)) -> anyhow::Result<()> {
        let mut at = 0;
        let mut need = 0;
        loop {
            let come = &self.input[at..self.filled];
            let (head, taken) = match ReplyHead::parse(come, &self.limits) {
                Ok(Parsed::Head(head, taken)) => (head, taken),
                Ok(Parsed::Need(_)) => break,
                Err(error) => bail!("{error}"),
            };
            let cookie = head.cookie();
            let Some(sent) = self.requests.get_mut(&cookie) else {
                bail!("an answer to request {cookie}, which was not made");
            };
            let whole = taken + payload_len(&head, sent);
            let Some(data) = come.get(taken..whole) else {
                need = whole;
                break;
            };
            sent.take(&head, data)?;
            at += whole;
            if head.is_last() {
                let sent = self.requests.remove(&cookie).expect("it was just there");
                answers(Answer { cookie, result: sent.result()? });
            }
        }
        self.input.copy_within(at..self.filled, 0);
        self.filled -= at;
        // There is always room for the rest of a piece, and for something more.
        if need + GULP > self.input.len() {
            self.input.resize(need + GULP, 0);
        }
        Ok(())
    }
}

/// How many bytes follow this head.
fn payload_len(head: &ReplyHead, sent: &Sent) -> usize {
    match (head, &sent.read) {
        (ReplyHead::Simple { error: None, .. }, Some(read)) => read.len,
        (ReplyHead::Data { len, .. }, _) => *len as usize,
        (ReplyHead::Status { payload, .. }, _) => *payload as usize,
        _ => 0,
    }
}

impl Sent {
    fn take(&mut self, head: &ReplyHead, bytes: &[u8]) -> anyhow::Result<()> {
        let (offset, len) = match *head {
            ReplyHead::Simple { error: Some(error), .. }
            | ReplyHead::Error { error, .. } => {
                self.error = Some(error);
                return Ok(());
            }
            ReplyHead::Data { offset, len, .. } | ReplyHead::Hole { offset, len, .. } => {
                (offset, len)
            }
            ReplyHead::Simple { .. } => {
                if let Some(read) = &mut self.read {
                    read.put(0, bytes);
                    // A simple reply is whole by itself.
                    read.pieces = ReadPieces::new(0, 0);
                }
                return Ok(());
            }
            _ => return Ok(()),
        };
        let Some(read) = &mut self.read else {
            bail!("data for a request that reads nothing");
        };
        let at = read.pieces.add(offset, len).map_err(|error| anyhow!("{error}"))?;
        read.put(at, bytes);
        Ok(())
    }

    fn result(self) -> anyhow::Result<Result<Vec<u8>, NbdError>> {
        if let Some(error) = self.error {
            return Ok(Err(error));
        }
        match self.read {
            None => Ok(Ok(Vec::new())),
            Some(read) if read.pieces.is_complete() => Ok(Ok(read.data)),
            Some(_) => bail!("a read was answered in part"),
        }
    }
}

impl Reading {
    /// Keeps a piece, if reads are kept. (A hole has no bytes: what is kept was
    /// zero before.)
    fn put(&mut self, at: usize, bytes: &[u8]) {
        if let Some(place) = self.data.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }
}

/// Moves bytes both ways on all connections, after waiting at most `pause`
/// for the first that can be moved. Gives the connections that broke.
pub(crate) fn pump(
    connections: &mut [(usize, &mut Connection)],
    pause: Duration,
    answers: &mut Vec<(usize, Answer)>,
) -> Vec<(usize, anyhow::Error)> {
    let mut broken = Vec::new();
    for (index, connection) in connections.iter_mut() {
        if let Err(error) = connection.pump_out() {
            broken.push((*index, error));
        }
    }
    let mut fds: Vec<PollFd<'_>> = connections
        .iter()
        .map(|(_, connection)| {
            let mut flags = PollFlags::IN;
            flags.set(PollFlags::OUT, connection.wants_to_send());
            PollFd::from_borrowed_fd(connection.socket.fd(), flags)
        })
        .collect();
    let pause = if broken.is_empty() { pause } else { Duration::ZERO };
    let limit = Timespec::try_from(pause).unwrap_or_default();
    // An interrupted wait is a short one.
    let _ = poll(&mut fds, Some(&limit));
    let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
    for ((index, connection), ready) in connections.iter_mut().zip(ready) {
        if !ready || broken.iter().any(|(other, _)| other == index) {
            continue;
        }
        let mut take = |answer| answers.push((*index, answer));
        let result = connection.pump_out().and_then(|()| connection.pump_in(&mut take));
        if let Err(error) = result {
            broken.push((*index, error));
        }
    }
    broken
}
