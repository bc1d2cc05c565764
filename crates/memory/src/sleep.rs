//! A VM goes to sleep: its memory goes out to the swap tiers.
//!
//! The kernel writes, batch by batch. The next batch goes once the device has hardly anything left
//! to write, so that others on it wait for little. The kernel keeps a copy of what is out until
//! somebody needs the room; `watch` has it freed once the guest has got back what it needs while it
//! sleeps.

use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use sterna_api::{Error, MemoryWorkKind, Result, SleepVm, VmMemory};
use sterna_core::memory::{GRANULE, Stirring, WakeRecord, WakeScores, at_most, batches};
use sterna_core::{ByteRange, Bytes, Nanos};
use sterna_os::block_device::BlockDevice;
use sterna_os::{clock, lock};
use sterna_runtime::threads;

use crate::Memory;
use crate::guest_memory::{GuestMemory, Whereabouts};
use crate::tiers::{Tier, UNKNOWN, room};
use crate::work::Work;

/// The next batch goes when a device has no more than so many writes left: so it is never idle, and
/// nobody else's request waits for more than these.
const WRITES_LEFT: u64 = 2;

/// How often it is looked how many these are: a write of a batch takes a disk 20 ms.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// A device that takes longer for what it has is not waited for: others write to it as well.
const WAIT_MOST: Duration = Duration::from_secs(2);

/// The kernel keeps this much at times: what each processor of the host has read last.
const KEPT_LEAST: u64 = 16 << 20;

/// How often it is looked whether the guest does something while its memory goes out.
const STIRS_EVERY: Duration = Duration::from_secs(1);

impl Memory {
    /// Has a VM's memory go out. What its wakes need at once stays, unless all is to go.
    pub fn sleep_vm(self: &Arc<Self>, vm: &str, request: &SleepVm) -> Result<VmMemory> {
        self.begin_sleep(vm, request.all, None)?;
        self.show_vm_memory(vm)
    }

    /// Has a VM's memory go out, `most` bytes of it at most, and no more than comes back in the
    /// time that a wake of it may take.
    pub(crate) fn begin_sleep(
        self: &Arc<Self>,
        vm: &str,
        all: bool,
        most: Option<u64>,
    ) -> Result<()> {
        // What Sterna does by itself ends no wake that somebody needs.
        let by_itself = most.is_some();
        if !by_itself && self.work_of(vm).is_some_and(|work| !work.is_sleep()) {
            self.stop_work(vm);
        }
        let guest = GuestMemory::of(vm, self.machines.process_of(vm)?)?;
        let gone = |error| Error::unavailable(format!("memory of VM {vm}: {error}"));
        let found = guest.whereabouts().map_err(gone)?;
        let record = self.wake_record(vm, guest.granules())?;
        let tiers = self.tiers()?;
        let most = most.unwrap_or(u64::MAX).min(self.comes_back(vm, &tiers, &found)?);
        let plan = at_most(batches(&found.present, &record, !all), most);
        let bytes = plan.iter().map(|batch| batch.len).sum::<u64>();
        let goes = bytes.min(found.present_bytes);
        let work = Arc::new(Work::new(MemoryWorkKind::Sleep, bytes));
        self.begin(vm, work.clone(), |promised| check_room(vm, goes, promised, &tiers))?;
        let begun = self.storage.store.set_asleep(vm, Some(clock::now()));
        let (memory, name) = (self.clone(), vm.to_owned());
        let devices = devices_of(&tiers);
        let fastest = tiers.iter().find(|tier| tier.swap.is_some());
        let page = fastest.map_or(UNKNOWN, Tier::speed).page();
        let begun = begun.map_err(Error::from).and_then(|()| {
            threads::start("sterna-sleep".into(), move || {
                let looks = by_itself.then_some(page);
                let went = take_out(&guest, &plan, &devices, &work, looks);
                let went = match went.is_ok() && !work.is_to_stop() {
                    true => check_gone(&guest, goes, found.present_bytes - goes),
                    false => went,
                };
                if went.is_err() && by_itself {
                    lock(&memory.standing).keep_awake(&name);
                }
                if let Err(error) = &went {
                    let why = format!("its memory did not go out: {error}");
                    lock(&memory.failures).insert(name.clone(), why);
                }
                memory.fell_asleep(&name, &guest);
                memory.end(&name);
                // What it has out counts as available from now on.
                memory.count_again();
                match went {
                    Ok(()) => tracing::info!(vm = name, bytes = work.done(), "VM sleeps"),
                    Err(error) => {
                        tracing::warn!(vm = name, %error, "memory of a VM stays in memory");
                    }
                }
            })
        });
        if let Err(error) = begun {
            self.end(vm);
            return Err(error);
        }
        Ok(())
    }

    /// How many bytes more may go out of a VM so that it wakes in the time that was promised. They
    /// go to the fastest tier first; what another one has to take comes back at the same time.
    fn comes_back(&self, vm: &str, tiers: &[Tier], found: &Whereabouts) -> Result<u64> {
        let Some(within) = self.terms_of(vm)?.wake_within_ms else { return Ok(u64::MAX) };
        let fastest = tiers.iter().find(|tier| tier.swap.is_some());
        let bytes =
            fastest.map_or(0, |tier| tier.speed().within(Nanos::from_millis(within)));
        let more = bytes.saturating_sub(found.out_bytes());
        if fastest.is_some() && more < GRANULE {
            let message = format!(
                "no more of VM {vm} may go out: it would take longer than {} to come back",
                Nanos::from_millis(within)
            );
            return Err(Error::unavailable(message)
                .hint("allow more: `sterna memory set VM --wake-within TIME`"));
        }
        Ok(more)
    }

    /// How right predictions of wakes were.
    pub(crate) fn wake_scores(&self) -> Result<WakeScores> {
        Ok(WakeScores::new(self.storage.store.wake_scores()?))
    }

    /// What is known of a VM's wakes.
    pub(crate) fn wake_record(&self, vm: &str, granules: u32) -> Result<WakeRecord> {
        Ok(WakeRecord::new(self.storage.store.wakes(vm, granules)?))
    }
}

/// Refuses to take out more than the tiers have room for.
fn check_room(vm: &str, bytes: u64, promised: u64, tiers: &[Tier]) -> Result<()> {
    if tiers.iter().all(|tier| tier.swap.is_none()) {
        let message =
            format!("memory of VM {vm} has nowhere to go: there is no swap tier");
        return Err(Error::unavailable(message)
            .hint("add one: `sterna swap add NAME --on DATASTORE --size SIZE`"));
    }
    let room = room(tiers, promised);
    if bytes <= room {
        return Ok(());
    }
    let (bytes, room) = (Bytes(bytes), Bytes(room));
    let message =
        format!("{bytes} of VM {vm} do not fit: the swap tiers have room for {room}");
    Err(Error::unavailable(message).hint("add a larger tier, or let another VM wake"))
}

/// Whether about so many bytes are still in memory, and no more. The kernel says nothing of pages
/// that it keeps: those that a device uses, or that other VMs share, or for which swap has no room.
/// (It drops pages of zeroes, which are neither in memory then nor out.)
fn check_gone(guest: &GuestMemory, goes: u64, stays: u64) -> std::io::Result<()> {
    let kept = guest.whereabouts()?.present_bytes.saturating_sub(stays);
    if kept <= (goes / 2).max(KEPT_LEAST) {
        return Ok(());
    }
    let (kept, goes) = (Bytes(kept), Bytes(goes));
    Err(std::io::Error::other(format!(
        "the kernel keeps {kept} of {goes} (pinned or shared memory, or swap is full)"
    )))
}

/// The devices of these tiers.
fn devices_of(tiers: &[Tier]) -> Vec<BlockDevice> {
    let used = tiers.iter().filter_map(|tier| tier.swap.as_ref());
    used.filter_map(|swap| BlockDevice::of(&swap.path).ok()).collect()
}

/// Has all of the plan go out, unless that is to stop, or Sterna does it by itself and the guest
/// does something meanwhile. A page takes so long to come back.
fn take_out(
    guest: &GuestMemory,
    plan: &[ByteRange],
    devices: &[BlockDevice],
    work: &Work,
    by_itself: Option<Nanos>,
) -> std::io::Result<()> {
    let (began, bytes) = (Instant::now(), plan.iter().map(|it| it.len).sum());
    let mut stirring = by_itself.map(|page| Stirring::new(Nanos(0), bytes, page));
    let mut last = (Instant::now(), guest.signs()?);
    for batch in plan {
        if work.is_to_stop() {
            return Ok(());
        }
        if let Some(stirring) = &mut stirring
            && last.0.elapsed() >= STIRS_EVERY
        {
            let signs = guest.signs()?;
            let (waits, back) =
                (signs.waits_asleep_since(last.1), signs.pages_since(last.1));
            let now = Nanos(began.elapsed().as_nanos() as u64);
            if stirring.look(now, waits, back).is_some() {
                work.stop();
                return Err(std::io::Error::other("the guest has begun to do something"));
            }
            last = (Instant::now(), signs);
        }
        guest.page_out(*batch)?;
        work.add(batch.len);
        wait_until_written(devices);
    }
    Ok(())
}

fn wait_until_written(devices: &[BlockDevice]) {
    let began = Instant::now();
    let is_busy = |one: &BlockDevice| {
        one.writes_in_flight().is_ok_and(|writes| writes > WRITES_LEFT)
    };
    while devices.iter().any(is_busy) && began.elapsed() < WAIT_MOST {
        sleep(LOOK_EVERY);
    }
}
