//! Clients that share the blocks of a disk: each writes bytes of its own, of any offset and
//! length, with those of the others in the same blocks; and each knows at any time what may
//! be there.
//!
//! What is promised, and checked whenever a connection was lost: of a write that was not
//! answered each *part*, its bytes in one block, is there as a whole or not at all; and
//! everything else is as it was answered.

use std::io::{self, Read, Write};
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use sterna_nbd::{Command, wire};

use crate::random::Random;
use crate::wait::{seconds, until};

const BLOCK: u64 = 512;
/// Clients, which take turns by chance.
const CLIENTS: u64 = 4;
/// Where their bytes are, all together; neither begins or ends with a block.
const SHARED: Range<u64> = 777..200_001;
/// How long what a client writes at once may be: mostly parts of one block or two.
const LENGTHS: [u64; 7] = [1, 9, 37, 100, 300, 700, 2500];
/// Writes that a client has under way.
const DEPTH: usize = 32;
/// So many versions in a hundred are zeroes, and asked for as such.
const ZEROES: u32 = 15;

/// What a version of a byte is.
fn byte(version: u32, at: u64) -> u8 {
    if is_zero(version) {
        return 0;
    }
    let mixed = (u64::from(version) << 32 ^ at).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 56) as u8
}

fn is_zero(version: u32) -> bool {
    version % 100 < ZEROES
}

/// The bytes of a write in one block.
#[derive(Debug)]
struct Part {
    range: Range<u64>,
    /// What it may hold: one version if all that was asked for is answered.
    versions: Vec<u32>,
}

/// What a client writes at once.
#[derive(Debug)]
struct Stripe(Vec<Part>);

impl Stripe {
    fn new(range: &Range<u64>) -> Stripe {
        let mut parts = Vec::new();
        let mut start = range.start;
        while start < range.end {
            let end = range.end.min((start / BLOCK + 1) * BLOCK);
            parts.push(Part { range: start..end, versions: vec![0] });
            start = end;
        }
        Stripe(parts)
    }

    fn range(&self) -> Range<u64> {
        let (first, last) = (&self.0[0], &self.0[self.0.len() - 1]);
        first.range.start..last.range.end
    }

    fn may_hold(&mut self, version: u32) {
        self.0.iter_mut().for_each(|part| part.versions.push(version));
    }

    fn holds(&mut self, version: u32) {
        self.0.iter_mut().for_each(|part| part.versions = vec![version]);
    }

    fn is_in_doubt(&self) -> bool {
        self.0.iter().any(|part| part.versions.len() > 1)
    }

    /// Compares with what is there, which settles what was in doubt.
    fn found(&mut self, bytes: &[u8]) {
        let start = self.range().start;
        for Part { range, versions } in &mut self.0 {
            let found = &bytes[(range.start - start) as usize..]
                [..(range.end - range.start) as usize];
            let is = |version: &u32| {
                range.clone().zip(found).all(|(at, it)| *it == byte(*version, at))
            };
            let matching: Vec<u32> = versions.iter().copied().filter(is).collect();
            assert!(
                !matching.is_empty(),
                "bytes {range:?} are none of the versions {versions:?}: {found:?}"
            );
            // Those that match are alike.
            *versions = matching[..1].to_vec();
        }
    }
}

/// A connection in the oldest manner, in which nobody asks for block sizes.
struct Connection(UnixStream);

impl Connection {
    fn open(socket: &Path, export: &str) -> io::Result<Connection> {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(seconds(60)))?;
        stream.read_exact(&mut [0; wire::GREETING_LEN])?;
        let mut words = Vec::new();
        let flags = wire::FLAG_C_FIXED_NEWSTYLE | wire::FLAG_C_NO_ZEROES;
        words.extend(flags.to_be_bytes());
        words.extend(wire::OPTION_MAGIC.to_be_bytes());
        words.extend(wire::OPT_EXPORT_NAME.to_be_bytes());
        words.extend((export.len() as u32).to_be_bytes());
        words.extend(export.as_bytes());
        stream.write_all(&words)?;
        // Its size and flags.
        stream.read_exact(&mut [0; 10])?;
        Ok(Connection(stream))
    }

    /// Which command was answered. It must have been with success.
    fn answer(&mut self) -> io::Result<u64> {
        let mut head = [0; wire::SIMPLE_REPLY_LEN];
        self.0.read_exact(&mut head)?;
        assert_eq!(head[..4], wire::SIMPLE_REPLY_MAGIC.to_be_bytes());
        assert_eq!(head[4..8], [0; 4], "an error");
        let (_, cookie) = head.split_last_chunk().expect("it is longer");
        Ok(u64::from_be_bytes(*cookie))
    }

    /// Fills with the first version.
    fn clear(&mut self) -> io::Result<()> {
        let (offset, len) = (SHARED.start, (SHARED.end - SHARED.start) as u32);
        let (fua, no_hole, fast_zero) = (false, true, false);
        let zero = Command::WriteZeroes { offset, len, fua, no_hole, fast_zero };
        self.0.write_all(&zero.request(0).encode())?;
        self.answer().map(|_| ())
    }

    fn read(&mut self, range: &Range<u64>) -> io::Result<Vec<u8>> {
        let (offset, len) = (range.start, (range.end - range.start) as u32);
        let read = Command::Read { offset, len, df: false };
        self.0.write_all(&read.request(0).encode())?;
        self.answer()?;
        let mut bytes = vec![0; len as usize];
        self.0.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

struct Client {
    stripes: Vec<Stripe>,
    version: u32,
    random: Random,
    /// Writes that were under way when a connection was lost.
    unanswered: u64,
}

impl Client {
    /// Writes many at once, and awaits the answers.
    fn write(&mut self, connection: &mut Connection) -> io::Result<()> {
        self.version += 1;
        let (version, mut burst) = (self.version, Vec::new());
        let mut sent = Vec::new();
        for _ in 0..DEPTH {
            let at = self.random.below(self.stripes.len() as u64) as usize;
            if sent.contains(&at) {
                continue;
            }
            let range = self.stripes[at].range();
            let (offset, len) = (range.start, (range.end - range.start) as u32);
            let (fua, no_hole, fast_zero) = (false, self.random.below(2) == 0, false);
            if is_zero(version) {
                let zero = Command::WriteZeroes { offset, len, fua, no_hole, fast_zero };
                burst.extend(zero.request(at as u64).encode());
            } else {
                let write = Command::Write { offset, len, fua };
                burst.extend(write.request(at as u64).encode());
                burst.extend(range.map(|at| byte(version, at)));
            }
            self.stripes[at].may_hold(version);
            sent.push(at);
        }
        connection.0.write_all(&burst)?;
        for _ in &sent {
            let at = connection.answer()? as usize;
            assert!(sent.contains(&at), "nobody had asked for that");
            self.stripes[at].holds(version);
        }
        Ok(())
    }

    fn check(&mut self, connection: &mut Connection) -> io::Result<()> {
        for stripe in &mut self.stripes {
            stripe.found(&connection.read(&stripe.range())?);
        }
        Ok(())
    }

    /// Until it is told to stop, or the connection is lost.
    fn work(&mut self, connection: &mut Connection, shared: &Shared) -> io::Result<()> {
        self.check(connection)?;
        while !shared.stop.load(Ordering::Relaxed) {
            self.write(connection)?;
            shared.bursts.fetch_add(1, Ordering::Relaxed);
        }
        self.check(connection)
    }

    fn run(mut self, socket: &Path, export: &str, shared: &Shared) -> Client {
        loop {
            let mut connection = until("the daemon to be back", seconds(60), || {
                Connection::open(socket, export).ok()
            });
            if self.work(&mut connection, shared).is_ok() {
                return self;
            }
            let in_doubt = self.stripes.iter().filter(|stripe| stripe.is_in_doubt());
            self.unanswered += in_doubt.count() as u64;
        }
    }
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    /// Writes that were answered, many at a time.
    bursts: AtomicU64,
}

/// Clients at work, until [`Sharers::finish`].
pub struct Sharers {
    shared: Arc<Shared>,
    clients: Vec<JoinHandle<Client>>,
    socket: PathBuf,
    export: String,
}

impl Sharers {
    /// Starts them on a disk, whose first bytes are theirs from now on.
    #[track_caller]
    pub fn start(socket: &Path, export: &str, random: &mut Random) -> Sharers {
        let cleared = Connection::open(socket, export).and_then(|mut it| it.clear());
        cleared.expect("clear what they share");
        let mut stripes: [Vec<Stripe>; CLIENTS as usize] = Default::default();
        let mut start = SHARED.start;
        while start < SHARED.end {
            let len = LENGTHS[random.below(LENGTHS.len() as u64) as usize];
            let end = SHARED.end.min(start + len);
            stripes[random.below(CLIENTS) as usize].push(Stripe::new(&(start..end)));
            start = end;
        }
        let shared: Arc<Shared> = Arc::default();
        let run = |stripes| {
            let random = Random::new(random.word());
            let client = Client { stripes, version: ZEROES, random, unanswered: 0 };
            let (shared, socket) = (Arc::clone(&shared), socket.to_owned());
            let export = export.to_owned();
            thread::spawn(move || client.run(&socket, &export, &shared))
        };
        let clients = stripes.into_iter().map(run).collect();
        Sharers { shared, clients, socket: socket.into(), export: export.into() }
    }

    /// Waits until so many writes of each, on average, were answered.
    #[track_caller]
    pub fn wait_for_writes(&self, each: u64) {
        let bursts = || self.shared.bursts.load(Ordering::Relaxed);
        let wanted = bursts() + each.div_ceil(DEPTH as u64) * CLIENTS;
        until("the clients to write", seconds(120), || {
            let failed = self.clients.iter().any(JoinHandle::is_finished);
            assert!(!failed, "a client has found something wrong");
            (bursts() >= wanted).then_some(())
        });
    }

    /// Lets them finish what is under way, and compares once more over new connections.
    /// Gives how many writes were under way, all together, when connections were lost.
    #[track_caller]
    pub fn finish(self) -> u64 {
        self.shared.stop.store(true, Ordering::Relaxed);
        let clients = self.clients.into_iter().map(|client| {
            client.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        let mut unanswered = 0;
        for mut client in clients.collect::<Vec<_>>() {
            let connection = Connection::open(&self.socket, &self.export);
            let mut connection = connection.expect("connect");
            client.check(&mut connection).expect("read");
            unanswered += client.unanswered;
        }
        unanswered
    }
}
