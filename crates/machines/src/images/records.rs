//! What is recorded of the files of one datastore.
//!
//! The moves of disks and of VMs' disks have their numbers from one count, so of two moves
//! that touched a file the higher number came later, and that one counts: a disk that has
//! left an image may have come back to it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use sterna_state::{DiskRecord, MigrationRecord, Place, Step, VmMoveRecord};
use sterna_storage::handle::DatastoreHandle;

/// What is known of a file.
#[derive(Clone, Debug)]
pub(super) enum Known {
    /// Nothing.
    Nothing,
    /// It is the image of this disk.
    Disk(String),
    /// A VM has it, as far as anybody has seen.
    Vm { vm: String, device: String },
    /// A move that has not ended has it.
    Moving(u64),
    /// The last writes may be in it, or something of the move is still to be put away.
    Unclear(Box<VmMoveRecord>),
    /// A VM's disk has left it by this move.
    LeftByVm(Box<VmMoveRecord>),
    /// A disk has left it by this move.
    LeftByDisk(Box<MigrationRecord>),
}

/// What a VM was seen with.
#[derive(Clone, Debug)]
pub(crate) struct Sight {
    pub(crate) vm: String,
    pub(crate) device: String,
    pub(crate) image: String,
    /// When that look began (seconds since 1970).
    pub(crate) at: u64,
}

/// What a move did to a file.
#[derive(Clone, Debug)]
struct Event {
    id: u64,
    known: Known,
}

/// The records of a datastore's files, by their names.
#[derive(Debug)]
pub(super) struct Records {
    datastore: String,
    directory: PathBuf,
    disks: HashMap<String, String>,
    events: HashMap<String, Vec<Event>>,
    sights: Vec<Sight>,
}

impl Records {
    /// No records yet.
    pub(super) fn new(handle: &DatastoreHandle, sights: Vec<Sight>) -> Records {
        let directory = handle.record().location.directory().unwrap_or(Path::new(""));
        Records::at(handle.name(), directory, sights)
    }

    fn at(datastore: &str, directory: &Path, sights: Vec<Sight>) -> Records {
        Records {
            datastore: datastore.into(),
            directory: directory.into(),
            disks: HashMap::new(),
            events: HashMap::new(),
            sights,
        }
    }

    /// Adds the disks of the datastore.
    pub(super) fn add_disks(&mut self, disks: Vec<DiskRecord>) {
        let here = disks.into_iter().filter(|disk| disk.datastore == self.datastore);
        self.disks.extend(here.map(|disk| (disk.image, disk.name)));
    }

    /// Adds what moves of disks did.
    pub(super) fn add_migrations(&mut self, all: Vec<MigrationRecord>) {
        for one in all {
            let id = one.id;
            let is_here = |place: &Place| place.datastore == self.datastore;
            let (from, to) = (is_here(&one.from), is_here(&one.to));
            let (left, came) = (one.from.image.clone(), one.to.image.clone());
            let (by_source, by_destination) = match one.step {
                Step::Completed => {
                    // A disk that is there is known by its own record.
                    (Known::LeftByDisk(Box::new(one)), Known::Nothing)
                }
                Step::Cancelled => continue,
                _ => (Known::Moving(id), Known::Moving(id)),
            };
            if from {
                self.note(left, id, by_source);
            }
            if to {
                self.note(came, id, by_destination);
            }
        }
    }

    /// Adds what moves of VMs' disks did, and which of them still have something.
    pub(super) fn add_vm_moves(
        &mut self,
        all: Vec<VmMoveRecord>,
        untidy: &[VmMoveRecord],
    ) {
        for one in all {
            let (left, came) =
                (self.name_of(&one.source), self.name_of(&one.destination));
            let id = one.id;
            let is_untidy = untidy.iter().any(|other| other.id == id);
            let (by_source, by_destination) = match one.step {
                _ if one.unclear || is_untidy => {
                    let unclear = Known::Unclear(Box::new(one));
                    (unclear.clone(), unclear)
                }
                Step::Completed => {
                    let (vm, device) = (one.vm.clone(), one.device.clone());
                    (Known::LeftByVm(Box::new(one)), Known::Vm { vm, device })
                }
                Step::Cancelled => continue,
                _ => (Known::Moving(id), Known::Moving(id)),
            };
            if let Some(left) = left {
                self.note(left, id, by_source);
            }
            if let Some(came) = came {
                self.note(came, id, by_destination);
            }
        }
    }

    /// The name of a file that is in the directory.
    fn name_of(&self, image: &str) -> Option<String> {
        let path = Path::new(image);
        let is_here = path.parent() == Some(&self.directory);
        path.file_name()?.to_str().filter(|_| is_here).map(str::to_owned)
    }

    fn note(&mut self, file: String, id: u64, known: Known) {
        self.events.entry(file).or_default().push(Event { id, known });
    }

    /// What is known of a file.
    pub(super) fn of(&self, file: &str) -> Known {
        if let Some(disk) = self.disks.get(file) {
            return Known::Disk(disk.clone());
        }
        let events = self.events.get(file).map_or(&[][..], Vec::as_slice);
        // What has not come to its end counts, whatever came after it.
        let is_open =
            |event: &&Event| matches!(event.known, Known::Moving(_) | Known::Unclear(_));
        if let Some(open) = events.iter().find(is_open) {
            return open.known.clone();
        }
        let last = events.iter().max_by_key(|event| event.id);
        let last = last.map_or(Known::Nothing, |event| event.known.clone());
        let path = self.directory.join(file);
        let is_it = |sight: &&Sight| Path::new(&sight.image) == path;
        for Sight { vm, device, at, .. } in self.sights.iter().filter(is_it) {
            // A look that began before the end of the move says nothing of what came then.
            let is_stale = match &last {
                Known::LeftByVm(left) => {
                    left.vm == *vm && left.ended.is_none_or(|ended| *at <= ended)
                }
                _ => false,
            };
            if !is_stale {
                return Known::Vm { vm: vm.clone(), device: device.clone() };
            }
        }
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::vm_move as a_move;

    fn records(moves: Vec<VmMoveRecord>, untidy: &[VmMoveRecord]) -> Records {
        let mut records = Records::at("fast", Path::new("/fast"), Vec::new());
        records.add_vm_moves(moves, untidy);
        records
    }

    fn sight(at: u64) -> Sight {
        let (vm, device) = ("web".into(), "vda".into());
        Sight { vm, device, image: "/fast/web.raw".into(), at }
    }

    #[test]
    fn what_a_disk_has_left_is_an_old_copy_until_it_comes_back() {
        let away = a_move(1, "/fast/web.raw", "/slow/web-vda-1.raw");
        let back = a_move(2, "/slow/web-vda-1.raw", "/fast/web.raw");
        let left = records(vec![away.clone()], &[]);
        assert!(matches!(left.of("web.raw"), Known::LeftByVm(one) if one.id == 1));
        assert!(matches!(left.of("web-vda-1.raw"), Known::Nothing), "it is elsewhere");
        for order in [vec![away.clone(), back.clone()], vec![back, away]] {
            let both = records(order, &[]);
            assert!(matches!(both.of("web.raw"), Known::Vm { .. }));
        }
    }

    #[test]
    fn a_move_without_a_clear_end_counts_whatever_came_later() {
        let later = a_move(2, "/fast/web.raw", "/slow/b.raw");
        let earlier = a_move(1, "/fast/web.raw", "/slow/a.raw");
        let unclear =
            VmMoveRecord { unclear: true, step: Step::Cancelled, ..earlier.clone() };
        let with = |one: VmMoveRecord, untidy: &[VmMoveRecord]| {
            records(vec![one, later.clone()], untidy).of("web.raw")
        };
        assert!(matches!(with(unclear, &[]), Known::Unclear(_)));
        assert!(matches!(
            with(earlier.clone(), std::slice::from_ref(&earlier)),
            Known::Unclear(_)
        ));
        for step in [Step::Created, Step::Copying, Step::Switching, Step::Committed] {
            let open = VmMoveRecord { step, ..earlier.clone() };
            assert!(matches!(with(open, &[]), Known::Moving(1)));
        }
        let cancelled = VmMoveRecord { step: Step::Cancelled, ..later.clone() };
        let both = records(vec![earlier, cancelled], &[]);
        assert!(matches!(both.of("web.raw"), Known::LeftByVm(one) if one.id == 1));
    }

    #[test]
    fn a_vm_that_was_seen_with_an_image_after_the_move_has_it() {
        let mut records = records(vec![a_move(1, "/fast/web.raw", "/slow/a.raw")], &[]);
        records.sights = vec![sight(15)];
        assert!(
            matches!(records.of("web.raw"), Known::LeftByVm(_)),
            "seen before its end"
        );
        records.sights = vec![sight(16)];
        assert!(matches!(records.of("web.raw"), Known::Vm { .. }));
    }
}
