//! The guest's memory in regions, as the hypervisor gives it to us: all of them at once,
//! or one after the other as modules are plugged in and taken out.
//!
//! A region is mapped once. Whoever works in it holds the memory of that moment, so it goes
//! when the last request in it has ended.
//!
//! A region that changes is taken away and added anew, while the guest goes on and may ask
//! for something in it. So what is taken away *leaves*: it is there until another one is
//! added in its place, or until nothing more is said for a moment ([`Regions::settle`]).

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use vhost::vhost_user::message::VhostUserMemoryRegion;
use vhost::vhost_user::{Error, Result};
use vm_memory::{FileOffset, GuestAddress, GuestMemoryMmap, GuestRegionMmap, MmapRegion};

use super::Memory;

/// Regions of a machine at most, with those that leave: as in QEMU, which has one for each
/// of up to 256 modules of memory. Each is a mapping, of which a process may have 65,530.
const REGIONS_MAX: usize = 509;

/// What the hypervisor has given to us.
#[derive(Default)]
pub(super) struct Regions {
    all: Vec<Region>,
}

struct Region {
    told: VhostUserMemoryRegion,
    mapped: Arc<GuestRegionMmap<()>>,
    leaves: bool,
}

impl Region {
    /// Where the guest has it.
    fn guest(&self) -> Range<u64> {
        self.told.guest_phys_addr..self.told.guest_phys_addr + self.told.memory_size
    }

    /// Where the hypervisor has it.
    fn hypervisor(&self) -> Range<u64> {
        self.told.user_addr..self.told.user_addr + self.told.memory_size
    }

    fn is_in_the_way_of(&self, other: &Region) -> bool {
        let overlap = |one: Range<u64>, other: Range<u64>| {
            one.start < other.end && other.start < one.end
        };
        overlap(self.guest(), other.guest())
            || overlap(self.hypervisor(), other.hypervisor())
    }
}

impl Regions {
    /// How many there may be.
    pub(super) const MAX: u64 = REGIONS_MAX as u64;

    /// These, in the place of what there was.
    pub(super) fn of(
        told: &[VhostUserMemoryRegion],
        files: Vec<File>,
    ) -> Result<Regions> {
        let mut regions = Regions::default();
        for (region, file) in told.iter().zip(files) {
            regions.add(region, file)?;
        }
        Ok(regions)
    }

    /// One more. Those that leave make room for it.
    pub(super) fn add(&mut self, told: &VhostUserMemoryRegion, file: File) -> Result<()> {
        let ends = |start: u64| start.checked_add(told.memory_size).is_some();
        if told.memory_size == 0 || !ends(told.guest_phys_addr) || !ends(told.user_addr) {
            return Err(Error::InvalidParam);
        }
        let mapped = Arc::new(map(told, file)?);
        let region = Region { told: *told, mapped, leaves: false };
        self.all.retain(|old| !old.leaves || !old.is_in_the_way_of(&region));
        if self.all.len() >= REGIONS_MAX {
            return Err(Error::InvalidParam);
        }
        self.all.push(region);
        self.all.sort_by_key(|region| region.told.guest_phys_addr);
        Ok(())
    }

    /// One of them leaves.
    pub(super) fn remove(&mut self, told: &VhostUserMemoryRegion) -> Result<()> {
        let is_it = |region: &&mut Region| {
            let it = &region.told;
            !region.leaves
                && it.guest_phys_addr == told.guest_phys_addr
                && it.user_addr == told.user_addr
                && it.memory_size == told.memory_size
        };
        self.all.iter_mut().find(is_it).ok_or(Error::InvalidParam)?.leaves = true;
        Ok(())
    }

    /// Whether any leaves.
    pub(super) fn is_unsettled(&self) -> bool {
        self.all.iter().any(|region| region.leaves)
    }

    /// Those that leave have left.
    pub(super) fn settle(&mut self) {
        self.all.retain(|region| !region.leaves);
    }

    /// The memory that they are. Without any, no address is in it.
    pub(super) fn memory(&self) -> Result<Memory> {
        if self.all.is_empty() {
            return Ok(Arc::new(GuestMemoryMmap::new()));
        }
        let mapped = self.all.iter().map(|region| Arc::clone(&region.mapped)).collect();
        // Not if two are at one place.
        GuestMemoryMmap::from_arc_regions(mapped).map(Arc::new).map_err(failed)
    }

    /// Where the guest has what the hypervisor has at this address.
    pub(super) fn translate(&self, address: u64) -> Result<u64> {
        let region =
            self.all.iter().find(|region| region.hypervisor().contains(&address));
        let region = region.ok_or(Error::InvalidParam)?;
        Ok(address - region.told.user_addr + region.told.guest_phys_addr)
    }
}

fn failed(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::ReqHandlerError(io::Error::other(error))
}

/// A stretch of the guest's memory.
fn map(region: &VhostUserMemoryRegion, file: File) -> Result<GuestRegionMmap<()>> {
    let end = region.mmap_offset.checked_add(region.memory_size);
    let there = file.metadata().map_err(Error::ReqHandlerError)?.len();
    // What lies behind the end of a file cannot be touched.
    if end.is_none_or(|end| end > there) {
        return Err(Error::InvalidParam);
    }
    let size = usize::try_from(region.memory_size).map_err(|_| Error::InvalidParam)?;
    let mapped = MmapRegion::from_file(FileOffset::new(file, region.mmap_offset), size);
    let base = GuestAddress(region.guest_phys_addr);
    GuestRegionMmap::new(mapped.map_err(failed)?, base).ok_or(Error::InvalidParam)
}
