//! What disks cannot tell their clients, told to people.

use std::fmt::Display;
use std::io;
use std::path::Path;
use std::time::Duration;

use sterna_api::Warning;
use sterna_core::DiskId;
use sterna_core::durability::{Lack, Loss};
use sterna_engine::datastore::Location;
use sterna_engine::{Trouble, TroubleKind};
use sterna_os::{Local, clock};
use sterna_state::{DiskRecord, MigrationRecord, Step};

use crate::Storage;

impl Storage {
    /// A warning for each thing that the engine knows of these disks. An engine that has
    /// ended knows nothing any more.
    pub fn disk_troubles(&self, disks: &[DiskRecord]) -> Vec<Warning> {
        let mut all = self.troubles_of(disks);
        all.extend(without_thread(self.engine.without_thread()));
        all
    }

    /// The same, without what is no disk's own.
    pub(crate) fn troubles_of(&self, disks: &[DiskRecord]) -> Vec<Warning> {
        let known = self.engine.troubles().unwrap_or_default().into_iter();
        let of = |id| disks.iter().find(|disk| disk.id == id);
        let tell = |(id, trouble): (DiskId, Trouble)| {
            let disk = of(id)?;
            let datastore = match trouble.kind {
                TroubleKind::Forgot {
                    why: Loss::ServerAway | Loss::WentBack, ..
                } => self.server_of(disk, trouble.age).unwrap_or_default(),
                TroubleKind::Forgot { .. } => self.was_on(disk, trouble.age),
                TroubleKind::FailsWrites { moves_since, .. } => {
                    self.before_moves(disk, moves_since)
                }
                TroubleKind::Lacks { copy: true, .. } => self.moves_to(disk)?,
                _ => disk.datastore.clone(),
            };
            Some(warning(&disk.name, &datastore, &self.places.state, trouble))
        };
        known.filter_map(tell).collect()
    }

    /// The same of a loss that only a server makes. A daemon that has started since knows no
    /// more when it happened; then it is the last server that the disk has left.
    fn server_of(&self, disk: &DiskRecord, ago: Duration) -> Option<String> {
        let is_server = |name: &String| {
            let handle = self.handle(name);
            handle.is_ok_and(|it| matches!(it.record().location, Location::Nbd(_)))
        };
        let moves = self.store.migrations().unwrap_or_default().into_iter();
        let left = moves
            .filter(|it| it.disk == disk.id && it.step == Step::Completed)
            .map(|it| it.from.datastore)
            .filter(is_server);
        Some(self.was_on(disk, ago)).filter(is_server).or_else(|| left.last())
    }

    /// Where a disk is being moved to.
    fn moves_to(&self, disk: &DiskRecord) -> Option<String> {
        let mut moves = self.store.open_migrations().unwrap_or_default().into_iter();
        moves.find(|it| it.disk == disk.id).map(|it| it.to.datastore)
    }

    /// What the export of a datastore can no longer do, so that disks or their copies there
    /// wait.
    pub(crate) fn lack_of(
        &self,
        datastore: &str,
        disks: &[DiskRecord],
    ) -> Option<String> {
        let known = self.engine.troubles().unwrap_or_default().into_iter();
        let lacks = known.filter_map(|(id, trouble)| match trouble.kind {
            TroubleKind::Lacks { lack, copy } => Some((id, lack, copy)),
            _ => None,
        });
        let here = |id, copy| {
            let disk = disks.iter().find(|disk| disk.id == id)?;
            match copy {
                true => self.moves_to(disk),
                false => Some(disk.datastore.clone()),
            }
        };
        let lack = { lacks }
            .find(|(id, _, copy)| here(*id, *copy).as_deref() == Some(datastore))
            .map(|(_, lack, _)| lack)?;
        Some(format!("the export {lack}; {}", lack.remedy()))
    }

    /// The datastore that a disk was on so long ago: the warning of a loss outlives moves.
    fn was_on(&self, disk: &DiskRecord, ago: Duration) -> String {
        let then = clock::now().saturating_sub(ago.as_secs());
        left_since(then, &self.left_by(disk)).unwrap_or(&disk.datastore).to_owned()
    }

    /// The datastore that a disk was on so many of its moves ago.
    fn before_moves(&self, disk: &DiskRecord, count: u32) -> String {
        let left = if count == 0 { Vec::new() } else { self.left_by(disk) };
        left_before(count, &left).unwrap_or(&disk.datastore).to_owned()
    }

    /// The moves by which a disk has left a datastore, in their order.
    fn left_by(&self, disk: &DiskRecord) -> Vec<MigrationRecord> {
        let mut moves = self.store.migrations().unwrap_or_default();
        let has_left = |step| matches!(step, Step::Committed | Step::Completed);
        moves.retain(|it| it.disk == disk.id && has_left(it.step));
        moves
    }
}

/// What a disk has left first since a moment, of all that it has left, in that order. The end of
/// a move that still cleans up is to come.
fn left_since(then: u64, left: &[MigrationRecord]) -> Option<&str> {
    let first = left.iter().find(|it| it.ended.is_none_or(|ended| ended >= then));
    first.map(|it| it.from.datastore.as_str())
}

/// What it has left by the first of its last `count` moves.
fn left_before(count: u32, left: &[MigrationRecord]) -> Option<&str> {
    let first = left.iter().rev().take(count as usize).next_back();
    first.map(|it| it.from.datastore.as_str())
}

/// So many kinds of work at datastores have no thread.
fn without_thread(kinds: usize) -> Option<Warning> {
    (kinds > 0).then(|| Warning {
        about: "threads".into(),
        message: "requests wait because the system has no thread for them".into(),
        hint: "find the datastores that hang, and check the limit of threads (TasksMax \
               of the service, `ulimit -u`)"
            .into(),
    })
}

fn warning(name: &str, datastore: &str, state: &Path, trouble: Trouble) -> Warning {
    let since = since(trouble.age);
    let (message, hint) = match trouble.kind {
        TroubleKind::Forgot { told, why } => {
            let flush = match told {
                true => "a flush has failed since then, so the client knows",
                false => "the next flush of each client that does not know yet fails",
            };
            let (happened, look) = forgot(why, datastore);
            (
                format!("the disk may have lost writes on {since}: {happened}; {flush}"),
                format!("check the file systems and databases on {name}, and {look}"),
            )
        }
        TroubleKind::AnotherExport => (
            format!(
                "another export answers at the address of datastore {datastore} since \
                 {since}; Sterna does not use it, and requests wait for the right one"
            ),
            format!(
                "start the server with the export that has the bytes of {name}; if its \
                 contents were replaced on purpose, `sterna disk remove {name} \
                 --keep-image`, then `sterna disk import`"
            ),
        ),
        TroubleKind::Lacks { lack, copy } => {
            (lacks(lack, copy, datastore, &since), lack.remedy().into())
        }
        TroubleKind::CannotFlush => (
            format!(
                "since {since} no flush of the disk succeeds: a flush failed, and the \
                 kernel may have dropped writes to datastore {datastore}"
            ),
            format!(
                "check the kernel's log; move {name} to another datastore, or repair \
                 this datastore, restart the daemon and check the disk's file systems"
            ),
        ),
        TroubleKind::Unkept => unkept(name, &state.display()),
        TroubleKind::FailsWrites { count, errno, .. } => {
            fails_writes(name, datastore, &since, (count, errno))
        }
        TroubleKind::Unread { clients } => (
            format!(
                "{} since {since}: its requests wait for that, and not for datastore \
                 {datastore}",
                match clients {
                    1 => "a client reads no answers".to_owned(),
                    many => format!("{many} clients read no answers"),
                }
            ),
            format!(
                "look at the programs that use {name}: a QEMU, or what passes its requests \
                 on, is stopped or hangs"
            ),
        ),
        TroubleKind::Waits { requests } => (
            format!(
                "{} since {since} for an earlier write of another client that does not \
                 end: overtaking that write could destroy newer data",
                match requests {
                    1 => "a request waits".to_owned(),
                    many => format!("{many} requests wait"),
                }
            ),
            format!("find out why datastore {datastore} does not answer"),
        ),
    };
    Warning { about: format!("disk {name}"), message, hint }
}

/// So many writes failed there, the last one so.
fn fails_writes(
    name: &str,
    datastore: &str,
    since: &str,
    (count, errno): (u64, i32),
) -> (String, String) {
    (
        format!(
            "{} of the disk failed on datastore {datastore}, the last on {since}: {}; \
             its clients were told",
            match count {
                1 => "a write".to_owned(),
                many => format!("{many} writes"),
            },
            io::Error::from_raw_os_error(errno)
        ),
        format!(
            "check datastore {datastore} and the kernel's log, then the file systems \
             and databases on {name}"
        ),
    )
}

/// It is not kept whether a disk has unflushed writes.
fn unkept(name: &str, state: &dyn Display) -> (String, String) {
    (
        format!(
            "Sterna cannot note in {state} that the disk has unflushed writes: if the \
             daemon is killed, and the storage then loses such writes, clients are not told"
        ),
        format!(
            "make room in {state} (`df`, `df --inodes`), and in /dev/shm; the daemon's log \
             names the error. Sterna tries again every few seconds. Until then, if the \
             daemon is killed, check the file systems and databases on {name}"
        ),
    )
}

/// What an export lacks that a disk is on, or its copy.
fn lacks(lack: Lack, copy: bool, datastore: &str, since: &str) -> String {
    let waits = match copy {
        true => "the copy of the disk there waits",
        false => "requests wait",
    };
    format!("the export of datastore {datastore} {lack}; {waits} since {since}")
}

/// What happened that may have lost writes, and where to look. The datastore has no name if
/// it is not known which it was.
fn forgot(why: Loss, datastore: &str) -> (&'static str, String) {
    let server = match datastore {
        "" => "in the log which server went away".to_owned(),
        _ => format!("why the server of datastore {datastore} went away"),
    };
    let daemon = "in the log why the daemon ended".to_owned();
    match why {
        Loss::ServerAway => (
            "the NBD server of its image was away with writes that no client had flushed",
            server,
        ),
        Loss::WentBack => (
            "the NBD server of its image came back without writes that it had flushed, as \
             if an older state had been put back",
            match datastore {
                "" => "in the log which server came back so".to_owned(),
                _ => format!(
                    "which state of the image the server of datastore {datastore} has"
                ),
            },
        ),
        Loss::FlushFailed => (
            "a flush of its image failed, and writes that no client had flushed may have \
             been dropped",
            format!("datastore {datastore} and the kernel's log there"),
        ),
        Loss::DaemonEnded => (
            "the daemon before this one ended with writes that no client had flushed, and \
             the NBD server of its image may drop such writes with the connection",
            daemon,
        ),
        Loss::MountedAnew => (
            "the file system of its image was mounted anew, or its device came anew, after \
             the daemon before this one had answered writes that no client had flushed",
            format!("in the kernel's log what happened to datastore {datastore}"),
        ),
        Loss::FlushUnheard => (
            "the daemon before this one ended while the storage of its image was at a flush, \
             or had just failed one; writes that no client had flushed may be lost",
            format!("in the kernel's log what happened to datastore {datastore}"),
        ),
        Loss::Unknown => (
            "the daemon before this one ended, and Sterna does not know whether it left \
             writes that no client had flushed; the storage of its image may have dropped \
             these",
            daemon,
        ),
    }
}

fn since(age: Duration) -> String {
    Local::now().words_ago(age)
}

#[cfg(test)]
mod tests {
    use sterna_state::examples::{disk, migration};

    use super::*;

    fn told(kind: TroubleKind) -> Warning {
        warning(
            "db",
            "far",
            Path::new("/state"),
            Trouble { kind, age: Duration::from_secs(3) },
        )
    }

    /// Moves away from these, which ended then.
    fn left(ends: [(Option<u64>, &str); 3]) -> Vec<MigrationRecord> {
        let one = |(ended, from)| {
            let record = migration(&disk("db", from), "elsewhere");
            MigrationRecord { ended, ..record }
        };
        ends.map(one).into()
    }

    #[test]
    fn a_loss_was_on_the_datastore_that_the_disk_had_then() {
        let all = left([(Some(10), "a"), (Some(20), "b"), (Some(30), "c")]);
        assert_eq!(left_since(15, &all), Some("b"));
        assert_eq!(left_since(20, &all), Some("b"));
        assert_eq!(left_since(31, &all), None);
        let cleans_up = left([(Some(10), "a"), (Some(20), "b"), (None, "c")]);
        assert_eq!(left_since(31, &cleans_up), Some("c"));
    }

    #[test]
    fn writes_failed_on_the_datastore_that_the_disk_had_so_many_moves_ago() {
        let all = left([(Some(10), "a"), (Some(20), "b"), (None, "c")]);
        let before = [0, 1, 2, 9].map(|count| left_before(count, &all));
        assert_eq!(before, [None, Some("c"), Some("b"), Some("a")]);
    }

    #[test]
    fn who_waits_for_a_thread_is_told_of() {
        assert!(without_thread(0).is_none());
        let told = without_thread(2).map(|warning| warning.hint);
        assert!(told.is_some_and(|hint| hint.contains("TasksMax")));
    }

    #[test]
    fn each_trouble_names_the_disk_and_says_what_to_do() {
        let why = Loss::ServerAway;
        let forgot = told(TroubleKind::Forgot { told: false, why });
        assert_eq!(forgot.about, "disk db");
        assert!(
            forgot.message.contains("client that does not know yet fails"),
            "{}",
            forgot.message
        );
        assert!(forgot.hint.contains("datastore far"), "{}", forgot.hint);
        let known = told(TroubleKind::Forgot { told: true, why });
        assert!(known.message.contains("a flush has failed since"), "{}", known.message);
        for why in [Loss::ServerAway, Loss::WentBack] {
            let (_, look) = super::forgot(why, "");
            assert!(!look.contains("datastore"), "it is not known which: {look}");
        }
        for why in [Loss::DaemonEnded, Loss::Unknown] {
            let ended = told(TroubleKind::Forgot { told: false, why });
            assert!(ended.message.contains("the daemon before this one ended"));
            assert!(ended.hint.contains("why the daemon ended"), "{}", ended.hint);
        }
        let why = Loss::FlushFailed;
        let dropped = told(TroubleKind::Forgot { told: false, why });
        assert!(dropped.message.contains("a flush of its image failed"));
        assert!(dropped.hint.contains("datastore far"), "{}", dropped.hint);
        let another = told(TroubleKind::AnotherExport);
        assert!(another.message.starts_with("another export answers at"));
        assert!(another.hint.contains("the bytes of db"), "{}", another.hint);
        let lack = Lack::Writable;
        let lacks = told(TroubleKind::Lacks { lack, copy: false });
        let words = "the export of datastore far can no longer be written";
        assert!(lacks.message.starts_with(words), "{}", lacks.message);
        assert!(lacks.message.contains("requests wait since"), "{}", lacks.message);
        assert_eq!(lacks.hint, "export it writable again");
        let lost = told(TroubleKind::CannotFlush);
        assert!(lost.hint.contains("move db"), "{}", lost.hint);
        let fails = told(TroubleKind::FailsWrites {
            count: 3,
            errno: libc::EPERM,
            moves_since: 0,
        });
        let words = "3 writes of the disk failed on datastore far, the last on ";
        assert!(fails.message.starts_with(words), "{}", fails.message);
        assert!(fails.message.contains("not permitted"), "{}", fails.message);
        let unkept = told(TroubleKind::Unkept);
        assert!(unkept.message.contains("cannot note in /state"), "{}", unkept.message);
        assert!(unkept.hint.contains("make room in /state"), "{}", unkept.hint);
        let unread = told(TroubleKind::Unread { clients: 1 });
        let words = "a client reads no answers since ";
        assert!(unread.message.starts_with(words), "{}", unread.message);
        let waits = told(TroubleKind::Waits { requests: 1 });
        assert!(waits.message.starts_with("a request waits since "), "{}", waits.message);
    }
}
