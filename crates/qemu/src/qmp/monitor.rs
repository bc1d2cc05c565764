//! A connection to a monitor.
//!
//! One task has the socket. A call puts its command into the task's queue and waits
//! for the answer with its number; several calls may be under way. All that waits has
//! a bound: a call gives up after [`ANSWER_WITHIN`], and its answer is passed over if it
//! comes after all. The queues are bounded too; a listener that falls behind loses the
//! oldest events, which are hints (`event`).
//!
//! A connection that ends, or on which something comes that is not QMP, is over for
//! all: each call says why, then and later. The connection is closed when the last
//! [`Monitor`] is dropped; what it had begun in QEMU goes on.
//!
//! That nobody is found at the socket says that QEMU has ended, unless somebody still
//! listens whose socket's name is gone (`process`).

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout};

use super::{Capabilities, Command, Event, Lines, Message, QmpError, Version};
use crate::process::{Process, is_listened_at};
use crate::usage::of_process;

/// How long an answer may take. A monitor answers within milliseconds unless QEMU's
/// main loop is stuck, and what is stuck for so long is worth being told of.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(4);

/// Commands that may wait to be sent: there are few callers, and each waits.
const QUEUE: usize = 16;

/// Events that a listener may be behind.
const EVENTS: usize = 64;

/// What is read at once: most messages fit.
const READ: usize = 16 << 10;

/// How long a QEMU may take to end its listening once its socket has no name any more: both
/// are done in one go.
const PARTING: Duration = Duration::from_millis(200);

/// How often it is looked whether it has.
const LOOK: Duration = Duration::from_millis(20);

/// The kernel counts a process's memory in pages of this size, on the computers that
/// QEMU's guests run on with KVM and that this was tried on.
const PAGE: u64 = 4096;

type Answer = Result<Value, QmpError>;

struct Request {
    id: u64,
    line: Vec<u8>,
    command: &'static str,
    answer: oneshot::Sender<Answer>,
}

/// A connection to a monitor. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Monitor {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    requests: mpsc::Sender<Request>,
    events: broadcast::Sender<Event>,
    /// Why the connection is over, once it is.
    over: Arc<OnceLock<QmpError>>,
    ids: std::sync::atomic::AtomicU64,
    version: Version,
    process: Option<i32>,
    listener: Option<Process>,
}

impl Monitor {
    /// Connects, and agrees on capabilities.
    pub async fn connect(socket: &Path) -> Result<Monitor, QmpError> {
        Monitor::connect_again(socket, None).await
    }

    /// The same where it is known who has listened there last.
    pub async fn connect_again(
        socket: &Path,
        last: Option<Process>,
    ) -> Result<Monitor, QmpError> {
        let connected = timeout(ANSWER_WITHIN, UnixStream::connect(socket)).await;
        let mut stream = match connected.map_err(|_| no_greeting(socket))? {
            Ok(stream) => stream,
            Err(error) => return Err(cannot_connect(socket, &error, last).await),
        };
        let mut input = Input::default();
        let greeting = timeout(ANSWER_WITHIN, greeting(&mut input, &mut stream)).await;
        let version = greeting.map_err(|_| no_greeting(socket))??;
        let process = stream.peer_cred().ok().and_then(|peer| peer.pid());
        let listener = process.and_then(Process::of);
        let (requests, queue) = mpsc::channel(QUEUE);
        let (events, _) = broadcast::channel(EVENTS);
        let over = Arc::default();
        let keeper = Keeper {
            queue,
            events: events.clone(),
            over: Arc::clone(&over),
            pending: HashMap::new(),
            input,
        };
        tokio::spawn(keeper.keep(stream));
        let ids = std::sync::atomic::AtomicU64::new(1);
        let shared = Shared { requests, events, over, ids, version, process, listener };
        let monitor = Monitor { shared: Arc::new(shared) };
        monitor.call(&Capabilities {}).await?;
        Ok(monitor)
    }

    /// QEMU's version.
    pub fn version(&self) -> Version {
        self.shared.version
    }

    /// The process that listens at the monitor: QEMU itself, unless somebody is between.
    /// Not known of one that cannot be seen from here.
    pub fn process(&self) -> Option<i32> {
        // The kernel says 0 of a process in a namespace of others.
        self.shared.process.filter(|process| *process > 0)
    }

    /// The same, and none that gets its number after it.
    pub fn listener(&self) -> Option<Process> {
        self.shared.listener
    }

    /// The directory that QEMU was started in: relative file names begin there. Known
    /// where QEMU listens itself, as a process that we may look at.
    pub fn directory(&self) -> Option<PathBuf> {
        std::fs::read_link(format!("/proc/{}/cwd", self.shared.process?)).ok()
    }

    /// As whom QEMU runs: its user and group, where that can be seen.
    pub fn owner(&self) -> Option<(u32, u32)> {
        let process =
            std::fs::metadata(format!("/proc/{}", self.shared.process?)).ok()?;
        Some((process.uid(), process.gid()))
    }

    /// The processor time that QEMU's process has used, and the memory that it holds;
    /// nothing where it cannot be seen.
    pub fn taken(&self) -> Option<(Duration, u64)> {
        let stat = format!("/proc/{}/stat", self.shared.process?);
        of_process(&std::fs::read_to_string(stat).ok()?, PAGE)
    }

    /// What happens from now on.
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.shared.events.subscribe()
    }

    /// Whether the connection is over.
    pub fn is_over(&self) -> bool {
        self.shared.over.get().is_some()
    }

    /// Has a command carried out.
    pub async fn call<C: Command + Sync>(
        &self,
        command: &C,
    ) -> Result<C::Answer, QmpError> {
        let silent = |_| QmpError::Silent { command: C::NAME, after: ANSWER_WITHIN };
        let value = timeout(ANSWER_WITHIN, self.ask(command)).await.map_err(silent)??;
        serde_json::from_value(value).map_err(|error| QmpError::NotUnderstood {
            command: C::NAME,
            reason: error.to_string(),
        })
    }

    async fn ask<C: Command + Sync>(&self, command: &C) -> Answer {
        let id = self.shared.ids.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let arguments = serde_json::to_value(command).expect("commands are plain data");
        let line = json!({ "execute": C::NAME, "arguments": arguments, "id": id });
        let line = format!("{line}\n").into_bytes();
        let (answer, answered) = oneshot::channel();
        let request = Request { id, line, command: C::NAME, answer };
        let over = || self.shared.over.get().cloned().unwrap_or(QmpError::Gone);
        self.shared.requests.send(request).await.map_err(|_| over())?;
        answered.await.unwrap_or_else(|_| Err(over()))
    }
}

/// The monitor's greeting. What happens at the moment in which somebody connects, QEMU
/// may tell of before it.
async fn greeting(
    input: &mut Input,
    stream: &mut UnixStream,
) -> Result<Version, QmpError> {
    loop {
        match input.next(stream).await? {
            Message::Greeting(version) => return Ok(version),
            Message::Event(_) => {}
            other => return Err(QmpError::Garbage(format!("it begins with {other:?}"))),
        }
    }
}

/// A monitor that hangs takes no connections: once those that wait are as many as the
/// kernel keeps for it, the next is refused for now, which is no sign that QEMU has gone.
async fn cannot_connect(
    socket: &Path,
    error: &io::Error,
    last: Option<Process>,
) -> QmpError {
    let mut reason = error.to_string();
    let nobody = match error.kind() {
        ErrorKind::WouldBlock => return no_greeting(socket),
        // A listener that ends resets the connections that it has not taken yet.
        ErrorKind::NotFound
        | ErrorKind::ConnectionRefused
        | ErrorKind::ConnectionReset => {
            let listens = is_nameless(socket, last).await;
            if listens {
                reason.push_str(NAMELESS);
            }
            !listens
        }
        _ => false,
    };
    QmpError::Connect { socket: socket.into(), reason, nobody }
}

/// What is said then.
const NAMELESS: &str = ", but a process still listens there: another QEMU was started \
                        with this socket, and has taken its name; the first QEMU can \
                        only be ended by hand";

/// Whether somebody listens at a socket that has lost this name, and goes on with it.
async fn is_nameless(socket: &Path, last: Option<Process>) -> bool {
    let listens = || {
        is_listened_at(socket) || last.is_some_and(|process| process.listens_at(socket))
    };
    let deadline = Instant::now() + PARTING;
    while listens() {
        if Instant::now() > deadline {
            return true;
        }
        sleep(LOOK).await;
    }
    false
}

fn no_greeting(socket: &Path) -> QmpError {
    QmpError::NoGreeting { socket: socket.into(), after: ANSWER_WITHIN }
}

/// Messages as they come.
#[derive(Default)]
struct Input {
    lines: Lines,
    ready: std::collections::VecDeque<Vec<u8>>,
}

impl Input {
    /// The next message. What was received stays if this is dropped half-way.
    async fn next(&mut self, from: &mut UnixStream) -> Result<Message, QmpError> {
        loop {
            if let Some(line) = self.ready.pop_front() {
                return Ok(Message::parse(&line)?);
            }
            let mut buffer = [0; READ];
            let count = from.read(&mut buffer).await?;
            if count == 0 {
                return Err(QmpError::Gone);
            }
            self.ready.extend(self.lines.push(&buffer[..count])?);
        }
    }
}

/// Who has the socket.
struct Keeper {
    queue: mpsc::Receiver<Request>,
    events: broadcast::Sender<Event>,
    over: Arc<OnceLock<QmpError>>,
    pending: HashMap<u64, (&'static str, oneshot::Sender<Answer>)>,
    input: Input,
}

impl Keeper {
    async fn keep(mut self, mut stream: UnixStream) {
        loop {
            let step = tokio::select! {
                request = self.queue.recv() => match request {
                    Some(request) => self.send(&mut stream, request).await,
                    None => return, // Nobody needs it any more.
                },
                message = self.input.next(&mut stream) => {
                    message.map(|message| self.take(message))
                }
            };
            if let Err(error) = step {
                // In this order: who is told finds it over.
                let _ = self.over.set(error.clone());
                for (_, (_, answer)) in self.pending.drain() {
                    let _ = answer.send(Err(error.clone()));
                }
                return;
            }
        }
    }

    async fn send(
        &mut self,
        stream: &mut UnixStream,
        request: Request,
    ) -> Result<(), QmpError> {
        let Request { id, line, command, answer } = request;
        // Those who gave up are not waited for any more.
        self.pending.retain(|_, (_, waiting)| !waiting.is_closed());
        self.pending.insert(id, (command, answer));
        match timeout(ANSWER_WITHIN, stream.write_all(&line)).await {
            Ok(written) => Ok(written?),
            // Half a command may have been sent: no other can follow it.
            Err(_) => Err(QmpError::Silent { command, after: ANSWER_WITHIN }),
        }
    }

    fn take(&mut self, message: Message) {
        let (id, refusal) = match message {
            Message::Return { id, value } => (id, Ok(value)),
            Message::Refusal { id, class, description } => {
                (id, Err((class, description)))
            }
            Message::Event(event) => {
                // Without listeners there is nobody to tell.
                let _ = self.events.send(event);
                return;
            }
            Message::Greeting(_) => return,
        };
        let Some((command, answer)) = id.and_then(|id| self.pending.remove(&id)) else {
            return; // Who asked has given up.
        };
        let _ = answer.send(refusal.map_err(|(class, description)| QmpError::Refused {
            command,
            class,
            description,
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_listener_that_ends_with_connections_in_its_queue_is_nobody() {
        for kind in [ErrorKind::ConnectionReset, ErrorKind::ConnectionRefused] {
            let socket = Path::new("/nosuch/web.qmp");
            let error = cannot_connect(socket, &io::Error::from(kind), None).await;
            assert!(matches!(error, QmpError::Connect { nobody: true, .. }), "{error:?}");
        }
    }
}
