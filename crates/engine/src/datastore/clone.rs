//! Whether two images can share their blocks.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use super::system;
use crate::image::ImageSpec;

/// What is cloned to try: a multiple of the block size of all file systems.
const TRIAL: usize = 64 << 10;

/// Whether a range of `a` can be cloned to `b` (reflink): both are regular
/// files on one file system that does this. It is tried with two nameless files
/// in their directories; what goes wrong on the way means no.
pub fn can_clone(a: &ImageSpec, b: &ImageSpec) -> bool {
    let (ImageSpec::File { path: a, .. }, ImageSpec::File { path: b, .. }) = (a, b)
    else {
        return false;
    };
    try_clone(a, b).unwrap_or(false)
}

fn try_clone(a: &Path, b: &Path) -> io::Result<bool> {
    let (a_meta, b_meta) = (a.metadata()?, b.metadata()?);
    let files = a_meta.is_file() && b_meta.is_file();
    if !files || a_meta.dev() != b_meta.dev() {
        return Ok(false);
    }
    let mut from = nameless_beside(&a.canonicalize()?)?;
    from.write_all(&[0x5a; TRIAL])?;
    let to = nameless_beside(&b.canonicalize()?)?;
    Ok(system::clone_range(&from, &to, TRIAL as u64).is_ok())
}

/// A file without a name, which goes away by itself.
fn nameless_beside(path: &Path) -> io::Result<File> {
    let directory = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_TMPFILE)
        .mode(0o600)
        .open(directory)
}
