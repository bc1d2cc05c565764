//! A datastore that is a block device: one image, from its first byte.
//!
//! The sidecar is in the trailer, if the disk leaves room for it. A device that
//! is mounted, or that something else is built on (LVM, md, multipath), is
//! refused: the kernel knows, and says so when it is opened exclusively. The
//! claim is kept while an image there is open, and not in between: an empty device
//! is whose it is.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::{Path, PathBuf};

use super::DatastoreError;
use super::error::failed;
use super::visit::Visit;
use crate::ground::Ground;
use crate::image::ImageSpec;
use crate::image::claim::{Claim, ClaimError, Holder};
use crate::sidecar::trailer::{TRAILER_LEN, Trailer};

#[derive(Clone, Debug)]
pub(super) struct Device {
    path: PathBuf,
    pub(super) capacity: u64,
    /// What it lies on, as that was when it was opened.
    pub(super) ground: Ground,
}

impl Device {
    /// Opens the device, which nobody else may use.
    pub(super) fn open(path: &Path) -> Result<Device, DatastoreError> {
        let metadata = path.metadata().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => DatastoreError::Missing(path.into()),
            _ => failed("open", path)(error),
        })?;
        if !metadata.file_type().is_block_device() {
            let expected = "block device";
            return Err(DatastoreError::Kind { path: path.into(), expected });
        }
        let ground = Ground::at(path).unwrap_or_default();
        let mut device = Device { path: path.into(), capacity: 0, ground };
        device.capacity = device.check_free()?;
        Ok(device)
    }

    pub(super) fn image(&self) -> ImageSpec {
        ImageSpec::File { path: self.path.clone(), direct: true }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Somebody who looks at it.
    pub(super) fn visit(&self) -> Result<Visit, DatastoreError> {
        Visit::to_device(&self.path, self.capacity)
    }

    /// Checks that nobody uses the device; gives its size.
    pub(super) fn check_free(&self) -> Result<u64, DatastoreError> {
        let claim = Claim::of(&self.path).map_err(|error| match error {
            ClaimError::Busy | ClaimError::Ours(_) => self.busy(),
            ClaimError::Failed(error) => failed("open", &self.path)(error),
        })?;
        claim
            .file()
            .seek(SeekFrom::End(0))
            .map_err(failed("find the size of", &self.path))
    }

    /// Its size now, whoever uses it.
    pub(super) fn size_now(&self) -> Result<u64, DatastoreError> {
        File::open(&self.path)
            .and_then(|mut file| file.seek(SeekFrom::End(0)))
            .map_err(failed("find the size of", &self.path))
    }

    /// Who uses the device.
    fn busy(&self) -> DatastoreError {
        let device = self.path.clone();
        match Holder::of(&device) {
            Holder::Mount(mount) => DatastoreError::Mounted { device, mount },
            Holder::Others(holders) => DatastoreError::Held { device, holders },
        }
    }

    pub(super) fn read_trailer(&self, at: u64) -> Result<Trailer, DatastoreError> {
        let mut trailer = [0; TRAILER_LEN];
        File::open(&self.path)
            .and_then(|file| file.read_exact_at(&mut trailer, at))
            .map_err(failed("read the sidecar of", &self.path))?;
        Ok(trailer)
    }

    /// Writes one trailer after the other, each durable before the next.
    pub(super) fn write_trailers(
        &self,
        at: u64,
        trailers: &[Trailer],
    ) -> Result<(), DatastoreError> {
        let file = OpenOptions::new().write(true).open(&self.path);
        file.and_then(|file| write(&file, at, trailers))
            .map_err(failed("write the sidecar of", &self.path))
    }

    /// Writes what comes of the trailer that is there.
    pub(super) fn change_trailer(
        &self,
        at: u64,
        change: &mut dyn FnMut(&Trailer) -> Result<Vec<Trailer>, DatastoreError>,
    ) -> Result<(), DatastoreError> {
        let mut old = [0; TRAILER_LEN];
        let file = OpenOptions::new().read(true).write(true).open(&self.path);
        let file = file.map_err(failed("open", &self.path))?;
        file.read_exact_at(&mut old, at)
            .map_err(failed("read the sidecar of", &self.path))?;
        write(&file, at, &change(&old)?)
            .map_err(failed("write the sidecar of", &self.path))
    }
}

/// Each is durable before the next.
fn write(file: &File, at: u64, trailers: &[Trailer]) -> io::Result<()> {
    for trailer in trailers {
        file.write_all_at(trailer, at)?;
        file.sync_data()?;
    }
    Ok(())
}
