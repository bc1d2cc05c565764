//! Which requests are under way, for whoever serves the queue after us.
//!
//! The area is shared with the hypervisor, which keeps it while we are gone and gives it
//! to our successor. Its layout is the protocol's (vhost-user, "In-flight I/O
//! tracking", split queues); for each queue:
//!
//! ```text
//! features u64 | version u16 | entries u16 | last head u16 | used index u16 |
//! for each entry: under way u8, padding, next u16, count u64
//! ```
//!
//! The rule: an entry is marked before its request is carried out, and cleared after its
//! answer is in the queue. In between the answer is in the queue and the mark still
//! there: then the two used indices differ, and the last head says whose mark it is. (We
//! answer one by one, so there is never more than one.)

use std::fs::File;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use vm_memory::{FileOffset, MmapRegion, VolatileMemory};

use super::{QUEUE_SIZE_MAX, QUEUES_MAX};

/// Bytes before a queue's entries, and of an entry.
const HEAD: usize = 16;
const ENTRY: usize = 16;

/// Where in the head, and in an entry.
const VERSION: usize = 8;
const ENTRIES: usize = 10;
const LAST: usize = 12;
const USED: usize = 14;
const COUNT: usize = 8;

/// The area of a device.
#[derive(Clone, Debug)]
pub(crate) struct Area {
    memory: Arc<MmapRegion<()>>,
    queues: u16,
    size: u16,
}

impl Area {
    /// The bytes that an area for so many queues of so many entries takes.
    pub(super) fn len(queues: u16, size: u16) -> u64 {
        u64::from(queues) * per_queue(size) as u64
    }

    /// A new one, and the file that it lies in.
    pub(super) fn create(queues: u16, size: u16) -> io::Result<File> {
        check(queues, size)?;
        // SAFETY: the name is a string that ends with zero.
        let fd =
            unsafe { libc::memfd_create(c"sterna-inflight".as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and ours alone.
        let file = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
        file.set_len(Area::len(queues, size))?;
        Ok(file)
    }

    /// The area at `offset` of a file.
    pub(super) fn open(
        file: File,
        offset: u64,
        queues: u16,
        size: u16,
    ) -> io::Result<Area> {
        check(queues, size)?;
        let len = Area::len(queues, size);
        let end = offset.checked_add(len);
        if end.is_none_or(|end| file.metadata().map_or(0, |meta| meta.len()) < end) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let memory = MmapRegion::from_file(FileOffset::new(file, offset), len as usize)
            .map_err(io::Error::other)?;
        Ok(Area { memory: Arc::new(memory), queues, size })
    }

    /// The part of a queue with so many entries.
    pub(super) fn queue(&self, index: u16, size: u16) -> Option<Tracked> {
        let fits = index < self.queues && size <= self.size;
        let base = usize::from(index) * per_queue(self.size);
        fits.then(|| Tracked { memory: Arc::clone(&self.memory), base, size, count: 0 })
    }
}

fn check(queues: u16, size: u16) -> io::Result<()> {
    let fits = (1..=QUEUES_MAX).contains(&queues) && (1..=QUEUE_SIZE_MAX).contains(&size);
    if fits { Ok(()) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

fn per_queue(size: u16) -> usize {
    HEAD + usize::from(size) * ENTRY
}

/// The part of the area that is a queue's.
#[derive(Debug)]
pub(super) struct Tracked {
    memory: Arc<MmapRegion<()>>,
    base: usize,
    size: u16,
    /// Of the next request.
    count: u64,
}

impl Tracked {
    /// What was under way, in the order in which it had been taken, now that the queue's
    /// used index is this.
    pub(super) fn recover(&mut self, used: u16) -> Vec<u16> {
        self.put16(VERSION, 1);
        self.put16(ENTRIES, self.size);
        let last = self.get16(LAST);
        if self.get16(USED) != used && last < self.size {
            self.put8(entry(last), 0);
        }
        fence(Ordering::SeqCst);
        self.put16(USED, used);
        let count = |head: u16| self.get64(entry(head) + COUNT);
        let mut heads: Vec<u16> =
            (0..self.size).filter(|head| self.get8(entry(*head)) != 0).collect();
        heads.sort_by_key(|head| count(*head));
        self.count = heads.last().map_or(0, |head| count(*head).wrapping_add(1));
        heads
    }

    /// A request is about to be carried out.
    pub(super) fn start(&mut self, head: u16) {
        self.put64(entry(head) + COUNT, self.count);
        self.count = self.count.wrapping_add(1);
        fence(Ordering::SeqCst);
        self.put8(entry(head), 1);
    }

    /// A request's answer is about to be put into the queue.
    pub(super) fn answer(&mut self, head: u16) {
        self.put16(LAST, head);
        fence(Ordering::SeqCst);
    }

    /// It is there; the used index is this.
    pub(super) fn answered(&mut self, head: u16, used: u16) {
        fence(Ordering::SeqCst);
        self.put8(entry(head), 0);
        fence(Ordering::SeqCst);
        self.put16(USED, used);
    }

    // All places are inside: heads are below the size, which `queue` has checked.

    fn get8(&self, at: usize) -> u8 {
        self.memory.get_ref(self.base + at).map_or(0, |place| place.load())
    }

    fn get16(&self, at: usize) -> u16 {
        self.memory.get_ref(self.base + at).map_or(0, |place| place.load())
    }

    fn get64(&self, at: usize) -> u64 {
        self.memory.get_ref(self.base + at).map_or(0, |place| place.load())
    }

    fn put8(&self, at: usize, value: u8) {
        if let Ok(place) = self.memory.get_ref(self.base + at) {
            place.store(value);
        }
    }

    fn put16(&self, at: usize, value: u16) {
        if let Ok(place) = self.memory.get_ref(self.base + at) {
            place.store(value);
        }
    }

    fn put64(&self, at: usize, value: u64) {
        if let Ok(place) = self.memory.get_ref(self.base + at) {
            place.store(value);
        }
    }
}

fn entry(head: u16) -> usize {
    HEAD + usize::from(head) * ENTRY
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area() -> (File, Area) {
        let file = Area::create(2, 8).unwrap();
        let area = Area::open(file.try_clone().unwrap(), 0, 2, 8).unwrap();
        (file, area)
    }

    #[test]
    fn a_new_area_has_nothing_under_way() {
        let (_, area) = area();
        assert!(area.queue(1, 8).unwrap().recover(0).is_empty());
    }

    #[test]
    fn who_comes_after_finds_what_was_under_way_in_its_order() {
        let (file, area) = area();
        let mut queue = area.queue(1, 8).unwrap();
        queue.recover(0);
        for head in [5, 2, 7] {
            queue.start(head);
        }
        queue.answer(2);
        queue.answered(2, 1);
        drop(queue);
        let again = Area::open(file, 0, 2, 8).unwrap();
        assert_eq!(again.queue(1, 8).unwrap().recover(1), [5, 7]);
        assert!(again.queue(0, 8).unwrap().recover(0).is_empty(), "the other queue");
    }

    #[test]
    fn an_answer_that_is_in_the_queue_is_not_given_twice() {
        let (_, area) = area();
        let mut queue = area.queue(0, 8).unwrap();
        queue.recover(0);
        queue.start(3);
        queue.start(4);
        queue.answer(3);
        // Killed here: the queue's used index is 1 already.
        assert_eq!(area.queue(0, 8).unwrap().recover(1), [4]);
    }

    #[test]
    fn a_file_that_is_too_short_is_refused() {
        let (file, _) = area();
        assert!(Area::open(file, 64, 2, 8).is_err());
    }
}
