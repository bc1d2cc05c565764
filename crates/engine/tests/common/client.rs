//! A small blocking NBD client that can also misbehave.

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use sterna_nbd::client::{Parsed, ReplyLimits};
use sterna_nbd::status::{self, Extent};
use sterna_nbd::{
    BlockSizes, ClientHandshake, ClientStep, Command, NbdError, ReplyHead, Session,
    TransmissionFlags, client::ClientConfig, wire,
};

pub(crate) struct Client {
    pub stream: UnixStream,
    pub session: Session,
    input: Vec<u8>,
    cookie: u64,
    sent: HashMap<u64, Command>,
}

/// What came back for a command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub cookie: u64,
    pub result: Result<(), NbdError>,
    pub data: Vec<u8>,
    pub extents: Vec<Extent>,
}

impl Client {
    pub(crate) fn connect(socket: &Path, structured: bool) -> Client {
        Client::connect_to(socket, "disk", structured)
    }

    pub(crate) fn connect_to(socket: &Path, export: &str, structured: bool) -> Client {
        let stream = UnixStream::connect(socket).unwrap();
        set_patience(&stream);
        let config = ClientConfig {
            structured,
            allocation: structured,
            ..ClientConfig::new(export)
        };
        let (session, input) = shake_hands(&stream, config);
        Client { stream, session, input, cookie: 0, sent: HashMap::new() }
    }

    /// Connects in the oldest manner, which leaves no room for block sizes.
    pub(crate) fn connect_without_sizes(socket: &Path, structured: bool) -> Client {
        let mut stream = UnixStream::connect(socket).unwrap();
        set_patience(&stream);
        take_exactly(&mut stream, wire::GREETING_LEN);
        let flags = wire::FLAG_C_FIXED_NEWSTYLE | wire::FLAG_C_NO_ZEROES;
        stream.write_all(&flags.to_be_bytes()).unwrap();
        let mut allocation = None;
        if structured {
            choose(&mut stream, wire::OPT_STRUCTURED_REPLY, &[]);
            let context = wire::BASE_ALLOCATION.as_bytes();
            let len = (context.len() as u32).to_be_bytes();
            let wants = [&4u32.to_be_bytes()[..], b"disk", &1u32.to_be_bytes(), &len];
            let wants = [&wants.concat()[..], context].concat();
            let answer = choose(&mut stream, wire::OPT_SET_META_CONTEXT, &wants);
            allocation = Some(u32::from_be_bytes(*answer[20..].first_chunk().unwrap()));
        }
        stream.write_all(&option(wire::OPT_EXPORT_NAME, b"disk")).unwrap();
        let export = take_exactly(&mut stream, 10);
        let session = Session {
            size: u64::from_be_bytes(*export.first_chunk().unwrap()),
            flags: TransmissionFlags::from_bits(u16::from_be_bytes(
                *export.last_chunk().unwrap(),
            )),
            block_sizes: BlockSizes::DEFAULT,
            structured,
            allocation,
        };
        Client { stream, session, input: Vec::new(), cookie: 0, sent: HashMap::new() }
    }

    /// The bytes of a command, without its payload; its cookie is remembered.
    pub(crate) fn encode(&mut self, command: Command) -> Vec<u8> {
        self.cookie += 1;
        self.sent.insert(self.cookie, command);
        command.request(self.cookie).encode().to_vec()
    }

    pub(crate) fn send(&mut self, command: Command, payload: &[u8]) -> u64 {
        let mut bytes = self.encode(command);
        bytes.extend_from_slice(payload);
        self.stream.write_all(&bytes).unwrap();
        self.cookie
    }

    /// One command and its reply.
    pub(crate) fn call(&mut self, command: Command, payload: &[u8]) -> Reply {
        let cookie = self.send(command, payload);
        let reply = self.receive();
        assert_eq!(reply.cookie, cookie);
        reply
    }

    pub(crate) fn read(&mut self, offset: u64, len: u32) -> Vec<u8> {
        let reply = self.call(Command::Read { offset, len, df: false }, &[]);
        assert_eq!(reply.result, Ok(()));
        reply.data
    }

    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) {
        let command = Command::Write { offset, len: bytes.len() as u32, fua: false };
        assert_eq!(self.call(command, bytes).result, Ok(()));
    }

    /// The next whole reply, from however many chunks. Other commands' replies
    /// may not come between the chunks of one, which this server never does
    /// unless a read is longer than a piece; see `receive_all`.
    pub(crate) fn receive(&mut self) -> Reply {
        let mut replies = self.receive_all(1);
        let (_, reply) = replies.drain().next().unwrap();
        reply
    }

    /// So many whole replies, in any order, chunks mixed.
    pub(crate) fn receive_all(&mut self, count: usize) -> HashMap<u64, Reply> {
        let mut partial: HashMap<u64, Reply> = HashMap::new();
        let mut done = HashMap::new();
        while done.len() < count {
            let (cookie, last) = self.chunk(&mut partial);
            if last {
                self.sent.remove(&cookie);
                done.insert(cookie, partial.remove(&cookie).unwrap());
            }
        }
        assert!(partial.is_empty(), "replies that were begun: {}", partial.len());
        done
    }

    fn chunk(&mut self, partial: &mut HashMap<u64, Reply>) -> (u64, bool) {
        let head = self.head();
        let cookie = match &head {
            ReplyHead::Simple { cookie, .. }
            | ReplyHead::Data { cookie, .. }
            | ReplyHead::Hole { cookie, .. }
            | ReplyHead::Status { cookie, .. }
            | ReplyHead::Done { cookie }
            | ReplyHead::Error { cookie, .. } => *cookie,
        };
        let command =
            *self.sent.get(&cookie).expect("a reply to something that was sent");
        let reply = partial.entry(cookie).or_insert_with(|| Reply {
            cookie,
            result: Ok(()),
            data: Vec::new(),
            extents: Vec::new(),
        });
        let start = command.range().map_or(0, |(offset, _)| offset);
        match head {
            ReplyHead::Simple { error, .. } => {
                reply.result = error.map_or(Ok(()), Err);
                if let (Command::Read { len, .. }, None) = (command, error) {
                    assert!(!self.session.structured);
                    reply.data = self.take(len as usize);
                }
                (cookie, true)
            }
            ReplyHead::Data { offset, len, done, .. } => {
                assert_eq!(offset, start + reply.data.len() as u64, "chunks in order");
                let data = take(&mut self.input, &mut self.stream, len as usize);
                reply.data.extend(data);
                (cookie, done)
            }
            ReplyHead::Hole { len, done, .. } => {
                let end = reply.data.len() + len as usize;
                reply.data.resize(end, 0);
                (cookie, done)
            }
            ReplyHead::Status { payload, done, .. } => {
                let bytes = self.take(payload as usize);
                let reply = partial.get_mut(&cookie).unwrap();
                let (_, len) = command.range().unwrap();
                reply.extents = status::parse_extents(&bytes, len).unwrap();
                (cookie, done)
            }
            ReplyHead::Done { .. } => (cookie, true),
            ReplyHead::Error { error, done, .. } => {
                reply.result = Err(error);
                (cookie, done)
            }
        }
    }

    fn head(&mut self) -> ReplyHead {
        let limits = ReplyLimits::of(&self.session);
        loop {
            match ReplyHead::parse(&self.input, &limits).unwrap() {
                Parsed::Head(head, len) => {
                    self.input.drain(..len);
                    return head;
                }
                Parsed::Need(need) => fill(&mut self.input, &mut self.stream, need),
            }
        }
    }

    fn take(&mut self, len: usize) -> Vec<u8> {
        take(&mut self.input, &mut self.stream, len)
    }

    /// Whether the server closes the connection, after whatever it still says.
    pub(crate) fn is_hung_up(&mut self) -> bool {
        hung_up(&mut self.stream)
    }
}

/// A server that neither answers nor listens for so long has stopped.
fn set_patience(stream: &UnixStream) {
    let patience = Some(Duration::from_secs(20));
    stream.set_read_timeout(patience).unwrap();
    stream.set_write_timeout(patience).unwrap();
}

fn option(option: u32, data: &[u8]) -> Vec<u8> {
    let len = (data.len() as u32).to_be_bytes();
    let head = wire::OPTION_MAGIC.to_be_bytes();
    [&head[..], &option.to_be_bytes(), &len, data].concat()
}

/// Chooses an option: the answers, up to the good end.
fn choose(stream: &mut UnixStream, number: u32, data: &[u8]) -> Vec<u8> {
    stream.write_all(&option(number, data)).unwrap();
    let mut all = Vec::new();
    loop {
        let head = take_exactly(stream, wire::OPTION_REPLY_HEAD_LEN);
        let word = |at: usize| u32::from_be_bytes(*head[at..].first_chunk().unwrap());
        let (kind, len) = (word(12), word(16));
        assert!(kind < wire::REP_ERR_UNSUP, "option {number} was refused");
        all.extend(&head);
        all.extend(take_exactly(stream, len as usize));
        if kind == wire::REP_ACK {
            return all;
        }
    }
}

/// Reads until the end; false if it does not come.
pub(crate) fn hung_up(stream: &mut UnixStream) -> bool {
    let mut buffer = [0; 65536];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() == ErrorKind::ConnectionReset,
        }
    }
}

fn take_exactly(stream: &mut UnixStream, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    stream.read_exact(&mut bytes).expect("the server answers");
    bytes
}

fn take(input: &mut Vec<u8>, stream: &mut UnixStream, len: usize) -> Vec<u8> {
    fill(input, stream, len);
    input.drain(..len).collect()
}

fn fill(input: &mut Vec<u8>, stream: &mut UnixStream, len: usize) {
    let mut buffer = vec![0; 1 << 18];
    while input.len() < len {
        let got = stream.read(&mut buffer).expect("the server answers");
        assert!(got > 0, "the server has closed the connection");
        input.extend_from_slice(&buffer[..got]);
    }
}

fn shake_hands(mut stream: &UnixStream, config: ClientConfig) -> (Session, Vec<u8>) {
    let mut handshake = ClientHandshake::new(config);
    let mut buffer = [0; 4096];
    loop {
        match handshake.step() {
            ClientStep::Send(bytes) => stream.write_all(&bytes).unwrap(),
            ClientStep::Receive => {
                let room = handshake.room().min(buffer.len());
                let got = stream.read(&mut buffer[..room]).unwrap();
                assert!(got > 0, "the server has closed the connection");
                assert_eq!(handshake.push(&buffer[..got]), got);
            }
            ClientStep::Ready(ready) => {
                return (ready.negotiated.session, ready.leftover);
            }
            ClientStep::Failed(error) => panic!("the handshake failed: {error}"),
        }
    }
}
