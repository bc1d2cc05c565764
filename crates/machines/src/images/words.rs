//! Why an image stays, in words for people, and what to do then.

use std::path::Path;

use sterna_api::Error;
use sterna_core::old_copy::{Keep, Owner};
use sterna_engine::datastore::OldCopy;
use sterna_engine::sidecar::Role;

use super::Whole;
use super::facts::Gathered;
use super::records::Known;

/// Why Sterna keeps an image.
pub(super) fn refusal(
    why: Keep,
    path: &Path,
    known: &Known,
    gathered: &Gathered,
) -> Error {
    let place = path.display();
    let keeps = |what: String| Error::in_use(format!("Sterna keeps {place}: {what}"));
    let by_hand = by_hand(path);
    match why {
        Keep::Absent => Error::not_found("image", place),
        Keep::Unknown => Error::invalid(format!(
            "Sterna keeps {place}: Sterna has no record that a migration left this file"
        ))
        .hint(by_hand),
        Keep::Used => used(path, known),
        Keep::Unclear => unclear(path, known),
        Keep::NoFile => keeps("it is not a regular file".into()).hint(by_hand),
        Keep::Linked => {
            keeps("the file has another name as well (a hard link)".into()).hint(by_hand)
        }
        Keep::Unrecorded => keeps(
            "it is an old copy, but Sterna has not recorded which file the disk left"
                .into(),
        )
        .hint(by_hand),
        Keep::Undated => keeps(
            "it is an old copy, but its file system does not say when a file was \
             created, so this may be another file"
                .into(),
        )
        .hint(by_hand),
        Keep::Rehandled => keeps(
            "its file server has given the old copy another handle: the server was exchanged \
             or restored from a backup, or this is another file"
                .into(),
        )
        .hint(format!("check by size, dates and content that it is the old copy; {by_hand}")),
        Keep::Another => {
            keeps("another file has the name of the old copy".into()).hint(by_hand)
        }
        Keep::Written => keeps(format!(
            "the file was changed after migration {} ended, so it may have newer data",
            migration(known)
        ))
        .hint(format!("find out what wrote to it; {by_hand}")),
        Keep::Sidecar => keeps(
            "its sidecar does not name it as the old copy that the migration left".into(),
        )
        .hint(format!("`sterna disk recover --dry-run` shows what it is; {by_hand}")),
        Keep::Owner(owner) => of_owner(owner, path, known, &gathered.owner),
        Keep::OthersUse => keeps(format!("{} uses it", gathered.other))
            .hint("remove the image from there first"),
        Keep::OthersMayUse => keeps(format!(
            "Sterna cannot find out whether it is in use: {}",
            gathered.other
        ))
        .hint("repair this, and try again"),
    }
}

/// Why there is no file to remove on a device or an export, and how that gets free.
pub(super) fn no_files(whole: &Whole, datastore: &str, location: &str) -> Error {
    let (is, hint) = match whole {
        Whole::Disk(disk) => (
            format!("the image of disk {disk}, and no old copy"),
            format!(
                "`sterna migrate {disk} --to DATASTORE` moves the disk away, and frees \
                 {datastore}"
            ),
        ),
        Whole::Moving(id) => (
            format!("used by migration {id}"),
            format!("wait for the migration's end: `sterna migration watch {id}`"),
        ),
        Whole::Says(says) if says.role == Role::Retired => (
            format!(
                "the old copy of disk {}, and no file that Sterna can remove",
                says.name
            ),
            format!(
                "to free {datastore} for another disk, make the copy a disk, and remove that \
                 disk: `sterna disk import NAME --on {datastore} {location}`, then `sterna \
                 disk remove NAME --delete-image`"
            ),
        ),
        Whole::Says(says) => (
            format!("an image of disk {} ({}), and no old copy", says.name, says.role),
            "`sterna disk recover --dry-run` shows what Sterna can do with the image"
                .into(),
        ),
        Whole::Free => (
            "no image of Sterna".into(),
            format!("nothing is to be removed: {datastore} is free for a disk"),
        ),
    };
    let message =
        format!("datastore {datastore} is not a directory: as a whole it is {is}");
    Error::invalid(message).hint(hint)
}

/// A file that was to go and has not gone.
pub(super) fn not_removed(left: &OldCopy, path: &Path, datastore: &str) -> Error {
    let place = path.display();
    let list = format!("see `sterna datastore images {datastore}`, and try again");
    match left {
        OldCopy::Gone | OldCopy::Absent => Error::not_found("image", place).hint(list),
        OldCopy::Changed => {
            let message = format!("Sterna keeps {place}: the file has just been changed");
            Error::in_use(message).hint(list)
        }
        OldCopy::Opened(who) => {
            let who = who.as_deref().unwrap_or("a program");
            let message = format!("Sterna keeps {place}: {who} has the file open");
            Error::in_use(message)
                .hint(format!("find the program (`lsof {place}`), and end it first"))
        }
    }
}

/// What people can do whom Sterna does not help.
fn by_hand(path: &Path) -> String {
    let place = path.display();
    format!(
        "if you are sure that nothing needs the file, remove it by hand: `rm {place}`"
    )
}

fn migration(known: &Known) -> u64 {
    match known {
        Known::Moving(id) => *id,
        Known::Unclear(one) | Known::LeftByVm(one) => one.id,
        Known::LeftByDisk(one) => one.id,
        Known::Nothing | Known::Disk(_) | Known::Vm { .. } => 0,
    }
}

/// Somebody has the image, by the records.
fn used(path: &Path, known: &Known) -> Error {
    let place = path.display();
    match known {
        Known::Disk(disk) => {
            let message = format!("{place} is the image of disk {disk}");
            Error::in_use(message).hint(format!(
                "`sterna disk remove {disk}` removes the disk with its image"
            ))
        }
        Known::Vm { vm, device } => {
            let message = format!("{place} is the image of disk {device} of VM {vm}");
            Error::in_use(message).hint(format!("see `sterna vm show {vm}`"))
        }
        _ => {
            let id = migration(known);
            let message = format!("migration {id} uses {place}");
            Error::in_use(message).hint(format!(
                "wait for the migration's end: `sterna migration watch {id}`"
            ))
        }
    }
}

fn unclear(path: &Path, known: &Known) -> Error {
    let (place, id) = (path.display(), migration(known));
    let message = format!(
        "Sterna keeps {place}: migration {id} may still need it, or it may have the last \
         writes of the disk"
    );
    Error::in_use(message)
        .hint(format!("see `sterna migration show {id}` and `sterna status`"))
}

/// What has left the image does not clearly work without it.
fn of_owner(owner: Owner, path: &Path, known: &Known, why: &str) -> Error {
    let place = path.display();
    let (kind, name, device) = match known {
        Known::LeftByVm(left) => ("VM", left.vm.as_str(), left.device.as_str()),
        Known::LeftByDisk(left) => ("disk", left.name.as_str(), ""),
        _ => ("VM", "", ""),
    };
    let because = |what: String| Error::in_use(format!("Sterna keeps {place}: {what}"));
    let by_hand = by_hand(path);
    match owner {
        Owner::Here => because(format!("VM {name} uses it"))
            .hint(format!("see `sterna vm show {name}` and `sterna status`")),
        Owner::Forgotten => because(format!(
            "{kind} {name}, which left it, is not known any more, so this may be the \
             last copy of its data"
        ))
        .hint(by_hand),
        Owner::OnItsWay => because(why.to_owned()).hint("try again when it has arrived"),
        Owner::Off => because(format!(
            "VM {name} is off, and Sterna cannot ask with which image it starts"
        ))
        .hint(format!("start the VM, and try again; or, {by_hand}")),
        Owner::Unplugged => because(format!(
            "VM {name} has no disk {device} any more, so Sterna cannot see with which \
             image that disk works"
        ))
        .hint(by_hand),
        Owner::Silent | Owner::Elsewhere => {
            let what = match kind {
                "VM" => format!("VM {name} cannot be asked which images it uses: {why}"),
                _ => format!("disk {name} cannot be used now: {why}"),
            };
            because(what).hint("repair this, and try again")
        }
    }
}
