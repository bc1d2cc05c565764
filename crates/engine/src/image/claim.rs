//! The exclusive claim of a block device, held for as long as an image on it is open.
//!
//! Who opens a block device with `O_EXCL` (and without `O_CREAT`) claims it: the kernel then
//! refuses to mount it, and everybody else's claim, which `mkfs`, LVM, md, swap and a new
//! loop device make first. It refuses claims of the device's partitions as well, and of the
//! whole device where a partition is claimed. A program that opens the device just so is not
//! kept away.
//!
//! A claim belongs to an open file, and a second one of the same process is refused like
//! anybody's. So all who need one here share it, by the device's number: an image, and
//! those who look whether the device is free. Of images there is one on a device, by
//! whatever node of it.
//!
//! The image does its cached work, and its zeroing, by the descriptor that has the claim:
//! the kernel empties its cache of a range that is to be zeroed only for the claim's holder,
//! and refuses others if something there is yet to be written.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use crate::io::{Crew, Stored, closed};

/// Whoever has a device for 100 ms has it.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(5);

/// The claims that are held, by the device's number. Each has a lock of its own: opening a
/// device may take long.
static CLAIMS: Mutex<BTreeMap<u64, Arc<Mutex<Weak<Claim>>>>> =
    Mutex::new(BTreeMap::new());

/// A claimed device.
#[derive(Debug)]
pub(crate) struct Claim {
    file: File,
    /// The node by which an image has it open, if one has.
    image: Mutex<Option<PathBuf>>,
}

/// Why there is no claim.
#[derive(Debug)]
pub(crate) enum ClaimError {
    /// Somebody else uses the device.
    Busy,
    /// An image of ours has it open, by this node.
    Ours(PathBuf),
    /// It cannot be opened.
    Failed(io::Error),
}

impl From<io::Error> for ClaimError {
    fn from(error: io::Error) -> ClaimError {
        match error.raw_os_error() {
            Some(libc::EBUSY) => ClaimError::Busy,
            _ => ClaimError::Failed(error),
        }
    }
}

impl Claim {
    /// Claims the block device at a path, or shares the claim that is held.
    pub(crate) fn of(path: &Path) -> Result<Arc<Claim>, ClaimError> {
        let number = path.metadata()?.rdev();
        let place = {
            let mut claims = lock(&CLAIMS);
            // Those of devices that nobody has or asks for any more.
            claims
                .retain(|_, it| Arc::strong_count(it) > 1 || lock(it).strong_count() > 0);
            Arc::clone(claims.entry(number).or_default())
        };
        let mut held = lock(&place);
        if let Some(claim) = held.upgrade() {
            return Ok(claim);
        }
        let file = open_soon(path)?;
        if file.metadata()?.rdev() != number {
            let another = "another device has just been put there; try again";
            return Err(ClaimError::Failed(io::Error::other(another)));
        }
        let claim = Arc::new(Claim { file, image: Mutex::default() });
        *held = Arc::downgrade(&claim);
        Ok(claim)
    }

    /// The device, as the claim has it open: all have one position in it.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }
}

/// Opens a device that may be busy for a moment with a descriptor of ours: one that is just
/// being closed, or that a child has until it comes to its `exec`.
fn open_soon(path: &Path) -> io::Result<File> {
    for _ in 0..TRIES {
        match open(path) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                closed();
                thread::sleep(PAUSE);
            }
            opened => return opened,
        }
    }
    open(path)
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_EXCL | libc::O_CLOEXEC);
    options.open(path)
}

/// The claim of the one image that is on a device.
#[derive(Debug)]
pub(crate) struct ImageClaim {
    /// There until it is dropped.
    claim: Option<Arc<Claim>>,
    crew: Arc<Crew>,
}

impl ImageClaim {
    /// Claims the block device at a path for an image.
    pub(crate) fn of(path: &Path, crew: &Arc<Crew>) -> Result<ImageClaim, ClaimError> {
        let claim = Claim::of(path)?;
        {
            let mut image = lock(&claim.image);
            if let Some(node) = &*image {
                return Err(ClaimError::Ours(node.clone()));
            }
            *image = Some(path.into());
        }
        Ok(ImageClaim { claim: Some(claim), crew: Arc::clone(crew) })
    }

    /// A descriptor that has the claim.
    pub(crate) fn file(&self) -> io::Result<File> {
        match &self.claim {
            Some(claim) => claim.file.try_clone(),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

impl Drop for ImageClaim {
    fn drop(&mut self) {
        let Some(claim) = self.claim.take() else { return };
        *lock(&claim.image) = None;
        // Who closes the last descriptor waits for the device: never the reactor.
        let last = claim.file.try_clone();
        drop(claim);
        if let Ok(file) = last {
            drop(Stored::new(file, &self.crew, false));
        }
    }
}

/// Nothing is left half done under these locks.
fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Who uses a device that cannot be claimed.
#[derive(Debug)]
pub(crate) enum Holder {
    /// It is mounted there.
    Mount(String),
    /// What else is known.
    Others(String),
}

impl Holder {
    /// Of the block device at a path.
    pub(crate) fn of(path: &Path) -> Holder {
        let number = path.metadata().map(|metadata| {
            let number = metadata.rdev();
            format!("{}:{}", libc::major(number), libc::minor(number))
        });
        let Ok(number) = number else { return Holder::Others("another program".into()) };
        if let Some(mount) = mount_of(&number) {
            return Holder::Mount(mount);
        }
        let holders: Vec<String> =
            std::fs::read_dir(format!("/sys/dev/block/{number}/holders"))
                .into_iter()
                .flatten()
                .filter_map(|entry| Some(entry.ok()?.file_name().to_str()?.into()))
                .collect();
        Holder::Others(match holders.is_empty() {
            true => {
                "another program or the system (a mounted partition, swap, md, LVM, a \
                     disk of Sterna on the device or on a partition of it)"
                    .into()
            }
            false => holders.join(", "),
        })
    }
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Holder::Mount(at) => write!(f, "it is mounted on {at}; unmount it first"),
            Holder::Others(who) => {
                write!(f, "it is in use by {who}; free the device first (see `lsblk`)")
            }
        }
    }
}

/// Where the device with this number is mounted.
fn mount_of(number: &str) -> Option<String> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    let mut fields = mounts.lines().map(|line| line.split(' '));
    let mut of_device = fields.find(|fields| fields.clone().nth(2) == Some(number))?;
    of_device.nth(4).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    // What has no exclusive claims (`O_EXCL` says nothing of files without `O_CREAT`) has the
    // same sharing; the kernel's part is in the black-box tests of devices.
    #[test]
    fn looks_share_a_claim_and_images_do_not() {
        let file = tempfile::NamedTempFile::new().unwrap();
        // Files have no number as devices: they would all be one device here.
        let number = file.path().metadata().unwrap().rdev();
        assert_eq!(number, 0);
        let crew = Arc::default();
        let look = Claim::of(file.path()).unwrap();
        let image = ImageClaim::of(file.path(), &crew).unwrap();
        assert!(Arc::ptr_eq(&look, &Claim::of(file.path()).unwrap()));
        let again = ImageClaim::of(file.path(), &crew);
        assert!(matches!(again, Err(ClaimError::Ours(node)) if node == file.path()));
        drop(image);
        assert!(ImageClaim::of(file.path(), &crew).is_ok());
        drop(look);
        assert!(lock(&CLAIMS).get(&0).is_none_or(|it| lock(it).strong_count() == 0));
    }
}
