//! What the next daemon owes a disk's clients, when one has ended.
//!
//! A daemon that is killed loses its connections to a server and its descriptors of files, and
//! with them what it knew: that there were writes which it had answered and no flush had
//! covered. Its clients go on with the next daemon, and take the answer to their next flush
//! for an answer about all they have written. So each disk has an *account* that outlives its
//! daemon: for each place of an image, whether such writes are there, and whether clients are
//! still to be told of a loss.
//!
//! # Rule
//!
//! - A server whose connections *share* one cache (`CAN_MULTI_CONN`) covers, with a flush on
//!   any connection, what was written on all earlier ones. Nothing is lost with the daemon;
//!   the next one *inherits* the writes, as if it had written them itself: a connection that
//!   it loses before a flush may have lost them.
//! - Any other server may drop with a connection what was not flushed on it, and a flush on
//!   the next one says nothing of that. There the end of the daemon is a loss. It counts as
//!   one, too, where only one of the two sessions says that connections share: then the
//!   server is not what it was.
//! - For a file or a device on this machine, the *kernel* keeps what was written for as long as
//!   the file system is mounted, or the device is there: the next daemon inherits the writes.
//!   If the image is found in another mounting (the file system had failed, or was unmounted),
//!   what no flush had covered may be gone, and nothing else tells of that. A place that is
//!   not known again (a file server before Linux 6.8) has no line, and no such rule.
//! - A flush that had been under way for [`LONG_FLUSH`] when the daemon ended may have failed
//!   since. Whoever flushes next is not told of that: the kernel, or the server, has told the
//!   daemon that is gone. So it counts as a loss. Of a shorter one Sterna assumes that it ends
//!   well: a busy disk always has one under way.
//! - A loss that was known, and that a client is not known to have heard of, is owed on,
//!   wherever the image is: a failed flush loses writes to a file as well.
//! - The account counts clients: the next daemon tells as many of those that come back as
//!   were there, if the end of the daemon is the loss, and else as many as had not heard.
//!   Where their number is not known, one has to hear it.
//! - A daemon that ends well flushes first, so it leaves nothing; where it could not, it
//!   leaves what a killed one does.
//! - The account is gone with the machine: so are the guests there. A client on another
//!   machine is told nothing, whatever the datastore is: a loss of power takes what was not
//!   flushed.
//! - What cannot be read may have said anything: a flush that fails for nothing costs a look
//!   at a file system, and one that succeeds for nothing costs data. If only the memory is gone
//!   (a container was made anew), the record still says whether something was owed, and in
//!   which mounting the file was: if that is the same, the next daemon inherits the writes.

use crate::Nanos;

/// Storage that fails a flush does so after its own time-outs, of half a minute mostly; storage
/// that is well hardly ever needs so long, although busy disks take seconds.
pub const LONG_FLUSH: Nanos = Nanos::from_secs(5);

/// Why writes that clients were answered may be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The server was away, or a connection to it.
    ServerAway,
    /// The server came back in an older state: what was flushed is gone as well.
    WentBack,
    /// A flush of the image failed, so that whoever caches writes may have dropped them.
    FlushFailed,
    /// The daemon ended with them, and its connections.
    DaemonEnded,
    /// The daemon ended, and whether there were any is not known.
    Unknown,
    /// The daemon ended while a flush of them was under way for long.
    FlushUnheard,
    /// The file system was mounted anew since they were answered, or the device came anew.
    MountedAnew,
}

/// Who keeps what is written to an image until a flush covers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeper {
    /// A server, as the image is connected to it.
    Server {
        /// What its address comes to.
        address: u32,
        /// Whether its connections share one cache.
        shares: bool,
    },
    /// This machine's kernel.
    Kernel {
        /// What the file in this mounting comes to, or this coming of the device.
        address: u32,
    },
}

/// What an account says of one keeper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// Which, as it was then.
    pub keeper: Keeper,
    /// Whether it had answered writes that no flush had covered.
    pub unflushed: bool,
    /// Whether a flush of them had been under way for [`LONG_FLUSH`], or was the last one.
    pub doubtful: bool,
}

impl Keeper {
    /// Whether the next daemon finds with it what the one before has written.
    fn shares(self) -> bool {
        match self {
            Keeper::Server { shares, .. } => shares,
            Keeper::Kernel { .. } => true,
        }
    }

    /// Whether it is the same one, whatever it shares.
    fn is(self, other: Keeper) -> bool {
        match (self, other) {
            (Keeper::Server { address: one, .. }, Keeper::Server { address, .. })
            | (Keeper::Kernel { address: one }, Keeper::Kernel { address }) => {
                one == address
            }
            _ => false,
        }
    }

    /// Whether both are servers, or both the kernel.
    fn is_alike(self, other: Keeper) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }
}

/// The clients of a disk, counted: nobody can say who they will be for the next daemon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clients {
    /// All that are there, or may come back.
    pub all: u32,
    /// Those of them that are not known to have heard of a loss.
    pub owed: u32,
}

impl Clients {
    /// More are not counted.
    pub const MOST: u32 = u16::MAX as u32;
}

/// What is found of the daemon that had a disk before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Past {
    /// No daemon has had it on a server, or the last one ended well.
    Nothing,
    /// The machine was started anew since then.
    OtherBoot,
    /// An account that is damaged, or of something else.
    Unreadable,
    /// An account of which only the record is left.
    MemoryGone {
        /// Clients were to be told of a loss.
        owed: bool,
        /// Who kept what was written, if that was this machine's kernel.
        kernel: Option<Keeper>,
    },
    /// An account.
    Account {
        /// A loss that a client is not known to have heard of.
        owed: Option<Loss>,
        /// The clients of then.
        clients: Clients,
        /// The keepers: the disk's, and during a move that of the copy.
        lines: Vec<Line>,
    },
}

/// What follows from it for the daemon that has the disk now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Legacy {
    /// Clients are to be told of this.
    pub owes: Option<Loss>,
    /// So many clients come back, and so many of them are to be told.
    pub clients: Clients,
    /// The disk's keeper has answered writes that no flush has covered.
    pub unflushed: bool,
}

impl Past {
    /// What a daemon takes over that has the disk's image with this keeper now, or in a file
    /// that is not known again.
    pub fn legacy(&self, now: Option<Keeper>) -> Legacy {
        match (self, now) {
            (Past::Nothing | Past::OtherBoot, _) => Legacy::default(),
            (Past::Unreadable, Some(Keeper::Server { shares, .. })) => {
                unflushed(shares, Loss::Unknown).with(Clients::default())
            }
            (Past::Unreadable, now) => {
                // A file has what was written all the same, if it is where it was.
                let unflushed = now.is_some();
                let owes = Some(Loss::Unknown);
                Legacy { owes, unflushed, ..Legacy::default() }.with(Clients::default())
            }
            (Past::MemoryGone { owed, kernel }, now) => {
                let shares = now.is_some_and(|now| match now {
                    Keeper::Server { shares, .. } => shares,
                    Keeper::Kernel { .. } => kernel.is_some_and(|then| then.is(now)),
                });
                let left = unflushed(shares, Loss::Unknown);
                let owes = left.owes.or(owed.then_some(Loss::Unknown));
                Legacy { owes, ..left }.with(Clients::default())
            }
            (Past::Account { owed, clients, lines }, now) => {
                let legacy = now.map_or_else(Legacy::default, |now| of(lines, now));
                // What the daemon took with it concerns all of them.
                let told_of =
                    if legacy.owes.is_some() { clients.all } else { clients.owed };
                let owes = owed.or(legacy.owes);
                Legacy { owes, ..legacy }.with(Clients { owed: told_of, ..*clients })
            }
        }
    }
}

impl Legacy {
    /// With these clients; somebody has to be told if anything is owed.
    fn with(self, clients: Clients) -> Legacy {
        let owed = self.owes.map_or(0, |_| clients.owed.max(1));
        Legacy { clients: Clients { all: clients.all.max(owed), owed }, ..self }
    }
}

fn of(lines: &[Line], now: Keeper) -> Legacy {
    let is_here = |line: &&Line| line.keeper.is(now);
    let here = lines.iter().filter(is_here).count();
    let mut open = lines.iter().filter(|line| line.unflushed);
    match here {
        0 if open.any(|line| line.keeper.is_alike(now)) => match now {
            // The image is where no daemon has had it: somebody has moved the account.
            Keeper::Server { shares, .. } => unflushed(shares, Loss::Unknown),
            Keeper::Kernel { .. } => unflushed(false, Loss::MountedAnew),
        },
        0 => Legacy::default(),
        _ => {
            let open: Vec<&Line> = open.filter(is_here).collect();
            let shares = now.shares() && open.iter().all(|line| line.keeper.shares());
            match open.is_empty() {
                true => Legacy::default(),
                false if shares && open.iter().any(|line| line.doubtful) => Legacy {
                    owes: Some(Loss::FlushUnheard),
                    ..unflushed(shares, Loss::FlushUnheard)
                },
                false => unflushed(shares, Loss::DaemonEnded),
            }
        }
    }
}

/// What writes come to that no flush has covered.
fn unflushed(shares: bool, loss: Loss) -> Legacy {
    match shares {
        true => Legacy { unflushed: true, ..Legacy::default() },
        false => Legacy { owes: Some(loss), ..Legacy::default() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: u32 = 7;
    const THERE: u32 = 8;

    fn server(address: u32, shares: bool) -> Keeper {
        Keeper::Server { address, shares }
    }

    fn line(address: u32, shares: bool, unflushed: bool) -> Line {
        Line { keeper: server(address, shares), unflushed, doubtful: false }
    }

    fn kernel(address: u32) -> Keeper {
        Keeper::Kernel { address }
    }

    fn file(address: u32, unflushed: bool) -> Line {
        Line { keeper: kernel(address), unflushed, doubtful: false }
    }

    /// Three clients were there, and one of them had not heard of an earlier loss.
    const CLIENTS: Clients = Clients { all: 3, owed: 1 };

    fn left(lines: &[Line]) -> Past {
        Past::Account { owed: None, clients: CLIENTS, lines: lines.to_vec() }
    }

    const NOTHING: Legacy =
        Legacy { owes: None, clients: Clients { owed: 0, ..CLIENTS }, unflushed: false };
    const INHERITED: Legacy = Legacy { unflushed: true, ..NOTHING };

    fn owes(loss: Loss) -> Legacy {
        let clients = Clients { all: 3, owed: 3 };
        Legacy { owes: Some(loss), clients, unflushed: false }
    }

    #[test]
    fn what_a_killed_daemon_leaves_depends_on_the_server_of_then_and_of_now() {
        let lost = owes(Loss::DaemonEnded);
        // Whether connections shared then, whether all was flushed, whether they share now.
        let table = [
            (false, true, false, lost),
            (false, true, true, lost),
            (true, true, false, lost),
            (true, true, true, INHERITED),
            (false, false, false, NOTHING),
            (false, false, true, NOTHING),
            (true, false, false, NOTHING),
            (true, false, true, NOTHING),
        ];
        for (then, unflushed, now, legacy) in table {
            let past = left(&[line(HERE, then, unflushed)]);
            let found = past.legacy(Some(server(HERE, now)));
            assert_eq!(found, legacy, "{then} {unflushed} {now}");
        }
    }

    #[test]
    fn after_a_good_end_or_another_boot_nothing_is_owed() {
        for now in [None, Some(server(HERE, false)), Some(server(HERE, true))] {
            for past in [Past::Nothing, Past::OtherBoot] {
                assert_eq!(past.legacy(now), Legacy::default(), "{past:?}");
            }
            assert_eq!(left(&[]).legacy(now), NOTHING);
        }
    }

    #[test]
    fn what_cannot_be_read_counts_as_a_loss_where_there_may_have_been_one() {
        let past = Past::Unreadable;
        // Nor how many clients there were.
        let clients = Clients { all: 1, owed: 1 };
        let lost = Legacy { clients, ..owes(Loss::Unknown) };
        assert_eq!(past.legacy(Some(server(HERE, false))), lost);
        let inherited = Legacy { clients: Clients::default(), ..INHERITED };
        assert_eq!(past.legacy(Some(server(HERE, true))), inherited);
        // A disk in a file has an account because there was something to tell.
        assert_eq!(past.legacy(None), lost);
    }

    #[test]
    fn during_a_move_the_image_that_is_the_truth_decides() {
        let (open, flushed) = (line(HERE, false, true), line(THERE, false, false));
        let past = left(&[open, flushed]);
        assert_eq!(past.legacy(Some(server(HERE, false))), owes(Loss::DaemonEnded));
        // The copy was flushed when it became the truth.
        assert_eq!(past.legacy(Some(server(THERE, false))), NOTHING);
        // The copy of a disk in a file is compared.
        assert_eq!(left(&[open]).legacy(None), NOTHING);
    }

    #[test]
    fn an_account_that_says_nothing_of_the_server_may_be_another_ones() {
        let past = left(&[line(THERE, true, true)]);
        assert_eq!(past.legacy(Some(server(HERE, false))), owes(Loss::Unknown));
        assert_eq!(past.legacy(Some(server(HERE, true))), INHERITED);
        let past = left(&[line(THERE, true, false)]);
        assert_eq!(past.legacy(Some(server(HERE, false))), NOTHING);
    }

    #[test]
    fn a_file_in_another_mounting_may_lack_what_was_not_flushed() {
        let left = |unflushed| left(&[file(HERE, unflushed)]);
        assert_eq!(left(true).legacy(Some(kernel(HERE))), INHERITED);
        assert_eq!(left(true).legacy(Some(kernel(THERE))), owes(Loss::MountedAnew));
        for now in [HERE, THERE] {
            assert_eq!(left(false).legacy(Some(kernel(now))), NOTHING);
        }
        // Moved there, and not from there.
        let past = left(true);
        assert_eq!(past.legacy(Some(server(HERE, false))), NOTHING);
        assert_eq!(past.legacy(None), NOTHING);
    }

    #[test]
    fn a_flush_that_took_long_when_the_daemon_ended_may_have_failed() {
        for keeper in [kernel(HERE), server(HERE, true)] {
            let past = left(&[Line { keeper, unflushed: true, doubtful: true }]);
            let told = Legacy { unflushed: true, ..owes(Loss::FlushUnheard) };
            assert_eq!(past.legacy(Some(keeper)), told, "{keeper:?}");
            // All was flushed: nothing can be lost.
            let past = left(&[Line { keeper, unflushed: false, doubtful: true }]);
            assert_eq!(past.legacy(Some(keeper)), NOTHING, "{keeper:?}");
        }
        // That of a copy which did not become the truth says nothing of the disk.
        let copy = Line { doubtful: true, ..file(THERE, true) };
        assert_eq!(left(&[file(HERE, true), copy]).legacy(Some(kernel(HERE))), INHERITED);
    }

    #[test]
    fn without_its_memory_an_account_says_what_was_owed_and_which_mounting_it_was() {
        let gone = |owed| Past::MemoryGone { owed, kernel: Some(kernel(HERE)) };
        let one = Clients { all: 1, owed: 1 };
        let lost = Legacy { clients: one, ..owes(Loss::Unknown) };
        let inherited = Legacy { clients: Clients::default(), ..INHERITED };
        assert_eq!(gone(false).legacy(Some(kernel(HERE))), inherited);
        assert_eq!(gone(false).legacy(Some(kernel(THERE))), lost);
        let both = Legacy { unflushed: true, ..lost };
        assert_eq!(gone(true).legacy(Some(kernel(HERE))), both);
        assert_eq!(gone(true).legacy(Some(server(HERE, true))), both);
        assert_eq!(gone(false).legacy(None), lost);
        let past = Past::MemoryGone { owed: false, kernel: None };
        assert_eq!(past.legacy(Some(kernel(HERE))), lost);
        // Nor does a record that cannot be read say that nothing was owed.
        assert_eq!(Past::Unreadable.legacy(Some(kernel(HERE))), both);
    }

    #[test]
    fn a_move_that_was_killed_after_its_commit_has_left_the_file_with_what_was_unflushed()
    {
        let (source, copy) = (file(HERE, true), file(THERE, false));
        assert_eq!(left(&[source, copy]).legacy(Some(kernel(THERE))), NOTHING);
        assert_eq!(left(&[source, copy]).legacy(Some(kernel(HERE))), INHERITED);
    }

    #[test]
    fn somebody_is_told_although_nobody_was_there() {
        let lines = vec![line(HERE, false, true)];
        let past = Past::Account { owed: None, clients: Clients::default(), lines };
        let legacy = past.legacy(Some(server(HERE, false)));
        assert_eq!(legacy.clients, Clients { all: 1, owed: 1 });
    }

    #[test]
    fn what_was_owed_is_owed_on_wherever_the_disk_is() {
        for loss in
            [Loss::ServerAway, Loss::FlushFailed, Loss::DaemonEnded, Loss::Unknown]
        {
            for now in [None, Some(server(HERE, false)), Some(server(HERE, true))] {
                let lines = vec![line(HERE, true, true)];
                let past = Past::Account { owed: Some(loss), clients: CLIENTS, lines };
                let legacy = past.legacy(now);
                assert_eq!(legacy.owes, Some(loss), "{now:?}");
                // All are to be told where the daemon took something with it.
                let all = now.is_some_and(|now| !now.shares());
                assert_eq!(legacy.clients.owed, if all { 3 } else { 1 }, "{now:?}");
                // What the server has of the last one is its own matter.
                assert_eq!(legacy.unflushed, now.is_some_and(Keeper::shares));
            }
        }
    }
}
