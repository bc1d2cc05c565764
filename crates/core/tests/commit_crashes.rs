//! The commit against every crash: all the ways in which a migration can be prepared,
//! committed, called off, tried again, killed, cut off by a power loss and taken up again,
//! one after the other, as often as it likes.
//!
//! Record and state each have what is read (the page cache) and what a power loss leaves
//! (the medium); the record's file has a name, too, which a power loss may take. A write
//! reaches the one and then the other, or fails anywhere between; a kill takes neither, a
//! power loss the first. The record's file may be missing, torn, of another switch-over
//! (a state from a backup was restored), or not to be read for a while. A guest that was
//! answered by one side leaves the other one behind, until the next switch-over has made
//! both equal. What must hold, whatever comes: no side that is behind is ever served, and
//! no source that was freed.
//!
//! **Where the model is kinder than the world.** A record that was written durably is there
//! until it is overwritten or removed: no medium loses it later, and no directory loses a name
//! that was made durable. A write that was refused for want of room is not on its way to the
//! medium any more; each other one that failed may be, though the record is read as it was
//! before, until a later write is durable. A record that cannot be read is no other one later.
//! A record is of this switch-over, or of one that has nothing to do with it: what its bytes
//! say is `commit::record`'s own test. SQLite keeps what it has made durable. That fences are
//! durable, and which image a recovery without a state takes, is not in here; nor are
//! operators who edit files.

use std::collections::HashSet;

use sterna_core::commit::{Commitment, Do, Found, Stated, Written};
use sterna_core::mirror::Commit;

/// How many switch-overs are tried; what comes in a later one is what came in these.
const ATTEMPTS: u8 = 3;

/// What must not come about.
const LOSSES: [&str; 3] = [
    "the guest goes back to the source",
    "the source is the truth and gone",
    "the destination lacks writes",
];

/// A file: what is read of it, and what is on the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Kept<T> {
    read: T,
    medium: T,
}

/// What the record's file says, and of which attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Record {
    /// There is no file.
    Missing,
    /// It is new, or a write to it was torn.
    Nothing,
    /// A commit of another switch-over.
    Stale,
    Prepared(u8),
    Committed(u8),
}

/// What the state says, and how many attempts there were.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    Copying(u8),
    Switching(u8),
    Committed,
}

/// What the daemon is at; a crash makes it start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Daemon {
    /// The source is served and copied; a switch-over may be tried.
    Copies,
    /// The state says that a switch-over was begun; its record is made.
    Prepares(u8),
    /// The record is there; the destination is sealed, or that is called off.
    Seals(u8),
    Commits(u8, Commitment),
    /// The switch-over is off, and the state is to say so.
    Fences,
    /// It has started, and serves nothing yet.
    Starts,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct World {
    record: Kept<Record>,
    /// Whether the name of the record's file is durable.
    named: bool,
    state: Kept<State>,
    daemon: Daemon,
    /// The guest has had answers that this side does not know.
    source_is_behind: bool,
    destination_is_behind: bool,
    freed: bool,
}

/// What a world's daemon does otherwise than it should, or what the world does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// The source is freed as soon as the record is written, wherever that is.
    FreesAtOnce,
    /// What is found after a crash is believed as it is read.
    BelievesWhatItReads,
    /// An outcome that is not clear is taken for a failure.
    TakesUnclearForAbsent,
    /// The record goes before the state has what it says.
    DropsEarly,
    /// What the state says at a start is not made durable.
    TrustsTheState,
    /// A record of another switch-over is taken for this one's.
    BelievesAStaleRecord,
    /// A record that cannot be read is taken for none.
    TakesUnreadableForNothing,
    /// Whoever gives the migration up does not look at the record.
    FencesUnasked,
    /// A file that is there is taken to have a durable name.
    LeavesTheName,
    /// A write that failed is taken for absent because the record is read as it was before.
    TakesUnreadForAbsent,
}

/// How a write to the state may end, and whether the daemon hears of its success.
fn states(old: Kept<State>, new: State) -> [(Kept<State>, bool); 4] {
    [
        (Kept { read: new, medium: new }, true),
        (Kept { read: new, medium: new }, false),
        (Kept { read: new, ..old }, false),
        (old, false),
    ]
}

impl World {
    /// A migration that copies, with this in the record's file.
    fn new(record: Record) -> World {
        World {
            record: Kept { read: record, medium: record },
            named: record != Record::Missing,
            state: Kept { read: State::Copying(0), medium: State::Copying(0) },
            daemon: Daemon::Copies,
            source_is_behind: false,
            destination_is_behind: true,
            freed: false,
        }
    }

    fn serve_source(&mut self) {
        assert!(!self.source_is_behind, "{}: {self:?}", LOSSES[0]);
        assert!(!self.freed, "{}: {self:?}", LOSSES[1]);
        self.destination_is_behind = true;
    }

    fn serve_destination(&mut self) {
        assert!(!self.destination_is_behind, "{}: {self:?}", LOSSES[2]);
        self.source_is_behind = true;
    }

    /// The worlds in which a crash leaves this one.
    fn crash(&self, to: &mut Vec<World>) {
        let mut after = World { daemon: Daemon::Starts, ..*self };
        to.push(after); // A kill.
        // A power loss; what was on its way to the medium may have come there.
        for state in [self.state.medium, self.state.read] {
            after.state = Kept { read: state, medium: state };
            for record in [self.record.medium, self.record.read] {
                after.record = Kept { read: record, medium: record };
                after.named = record != Record::Missing;
                to.push(after);
            }
            if !self.named {
                after.record = Kept { read: Record::Missing, medium: Record::Missing };
                after.named = false;
                to.push(after);
            }
        }
    }

    /// What is found of an attempt.
    fn found(&self, attempt: u8, fault: Fault) -> Found {
        match self.record.read {
            Record::Committed(of) if of == attempt => Found::Committed,
            Record::Prepared(of) if of == attempt => Found::Prepared,
            Record::Stale if fault == Fault::BelievesAStaleRecord => Found::Committed,
            _ => Found::Nothing,
        }
    }

    /// The worlds that come of what the daemon does next.
    fn act(&self, fault: Fault, to: &mut Vec<World>) {
        match (self.daemon, self.state.read) {
            // One that was begun, and of which the daemon was not told, is called off first.
            (Daemon::Copies | Daemon::Fences, State::Switching(attempt)) => {
                self.fence(attempt, fault, to);
            }
            (Daemon::Copies | Daemon::Fences, State::Copying(attempt)) => {
                if attempt < ATTEMPTS {
                    let attempt = attempt + 1;
                    for (state, told) in states(self.state, State::Switching(attempt)) {
                        let next =
                            if told { Daemon::Prepares(attempt) } else { Daemon::Copies };
                        to.push(World { state, daemon: next, ..*self });
                    }
                }
            }
            (Daemon::Prepares(attempt), _) => self.prepare(attempt, fault, to),
            (Daemon::Seals(attempt), _) => {
                to.push(World { daemon: Daemon::Fences, ..*self });
                // The guest is held: both sides have all of it.
                let daemon = Daemon::Commits(attempt, Commitment::asked());
                to.push(World { destination_is_behind: false, daemon, ..*self });
            }
            (Daemon::Commits(attempt, commit), _) => {
                self.commit(attempt, commit, fault, to);
            }
            (Daemon::Starts, _) => self.start(fault, to),
            (Daemon::Copies | Daemon::Fences, State::Committed) => {
                panic!("the state is ahead of the daemon: {self:?}");
            }
        }
    }

    /// Makes the record's file, if it is not there, and has it say that it was begun. A
    /// failure calls the switch-over off.
    fn prepare(&self, attempt: u8, fault: Fault, to: &mut Vec<World>) {
        if self.record.read == Record::Missing {
            let record = Kept { read: Record::Nothing, medium: Record::Nothing };
            to.push(World { record, named: false, daemon: Daemon::Fences, ..*self });
            to.push(World { record, named: false, ..*self });
            return;
        }
        if !self.named && fault != Fault::LeavesTheName {
            to.push(World { daemon: Daemon::Fences, ..*self });
            to.push(World { named: true, ..*self });
            return;
        }
        for (record, written) in self.writes(Record::Prepared(attempt), Fault::None) {
            let daemon = match written {
                Written::Durable => Daemon::Seals(attempt),
                Written::Absent | Written::Unclear => Daemon::Fences,
            };
            to.push(World { record, daemon, ..*self });
        }
    }

    /// Calls a switch-over off: the source outranks the destination, and the state says so.
    fn fence(&self, attempt: u8, fault: Fault, to: &mut Vec<World>) {
        // Where it cannot be read, nothing is done, as where it says "committed".
        let looks = fault != Fault::FencesUnasked;
        if looks && self.found(attempt, fault) == Found::Committed {
            return;
        }
        for (state, told) in states(self.state, State::Copying(attempt)) {
            let mut next = World { state, ..*self };
            if told {
                next.daemon = Daemon::Copies;
                next.serve_source();
            }
            to.push(next);
        }
    }

    fn start(&self, fault: Fault, to: &mut Vec<World>) {
        let mut next = *self;
        if fault != Fault::TrustsTheState {
            next.state.medium = next.state.read;
        }
        let (attempt, stated) = match next.state.read {
            State::Copying(_) => {
                next.daemon = Daemon::Copies;
                next.serve_source();
                return to.push(next);
            }
            State::Switching(attempt) => (attempt, Stated::Switching),
            // The record is not asked.
            State::Committed => (0, Stated::Committed),
        };
        if stated == Stated::Switching {
            // Somebody gives it up; or the record cannot be read, and it starts again later.
            let unreadable = fault == Fault::TakesUnreadableForNothing;
            let unasked = if unreadable { Fault::FencesUnasked } else { fault };
            next.fence(attempt, unasked, to);
        }
        match Commitment::found(next.found(attempt, fault), stated) {
            // The source is fenced first, and then served.
            None => next.fence(attempt, fault, to),
            Some(mut commit) => {
                if fault == Fault::BelievesWhatItReads {
                    commit.written(Written::Durable);
                }
                if commit.is_certain() {
                    next.serve_destination();
                }
                to.push(World { daemon: Daemon::Commits(attempt, commit), ..next });
            }
        }
    }

    fn commit(&self, attempt: u8, commit: Commitment, fault: Fault, to: &mut Vec<World>) {
        match commit.next() {
            Do::Write => {
                for (record, written) in self.writes(Record::Committed(attempt), fault) {
                    let mut next = World { record, ..*self };
                    let unclear = fault == Fault::TakesUnclearForAbsent;
                    let heard = match written {
                        Written::Unclear if unclear => Written::Absent,
                        written => written,
                    };
                    next.freed |= fault == Fault::FreesAtOnce;
                    next.go_on(attempt, commit, |commit| commit.written(heard));
                    to.push(next);
                }
            }
            Do::Erase => {
                for (record, written) in
                    self.writes(Record::Prepared(attempt), Fault::None)
                {
                    let mut next = World { record, ..*self };
                    if written == Written::Durable {
                        next.go_on(attempt, commit, Commitment::erased);
                    }
                    to.push(next);
                }
            }
            Do::Answer(Commit::Durable) => {
                let mut next = *self;
                next.serve_destination();
                next.go_on(attempt, commit, Commitment::answered);
                to.push(next);
            }
            Do::Answer(_) => {
                let mut next = World { daemon: Daemon::Fences, ..*self };
                next.serve_source();
                to.push(next);
            }
            Do::Tell => {
                for (state, told) in states(self.state, State::Committed) {
                    let mut next = World { state, ..*self };
                    if fault == Fault::DropsEarly {
                        next.record =
                            Kept { read: Record::Missing, medium: Record::Missing };
                    }
                    if told {
                        next.go_on(attempt, commit, Commitment::told);
                    }
                    to.push(next);
                }
            }
            Do::Free => {
                let mut next = World { freed: true, ..*self };
                next.go_on(attempt, commit, Commitment::freed);
                to.push(next);
            }
            Do::Drop => {
                for medium in [Record::Missing, self.record.medium] {
                    let record = Kept { read: Record::Missing, medium };
                    let mut next = World { record, ..*self };
                    next.go_on(attempt, commit, Commitment::dropped);
                    to.push(next);
                }
            }
            Do::End => {}
        }
    }

    /// How a write of the record may end, and where it is then. One that brings what is
    /// on the medium already changes nothing there, however far it gets.
    fn writes(&self, new: Record, fault: Fault) -> [(Kept<Record>, Written); 6] {
        let old = self.record;
        let torn = if old.medium == new { new } else { Record::Nothing };
        let unread = match fault {
            Fault::TakesUnreadForAbsent => Written::Absent,
            _ => Written::Unclear,
        };
        [
            (Kept { read: new, medium: new }, Written::Durable),
            (old, Written::Absent),
            // A server has the write still, and does it later.
            (Kept { medium: new, ..old }, unread),
            (Kept { read: new, ..old }, Written::Unclear),
            (Kept { read: new, medium: new }, Written::Unclear),
            (Kept { read: new, medium: torn }, Written::Unclear),
        ]
    }

    fn go_on(
        &mut self,
        attempt: u8,
        mut commit: Commitment,
        how: impl FnOnce(&mut Commitment),
    ) {
        how(&mut commit);
        // A start that has made it certain serves at once; a guest that waits is answered.
        if commit.is_certain() && commit.next() == Do::Tell {
            self.serve_destination();
        }
        self.daemon = Daemon::Commits(attempt, commit);
    }
}

/// Looks at every world that can be reached; gives how many there are.
fn explore(fault: Fault) -> usize {
    let mut known = HashSet::new();
    let mut left =
        [Record::Missing, Record::Nothing, Record::Stale].map(World::new).to_vec();
    let mut next = Vec::new();
    while let Some(world) = left.pop() {
        if !known.insert(world) {
            continue;
        }
        world.act(fault, &mut next);
        world.crash(&mut next);
        left.append(&mut next);
    }
    known.len()
}

#[test]
fn no_crash_loses_a_write_or_goes_back_behind_a_commit() {
    let worlds = explore(Fault::None);
    println!("{worlds} worlds");
    assert!(worlds > 500, "only {worlds} worlds were reached");
}

#[test]
fn the_model_finds_a_source_that_is_freed_before_the_record_is_durable() {
    finds(Fault::FreesAtOnce);
}

#[test]
fn the_model_finds_a_start_that_believes_what_is_in_the_page_cache() {
    finds(Fault::BelievesWhatItReads);
}

#[test]
fn the_model_finds_an_unclear_outcome_that_is_taken_for_a_failure() {
    finds(Fault::TakesUnclearForAbsent);
}

#[test]
fn the_model_finds_a_record_that_goes_before_the_state_has_it() {
    finds(Fault::DropsEarly);
}

#[test]
fn the_model_finds_a_state_that_is_believed_before_it_is_durable() {
    finds(Fault::TrustsTheState);
}

#[test]
fn the_model_finds_a_record_of_another_switch_over_that_is_believed() {
    finds(Fault::BelievesAStaleRecord);
}

#[test]
fn the_model_finds_a_record_that_cannot_be_read_and_is_taken_for_none() {
    finds(Fault::TakesUnreadableForNothing);
}

#[test]
fn the_model_finds_a_migration_that_is_given_up_without_a_look_at_its_record() {
    finds(Fault::FencesUnasked);
}

#[test]
fn the_model_finds_a_record_whose_name_is_not_durable() {
    finds(Fault::LeavesTheName);
}

#[test]
fn the_model_finds_a_write_that_comes_later_and_is_taken_for_absent() {
    finds(Fault::TakesUnreadForAbsent);
}

fn finds(fault: Fault) {
    let found = std::panic::catch_unwind(|| explore(fault));
    let said = found.expect_err(&format!("{fault:?} was not found"));
    let said = said.downcast_ref::<String>().expect("a message");
    let lost = LOSSES.iter().any(|loss| said.starts_with(loss));
    assert!(lost, "{fault:?} came to something else: {said}");
}
