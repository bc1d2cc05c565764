//! The guest's memory in regions, as the hypervisor gives it to us: all of them at once,
//! or one after the other as modules are plugged in and taken out.
//!
//! A region is mapped once. Whoever works in it holds the memory of that moment, so it goes
//! when the last request in it has ended.
//!
//! A region that changes is taken away and added anew, perhaps in parts, while the guest
//! goes on and asks for something in it. So what is taken away *leaves*: what the guest has
//! there stays until another one covers it, or until nothing was changed for a while
//! ([`Regions::settle`]). Where a queue lies that runs, it stays in any case.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use vhost::vhost_user::message::VhostUserMemoryRegion;
use vhost::vhost_user::{Error, Result};
use vm_memory::{FileOffset, GuestAddress, GuestMemoryMmap, GuestRegionMmap, MmapRegion};

use super::Memory;

/// Regions of a machine at most: as in QEMU, which has one for each of up to 256 modules of
/// memory. Each is a mapping, of which a process may have 65,530. There may be as many
/// more that leave.
const REGIONS_MAX: usize = 509;

/// What leaves is there so long after the last change: a hypervisor takes away and adds in
/// one go, but may be stopped in the middle of it.
const SETTLES: Duration = Duration::from_secs(10);

/// What the hypervisor has given to us.
#[derive(Default)]
pub(super) struct Regions {
    all: Vec<Region>,
    /// When that was changed last, if anything leaves.
    changed: Option<Instant>,
}

struct Region {
    told: VhostUserMemoryRegion,
    mapped: Arc<GuestRegionMmap<()>>,
    leaves: bool,
}

impl Region {
    fn new(told: &VhostUserMemoryRegion, file: File) -> Result<Region> {
        let mapped = Arc::new(map(told, file)?);
        Ok(Region { told: *told, mapped, leaves: false })
    }

    /// Where the guest has it.
    fn guest(&self) -> Range<u64> {
        self.told.guest_phys_addr..self.told.guest_phys_addr + self.told.memory_size
    }

    /// Where the hypervisor has it.
    fn hypervisor(&self) -> Range<u64> {
        self.told.user_addr..self.told.user_addr + self.told.memory_size
    }

    fn overlaps(&self, other: &Region) -> bool {
        let (one, other) = (self.guest(), other.guest());
        one.start < other.end && other.start < one.end
    }

    /// What is left of it where another one has come: before and behind that.
    fn without(&self, other: &Region) -> Vec<Region> {
        let (own, other) = (self.guest(), other.guest());
        let rest =
            [own.start..other.start.min(own.end), other.end.max(own.start)..own.end];
        rest.into_iter().filter_map(|part| self.part(part)).collect()
    }

    /// A part of it, if there is anything in it, and it can be had: it begins and ends
    /// between pages unless the hypervisor is odd.
    fn part(&self, guest: Range<u64>) -> Option<Region> {
        let skipped = guest.start - self.told.guest_phys_addr;
        let told = VhostUserMemoryRegion {
            guest_phys_addr: guest.start,
            memory_size: guest.end.checked_sub(guest.start).filter(|size| *size > 0)?,
            user_addr: self.told.user_addr + skipped,
            mmap_offset: self.told.mmap_offset + skipped,
        };
        let file = self.mapped.file_offset()?.file().try_clone().ok()?;
        Some(Region { leaves: self.leaves, ..Region::new(&told, file).ok()? })
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
        let region = Region::new(told, file)?;
        let covered = |old: &Region| old.leaves && old.overlaps(&region);
        let (covered, mut all): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.all).into_iter().partition(covered);
        all.extend(covered.iter().flat_map(|old| old.without(&region)));
        all.push(region);
        if all.iter().filter(|region| region.leaves).count() > REGIONS_MAX {
            all.retain(|region| !region.leaves);
        }
        if all.iter().filter(|region| !region.leaves).count() > REGIONS_MAX {
            return Err(Error::InvalidParam);
        }
        all.sort_by_key(|region| region.told.guest_phys_addr);
        self.all = all;
        self.look();
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
        self.look();
        Ok(())
    }

    fn look(&mut self) {
        let leaves = self.all.iter().any(|region| region.leaves);
        self.changed = leaves.then(Instant::now);
    }

    /// When those that leave are to have left, if any do.
    pub(super) fn settles_at(&self) -> Option<Instant> {
        self.changed.map(|changed| changed + SETTLES)
    }

    /// Those that leave have left, but for those in which any of these addresses of the
    /// guest is.
    pub(super) fn settle(&mut self, needed: &[u64]) {
        let is_needed =
            |region: &Region| needed.iter().any(|at| region.guest().contains(at));
        self.all.retain(|region| !region.leaves || is_needed(region));
        self.changed = None;
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

    /// Where the guest has what the hypervisor has at this address: now, if something else
    /// was there that leaves.
    pub(super) fn translate(&self, address: u64) -> Result<u64> {
        let is_in = |region: &&Region| region.hypervisor().contains(&address);
        let found = self.all.iter().filter(is_in).min_by_key(|region| region.leaves);
        let region = found.ok_or(Error::InvalidParam)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_of_what_is_there_and_not_of_what_leaves() {
        let memory = || {
            let file = tempfile::tempfile().unwrap();
            file.set_len(8192).unwrap();
            file
        };
        // The hypervisor has one where it had the other; the guest has it elsewhere.
        let first = VhostUserMemoryRegion::new(0, 8192, 1 << 30, 0);
        let second = VhostUserMemoryRegion::new(1 << 20, 4096, 1 << 30, 0);
        let mut regions = Regions::of(&[first], vec![memory()]).unwrap();
        assert_eq!(regions.translate((1 << 30) + 8).unwrap(), 8);
        regions.remove(&first).unwrap();
        assert_eq!(regions.translate((1 << 30) + 8).unwrap(), 8, "it is still there");
        regions.add(&second, memory()).unwrap();
        assert_eq!(regions.translate((1 << 30) + 8).unwrap(), (1 << 20) + 8);
        regions.settle(&[]);
        assert_eq!(regions.translate((1 << 30) + 8).unwrap(), (1 << 20) + 8);
        assert!(regions.translate((1 << 30) + 4096).is_err(), "nothing is there");
    }
}
