//! A datastore's directory: in what kind of file system it is, and whether two are one.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::MetadataExt;

use sterna_core::file_system;
use sterna_os::random;

use super::{DatastoreHandle, FIGURE};

impl DatastoreHandle {
    /// Whether its images and another's may share blocks: they are on one file system, as far
    /// as they say so in time, and it is not of a kind that cannot.
    pub fn may_share_blocks(&self, other: &DatastoreHandle) -> bool {
        let file_system = |one: &DatastoreHandle| one.inode().map(|(device, _)| device);
        let mine = file_system(self);
        mine.is_some()
            && mine == file_system(other)
            && self.is_of_kind(file_system::may_share_blocks)
    }

    /// Whether its files may have more data than blocks, as those that write to new places
    /// compress.
    pub fn may_compress(&self) -> bool {
        self.is_of_kind(file_system::is_copied_on_write)
    }

    /// Whether it is a directory in a file system of such a kind, or of one that it does not say
    /// in time.
    fn is_of_kind(&self, is_such: impl FnOnce(u32) -> bool) -> bool {
        let Some(directory) = self.record.location.directory() else { return false };
        let directory = directory.to_owned();
        let asked = self.asker.ask(FIGURE, move || rustix::fs::statfs(&directory));
        let kind = asked.answer().and_then(Result::ok).map(|found| found.f_type as u32);
        kind.is_none_or(is_such)
    }

    /// Whether both are one directory, by whatever paths, as far as they say so in time. A file
    /// system in user space has numbers of its own, so a datastore that is seen through one is
    /// known by its mark; a copy of a datastore has that, too, and is another directory.
    pub(crate) fn is_same_directory(&self, other: &DatastoreHandle) -> bool {
        let mine = self.inode();
        let is_alike = || self.mark().is_some() && self.mark() == other.mark();
        mine.is_some() && mine == other.inode() || is_alike() && self.appears_in(other)
    }

    /// Whether a file that is made in this directory is in the other one, too.
    fn appears_in(&self, other: &DatastoreHandle) -> bool {
        let directories =
            (self.record.location.directory(), other.record.location.directory());
        let (Some(here), Some(there)) = directories else { return false };
        let Ok(number) = random::number() else { return false };
        let name = format!(".sterna-same-{number:032x}");
        let (made, seen) = (here.join(&name), there.join(&name));
        let path = made.clone();
        let make =
            move || OpenOptions::new().write(true).create_new(true).open(path).is_ok();
        if self.files.ask(FIGURE, make).answer() != Some(true) {
            return false;
        }
        let asked = other.files.ask(FIGURE, move || seen.symlink_metadata().is_ok());
        let is_there = asked.answer().unwrap_or(false);
        drop(self.files.ask(FIGURE, move || fs::remove_file(made)).answer());
        is_there
    }

    /// The directory that its images are in: the number of its file system, and its own
    /// there.
    pub(super) fn inode(&self) -> Option<(u64, u64)> {
        let directory = self.record.location.directory()?.to_owned();
        let asked = self.asker.ask(FIGURE, move || directory.metadata());
        let metadata = asked.answer()?.ok()?;
        Some((metadata.dev(), metadata.ino()))
    }
}
