//! Starting and stopping.

use std::convert::Infallible;
use std::fs::File;
use std::future::Future;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use sterna_api::{Error, Result, Status};
use sterna_core::DiskId;
use sterna_core::qos::ClassId;
use sterna_engine::{
    Config, Engine, EngineError, IoChoice, Listener, place, remove_leftovers, renew_homes,
};
use sterna_moves::copies;
use sterna_os::signals::Signals;
use sterna_os::sockets::{self, Bound, Inherited, NbdSocket};
use sterna_os::{Descriptors, Local, StateLock, descriptors, limits};
use sterna_planner::{drs, hours as disk_hours, hurt, plans, room, storage_drs};
use sterna_runtime::tasks::Task;
use sterna_runtime::threads;
use sterna_server::activity::entry;
use sterna_server::http::Visitors;
use sterna_server::{Live, http};
use sterna_service_levels::ServiceLevels;
use sterna_state::{ActivityLog, HistoryFile, Store};
use sterna_storage::datastores::make_directory;
use sterna_storage::places::{DaemonPlaces, NbdPlace};
use sterna_storage::{Storage, StorageInUse, hours, lookout, state_directory};
use tokio::sync::watch;

use crate::daemon::{Daemon, Seen};
use crate::settings::Settings;
use crate::start_limits::TASKS;
use crate::{boot, retry, systemd};

/// How long requests of the API may take to end when the daemon stops. Those that take longer
/// wait for storage.
const LAST_REQUESTS: Duration = Duration::from_secs(3);

/// A start that lasts so long is said to last. Two thousand disks are served in less.
const NOT_READY: Duration = Duration::from_secs(10);

/// How long a start that is not wanted any more may take. One that takes longer waits for
/// storage, and the daemon ends as if it had been killed.
const LAST_START: Duration = NOT_READY;

/// A daemon that runs.
pub struct Running {
    pub(crate) daemon: Arc<Daemon>,
    /// Closed when nobody has a share of the daemon any more.
    pub(crate) gone: mpsc::Receiver<StorageInUse>,
    pub(crate) api: UnixListener,
    // In the order in which they are to go: sockets, then the lock.
    pub(crate) bound: Vec<Bound>,
    pub(crate) lock: StateLock,
}

/// Runs the daemon until a signal tells it to stop, or `over`. Calls `ready`
/// once clients can connect.
pub async fn serve(
    settings: Settings,
    ready: impl FnOnce(&Status),
    over: impl Future<Output = ()> + Send + 'static,
) -> Result<()> {
    let signals = Signals::hear()?;
    let mut stop = Box::pin(async move {
        tokio::select! {
            why = signals.end() => why,
            () = over => "the work that the daemon was started for has ended",
        }
    });
    let state = settings.state.clone();
    let mut starting = tokio::task::spawn_blocking(move || Running::start(settings));
    let started = tokio::select! {
        biased;
        started = &mut starting => started,
        why = &mut stop => {
            tracing::warn!("{why}, before the daemon was ready");
            // Some disks may be served by now, and end in good order if they can.
            return match tokio::time::timeout(LAST_START, starting).await {
                Ok(Ok(Ok(running))) => running.run(async {}).await,
                Ok(Ok(Err(error))) => Err(error),
                Ok(Err(_)) | Err(_) => Ok(()),
            };
        }
        never = say_what_lasts(&state) => match never {},
    };
    let running = started.map_err(|error| {
        Error::internal(format!("the daemon did not start: {error}"))
    })??;
    let status = running.status()?;
    ready(&status);
    running.run(async move { tracing::info!("{}", stop.await) }).await
}

/// Says again and again that the daemon is not ready, for as long as somebody waits for that.
async fn say_what_lasts(state: &Path) -> Infallible {
    let began = Instant::now();
    loop {
        tokio::time::sleep(NOT_READY).await;
        tracing::warn!(
            "the daemon is not ready after {} s: it waits for the state directory {}, for the \
             I/O of a daemon that was killed, or for the disks' storage; see the kernel's log",
            began.elapsed().as_secs(),
            state.display()
        );
    }
}

impl Running {
    /// Starts everything. Blocks.
    pub fn start(settings: Settings) -> Result<Running> {
        let inherited = sockets::inherited()?;
        sterna_engine::keep_descriptors();
        let lock = StateLock::take(&settings.state)?;
        make_directories(&settings.state)?;
        renew_homes(&settings.state.join("accounts"), &settings.state.join("maps"));
        let boot = boot::current()?;
        let descriptors = Descriptors::raise();
        sterna_qemu::virsh::prepare_programs(descriptors::as_before);
        let store = Store::open(&settings.state.join("state.db"))?;
        let keep = Some(lock.keep());
        let guests = descriptors.of_guests();
        let config =
            Config { io: settings.io, keep, descriptors: guests, ..Config::default() };
        let engine = Engine::start(&config)
            .map_err(|error| engine_does_not_start(&error, settings.io))?;
        let mut bound = Vec::new();
        let (api, nbd) = listen(&settings, inherited, &mut bound)?;
        let places = DaemonPlaces {
            state: settings.state,
            socket: settings.socket,
            nbd: nbd.iter().map(place_of).collect(),
        };
        let visitors = Arc::new(Visitors::at_most(descriptors.of_api()));
        let (held, gone) = mpsc::channel();
        let storage = Storage::new(store, engine, boot, places, descriptors, held);
        let activity = ActivityLog::open(&storage.places.state.join("activity.db"))?;
        let history = HistoryFile::open(&storage.places.state.join("history.db"))?;
        let kept = activity.clone();
        settings.notes.listen(move |note| {
            if let Some(entry) = entry(note) {
                kept.enter(entry);
            }
        });
        let seen = Seen { log: settings.log, visitors, activity, live: Live::new()? };
        let daemon = Arc::new(Daemon::new(storage, seen));
        daemon.storage.vouch();
        // Whoever comes in finds it in force.
        daemon.levels.reload()?;
        daemon.levels.switch_policies();
        daemon.planner.load_balancer()?;
        daemon.planner.remember(history);
        daemon.bring_all_up()?;
        daemon.storage.gate.open(|migration| daemon.moves.map_path(migration))?;
        for socket in nbd {
            let listener = match socket {
                NbdSocket::Unix(socket, _) => Listener::Unix(socket),
                NbdSocket::Tcp(socket, _) => Listener::Tcp(socket),
            };
            daemon.storage.engine.listen(listener).map_err(|error| {
                Error::unavailable(format!("NBD cannot be served: {error}"))
            })?;
        }
        daemon.moves.watch_migrations();
        daemon.machines.resume_vm_moves()?;
        daemon.machines.resume_vm_migrations()?;
        daemon.planner.resume_plans()?;
        for task in tasks_of(&daemon) {
            daemon.tasks.start(task)?;
        }
        if let Some(address) = settings.dashboard {
            http::listen(&daemon.server, Some(address))?;
        }
        let running = Running { daemon, gone, api, bound, lock };
        running.announce();
        sweep();
        Ok(running)
    }

    /// The daemon in one page.
    pub fn status(&self) -> Result<Status> {
        self.daemon.server.status()
    }

    fn announce(&self) {
        let places = &self.daemon.storage.places;
        let io = self.daemon.storage.engine.io();
        tracing::info!(
            version = env!("CARGO_PKG_VERSION"),
            state = %places.state.display(),
            api = %places.socket.display(),
            io = %io.name,
            open_files = self.daemon.storage.descriptors.limit(),
            "ready"
        );
        for place in &places.nbd {
            tracing::info!(uri = place.uri(""), "serving NBD");
        }
        if let Some(reason) = io.reason {
            tracing::info!(reason, "no io_uring");
        }
        if let Some(reason) = Local::unknown() {
            tracing::warn!(reason, "no local time: schedules go by UTC");
        }
    }

    /// Answers the API until `stop`, then stops in good order.
    pub async fn run(
        self,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> Result<()> {
        let failed = |error: std::io::Error| {
            Error::internal(format!("the API cannot be served: {error}"))
        };
        self.api.set_nonblocking(true).map_err(failed)?;
        let listener = self.api.try_clone().map_err(failed)?;
        let listener = tokio::net::UnixListener::from_std(listener).map_err(failed)?;
        let (stopping, stopped) = watch::channel(false);
        let router = http::router(self.daemon.server.clone());
        let visitors = self.daemon.server.visitors.clone();
        let watched = systemd::show_answers(router.clone());
        let server = tokio::spawn(http::serve(listener, router, visitors, stopped));
        systemd::ready();
        stop.await;
        systemd::stopping();
        self.daemon.storage.begin_to_end();
        self.daemon.server.live.end();
        self.daemon.server.dashboard.loopback.close();
        if let Some(watched) = watched {
            // It has a share of the daemon.
            watched.abort();
        }
        let _ = stopping.send(true);
        match tokio::time::timeout(LAST_REQUESTS, server).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the API has panicked"),
            Err(_) => tracing::warn!("requests were still under way"),
        }
        let stop = move || self.stop();
        tokio::task::spawn_blocking(stop).await.map_err(|error| {
            Error::internal(format!("the daemon did not stop in good order: {error}"))
        })
    }
}

/// The other way of I/O helps where the kernel refuses io_uring, and not where a limit is
/// reached.
fn engine_does_not_start(error: &EngineError, io: IoChoice) -> Error {
    let limit = match error {
        EngineError::Start(error) => limits::hint(error),
        _ => None,
    };
    let other = match io {
        IoChoice::Threads => "check the kernel's log",
        IoChoice::Auto | IoChoice::Uring => "try `--io threads`",
    };
    Error::unavailable(format!("the engine does not start: {error}"))
        .hint(limit.unwrap_or(other))
}

/// Removes what daemons whose state directory was removed have left in memory. It may hang
/// with a file system on which such a directory was, so nobody waits for it.
fn sweep() {
    let sweep = || match remove_leftovers() {
        0 => {}
        files => tracing::info!(
            files,
            directory = "/dev/shm",
            "region maps and accounts removed that killed daemons left in memory, and whose \
             state directories are gone"
        ),
    };
    if let Err(error) = threads::start("sterna-sweep".into(), sweep) {
        tracing::debug!(%error, "no memory of removed state directories was looked for");
    }
}

/// All that the daemon does again and again.
fn tasks_of(daemon: &Arc<Daemon>) -> [Task; TASKS] {
    let Daemon { storage, moves, machines, memory, levels, planner, .. } = &**daemon;
    [
        sterna_storage::sampling(storage, class_of(levels)),
        retry::recording(daemon),
        retry::retrying(daemon),
        lookout::looking(storage),
        state_directory::looking(storage),
        sterna_storage::completing_accounts(storage),
        sterna_storage::clearing_unfinished(storage),
        sterna_storage::taking_fingerprints(storage),
        copies::looking(moves),
        hours::recording(storage),
        sterna_machines::looking(machines),
        sterna_machines::looking_at_libvirt(machines),
        sterna_memory::watching(memory),
        sterna_service_levels::switching(levels),
        sterna_service_levels::cruising(levels),
        sterna_service_levels::recording_kept(levels),
        sterna_moves::guarding(moves),
        storage_drs::balancing(planner),
        drs::looking(planner),
        hurt::watching(planner),
        disk_hours::recording(planner),
        room::watching(planner),
        plans::driving(planner),
    ]
}

/// Says which class a disk is in, by the snapshot as it is at the moment.
fn class_of(
    levels: &Arc<ServiceLevels>,
) -> impl Fn() -> Box<dyn Fn(DiskId) -> Option<ClassId>> + Send + 'static {
    let levels = Arc::downgrade(levels);
    move || {
        let snapshot = levels.upgrade().map(|levels| levels.snapshot());
        Box::new(move |disk| Some(snapshot.as_ref()?.class_of(disk)?.record.id))
    }
}

/// The sockets of the API and of NBD: handed over by systemd, or made here.
fn listen(
    settings: &Settings,
    inherited: Inherited,
    bound: &mut Vec<Bound>,
) -> Result<(UnixListener, Vec<NbdSocket>)> {
    let mut bind = |path: &Path| {
        let (socket, guard) = sockets::bind_unix(path)?;
        bound.push(guard);
        Ok::<_, Error>(socket)
    };
    let api = match inherited.api {
        Some(api) => api,
        None => bind(&settings.socket)?,
    };
    let mut nbd = inherited.nbd;
    if nbd.is_empty() {
        let path = settings.nbd_socket.clone();
        nbd.push(NbdSocket::Unix(bind(&path)?, path));
    }
    for &address in &settings.listen {
        nbd.push(sockets::bind_tcp(address)?);
    }
    Ok((api, nbd))
}

fn place_of(socket: &NbdSocket) -> NbdPlace {
    match socket {
        NbdSocket::Unix(_, path) => NbdPlace::Unix(path.clone()),
        NbdSocket::Tcp(_, address) => NbdPlace::Tcp(*address),
    }
}

fn make_directories(state: &Path) -> Result<()> {
    // What is made there from now on is overwritten in place, where that has to be asked
    // for; where it cannot be had, what fails for want of room says so.
    let _ = File::open(state).and_then(|directory| place::keep_in_place(&directory));
    for name in ["maps", "sidecars", "commits", "accounts", "unfinished"] {
        make_directory(&state.join(name))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn a_limit_is_named_where_it_keeps_the_engine_from_starting() {
        let hint = |code, way| {
            let error = EngineError::Start(io::Error::from_raw_os_error(code));
            engine_does_not_start(&error, way).hint
        };
        for way in [IoChoice::Auto, IoChoice::Threads] {
            assert!(hint(12, way).contains("ulimit -v"), "ENOMEM");
            assert!(hint(11, way).contains("ulimit -u"), "EAGAIN");
            assert!(hint(24, way).contains("LimitNOFILE="), "EMFILE");
        }
        assert_eq!(hint(1, IoChoice::Auto), "try `--io threads`");
        assert!(!hint(1, IoChoice::Threads).contains("--io"));
    }
}
