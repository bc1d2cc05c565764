//! A datastore that is one image as a whole: a block device or an export.
//!
//! What differs between the two is in [`Device`] and [`Remote`]; here is what
//! they share: who may have the medium, and where its sidecar is.

use std::path::PathBuf;

use sterna_core::Bytes;

use super::device::Device;
use super::error::{check_none_but_ours, check_ours, sidecar as sidecar_failed};
use super::remote::Remote;
use super::{
    Created, DatastoreError, Provision, SaysInUse, SidecarPlace, Space, occupied, zeroes,
};
use crate::image::ImageSpec;
use crate::sidecar::trailer::{self, TRAILER_LEN, Trailer};
use crate::sidecar::{self, Identity, Role, SidecarError};

#[derive(Clone, Debug)]
pub(super) struct Medium {
    pub(super) kind: Kind,
    /// Where the sidecar goes if the disk leaves it no room.
    pub(super) sidecar: Option<PathBuf>,
    /// Where the end was before it was made larger, if a sidecar was left there (`growth`).
    pub(super) behind: Option<u64>,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    Device(Device),
    Remote(Remote),
}

impl Medium {
    pub(super) fn new(kind: Kind) -> Medium {
        Medium { kind, sidecar: None, behind: None }
    }

    pub(super) fn image(&self) -> ImageSpec {
        match &self.kind {
            Kind::Device(device) => device.image(),
            Kind::Remote(remote) => remote.image(),
        }
    }

    pub(super) fn capacity(&self) -> u64 {
        match &self.kind {
            Kind::Device(device) => device.capacity,
            Kind::Remote(remote) => remote.capacity,
        }
    }

    /// The size that it has now.
    pub(super) fn size_now(&self) -> Result<u64, DatastoreError> {
        match &self.kind {
            Kind::Device(device) => device.size_now(),
            Kind::Remote(remote) => remote.size_now(),
        }
    }

    fn place(&self) -> String {
        match &self.kind {
            Kind::Device(device) => device.path().display().to_string(),
            Kind::Remote(remote) => remote.uri().to_string(),
        }
    }

    /// What it has. It is read for that, whatever is in it: a sidecar that is in a
    /// file says nothing of a medium that is gone.
    pub(super) fn space(&self) -> Result<Space, DatastoreError> {
        let capacity = self.capacity();
        let found = match trailer::offset(capacity, 0) {
            Some(at) => {
                let trailer = self.read_trailer(at)?;
                match self.found_in_file() {
                    Some(found) => found.is_ok(),
                    None => {
                        trailer::read(&trailer).is_ok() || self.left_behind()?.is_some()
                    }
                }
            }
            None => self.found().is_ok(),
        };
        let free = if found { 0 } else { capacity };
        Ok(Space { capacity, free, room: None })
    }

    pub(super) fn create(
        &self,
        identity: &Identity,
        provision: Provision,
    ) -> Result<Created, DatastoreError> {
        let reads_zero = match &self.kind {
            _ if provision == Provision::ThickZeroed => false,
            // What a device holds is what was there before.
            Kind::Device(_) => false,
            Kind::Remote(remote) => {
                self.check_room(remote.capacity, identity.size)?;
                remote.reads_zero(identity.size)?
            }
        };
        self.claim(identity, false)?;
        Ok(Created { image: self.image(), reads_zero })
    }

    pub(super) fn adopt(&self, identity: &Identity) -> Result<ImageSpec, DatastoreError> {
        self.claim(identity, true)?;
        Ok(self.image())
    }

    /// Puts `identity` on the medium, if nobody and no other disk has it.
    fn claim(&self, identity: &Identity, adopt: bool) -> Result<(), DatastoreError> {
        if let Kind::Device(device) = &self.kind {
            device.check_free()?;
        }
        self.check_room(self.capacity(), identity.size)?;
        check_takes(&self.place(), self.found(), identity, adopt)?;
        self.write_sidecar(identity)
    }

    /// Whether a disk of `needed` bytes still fits the medium as it is now.
    pub(super) fn check_fits(&self, needed: u64) -> Result<(), DatastoreError> {
        let capacity = match &self.kind {
            Kind::Device(device) => device.capacity,
            Kind::Remote(remote) => remote.size_now()?,
        };
        self.check_room(capacity, needed)
    }

    fn check_room(&self, capacity: u64, needed: u64) -> Result<(), DatastoreError> {
        if capacity >= needed {
            return Ok(());
        }
        Err(DatastoreError::TooSmall {
            place: self.place(),
            capacity: Bytes(capacity),
            needed: Bytes(needed),
        })
    }

    /// What is on the medium, whatever its disk's size is. The file comes
    /// first: where there is one, the last block is the guest's, who may write
    /// there what looks like a sidecar.
    pub(super) fn found(&self) -> Result<Identity, DatastoreError> {
        if let Some(found) = self.found_in_file() {
            return found;
        }
        self.read_sidecar(0)
    }

    /// What the sidecar in a file says, if there is one.
    pub(super) fn found_in_file(&self) -> Option<Result<Identity, DatastoreError>> {
        self.sidecar.as_ref()?;
        match self.read_sidecar(u64::MAX) {
            Err(DatastoreError::Sidecar { source: SidecarError::Missing, .. }) => None,
            found => Some(found),
        }
    }

    /// What it says, and what its end says if the sidecar is in a file.
    pub(super) fn says_in_use(&self) -> Result<SaysInUse, DatastoreError> {
        let end = told(self.read_sidecar(0))?;
        Ok(match self.found_in_file() {
            Some(in_file) => SaysInUse { whole: told(in_file)?, end },
            None => SaysInUse { whole: end, end: None },
        })
    }

    /// Where the sidecar of a disk of `size` bytes is.
    pub(super) fn sidecar_place(&self, size: u64) -> SidecarPlace {
        match (trailer::offset(self.capacity(), size), &self.sidecar) {
            (Some(at), _) => SidecarPlace::Trailer(at),
            (None, Some(path)) => SidecarPlace::File(path.clone()),
            (None, None) => SidecarPlace::Nowhere,
        }
    }

    /// What the image of a disk of `size` bytes says of itself: where its sidecar belongs, or
    /// else where that was left.
    pub(super) fn read_sidecar(&self, size: u64) -> Result<Identity, DatastoreError> {
        let found = self.read_in_place(size);
        let is_at_the_end = matches!(self.sidecar_place(size), SidecarPlace::Trailer(_));
        match &found {
            Err(error) if is_at_the_end && error.says_no_sidecar() => {
                self.left_behind()?.map_or(found, Ok)
            }
            _ => found,
        }
    }

    /// The same only where its sidecar belongs.
    pub(super) fn read_in_place(&self, size: u64) -> Result<Identity, DatastoreError> {
        let identity = match self.sidecar_place(size) {
            SidecarPlace::File(path) => sidecar::file::read(&path),
            SidecarPlace::Trailer(at) => trailer::read(&self.read_trailer(at)?),
            SidecarPlace::Nowhere => {
                return Err(DatastoreError::NoSidecarPlace(self.place()));
            }
        };
        identity.map_err(sidecar_failed(self.place()))
    }

    pub(super) fn write_sidecar(
        &self,
        identity: &Identity,
    ) -> Result<(), DatastoreError> {
        match self.sidecar_place(identity.size) {
            SidecarPlace::File(path) => sidecar::file::write(&path, identity)
                .map_err(sidecar_failed(self.place())),
            SidecarPlace::Trailer(at) => {
                let record = identity.encode().map_err(sidecar_failed(self.place()))?;
                self.change_trailer(at, &mut |old| Ok(trailer::steps(old, &record)))?;
                self.forget_left(identity)
            }
            SidecarPlace::Nowhere => Err(DatastoreError::NoSidecarPlace(self.place())),
        }
    }

    /// The same where the sidecar that is there must be one of `ours`. On the medium itself
    /// it is read on the connection that writes, as another one may lead elsewhere by now; so one
    /// that was left behind stays there.
    pub(super) fn change_sidecar(
        &self,
        identity: &Identity,
        ours: &dyn Fn(&Identity) -> bool,
    ) -> Result<(), DatastoreError> {
        match self.sidecar_place(identity.size) {
            SidecarPlace::Trailer(end) => {
                let place = self.place();
                let record = identity.encode().map_err(sidecar_failed(&place))?;
                let at = self.lies_at(end, identity.size)?;
                self.change_trailer(at, &mut |old| {
                    check_ours(&place, trailer::read(old), ours)?;
                    Ok(trailer::steps(old, &record))
                })
            }
            SidecarPlace::File(path) => {
                check_none_but_ours(&self.place(), sidecar::file::read(&path), ours)?;
                self.write_sidecar(identity)
            }
            SidecarPlace::Nowhere => Err(DatastoreError::NoSidecarPlace(self.place())),
        }
    }

    /// Removes the sidecar, wherever that is; the medium is free then. Where none is, somebody
    /// else may have bytes, which stay.
    pub(super) fn remove(&self, size: u64) -> Result<(), DatastoreError> {
        let at = match self.sidecar_place(size) {
            SidecarPlace::File(path) => {
                return sidecar::file::remove(&path)
                    .map_err(sidecar_failed(self.place()));
            }
            SidecarPlace::Trailer(at) => at,
            SidecarPlace::Nowhere => return Ok(()),
        };
        // First: after a kill, one that was left elsewhere must not be the only one.
        match self.read_sidecar(size) {
            Ok(found) => self.forget_left(&found)?,
            Err(error) if error.says_no_sidecar() && self.was_filled(size) => {
                self.forget_file()?;
            }
            Err(error) if error.says_no_sidecar() => {}
            Err(error) => return Err(error),
        }
        self.change_trailer(at, &mut |old| {
            let is_none = matches!(trailer::read(old), Err(SidecarError::Missing));
            Ok(if is_none { Vec::new() } else { vec![[0; TRAILER_LEN]] })
        })
    }

    /// Removes the sidecar if it is one of `ours`, as read on the connection that writes.
    pub(super) fn remove_ours(
        &self,
        size: u64,
        ours: &dyn Fn(&Identity) -> bool,
    ) -> Result<(), DatastoreError> {
        let place = self.place();
        match self.sidecar_place(size) {
            SidecarPlace::Trailer(end) => {
                let at = self.lies_at(end, size)?;
                self.change_trailer(at, &mut |old| {
                    check_ours(&place, trailer::read(old), ours)?;
                    Ok(vec![[0; TRAILER_LEN]])
                })
            }
            SidecarPlace::File(path) => {
                check_none_but_ours(&place, sidecar::file::read(&path), ours)?;
                sidecar::file::remove(&path).map_err(sidecar_failed(place))
            }
            SidecarPlace::Nowhere => Ok(()),
        }
    }

    /// Bytes of a disk of `size` bytes that take space, if that is known.
    pub(super) fn allocated(&self, size: u64) -> Option<u64> {
        match &self.kind {
            Kind::Device(_) => Some(size),
            Kind::Remote(remote) => remote.allocated(size.min(remote.capacity)),
        }
    }

    pub(super) fn fill_zeroes(
        &self,
        size: u64,
        progress: &mut dyn FnMut(u64) -> bool,
    ) -> Result<(), DatastoreError> {
        self.check_fits(size)?;
        match &self.kind {
            Kind::Device(device) => zeroes::fill(device.path(), size, progress),
            Kind::Remote(remote) => remote.fill_zeroes(size, progress),
        }
    }

    pub(super) fn read_trailer(&self, at: u64) -> Result<Trailer, DatastoreError> {
        match &self.kind {
            Kind::Device(device) => device.read_trailer(at),
            Kind::Remote(remote) => remote.read_trailer(at),
        }
    }

    pub(super) fn change_trailer(
        &self,
        at: u64,
        change: &mut dyn FnMut(&Trailer) -> Result<Vec<Trailer>, DatastoreError>,
    ) -> Result<(), DatastoreError> {
        match &self.kind {
            Kind::Device(device) => device.change_trailer(at, change),
            Kind::Remote(remote) => remote.change_trailer(at, change),
        }
    }

    pub(super) fn write_trailers(
        &self,
        at: u64,
        trailers: &[Trailer],
    ) -> Result<(), DatastoreError> {
        match &self.kind {
            Kind::Device(device) => device.write_trailers(at, trailers),
            Kind::Remote(remote) => remote.write_trailers(at, trailers),
        }
    }
}

/// What a place says, if it says anything.
fn told(
    found: Result<Identity, DatastoreError>,
) -> Result<Option<Identity>, DatastoreError> {
    match found {
        Err(error) if error.says_no_sidecar() => Ok(None),
        found => found.map(Some),
    }
}

/// Refuses to put `identity` on a medium that somebody else has by what was `found` there. If
/// that could not be read, anybody may have the medium.
fn check_takes(
    place: &str,
    found: Result<Identity, DatastoreError>,
    identity: &Identity,
    adopt: bool,
) -> Result<(), DatastoreError> {
    match found {
        Ok(found) if found.id != identity.id => Err(occupied(place, &found)),
        Ok(found) if found.role == Role::Active && !adopt => Err(occupied(place, &found)),
        Err(error) if !error.says_no_sidecar() => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use sterna_core::DiskId;

    use super::*;
    use crate::datastore::error::failed;

    fn disk(id: u128) -> Identity {
        let (id, name) = (DiskId(id), "db".to_owned());
        Identity { id, name, size: 1 << 20, generation: 1, role: Role::Active }
    }

    fn takes(found: Result<Identity, DatastoreError>, adopt: bool) -> bool {
        check_takes("/dev/sdx", found, &disk(1), adopt).is_ok()
    }

    #[test]
    fn a_medium_takes_a_disk_if_no_other_disk_has_it() {
        let says = |source| Err(sidecar_failed("/dev/sdx")(source));
        for adopt in [true, false] {
            assert_eq!(takes(Ok(disk(1)), adopt), adopt);
            assert!(!takes(Ok(disk(2)), adopt));
            assert!(takes(says(SidecarError::Missing), adopt));
            assert!(takes(says(SidecarError::Foreign), adopt));
            assert!(takes(says(SidecarError::Damaged("torn")), adopt));
            assert!(!takes(says(SidecarError::Version(9)), adopt));
        }
    }

    #[test]
    fn a_medium_that_cannot_be_read_takes_nothing() {
        let broken = || io::Error::from_raw_os_error(libc::EIO);
        let path = || PathBuf::from("/dev/sdx");
        for adopt in [true, false] {
            assert!(!takes(Err(failed("read", &path())(broken())), adopt));
            let source =
                SidecarError::Io { what: "read", path: path(), source: broken() };
            assert!(!takes(Err(sidecar_failed("/dev/sdx")(source)), adopt));
        }
    }
}
