//! A daemon with two datastores in a directory of its own.

// Not every test uses all of it.
#![allow(dead_code)]

use std::fmt::Debug;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use sterna_api::{
    AddDatastore, AskGuard, Client, ClientError, ErrorCode, ImportDisk, Migration,
    StartMigration,
};
use sterna_daemon::{IoChoice, Log, Notes, Running, Settings};
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Asks for a move to the datastore `slow`.
pub(crate) fn to_slow(disk: &str) -> StartMigration {
    StartMigration {
        disk: disk.into(),
        to: "slow".into(),
        provision: None,
        rate: None,
        verify: false,
        keep_source: false,
        skip_bad_sectors: false,
        guard: AskGuard::default(),
    }
}

/// What was said to a request that was refused as invalid.
#[track_caller]
pub(crate) fn refused<T: Debug>(answer: Result<T, ClientError>) -> String {
    match answer {
        Err(ClientError::Refused(body)) => {
            assert_eq!(body.code, ErrorCode::Invalid, "{body:?}");
            body.message
        }
        other => panic!("refusal expected: {other:?}"),
    }
}

/// A daemon of its own, in this process.
pub(crate) struct Site {
    dir: TempDir,
    daemon: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl Site {
    /// A daemon with the datastores `fast` and `slow`.
    pub(crate) async fn with_datastores() -> Site {
        let mut site = Site { dir: tempfile::tempdir().unwrap(), daemon: None };
        site.up().await;
        for name in ["fast", "slow"] {
            let location = site.dir.path().join(name);
            std::fs::create_dir(&location).unwrap();
            let location = location.display().to_string();
            let request = AddDatastore { name: name.into(), location, shape: None };
            site.client().add_datastore(&request).await.unwrap();
        }
        site
    }

    /// Starts the daemon.
    pub(crate) async fn up(&mut self) {
        let settings = Settings {
            state: self.dir.path().join("state"),
            socket: self.dir.path().join("sterna.sock"),
            nbd_socket: self.dir.path().join("nbd.sock"),
            listen: Vec::new(),
            io: IoChoice::Auto,
            dashboard: None,
            notes: Notes::default(),
            log: Log::to(std::io::sink()).unwrap(),
        };
        let start = || Running::start(settings).unwrap();
        let running = tokio::task::spawn_blocking(start).await.unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let run = async move {
            let stop = async move { drop(stopped.await) };
            running.run(stop).await.unwrap();
        };
        self.daemon = Some((stop, tokio::spawn(run)));
    }

    /// Stops the daemon in good order.
    pub(crate) async fn down(&mut self) {
        let (stop, running) = self.daemon.take().unwrap();
        drop(stop);
        running.await.unwrap();
    }

    /// Puts a datastore into the state while the daemon is down, as if it had
    /// been added when all was well with it.
    pub(crate) fn record_datastore(&self, name: &str, location: &str) {
        let state = rusqlite::Connection::open(self.state("state.db")).unwrap();
        let insert = "INSERT INTO datastores (name, location, added) VALUES (?, ?, 1)";
        state.execute(insert, [name, location]).unwrap();
    }

    pub(crate) async fn restart(&mut self) {
        self.down().await;
        self.up().await;
    }

    pub(crate) async fn stop(mut self) {
        self.down().await;
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.dir.path().join("sterna.sock"))
    }

    pub(crate) fn fast(&self, file: &str) -> PathBuf {
        self.dir.path().join("fast").join(file)
    }

    pub(crate) fn slow(&self, file: &str) -> PathBuf {
        self.dir.path().join("slow").join(file)
    }

    /// Where a datastore is put that is not to be found.
    pub(crate) fn away(&self) -> PathBuf {
        self.dir.path().join("away")
    }

    pub(crate) fn state(&self, file: &str) -> PathBuf {
        self.dir.path().join("state").join(file)
    }

    /// The files on a datastore, but for its mark.
    pub(crate) fn files(&self, datastore: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.dir.path().join(datastore)).unwrap();
        let name = |entry: std::fs::DirEntry| entry.file_name().into_string().unwrap();
        let mut names: Vec<String> = entries.map(|entry| name(entry.unwrap())).collect();
        names.retain(|name| name != ".sterna-datastore");
        names.sort();
        names
    }

    /// A raw image on `fast` in which no two blocks are the same.
    pub(crate) fn image(&self, file: &str, size: u64) -> Vec<u8> {
        let words = (0..size / 8).map(|at| at.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        std::fs::write(self.fast(file), &bytes).unwrap();
        bytes
    }

    /// A disk on `fast` that is full of data; gives the data.
    pub(crate) async fn imported(&self, name: &str, size: u64) -> Vec<u8> {
        let file = format!("{name}.raw");
        let bytes = self.image(&file, size);
        let (name, datastore) = (name.to_owned(), "fast".to_owned());
        let request = ImportDisk { name, datastore, file };
        self.client().import_disk(&request).await.unwrap();
        bytes
    }

    /// A migration to `slow` that takes longer than any test.
    pub(crate) async fn slow_migration(&self, disk: &str) -> u64 {
        let request = StartMigration {
            disk: disk.into(),
            to: "slow".into(),
            provision: None,
            rate: Some(64 << 10),
            verify: false,
            keep_source: false,
            skip_bad_sectors: false,
            guard: sterna_api::AskGuard::default(),
        };
        self.client().migrate(&request).await.unwrap().id
    }

    /// Waits until a migration has copied something.
    pub(crate) async fn under_way(&self, id: u64) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while self.client().migration(id).await.unwrap().progress.unwrap().copied == 0 {
            assert!(Instant::now() < deadline, "nothing is copied");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits for a migration's end.
    pub(crate) async fn ended(&self, id: u64) -> Migration {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let now = self.client().migration(id).await.unwrap();
            if now.state.ended() {
                return now;
            }
            assert!(Instant::now() < deadline, "it does not end: {now:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}
