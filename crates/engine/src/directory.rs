//! Which disks there are and where: shared by the control calls and by the
//! handshakes. Locked for look-ups only, never while something waits.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use sterna_nbd::export::ListEntry;
use sterna_nbd::{BlockSizes, Export, OptionError, TransmissionFlags};

use sterna_core::DiskId;

/// What offsets and lengths of requests are multiples of. Guests know 512, and
/// an image takes it whatever its device wants.
pub(crate) const BLOCK_MIN: u32 = 512;
/// Pages: what file systems and databases write.
const BLOCK_PREFERRED: u32 = 4096;
/// The longest read or write: what every client may count on.
const REQUEST_MAX: u32 = sterna_nbd::limits::PAYLOAD_DEFAULT_MAX;

#[derive(Default)]
pub(crate) struct Directory(Mutex<HashMap<DiskId, Entry>>);

/// A disk in the directory.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) size: u64,
    pub(crate) fast_zero: bool,
    /// Clients find it by its id alone.
    pub(crate) unnamed: bool,
    /// Where it is; `None` while it is being attached.
    pub(crate) place: Option<Place>,
}

/// A disk's place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) reactor: usize,
    pub(crate) index: u32,
}

/// Why a disk cannot be entered.
pub(crate) enum Taken {
    Id,
    Name,
}

/// How an export is described: by it a disk is known through a server that passes the
/// export on under another name.
pub fn description(disk: DiskId) -> String {
    format!("Sterna disk {disk}")
}

impl Directory {
    fn entries(&self) -> MutexGuard<'_, HashMap<DiskId, Entry>> {
        self.0.lock().expect("nothing panics with the directory locked")
    }

    /// Enters a disk that is about to be attached.
    pub(crate) fn reserve(
        &self,
        id: DiskId,
        name: &str,
        size: u64,
        unnamed: bool,
    ) -> Result<(), Taken> {
        let mut entries = self.entries();
        if entries.contains_key(&id) {
            return Err(Taken::Id);
        }
        if entries.values().any(|entry| entry.name == name) {
            return Err(Taken::Name);
        }
        let (name, place) = (name.to_owned(), None);
        let entry = Entry { name, size, fast_zero: false, unnamed, place };
        entries.insert(id, entry);
        Ok(())
    }

    /// From now on clients find it.
    pub(crate) fn settle(&self, id: DiskId, place: Place, fast_zero: bool) {
        if let Some(entry) = self.entries().get_mut(&id) {
            entry.place = Some(place);
            entry.fast_zero = fast_zero;
        }
    }

    /// From now on clients find it by its name as well.
    pub(crate) fn set_named(&self, id: DiskId) {
        if let Some(entry) = self.entries().get_mut(&id) {
            entry.unnamed = false;
        }
    }

    pub(crate) fn remove(&self, id: DiskId) {
        self.entries().remove(&id);
    }

    /// Hides a disk from clients and says where it is; its name stays taken
    /// until `remove`.
    pub(crate) fn hide(&self, id: DiskId) -> Option<Place> {
        self.entries().get_mut(&id)?.place.take()
    }

    pub(crate) fn entry(&self, id: DiskId) -> Option<Entry> {
        self.entries().get(&id).cloned()
    }

    pub(crate) fn place(&self, id: DiskId) -> Option<Place> {
        self.entries().get(&id)?.place
    }

    /// The disk that a client means: by name or id, or without a name the only one.
    pub(crate) fn find(&self, name: &str) -> Option<(Entry, Place)> {
        let (_, entry, place) = self.find_with_id(name)?;
        Some((entry, place))
    }

    fn find_with_id(&self, name: &str) -> Option<(DiskId, Entry, Place)> {
        let entries = self.entries();
        let is_it = |id: &DiskId, entry: &Entry| {
            let named = name.is_empty() || entry.name == name;
            (named && !entry.unnamed) || id.to_string() == name
        };
        let mut found = entries
            .iter()
            .filter(|(id, entry)| is_it(id, entry))
            .filter_map(|(id, entry)| Some((*id, entry, entry.place?)));
        let (id, entry, place) = found.next()?;
        found.next().is_none().then(|| (id, entry.clone(), place))
    }

    /// How many disks each of `reactors` has.
    pub(crate) fn load(&self, reactors: usize) -> Vec<usize> {
        let mut load = vec![0; reactors];
        for place in self.entries().values().filter_map(|entry| entry.place) {
            load[place.reactor] += 1;
        }
        load
    }

    /// The export for a client that asks for `name`.
    pub(crate) fn export(&self, name: &str) -> Result<Export, OptionError> {
        let (id, entry, _) = self.find_with_id(name).ok_or(OptionError::Unknown)?;
        let mut export = Export::disk(entry.size);
        export.description = Some(description(id));
        export.flags |= TransmissionFlags::CAN_MULTI_CONN | TransmissionFlags::SEND_CACHE;
        if entry.fast_zero {
            export.flags |= TransmissionFlags::SEND_FAST_ZERO;
        }
        export.block_sizes = BlockSizes::new(BLOCK_MIN, BLOCK_PREFERRED, REQUEST_MAX)
            .map_err(|_| OptionError::Platform)?;
        export.name = Some(entry.name);
        Ok(export)
    }

    /// All exports, by name.
    pub(crate) fn list(&self) -> Vec<ListEntry> {
        let mut names: Vec<_> = self
            .entries()
            .values()
            .filter(|entry| entry.place.is_some() && !entry.unnamed)
            .map(|entry| entry.name.clone())
            .collect();
        names.sort_unstable();
        let entry = |name| ListEntry { name, description: String::new() };
        names.into_iter().map(entry).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_without_a_name_is_found_by_its_id_from_the_first_moment_on() {
        let directory = Directory::default();
        let id = DiskId(7);
        assert!(directory.reserve(id, "db", 1 << 20, true).is_ok());
        directory.settle(id, Place { reactor: 0, index: 0 }, false);
        assert!(directory.find(&id.to_string()).is_some());
        assert!(directory.find("db").is_none() && directory.find("").is_none());
        assert_eq!(directory.list(), []);
        directory.set_named(id);
        assert!(directory.find("db").is_some() && directory.find("").is_some());
    }
}
