//! The memory of another process: which of its pages are out on which swap device, and having
//! the kernel take some out or bring some back.
//!
//! The process is held by a descriptor, so that none that gets its number after it is meant.
//! Nothing here changes what the process sees: the kernel may do the same at any moment by
//! itself. It needs the right to trace the process (root has it).

use std::fs::File;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::process;

/// A page, in bytes. Where the kernel's are larger, nothing here works: see [`check`].
pub const PAGE: u64 = 4096;

/// Pages that are read from the kernel's table at a time: 256 KiB of it, for 128 MiB of memory.
const PAGES_AT_ONCE: u64 = 32 << 10;

/// One entry of the kernel's table.
const ENTRY: u64 = 8;

/// Where a page of a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    /// It takes no memory of its own: nobody has written to it, it has been given back, or it is
    /// shared (the kernel's page of zeroes).
    Empty,
    /// In memory, and the process can use it at once.
    Present,
    /// On a swap device, as far as the process is concerned: the kernel may still have it.
    Out {
        /// The device, as the kernel numbers them.
        device: u8,
        /// Where it is there, in pages.
        slot: u64,
    },
}

/// A stretch of a process's addresses that the kernel handles as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Its addresses.
    pub range: Range<u64>,
    /// Whether other processes see what is written to it.
    pub shared: bool,
    /// Whether it may be written to.
    pub writable: bool,
    /// The file that it shows; nothing of memory that is no file's.
    pub file: Option<String>,
}

/// The memory of a process.
#[derive(Debug)]
pub struct ProcessMemory {
    pid: i32,
    handle: OwnedFd,
    table: File,
    bytes: File,
}

impl ProcessMemory {
    /// Opens the memory of the process with this number. That it is the process that is meant is
    /// to be looked at afterwards: from then on it is this one, whatever ends.
    pub fn open(pid: i32) -> io::Result<ProcessMemory> {
        let number = Pid::from_raw(pid).ok_or(ErrorKind::InvalidInput)?;
        Ok(ProcessMemory {
            pid,
            handle: pidfd_open(number, PidfdFlags::empty())?,
            table: File::open(format!("/proc/{pid}/pagemap"))?,
            bytes: File::open(format!("/proc/{pid}/mem"))?,
        })
    }

    /// Its mappings, by address.
    pub fn mappings(&self) -> io::Result<Vec<Mapping>> {
        let text = std::fs::read_to_string(format!("/proc/{}/maps", self.pid))?;
        Ok(text.lines().filter_map(mapping).collect())
    }

    /// Tells where each page of a range is, from its first address on: of so many pages at a time
    /// that a multiple of any power of two up to 32,768 is together.
    pub fn pages(
        &self,
        range: Range<u64>,
        mut tell: impl FnMut(&[Page]),
    ) -> io::Result<()> {
        let (first, last) = (range.start / PAGE, range.end.div_ceil(PAGE));
        let mut found = Vec::new();
        let mut buffer =
            vec![0; (PAGES_AT_ONCE.min(last.saturating_sub(first)) * ENTRY) as usize];
        let mut at = first;
        while at < last {
            let count = PAGES_AT_ONCE.min(last - at);
            let part = &mut buffer[..(count * ENTRY) as usize];
            self.table.read_exact_at(part, at * ENTRY)?;
            let (entries, _) = part.as_chunks::<8>();
            found.clear();
            found.extend(entries.iter().map(|entry| page(u64::from_le_bytes(*entry))));
            tell(&found);
            at += count;
        }
        Ok(())
    }

    /// Has the kernel write these pages to swap, as far as it can. It keeps a copy until somebody
    /// needs the room. Gives how many bytes it has gone through.
    pub fn page_out(&self, range: &Range<u64>) -> io::Result<u64> {
        self.advise(range, libc::MADV_PAGEOUT)
    }

    /// Has the kernel begin to read these pages from swap. It does not wait for them.
    pub fn will_need(&self, range: &Range<u64>) -> io::Result<u64> {
        self.advise(range, libc::MADV_WILLNEED)
    }

    /// Waits until the page at this address is in memory, and the process can use it at once.
    pub fn wait_for(&self, address: u64) -> io::Result<()> {
        self.bytes.read_exact_at(&mut [0], address)
    }

    fn advise(&self, range: &Range<u64>, advice: libc::c_int) -> io::Result<u64> {
        process::advise(&self.handle, range, advice)
    }
}

/// Why this machine cannot take memory of other processes out and bring it back, if it cannot.
pub fn check() -> Result<(), String> {
    if rustix::param::page_size() as u64 != PAGE {
        let pages = rustix::param::page_size();
        return Err(format!("the kernel's pages have {pages} bytes, and not {PAGE}"));
    }
    // The numbers of frames, and so of slots, are hidden from others than root.
    if !rustix::process::geteuid().is_root() {
        return Err("the daemon does not run as root".to_owned());
    }
    Ok(())
}

/// An entry of the kernel's table: bit 63 says present, bit 56 that nobody else has it, bit 62 says
/// out, and then bits 0 to 4 are the device and 5 to 54 the slot
/// (Documentation/admin-guide/mm/pagemap.rst).
fn page(entry: u64) -> Page {
    let has = |bit: u32| entry >> bit & 1 == 1;
    match (has(63), has(62)) {
        (true, _) if has(56) => Page::Present,
        (true, _) => Page::Empty,
        (_, true) => {
            Page::Out { device: (entry & 0x1f) as u8, slot: entry >> 5 & ((1 << 50) - 1) }
        }
        _ => Page::Empty,
    }
}

/// A line of `/proc/PID/maps`: "start-end rwxp offset device inode file".
fn mapping(line: &str) -> Option<Mapping> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let address = |text: &str| u64::from_str_radix(text, 16).ok();
    let rights = fields.next()?;
    let (_offset, _device) = (fields.next()?, fields.next()?);
    let is_file = fields.next()? != "0";
    let file = fields.next().map(str::trim).filter(|_| is_file).map(str::to_owned);
    Some(Mapping {
        range: address(start)?..address(end)?,
        shared: rights.ends_with('s'),
        writable: rights.get(1..2) == Some("w"),
        file,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_entries_are_read() {
        assert_eq!(page(0), Page::Empty);
        assert_eq!(page(1 << 63 | 1 << 56 | 77), Page::Present);
        assert_eq!(page(1 << 63 | 77), Page::Empty);
        let out = Page::Out { device: 3, slot: 0x12345 };
        assert_eq!(page(1 << 62 | 1 << 55 | 0x12345 << 5 | 3), out);
    }

    #[test]
    fn mappings_are_read_with_and_without_files() {
        let line = "7f00a000-7f00b000 rw-p 00000000 00:00 0 ";
        let expected = Mapping {
            range: 0x7f00_a000..0x7f00_b000,
            shared: false,
            writable: true,
            file: None,
        };
        assert_eq!(mapping(line), Some(expected.clone()));
        let line = "7f00a000-7f00b000 rw-s 00000000 00:01 2053    /memfd:ram (deleted)";
        let file = Some("/memfd:ram (deleted)".to_owned());
        assert_eq!(mapping(line), Some(Mapping { shared: true, file, ..expected }));
        assert_eq!(mapping("7f00a000"), None);
    }

    #[test]
    fn what_this_process_has_touched_is_present() {
        let own = ProcessMemory::open(std::process::id().cast_signed()).unwrap();
        let touched = vec![7_u8; 8 * PAGE as usize];
        let start = (touched.as_ptr() as u64).next_multiple_of(PAGE);
        let mut found = Vec::new();
        own.pages(start..start + 4 * PAGE, |pages| found.extend_from_slice(pages))
            .unwrap();
        assert_eq!(found, vec![Page::Present; 4]);
        own.wait_for(start).unwrap();
        let all = own.mappings().unwrap();
        let of_it = all.iter().find(|it| it.range.contains(&start)).expect("its mapping");
        assert!(of_it.writable && !of_it.shared);
        assert!(crate::process_counts::ProcessCounts::of(own.pid).is_ok());
    }
}
