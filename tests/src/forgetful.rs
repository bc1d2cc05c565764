//! A storage server with a write cache, which forgets when its power is cut, and may have
//! bad sectors.
//!
//! It speaks NBD, keeps two images in memory (what is durable, and what it answers), and is
//! told by the test what goes wrong. It allows several connections and says that all see
//! one cache; or it says nothing of that, and *drops* with a connection what was written on
//! it and not flushed. A connection of a *run* that has ended is dead: it takes requests and
//! answers none, until it breaks.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::ops::Range;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

use sterna_nbd::wire::REQUEST_LEN;
use sterna_nbd::{
    Command, Export, NbdError, Request, ServerHandshake, ServerStep, Session,
    TransmissionFlags,
};

use crate::scratch::Scratch;
use crate::wait::{seconds, until};

/// Connections are made one after the other: as many as a client of ours has.
const CONNECTIONS: usize = 4;

/// The server. Its connections end with it.
pub struct Forgetful {
    socket: PathBuf,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared(Mutex<State>);

#[derive(Default)]
struct State {
    run: u64,
    durable: Vec<u8>,
    cache: Vec<u8>,
    /// Written since the last flush, with the connection's number: a guest is held while a
    /// flush is under way.
    dirty: Vec<(u64, Range<usize>)>,
    /// What is unflushed goes with the connection that has written it.
    drops: bool,
    /// The connections that are open, with the run that each belongs to.
    open: Vec<(u64, u64, UnixStream)>,
    /// Connections there have ever been.
    accepted: u64,
    /// Writes to here are kept back.
    hold: Option<Range<u64>>,
    held: Vec<Held>,
    /// So many flushes fail, and what they should have made durable is dropped.
    flushes_to_fail: usize,
    /// Sectors that cannot be read, by their offsets.
    bad: Vec<u64>,
    /// Requests on connections of earlier runs.
    unanswered: usize,
    over: bool,
}

/// A write that was kept back.
struct Held {
    connection: u64,
    offset: u64,
    data: Vec<u8>,
    cookie: u64,
    session: Session,
    stream: UnixStream,
}

impl Forgetful {
    /// Starts it, with an image of `size` zeroes.
    #[track_caller]
    pub fn start(scratch: &Scratch, name: &str, size: u64) -> Forgetful {
        Forgetful::start_so(scratch, name, size, false)
    }

    /// The same, of one that drops with a connection what was not flushed on it.
    #[track_caller]
    pub fn start_dropping(scratch: &Scratch, name: &str, size: u64) -> Forgetful {
        Forgetful::start_so(scratch, name, size, true)
    }

    #[track_caller]
    fn start_so(scratch: &Scratch, name: &str, size: u64, drops: bool) -> Forgetful {
        let socket = scratch.socket(&format!("{name}.sock"));
        let listener = UnixListener::bind(&socket).expect("listen");
        let zeroes = vec![0; usize::try_from(size).expect("it fits into memory")];
        let (durable, cache) = (zeroes.clone(), zeroes);
        let state = State { durable, cache, drops, ..State::default() };
        let shared = Arc::new(Shared(Mutex::new(state)));
        let server = Forgetful { socket, shared: Arc::clone(&shared) };
        thread::spawn(move || {
            for stream in listener.incoming() {
                if shared.lock().over {
                    return;
                }
                let (Ok(stream), shared) = (stream, Arc::clone(&shared)) else { return };
                thread::spawn(move || serve(&shared, stream));
            }
        });
        server
    }

    /// Its location, as a datastore.
    pub fn location(&self) -> String {
        format!("nbd+unix:///?socket={}", self.socket.display())
    }

    /// Its socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Waits until a client has all of its connections.
    #[track_caller]
    pub fn wait_for_connections(&self) {
        until("all connections", seconds(10), || {
            let state = self.shared.lock();
            let all = if state.drops { 1 } else { CONNECTIONS };
            (state.open.len() >= all).then_some(())
        });
    }

    /// How many connections there have ever been.
    pub fn connections_so_far(&self) -> u64 {
        self.shared.lock().accepted
    }

    /// Waits until no client has a connection.
    #[track_caller]
    pub fn wait_for_goodbye(&self) {
        until("no connection", seconds(10), || {
            self.shared.lock().open.is_empty().then_some(())
        });
    }

    /// The power is cut and is back: what was not flushed is gone, and all connections
    /// break at once. Gives how many bytes were lost.
    pub fn lose_power(&self) -> usize {
        let lost = self.forget_silently();
        self.break_all_connections();
        lost
    }

    /// From now on no client finds it, or clients find it again.
    #[track_caller]
    pub fn is_out_of_reach(&self, out: bool) {
        let away = self.socket.with_extension("away");
        let (from, to) = if out { (&self.socket, &away) } else { (&away, &self.socket) };
        std::fs::rename(from, to).expect("rename a socket");
    }

    /// All connections break, of this run and of earlier ones.
    pub fn break_all_connections(&self) {
        for (_, _, stream) in &self.shared.lock().open {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// The same, but the connections find out one by one, each after the client has a new
    /// one for the one before.
    #[track_caller]
    pub fn lose_power_and_tell_one_by_one(&self) -> usize {
        let lost = self.forget_silently();
        let run = self.shared.lock().run;
        let next = || {
            let state = self.shared.lock();
            let dead = state.open.iter().find(|(_, of, _)| *of < run);
            dead.map(|(_, _, stream)| (state.accepted, stream.try_clone()))
        };
        while let Some((before, stream)) = next() {
            let _ = stream.expect("a stream").shutdown(Shutdown::Both);
            until("a new connection", seconds(10), || {
                (self.shared.lock().accepted > before).then_some(())
            });
        }
        lost
    }

    /// The connection breaks that brought the write which is kept back; the server lives,
    /// and keeps the write.
    pub fn break_connection_of_held(&self) {
        for held in &self.shared.lock().held {
            let _ = held.stream.shutdown(Shutdown::Both);
        }
    }

    /// Waits until so many requests have come that nobody answers.
    #[track_caller]
    pub fn wait_for_unanswered(&self, count: usize) {
        until("requests to a server that is gone", seconds(10), || {
            (self.shared.lock().unanswered >= count).then_some(())
        });
    }

    /// From now on writes to these bytes are kept back.
    pub fn hold(&self, range: Range<u64>) {
        self.shared.lock().hold = Some(range);
    }

    /// How many writes are kept back.
    pub fn held(&self) -> usize {
        self.shared.lock().held.len()
    }

    /// Carries out the writes that were kept back, in the order of their coming, also those
    /// of connections that have broken.
    pub fn release(&self) {
        let mut state = self.shared.lock();
        state.hold = None;
        for held in std::mem::take(&mut state.held) {
            state.write(held.connection, held.offset, &held.data, false);
            let mut stream = held.stream;
            let _ = stream.write_all(&held.session.ok(held.cookie));
        }
    }

    /// From now on this is what is there, durable, but for these sectors (by their offsets),
    /// which cannot be read.
    pub fn holds(&self, image: &[u8], bad: &[u64]) {
        let mut state = self.shared.lock();
        state.durable.copy_from_slice(image);
        state.cache.copy_from_slice(image);
        state.bad = bad.to_vec();
    }

    /// The next flush fails, and what is in the cache is dropped, as a kernel does with pages
    /// that it cannot write; the one after that succeeds.
    pub fn fails_a_flush(&self) {
        self.shared.lock().flushes_to_fail = 1;
    }

    /// The same of all flushes.
    pub fn fails_each_flush(&self) {
        self.shared.lock().flushes_to_fail = usize::MAX;
    }

    /// What is durable.
    pub fn durable(&self, range: Range<usize>) -> Vec<u8> {
        self.shared.lock().durable[range].to_vec()
    }

    /// The power is cut and is back, and no connection has found out yet.
    pub fn forget_silently(&self) -> usize {
        let mut state = self.shared.lock();
        let pairs = state.cache.iter().zip(&state.durable);
        let lost = pairs.filter(|(cached, durable)| cached != durable).count();
        state.cache = state.durable.clone();
        state.dirty.clear();
        state.run += 1;
        state.hold = None;
        state.held.clear();
        lost
    }
}

impl Drop for Forgetful {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.over = true;
        for (_, _, stream) in &state.open {
            let _ = stream.shutdown(Shutdown::Both);
        }
        drop(state);
        // Wakes the thread that accepts.
        let _ = UnixStream::connect(&self.socket);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("nothing panics with the server's state")
    }
}

impl State {
    fn write(&mut self, connection: u64, offset: u64, data: &[u8], durable: bool) {
        let range = offset as usize..offset as usize + data.len();
        self.cache[range.clone()].copy_from_slice(data);
        if durable {
            self.durable[range].copy_from_slice(data);
        } else {
            self.dirty.push((connection, range));
        }
    }

    /// A flush on a connection: of all that was written, or of what was written there.
    fn flush(&mut self, connection: u64) {
        for range in self.take_dirty(connection) {
            self.durable[range.clone()].copy_from_slice(&self.cache[range]);
        }
    }

    /// A connection has gone.
    fn close(&mut self, connection: u64) {
        self.open.retain(|(open, _, _)| *open != connection);
        if self.drops {
            for range in self.take_dirty(connection) {
                self.cache[range.clone()].copy_from_slice(&self.durable[range]);
            }
        }
    }

    fn take_dirty(&mut self, connection: u64) -> Vec<Range<usize>> {
        let drops = self.drops;
        let taken = self.dirty.extract_if(.., |(by, _)| !drops || *by == connection);
        taken.map(|(_, range)| range).collect()
    }

    fn is_bad(&self, offset: u64, len: u32) -> bool {
        let range = offset..offset + u64::from(len);
        self.bad.iter().any(|bad| range.contains(bad))
    }

    fn is_held(&self, offset: u64, len: usize) -> bool {
        let meets =
            |hold: &Range<u64>| offset < hold.end && hold.start < offset + len as u64;
        self.hold.as_ref().is_some_and(meets)
    }
}

/// One connection, from its first byte to its last.
fn serve(shared: &Shared, stream: UnixStream) {
    let Ok(other) = stream.try_clone() else { return };
    let (number, run) = {
        let mut state = shared.lock();
        state.accepted += 1;
        (state.accepted, state.run)
    };
    let mut connection = Served { shared, stream, number, run };
    if let Ok(Some(session)) = connection.shake_hands() {
        shared.lock().open.push((number, run, other));
        let _ = connection.requests(&session);
        shared.lock().close(number);
    }
}

struct Served<'a> {
    shared: &'a Shared,
    stream: UnixStream,
    number: u64,
    run: u64,
}

impl Served<'_> {
    fn shake_hands(&mut self) -> io::Result<Option<Session>> {
        let mut handshake = ServerHandshake::new();
        let mut bytes = [0; 4096];
        loop {
            match handshake.step() {
                ServerStep::Send(bytes) => self.stream.write_all(&bytes)?,
                ServerStep::Receive => {
                    let room = handshake.room().min(bytes.len());
                    let count = self.stream.read(&mut bytes[..room])?;
                    if count == 0 {
                        return Ok(None);
                    }
                    let _ = handshake.push(&bytes[..count]);
                }
                ServerStep::NeedExport(_) => {
                    let (size, drops) = {
                        let state = self.shared.lock();
                        (state.cache.len() as u64, state.drops)
                    };
                    let mut export = Export::disk(size);
                    if !drops {
                        export.flags =
                            export.flags.with(TransmissionFlags::CAN_MULTI_CONN);
                    }
                    export.allocation = false;
                    handshake.answer_export(Ok(export));
                }
                ServerStep::NeedList => handshake.answer_list(Ok(Vec::new())),
                // A client sends nothing before it has the last answer.
                ServerStep::Ready(ready) => return Ok(Some(ready.session)),
                ServerStep::Closed(_) => return Ok(None),
            }
        }
    }

    fn requests(&mut self, session: &Session) -> io::Result<()> {
        loop {
            let mut head = [0; REQUEST_LEN];
            self.stream.read_exact(&mut head)?;
            let Ok(request) = Request::parse(&head) else { return Ok(()) };
            let mut data = vec![0; request.payload_len() as usize];
            self.stream.read_exact(&mut data)?;
            let Ok(command) = session.check(&request) else {
                let error = session.error(request.cookie, NbdError::Inval, "refused");
                self.stream.write_all(&error)?;
                continue;
            };
            if matches!(command, Command::Disconnect) {
                return Ok(());
            }
            if let Some(reply) = self.carry_out(session, command, request.cookie, data) {
                self.stream.write_all(&reply)?;
            }
        }
    }

    /// What is answered, if anything is.
    fn carry_out(
        &self,
        session: &Session,
        command: Command,
        cookie: u64,
        data: Vec<u8>,
    ) -> Option<Vec<u8>> {
        let mut state = self.shared.lock();
        if state.run != self.run {
            state.unanswered += 1;
            return None; // Nobody is there any more.
        }
        match command {
            Command::Read { offset, len, .. } if state.is_bad(offset, len) => {
                return Some(session.error(cookie, NbdError::Io, "bad sector").to_vec());
            }
            Command::Read { offset, len, .. } => {
                let mut reply = session.read(cookie, offset, len).to_vec();
                let start = offset as usize;
                reply.extend_from_slice(&state.cache[start..start + len as usize]);
                return Some(reply);
            }
            Command::Write { offset, .. } if state.is_held(offset, data.len()) => {
                let stream = self.stream.try_clone().ok()?;
                let session = *session;
                let connection = self.number;
                state.held.push(Held {
                    connection,
                    offset,
                    data,
                    cookie,
                    session,
                    stream,
                });
                return None;
            }
            Command::Write { offset, fua, .. } => {
                state.write(self.number, offset, &data, fua);
            }
            Command::WriteZeroes { offset, len, fua, .. }
            | Command::Trim { offset, len, fua } => {
                state.write(self.number, offset, &vec![0; len as usize], fua);
            }
            Command::Flush if state.flushes_to_fail > 0 => {
                state.flushes_to_fail -= 1;
                state.cache = state.durable.clone();
                state.dirty.clear();
                return Some(session.error(cookie, NbdError::Io, "I/O error").to_vec());
            }
            Command::Flush => state.flush(self.number),
            _ => {}
        }
        Some(session.ok(cookie).to_vec())
    }
}
