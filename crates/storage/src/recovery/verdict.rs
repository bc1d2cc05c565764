//! Which of the images that were found are the truth of a disk. Pure.
//!
//! An image is taken if its sidecar says active, if no other image of its disk has
//! its generation or a higher one, and if its disk's name is free. A retired image
//! counts against others, too: it was the truth in its generation, so an active one
//! with a lower generation is a copy that was forgotten. A partial one never was the
//! truth and counts for nothing. One whose sidecar cannot be read counts against all
//! that it may be newer than.
//!
//! What cannot be decided is not guessed: nothing is taken, and the reason says how
//! the operator can decide it.

use std::ffi::OsStr;
use std::path::Path;

use sterna_api::is_name;
use sterna_engine::sidecar::{FIRST, Identity, Role, SidecarError};
use sterna_state::DiskRecord;

/// An image with a sidecar that no disk has.
pub(super) struct Found {
    pub(super) datastore: String,
    /// What its datastore calls it.
    pub(super) file: String,
    /// Where it is, for people.
    pub(super) place: String,
    /// Another program uses it.
    pub(super) locked: bool,
    /// The migration that has it, if one that has not ended does.
    pub(super) migration: Option<u64>,
    /// What its sidecar says, or why that cannot be read.
    pub(super) says: Result<Identity, SidecarError>,
}

impl Found {
    /// Whether it calls itself the truth.
    pub(super) fn is_active(&self) -> bool {
        self.says.as_ref().is_ok_and(|says| says.role == Role::Active)
    }
}

/// What an image that may be taken says of itself; or why it is left.
pub(super) type Verdict<'a> = Result<&'a Identity, String>;

/// Says of each image whether it is the truth of a disk, in view of all of them and
/// of the disks that are known. Only those on the datastore `on` are to be taken.
pub(super) fn judge<'a>(
    found: &'a [Found],
    disks: &[DiskRecord],
    on: Option<&str>,
) -> Vec<Verdict<'a>> {
    let alone = |one: &'a Found| {
        let says = one.says.as_ref().map_err(ToString::to_string)?;
        check_role(says)?;
        check_known(one, says, disks)?;
        check_newest(one, says, found)?;
        check_name(says, disks)?;
        match one.locked {
            true => Err(
                "another program uses the image: stop that program, and recover again"
                    .to_owned(),
            ),
            false => Ok(says),
        }
    };
    let mut verdicts: Vec<Verdict<'a>> = found.iter().map(alone).collect();
    let wanted = |at: &usize| on.is_none_or(|on| found[*at].datastore == on);
    let taken =
        |at: usize| verdicts[at].as_ref().ok().map(|says| (at, says.name.as_str()));
    let taken: Vec<(usize, &str)> =
        (0..found.len()).filter(wanted).filter_map(taken).collect();
    for &(at, name) in &taken {
        let namesake = taken.iter().find(|other| other.0 != at && other.1 == name);
        if let Some(&(other, _)) = namesake {
            verdicts[at] = Err(format!(
                "two disks are called {name}: this image is of the one, and {} of the \
                 other. To recover this one, `sterna disk recover --on {}`, or move the \
                 sidecar of the other image to another directory, and recover again",
                found[other].place, found[at].datastore
            ));
        }
    }
    verdicts
}

/// The truth calls itself active.
fn check_role(says: &Identity) -> Result<(), String> {
    let name = &says.name;
    match says.role {
        Role::Active => Ok(()),
        // The copy of a move has a higher one.
        Role::Partial if says.generation == FIRST => Err(format!(
            "partial: disk {name} was being created or adopted here, and that was not \
             finished. The daemon that did it removes the image; if that daemon's state is \
             lost, remove the image and its sidecar by hand"
        )),
        Role::Partial => Err(format!(
            "partial: an unfinished copy of disk {name}, which holds only a part of the \
             disk; a new move of the disk to this datastore goes on with it"
        )),
        Role::Retired => Err(format!(
            "retired: an old copy, because disk {name} was moved to another image, or \
                 removed"
        )),
    }
}

/// A disk that is known has its truth already.
fn check_known(one: &Found, says: &Identity, disks: &[DiskRecord]) -> Result<(), String> {
    let Some(disk) = disks.iter().find(|disk| disk.id == says.id) else { return Ok(()) };
    let (name, ours, theirs) = (&disk.name, disk.generation, says.generation);
    if theirs < ours {
        return Err(format!(
            "out of date: this image has generation {theirs} of disk {name}, and the disk \
             is on datastore {} with generation {ours}",
            disk.datastore
        ));
    }
    let way = match one.migration {
        Some(id) => format!("`sterna migration cancel {id}`, which then keeps the image"),
        None => format!("`sterna disk remove {name} --keep-image`"),
    };
    Err(format!(
        "Sterna has disk {name} on datastore {} with generation {ours}, and this image \
         has generation {theirs} of it. If this image is the right one, {way}, and recover \
         again",
        disk.datastore
    ))
}

/// Of several images of a disk the one with the highest generation is its truth.
fn check_newest(one: &Found, says: &Identity, found: &[Found]) -> Result<(), String> {
    let same = |other: &&Found| !std::ptr::eq(*other, one);
    for other in found.iter().filter(same) {
        let theirs = match &other.says {
            Ok(theirs) => theirs,
            Err(error) => {
                check_unreadable(one, says, other, error)?;
                continue;
            }
        };
        if theirs.id != says.id || theirs.role == Role::Partial {
            continue;
        }
        let (name, generation, place) = (&says.name, says.generation, &other.place);
        if theirs.generation > generation {
            return Err(format!(
                "out of date: this image has generation {generation} of disk {name}, and \
                 {place} has {}",
                theirs.generation
            ));
        }
        if theirs.generation == generation {
            return Err(format!(
                "Sterna cannot tell which image of disk {name} is right: this image and \
                 {place} both have generation {generation}. Find out, move the sidecar of \
                 the wrong image to another directory, and recover again"
            ));
        }
    }
    Ok(())
}

/// An image whose sidecar cannot be read may be the newest of any disk that it can
/// be an image of. That of a newer Sterna, and a device, can be of all; a file has the
/// name of its disk, or still the one under which it was imported.
fn check_unreadable(
    one: &Found,
    says: &Identity,
    other: &Found,
    error: &SidecarError,
) -> Result<(), String> {
    let stem = |file| Path::new(file).file_stem();
    let theirs = stem(&other.file);
    let may_be = matches!(error, SidecarError::Version(_))
        || theirs.is_none()
        || theirs == stem(&one.file)
        || theirs == Some(OsStr::new(&says.name));
    if !may_be {
        return Ok(());
    }
    let way_out = match theirs {
        Some(_) => "move its sidecar to another directory".to_owned(),
        None => format!("`sterna datastore remove {}`", other.datastore),
    };
    Err(format!(
        "{} may be a newer image of disk {} than this one: {error}. If you are sure that \
         it is not, {way_out}, and recover again",
        other.place, says.name
    ))
}

/// The disk gets its name back, so that must be one, and be free.
fn check_name(says: &Identity, disks: &[DiskRecord]) -> Result<(), String> {
    let name = &says.name;
    if !is_name(name) {
        return Err(format!(
            "the sidecar calls the disk {name:?}, which cannot be the name of a disk; \
             import the image under another name: move the sidecar to another directory, \
             then `sterna disk import`"
        ));
    }
    match disks.iter().any(|disk| disk.name == *name) {
        true => Err(format!(
            "this image is of another disk {name} than the one that Sterna has; remove \
             that one first (`sterna disk remove {name} --keep-image`), or import this \
             image under another name: move its sidecar to another directory, then `sterna \
             disk import`"
        )),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use sterna_api::Provision;
    use sterna_core::DiskId;

    use super::*;

    fn image(datastore: &str, id: u128, generation: u64, role: Role) -> Found {
        let name = format!("disk{id}");
        let file = format!("{name}.raw");
        Found {
            datastore: datastore.into(),
            place: format!("/{datastore}/{file}"),
            file,
            locked: false,
            migration: None,
            says: Ok(Identity { id: DiskId(id), name, size: 512, generation, role }),
        }
    }

    fn known(id: u128, name: &str, generation: u64) -> DiskRecord {
        DiskRecord {
            id: DiskId(id),
            name: name.into(),
            size: 512,
            datastore: "known".into(),
            image: format!("{name}.raw"),
            provision: Provision::Thin,
            imported: false,
            generation,
            created: 0,
            vhost_user: None,
        }
    }

    /// "taken" or the reason, image by image.
    fn verdicts(found: &[Found], disks: &[DiskRecord], on: Option<&str>) -> Vec<String> {
        let text =
            |verdict: Verdict<'_>| verdict.map_or_else(|it| it, |_| "taken".into());
        judge(found, disks, on).into_iter().map(text).collect()
    }

    #[track_caller]
    fn expect(verdicts: &[String], expected: &[&str]) {
        assert_eq!(verdicts.len(), expected.len());
        for (verdict, expected) in verdicts.iter().zip(expected) {
            assert!(verdict.contains(expected), "{verdict} and not {expected}");
        }
    }

    #[test]
    fn the_active_image_is_taken_whatever_else_there_is_of_its_disk() {
        let found = [
            image("fast", 1, 3, Role::Retired),
            image("slow", 1, 4, Role::Active),
            image("new", 1, 5, Role::Partial),
        ];
        expect(&verdicts(&found, &[], None), &["retired", "taken", "partial"]);
    }

    #[test]
    fn of_two_active_ones_the_higher_generation_is_the_truth() {
        let found = [image("a", 1, 2, Role::Active), image("b", 1, 3, Role::Active)];
        expect(&verdicts(&found, &[], None), &["/b/disk1.raw has 3", "taken"]);
        // Also if only the lower one was asked for.
        expect(&verdicts(&found, &[], Some("a")), &["/b/disk1.raw has 3", "taken"]);
    }

    #[test]
    fn a_tie_is_not_decided() {
        let tie = "Sterna cannot tell which image of disk disk1 is right";
        let found = [image("a", 1, 2, Role::Active), image("b", 1, 2, Role::Active)];
        expect(&verdicts(&found, &[], None), &[tie, tie]);
        let found = [image("a", 1, 2, Role::Active), image("b", 1, 2, Role::Retired)];
        expect(&verdicts(&found, &[], None), &[tie, "retired"]);
    }

    #[test]
    fn an_image_that_its_disk_has_left_behind_is_not_the_truth() {
        // The disk went on from a to b and from b to somewhere unknown.
        let found = [image("a", 1, 1, Role::Active), image("b", 1, 2, Role::Retired)];
        expect(&verdicts(&found, &[], None), &["out of date", "retired"]);
    }

    #[test]
    fn a_disk_that_is_known_keeps_its_truth() {
        let found = [image("a", 1, 2, Role::Active)];
        expect(&verdicts(&found, &[known(1, "disk1", 3)], None), &["out of date"]);
        let newer = "If this image is the right one";
        expect(&verdicts(&found, &[known(1, "disk1", 2)], None), &[newer]);
        expect(&verdicts(&found, &[known(1, "disk1", 1)], None), &[newer]);
    }

    #[test]
    fn a_name_is_given_once() {
        let mut found = [image("a", 1, 1, Role::Active), image("b", 2, 1, Role::Active)];
        let other = known(9, "disk1", 1);
        expect(&verdicts(&found, &[other], None), &["of another disk", "taken"]);
        for one in &mut found {
            one.says.as_mut().unwrap().name = "db".into();
        }
        expect(
            &verdicts(&found, &[], None),
            &["two disks are called db", "two disks are called db"],
        );
        expect(&verdicts(&found, &[], Some("a")), &["taken", "taken"]);
    }

    #[test]
    fn what_cannot_be_read_named_or_had_is_left() {
        let mut found = [1, 2, 3].map(|id| image("a", id, 1, Role::Active));
        found[0].says = Err(SidecarError::Damaged("torn"));
        found[1].says.as_mut().unwrap().name = "../etc".into();
        found[2].locked = true;
        let expected =
            ["damaged", "cannot be the name", "another program uses the image"];
        expect(&verdicts(&found, &[], None), &expected);
    }

    #[test]
    fn an_image_that_cannot_be_read_may_be_the_newest() {
        let unreadable = |file: &str, error| Found {
            file: file.into(),
            says: Err(error),
            ..image("b", 9, 1, Role::Active)
        };
        let damaged = || SidecarError::Damaged("torn");
        let candidate = || image("a", 1, 2, Role::Active);
        let may_be = "may be a newer image of disk disk1";
        for other in [
            unreadable("disk1.raw", damaged()),
            unreadable("disk1.img", damaged()),
            unreadable("any.raw", SidecarError::Version(2)),
        ] {
            let found = [candidate(), other];
            expect(&verdicts(&found, &[], None), &[may_be, "the sidecar"]);
            expect(
                &verdicts(&found, &[], None),
                &["move its sidecar to another directory", ""],
            );
        }
        let found = [candidate(), unreadable("", damaged())];
        expect(&verdicts(&found, &[], None), &["datastore remove b", "the sidecar"]);
        let found = [candidate(), unreadable("other.raw", damaged())];
        expect(&verdicts(&found, &[], None), &["taken", "the sidecar"]);
    }

    #[test]
    fn a_migration_that_has_not_ended_is_in_the_way() {
        let mut found = [image("a", 1, 2, Role::Active)];
        found[0].migration = Some(7);
        let reason = "If this image is the right one, `sterna migration cancel 7`";
        expect(&verdicts(&found, &[known(1, "disk1", 1)], None), &[reason]);
        expect(&verdicts(&found, &[known(1, "disk1", 3)], None), &["out of date"]);
    }
}
