//! Open files: how many there may be, how many there are, and who may have another.
//!
//! **Rule.** Services are started with a soft limit of 1024 open files and a hard one that is
//! far higher, because some programs cannot take more. The daemon can, and takes the hard one
//! at its start; programs that it starts have the soft one again.
//!
//! Of what it has, a part is kept: for the state and what is under way ([`STATE`]), for the
//! operator, who has to be able to ask and to end something ([`API`]), and for moves
//! ([`MOVES`]). A guest's client is turned away before that (the engine goes by the
//! descriptor's number); a disk, a datastore or a move is refused, with the limit as the
//! reason. So nothing fails for it in its middle. A disk is refused as long as those that
//! there are have no client each: a disk that no guest can reach is of no use.
//!
//! **Special cases.** Where the hard limit is low, too, the parts are smaller. Two that are
//! checked at the same time may both go past the mark: what is kept is for more than that.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Command;
use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sterna_api::{Error, Result, Warning};

use crate::process::with_soft_limit;

/// What a disk has open: its image three times (through the page cache, past it, and to
/// look for holes), and a client.
pub const DISK: u64 = 4;

/// What a move has open: the destination's image, or four connections to its server; the
/// region map's memory and its file; a directory that is synced.
const MOVE: u64 = 8;

/// What a datastore has open while it is looked at, and a server's connections.
pub const DATASTORE: u64 = 6;

/// What a virtual machine has open at a disk that it drives itself: the socket, its
/// memory, and two events for each of some queues.
pub const MACHINE: u64 = 24;

/// Kept for the state (the database, maps, sidecars, directories that are synced) and for
/// programs that are started.
const STATE: u64 = 64;

/// Kept for the API: so many connections it takes at the same time.
const API: u64 = 64;

/// Kept for some moves, which clients cannot take.
const MOVES: u64 = 64;

/// If less than one so-many-th is left of what may be used, that is said.
const NEAR: u64 = 10;

/// The soft limit that there was, for other programs.
static BEFORE: OnceLock<u64> = OnceLock::new();

/// How many files may be open.
#[derive(Clone, Copy, Debug)]
pub struct Descriptors {
    limit: u64,
}

impl Descriptors {
    /// Takes as many as there may be.
    pub fn raise() -> Descriptors {
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        let unlimited = u64::MAX;
        let (soft, hard) = (current.unwrap_or(unlimited), maximum.unwrap_or(unlimited));
        // The first daemon of this process has seen what there was.
        BEFORE.get_or_init(|| soft);
        if soft >= hard {
            return Descriptors { limit: soft };
        }
        let raised = Rlimit { current: maximum, maximum };
        match setrlimit(Resource::Nofile, raised) {
            Ok(()) => Descriptors { limit: hard },
            Err(error) => {
                tracing::warn!(%error, limit = soft, "cannot raise the limit of open files");
                Descriptors { limit: soft }
            }
        }
    }

    /// How many there may be.
    pub fn limit(self) -> u64 {
        self.limit
    }

    /// How many there are.
    pub fn open() -> u64 {
        const TABLE: &str = "/proc/self/fd";
        // Linux 6.2 and later say it as the table's size.
        match fs::metadata(TABLE).map(|table| table.size()) {
            Ok(count @ 1..) => count,
            _ => fs::read_dir(TABLE).map_or(0, |table| table.count() as u64),
        }
    }

    /// How many connections the API takes.
    pub fn of_api(self) -> usize {
        self.part(API, 8) as usize
    }

    /// The first descriptor that no guest's client gets.
    pub fn of_guests(self) -> i32 {
        i32::try_from(self.for_guests()).unwrap_or(i32::MAX)
    }

    /// How many there may be of disks and their clients.
    fn for_guests(self) -> u64 {
        self.for_moves() - self.part(MOVES, 8)
    }

    /// How many there may be of these and of moves.
    fn for_moves(self) -> u64 {
        self.limit - self.part(STATE, 8) - self.part(API, 8)
    }

    /// What is kept for something; no more than one so-many-th of a low limit.
    fn part(self, kept: u64, of: u64) -> u64 {
        kept.min(self.limit / of).max(1).min(self.limit / 4)
    }

    /// Refuses a move, if it would need more than there may be.
    pub fn check_move(self, what: &str) -> Result<()> {
        self.check(what, MOVE, Descriptors::open(), self.for_moves())
    }

    /// Refuses what needs so many more than there may be, if so many disks have no client
    /// yet: each of them may get one.
    pub fn check_new(self, what: &str, needed: u64, without: u64) -> Result<()> {
        self.check(what, needed, Descriptors::open() + without, self.for_guests())
    }

    fn check(self, what: &str, needed: u64, taken: u64, most: u64) -> Result<()> {
        if taken + needed <= most {
            return Ok(());
        }
        let limit = self.limit;
        Err(Error::unavailable(format!(
            "{what} needs up to {needed} open files, and the limit of open files ({limit}) \
             would be reached: {taken} of {most} are taken, and the rest is kept for the \
             state, the API and moves"
        ))
        .hint(HINT))
    }

    /// That it will soon be so, if so many disks have no client yet.
    pub fn warning(self, without: u64) -> Option<Warning> {
        self.warning_with(Descriptors::open(), without)
    }

    fn warning_with(self, open: u64, without: u64) -> Option<Warning> {
        let most = self.for_guests();
        let is_near = open + without + most / NEAR >= most;
        is_near.then(|| Warning {
            about: "open files".into(),
            message: format!(
                "{open} are open, and {without} are kept for clients of disks that have \
                 none; past {most} of {}, new disks and clients are refused",
                self.limit
            ),
            hint: HINT.into(),
        })
    }
}

/// What to do about it.
pub const HINT: &str = "raise the hard limit of open files: LimitNOFILE= in the daemon's unit, \
                        or `ulimit -Hn` before its start; the daemon takes all of it by itself";

/// What a daemon without disks has open, and a few more: what it reads at its start would fail
/// for another reason each time.
const START: u64 = 32;

/// Refuses to start a daemon that may not have that many.
pub fn check_start() -> Result<()> {
    check_limit(getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX))
}

fn check_limit(hard: u64) -> Result<()> {
    if hard >= START {
        return Ok(());
    }
    let message = format!(
        "the daemon needs {START} open files to start, and the hard limit is {hard}"
    );
    Err(Error::unavailable(message).hint(HINT))
}

/// Has a program begin with the limit that this one began with.
pub fn as_before(command: &mut Command) {
    if let Some(before) = BEFORE.get() {
        with_soft_limit(command, *before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_kept_from_guests_and_disks_first_and_from_moves_then() {
        let usual = Descriptors { limit: 524_288 };
        let most = 524_288 - 192;
        assert_eq!((usual.of_guests(), usual.of_api()), (most as i32, 64));
        assert!(usual.check("disk a", DISK, most - 4, usual.for_guests()).is_ok());
        let refused = usual.check("disk a", DISK, most - 3, usual.for_guests());
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("the limit of open files (524288) would be reached"));
        assert!(refused.contains("524093 of 524096 are taken"), "{refused}");
        assert!(usual.check("a move", MOVE, most, usual.for_moves()).is_ok());
        assert!(usual.check("a move", MOVE, most + 60, usual.for_moves()).is_err());
    }

    #[test]
    fn of_a_low_limit_less_is_kept() {
        let low = Descriptors { limit: 256 };
        assert_eq!((low.of_api(), low.of_guests(), low.for_moves()), (32, 160, 192));
        let tiny = Descriptors { limit: 8 };
        assert_eq!((tiny.of_api(), tiny.of_guests(), tiny.for_moves()), (1, 5, 6));
    }

    #[test]
    fn a_daemon_does_not_start_with_less_than_it_has_open_without_disks() {
        let refused = check_limit(START - 1).unwrap_err();
        assert!(refused.message.contains("needs 32 open files"), "{refused:?}");
        assert!(refused.message.contains("the hard limit is 31"), "{refused:?}");
        assert!(refused.hint.contains("LimitNOFILE="), "{refused:?}");
        assert!(check_limit(START).is_ok());
    }

    #[test]
    fn a_limit_that_is_near_is_a_warning() {
        let usual = Descriptors { limit: 1024 };
        assert_eq!(usual.warning_with(690, 10), None);
        let warning = usual.warning_with(690, 60).unwrap();
        let said = "690 are open, and 60 are kept for clients of disks that have none; past \
                    832 of 1024, new disks and clients are refused";
        assert_eq!(warning.message, said);
    }

    #[test]
    fn what_is_open_is_counted() {
        let before = Descriptors::open();
        let files: Vec<_> =
            (0..40).map(|_| fs::File::open("/dev/null").unwrap()).collect();
        // Other tests open and close some meanwhile.
        assert!(Descriptors::open() > before + 20, "{before}");
        drop(files);
    }
}
