//! Classes, as the API's requests see them.
//!
//! A disk is in one class at most, and a disk that is removed leaves its class. The
//! class `migration` is built in: it is the copies of all migrations, so it has no
//! disks; it can be limited and given shares, and stays.

use std::collections::BTreeSet;

use sterna_api::{ChangeClass, Class, CreateClass, Error, Result, Terms};
use sterna_core::DiskId;
use sterna_core::qos::policy::resolve;
use sterna_core::qos::{ClassId, Rate, SHARES};
use sterna_os::{Local, clock};
use sterna_state::{ClassChange, ClassRecord};
use sterna_storage::claims::Claim;
use sterna_storage::datastores::check_name;
use sterna_storage::disks::claim_of;

use crate::ServiceLevels;
use crate::{Entry, PolicySnapshot};

/// Classes at most. All of them are looked at whenever a schedule switches, and the
/// loops of cruise control look at them all the time.
const CLASSES_MAX: usize = 256;

/// What somebody who limits copies should know.
const COUNTED_TWICE: &str =
    "both reads and writes of a copy count: a disk moves at half of the limit";

/// A class that the store has not numbered yet; no number is as high.
const NEW: ClassId = ClassId(u32::MAX);

/// Disks by their ids, with claims, so that nobody removes them meanwhile.
type Claimed = (Vec<DiskId>, Vec<Claim>);

impl ServiceLevels {
    /// All classes: the built-in ones, then as they were made.
    pub fn list_classes(&self) -> Result<Vec<Class>> {
        self.snapshot().entries().map(|entry| self.view_class(entry)).collect()
    }

    /// One class.
    pub fn show_class(&self, name: &str) -> Result<Class> {
        self.view_class(self.snapshot().class(name)?)
    }

    /// Creates a class.
    pub fn create_class(&self, request: &CreateClass) -> Result<Class> {
        let CreateClass { name, disks, shares, reservation } = request;
        check_name("class", name)?;
        let reservation = reservation.map(Rate::try_from).transpose();
        let record = ClassRecord {
            id: NEW,
            name: name.clone(),
            shares: shares.unwrap_or(SHARES),
            reservation: reservation.map_err(Error::invalid)?,
            created: clock::now(),
        };
        let (disks, _claims) = self.claim_disks(disks)?;
        self.in_turn(|snapshot| {
            if snapshot.class(name).is_ok() {
                return Err(Error::exists("class", name));
            }
            if snapshot.entries().count() >= CLASSES_MAX {
                let message = format!("there are {CLASSES_MAX} classes already");
                return Err(Error::invalid(message).hint("delete one first"));
            }
            self.check_free(snapshot, &disks, NEW)?;
            let (record, disks) = (record.clone(), disks.clone());
            let next = Entry { record: record.clone(), disks, policies: Vec::new() };
            self.check_snapshot(&snapshot.with(next.clone()), NEW)?;
            Ok(self.storage.store.add_class(record, next.disks)?)
        })?;
        self.join_classes(&disks);
        tracing::info!(class = name, disks = disks.len(), "class created");
        self.show_class(name)
    }

    /// Changes a class: all that is asked, or nothing.
    pub fn change_class(&self, name: &str, request: &ChangeClass) -> Result<Class> {
        let (add, _added) = self.claim_disks(&request.add)?;
        let (remove, _removed) = self.claim_disks(&request.remove)?;
        let reservation =
            request.reservation.map(|it| it.map(Rate::try_from).transpose());
        let reservation = reservation.transpose().map_err(Error::invalid)?;
        self.in_turn(|snapshot| {
            let entry = snapshot.class(name)?;
            let id = entry.record.id;
            if entry.is_built_in() && !add.is_empty() {
                let message = format!("class {name} takes no disks");
                let hint = "the class contains the copies of all migrations; limit the \
                            class, or change its shares";
                return Err(Error::invalid(message).hint(hint));
            }
            self.check_free(snapshot, &add, id)?;
            self.check_members(entry, &remove)?;
            let mut next = entry.clone();
            next.record.shares = request.shares.unwrap_or(entry.record.shares);
            next.record.reservation = reservation.unwrap_or(entry.record.reservation);
            let new: Vec<_> =
                add.iter().copied().filter(|disk| !entry.disks.contains(disk)).collect();
            next.disks.retain(|disk| !remove.contains(disk));
            next.disks.extend(&new);
            let ClassRecord { shares, reservation, .. } = next.record;
            self.check_snapshot(&snapshot.with(next), id)?;
            let remove = remove.clone();
            let change = ClassChange { shares, reservation, add: new, remove };
            Ok(self.storage.store.change_class(id, change)?)
        })?;
        self.join_classes(&add);
        self.join_classes(&remove);
        let (added, removed) = (add.len(), remove.len());
        tracing::info!(class = name, added, removed, "class changed");
        self.show_class(name)
    }

    /// Deletes a class; its disks are in none then. Its policies are somebody's work, so
    /// they go with it only if that was said.
    pub fn delete_class(&self, name: &str, with_policies: bool) -> Result<Class> {
        let gone = self.show_class(name)?;
        let disks = self.in_turn(|snapshot| {
            let entry = snapshot.class(name)?;
            if entry.is_built_in() {
                let message = format!("class {name} is built in and cannot be deleted");
                let hint = match entry.policies.is_empty() {
                    true => "the class contains the copies of all migrations",
                    false => "remove its policies: `sterna policy list`",
                };
                return Err(Error::invalid(message).hint(hint));
            }
            if !with_policies && !entry.policies.is_empty() {
                return Err(has_policies(entry));
            }
            self.storage.store.remove_class(entry.record.id)?;
            Ok(entry.disks.clone())
        })?;
        self.join_classes(&disks);
        tracing::info!(class = name, "class deleted");
        Ok(gone)
    }

    fn claim_disks(&self, names: &[String]) -> Result<Claimed> {
        let names: BTreeSet<&str> = names.iter().map(String::as_str).collect();
        let mut claimed = Claimed::default();
        for name in names {
            claimed.1.push(self.storage.claims.shared(claim_of(name))?);
            claimed.0.push(self.storage.disk_record(name)?.id);
        }
        Ok(claimed)
    }

    /// Refuses disks that are in another class.
    fn check_free(
        &self,
        snapshot: &PolicySnapshot,
        disks: &[DiskId],
        class: ClassId,
    ) -> Result<()> {
        for &disk in disks {
            let Some(other) = snapshot.class_of(disk) else { continue };
            if other.record.id != class {
                let (disk, other) = (self.name_of(disk)?, &other.record.name);
                let message = format!("disk {disk} is in class {other} already");
                let hint = format!(
                    "remove it from the class first: `sterna class remove-disk \
                     {other} {disk}`"
                );
                return Err(Error::in_use(message).hint(hint));
            }
        }
        Ok(())
    }

    /// Refuses disks that are not in the class that they shall leave.
    fn check_members(&self, entry: &Entry, disks: &[DiskId]) -> Result<()> {
        let Some(&disk) = disks.iter().find(|disk| !entry.disks.contains(disk)) else {
            return Ok(());
        };
        let (disk, class) = (self.name_of(disk)?, &entry.record.name);
        let message = format!("disk {disk} is not in class {class}");
        let hint = format!("see `sterna class show {class}`");
        Err(Error::invalid(message).hint(hint))
    }

    fn name_of(&self, disk: DiskId) -> Result<String> {
        let disks = self.storage.store.disks()?;
        let one = disks.into_iter().find(|one| one.id == disk);
        Ok(one.map_or_else(|| disk.to_string(), |one| one.name))
    }

    /// A class as the API shows it.
    pub(crate) fn view_class(&self, entry: &Entry) -> Result<Class> {
        let disks = self.storage.store.disks()?;
        let of_it = disks.into_iter().filter(|disk| entry.disks.contains(&disk.id));
        let in_force = resolve(&entry.plan(), Local::now().moment()).terms;
        let mut notes = self.reservation_notes(entry.record.id)?;
        let limit = in_force.limit;
        if entry.is_built_in() && (limit.bytes.is_some() || limit.requests.is_some()) {
            notes.push(COUNTED_TWICE.into());
        }
        Ok(Class {
            name: entry.record.name.clone(),
            built_in: entry.is_built_in(),
            disks: of_it.map(|disk| disk.name).collect(),
            shares: entry.record.shares,
            reservation: entry.record.reservation.map(Into::into),
            policies: entry.policies.iter().map(|policy| policy.id.0).collect(),
            in_force: Terms::from(in_force),
            attained: self.view_attained(entry),
            held: self.view_held(&self.snapshot(), entry.record.id),
            notes,
            created: entry.record.created,
        })
    }
}

/// A class is not deleted because of its policies.
fn has_policies(entry: &Entry) -> Error {
    let name = &entry.record.name;
    let ids: Vec<_> = entry.policies.iter().map(|policy| policy.id.to_string()).collect();
    let message = format!("class {name} has policies: {}", ids.join(", "));
    let hint = format!(
        "to delete the policies too: `sterna class delete {name} --with-policies`; to \
         see their effect: `sterna policy explain {name}`"
    );
    Error::in_use(message).hint(hint)
}
