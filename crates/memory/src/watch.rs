//! Who sees that a guest that sleeps needs its memory: a task that counts what it gets back. It
//! also begins the rounds that look whether the host is short of memory, and reads what the
//! kernel counts.
//!
//! A guest that sleeps gets back a handful of pages in a second, for its kernel's timers. Many in a
//! short time are a guest that does something.
//!
//! A guest whose disk this daemon serves is seen earlier: by the first request on a disk that was
//! quiet. The engine tells of it at once, before the guest has had many faults.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sterna_api::Result;
use sterna_core::DiskId;
use sterna_core::memory::HOLD_MOST;
use sterna_os::lock;
use sterna_runtime::tasks::Task;
use sterna_runtime::threads;

use crate::Memory;
use crate::guest_memory::{GuestMemory, Signs};
use crate::neighbours::requests;

/// How often guests that sleep are looked at.
const LOOK: Duration = Duration::from_millis(100);

/// How often it is looked whether any guest sleeps of which nothing is known.
const NOBODY: Duration = Duration::from_secs(2);

/// How often it is tried to swap to tiers that are not there.
const AGAIN: Duration = Duration::from_secs(60);

/// A guest that gets back more pages than these within [`WINDOW`] does something. From a disk, one
/// processor gets some 100 in a second.
pub(crate) const PAGES: u64 = 20;

/// A second or two: a guest that is idle gets a handful of pages in it.
const WINDOW: Duration = Duration::from_secs(2);

/// A disk without requests for so long is quiet: then a request is a guest that does something.
/// (The guest's kernel writes what was left to write in half a minute; one that writes again and
/// again is seen by its memory alone.)
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
    /// The pages that it has got back since the window began.
    pages: u64,
    since: Instant,
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
        if self.disks.are_asked(memory) {
            tracing::info!(vm, "a VM that sleeps asks for its disk");
            memory.wake_by_itself(vm, self.guest.clone(), &self.disks.all);
            // A wake that cannot begin is not tried again until they were quiet once more.
            self.disks = Disks::of(memory, std::mem::take(&mut self.disks.all));
            return true;
        }
        let pages = self.pages + now.pages_since(self.last);
        (self.last, self.pages) = (now, pages);
        if pages <= PAGES && self.since.elapsed() < WINDOW {
            return true;
        }
        (self.pages, self.since) = (0, Instant::now());
        if pages > PAGES {
            tracing::info!(vm, pages, "a VM that sleeps needs its memory");
            memory.wake_by_itself(vm, self.guest.clone(), &self.disks.all);
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
    ) {
        if let Err(error) = self.begin_wake(vm, guest, disks, HOLD_MOST) {
            tracing::warn!(vm, %error, "the VM wakes page by page");
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
        if guest.whereabouts().is_ok_and(|found| found.out.is_empty()) {
            self.storage.store.set_asleep(vm, None)?;
            return Ok(None);
        }
        let Some(last) = before.or_else(|| guest.signs().ok()) else { return Ok(None) };
        let disks = Disks::new(self, vm);
        let guest = Arc::new(guest);
        Ok(Some(Sleeping { guest, last, pages: 0, since: Instant::now(), disks }))
    }
}
