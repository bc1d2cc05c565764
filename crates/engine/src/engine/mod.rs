//! The engine from outside: what the daemon calls.
//!
//! All calls block until they are done and may come from any thread; none may
//! come from a reactor. A call that concerns a disk is carried out on the
//! disk's reactor, as a letter with an answer.
//!
//! Here are its start and its end, and how disks come and go. The other calls are in files
//! of their own: moves (`migrate`), service levels (`qos_control`), how disks fare
//! (`figures`), and reads that are looked for (`watching`).

mod accounts;
mod error;
mod figures;
mod migrate;
mod migrations;
mod qos_control;
mod watching;

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::account::{AccountSpec, Keep};
use crate::classes::Classes;
use crate::directory::{Directory, Entry, Taken};
use crate::disk::{Disk, Migrates, Placed};
use crate::export::vhost::{Served, Server};
use crate::image::{
    self, Budget, Cx, HeldFile, Image, ImageSpec, Opened, VouchFor, Voucher,
};
use crate::io::{self, IoChoice, IoKind};
use crate::listener::{Bound, Listener};
use crate::mailbox::Mailbox;
use crate::qos;
use crate::reactor::{self, Reactor, Shared, TurnedAway};
use sterna_core::DiskId;

use accounts::Accounts;
pub use error::EngineError;
pub use migrate::MigrateError;
use migrations::Migrations;
pub use watching::WatchedReads;

/// How long [`Engine::stop`] takes at most, whatever hangs: the reactors wait for their disks, and
/// then for what the kernel still works on; the servers of virtual machines wait as long as the
/// reactors, and beside them.
pub const STOPS_WITHIN: Duration = reactor::LINGER.saturating_add(io::LINGER);

/// Reactors where the configuration does not say: more are of use only to
/// devices that no single machine's guests keep busy.
const REACTORS_MAX: usize = 4;

/// The least memory of a reactor: two commands of the largest pieces, and what
/// the connections and the zeroes need.
const MEMORY_MIN: u64 = 8 << 20;

/// How an engine is to work.
#[derive(Clone, Debug)]
pub struct Config {
    /// Threads that carry out I/O; 0 is one per core, at most four.
    pub reactors: usize,
    /// The way to the kernel.
    pub io: IoChoice,
    /// Bytes of I/O buffers over all reactors; each gets at least 8 MiB.
    pub memory: u64,
    /// A file that stays open until the last operation has ended, even if the
    /// process is killed before. A lock on it then shows that nothing that this
    /// process started can still be written.
    pub keep: Option<Arc<OwnedFd>>,
    /// A client gets in only with a descriptor below this. The system gives the lowest
    /// that is free, so the others are kept for who has to open something else.
    pub descriptors: i32,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            reactors: 0,
            io: IoChoice::Auto,
            memory: 32 << 20,
            keep: None,
            descriptors: i32::MAX,
        }
    }
}

impl Config {
    /// How many reactors an engine has that is to work in this way.
    pub fn reactor_count(&self) -> usize {
        match self.reactors {
            0 => thread::available_parallelism().map_or(1, usize::from).min(REACTORS_MAX),
            n => n.min(qos::REACTORS_MAX),
        }
    }
}

/// A disk to be attached.
#[derive(Clone, Debug)]
pub struct DiskSpec {
    /// Its name that never changes.
    pub id: DiskId,
    /// The name of its export.
    pub name: String,
    /// Its size in bytes, a multiple of 512.
    pub size: u64,
    /// Where its bytes are.
    pub image: ImageSpec,
    /// What its datastore lets through: for all images there.
    pub budget: Arc<Budget>,
    /// Whether clients find it by its id alone (32 hexadecimal digits), until
    /// [`Engine::set_named`].
    pub unnamed: bool,
    /// Whether its image keeps the room that it has, also where a client discards: it
    /// is zeroed in place then.
    pub keeps_room: bool,
    /// Where it is kept what its clients are owed, beyond the end of the daemon; without it
    /// that ends with the daemon.
    pub account: Option<AccountSpec>,
}

/// The data path: serves disks over NBD and moves them. Cheap to clone; when
/// the last clone is dropped the engine stops in good order.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

struct Inner {
    shared: Arc<Shared>,
    kind: IoKind,
    threads: Mutex<Vec<JoinHandle<()>>>,
    migrations: Arc<Migrations>,
    accounts: Accounts,
    /// The sockets for virtual machines.
    servers: Mutex<HashMap<DiskId, Vec<Server>>>,
}

impl Engine {
    /// Starts the reactors.
    pub fn start(config: &Config) -> Result<Engine, EngineError> {
        let reactors = config.reactor_count();
        let memory = (config.memory / reactors as u64).max(MEMORY_MIN);
        let memory = usize::try_from(memory).unwrap_or(usize::MAX);
        let mailboxes = (0..reactors)
            .map(|_| Mailbox::new().map(Arc::new))
            .collect::<Result<Vec<_>, _>>()
            .map_err(EngineError::Start)?;
        let shared = Arc::new(Shared {
            directory: Directory::default(),
            mailboxes,
            connections: AtomicUsize::new(0),
            turned_away: TurnedAway::default(),
            unlocked: AtomicBool::new(false),
            descriptors: config.descriptors,
            keep: config.keep.clone(),
            classes: Classes::default(),
            voucher: Voucher::default(),
            epoch: Instant::now(),
        });
        let (mut choice, mut first) = (config.io, None);
        let mut inner = Inner {
            shared: Arc::clone(&shared),
            kind: IoKind { name: "", reason: None },
            threads: Mutex::new(Vec::new()),
            migrations: Arc::default(),
            accounts: Accounts::default(),
            servers: Mutex::default(),
        };
        for number in 0..reactors {
            let (kind, thread) = start_reactor(number, &shared, choice, memory)?;
            inner.threads.get_mut().map_err(|_| EngineError::Stopped)?.push(thread);
            // All go the way that the first has found.
            choice = match kind.name {
                "threads" => IoChoice::Threads,
                _ => IoChoice::Uring,
            };
            first.get_or_insert(kind);
        }
        inner.kind = first.ok_or(EngineError::Stopped)?;
        Ok(Engine(Arc::new(inner)))
    }

    /// Asks this one about exports that nobody knows, from now on.
    pub fn appoint_voucher(&self, voucher: VouchFor) {
        self.0.shared.voucher.appoint(voucher);
    }

    /// The way to the kernel that was taken.
    #[must_use]
    pub fn io(&self) -> IoKind {
        self.0.kind.clone()
    }

    /// How many NBD clients are served now.
    #[must_use]
    pub fn clients(&self) -> usize {
        self.0.shared.connections.load(Ordering::Relaxed)
    }

    /// Serves all disks, those of now and those to come, on this socket.
    pub fn listen(&self, listener: Listener) -> Result<(), EngineError> {
        let (socket, tcp) = listener.into_parts().map_err(EngineError::Listen)?;
        self.call(0, move |reactor| reactor.listen(Bound::new(socket, tcp)))
    }

    /// How many clients did not get in, since the start: those for whom there was no
    /// place, and those whose handshake took so long that it made room for others'.
    #[must_use]
    pub fn turned_away(&self) -> (u64, u64) {
        let TurnedAway { refused, dropped } = &self.0.shared.turned_away;
        (refused.load(Ordering::Relaxed), dropped.load(Ordering::Relaxed))
    }

    /// Opens a disk's image and serves the disk under its name.
    pub fn attach(&self, disk: DiskSpec) -> Result<(), EngineError> {
        let DiskSpec { id, name, size, image, budget, unnamed, keeps_room, account } =
            disk;
        if size == 0 || !size.is_multiple_of(u64::from(crate::directory::BLOCK_MIN)) {
            return Err(EngineError::BadSize(size));
        }
        let directory = &self.0.shared.directory;
        directory.reserve(id, &name, size, unnamed).map_err(|taken| match taken {
            Taken::Id => EngineError::Attached,
            Taken::Name => EngineError::NameTaken(name.clone()),
        })?;
        let attached = image::open(&image, budget.crew())
            .map_err(EngineError::from)
            .and_then(|mut image| {
                self.note_locks(&budget);
                check_size(&*image, size)?;
                image.belong(id, size)?;
                let keep = self.0.accounts.take_up(id, account, &mut *image)?;
                let image = image::slowed(image, &budget);
                let pool = Arc::clone(budget.pool());
                let placed = Placed { image, pool, keeps_room };
                self.place(id, &name, size, placed, keep)
            });
        if attached.is_err() {
            self.0.accounts.forget(id);
            directory.remove(id);
        }
        attached
    }

    fn place(
        &self,
        id: DiskId,
        name: &str,
        size: u64,
        image: Placed,
        keep: Option<Arc<Keep>>,
    ) -> Result<(), EngineError> {
        let directory = &self.0.shared.directory;
        let load = directory.load(self.0.shared.mailboxes.len());
        let reactor = (0..load.len()).min_by_key(|&number| load[number]).unwrap_or(0);
        let called = name.to_owned();
        let (place, info) = self.call(reactor, move |reactor| {
            reactor.attach(id, called, size, image, keep)
        })?;
        tracing::info!(
            name,
            reactor,
            image_size = info.size,
            direct = info.direct,
            min_block = info.min_block,
            finds_holes = info.finds_holes,
            "disk attached"
        );
        directory.settle(id, place, info.fast_zero);
        Ok(())
    }

    /// Serves an attached disk to one virtual machine at a time, over vhost-user-blk, on
    /// a socket that has been bound, until `unserve` or `detach`.
    pub fn serve(&self, disk: DiskId, socket: UnixListener) -> Result<(), EngineError> {
        let directory = &self.0.shared.directory;
        let entry = directory.entry(disk).ok_or(EngineError::NotAttached)?;
        let place = entry.place.ok_or(EngineError::NotAttached)?;
        let mailbox = Arc::clone(&self.0.shared.mailboxes[place.reactor]);
        let (Entry { name, size, .. }, index) = (entry, place.index);
        let served = Served { mailbox, index, name, size, ending: Arc::default() };
        let server = Server::start(socket, served).map_err(EngineError::Listen)?;
        let mut servers = self.servers();
        if directory.place(disk).is_none() {
            // It was detached meanwhile.
            drop(servers);
            return Err(EngineError::NotAttached);
        }
        servers.entry(disk).or_default().push(server);
        Ok(())
    }

    /// Ends all sockets of a disk for virtual machines. What their requests have started
    /// is carried out.
    pub fn unserve(&self, disk: DiskId) {
        let servers = self.servers().remove(&disk);
        drop(servers);
    }

    /// Has clients find a disk by its name as well as by its id.
    pub fn set_named(&self, disk: DiskId) {
        self.0.shared.directory.set_named(disk);
    }

    fn servers(&self) -> MutexGuard<'_, HashMap<DiskId, Vec<Server>>> {
        self.0.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes a disk's connections, waits for its I/O and lets go of its image.
    pub fn detach(&self, disk: DiskId) -> Result<(), EngineError> {
        let directory = &self.0.shared.directory;
        match self.on_disk(disk, |disk, _| disk.migrates())? {
            None => {}
            Some(Migrates::Now) => return Err(EngineError::Migrating),
            Some(Migrates::AwaitsSource) => return Err(EngineError::SourceSilent),
        }
        let place = directory.hide(disk).ok_or(EngineError::NotAttached)?;
        self.unserve(disk);
        let (done, gone) = mpsc::channel();
        self.0.shared.mailboxes[place.reactor].post(move |reactor| {
            // The sender is dropped with the closure at the latest.
            let done = move || {
                let _ = done.send(());
            };
            reactor.detach(place.index, Box::new(done));
        });
        let gone = gone.recv().map_err(|_| EngineError::Stopped);
        io::closed();
        self.0.accounts.end(disk);
        directory.remove(disk);
        gone
    }

    /// The file of a disk's image and its name; none where the image is no file.
    pub fn held(&self, disk: DiskId) -> Result<Option<Arc<HeldFile>>, EngineError> {
        self.on_disk(disk, |disk, _| {
            disk.core.image(disk.core.current()).and_then(Image::named)
        })
    }

    /// How much of the datastores' work waits because the system has no thread for it.
    #[must_use]
    pub fn without_thread(&self) -> usize {
        io::without_thread()
    }

    /// Stops the engine in good order, as dropping the last clone does; whoever else has
    /// one finds that it has stopped. What hangs in the kernel is left behind after a
    /// while: says whether whatever may still land in an image is in one that nobody
    /// else can open until then.
    pub fn stop(&self) -> bool {
        self.0.stop();
        !self.0.shared.unlocked.load(Ordering::Relaxed)
    }

    /// Remembers whether images of a datastore can be opened twice.
    fn note_locks(&self, budget: &Budget) {
        if budget.crew().is_unlocked() {
            self.0.shared.unlocked.store(true, Ordering::Relaxed);
        }
    }

    /// Does something with a disk on its reactor. What it starts is delivered
    /// as usual.
    fn on_disk<T: Send + 'static>(
        &self,
        disk: DiskId,
        f: impl FnOnce(&mut Disk, &mut Cx) -> T + Send + 'static,
    ) -> Result<T, EngineError> {
        let place =
            self.0.shared.directory.place(disk).ok_or(EngineError::NotAttached)?;
        let result = self.call(place.reactor, move |reactor| {
            let (disk, cx) = reactor.disk(place.index)?;
            let result = f(disk, cx);
            disk.settle();
            reactor.deliver_disk(place.index);
            Some(result)
        })?;
        result.ok_or(EngineError::NotAttached)
    }

    /// Does something on a reactor and waits for it.
    fn call<T: Send + 'static>(
        &self,
        reactor: usize,
        f: impl FnOnce(&mut Reactor) -> T + Send + 'static,
    ) -> Result<T, EngineError> {
        self.0.shared.mailboxes[reactor].ask(f).ok_or(EngineError::Stopped)
    }

    /// Does something on all reactors at once and waits for all of them.
    fn call_all<T: Send + 'static>(
        &self,
        f: impl Fn(&mut Reactor) -> T + Copy + Send + 'static,
    ) -> Result<Vec<T>, EngineError> {
        let (answer, answered) = mpsc::channel();
        for mailbox in &self.0.shared.mailboxes {
            let answer = answer.clone();
            mailbox.post(move |reactor| drop(answer.send(f(reactor))));
        }
        drop(answer);
        let all = self.0.shared.mailboxes.iter().map(|_| answered.recv());
        all.collect::<Result<_, _>>().map_err(|_| EngineError::Stopped)
    }
}

impl Inner {
    fn stop(&self) {
        let servers =
            self.servers.lock().map(|mut servers| std::mem::take(&mut *servers));
        let servers = servers.unwrap_or_default();
        // All at once, so that they wait for what is under way at the same time: what hangs
        // of one must not take the time that others need for their last flush.
        servers.values().flatten().for_each(Server::end);
        for mailbox in &self.shared.mailboxes {
            mailbox.post(Reactor::stop);
        }
        drop(servers);
        let threads =
            self.threads.lock().map(|mut threads| std::mem::take(&mut *threads));
        for thread in threads.unwrap_or_default() {
            if thread.join().is_err() {
                tracing::error!("a reactor has panicked");
            }
        }
        self.accounts.end_all();
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.stop();
    }
}

fn check_size(image: &dyn Opened, disk: u64) -> Result<(), EngineError> {
    let image = image.size();
    if image < disk { Err(EngineError::TooSmall { image, disk }) } else { Ok(()) }
}

fn start_reactor(
    number: usize,
    shared: &Arc<Shared>,
    choice: IoChoice,
    memory: usize,
) -> Result<(IoKind, JoinHandle<()>), EngineError> {
    let (opened, kind) = mpsc::sync_channel(1);
    let shared = Arc::clone(shared);
    let run = move || match Reactor::open(number, shared, choice, memory) {
        Ok((reactor, kind)) => {
            drop(opened.send(Ok(kind)));
            reactor.run();
        }
        Err(error) => drop(opened.send(Err(error))),
    };
    let thread = thread::Builder::new()
        .name(format!("sterna-io-{number}"))
        .spawn(run)
        .map_err(EngineError::Start)?;
    match kind.recv() {
        Ok(Ok(kind)) => Ok((kind, thread)),
        Ok(Err(error)) => Err(EngineError::Start(error)),
        Err(_) => Err(EngineError::Stopped),
    }
}
