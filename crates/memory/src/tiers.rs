//! Swap tiers: the files and devices that the kernel swaps to on Sterna's word.
//!
//! A tier is measured when it is added, and its priority follows from that: the kernel fills the
//! fastest tier first. The record is durable before the kernel swaps to it, and removed after
//! the kernel has ended: so a tier that is in use is always known here. After a restart of the
//! host the daemon begins swapping to its tiers again.
//!
//! **Numbers.** The kernel numbers swap devices, says in its tables of pages by number where each
//! page is, and nowhere which device has which number. So Sterna asks: when a tier begins, it
//! has the highest priority for a moment, one page of the daemon's own goes out, and the table
//! says where to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sterna_api::{AddSwapTier, Error, ErrorCode, Result, SwapTier};
use sterna_core::memory::{SWAP_LEFT, TierSpeed, priorities};
use sterna_core::{Bytes, Nanos};
use sterna_engine::boot::BootId;
use sterna_engine::datastore::Location;
use sterna_os::process_memory::{self, PAGE, Page, ProcessMemory};
use sterna_os::swap::{self, Swap};
use sterna_os::{clock, lock};
use sterna_state::SwapTierRecord;
use sterna_storage::datastores::check_name;

use super::{Memory, tier_file};

/// The kernel has room for fewer than 30 swap devices; nobody has as many speeds of storage.
const TIERS_MAX: usize = 8;

/// The priority of a tier whose number is being found: the highest that there is.
const PRIORITY_ALONE: i16 = i16::MAX;

/// How often a page of the daemon's own is sent out to find a number: the kernel may be using it.
const TRIES: usize = 20;

/// A tier, and what the kernel says of it.
pub(crate) struct Tier {
    pub(crate) record: SwapTierRecord,
    /// Nothing if the kernel does not swap to it.
    pub(crate) swap: Option<Swap>,
    /// Its number in the kernel, if it has one now and that is known.
    pub(crate) number: Option<u8>,
}

impl Tier {
    pub(crate) fn speed(&self) -> TierSpeed {
        speed(&self.record)
    }
}

/// How many bytes these tiers have room for.
pub(crate) fn free(tiers: &[Tier]) -> u64 {
    let used = tiers.iter().filter_map(|tier| tier.swap.as_ref());
    used.map(|it| it.size.saturating_sub(it.used)).sum()
}

/// How many bytes more may go out to these tiers, if so many are still to come: some room stays
/// ([`SWAP_LEFT`]).
pub(crate) fn room(tiers: &[Tier], promised: u64) -> u64 {
    free(tiers).saturating_sub(SWAP_LEFT).saturating_sub(promised)
}

/// Of a swap device of which nothing is known: a slow disk, so that it is not asked for much.
pub(crate) const UNKNOWN: TierSpeed =
    TierSpeed { access: Nanos::from_millis(15), sequential: 60e6 };

/// What each swap device of the kernel's does that is one of these tiers, by its number.
pub(crate) fn speeds(tiers: &[Tier]) -> BTreeMap<u8, TierSpeed> {
    tiers.iter().filter_map(|tier| Some((tier.number?, tier.speed()))).collect()
}

impl Memory {
    /// All tiers, the fastest first.
    pub fn list_swap_tiers(&self) -> Result<Vec<SwapTier>> {
        Ok(self.tiers()?.iter().map(view).collect())
    }

    /// All tiers, the fastest first.
    pub(crate) fn tiers(&self) -> Result<Vec<Tier>> {
        let used = swap::list().map_err(|error| {
            Error::unavailable(format!("cannot see what the kernel swaps to: {error}"))
        })?;
        let mut records = self.storage.store.swap_tiers()?;
        records.sort_by_key(|record| record.access_ns);
        let boot = boot();
        let tier = |record: SwapTierRecord| {
            // The kernel has the path that links lead to; a volume's changes with each boot.
            let path = PathBuf::from(&record.path);
            let real = path.canonicalize().unwrap_or_else(|_| path.clone());
            let is_it = |it: &&Swap| it.path == real || it.path == path;
            let swap = used.iter().find(is_it).cloned();
            let is_of_now = swap.is_some() && record.boot == boot && !boot.is_empty();
            let number = record.number.filter(|_| is_of_now);
            Tier { record, swap, number }
        };
        Ok(records.into_iter().map(tier).collect())
    }

    /// Adds a tier: makes it, measures it, and has the kernel swap to it.
    pub fn add_swap_tier(&self, request: &AddSwapTier) -> Result<SwapTier> {
        let name = &request.name;
        check_name("swap tier", name)?;
        check_host()?;
        let _turn = lock(&self.tiers_turn);
        let known = self.storage.store.swap_tiers()?;
        if known.iter().any(|tier| tier.name == *name) {
            let message = format!("there is a swap tier {name} already");
            let hint = "choose another name, or see `sterna swap list`";
            return Err(Error::new(ErrorCode::Exists, message).hint(hint));
        }
        if known.len() >= TIERS_MAX {
            let message = format!("there are {TIERS_MAX} swap tiers already");
            return Err(
                Error::invalid(message).hint("remove one first: `sterna swap remove`")
            );
        }
        let place = self.place_of(request)?;
        let added = self.measure_and_begin(name, &place);
        if added.is_err() && place.datastore.is_some() {
            tier_file::discard(&place.path);
        }
        added?;
        self.count_again();
        tracing::info!(tier = name, path = %place.path.display(), "swap tier added");
        self.show_swap_tier(name)
    }

    /// Removes a tier: all that is there comes back to memory first.
    pub fn remove_swap_tier(&self, name: &str) -> Result<SwapTier> {
        let _turn = lock(&self.tiers_turn);
        let mut tiers = self.tiers()?;
        let found = tiers.iter().position(|tier| tier.record.name == name);
        let tier =
            tiers.remove(found.ok_or_else(|| Error::not_found("swap tier", name))?);
        if let Some(swap) = &tier.swap {
            check_room_for(swap, &tiers)?;
            swap::end(&swap.path)?;
        }
        self.storage.store.remove_swap_tier(name)?;
        let path = Path::new(&tier.record.path);
        if tier.record.datastore.is_some() {
            match tier_file::check_is_of(path, name) {
                Ok(()) => tier_file::discard(path),
                Err(error) => tracing::warn!(tier = name, %error, "its file stays"),
            }
        }
        self.count_again();
        lock(&self.tier_problems).remove(name);
        tracing::info!(tier = name, "swap tier removed");
        Ok(view(&Tier { swap: None, ..tier }))
    }

    /// Has the kernel swap to all tiers that it does not swap to: after a restart of the host. Says
    /// whether it swaps to all of them now.
    pub(crate) fn begin_swap_tiers(&self) -> bool {
        // Whoever adds or removes one may take minutes.
        let Ok(_turn) = self.tiers_turn.try_lock() else { return false };
        let tiers = match self.tiers() {
            Ok(tiers) => tiers,
            Err(error) => {
                tracing::warn!(%error, "no swap tier is begun");
                return false;
            }
        };
        let mut all = true;
        // A daemon that was killed while it looked for a number has left that priority.
        let is_alone = |swap: &Swap| swap.priority == i32::from(PRIORITY_ALONE);
        let is_to_begin = |tier: &&Tier| tier.swap.as_ref().is_none_or(is_alone);
        for tier in tiers.iter().filter(is_to_begin) {
            let name = &tier.record.name;
            let ended = tier_file::check_is_of(Path::new(&tier.record.path), name)
                .and_then(|()| match &tier.swap {
                    Some(swap) => swap::end(&swap.path),
                    None => Ok(()),
                });
            match ended.and_then(|()| self.begin_tier(&tier.record, &tiers)) {
                Ok(()) => {
                    lock(&self.tier_problems).remove(name);
                    tracing::info!(tier = name, "the kernel swaps to the tier again");
                }
                Err(error) => {
                    tracing::warn!(tier = name, %error, "swap tier is not in use");
                    lock(&self.tier_problems).insert(name.clone(), error.to_string());
                    all = false;
                }
            }
        }
        all
    }

    /// Has the kernel swap to a tier, at its priority beside these, and records its number.
    fn begin_tier(&self, record: &SwapTierRecord, tiers: &[Tier]) -> Result<()> {
        let number = begin(Path::new(&record.path), priority(record, tiers))?;
        let record = SwapTierRecord { number, boot: boot(), ..record.clone() };
        Ok(self.storage.store.change_swap_tier(record)?)
    }

    /// Refuses a datastore that has the file of a tier.
    pub(crate) fn check_no_tier_on(&self, datastore: &str) -> Result<()> {
        let all = self.storage.store.swap_tiers()?;
        match all.iter().find(|tier| tier.datastore.as_deref() == Some(datastore)) {
            None => Ok(()),
            Some(tier) => {
                let name = &tier.name;
                let message = format!("swap tier {name} is on datastore {datastore}");
                Err(Error::in_use(message)
                    .hint(format!("`sterna swap remove {name}` first")))
            }
        }
    }

    fn show_swap_tier(&self, name: &str) -> Result<SwapTier> {
        let found = self.tiers()?.into_iter().find(|tier| tier.record.name == name);
        found.map(|tier| view(&tier)).ok_or_else(|| Error::not_found("swap tier", name))
    }

    /// The file that a tier is to have, which is made, or the device.
    fn place_of(&self, request: &AddSwapTier) -> Result<Place> {
        match (&request.datastore, request.size, &request.device) {
            (Some(datastore), Some(size), None) => {
                tier_file::check_size(size)?;
                let handle = self.storage.handle(datastore)?;
                handle.check_takes_new()?;
                let Location::Directory(directory) = &handle.record().location else {
                    let message = format!("datastore {datastore} is no directory");
                    return Err(Error::invalid(message).hint(
                        "swap needs a file: give a datastore that is a directory",
                    ));
                };
                let path = directory.join(format!("sterna-swap-{}", request.name));
                let size = size / PAGE * PAGE;
                tier_file::make(&path, size)?;
                let datastore = Some(datastore.clone());
                Ok(Place { path, size, datastore })
            }
            (None, None, Some(device)) => {
                let path = PathBuf::from(device);
                let size = tier_file::check_device(&path)?;
                tier_file::check_size(size)?;
                self.check_no_datastore_at(&path)?;
                Ok(Place { path, size, datastore: None })
            }
            _ => Err(Error::invalid("a swap tier is a file on a datastore, or a device")
                .hint("give `datastore` and `size`, or `device`")),
        }
    }

    /// Refuses a device that is a datastore.
    fn check_no_datastore_at(&self, device: &Path) -> Result<()> {
        let real = device.canonicalize().unwrap_or_else(|_| device.into());
        let at_it = |location: &Location| match location {
            Location::Device(path) => path.canonicalize().is_ok_and(|path| path == real),
            _ => false,
        };
        let all = self.storage.all_handles();
        match all.iter().find(|handle| at_it(&handle.record().location)) {
            None => Ok(()),
            Some(handle) => {
                let (device, name) = (device.display(), handle.name());
                let message =
                    format!("{device} is datastore {name}: images would be lost");
                Err(Error::in_use(message).hint("give another device"))
            }
        }
    }

    fn measure_and_begin(&self, name: &str, place: &Place) -> Result<()> {
        let speed = tier_file::measure(&place.path, place.size)?;
        swap::format(&place.path, &tier_file::label(name))?;
        let record = SwapTierRecord {
            name: name.to_owned(),
            datastore: place.datastore.clone(),
            path: place.path.to_string_lossy().into_owned(),
            size: place.size,
            access_ns: speed.access.0,
            sequential: speed.sequential as u64,
            number: None,
            boot: boot(),
            added: clock::now(),
        };
        self.storage.store.add_swap_tier(record.clone())?;
        let began = self.tiers().and_then(|tiers| self.begin_tier(&record, &tiers));
        began.inspect_err(|_| {
            // The kernel may swap to it by now.
            let _ = swap::end(&place.path);
            let _ = self.storage.store.remove_swap_tier(name);
        })
    }
}

/// Where a tier is to be.
struct Place {
    path: PathBuf,
    size: u64,
    /// On which its file is; none of a device.
    datastore: Option<String>,
}

/// Refuses a host on which the daemon cannot have the kernel swap.
fn check_host() -> Result<()> {
    process_memory::check().map_err(|why| {
        let message = format!("Sterna cannot add swap to this host: {why}");
        Error::unavailable(message).hint("run the daemon as root")
    })
}

/// Refuses to end swapping to a device whose content has no room in memory and on the others.
fn check_room_for(swap: &Swap, others: &[Tier]) -> Result<()> {
    let available = sterna_os::memory::host().map_or(0, |host| host.available);
    // The kernel reads it into memory, and may write it to the others from there.
    if swap.used < available.saturating_add(free(others)) {
        return Ok(());
    }
    let (used, available) = (Bytes(swap.used), Bytes(available));
    let message = format!("{used} are out there, and the host has {available} available");
    Err(Error::unavailable(message).hint("stop a VM, or move one to another host, first"))
}

/// The priority that a tier gets beside these.
fn priority(record: &SwapTierRecord, all: &[Tier]) -> i16 {
    let others = all.iter().filter(|tier| tier.record.name != record.name);
    let speeds: Vec<TierSpeed> = others.map(Tier::speed).chain([speed(record)]).collect();
    priorities(&speeds).last().copied().unwrap_or_default()
}

fn speed(record: &SwapTierRecord) -> TierSpeed {
    TierSpeed { access: Nanos(record.access_ns), sequential: record.sequential as f64 }
}

/// Has the kernel swap to a file or device, and finds its number. If that cannot be found, the
/// tier works all the same, and nothing is predicted of it.
fn begin(path: &Path, priority: i16) -> Result<Option<u8>> {
    swap::begin(path, PRIORITY_ALONE)?;
    let number = own_number();
    swap::end(path)?;
    // The kernel gives the lowest number that is free: the same one.
    swap::begin(path, priority)?;
    if number.is_none() {
        tracing::warn!(path = %path.display(), "the kernel's number of a swap tier is not known");
    }
    Ok(number)
}

/// The number of the device that has the highest priority: where a page of this process goes.
fn own_number() -> Option<u8> {
    let own = ProcessMemory::open(std::process::id().cast_signed()).ok()?;
    let mut bytes = vec![0_u8; 2 * PAGE as usize];
    bytes.iter_mut().enumerate().for_each(|(at, byte)| *byte = (at % 251) as u8 + 1);
    let start = (bytes.as_ptr() as u64).next_multiple_of(PAGE);
    for _ in 0..TRIES {
        own.page_out(&(start..start + PAGE)).ok()?;
        let mut found = None;
        own.pages(start..start + PAGE, |pages| found = pages.first().copied()).ok()?;
        if let Some(Page::Out { device, .. }) = found {
            return Some(device);
        }
    }
    None
}

fn boot() -> String {
    BootId::of_machine().map_or_else(|_| String::new(), |boot| boot.to_string())
}

/// As people see it.
pub(crate) fn view(tier: &Tier) -> SwapTier {
    let record = &tier.record;
    SwapTier {
        name: record.name.clone(),
        datastore: record.datastore.clone(),
        path: record.path.clone(),
        size: record.size,
        used: tier.swap.as_ref().map_or(0, |it| it.used),
        priority: tier.swap.as_ref().map(|it| it.priority),
        access_us: record.access_ns as f64 / 1e3,
        bytes_per_s: record.sequential,
        added: record.added,
    }
}
