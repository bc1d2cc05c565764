//! A datastore that is a block device: one image, from its first byte.
//!
//! The sidecar is in the trailer, if the disk leaves room for it. A device that
//! is mounted, or that something else is built on (LVM, md, multipath), is
//! refused: the kernel knows, and says so when it is opened exclusively. The
//! claim is not kept, because the reactors open the device on their own.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::DatastoreError;
use super::error::failed;
use crate::image::ImageSpec;
use crate::sidecar::trailer::{TRAILER_LEN, Trailer};

#[derive(Clone, Debug)]
pub(super) struct Device {
    path: PathBuf,
    pub(super) capacity: u64,
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
        let mut device = Device { path: path.into(), capacity: 0 };
        device.capacity = device.check_free()?;
        Ok(device)
    }

    pub(super) fn image(&self) -> ImageSpec {
        ImageSpec::File { path: self.path.clone(), direct: true }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Checks that nobody uses the device; gives its size.
    pub(super) fn check_free(&self) -> Result<u64, DatastoreError> {
        let exclusive = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_EXCL)
            .open(&self.path);
        match exclusive {
            Ok(mut file) => file
                .seek(SeekFrom::End(0))
                .map_err(failed("find the size of", &self.path)),
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => Err(self.busy()),
            Err(error) => Err(failed("open", &self.path)(error)),
        }
    }

    /// Who uses the device.
    fn busy(&self) -> DatastoreError {
        let device = self.path.clone();
        let number = self.path.metadata().map(|metadata| {
            let number = metadata.rdev();
            format!("{}:{}", libc::major(number), libc::minor(number))
        });
        let Ok(number) = number else {
            return DatastoreError::Held { device, holders: "another program".into() };
        };
        if let Some(mount) = mount_of(&number) {
            return DatastoreError::Mounted { device, mount };
        }
        let holders: Vec<String> =
            std::fs::read_dir(format!("/sys/dev/block/{number}/holders"))
                .into_iter()
                .flatten()
                .filter_map(|entry| Some(entry.ok()?.file_name().to_str()?.into()))
                .collect();
        let holders = match holders.is_empty() {
            true => "the system (a mounted partition, swap, md or LVM)".into(),
            false => holders.join(", "),
        };
        DatastoreError::Held { device, holders }
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
        let write = || {
            let file = OpenOptions::new().write(true).open(&self.path)?;
            for trailer in trailers {
                file.write_all_at(trailer, at)?;
                file.sync_data()?;
            }
            Ok(())
        };
        write().map_err(failed("write the sidecar of", &self.path))
    }
}

/// Where the device with this number is mounted.
fn mount_of(number: &str) -> Option<String> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    let mut fields = mounts.lines().map(|line| line.split(' '));
    let mut of_device = fields.find(|fields| fields.clone().nth(2) == Some(number))?;
    of_device.nth(4).map(str::to_owned)
}
