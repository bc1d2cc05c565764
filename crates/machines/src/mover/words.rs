//! The end of a move, in words for people.

use std::path::Path;

use sterna_core::mover::{CATCH_UP, Doubt, Failure, Rest, Verdict, Why};
use sterna_state::{KnownFile, Reach, VmMoveKind, VmMoveRecord};

use super::Driver;
use crate::unclear::both;

/// What QEMU says of a place where there is no room, and of one where a quota lets it
/// have none (ENOSPC and EDQUOT, in the C locale's words).
const FULL: &str = "No space left on device";
const QUOTA: &str = "Disk quota exceeded";

/// What stands between the parts of a note.
const BETWEEN: &str = "; ";
/// What is promised of a VM that may still have something of the copy.
const REMOVED_WHEN_SERVED: &str =
    "Sterna removes the rest of QEMU's copy job once it is served again";
const REMOVED_WHEN_IT_ANSWERS: &str =
    "Sterna removes the rest of QEMU's copy job once it answers";

impl Driver {
    /// What is noted of a move that ends so.
    pub(super) fn note_of(&self, verdict: &Verdict) -> Option<String> {
        let parts = match verdict {
            Verdict::Moved { unplugged, left } => {
                vec![
                    Some(self.left_behind()),
                    unplugged.then(|| self.was_unplugged()),
                    self.next_start(),
                    left.clone(),
                    self.removal(),
                ]
            }
            Verdict::Stays { why, still, rest } => {
                vec![self.why(why), still.as_ref().and_then(may_have), self.rest(rest)]
            }
            Verdict::Unclear(doubt) => vec![Some(self.unclear(doubt))],
        };
        let note: Vec<String> = parts.into_iter().flatten().collect();
        (!note.is_empty()).then(|| note.join(BETWEEN))
    }

    /// Why the disk stays where it was, unless that was asked for.
    fn why(&self, why: &Why) -> Option<String> {
        let to = &self.record.to;
        let (_, destination) = both(&self.record);
        Some(match why {
            Why::Asked => return None,
            Why::Vm(words) | Why::Here(words) => words.clone(),
            Why::Failed(words) if words.contains(QUOTA) => format!(
                "a quota on datastore {to} is exhausted: raise the quota or make room, \
                 and move the disk again (QEMU's copy failed: {words})"
            ),
            Why::Failed(words) if words.contains(FULL) => format!(
                "datastore {to} is full: make room there, and move the disk again \
                 (QEMU's copy failed: {words})"
            ),
            Why::Failed(words) => format!("QEMU's copy failed: {words}"),
            Why::Late => format!(
                "{to} did not catch up with the guest's writes within {} s; Sterna did \
                 not switch over",
                CATCH_UP.as_secs_f64()
            ),
            Why::NotTheCopy => {
                format!("{destination} was replaced; Sterna did not switch over")
            }
            Why::Unplugged => format!(
                "disk {} was removed from {}: {} has all its writes",
                self.record.device,
                self.record.vm,
                both(&self.record).0
            ),
            Why::Elsewhere(image) => self.is_elsewhere(image),
            Why::ByHand => "another program cancelled QEMU's copy".to_owned(),
        })
    }

    pub(super) fn is_elsewhere(&self, image: &str) -> String {
        format!("the disk uses {image} now, and not {}", self.record.source)
    }

    /// What has become of the destination, if it is there.
    fn rest(&self, rest: &Rest) -> Option<String> {
        match rest {
            Rest::Gone => None,
            Rest::Kept if self.is_unknown => Some(self.keeps_unknown()),
            Rest::Kept => self.is_there().then(|| self.keeps_unseen()),
            Rest::Later => Some(self.removes_later()),
            Rest::InTheWay(why) => Some(why.clone()),
        }
    }

    fn removes_later(&self) -> String {
        let (_, destination) = both(&self.record);
        format!("Sterna then removes {destination}")
    }

    /// What is noted of the end once the VM has nothing of the move any more: what was
    /// promised until then has been kept, or the destination has.
    pub(super) fn noted_when_tidy(
        &self,
        noted: Option<String>,
        rest: &Rest,
    ) -> Option<String> {
        let later = self.removes_later();
        let promised = [REMOVED_WHEN_SERVED, REMOVED_WHEN_IT_ANSWERS, &later];
        let noted = noted.unwrap_or_default();
        let rest = self.rest(rest).filter(|rest| !noted.contains(rest.as_str()));
        let still_true = noted.split(BETWEEN).filter(|part| !promised.contains(part));
        let parts = still_true.chain(rest.as_deref());
        let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
        (!parts.is_empty()).then(|| parts.join(BETWEEN))
    }

    /// What is said of a copy that the guest may have written to, unseen.
    pub(super) fn keeps_unseen(&self) -> String {
        let (_, destination) = both(&self.record);
        format!(
            "Sterna kept {destination}: the copy's end is unknown, so it may hold the \
             last writes of {}",
            self.record.vm
        )
    }

    /// What is said of a file that may be the copy, or another one of its name.
    pub(super) fn keeps_unknown(&self) -> String {
        let (_, destination) = both(&self.record);
        format!(
            "Sterna kept {destination}: Sterna has not recorded which file was made for \
             the copy, so this may be another one; if it is the copy, remove it by hand"
        )
    }

    /// Nobody knows where the last writes are: nothing is removed.
    pub(super) fn unclear(&self, doubt: &Doubt) -> String {
        let (source, destination) = both(&self.record);
        let why = match doubt {
            Doubt::Ended => "QEMU ended while it switched over",
            Doubt::Forgotten => "QEMU does not know the switch-over",
            Doubt::TakenAway => "the disk was removed at the switch-over",
            Doubt::Neither => "the disk uses neither image",
            Doubt::Unseen => {
                "QEMU runs with the copy, and it is unknown whether the copy was \
                 complete"
            }
            Doubt::NotTheCopy => "the image to which QEMU copied was replaced",
        };
        format!(
            "{why}, so the disk's last writes may be in either image; Sterna keeps \
             both: {source} and {destination}"
        )
    }

    fn was_unplugged(&self) -> String {
        let (_, destination) = both(&self.record);
        let VmMoveRecord { vm, device, .. } = &self.record;
        format!("disk {device} was removed from {vm}; {destination} has all its data")
    }

    /// What is said of what the disk has left.
    fn left_behind(&self) -> String {
        let source = &self.record.source;
        match &self.record.kind {
            VmMoveKind::Move if self.is_source_rehandled() => format!(
                "kept, if {source} is still the same file: its file server has given it another \
                 handle (was the server exchanged or restored from a backup?)"
            ),
            VmMoveKind::Move if self.is_source_another() => {
                format!("not under its name any more: {source} is another file")
            }
            VmMoveKind::Move => format!("kept: {source}"),
            VmMoveKind::Adopt(disk) => {
                format!("kept: {source}; the disk is now Sterna disk {}", disk.name)
            }
            VmMoveKind::Release(disk) => {
                let name = &disk.name;
                format!(
                    "kept: disk {name}, which {} no longer uses; `sterna disk remove \
                     {name}` removes it",
                    self.record.vm
                )
            }
        }
    }

    /// Whether another file has the name of what the disk has left.
    fn is_source_another(&self) -> bool {
        self.was_and_is().is_some_and(|(was, now)| was.is_another(&now))
    }

    /// Whether nobody knows: the file is as the disk left it, and its file server gave it
    /// another handle.
    fn is_source_rehandled(&self) -> bool {
        self.was_and_is().is_some_and(|(was, now)| was.may_be_rehandled(&now))
    }

    /// What the disk has left, as it was then, and what has its name now.
    fn was_and_is(&self) -> Option<(KnownFile, KnownFile)> {
        let now = self.machines.look_at_source(&self.record.source);
        self.record.source_file.zip(now)
    }

    /// How the file is removed that the disk has left, if Sterna can do that.
    fn removal(&self) -> Option<String> {
        self.record.source_file.filter(|_| !self.is_source_another())?;
        let handle = self.machines.storage.handle(&self.record.from).ok()?;
        let source = Path::new(&self.record.source);
        let is_there = source.parent() == handle.record().location.directory();
        let file = source.file_name()?.to_str().filter(|_| is_there)?;
        Some(format!("{} removes the old file", handle.removal_command(file)?))
    }

    /// What whoever starts the VM has to know: where nobody else keeps how it is started,
    /// it would be with the image that it has left. libvirt keeps that, and has it by now.
    fn next_start(&self) -> Option<String> {
        let VmMoveRecord { vm, kind, destination, .. } = &self.record;
        if let Reach::Libvirt { domain, .. } = &self.reach {
            let is = match kind {
                VmMoveKind::Move | VmMoveKind::Release(_) => destination.clone(),
                VmMoveKind::Adopt(disk) => format!("Sterna disk {}", disk.name),
            };
            return Some(format!("libvirt's XML of {domain} names {is} now"));
        }
        let with = match kind {
            VmMoveKind::Move | VmMoveKind::Release(_) => destination.clone(),
            VmMoveKind::Adopt(disk) => {
                format!("what `sterna disk qemu-args {}` prints", disk.name)
            }
        };
        Some(format!("from now on start {vm} with {with}, never with the old disk"))
    }
}

/// What is said of a VM that may still have something of the copy.
fn may_have(still: &Failure) -> Option<String> {
    match still {
        Failure::Nobody(_) => None,
        Failure::Unserved(_) => Some(REMOVED_WHEN_SERVED.to_owned()),
        _ => Some(REMOVED_WHEN_IT_ANSWERS.to_owned()),
    }
}
