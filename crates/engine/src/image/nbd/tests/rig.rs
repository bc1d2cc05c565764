//! A reactor reduced to one image, and the servers to try it on.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Process, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sterna_core::Nanos;

use crate::buffer::{Pool, Slice};
use crate::image::{
    self, Cx, Done, Image, ImageOp, ImageResult, ImageSpec, Opened, Ticket, file,
};
use crate::io::{self, ImageId, IoChoice, Owner};
use crate::qos::Qos;

/// Longer than anything here takes on a busy machine.
pub(super) const LONG: Duration = Duration::from_secs(30);

pub(super) struct Rig {
    pub(super) cx: Cx,
    pub(super) image: Box<dyn Image>,
    epoch: Instant,
    next: u64,
    answers: HashMap<u64, ImageResult>,
    /// How often the image had something to tell.
    pub(super) news: u32,
}

impl Rig {
    pub(super) fn open(choice: IoChoice, uri: &str) -> Rig {
        Rig::open_with(choice, uri, |_| {})
    }

    /// The same, of an image with which something is done before it starts.
    pub(super) fn open_with(
        choice: IoChoice,
        uri: &str,
        prepare: impl FnOnce(&mut dyn Opened),
    ) -> Rig {
        let buffers = Pool::new(64 << 20).unwrap();
        let (io, _) = io::open(choice, None).unwrap();
        let others = [Pool::new(1 << 20).unwrap(), Pool::new(1 << 20).unwrap()];
        let qos = Qos::new(0, Arc::default());
        let mut cx = Cx::new(io, buffers, others, qos, Default::default()).unwrap();
        let spec = ImageSpec::Nbd(uri.parse().unwrap());
        let mut opened = image::open(&spec, &Arc::default()).unwrap();
        prepare(&mut *opened);
        let image = opened.start(&mut cx, ImageId { disk: 1, image: 2 });
        let (epoch, answers) = (Instant::now(), HashMap::new());
        Rig { cx, image, epoch, next: 0, answers, news: 0 }
    }

    pub(super) fn submit(&mut self, op: ImageOp) -> u64 {
        self.next += 1;
        let ticket = Ticket { disk: 1, id: self.next };
        self.image.submit(&mut self.cx, ticket, op);
        self.collect();
        self.next
    }

    fn collect(&mut self) {
        for (ticket, result) in self.cx.finished.drain(..) {
            assert_eq!(ticket.disk, 1);
            if ticket.id == Ticket::NEWS {
                self.news += 1;
                continue;
            }
            let twice = self.answers.insert(ticket.id, result);
            assert!(twice.is_none(), "{} was answered twice", ticket.id);
        }
    }

    /// One iteration of the loop, at most `limit` long.
    pub(super) fn iterate(&mut self, limit: Duration) {
        let now = Nanos::from(self.epoch.elapsed());
        let next = self.cx.timers.next().map(|at| Duration::from(at.since(now)));
        let mut completions = Vec::new();
        self.cx.io.wait(Some(next.unwrap_or(limit).min(limit)), &mut completions);
        self.cx.now = Nanos::from(self.epoch.elapsed());
        for completion in completions {
            assert!(matches!(completion.token.owner, Owner::Image(_)));
            self.image.completed(&mut self.cx, completion);
        }
        while let Some(token) = self.cx.timers.due(self.cx.now) {
            self.image.timer(&mut self.cx, token.tag);
        }
        self.collect();
    }

    pub(super) fn run_for(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.iterate(Duration::from_millis(5));
        }
    }

    pub(super) fn run_until(&mut self, is: impl Fn(&Rig) -> bool) {
        let end = Instant::now() + LONG;
        while !is(self) {
            assert!(Instant::now() < end, "it does not come about");
            self.iterate(Duration::from_millis(5));
        }
    }

    /// The answer, if it is there.
    pub(super) fn take(&mut self, id: u64) -> Option<ImageResult> {
        self.answers.remove(&id)
    }

    pub(super) fn wait(&mut self, id: u64) -> ImageResult {
        let end = Instant::now() + LONG;
        loop {
            if let Some(result) = self.take(id) {
                return result;
            }
            assert!(Instant::now() < end, "operation {id} is not answered");
            self.iterate(Duration::from_millis(100));
        }
    }

    pub(super) fn call(&mut self, op: ImageOp) -> ImageResult {
        let id = self.submit(op);
        self.wait(id)
    }

    pub(super) fn buffer(&self, len: usize) -> Slice {
        self.cx.buffers.get(len).unwrap().slice(0, len)
    }

    pub(super) fn write(&mut self, offset: u64, bytes: &[u8], fua: bool) -> ImageResult {
        let buf = self.buffer(bytes.len());
        buf.copy_from(0, bytes);
        self.call(ImageOp::Write { offset, buf, fua })
    }

    pub(super) fn read(&mut self, offset: u64, len: usize) -> Vec<u8> {
        let buf = self.buffer(len);
        let op = ImageOp::Read { offset, buf: buf.clone() };
        assert_eq!(self.call(op), Ok(Done::Ok));
        buf.bytes().to_vec()
    }

    /// Closes the image, which must become idle and leave nothing behind.
    pub(super) fn close(mut self) {
        self.image.close(&mut self.cx);
        self.becomes_idle();
    }

    /// The same of the image that is the disk's truth.
    pub(super) fn take_leave(mut self) {
        self.image.take_leave(&mut self.cx);
        self.becomes_idle();
    }

    fn becomes_idle(mut self) {
        let end = Instant::now() + LONG;
        while !self.image.idle() {
            assert!(Instant::now() < end, "the image does not become idle");
            self.iterate(Duration::from_millis(100));
        }
        assert_eq!((self.cx.io.in_flight(), self.cx.timers.next()), (0, None));
        let Rig { cx, image, .. } = self;
        drop(image);
        assert_eq!(cx.buffers.free(), (64 << 20) - file::ZEROES, "memory is left behind");
    }
}

/// A server in a process of its own, killed when dropped.
///
/// What it says is kept aside and shown if the test fails: most of it is about
/// clients that went away without a goodbye, which is what the tests do.
pub(super) struct Server {
    child: Child,
    said: File,
}

impl Server {
    /// Starts `program` with `arguments` and waits until `socket` takes
    /// connections.
    pub(super) fn start(program: &str, arguments: &[&str], socket: &Path) -> Server {
        let _ = std::fs::remove_file(socket);
        let listens = || UnixStream::connect(socket).is_ok();
        Server::start_until(program, arguments, listens)
    }

    pub(super) fn start_tcp(program: &str, arguments: &[&str], port: u16) -> Server {
        let listens = || TcpStream::connect(("127.0.0.1", port)).is_ok();
        Server::start_until(program, arguments, listens)
    }

    fn start_until(
        program: &str,
        arguments: &[&str],
        listens: impl Fn() -> bool,
    ) -> Server {
        let said = tempfile::tempfile().unwrap();
        let child = Process::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(said.try_clone().unwrap())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {program}: {error}"));
        let server = Server { child, said };
        let end = Instant::now() + LONG;
        while !listens() {
            assert!(Instant::now() < end, "{program} does not listen");
            std::thread::sleep(Duration::from_millis(5));
        }
        server
    }

    pub(super) fn nbdkit(socket: &Path, arguments: &[&str]) -> Server {
        let path = socket.to_str().unwrap();
        let arguments = [&["-f", "-U", path], arguments].concat();
        Server::start("nbdkit", &arguments, socket)
    }

    pub(super) fn qemu_nbd(socket: &Path, image: &Path) -> Server {
        let (path, image) = (socket.to_str().unwrap(), image.to_str().unwrap());
        let arguments =
            ["-k", path, "-f", "raw", "-t", "-e", "8", "--discard=unmap", image];
        Server::start("qemu-nbd", &arguments, socket)
    }

    pub(super) fn kill(mut self) {
        self.stop();
    }

    /// Asks the server to end.
    pub(super) fn terminate(&self) {
        self.signal("-TERM");
    }

    /// It answers nothing any more.
    pub(super) fn resume(&self) {
        self.signal("-CONT");
    }

    pub(super) fn suspend(&self) {
        self.signal("-STOP");
        // A thread that is at work stops a little later than it is told to.
        let end = Instant::now() + LONG;
        while !self.has_stopped() {
            assert!(Instant::now() < end, "the server does not stop");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Whether all of its threads are stopped.
    fn has_stopped(&self) -> bool {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        tasks.flatten().all(|task| {
            let status = std::fs::read_to_string(task.path().join("status"));
            status.is_ok_and(|status| status.contains("\nState:\tT"))
        })
    }

    fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        Process::new("kill").args([signal, &pid]).status().unwrap();
    }

    fn stop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
        if std::thread::panicking() {
            let mut text = String::new();
            let _ = self.said.rewind().and_then(|()| self.said.read_to_string(&mut text));
            eprintln!("a server said:\n{text}");
        }
    }
}

/// A directory with a socket's path and its URI.
pub(super) struct Place {
    pub(super) directory: tempfile::TempDir,
    pub(super) socket: PathBuf,
    pub(super) uri: String,
}

pub(super) fn place() -> Place {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("s");
    let uri = format!("nbd+unix:///?socket={}", socket.display());
    Place { directory, socket, uri }
}

/// A file of `size` zero bytes in the place.
pub(super) fn file(place: &Place, size: u64) -> PathBuf {
    let path = place.directory.path().join("disk.raw");
    std::fs::File::create(&path).unwrap().set_len(size).unwrap();
    path
}

/// Small numbers from a seed (splitmix64).
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }
}
