//! The commit against every crash: all the ways in which a switch-over can be committed,
//! killed, cut off by a power loss and taken up again, one after the other.
//!
//! Record and state each have what is read (the page cache) and what a power loss leaves
//! (the medium). A write reaches the one and then the other, or fails anywhere between;
//! a kill takes neither, a power loss the first. What must hold, whatever comes: a guest
//! that has been answered from one side never finds the other one to be the truth, and
//! the source is freed only when every crash from then on finds the destination.

use std::collections::HashSet;

use sterna_core::commit::{Commitment, Do, Found, Stated, Written};
use sterna_core::mirror::Commit;

/// How many crashes a history has at most; what comes after two is what came before.
const CRASHES: u8 = 3;

/// A file: what is read of it, and what is on the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Kept<T> {
    read: T,
    medium: T,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Record {
    None,
    Torn,
    Prepared,
    Committed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct World {
    record: Kept<Record>,
    committed: Kept<bool>,
    /// The daemon that runs: its commit, if it has one.
    daemon: Option<Commitment>,
    /// The guest has had answers from there.
    at_source: bool,
    at_destination: bool,
    freed: bool,
    crashes: u8,
}

/// What a world's daemon does otherwise than it should.
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
}

impl World {
    fn new() -> World {
        World {
            record: Kept { read: Record::Prepared, medium: Record::Prepared },
            committed: Kept { read: false, medium: false },
            daemon: Some(Commitment::asked()),
            at_source: false,
            at_destination: false,
            freed: false,
            crashes: 0,
        }
    }

    /// What a power loss now, and a start after it, would take for the truth.
    fn would_be_destination(&self) -> bool {
        self.committed.medium || self.record.medium == Record::Committed
    }

    fn check(&self) {
        let both = self.at_source && self.at_destination;
        assert!(!both, "the guest was served by both sides: {self:?}");
        let kept = self.would_be_destination();
        assert!(kept || !self.freed, "the source is gone and nothing says so: {self:?}");
        assert!(kept || !self.at_destination, "a power loss goes back: {self:?}");
        let back = self.at_source && self.record.medium == Record::Committed;
        assert!(!back || self.fenced(), "a crash would go forward again: {self:?}");
    }

    /// The source's generation was raised, so that the record says nothing any more.
    fn fenced(&self) -> bool {
        self.daemon.is_none()
    }

    /// The worlds in which a crash leaves this one, and their starts.
    fn crash(&self, fault: Fault, to: &mut Vec<World>) {
        if self.crashes == CRASHES || self.daemon.is_none() {
            return;
        }
        let mut after = World { crashes: self.crashes + 1, ..*self };
        after.start(fault, to); // A kill.
        // A power loss; what was on its way to the medium may have come there.
        for record in [self.record.medium, self.record.read] {
            for committed in [self.committed.medium, self.committed.read] {
                after.record = Kept { read: record, medium: record };
                after.committed = Kept { read: committed, medium: committed };
                after.start(fault, to);
            }
        }
    }

    fn start(mut self, fault: Fault, to: &mut Vec<World>) {
        if fault != Fault::TrustsTheState {
            self.committed.medium = self.committed.read;
        }
        let stated = match self.committed.read {
            true => Stated::Committed,
            false => Stated::Switching,
        };
        let found = match self.record.read {
            Record::Committed => Found::Committed,
            Record::Prepared => Found::Prepared,
            Record::None | Record::Torn => Found::Nothing,
        };
        self.daemon = Commitment::found(found, stated);
        if fault == Fault::BelievesWhatItReads
            && let Some(daemon) = &mut self.daemon
        {
            daemon.written(Written::Durable);
        }
        match &self.daemon {
            None => {
                // The source is fenced first, and then served.
                assert!(!self.freed, "the source is the truth and gone: {self:?}");
                self.at_source = true;
            }
            Some(daemon) if daemon.is_certain() => self.at_destination = true,
            Some(_) => {}
        }
        to.push(self);
    }

    /// The worlds that come of what the daemon does next.
    fn act(&self, fault: Fault, to: &mut Vec<World>) {
        let Some(daemon) = self.daemon else { return };
        match daemon.next() {
            Do::Write => {
                for (record, written) in self.writes(Record::Committed) {
                    let mut next = World { record, ..*self };
                    let unclear = fault == Fault::TakesUnclearForAbsent;
                    let heard = match written {
                        Written::Unclear if unclear => Written::Absent,
                        written => written,
                    };
                    next.freed |= fault == Fault::FreesAtOnce;
                    next.go_on(daemon, |daemon| daemon.written(heard));
                    to.push(next);
                }
            }
            Do::Erase => {
                for (record, written) in self.writes(Record::Prepared) {
                    let mut next = World { record, ..*self };
                    if written == Written::Durable {
                        next.go_on(daemon, Commitment::erased);
                    }
                    to.push(next);
                }
            }
            Do::Answer(commit) => {
                let mut next = *self;
                next.at_destination |= commit == Commit::Durable;
                next.at_source |= commit != Commit::Durable;
                next.go_on(daemon, Commitment::answered);
                if daemon.next() == Do::Answer(Commit::Failed) {
                    next.daemon = Some(daemon); // Until the source is fenced.
                }
                to.push(next);
            }
            Do::Tell => {
                for (medium, told) in [(false, false), (true, false), (true, true)] {
                    let committed = Kept { read: true, medium };
                    let mut next = World { committed, ..*self };
                    if fault == Fault::DropsEarly {
                        next.record = Kept { read: Record::None, medium: Record::None };
                    }
                    if told {
                        next.go_on(daemon, Commitment::told);
                    }
                    to.push(next);
                }
            }
            Do::Free => {
                let mut next = World { freed: true, ..*self };
                next.go_on(daemon, Commitment::freed);
                to.push(next);
            }
            Do::Drop => {
                for medium in [Record::None, self.record.medium] {
                    let record = Kept { read: Record::None, medium };
                    let mut next = World { record, ..*self };
                    next.go_on(daemon, Commitment::dropped);
                    to.push(next);
                }
            }
            Do::End => {}
        }
    }

    /// How a write of the record may end, and where it is then. One that brings what is
    /// on the medium already changes nothing there, however far it gets.
    fn writes(&self, new: Record) -> [(Kept<Record>, Written); 5] {
        let old = self.record;
        let torn = if old.medium == new { new } else { Record::Torn };
        [
            (Kept { read: new, medium: new }, Written::Durable),
            (old, Written::Absent),
            (Kept { read: new, ..old }, Written::Unclear),
            (Kept { read: new, medium: new }, Written::Unclear),
            (Kept { read: new, medium: torn }, Written::Unclear),
        ]
    }

    fn go_on(&mut self, mut daemon: Commitment, how: impl FnOnce(&mut Commitment)) {
        how(&mut daemon);
        self.at_destination |= daemon.is_certain() && daemon.next() == Do::Tell;
        self.daemon = Some(daemon);
    }
}

/// Looks at every world that can be reached; gives how many there are.
fn explore(fault: Fault) -> usize {
    let mut known = HashSet::new();
    let mut left = vec![World::new()];
    let mut next = Vec::new();
    while let Some(world) = left.pop() {
        if !known.insert(world) {
            continue;
        }
        world.check();
        world.act(fault, &mut next);
        world.crash(fault, &mut next);
        left.append(&mut next);
    }
    known.len()
}

#[test]
fn no_crash_loses_a_write_or_goes_back_behind_a_commit() {
    let worlds = explore(Fault::None);
    assert!(worlds > 50, "only {worlds} worlds were reached");
}

#[test]
fn the_model_finds_a_source_that_is_freed_before_the_record_is_durable() {
    finds(Fault::FreesAtOnce, "the source is gone and nothing says so");
}

#[test]
fn the_model_finds_a_start_that_believes_what_is_in_the_page_cache() {
    finds(Fault::BelievesWhatItReads, "a power loss goes back");
}

#[test]
fn the_model_finds_an_unclear_outcome_that_is_taken_for_a_failure() {
    finds(Fault::TakesUnclearForAbsent, "a crash would go forward again");
}

#[test]
fn the_model_finds_a_record_that_goes_before_the_state_has_it() {
    finds(Fault::DropsEarly, "a power loss goes back");
}

#[test]
fn the_model_finds_a_state_that_is_believed_before_it_is_durable() {
    finds(Fault::TrustsTheState, "the source is gone and nothing says so");
}

/// Looks for a world that is caught by a check which says this.
fn finds(fault: Fault, by: &str) {
    let found = std::panic::catch_unwind(|| explore(fault));
    let found = found.expect_err("a world is caught");
    let said = found.downcast_ref::<String>().map_or("something", String::as_str);
    assert!(said.contains(by), "{fault:?} is caught by: {said}");
}
