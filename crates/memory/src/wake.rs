//! A VM wakes: what `core::memory` decides of it is carried out.
//!
//! One thread for each swap device asks the kernel for granules in the order in which it is told
//! to, and waits for them; another one tells them. Waiting for a granule touches one page of it,
//! so that it can be seen in the kernel's table whether the guest has used the others: that is
//! what the next wake goes by. Once that is noted, all pages are given to the guest as if it had
//! asked for them: until then the kernel has them in memory and counts them as out.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use sterna_api::{Error, MemoryWorkKind, Result, VmMemory, WakeReport, WakeVm};
use sterna_core::memory::{
    Action, Event, Granule, HOLD_MOST, Needed, PAGES_PER_GRANULE, Setup, WITHIN, Wake,
    WakeRecord, predict, streams, was_idle,
};
use sterna_core::{DiskId, Nanos};
use sterna_os::hold::Hold;
use sterna_os::process_memory::PAGE;
use sterna_os::{clock, lock};
use sterna_runtime::threads;

use crate::guest_memory::{GuestMemory, Signs, Whereabouts};
use crate::neighbours::Neighbours;
use crate::tiers::{UNKNOWN, speeds};
use crate::work::Work;
use crate::{Memory, own_memory};

/// How often time passes for a wake.
const TICK: Duration = Duration::from_millis(10);

/// How long the end of what was told to end is waited for.
const END: Duration = Duration::from_secs(5);

/// How often it is looked whether the guest gets pages back.
const FAULTS_EVERY: Duration = Duration::from_millis(100);

/// A wake of less says little: the time of a few requests.
const SCORED_LEAST: u64 = 16 << 20;

/// If more than this part of what is out is in memory as well, a wake is not compared with what was
/// predicted of its devices.
const COPIES_MOST: f64 = 0.1;

/// Why a VM wakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Somebody has asked for it, and said how long the guest may be held.
    Asked { hold: Nanos },
    /// Its disk was asked after it had been quiet.
    Disk,
    /// The guest waits for its memory, or uses it.
    Memory,
}

impl Cause {
    /// How long the guest may be held.
    fn hold(self) -> Nanos {
        match self {
            Cause::Asked { hold } => hold,
            Cause::Disk | Cause::Memory => HOLD_MOST,
        }
    }
}

impl Memory {
    /// Brings a VM's memory back, and notes what its guest uses for a minute.
    pub fn wake_vm(self: &Arc<Self>, vm: &str, request: &WakeVm) -> Result<VmMemory> {
        let hold = match request.hold_ms {
            None => HOLD_MOST,
            Some(hold) if Nanos::from_millis(hold) <= HOLD_MOST => {
                Nanos::from_millis(hold)
            }
            Some(hold) => {
                let message =
                    format!("{} is too long to hold a VM", Nanos::from_millis(hold));
                return Err(
                    Error::invalid(message).hint(format!("give {HOLD_MOST} at most"))
                );
            }
        };
        if self.work_of(vm).is_some_and(|work| work.is_sleep()) {
            self.stop_work(vm);
        }
        if let Err(error) = self.release_balloon(vm) {
            tracing::warn!(vm, %error, "a VM wakes, and its balloon keeps what it has");
        }
        let guest = GuestMemory::of(vm, self.machines.process_of(vm)?)?;
        // Of a VM whose disks cannot be seen they count as those of others.
        let disks = self.machines.served_disks_of(vm).unwrap_or_default();
        self.begin_wake(vm, Arc::new(guest), &disks, Cause::Asked { hold })?;
        self.show_vm_memory(vm)
    }

    /// Brings this memory of a VM with these disks back. Nothing is asked of QEMU, which may wait
    /// for memory itself.
    pub(crate) fn begin_wake(
        self: &Arc<Self>,
        vm: &str,
        guest: Arc<GuestMemory>,
        disks: &[DiskId],
        cause: Cause,
    ) -> Result<()> {
        let gone = |error| Error::unavailable(format!("memory of VM {vm}: {error}"));
        let found = guest.whereabouts().map_err(gone)?;
        if found.out.is_empty() {
            // Nothing would be learned of it either.
            return Ok(self.storage.store.set_asleep(vm, None)?);
        }
        let record = self.wake_record(vm, guest.granules())?;
        let tiers = self.tiers()?;
        let speeds = speeds(&tiers);
        let streams = streams(&found.out, &record);
        let predicted = predict(&streams, |device| speeds.get(&device).copied());
        let of = |device: u8| speeds.get(&device).copied().unwrap_or(UNKNOWN);
        let streams = streams.into_iter().map(|stream| (of(stream.device), stream));
        let copies = sterna_os::memory::host().map_or(0, |host| host.swap_cached);
        let setup = Setup {
            streams: streams.map(|(speed, it)| (it, speed)).collect(),
            hold: cause.hold(),
            processors: guest.processors().1.len() as u32,
        };
        let neighbours = Neighbours::of(self, &tiers, disks)?;
        if cause == Cause::Memory {
            lock(&self.idle_writers).remove(vm);
        }
        let work = Arc::new(Work::new(MemoryWorkKind::Wake, found.out_bytes()));
        self.begin(vm, work.clone(), |_| Ok(()))?;
        lock(&self.standing).keep_awake(vm);
        let run = Run {
            memory: self.clone(),
            vm: vm.to_owned(),
            guest,
            needed: Needed::none(found.present.of()),
            found,
            record,
            work,
            neighbours,
            fetchers: BTreeMap::new(),
            hold: None,
            pages: BTreeMap::new(),
            fetched: 0,
            failed: 0,
            touched: 0,
            used: 0,
            by_disk: cause == Cause::Disk,
        };
        let began = threads::start("sterna-wake".into(), move || {
            let (memory, vm) = (run.memory.clone(), run.vm.clone());
            let report = run.run(setup);
            let predicted_s = predicted.map(|it| it.all);
            let report = WakeReport { predicted_s, ..report };
            memory.score(&vm, &report, copies);
            tracing::info!(vm, held_ms = report.held_ms, all_s = report.all_s, "VM woke");
            memory.count_wake(&report);
            lock(&memory.standing).keep_awake(&vm);
            lock(&memory.reports).insert(vm.clone(), report);
            memory.end(&vm);
        });
        if let Err(error) = began {
            self.end(vm);
            return Err(error);
        }
        Ok(())
    }

    /// Compares what was predicted of a wake with what it took. One of which much was in memory as
    /// well says nothing of the devices: `copies` is how much of all VMs was when it began.
    fn score(&self, vm: &str, report: &WakeReport, copies: u64) {
        let (Some(predicted), Some(took)) = (report.predicted_s, report.all_s) else {
            return;
        };
        let is_small = report.bytes < SCORED_LEAST;
        if is_small
            || report.failed > 0
            || copies as f64 > COPIES_MOST * report.bytes as f64
        {
            return;
        }
        let scored = self.storage.store.add_wake_score(vm, report.at, predicted, took);
        if let Err(error) = scored {
            tracing::warn!(vm, %error, "what the wake took is not recorded");
        }
    }

    /// Ends what is being done with a VM's memory, and waits for the end for a while: what a
    /// device has begun takes seconds at most, if it does not hang.
    pub(crate) fn stop_work(&self, vm: &str) {
        let Some(work) = self.work_of(vm) else { return };
        work.stop();
        let began = Instant::now();
        while self.work_of(vm).is_some() && began.elapsed() < END {
            std::thread::sleep(TICK);
        }
    }
}

/// A wake that is carried out.
struct Run {
    memory: Arc<Memory>,
    vm: String,
    guest: Arc<GuestMemory>,
    /// Where all was at the start.
    found: Whereabouts,
    record: WakeRecord,
    needed: Needed,
    work: Arc<Work>,
    neighbours: Neighbours,
    fetchers: BTreeMap<u8, mpsc::Sender<(Granule, u32)>>,
    hold: Option<Hold>,
    /// How many pages each granule has that a device is asked for, in its order.
    pages: BTreeMap<u8, VecDeque<u32>>,
    /// Bytes that are back, and that cannot be read.
    fetched: u64,
    failed: u64,
    /// Pages that were touched here since it was last looked.
    touched: u64,
    /// Bytes of what was out that the guest has used.
    used: u64,
    /// Whether a request to its disk was all that told of it.
    by_disk: bool,
}

impl Run {
    fn run(mut self, setup: Setup) -> WakeReport {
        own_memory::bring_back(&self.guest, self.found.out_bytes(), &self.work);
        let mut wake = Wake::new(setup);
        let (tell, told) = mpsc::channel();
        let began = Instant::now();
        let now = || Nanos(began.elapsed().as_nanos() as u64);
        let mut actions = Vec::new();
        let mut looked = (Instant::now(), self.guest.signs().ok());
        wake.handle(now(), Event::Start, &mut actions);
        loop {
            for action in std::mem::take(&mut actions) {
                let Some(answer) = self.act(action, &tell) else { continue };
                match answer {
                    Answer::Over => return self.report(&wake),
                    Answer::Event(event) => wake.handle(now(), event, &mut actions),
                }
            }
            if !actions.is_empty() {
                continue;
            }
            let event = told.recv_timeout(TICK).unwrap_or(Event::Tick);
            if let Event::Fetched { device, ok, .. } = event {
                self.count(device, ok);
            }
            wake.handle(now(), event, &mut actions);
            if looked.0.elapsed() >= FAULTS_EVERY {
                looked.0 = Instant::now();
                for event in self.look(&mut looked.1) {
                    wake.handle(now(), event, &mut actions);
                }
            }
            if self.work.is_to_stop() {
                wake.handle(now(), Event::Stop, &mut actions);
            }
        }
    }

    /// Looks how the guest fares since `last`, and who else uses the devices.
    fn look(&mut self, last: &mut Option<Signs>) -> Vec<Event> {
        let Ok(signs) = self.guest.signs() else { return vec![Event::Stop] };
        // One page of each granule was touched here.
        let touched = std::mem::take(&mut self.touched);
        let before = last.replace(signs).unwrap_or(signs);
        let mut events = vec![Event::Faults(signs.waits_since(before, touched))];
        events.extend(self.neighbours.look(&self.memory));
        events
    }

    /// Counts a granule that has come from a device, or cannot be read.
    fn count(&mut self, device: u8, ok: bool) {
        let pages =
            self.pages.get_mut(&device).and_then(VecDeque::pop_front).unwrap_or(0);
        let bytes = u64::from(pages) * PAGE;
        self.work.add(bytes);
        self.touched += 1;
        match ok {
            true => self.fetched += bytes,
            false => self.failed += bytes,
        }
    }

    fn act(&mut self, action: Action, tell: &mpsc::Sender<Event>) -> Option<Answer> {
        match action {
            Action::Hold => Some(Answer::Event(Event::Held(self.hold()))),
            Action::LetGo => {
                self.let_go();
                Some(Answer::Event(Event::LetGo))
            }
            Action::Fetch { device, granule } => self.fetch(device, granule, tell),
            Action::Note(at) => Some(Answer::Event(Event::Noted(self.note(at)))),
            Action::Over => Some(Answer::Over),
        }
    }

    /// Holds the guest, if it runs.
    fn hold(&mut self) -> bool {
        let (process, processors) = self.guest.processors();
        if processors.is_empty() {
            return false;
        }
        match Hold::of(process, processors.to_vec()) {
            Ok(hold) => self.hold = Some(hold),
            Err(error) => {
                tracing::warn!(vm = self.vm, %error, "the VM is not held while it wakes");
            }
        }
        self.work.set_held(self.hold.is_some());
        self.hold.is_some()
    }

    fn let_go(&mut self) {
        self.hold = None;
        self.work.set_held(false);
    }

    fn fetch(
        &mut self,
        device: u8,
        granule: Granule,
        tell: &mpsc::Sender<Event>,
    ) -> Option<Answer> {
        let (guest, tell) = (&self.guest, tell.clone());
        let fetcher = match self.fetchers.get(&device) {
            Some(fetcher) => fetcher.clone(),
            None => {
                let (ask, asked) = mpsc::channel();
                let guest = guest.clone();
                let started = threads::start("sterna-fetch".into(), move || {
                    fetch_all(&guest, device, &asked, &tell);
                });
                if let Err(error) = started {
                    tracing::warn!(vm = self.vm, %error, "no thread that brings memory back");
                    return Some(Answer::Event(Event::Stop));
                }
                self.fetchers.insert(device, ask.clone());
                ask
            }
        };
        let pages = self.found.out_pages(granule).count_ones();
        self.pages.entry(device).or_default().push_back(pages);
        // If it has ended, the VM has.
        let sent = fetcher.send((granule, probe(&self.found, granule)));
        sent.is_err().then_some(Answer::Event(Event::Stop))
    }

    /// Notes what the guest has used, if that can be seen.
    fn note(&mut self, at: usize) -> bool {
        let Ok(now) = self.guest.whereabouts() else { return false };
        self.used = 0;
        for (granule, pages) in now.pages.iter().enumerate() {
            let granule = granule as Granule;
            let is_used = match self.found.out_pages(granule) {
                // What was never out cannot be seen to be used: as before.
                0 => self.record.heat(granule) as usize <= at,
                out => {
                    let used = pages.0 & out & !(1 << probe(&self.found, granule));
                    self.used += u64::from(used.count_ones()) * PAGE;
                    used != 0
                }
            };
            if is_used {
                self.needed.note(granule, at);
            }
        }
        true
    }

    /// Gives the guest all pages that are in memory by now.
    fn settle(&self) {
        for one in &self.found.out {
            let out = self.found.out_pages(one.granule);
            for page in (0..PAGES_PER_GRANULE as u32).filter(|page| out >> page & 1 == 1)
            {
                // What cannot be read was counted before.
                let _ = self.guest.wait_for(one.granule, page);
            }
            if self.work.is_to_stop() {
                return;
            }
        }
    }

    /// Learns whether the guest's disks say anything of what its guest needs.
    fn learn_of_disks(&self) {
        let mut idle = lock(&self.memory.idle_writers);
        match was_idle(self.found.out_bytes(), self.used) {
            Some(true) if self.by_disk => {
                tracing::info!(vm = self.vm, used = self.used, "the guest was idle");
                idle.insert(self.vm.clone());
            }
            Some(false) => {
                idle.remove(&self.vm);
            }
            _ => {}
        }
    }

    fn report(&self, wake: &Wake) -> WakeReport {
        let outcome = wake.outcome();
        let store = &self.memory.storage.store;
        if outcome.all.is_some() {
            self.settle();
            // A wake that was ended before a minute had passed would say that little is needed.
            let noted = match outcome.noted as usize == WITHIN.len() {
                true => {
                    self.learn_of_disks();
                    store.add_wake(&self.vm, clock::now(), &self.needed)
                }
                false => Ok(()),
            };
            let awake = noted.and_then(|()| store.set_asleep(&self.vm, None));
            if let Err(error) = awake {
                tracing::warn!(vm = self.vm, %error, "what the VM needed is not recorded");
            }
        }
        WakeReport {
            at: clock::now(),
            bytes: self.fetched,
            failed: self.failed,
            held_ms: outcome.held.as_millis_f64(),
            hot_s: outcome.hot.map(Nanos::as_secs_f64),
            all_s: outcome.all.map(Nanos::as_secs_f64),
            predicted_s: None,
        }
    }
}

enum Answer {
    Event(Event),
    Over,
}

/// The page of a granule that is touched to wait for it: the last one that was out.
fn probe(found: &Whereabouts, granule: Granule) -> u32 {
    15_u32.saturating_sub(found.out_pages(granule).leading_zeros())
}

/// Brings back what is asked for, in this order, until nobody asks any more.
fn fetch_all(
    guest: &GuestMemory,
    device: u8,
    asked: &mpsc::Receiver<(Granule, u32)>,
    tell: &mpsc::Sender<Event>,
) {
    let mut begun: VecDeque<(Granule, u32, Instant)> = VecDeque::new();
    loop {
        // All that is asked for is begun before any of it is waited for.
        let next = match begun.is_empty() {
            true => asked.recv().ok(),
            false => asked.try_recv().ok(),
        };
        if let Some((granule, page)) = next {
            // If it cannot be begun, waiting for it brings the same answer.
            let _ = guest.will_need(granule);
            begun.push_back((granule, page, Instant::now()));
            continue;
        }
        let Some((granule, page, since)) = begun.pop_front() else { return };
        let ok = guest.wait_for(granule, page).is_ok();
        let took = Nanos(since.elapsed().as_nanos() as u64);
        if tell.send(Event::Fetched { device, took, ok }).is_err() {
            return;
        }
    }
}
