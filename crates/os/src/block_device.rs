//! What a block device does: what it has in flight, and what it has done since the host was
//! started.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A block device, where the kernel counts what it does.
#[derive(Clone, Debug)]
pub struct BlockDevice(PathBuf);

/// What a device has done since the host was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounts {
    /// Reads that have ended.
    pub reads: u64,
    /// How long they took, added up; the kernel says it in milliseconds.
    pub read_time: Duration,
    /// Writes that have ended.
    pub writes: u64,
}

impl BlockDevice {
    /// The device at this path, or the one on which this file's file system is.
    pub fn of(path: &Path) -> io::Result<BlockDevice> {
        let found = fs::metadata(path)?;
        let device = match found.file_type().is_block_device() {
            true => found.rdev(),
            false => found.dev(),
        };
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        // The place of a device that has gone stays nobody's: a link may lead elsewhere later.
        let place = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
        place.canonicalize().map(BlockDevice)
    }

    /// What the kernel calls it: `sda3`, `dm-1`.
    pub fn name(&self) -> String {
        self.0.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// How many writes it has begun and not ended.
    pub fn writes_in_flight(&self) -> io::Result<u64> {
        writes(&fs::read_to_string(self.0.join("inflight"))?)
            .ok_or_else(|| ErrorKind::InvalidData.into())
    }

    /// What it has done.
    pub fn counts(&self) -> io::Result<DeviceCounts> {
        counts(&fs::read_to_string(self.0.join("stat"))?)
            .ok_or_else(|| ErrorKind::InvalidData.into())
    }
}

/// The kernel's line has reads and writes.
fn writes(text: &str) -> Option<u64> {
    text.split_whitespace().nth(1)?.parse().ok()
}

/// The kernel's line begins with reads, those that were joined to others, sectors and
/// milliseconds, and then has the same of writes (Documentation/block/stat.rst).
fn counts(text: &str) -> Option<DeviceCounts> {
    let mut fields = text.split_whitespace().map(|field| field.parse::<u64>().ok());
    let reads = fields.next()??;
    let read_time = Duration::from_millis(fields.nth(2)??);
    Some(DeviceCounts { reads, read_time, writes: fields.next()?? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_lines_are_read() {
        assert_eq!(writes("       3       12\n"), Some(12));
        assert_eq!(writes("3\n"), None);
        let line = "  446216  784926  9550688  4382310  124847  312726  3492816  15840\n";
        let read_time = Duration::from_millis(4_382_310);
        let expected = DeviceCounts { reads: 446_216, read_time, writes: 124_847 };
        assert_eq!(counts(line), Some(expected));
        assert_eq!(counts("1 2 3 4\n"), None);
    }
}
