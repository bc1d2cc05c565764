//! The file or device of a swap tier: made, checked and measured.
//!
//! **What is refused.** The kernel swaps to blocks, past the file system: so a file must have all
//! its blocks, in place, on this host. A file on a copy-on-write file system, on a file system
//! of a server, or with holes is refused, and so is a device on which something is. A tier must
//! never need a program to work, as the program may need memory first.
//!
//! **Measured** is what a wake will ask for: granules at random places, one at a time, and many
//! in order, past the page cache, from blocks that were written before (what was never written
//! takes no time to read).

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::fs::{FallocateFlags, OFlags, fallocate, fstatfs};
use sterna_api::{Error, Result};
use sterna_core::memory::{GRANULE, TierSpeed};
use sterna_core::{Bytes, Nanos, file_system};

/// The least that makes sense: a quarter of a small VM.
pub(crate) const SIZE_MIN: u64 = 64 << 20;

/// What is written and read in order: enough for a disk to come to its pace.
const IN_ORDER: u64 = 64 << 20;

/// In pieces of this length.
const PIECE: u64 = 1 << 20;

/// Granules that are read at random places, one at a time.
const AT_RANDOM: u64 = 64;

/// A device that is slower than this is measured by what it did until then.
const MEASURE_MOST: Duration = Duration::from_secs(20);

/// Direct reads and writes begin at multiples of this in memory.
const ALIGNED: usize = 4096;

/// Makes a file of this size for a tier. What is there already is refused.
pub(crate) fn make(path: &Path, size: u64) -> Result<()> {
    let cannot = |error: io::Error| {
        let message = format!("cannot make the swap file {}: {error}", path.display());
        Error::unavailable(message).hint("free room there, or give a smaller --size")
    };
    let directory = path.parent().unwrap_or(Path::new("/"));
    check_directory(directory)?;
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create_new(true).mode(0o600).open(path);
    let file = file.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            let message = format!("{} is there already", path.display());
            Error::in_use(message)
                .hint("use another name, or remove the file if it is of no use")
        }
        _ => cannot(error),
    })?;
    let made = fallocate(&file, FallocateFlags::empty(), 0, size)
        .map_err(io::Error::from)
        .and_then(|()| file.sync_all());
    made.map_err(|error| {
        discard(path);
        cannot(error)
    })
}

/// Where a swap header has its magic and its label (`union swap_header` of the kernel).
const MAGIC_AT: u64 = 4086;
const MAGIC: &[u8] = b"SWAPSPACE2";
const LABEL_AT: u64 = 1052;
const LABEL_MOST: usize = 16;

/// How the label of a tier begins.
const LABEL: &str = "sterna-";

/// What a tier's file or device is labelled with.
pub(crate) fn label(name: &str) -> String {
    // It has no room for a name: the last byte ends it.
    format!("{LABEL}{:08x}", crc32c::crc32c(name.as_bytes()))
}

/// Refuses a file or device that is not the one that was made fit for this tier: another may have
/// its name by now.
pub(crate) fn check_is_of(path: &Path, name: &str) -> Result<()> {
    let shown = path.display();
    let found = label_of(path).map_err(|error| {
        Error::unavailable(format!("cannot look at {shown}: {error}"))
            .hint("see whether its file system is mounted, or its device is there")
    })?;
    if found == label(name).as_bytes() {
        return Ok(());
    }
    let message = format!("{shown} is not what swap tier {name} was made of");
    Err(Error::unavailable(message).hint("somebody else has put something in its place"))
}

/// The label of what is fit to be swapped to; empty of anything else.
fn label_of(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let (mut magic, mut found) = ([0; MAGIC.len()], [0; LABEL_MOST]);
    file.read_exact_at(&mut magic, MAGIC_AT)?;
    file.read_exact_at(&mut found, LABEL_AT)?;
    let label = found.into_iter().take_while(|byte| *byte != 0);
    Ok(if magic == MAGIC { label.collect() } else { Vec::new() })
}

/// Removes a file that was made here.
pub(crate) fn discard(path: &Path) {
    if let Err(error) = fs::remove_file(path) {
        tracing::warn!(path = %path.display(), %error, "a swap file of no use stays");
    }
}

/// Refuses a directory in which a file is not a row of blocks on this host.
fn check_directory(directory: &Path) -> Result<()> {
    let kind = File::open(directory)
        .and_then(|directory| Ok(fstatfs(&directory)?.f_type as u32))
        .map_err(|error| {
            Error::unavailable(format!("cannot look at {}: {error}", directory.display()))
        })?;
    let is = |what: &str| format!("{} is {what}", directory.display());
    if let Some(name) = file_system::elsewhere(kind) {
        return Err(Error::invalid(is(&format!("on {name}"))).hint(
            "swap needs a disk of this host: to swap over a network or through a program, the \
             kernel needs memory when it has none",
        ));
    }
    if file_system::is_in_memory(kind) {
        return Err(
            Error::invalid(is("in memory (tmpfs)")).hint("give a datastore on a disk")
        );
    }
    if file_system::is_copied_on_write(kind) {
        return Err(Error::invalid(is("on a copy-on-write file system")).hint(
            "the kernel writes swap in place: give a datastore on ext4 or XFS, or a device",
        ));
    }
    Ok(())
}

/// The size of a device that may be swapped to, in bytes. Refused if it is none, or if something
/// is on it.
pub(crate) fn check_device(path: &Path) -> Result<u64> {
    let shown = path.display();
    let cannot =
        |error: io::Error| Error::unavailable(format!("cannot use {shown}: {error}"));
    let found = fs::metadata(path).map_err(cannot)?;
    if !found.file_type().is_block_device() {
        let message = format!("{shown} is no block device");
        return Err(Error::invalid(message)
            .hint("give a partition or logical volume, or --on DATASTORE --size SIZE"));
    }
    let mut wipefs = Command::new("wipefs");
    wipefs.args(["--noheadings", "--output", "TYPE"]).arg(path);
    let looked = looked_at(&mut wipefs).map_err(cannot)?;
    let is_ours = || label_of(path).is_ok_and(|it| it.starts_with(LABEL.as_bytes()));
    let mut kinds = looked.lines().map(str::trim).filter(|it| !it.is_empty());
    let other = kinds.find(|it| *it != "swap" || !is_ours());
    if let Some(what) = other {
        let message = format!("{shown} has something on it: {what}");
        return Err(Error::in_use(message).hint(format!(
            "all of it would be lost: give another device, or `wipefs --all {shown}` first"
        )));
    }
    File::open(path).and_then(|mut device| device.seek(SeekFrom::End(0))).map_err(cannot)
}

fn looked_at(command: &mut Command) -> io::Result<String> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}

/// Measures a file or device of this size. What is on it is overwritten.
pub(crate) fn measure(path: &Path, size: u64) -> Result<TierSpeed> {
    let cannot = |error: io::Error| {
        Error::unavailable(format!("cannot measure {}: {error}", path.display()))
    };
    let mut options = OpenOptions::new();
    // Of a device, the second keeps out one that is mounted or in use otherwise.
    let flags = (OFlags::DIRECT | OFlags::EXCL).bits().cast_signed();
    let file = options.read(true).write(true).custom_flags(flags).open(path);
    measure_file(&file.map_err(cannot)?, size).map_err(cannot)
}

fn measure_file(file: &File, size: u64) -> io::Result<TierSpeed> {
    let in_order = IN_ORDER.min(size / 2) / PIECE * PIECE;
    let places = places(size);
    let mut piece = Buffer::new(PIECE);
    // Not zeroes: storage may keep them without writing anything.
    for (at, byte) in piece.bytes().iter_mut().enumerate() {
        *byte = (at * 31 + at / 251) as u8;
    }
    for offset in (0..in_order).step_by(PIECE as usize) {
        file.write_all_at(piece.bytes(), offset)?;
    }
    for place in &places {
        file.write_all_at(&piece.bytes()[..GRANULE as usize], *place)?;
    }
    file.sync_all()?;
    let began = Instant::now();
    let mut read = 0;
    while read < in_order && began.elapsed() < MEASURE_MOST {
        file.read_exact_at(piece.bytes(), read)?;
        read += PIECE;
    }
    let sequential = read as f64 / began.elapsed().as_secs_f64().max(1e-6);
    let mut times = Vec::new();
    let began = Instant::now();
    for place in &places {
        let asked = Instant::now();
        file.read_exact_at(&mut piece.bytes()[..GRANULE as usize], *place)?;
        times.push(asked.elapsed());
        if began.elapsed() > MEASURE_MOST {
            break;
        }
    }
    times.sort_unstable();
    let access = times.get(times.len() / 2).copied().unwrap_or_default();
    Ok(TierSpeed { access: Nanos(access.as_nanos() as u64), sequential })
}

/// Places of granules all over so many bytes, no two in a row: each is further than the one
/// before it by the golden section.
fn places(size: u64) -> Vec<u64> {
    let granules = size / GRANULE;
    let step = (granules as f64 * 0.618_033_988_75) as u64;
    (1..=AT_RANDOM).map(|at| (at * step.max(1)) % granules.max(1) * GRANULE).collect()
}

/// Memory that direct reads and writes can use.
struct Buffer {
    all: Vec<u8>,
    start: usize,
    len: usize,
}

impl Buffer {
    fn new(len: u64) -> Buffer {
        let len = len as usize;
        let all = vec![0; len + ALIGNED];
        let start = all.as_ptr().align_offset(ALIGNED);
        Buffer { all, start, len }
    }

    fn bytes(&mut self) -> &mut [u8] {
        &mut self.all[self.start..self.start + self.len]
    }
}

/// Refuses a size that is too small.
pub(crate) fn check_size(size: u64) -> Result<()> {
    if size >= SIZE_MIN {
        return Ok(());
    }
    let (size, least) = (Bytes(size), Bytes(SIZE_MIN));
    let message = format!("{size} is too small for a swap tier");
    Err(Error::invalid(message).hint(format!("give {least} or more")))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_file_is_made_whole_and_measured() {
        let scratch = tempfile::tempdir_in("/var/tmp").unwrap();
        let path = scratch.path().join("swap");
        match make(&path, SIZE_MIN) {
            Ok(()) => {}
            Err(error) => {
                println!("skipped: no local file system there: {error}");
                return;
            }
        }
        let found = fs::metadata(&path).unwrap();
        assert_eq!((found.len(), found.mode() & 0o777), (SIZE_MIN, 0o600));
        assert!(found.blocks() * 512 >= SIZE_MIN);
        assert!(check_is_of(&path, "test").is_err(), "nobody has made swap of it");
        let speed = measure(&path, SIZE_MIN).unwrap();
        assert!(speed.sequential > 0.0 && speed.access > Nanos(0), "{speed:?}");
        let error = make(&path, SIZE_MIN).unwrap_err();
        assert!(error.message.ends_with("is there already"), "{error}");
    }

    #[test]
    fn no_file_is_made_in_memory() {
        let error = make(Path::new("/dev/shm/sterna-swap-test"), SIZE_MIN).unwrap_err();
        assert!(error.message.contains("in memory"), "{error}");
        assert!(!Path::new("/dev/shm/sterna-swap-test").exists());
    }

    #[test]
    fn places_are_inside_and_far_apart() {
        let size = 256 << 20;
        let all = places(size);
        assert!(all.iter().all(|it| it % GRANULE == 0 && it + GRANULE <= size));
        assert!(all.windows(2).all(|pair| pair[0].abs_diff(pair[1]) > size / 8));
    }
}
