//! The guest's memory: which page is where, as the kernel has it.
//!
//! A page is *used* (the guest can use it at once), *there* (read from the device, and the guest
//! has not used it since), *coming*, or *out*. It goes from one to the next in that order and never
//! back, until all goes out again.

use sterna_core::memory::{
    GRANULE, Granule, GranuleSet, OutGranule, PAGES_PER_GRANULE, WakeRecord, batches,
    granules_in,
};
use sterna_workload::random::Random;

/// A page, in bytes.
pub(super) const PAGE: u64 = GRANULE / PAGES_PER_GRANULE;

/// The first slot that memory goes to: the kernel gives whole clusters of so many slots, and the
/// first one has the header.
const FIRST_SLOT: u64 = 512;

/// The device: there is only one.
pub(super) const DEVICE: u8 = 0;

/// Where a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Page {
    /// The guest uses it.
    Used,
    /// It was read, by the kernel of its own accord or not.
    There {
        /// Beside a page that was asked for.
        ahead: bool,
    },
    /// It is being read.
    Coming {
        /// Beside a page that was asked for.
        ahead: bool,
    },
    /// On the device.
    Out,
}

/// The memory of a guest.
#[derive(Clone, Debug)]
pub(super) struct Guest {
    pages: Vec<Page>,
    slots: Vec<u64>,
    /// The page in each slot, from the first slot on.
    of_slot: Vec<u32>,
    /// Pages that have become used.
    used: u64,
}

impl Guest {
    /// A guest with so many bytes, all of it in use.
    pub(super) fn new(bytes: u64) -> Guest {
        let pages = (u64::from(granules_in(bytes)) * PAGES_PER_GRANULE) as usize;
        let slots = (FIRST_SLOT..).take(pages).collect();
        let of_slot = (0..pages as u32).collect();
        Guest { pages: vec![Page::Used; pages], slots, of_slot, used: 0 }
    }

    /// How many granules it has.
    pub(super) fn granules(&self) -> u32 {
        (self.pages.len() as u64 / PAGES_PER_GRANULE) as u32
    }

    /// How many pages it has.
    pub(super) fn pages(&self) -> u64 {
        self.pages.len() as u64
    }

    /// How far into the device it reaches, in bytes.
    pub(super) fn swap_bytes(&self) -> u64 {
        (FIRST_SLOT + self.pages()) * PAGE
    }

    /// All goes out, as Sterna has it go.
    pub(super) fn sleep(&mut self, record: &WakeRecord) {
        let mut all = GranuleSet::none(self.granules());
        (0..self.granules()).for_each(|granule| all.insert(granule));
        let batches = batches(&all, record, false);
        let pages = batches.iter().flat_map(|it| it.offset / PAGE..it.end() / PAGE);
        self.go_out(pages.map(|page| page as u32).collect());
    }

    /// All goes out, in any order: pages are chosen by chance.
    pub(super) fn scatter(&mut self, random: &mut Random) {
        let mut order: Vec<u32> = (0..self.pages.len() as u32).collect();
        for at in (1..order.len()).rev() {
            order.swap(at, random.below(at as u64 + 1) as usize);
        }
        self.go_out(order);
    }

    fn go_out(&mut self, order: Vec<u32>) {
        for (slot, page) in (FIRST_SLOT..).zip(&order) {
            self.slots[*page as usize] = slot;
        }
        self.pages.fill(Page::Out);
        self.of_slot = order;
    }

    /// Where a page is.
    pub(super) fn page(&self, page: u32) -> Page {
        self.pages[page as usize]
    }

    /// A page goes to another place.
    pub(super) fn set(&mut self, page: u32, to: Page) {
        let is_used = |page: Page| page == Page::Used;
        self.used += u64::from(is_used(to) && !is_used(self.page(page)));
        self.pages[page as usize] = to;
    }

    /// The slot of a page.
    pub(super) fn slot(&self, page: u32) -> u64 {
        self.slots[page as usize]
    }

    /// The page in a slot, if one of this guest's is.
    pub(super) fn in_slot(&self, slot: u64) -> Option<u32> {
        self.of_slot.get(slot.checked_sub(FIRST_SLOT)? as usize).copied()
    }

    /// How many pages have become used since the beginning.
    pub(super) fn used(&self) -> u64 {
        self.used
    }

    /// What is out, if all is.
    pub(super) fn out(&self) -> Vec<OutGranule> {
        let of = |granule: Granule| {
            let slots = pages_of(granule).map(|page| self.slot(page));
            let (slot, pages) =
                (slots.min().unwrap_or_default(), PAGES_PER_GRANULE as u8);
            OutGranule { granule, device: DEVICE, slot, pages }
        };
        (0..self.granules()).map(of).collect()
    }
}

/// The pages of a granule.
pub(super) fn pages_of(granule: Granule) -> std::ops::Range<u32> {
    let first = granule * PAGES_PER_GRANULE as u32;
    first..first + PAGES_PER_GRANULE as u32
}

/// The page of a granule that Sterna touches to wait for it: the last one.
pub(super) fn probe(granule: Granule) -> u32 {
    pages_of(granule).end - 1
}
