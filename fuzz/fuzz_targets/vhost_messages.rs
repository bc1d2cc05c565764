//! Any messages of a hypervisor, with any descriptors, to a disk that is really served: the
//! connection ends, the disk goes on (a client reads of it), and the next hypervisor is heard.
//!
//! The input is the guest's memory (its length in two bytes, then its bytes), and messages:
//! a number, what goes with it, the length of the payload, the payload.

#![no_main]

use std::fs::File;
use std::io::{ErrorKind, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use libfuzzer_sys::fuzz_target;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use sterna_core::DiskId;
use sterna_engine::{Config, DiskSpec, Engine, ImageSpec, IoChoice, Listener};
use sterna_nbd::client::ClientConfig;
use sterna_nbd::{ClientHandshake, ClientStep, Command};

const DISK: DiskId = DiskId(1);
const SIZE: u64 = 1 << 20;
const MEMORY: u64 = 1 << 16;
/// Everything here ends within this, however loaded the machine is.
const LONG: Duration = Duration::from_secs(60);

const GET_FEATURES: u8 = 1;
/// virtio 1.0, which every answer to that has.
const VERSION_1: u64 = 1 << 32;
/// Of a message: its protocol's version, and that it is to be answered.
const VERSION: u32 = 1;
const NEED_REPLY: u32 = 8;
const MESSAGES_MAX: usize = 64;
const SECTOR: usize = 512;
/// Bytes of the head of a simple reply: its magic number, the error, the cookie.
const SIMPLE_REPLY: usize = 16;

struct Stage {
    /// Serves as long as it is there.
    _engine: Engine,
    socket: PathBuf,
    client: Mutex<Client>,
}

/// Served as long as the process lives.
static STAGE: LazyLock<Stage> = LazyLock::new(|| {
    let name = |end: &str| {
        PathBuf::from(format!("/dev/shm/sterna-fuzz-{}.{end}", std::process::id()))
    };
    let (path, socket, nbd) = (name("raw"), name("sock"), name("nbd"));
    File::create(&path).and_then(|file| file.set_len(SIZE)).expect("an image");
    let config = Config { reactors: 1, io: IoChoice::Threads, ..Config::default() };
    let engine = Engine::start(&config).expect("an engine");
    let disk = DiskSpec {
        id: DISK,
        name: "disk".into(),
        size: SIZE,
        image: ImageSpec::File { path: path.clone(), direct: false },
        budget: Arc::default(),
        unnamed: false,
        keeps_room: false,
        account: None,
    };
    engine.attach(disk).expect("a disk");
    engine.serve(DISK, UnixListener::bind(&socket).expect("a socket")).expect("served");
    let listener = UnixListener::bind(&nbd).expect("a socket");
    engine.listen(Listener::Unix(listener)).expect("served");
    let client = Mutex::new(Client::connect(&nbd));
    let _ = [path, nbd].map(std::fs::remove_file);
    Stage { _engine: engine, socket, client }
});

fuzz_target!(|input: &[u8]| {
    let Some((len, rest)) = input.split_first_chunk::<2>() else { return };
    let (memory, mut rest) =
        rest.split_at(rest.len().min(usize::from(u16::from_le_bytes(*len))));
    let mut hypervisor = Hypervisor::connect(memory);
    for _ in 0..MESSAGES_MAX {
        let Some(([number, with, len], after)) = rest.split_first_chunk::<3>() else {
            break;
        };
        let (payload, after) = after.split_at(after.len().min(usize::from(*len)));
        rest = after;
        if !hypervisor.says(*number, *with, payload) {
            break;
        }
    }
    hypervisor.leaves();
    STAGE.client.lock().expect("no other input runs").reads();
});

/// A client of the disk over NBD.
struct Client(UnixStream);

impl Client {
    fn connect(socket: &Path) -> Client {
        let mut stream = UnixStream::connect(socket).expect("somebody listens");
        stream.set_read_timeout(Some(LONG)).expect("a socket");
        let config = ClientConfig { structured: false, ..ClientConfig::new("disk") };
        let mut handshake = ClientHandshake::new(config);
        let mut buffer = [0; 4096];
        loop {
            match handshake.step() {
                ClientStep::Send(bytes) => stream.write_all(&bytes).expect("it is heard"),
                ClientStep::Receive => {
                    let room = handshake.room().min(buffer.len());
                    let got = stream.read(&mut buffer[..room]).expect("an answer");
                    assert!(got > 0 && handshake.push(&buffer[..got]) == got);
                }
                ClientStep::Ready(_) => return Client(stream),
                ClientStep::Failed(error) => panic!("the handshake failed: {error}"),
            }
        }
    }

    /// Reads the first sector, which is there whatever a guest has written into it.
    fn reads(&mut self) {
        let command = Command::Read { offset: 0, len: SECTOR as u32, df: false };
        self.0.write_all(&command.request(0).encode()).expect("the disk goes on");
        let mut reply = [0; SIMPLE_REPLY + SECTOR];
        self.0.read_exact(&mut reply).expect("the disk goes on");
        assert_eq!(reply[4..8], [0; 4], "the disk reads");
    }
}

struct Hypervisor {
    stream: UnixStream,
    memory: File,
    area: File,
    kick: File,
}

impl Hypervisor {
    /// Connects, and sees that it is heard.
    fn connect(bytes: &[u8]) -> Hypervisor {
        let mut stream = UnixStream::connect(&STAGE.socket).expect("somebody listens");
        stream.set_read_timeout(Some(LONG)).expect("a socket");
        stream.set_write_timeout(Some(LONG)).expect("a socket");
        send(&stream, &message(GET_FEATURES, VERSION, &[]), &[]);
        let mut answer = [0; 20];
        stream.read_exact(&mut answer).expect("the next hypervisor is heard");
        let features = u64::from_le_bytes(answer[12..].try_into().expect("eight bytes"));
        assert!(features & VERSION_1 != 0);
        let (memory, area) = (shared(MEMORY), shared(MEMORY));
        memory.write_all_at(bytes, 0).expect("room in memory");
        area.write_all_at(bytes, 0).expect("room in memory");
        // It tells of one request.
        let kick = eventfd(1, EventfdFlags::NONBLOCK).expect("an event").into();
        Hypervisor { stream, memory, area, kick }
    }

    /// Says something; false if nobody listens any more.
    fn says(&self, number: u8, with: u8, payload: &[u8]) -> bool {
        let flags = VERSION | if with & 0x80 != 0 { NEED_REPLY } else { 0 };
        let [memory, area, kick] =
            [&self.memory, &self.area, &self.kick].map(AsFd::as_fd);
        let files: &[BorrowedFd] = match with % 8 {
            0 => &[],
            1 => &[memory],
            2 => &[kick],
            3 => &[area],
            4 => &[memory, memory],
            5 => &[memory, area, kick],
            6 => &[self.stream.as_fd()],
            _ => &[kick, kick],
        };
        send(&self.stream, &message(number, flags, payload), files)
    }

    /// Says nothing more, and waits until nobody listens.
    fn leaves(&mut self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Write);
        let (mut rest, since) = (Vec::new(), Instant::now());
        while let Err(error) = self.stream.read_to_end(&mut rest)
            && error.kind() == ErrorKind::WouldBlock
        {
            assert!(since.elapsed() < LONG, "the connection does not end");
            // If a message had this very socket as its eventfd, the disk reads it without
            // waiting, and so does whoever else has it.
            self.stream.set_nonblocking(false).expect("a socket");
        }
    }
}

fn shared(len: u64) -> File {
    let file = memfd_create("guest", MemfdFlags::CLOEXEC).expect("memory");
    let file = File::from(file);
    file.set_len(len).expect("memory");
    file
}

fn message(number: u8, flags: u32, payload: &[u8]) -> Vec<u8> {
    let head = [u32::from(number), flags, payload.len() as u32];
    let mut bytes: Vec<u8> = head.into_iter().flat_map(u32::to_le_bytes).collect();
    bytes.extend_from_slice(payload);
    bytes
}

/// Sends bytes with descriptors; false if nobody listens any more.
fn send(stream: &UnixStream, bytes: &[u8], files: &[BorrowedFd]) -> bool {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() {
        assert!(control.push(SendAncillaryMessage::ScmRights(files)), "there is room");
    }
    let data = [IoSlice::new(bytes)];
    sendmsg(stream, &data, &mut control, SendFlags::NOSIGNAL) == Ok(bytes.len())
}
