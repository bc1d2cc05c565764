//! One NBD connection over a socket of the operating system.
//!
//! The handshake is done with blocking calls and a time limit; after it the
//! socket never blocks. Bytes that can't be sent yet wait in `output`, so a
//! server that stops reading until its answers are taken is no deadlock.

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

use super::mix::Mix;

/// How long a server may take for one step of the handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// How much is read from the socket at once.
const GULP: usize = 1 << 20;

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
    /// The data of a read (empty for everything else).
    pub(crate) result: Result<Vec<u8>, NbdError>,
}

/// A request that was sent.
struct Sent {
    /// For a read: its first byte, its data so far, and what of it has come.
    read: Option<(Vec<u8>, ReadPieces)>,
    error: Option<NbdError>,
}

/// A connection in its transmission phase.
pub(crate) struct Connection {
    socket: Socket,
    session: Session,
    limits: ReplyLimits,
    output: Vec<u8>,
    sent_of_output: usize,
    input: Vec<u8>,
    requests: HashMap<u64, Sent>,
}

/// Connects and shakes hands.
pub(crate) fn connect(uri: &Uri) -> anyhow::Result<Connection> {
    let mut socket = match &uri.transport {
        Transport::Unix { socket } => Socket::Unix(
            UnixStream::connect(socket)
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
                let count = socket.stream().read(&mut bytes)?;
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
    Ok(Connection {
        socket,
        session,
        limits: ReplyLimits::of(&session),
        output: Vec::new(),
        sent_of_output: 0,
        input: ready.leftover,
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

    /// The mix without what this server can't do.
    pub(crate) fn fit(&self, mix: Mix) -> Mix {
        let only = |flag, share| if self.session.flags.has(flag) { share } else { 0 };
        Mix {
            trims: only(TransmissionFlags::SEND_TRIM, mix.trims),
            zeroes: only(TransmissionFlags::SEND_WRITE_ZEROES, mix.zeroes),
            flushes: only(TransmissionFlags::SEND_FLUSH, mix.flushes),
            fua: only(TransmissionFlags::SEND_FUA, mix.fua),
            ..mix
        }
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
                read = Some((vec![0; len as usize], ReadPieces::new(offset, len)));
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
        let have = self.input.len();
        self.input.resize(have + GULP, 0);
        let got = self.socket.stream().read(&mut self.input[have..]);
        let count = match &got {
            Ok(count) => *count,
            Err(_) => 0,
        };
        self.input.truncate(have + count);
        match got {
            Ok(0) => bail!("the server closed the connection"),
            Ok(_) => self.parse(answers),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(()),
                _ => Err(error.into()),
            },
        }
    }

    fn parse(&mut self, answers: &mut dyn FnMut(Answer)) -> anyhow::Result<()> {
        let mut at = 0;
        loop {
            let (head, taken) = match ReplyHead::parse(&self.input[at..], &self.limits) {
                Ok(Parsed::Head(head, taken)) => (head, taken),
                Ok(Parsed::Need(_)) => break,
                Err(error) => bail!("{error}"),
            };
            let cookie = head.cookie();
            let Some(sent) = self.requests.get_mut(&cookie) else {
                bail!("an answer to request {cookie}, which was not made");
            };
            let payload = payload_len(&head, sent);
            let begin = at + taken;
            let Some(data) = self.input.get(begin..begin + payload) else { break };
            sent.take(&head, data)?;
            at = begin + payload;
            if head.is_last() {
                let sent = self.requests.remove(&cookie).expect("it was just there");
                answers(Answer { cookie, result: sent.result()? });
            }
        }
        self.input.drain(..at);
        Ok(())
    }
}

/// How many bytes follow this head.
fn payload_len(head: &ReplyHead, sent: &Sent) -> usize {
    match (head, &sent.read) {
        (ReplyHead::Simple { error: None, .. }, Some((data, _))) => data.len(),
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
                if let Some((data, _)) = &mut self.read {
                    data.copy_from_slice(bytes);
                }
                // A simple reply is whole by itself.
                self.read =
                    self.read.take().map(|(data, _)| (data, ReadPieces::new(0, 0)));
                return Ok(());
            }
            _ => return Ok(()),
        };
        let Some((data, pieces)) = &mut self.read else {
            bail!("data for a request that reads nothing");
        };
        let at = pieces.add(offset, len).map_err(|error| anyhow!("{error}"))?;
        if let ReplyHead::Data { .. } = head {
            data[at..at + bytes.len()].copy_from_slice(bytes);
        }
        Ok(())
    }

    fn result(self) -> anyhow::Result<Result<Vec<u8>, NbdError>> {
        if let Some(error) = self.error {
            return Ok(Err(error));
        }
        match self.read {
            None => Ok(Ok(Vec::new())),
            Some((data, pieces)) if pieces.is_complete() => Ok(Ok(data)),
            Some(_) => bail!("a read was answered in part"),
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
