//! Who sees that a guest that sleeps needs its memory: a task that counts what it gets back. It
//! also begins the rounds that look whether the host is short of memory, and reads what the
//! kernel counts.
//!
//! `core::memory::Stirring` knows what an idle guest gets back, and what is more than that. What
//! an idle guest needs is kept: what is out stays in memory as well for a minute, in which it gets
//! back what it needs without waiting. Only the rest is freed then.
//!
//! A guest whose disk this daemon serves is seen earlier: by the first request on a disk that was
//! quiet. The engine tells of it at once, before the guest has had many faults.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sterna_api::Result;
use sterna_core::memory::{Need, Stirring};
use sterna_core::{DiskId, Nanos};
use sterna_os::lock;
use sterna_runtime::tasks::Task;
use sterna_runtime::threads;

use crate::Memory;
use crate::guest_memory::{GuestMemory, Signs, Whereabouts};
use crate::neighbours::requests;
use crate::tiers::{UNKNOWN, speeds};
use crate::wake::Cause;

/// How often guests that sleep are looked at.
const LOOK: Duration = Duration::from_millis(100);

/// How often it is looked whether any guest sleeps of which nothing is known.
const NOBODY: Duration = Duration::from_secs(2);

/// How often it is tried to swap to tiers that are not there.
const AGAIN: Duration = Duration::from_secs(60);

/// What an idle guest does comes again within this time: what it has not got back by then it does
/// not need.
const SETTLED: Duration = Duration::from_secs(60);

/// A disk without requests for so long is quiet: then a request is a guest that does something.
/// (The guest's kernel writes what was left to write in half a minute. One that writes now and then
/// though it is idle, as logs do, is woken once by that; a wake sees that it used next to nothing,
/// and from then on it is seen by its memory alone, until it was found busy again.)
const QUIET: Duration = Duration::from_secs(10);

/// Wakes guests that need their memory.
pub fn watching(memory: &Arc<Memory>) -> Task {
    let mut watch = Watch::default();
    let run = move |memory: &Arc<Memory>| watch.look(memory);
    let sleeper = memory.waker.sleeper();
    Task::when_due("wakes", "watch VMs that sleep", NOBODY, sleeper, memory, run)
}

/// What is known of guests that sleep.
#[derive(Default)]
struct Watch {
    known: BTreeMap<String, Sleeping>,
    search: Search,
    /// When others were looked for.
    looked: Option<Instant>,
    /// When it was tried to swap to all tiers, and whether that is so.
    tiers: Option<(bool, Instant)>,
}

/// Finds VMs that sleep and are not known, on a thread of its own: QEMU is asked for them, and may
/// take its time.
#[derive(Default)]
struct Search(Arc<Mutex<Found>>);

#[derive(Default)]
struct Found {
    is_under_way: bool,
    all: Vec<(String, Sleeping)>,
}

impl Search {
    /// Looks for these, unless it is looking already.
    fn begin(&self, memory: &Arc<Memory>, asleep: Vec<String>) -> Result<()> {
        if asleep.is_empty() || std::mem::replace(&mut lock(&self.0).is_under_way, true) {
            return Ok(());
        }
        let (memory, under_way) = (memory.clone(), UnderWay(self.0.clone()));
        threads::start("sterna-sleepers".into(), move || {
            for vm in asleep {
                match memory.sleeping(&vm) {
                    Ok(Some(one)) => {
                        lock(&under_way.0).all.push((vm, one));
                        memory.waker.wake();
                    }
                    Ok(None) => {}
                    Err(error) => {
                        tracing::debug!(vm, %error, "a VM that sleeps is not watched yet");
                    }
                }
            }
        })
    }

    /// Those that were found since.
    fn found(&self) -> Vec<(String, Sleeping)> {
        std::mem::take(&mut lock(&self.0).all)
    }
}

/// A search, until it is dropped.
struct UnderWay(Arc<Mutex<Found>>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        lock(&self.0).is_under_way = false;
    }
}

struct Sleeping {
    /// As it was when the guest had fallen asleep: one that waits for memory may not answer.
    guest: Arc<GuestMemory>,
    last: Signs,
    began: Instant,
    stirring: Stirring,
    /// Whether what it does not need was freed.
    is_settled: bool,
    disks: Disks,
}

/// The disks of a guest that this daemon serves.
struct Disks {
    all: Vec<DiskId>,
    /// Their requests, and since when there are no more of them.
    requests: u64,
    since: Instant,
    /// Set by the first request after they were quiet; nothing before.
    asked: Option<Arc<AtomicBool>>,
}

impl Watch {
    /// Looks at all that sleep; gives when it is to be looked again.
    fn look(&mut self, memory: &Arc<Memory>) -> Result<Duration> {
        if self.tiers.is_none_or(|(all, at)| !all && at.elapsed() >= AGAIN) {
            self.tiers = Some((memory.begin_swap_tiers(), Instant::now()));
        }
        // What cannot be counted or looked at must not keep anybody from waking.
        let counted = memory.count();
        let begun = memory.begin_round();
        let mut asleep = memory.storage.store.asleep_vms()?;
        asleep.retain(|vm| memory.work_of(vm).is_none());
        self.known.retain(|vm, one| asleep.contains(vm) && one.look(memory, vm));
        let fell = asleep.iter().any(|vm| lock(&memory.asleep).contains_key(vm));
        let is_due = fell || self.looked.is_none_or(|at| at.elapsed() >= NOBODY);
        let found = self.search.found();
        self.known.extend(found.into_iter().filter(|(vm, _)| asleep.contains(vm)));
        if is_due {
            self.looked = Some(Instant::now());
            asleep.retain(|vm| !self.known.contains_key(vm));
            self.search.begin(memory, asleep)?;
        }
        match counted.and(begun) {
            // It would be told, and looked at later; those that sleep are looked at in time.
            Err(error) if !self.known.is_empty() => {
                tracing::debug!(%error, "memory cannot be counted");
            }
            told => told?,
        }
        Ok(if self.known.is_empty() { NOBODY } else { LOOK })
    }
}

impl Sleeping {
    /// Wakes the VM if its guest needs its memory; whether it is still to be watched.
    fn look(&mut self, memory: &Arc<Memory>, vm: &str) -> bool {
        let Ok(now) = self.guest.signs() else { return false };
        if self.disks.are_asked(memory) && !lock(&memory.idle_writers).contains(vm) {
            tracing::info!(vm, "a VM that sleeps asks for its disk");
            memory.wake_by_itself(vm, self.guest.clone(), &self.disks.all, Cause::Disk);
            // A wake that cannot begin is not tried again until they were quiet once more.
            self.disks = Disks::of(memory, std::mem::take(&mut self.disks.all));
            return true;
        }
        let (waits, back) =
            (now.waits_asleep_since(self.last), now.pages_since(self.last));
        self.last = now;
        let at = Nanos(self.began.elapsed().as_nanos() as u64);
        if let Some(need) = self.stirring.look(at, waits, back) {
            let why = match need {
                Need::Waits => "waits for",
                Need::Uses => "uses a good part of",
            };
            tracing::info!(vm, "a VM that sleeps {why} its memory");
            memory.wake_by_itself(vm, self.guest.clone(), &self.disks.all, Cause::Memory);
        } else if !self.is_settled && self.began.elapsed() >= SETTLED {
            self.is_settled = true;
            memory.free_what_is_not_needed(vm, self.guest.clone());
        }
        true
    }
}

impl Disks {
    fn new(memory: &Memory, vm: &str) -> Disks {
        // A VM whose monitor does not answer is seen by its memory.
        Disks::of(memory, memory.machines.served_disks_of(vm).unwrap_or_default())
    }

    fn of(memory: &Memory, all: Vec<DiskId>) -> Disks {
        let requests = requests(memory, &all);
        Disks { all, requests, since: Instant::now(), asked: None }
    }

    /// Whether one of them was asked for something after all were quiet.
    fn are_asked(&mut self, memory: &Memory) -> bool {
        if self.all.is_empty() {
            return false;
        }
        if let Some(asked) = &self.asked {
            return asked.load(SeqCst);
        }
        if self.since.elapsed() < QUIET {
            return false;
        }
        let before = std::mem::replace(&mut self.requests, requests(memory, &self.all));
        self.since = Instant::now();
        if self.requests == before {
            let asked = Arc::new(AtomicBool::new(false));
            for disk in &self.all {
                let (asked, sleeper) = (asked.clone(), memory.waker.sleeper());
                let tell = move || {
                    asked.store(true, SeqCst);
                    sleeper.wake();
                };
                // A disk that is not served has no requests.
                let _ = memory.storage.engine.tell_of_next_request(*disk, tell);
            }
            tracing::info!(
                disks = self.all.len(),
                "a VM that sleeps is watched by its disks"
            );
            self.asked = Some(asked);
        }
        false
    }
}

impl Memory {
    /// Wakes a VM that needs its memory.
    fn wake_by_itself(
        self: &Arc<Self>,
        vm: &str,
        guest: Arc<GuestMemory>,
        disks: &[DiskId],
        cause: Cause,
    ) {
        if let Err(error) = self.begin_wake(vm, guest, disks, cause) {
            tracing::warn!(vm, %error, "the VM wakes page by page");
        }
    }

    /// Frees what is out and in memory as well of a VM that sleeps, on a thread of its own: the
    /// kernel may take its time.
    fn free_what_is_not_needed(self: &Arc<Self>, vm: &str, guest: Arc<GuestMemory>) {
        let (memory, name) = (self.clone(), vm.to_owned());
        let begun = threads::start("sterna-free".into(), move || {
            let wakes = || memory.work_of(&name).is_some();
            if let Err(error) = guest.free_copies(wakes) {
                tracing::info!(vm = name, %error, "what is out stays in memory as well");
            }
        });
        if let Err(error) = begun {
            tracing::info!(vm, %error, "what is out stays in memory as well");
        }
    }

    /// A VM has fallen asleep: what comes back from now on its guest needs.
    pub(crate) fn fell_asleep(&self, vm: &str, guest: &GuestMemory) {
        if let Ok(signs) = guest.signs() {
            lock(&self.asleep).insert(vm.to_owned(), signs);
        }
    }

    /// A VM that sleeps, if it is there. One that has all its memory back is awake.
    fn sleeping(&self, vm: &str) -> Result<Option<Sleeping>> {
        // One that cannot be asked now is looked for again in a while, and not at once.
        let before = lock(&self.asleep).remove(vm);
        let guest = self.machines.process_of(vm);
        let Ok(guest) = guest.and_then(|process| GuestMemory::of(vm, process)) else {
            // Its monitor may be somebody else's for a moment.
            return Ok(None);
        };
        let found = guest.whereabouts();
        if found.as_ref().is_ok_and(|found| found.out.is_empty()) {
            self.storage.store.set_asleep(vm, None)?;
            return Ok(None);
        }
        let found = found.unwrap_or_default();
        let page = self.slowest_page(&found);
        let Some(last) = before.or_else(|| guest.signs().ok()) else { return Ok(None) };
        let disks = Disks::new(self, vm);
        let guest = Arc::new(guest);
        let stirring = Stirring::new(Nanos(0), found.out_bytes(), page);
        let began = Instant::now();
        Ok(Some(Sleeping { guest, last, began, stirring, is_settled: false, disks }))
    }

    /// How long a page takes from the slowest device on which something is.
    fn slowest_page(&self, found: &Whereabouts) -> Nanos {
        let speeds = self.tiers().map(|tiers| speeds(&tiers)).unwrap_or_default();
        let of = |device: u8| speeds.get(&device).unwrap_or(&UNKNOWN).page();
        found.out.iter().map(|it| of(it.device)).max().unwrap_or(UNKNOWN.page())
    }
}
