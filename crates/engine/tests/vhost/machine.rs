//! A virtual machine as far as a disk sees one: memory, a queue, and a driver that puts
//! requests into it. The control protocol is spoken by rust-vmm's client.

use std::fs::File;
use std::ops::Range;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use vhost::vhost_user::message::{
    VhostUserConfigFlags, VhostUserHeaderFlag, VhostUserInflight,
    VhostUserProtocolFeatures, VhostUserVirtioFeatures,
};
use vhost::vhost_user::{Frontend, VhostUserFrontend};
use vhost::{VhostBackend, VhostUserMemoryRegionInfo, VringConfigData};
use vm_memory::{Bytes, FileOffset, GuestAddress, GuestMemoryBackend, GuestMemoryMmap};
use vmm_sys_util::eventfd::{EFD_NONBLOCK, EventFd};

/// Entries of the queue.
pub(crate) const ENTRIES: u16 = 64;

const TABLE: u64 = 0x1000;
const AVAIL: u64 = 0x2000;
const USED: u64 = 0x3000;
const INDIRECT: u64 = 0x4000;
/// Heads and statuses of requests, one after the other.
const HEADS: u64 = 0x10000;
/// Where the guest's data may be.
pub(crate) const DATA: u64 = 0x10_0000;
const MEMORY: usize = 32 << 20;

const NEXT: u16 = 1;
const WRITE: u16 = 2;
const TABLED: u16 = 4;

/// Requests that can be there at the same time.
const SLOTS: u16 = 8;

/// No step of a test takes longer, however loaded the machine is.
const LONG: Duration = Duration::from_secs(30);

/// A stretch of memory: where, how long, and whether the disk may write there.
#[derive(Clone, Copy)]
pub(crate) struct Stretch(pub(crate) u64, pub(crate) u32, pub(crate) bool);

/// The memory outlives connections, as the guest does.
pub(crate) struct Memory {
    file: File,
    pub(crate) map: GuestMemoryMmap<()>,
}

impl Memory {
    pub(crate) fn new() -> Memory {
        let file = tempfile::tempfile().unwrap();
        file.set_len(MEMORY as u64).unwrap();
        let offset = FileOffset::new(file.try_clone().unwrap(), 0);
        let range = (GuestAddress(0), MEMORY, Some(offset));
        let map = GuestMemoryMmap::from_ranges_with_files([range]).unwrap();
        Memory { file, map }
    }

    pub(crate) fn len(&self) -> usize {
        MEMORY
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    pub(crate) fn inode(&self) -> u64 {
        self.file.metadata().unwrap().ino()
    }

    pub(crate) fn host(&self, guest: u64) -> u64 {
        self.map.get_host_address(GuestAddress(guest)).unwrap() as u64
    }

    pub(crate) fn put(&self, at: u64, bytes: &[u8]) {
        self.map.write_slice(bytes, GuestAddress(at)).unwrap();
    }

    pub(crate) fn get(&self, at: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.map.read_slice(&mut bytes, GuestAddress(at)).unwrap();
        bytes
    }

    fn get16(&self, at: u64) -> u16 {
        self.map.read_obj(GuestAddress(at)).unwrap()
    }

    fn put16(&self, at: u64, value: u16) {
        self.map.write_obj(value, GuestAddress(at)).unwrap();
    }
}

/// A connection of a machine to its disk.
pub(crate) struct Machine<'a> {
    memory: &'a Memory,
    pub(crate) frontend: Frontend,
    kick: EventFd,
    call: EventFd,
    /// Requests that have been put into the queue, and answers that were taken out.
    sent: u16,
    seen: u16,
    slot: u16,
    /// Requests go by way of a table of their own.
    pub(crate) indirect: bool,
}

impl<'a> Machine<'a> {
    /// Connects, and starts the queue, which has been used so far by others. With an area
    /// for what is under way, if that is given.
    pub(crate) fn connect(
        socket: &Path,
        memory: &'a Memory,
        area: Option<(&VhostUserInflight, &File)>,
    ) -> Machine<'a> {
        let mut frontend = Frontend::connect(socket, 1).unwrap();
        frontend.set_owner().unwrap();
        let features = frontend.get_features().unwrap();
        let all = frontend.get_protocol_features().unwrap();
        assert!(features & VhostUserVirtioFeatures::PROTOCOL_FEATURES.bits() != 0);
        frontend.set_protocol_features(all | VhostUserProtocolFeatures::CONFIG).unwrap();
        frontend.set_features(features).unwrap();
        if let Some((area, file)) = area {
            frontend.set_inflight_fd(area, file.as_raw_fd()).unwrap();
        }
        let (kick, call) = (EventFd::new(EFD_NONBLOCK), EventFd::new(EFD_NONBLOCK));
        let sent = memory.get16(AVAIL + 2);
        let seen = memory.get16(USED + 2);
        let machine = Machine {
            memory,
            frontend,
            kick: kick.unwrap(),
            call: call.unwrap(),
            sent,
            seen,
            slot: 0,
            indirect: false,
        };
        machine.start(seen);
        machine
    }

    fn start(&self, base: u16) {
        let frontend = &self.frontend;
        frontend.set_mem_table(&[self.region(0..MEMORY as u64)]).unwrap();
        frontend.set_vring_num(0, ENTRIES).unwrap();
        frontend.set_vring_base(0, base).unwrap();
        let config = VringConfigData {
            queue_max_size: ENTRIES,
            queue_size: ENTRIES,
            flags: 0,
            desc_table_addr: self.memory.host(TABLE),
            used_ring_addr: self.memory.host(USED),
            avail_ring_addr: self.memory.host(AVAIL),
            log_addr: None,
        };
        frontend.set_vring_addr(0, &config).unwrap();
        frontend.set_vring_call(0, &self.call).unwrap();
        frontend.set_vring_kick(0, &self.kick).unwrap();
        let mut frontend = frontend.clone();
        frontend.set_vring_enable(0, true).unwrap();
    }

    fn region(&self, guest: Range<u64>) -> VhostUserMemoryRegionInfo {
        VhostUserMemoryRegionInfo {
            guest_phys_addr: guest.start,
            memory_size: guest.end - guest.start,
            userspace_addr: self.memory.host(0) + guest.start,
            mmap_offset: guest.start,
            mmap_handle: self.memory.file.as_raw_fd(),
        }
    }

    /// From now on each message is answered.
    pub(crate) fn waits_for_answers(&self) {
        self.frontend.set_hdr_flags(VhostUserHeaderFlag::NEED_REPLY);
    }

    /// Takes memory away.
    pub(crate) fn take_memory(&mut self, guest: Range<u64>) -> vhost::Result<()> {
        self.frontend.remove_mem_region(&self.region(guest))
    }

    /// Adds memory.
    pub(crate) fn add_memory(&mut self, guest: Range<u64>) -> vhost::Result<()> {
        self.frontend.add_mem_region(&self.region(guest)).map(drop)
    }

    /// The disk's size, as its configuration says.
    pub(crate) fn size(&mut self) -> u64 {
        let flags = VhostUserConfigFlags::empty();
        let (_, space) = self.frontend.get_config(0, 60, flags, &[0; 60]).unwrap();
        u64::from_le_bytes(space[..8].try_into().unwrap()) * 512
    }

    /// An area for what is under way.
    pub(crate) fn area(&mut self) -> (VhostUserInflight, File) {
        let asked = VhostUserInflight::new(0, 0, 1, ENTRIES);
        self.frontend.get_inflight_fd(&asked).unwrap()
    }

    /// Puts a request into the queue without telling anybody; gives its place.
    pub(crate) fn put(&mut self, kind: u32, sector: u64, data: &[Stretch]) -> u16 {
        let slot = self.slot;
        self.slot = (slot + 1) % SLOTS;
        let head = HEADS + u64::from(slot) * 64;
        let mut bytes = [0; 17];
        bytes[..4].copy_from_slice(&kind.to_le_bytes());
        bytes[8..16].copy_from_slice(&sector.to_le_bytes());
        bytes[16] = 0xff;
        self.memory.put(head, &bytes);
        let mut chain = vec![Stretch(head, 16, false)];
        chain.extend(data);
        chain.push(Stretch(head + 16, 1, true));
        let first = slot * 8;
        match self.indirect {
            true => {
                let table = INDIRECT + u64::from(slot) * 0x1000;
                self.write_chain(table, 0, &chain);
                let len = chain.len() as u32 * 16;
                self.write_descriptor(TABLE, first, table, len, TABLED, 0);
            }
            false => self.write_chain(TABLE, first, &chain),
        }
        self.offer(first);
        slot
    }

    /// Puts a descriptor into the ring of what is there to be done.
    pub(crate) fn offer(&mut self, first: u16) {
        let entry = AVAIL + 4 + 2 * u64::from(self.sent % ENTRIES);
        self.memory.put16(entry, first);
        self.sent = self.sent.wrapping_add(1);
        self.memory.put16(AVAIL + 2, self.sent);
    }

    fn write_chain(&self, table: u64, first: u16, chain: &[Stretch]) {
        assert!(table != TABLE || chain.len() <= 8, "a slot has eight descriptors");
        for (at, Stretch(address, len, write)) in chain.iter().enumerate() {
            let number = first + at as u16;
            let more = if at + 1 < chain.len() { NEXT } else { 0 };
            let flags = more | if *write { WRITE } else { 0 };
            self.write_descriptor(table, number, *address, *len, flags, number + 1);
        }
    }

    pub(crate) fn write_descriptor(
        &self,
        table: u64,
        number: u16,
        address: u64,
        len: u32,
        flags: u16,
        next: u16,
    ) {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&address.to_le_bytes());
        bytes[8..12].copy_from_slice(&len.to_le_bytes());
        bytes[12..14].copy_from_slice(&flags.to_le_bytes());
        bytes[14..].copy_from_slice(&next.to_le_bytes());
        self.memory.put(table + 16 * u64::from(number), &bytes);
    }

    /// Says that there is something in the queue.
    pub(crate) fn kick(&self) {
        self.kick.write(1).unwrap();
    }

    /// Whether the other side wants to hear of one of so many requests that were put in
    /// last.
    pub(crate) fn is_to_kick(&self, last: u16) -> bool {
        let event = self.memory.get16(USED + 4 + 8 * u64::from(ENTRIES));
        self.sent.wrapping_sub(event).wrapping_sub(1) < last
    }

    /// Waits until so many more requests have room beside those that are not answered.
    pub(crate) fn wait_for_room(&self, more: u16) {
        let until = Instant::now() + LONG;
        while self.sent.wrapping_sub(self.memory.get16(USED + 2)) + more > SLOTS {
            assert!(Instant::now() < until, "no answer within {LONG:?}");
            std::thread::yield_now();
        }
    }

    /// Waits for as many answers as there were requests.
    pub(crate) fn wait(&mut self) {
        let until = Instant::now() + LONG;
        // We want to hear of the last one.
        self.memory.put16(AVAIL + 4 + 2 * u64::from(ENTRIES), self.sent.wrapping_sub(1));
        while self.memory.get16(USED + 2) != self.sent {
            assert!(Instant::now() < until, "no answer within {LONG:?}");
            // If it was answered before we said so, we look once more.
            wait_readable(&self.call, Duration::from_millis(200));
            let _ = self.call.read();
        }
        self.seen = self.sent;
    }

    /// The status of a request.
    pub(crate) fn status(&self, slot: u16) -> u8 {
        self.memory.get(HEADS + u64::from(slot) * 64 + 16, 1)[0]
    }

    /// Carries a request out; its status.
    pub(crate) fn ask(&mut self, kind: u32, sector: u64, data: &[Stretch]) -> u8 {
        let slot = self.put(kind, sector, data);
        self.kick();
        self.wait();
        self.status(slot)
    }

    /// Stops the queue: where it was.
    pub(crate) fn stop(&self) -> u32 {
        self.frontend.get_vring_base(0).unwrap()
    }
}

impl Machine<'_> {
    /// Whether the other side has hung up.
    pub(crate) fn frontend_is_gone(&self) -> bool {
        self.frontend.get_features().is_err()
    }
}

/// Whether a machine that connects is left at once.
pub(crate) fn is_turned_away(socket: &Path) -> bool {
    Frontend::connect(socket, 1).unwrap().get_features().is_err()
}

fn wait_readable(event: &EventFd, span: Duration) {
    let mut asked =
        libc::pollfd { fd: event.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: it is given one entry, which lives as long as the call.
    unsafe { libc::poll(&raw mut asked, 1, span.as_millis() as i32) };
}
