//! The two images of a move, for people; and what to do if nobody knows which is the truth.

use sterna_state::{VmMoveKind, VmMoveRecord};

/// What to do about a disk of which nobody knows in which image the last writes are.
pub(super) fn decide(record: &VmMoveRecord) -> String {
    let (source, destination) = both(record);
    format!(
        "before you start {}, compare {source} and {destination} (`qemu-img compare`); \
         if they differ, start the VM with the image whose file system has the later \
         data, and keep the other image",
        record.vm
    )
}

/// Both images, for people.
pub(super) fn both(record: &VmMoveRecord) -> (String, String) {
    let (source, destination) = (record.source.clone(), record.destination.clone());
    match &record.kind {
        VmMoveKind::Move => (source, destination),
        VmMoveKind::Adopt(disk) => (source, format!("disk {}", disk.name)),
        VmMoveKind::Release(disk) => (format!("disk {}", disk.name), destination),
    }
}
