//! Files that are to be overwritten where they are.
//!
//! A file system that writes to new places (copy-on-write) needs room for every write,
//! also for the second one of a block: what was allocated is no promise there. Btrfs can
//! be told, file by file and only while the file is empty, to overwrite in place; a
//! directory hands that on to the files that are made in it. Where a snapshot or a
//! reflink shares a block, the next write of it needs room once more.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use sterna_core::file_system;

/// The attribute "no copy-on-write" (`chattr +C`).
const NOCOW: libc::c_long = 0x0080_0000;
const GET_FLAGS: libc::Ioctl = request(2, 1);
const SET_FLAGS: libc::Ioctl = request(1, 2);

/// The number of a request with a `long`: direction, size, letter, number.
const fn request(direction: libc::Ioctl, number: libc::Ioctl) -> libc::Ioctl {
    let size = size_of::<libc::c_long>() as libc::Ioctl;
    direction << 30 | size << 16 | (b'f' as libc::Ioctl) << 8 | number
}

/// Whether the file or directory is on a file system that writes to new places.
fn is_copied_on_write(file: &File) -> io::Result<bool> {
    // The kind is 32 bits wide, whatever the field's type is.
    Ok(file_system::is_copied_on_write(rustix::fs::fstatfs(file)?.f_type as u32))
}

/// Has an empty file, or what will be made in a directory, overwritten in place where
/// the file system would not do so by itself. Says whether it is.
pub fn keep_in_place(file: &File) -> io::Result<bool> {
    if !is_copied_on_write(file)? {
        return Ok(true);
    }
    Ok(set_flag(file).is_ok() && has_flag(file)?)
}

/// Whether what was allocated for a file serves for its writes.
pub fn is_in_place(file: &File) -> io::Result<bool> {
    Ok(!is_copied_on_write(file)? || has_flag(file)?)
}

/// Gives the first `len` bytes of a file their room; what is in them stays.
pub fn allocate(file: &File, len: u64) -> io::Result<()> {
    let len = libc::off_t::try_from(len).map_err(io::Error::other)?;
    // SAFETY: plain numbers and a file that is open.
    match unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, len) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether something was written to a file; room that was only allocated is nothing.
pub fn has_data(file: &File) -> io::Result<bool> {
    // SAFETY: plain numbers and a file that is open.
    if unsafe { libc::lseek(file.as_raw_fd(), 0, libc::SEEK_DATA) } >= 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::ENXIO) => Ok(false),
        _ => Err(error),
    }
}

fn has_flag(file: &File) -> io::Result<bool> {
    match flags(file) {
        Ok(flags) => Ok(flags & NOCOW != 0),
        Err(error) if error.raw_os_error() == Some(libc::ENOTTY) => Ok(false),
        Err(error) => Err(error),
    }
}

fn set_flag(file: &File) -> io::Result<()> {
    let flags = flags(file)? | NOCOW;
    // SAFETY: the kernel reads one number.
    match unsafe { libc::ioctl(file.as_raw_fd(), SET_FLAGS, &raw const flags) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn flags(file: &File) -> io::Result<libc::c_long> {
    let mut flags: libc::c_long = 0;
    // SAFETY: the kernel writes no more than one number.
    match unsafe { libc::ioctl(file.as_raw_fd(), GET_FLAGS, &raw mut flags) } {
        0 => Ok(flags),
        _ => Err(io::Error::last_os_error()),
    }
}
