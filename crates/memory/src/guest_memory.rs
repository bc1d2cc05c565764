//! A VM's memory, as its QEMU's process has it.
//!
//! QEMU asks the kernel for a guest's memory in one piece, which is told by its size: a mapping
//! that is no file's and as long as QEMU says that the memory is. If another mapping happened
//! to be as long, other memory of QEMU's would go out and come back, which does no harm.

use std::ops::Range;

use sterna_api::{Error, Result};
use sterna_core::ByteRange;
use sterna_core::memory::{
    GRANULE, Granule, GranuleSet, OutGranule, PAGES_PER_GRANULE, granules_in,
};
use sterna_machines::{Process, VmProcess};
use sterna_os::control_group::ControlGroup;
use sterna_os::memory::{self, Reads};
use sterna_os::process_counts::ProcessCounts;
use sterna_os::process_memory::{self, Mapping, PAGE, Page, ProcessMemory};

/// So much is freed at a time, so that whoever wants the VM to wake waits for little.
const FREED_AT_ONCE: u64 = 64 << 20;

/// The memory of a VM.
#[derive(Debug)]
pub(crate) struct GuestMemory {
    process: ProcessMemory,
    /// The process, and its threads that run the guest's processors.
    processors: (Process, Vec<i32>),
    /// Its addresses in QEMU.
    range: Range<u64>,
}

/// What tells that a guest gets memory back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signs {
    /// How many bytes of its process are out.
    out: u64,
    /// How often its process had to wait for a page.
    faults: u64,
    /// What the whole host has read.
    host: Reads,
}

/// Where a VM's memory is.
#[derive(Debug, Default)]
pub(crate) struct Whereabouts {
    /// The granules of which a page is in memory, and the guest can use it at once.
    pub(crate) present: GranuleSet,
    /// The granules of which a page is out.
    pub(crate) out: Vec<OutGranule>,
    /// Bytes in memory.
    pub(crate) present_bytes: u64,
    /// Which pages of each granule are in memory, the first one lowest, and which are out.
    pub(crate) pages: Vec<(u16, u16)>,
}

impl GuestMemory {
    /// Finds the memory of a VM.
    pub(crate) fn of(vm: &str, it: VmProcess) -> Result<GuestMemory> {
        process_memory::check().map_err(|why| {
            let message = format!("Sterna cannot take memory of VMs out: {why}");
            Error::unavailable(message).hint("run the daemon as root on this host")
        })?;
        let gone = |error| Error::unavailable(format!("memory of VM {vm}: {error}"));
        let process = ProcessMemory::open(it.process.pid).map_err(gone)?;
        let all = process.mappings().map_err(gone)?;
        // What was opened is that process, and none that has its number after it.
        if !it.process.is_there() {
            return Err(Error::unavailable(format!("QEMU of VM {vm} has just ended")));
        }
        let is_ram = |mapping: &&Mapping| {
            let len = mapping.range.end - mapping.range.start;
            len == it.memory
                && mapping.writable
                && !mapping.shared
                && mapping.file.is_none()
        };
        let Some(ram) = all.iter().find(is_ram) else {
            return Err(Error::invalid(format!(
                "the memory of VM {vm} is not in one private piece: Sterna cannot take it out"
            ))
            .hint(
                "memory of several NUMA nodes, huge pages and `share=on` are not supported yet",
            ));
        };
        let range = ram.range.clone();
        Ok(GuestMemory { process, processors: (it.process, it.processors), range })
    }

    /// The process, and which of its addresses are the guest's memory.
    pub(crate) fn process(&self) -> (&ProcessMemory, &Range<u64>) {
        (&self.process, &self.range)
    }

    /// How much memory the VM has, in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// How many granules it has.
    pub(crate) fn granules(&self) -> u32 {
        granules_in(self.size())
    }

    /// Where all of it is now.
    pub(crate) fn whereabouts(&self) -> std::io::Result<Whereabouts> {
        let mut found = Whereabouts {
            present: GranuleSet::none(self.granules()),
            ..Whereabouts::default()
        };
        let mut granule = 0;
        self.process.pages(self.range.clone(), |pages| {
            for pages in pages.chunks(PAGES_PER_GRANULE as usize) {
                found.add(granule, pages);
                granule += 1;
            }
        })?;
        Ok(found)
    }

    /// Has the kernel write a part of it to swap. Offsets count from its start.
    pub(crate) fn page_out(&self, part: ByteRange) -> std::io::Result<u64> {
        self.process.page_out(&self.addresses(part))
    }

    /// Has the kernel begin to read a granule from swap.
    pub(crate) fn will_need(&self, granule: Granule) -> std::io::Result<u64> {
        self.process.will_need(&self.addresses(whole(granule)))
    }

    /// Waits until a page of a granule is in memory.
    pub(crate) fn wait_for(&self, granule: Granule, page: u32) -> std::io::Result<()> {
        let offset = u64::from(granule) * GRANULE + u64::from(page) * PAGE;
        self.process.wait_for(self.range.start + offset)
    }

    /// The process, and its threads that run the guest's processors; none if the guest stands
    /// still.
    pub(crate) fn processors(&self) -> (i32, &[i32]) {
        (self.processors.0.pid, &self.processors.1)
    }

    /// Frees what is out and in memory as well, unless it is to stop, if the VM has a control group
    /// of its own; elsewhere the kernel does it for whoever needs the room.
    pub(crate) fn free_copies(
        &self,
        is_to_stop: impl Fn() -> bool,
    ) -> std::io::Result<()> {
        let process = self.processors.0;
        let Some(group) = ControlGroup::of(process.pid) else { return Ok(()) };
        let copies = || -> std::io::Result<u64> { group.copies(self.signs()?.out) };
        let mut left = copies()?;
        while left > 0 && !is_to_stop() && process.is_there() {
            let piece = left.min(FREED_AT_ONCE);
            group.free(piece)?;
            left = (left - piece).min(copies()?);
        }
        Ok(())
    }

    /// What tells that the guest gets memory back.
    pub(crate) fn signs(&self) -> std::io::Result<Signs> {
        let Process { pid, started } = self.processors.0;
        let ProcessCounts { out, faults, .. } = ProcessCounts::of_process(pid, started)?;
        Ok(Signs { out, faults, host: memory::reads()? })
    }

    fn addresses(&self, part: ByteRange) -> Range<u64> {
        let end = self.range.start + part.end();
        self.range.start + part.offset..end.min(self.range.end)
    }
}

/// The bytes of a granule.
fn whole(granule: Granule) -> ByteRange {
    ByteRange::new(u64::from(granule) * GRANULE, GRANULE)
}

impl Signs {
    /// How many bytes of its process are out, QEMU's own among them.
    pub(crate) fn out(self) -> u64 {
        self.out
    }

    /// How many pages have come back since these earlier ones, at least. Neither sign has them all:
    /// what is out rises again if the kernel takes other memory out, and not all waits are the
    /// process's.
    pub(crate) fn pages_since(self, earlier: Signs) -> u64 {
        let back = earlier.out.saturating_sub(self.out) / PAGE;
        back.max(self.faults.saturating_sub(earlier.faults))
    }

    /// The same of a guest that sleeps, of which Sterna has nothing read: pages that came back
    /// while none was read from swap were in memory as well, whoever waits for what else.
    pub(crate) fn waits_asleep_since(self, earlier: Signs) -> u64 {
        let read = self.host.from_swap.saturating_sub(earlier.host.from_swap);
        let back = earlier.out.saturating_sub(self.out) / PAGE;
        self.faults.saturating_sub(earlier.faults).max(back.min(read))
    }

    /// How often the guest had to wait for a page since these earlier ones, if so many pages came
    /// back for somebody else. Where the hypervisor lets a guest do something else meanwhile, a
    /// thread of the kernel waits, and not the process: then it is the fewer of the waits of all
    /// processes and the pages that came back.
    pub(crate) fn waits_since(self, earlier: Signs, others: u64) -> u64 {
        let back = (earlier.out.saturating_sub(self.out) / PAGE).saturating_sub(others);
        let all = self.host.faults.saturating_sub(earlier.host.faults);
        self.faults.saturating_sub(earlier.faults).max(back.min(all))
    }
}

impl Whereabouts {
    fn add(&mut self, granule: Granule, pages: &[Page]) {
        let (mut present, mut out) = (0_u16, 0_u16);
        let mut first: Option<(u8, u64)> = None;
        for (at, page) in pages.iter().enumerate() {
            match *page {
                Page::Empty => {}
                Page::Present => present |= 1 << at,
                Page::Out { device, slot } => {
                    out |= 1 << at;
                    // Of a granule on two devices, the first one's counts.
                    first = match first {
                        Some((its, least)) if its == device => {
                            Some((its, least.min(slot)))
                        }
                        None => Some((device, slot)),
                        other => other,
                    };
                }
            }
        }
        if present != 0 {
            self.present.insert(granule);
            self.present_bytes += u64::from(present.count_ones()) * PAGE;
        }
        if let Some((device, slot)) = first {
            let pages = out.count_ones() as u8;
            self.out.push(OutGranule { granule, device, slot, pages });
        }
        self.pages.push((present, out));
    }

    /// Which pages of a granule are out, the first one lowest.
    pub(crate) fn out_pages(&self, granule: Granule) -> u16 {
        self.pages.get(granule as usize).map_or(0, |it| it.1)
    }

    /// Bytes that are out.
    pub(crate) fn out_bytes(&self) -> u64 {
        self.out.iter().map(|it| u64::from(it.pages) * PAGE).sum()
    }
}
