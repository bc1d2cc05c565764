//! What is known of the host and its VMs from look to look.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use sterna_core::Nanos;
use sterna_core::memory::{
    Activity, BALLOON_CAP, Balloon, GuestSays, Holds, HostState, Reclaim,
};
use sterna_machines::{Process, VmLook};
use sterna_state::{MemoryTermsRecord, VmRecord};

/// What was found longer ago than three calm rounds says nothing about now.
const LATELY: Duration = Duration::from_secs(30);

/// A VM whose memory could not go out, or that has just been awake, is not put to sleep by itself
/// for so long: what keeps it does not change in moments, and one that comes and goes would be read
/// and written again and again.
const STAYS: Duration = Duration::from_secs(300);

/// What is known from look to look.
pub(crate) struct Standing {
    began: Instant,
    /// Until when VMs are not put to sleep by themselves, by name.
    stays: BTreeMap<String, Instant>,
    /// The VMs, by name.
    pub(crate) known: BTreeMap<String, Known>,
    /// How short of memory the host is.
    pub(crate) state: HostState,
    /// What was found at the last look.
    pub(crate) found: Option<Found>,
}

/// What was found at a look.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) at: Instant,
    /// What the host had available, in bytes.
    pub(crate) available: u64,
    /// The VMs that could be looked at, in the order of what is due of them.
    pub(crate) vms: Vec<(VmRecord, Holds)>,
    pub(crate) reclaim: Reclaim,
}

/// What is known of a VM.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// When it was looked at last, and the processor time that it had used.
    last: Option<(Instant, Duration)>,
    /// Which process it was then, if that could be seen.
    process: Option<Process>,
    activity: Activity,
    /// Its balloon, as far as Sterna has asked it for anything.
    pub(crate) balloon: Option<Balloon>,
    pub(crate) look: Option<VmLook>,
    /// What its guest said of its memory.
    pub(crate) says: Option<GuestSays>,
    /// Why it could not be looked at.
    pub(crate) problem: Option<String>,
}

impl Standing {
    /// Nothing is known yet.
    pub(crate) fn new() -> Standing {
        Standing {
            began: Instant::now(),
            stays: BTreeMap::new(),
            known: BTreeMap::new(),
            state: HostState::default(),
            found: None,
        }
    }

    pub(crate) fn now(&self) -> Nanos {
        Nanos(self.began.elapsed().as_nanos() as u64)
    }

    /// Whether a balloon has something that a guest could want back.
    pub(crate) fn has_taken(&self) -> bool {
        self.known.values().any(|one| one.look.is_some() && one.taken() > 0)
    }

    /// The beginning of all times here.
    pub(crate) fn began(&self) -> Instant {
        self.began
    }

    /// Forgets all VMs but those of such a name.
    pub(crate) fn forget_but(&mut self, is_one: impl Fn(&str) -> bool) {
        self.known.retain(|vm, _| is_one(vm));
        self.stays.retain(|vm, until| is_one(vm) && *until > Instant::now());
    }

    /// A VM is not to be put to sleep by itself for a while.
    pub(crate) fn keep_awake(&mut self, vm: &str) {
        self.stays.insert(vm.to_owned(), Instant::now() + STAYS);
        let now = self.now();
        if let Some(known) = self.known.get_mut(vm) {
            known.activity.stirs(now);
        }
    }

    /// Whether that is so.
    pub(crate) fn stays(&self, vm: &str) -> bool {
        self.stays.get(vm).is_some_and(|until| *until > Instant::now())
    }

    /// What was found, unless that is long ago: nobody looks while Sterna does nothing by itself.
    pub(crate) fn found_lately(&self) -> Option<&Found> {
        self.found.as_ref().filter(|found| found.at.elapsed() < LATELY)
    }

    /// What was found of a VM at the last look, and its place among those.
    pub(crate) fn found(&self, vm: &str) -> Option<(&Found, usize)> {
        let found = self.found_lately()?;
        Some((found, found.vms.iter().position(|(one, _)| one.name == vm)?))
    }
}

impl Known {
    /// It was looked at; times are counted from `began`. `recorded` is what its balloon may have on
    /// the word of this daemon or of another.
    pub(crate) fn see(
        &mut self,
        began: Instant,
        look: VmLook,
        terms: &MemoryTermsRecord,
        recorded: u64,
    ) {
        let (usage, at) = (look.usage, look.at);
        let now = Nanos(at.saturating_duration_since(began).as_nanos() as u64);
        let since = |(then, before): (Instant, Duration)| {
            let span = at.saturating_duration_since(then).as_secs_f64();
            usage
                .busy
                .checked_sub(before)
                .map(|busy| busy.as_secs_f64() / span.max(0.001))
        };
        let is_another = |before: Process| look.process.is_some_and(|it| it != before);
        let processors = self.last.map(since);
        if processors == Some(None) || self.process.is_some_and(is_another) {
            // It was started anew: its balloon has nothing, and nothing is known of it.
            *self = Known::default();
        }
        // Nothing is known of what it did before it was seen first.
        let processors = self.last.and(processors.flatten()).unwrap_or(0.0);
        let has = look.balloon.map_or(0, |it| it.has);
        let available = look.balloon.and_then(|it| it.available);
        let used = available.map(|(available, _)| {
            let used = usage.memory.saturating_sub(has + available);
            used as f64 / usage.memory.max(1) as f64
        });
        self.activity.look(now, processors, used);
        let cap = cap(terms, usage.memory);
        // A guest that was started anew since has all its memory, and one that could not be asked
        // has less than was recorded before.
        let taken = recorded.min(has);
        let balloon =
            self.balloon.get_or_insert_with(|| Balloon::new(usage.memory, cap, taken));
        balloon.allow(cap);
        self.says = available.map(|(available, ago)| {
            let at = Nanos(now.0.saturating_sub(ago.as_nanos() as u64));
            GuestSays { available, at, has }
        });
        self.process = look.process.or(self.process);
        (self.last, self.look, self.problem) = (Some((at, usage.busy)), Some(look), None);
    }

    /// It could not be looked at.
    pub(crate) fn fail(&mut self, problem: String) {
        (self.look, self.problem) = (None, Some(problem));
    }

    /// Whether it was seen to have no balloon. (One that could not be looked at may have one: its
    /// QEMU may be another one by now, to which what the balloon has went along.)
    pub(crate) fn has_no_balloon(&self) -> bool {
        self.look.is_some_and(|look| look.balloon.is_none())
    }

    /// What Sterna has asked its balloon for, in bytes.
    pub(crate) fn taken(&self) -> u64 {
        self.balloon.map_or(0, |it| it.taken())
    }

    /// The part of its memory that its guest uses, from 0 to 1.
    pub(crate) fn active(&self) -> f64 {
        self.activity.active()
    }

    /// How its memory counts.
    pub(crate) fn holds(
        &self,
        now: Nanos,
        terms: &MemoryTermsRecord,
        asleep: bool,
        can_sleep: bool,
    ) -> Option<Holds> {
        let look = self.look?;
        let (size, balloon) = (look.usage.memory, self.balloon?);
        let available = look.balloon.and_then(|it| it.available);
        let spare = available.map_or(0, |it| it.0.saturating_sub(balloon.floor()));
        Some(Holds {
            terms: (*terms).into(),
            size,
            resident: look.usage.held.min(size),
            out: look.out.unwrap_or(0).min(size),
            taken: balloon.taken(),
            cap: if look.balloon.is_some() { cap(terms, size) } else { 0 },
            spare,
            active: self.active(),
            idle: self.activity.idle(now),
            asleep,
            can_sleep: can_sleep && look.out.is_some(),
        })
    }
}

/// What a balloon may take at most of so much memory, in bytes.
pub(crate) fn cap(terms: &MemoryTermsRecord, size: u64) -> u64 {
    let usual = (size as f64 * BALLOON_CAP) as u64;
    let most = terms.balloon_max.unwrap_or(usual);
    most.min(size.saturating_sub(terms.reservation))
}
