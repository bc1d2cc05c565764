//! Opening a file or block device as an image, and finding out what it takes.
//!
//! It is opened three times by its path, under which somebody may put another file in
//! between: all three must be one file. And no link to a file is an image, as it may lead
//! elsewhere tomorrow; to a device, links lead by custom. A device is claimed (`claim`).

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use sterna_core::mirror::Storage;

use super::OpenError;
use super::claim::{ClaimError, Holder, ImageClaim};
use super::file_system::{
    caches_parts_of_blocks, is_of_this_machine, stores_direct_writes,
};
use super::identity::{FileIdentity, HeldFile};
use super::lock::{self, Lock};
use crate::account::Line;
use crate::io::{Crew, Stored};
use crate::origin;

/// Where the kernel does not say it (before 6.1), or says too little, direct I/O of regular
/// files is held to a page: every device takes that.
const PAGE: u32 = 4096;

const REPLACED: &str = "another program has just put another file there; try again";
const LINK: &str = "it is a symbolic link, and an image must be a regular file; put the \
                    file itself there";

/// The descriptors of an image, and what they need.
pub(super) struct Files {
    /// Where the file is stored.
    pub(super) storage: Storage,
    /// The image's line in its disk's account.
    pub(super) line: Option<Line>,
    /// Of a device: `buffered` is a descriptor of this.
    pub(super) claim: Option<ImageClaim>,
    pub(super) buffered: Stored,
    /// Past the page cache, if that was asked for and can be had.
    pub(super) direct: Option<Stored>,
    /// Whether a direct write that was answered is in no server's cache.
    pub(super) direct_is_stored: bool,
    /// For the datastore's threads, who move its position.
    pub(super) seek: Arc<Stored>,
    /// The same, and the name by which it was opened.
    pub(super) held: Arc<HeldFile>,
    /// Whether direct I/O can be asked for without waiting.
    pub(super) at_once: bool,
    pub(super) size: u64,
    /// What offset, length and address of direct I/O are multiples of.
    pub(super) align: u32,
    /// What offset and length of a direct write are multiples of, besides.
    pub(super) whole: u32,
}

pub(super) fn open(
    path: &Path,
    direct: bool,
    crew: &Arc<Crew>,
) -> Result<Files, OpenError> {
    let failed = |error: io::Error| OpenError::new(path.display(), error);
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_CLOEXEC);
    let buffered = options.open(path).map_err(failed)?;
    let kind = buffered.metadata().map_err(failed)?.file_type();
    if !kind.is_file() && !kind.is_block_device() {
        return Err(OpenError::new(
            path.display(),
            "it is neither a regular file nor a block device",
        ));
    }
    let (claim, buffered) = match kind.is_block_device() {
        true => claimed(path, crew)?,
        false => (None, buffered),
    };
    match lock::take(&buffered) {
        Ok(Lock::Ours) => {}
        Ok(Lock::Unknown) => crew.set_unlocked(),
        Ok(Lock::Others) => {
            return Err(OpenError::new(
                path.display(),
                "another program uses it (a virtual machine, qemu-nbd, another Sterna); \
                 stop that program first",
            ));
        }
        Err(errno) => return Err(OpenError::new(path.display(), errno)),
    }
    let mut seek = options.open(path).map_err(failed)?;
    let size = seek.seek(SeekFrom::End(0)).map_err(failed)?;
    let direct = if direct { open_direct(&options, path).map_err(failed)? } else { None };
    must_be_one(path, &buffered, [&seek].into_iter().chain(&direct))?;
    for file in [&seek].into_iter().chain(&direct) {
        lock::hold(file);
    }
    let storage = origin::storage_of(&seek);
    let (align, whole) = multiples(direct.as_ref(), kind.is_block_device());
    // A device has no server by itself; what the kernel cannot start on one at once (its
    // queue is full), it says.
    let local = kind.is_file() && is_of_this_machine(&buffered);
    let at_once = local || kind.is_block_device();
    let direct_is_stored = kind.is_block_device() || stores_direct_writes(&buffered);
    let stored = |file| Stored::new(file, crew, local);
    let seek = Arc::new(stored(seek));
    let held = HeldFile::new(path, Arc::clone(&seek)).map_err(failed)?;
    Ok(Files {
        storage,
        line: None,
        claim,
        buffered: stored(buffered),
        direct: direct.filter(|_| align > 0).map(stored),
        direct_is_stored,
        seek,
        held: Arc::new(held),
        at_once,
        size,
        align: align.max(1),
        whole,
    })
}

/// Checks that all of them are the file that has this name, and no link to it.
fn must_be_one<'a>(
    path: &Path,
    first: &File,
    others: impl IntoIterator<Item = &'a File>,
) -> Result<(), OpenError> {
    let failed = |error: io::Error| OpenError::new(path.display(), error);
    let known = FileIdentity::of(first).map_err(failed)?;
    for file in others {
        if !FileIdentity::of(file).map_err(failed)?.is(&known) {
            return Err(OpenError::new(path.display(), REPLACED));
        }
    }
    let is_file = first.metadata().map_err(failed)?.is_file();
    if is_file && !FileIdentity::at(path).map_err(failed)?.is(&known) {
        return Err(OpenError::new(path.display(), LINK));
    }
    Ok(())
}

/// What direct operations are multiples of (0: there are none), and direct writes besides.
fn multiples(direct: Option<&File>, is_device: bool) -> (u32, u32) {
    let align = match direct {
        Some(file) if is_device => sector(file).unwrap_or(PAGE),
        Some(file) => stated(file).unwrap_or(PAGE),
        None => 1,
    };
    let whole = match direct {
        Some(file) if !is_device && caches_parts_of_blocks(file) => align.max(PAGE),
        _ => align.max(1),
    };
    (align, whole)
}

/// Claims a device; gives a descriptor that has the claim with it.
fn claimed(
    path: &Path,
    crew: &Arc<Crew>,
) -> Result<(Option<ImageClaim>, File), OpenError> {
    let claim = ImageClaim::of(path, crew).map_err(|error| match error {
        ClaimError::Busy => OpenError::new(path.display(), Holder::of(path)),
        ClaimError::Ours(node) => {
            let node = node.display();
            let reason = format!("another disk of this Sterna has it open as {node}");
            OpenError::new(path.display(), reason)
        }
        ClaimError::Failed(error) => OpenError::new(path.display(), error),
    })?;
    let file = claim.file().map_err(|error| OpenError::new(path.display(), error))?;
    Ok((Some(claim), file))
}

/// Opens past the page cache; `None` if the file system does not know how.
fn open_direct(options: &OpenOptions, path: &Path) -> io::Result<Option<File>> {
    let mut options = options.clone();
    match options.custom_flags(libc::O_CLOEXEC | libc::O_DIRECT).open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The alignment that the file system states: the coarser of memory's and
/// offset's, 0 if this file cannot do direct I/O, `None` if it states nothing.
fn stated(file: &File) -> Option<u32> {
    let mut statx = MaybeUninit::<libc::statx>::zeroed();
    // SAFETY: an empty path with `AT_EMPTY_PATH` means the descriptor itself;
    // the kernel fills the structure.
    let statx = unsafe {
        let mask = libc::STATX_DIOALIGN;
        let fd = file.as_raw_fd();
        if libc::statx(fd, c"".as_ptr(), libc::AT_EMPTY_PATH, mask, statx.as_mut_ptr())
            < 0
        {
            return None;
        }
        statx.assume_init()
    };
    if statx.stx_mask & libc::STATX_DIOALIGN == 0 {
        return None;
    }
    Some(statx.stx_dio_offset_align.max(statx.stx_dio_mem_align))
}

/// The size of a block device's sectors.
fn sector(file: &File) -> Option<u32> {
    let mut size: libc::c_int = 0;
    // SAFETY: the kernel writes one int.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), libc::BLKSSZGET, &raw mut size) };
    (result == 0).then_some(u32::try_from(size).ok()?)
}
