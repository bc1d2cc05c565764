//! The world around the mirror: a guest, two images, time, and trouble.
//!
//! A world has one loop. In each step either something goes wrong, or the guest
//! sends a request, or time passes, or something that is under way goes a step
//! further. The mirror is told of it and what it asks for is begun. All of it is
//! drawn from one seeded generator, so a seed is a history.
//!
//! After the chaos comes calm, in which every migration must end.

mod bad;
mod crash;
mod foreign;
mod forgetting;
mod names;
mod operation;
mod times;

use std::collections::{BTreeMap, BTreeSet};
use std::mem;

use sterna_core::Nanos;
use sterna_core::mirror::{
    Action, Allowance, Control, CopyMode, Counted, Event, MemoryMap, Mirror, MirrorEnd,
    Notice, PauseReason, Phase, RequestId, Stored,
};

use crate::guest::Guest;
use crate::images::{Images, Side};
use crate::mistake::Mistake;
use crate::random::Random;
use crate::setup::Setup;
use names::Name;
use operation::{Effect, Operation};
use times::Times;

/// Steps of calm in which a migration ends, once nothing hangs any more: a minute or two.
const CALM_STEPS: u64 = 500_000;

/// One migration, from its beginning to its end.
pub(crate) struct World {
    setup: Setup,
    random: Random,
    /// The mirror's time.
    now: Nanos,
    /// The histories' time: steps.
    clock: u64,
    mirror: Mirror<MemoryMap>,
    guest: Guest,
    images: Images,
    /// The map as it was at the last flush of the destination or since.
    old_map: MemoryMap,
    operations: Vec<Operation>,
    /// Mirrored writes for which the destination's side has no memory yet.
    postponed: Vec<RequestId>,
    actions: Vec<Action>,
    later: Vec<Event>,
    held_from: Option<Nanos>,
    longest_hold: Nanos,
    calm: bool,
    ended: Option<MirrorEnd>,
    /// What the destination was not made to keep will be gone before the migration goes
    /// on: it has failed.
    doomed: bool,
    /// What the destination's name leads to, and from which block on its file was shortened
    /// since it was looked at.
    name: Name,
    shortened: Option<u64>,
    /// Blocks of which a flush of the source has told that its cache had dropped them.
    ever_dropped: BTreeSet<u64>,
    /// Blocks of it that others wrote to since then.
    overwritten: BTreeSet<u64>,
    /// When the images were written to.
    times: Times,
    /// Others have written to it since the migration stands still.
    overwritten_in_pause: bool,
    /// The guest sends nothing: its VM is off.
    vm_is_off: bool,
    /// It is sealed: what others do to the file from now on, they do to the disk's image.
    sealed: bool,
    /// It was where it should be when that was done.
    sealed_well: bool,
    /// The operator has said that bad sectors are to be left behind.
    skips_bad: bool,
    /// Reads that looked for bad sectors, and reads of jobs that found one.
    probes: u64,
    unreadable: u64,
    /// Reads of a bad block alone, since it was written or a mirror began.
    tries: BTreeMap<u64, u32>,
    /// Times that all bad sectors may be tried again.
    resumes: u64,
    steps: u64,
}

impl World {
    pub(crate) fn new(setup: Setup, mut random: Random) -> Self {
        let config = setup.config();
        let images = Images::new(&setup);
        let map = MemoryMap::new(config.regions(), Stored::Absent);
        let counted = Counted::new(map.clone());
        let now = Nanos(random.below(1_000_000));
        World {
            now,
            clock: 1,
            mirror: Mirror::new_paused(now, config, counted, PauseReason::Asked),
            guest: Guest::new(&images.source),
            images,
            old_map: map,
            operations: Vec::new(),
            postponed: Vec::new(),
            actions: Vec::new(),
            later: Vec::new(),
            held_from: None,
            longest_hold: Nanos(0),
            calm: false,
            ended: None,
            doomed: false,
            name: Name::Here,
            shortened: None,
            ever_dropped: BTreeSet::new(),
            overwritten: BTreeSet::new(),
            times: Times::default(),
            overwritten_in_pause: false,
            vm_is_off: false,
            sealed: false,
            sealed_well: false,
            skips_bad: false,
            probes: 0,
            unreadable: 0,
            tries: BTreeMap::new(),
            resumes: 0,
            steps: 0,
            setup,
            random,
        }
    }

    /// Runs chaos, then calm until the migration has ended. Gives the steps.
    pub(crate) fn run(mut self) -> u64 {
        self.begin_bad();
        // As a driver does it: what is in flight when the migration begins is told
        // to a paused mirror.
        for _ in 0..self.setup.guest_depth {
            self.guest_request();
        }
        self.resume();
        while self.steps < self.setup.chaos_steps && self.ended.is_none() {
            self.step();
        }
        self.calm = true;
        if self.ended.is_none() {
            self.name = Name::Here;
        }
        self.tell(Event::DestinationInReach(true));
        if self.setup.controls > 0 {
            // Whatever was allowed last: this much lets it end, beside a guest that is
            // never gone for long.
            let busy = Some(4 << 20);
            let allowance = Allowance { busy, ..Allowance::default() };
            self.tell(Event::Control(Control::Allow(allowance)));
        }
        let mut end = self.steps + CALM_STEPS;
        while self.ended.is_none() {
            if self.hangs() {
                end = self.steps + CALM_STEPS;
            }
            assert!(self.steps < end, "no end: {:?}", self.mirror.progress());
            if let Phase::Paused(reason) = self.mirror.phase() {
                self.see_to_bad(reason);
                self.resume();
            }
            self.step();
        }
        // Whatever is in flight is still answered.
        while !self.operations.is_empty() || !self.guest.open().is_empty() {
            let left = self.guest.open();
            assert!(self.steps < end + 100_000, "requests left: {left:?}");
            self.advance();
            self.steps += 1;
        }
        self.check_truth();
        self.check_found(self.images.is_freed());
        self.check_probes();
        self.steps
    }

    /// The image that is the truth now holds what the guest may read.
    fn check_truth(&mut self) {
        let truth = match self.ended {
            Some(MirrorEnd::Completed) => Side::Moved,
            _ => Side::Source,
        };
        for block in 0..self.setup.blocks as usize {
            let value = self.images.found(truth, block);
            let possible = self.guest.may_hold(block as u64);
            assert!(
                possible.contains(&value),
                "block {block}: {value} not in {possible:?}"
            );
        }
    }

    fn step(&mut self) {
        self.steps += 1;
        self.clock += 1;
        if !self.calm {
            let phase = self.mirror.phase();
            let commits = self.operations.iter().any(Operation::may_commit);
            let at_commit = commits && self.random.one_in(self.setup.kills_at_commits);
            if at_commit || self.random.one_in(self.setup.kills) {
                return self.crash(false);
            }
            if self.random.one_in(self.setup.power_losses) {
                return self.crash(true);
            }
            if self.random.one_in(self.setup.controls) {
                return self.control();
            }
            if self.random.one_in(self.setup.pauses) {
                match phase {
                    Phase::Paused(_) => self.resume(),
                    _ => self.tell(Event::Control(Control::Pause)),
                }
                return;
            }
            if self.random.one_in(self.setup.outages) {
                let is = self.random.one_in(2);
                return self.tell(Event::DestinationInReach(is));
            }
            if self.random.one_in(self.setup.reconnects) {
                return self.reconnects();
            }
            if self.random.one_in(self.setup.meddling) {
                return self.meddle();
            }
            if self.is_looked_at() {
                return self.stop_copying();
            }
            if self.is_source_in_trouble() {
                return;
            }
            if matches!(phase, Phase::Paused(_)) && self.others_come_in_a_pause() {
                return;
            }
            if let Phase::Paused(reason) = phase
                && matches!(
                    reason,
                    PauseReason::BadSectors(_)
                        | PauseReason::Differing(_)
                        | PauseReason::StateStore
                )
                && self.random.one_in(20)
            {
                if self.random.one_in(3) {
                    self.see_to_bad(reason);
                }
                return self.resume();
            }
        }
        if self.vm_is_off && self.operations.is_empty() {
            return self.vm_comes_back();
        }
        let guest_more =
            !self.vm_is_off && self.guest.open().len() < self.setup.guest_depth;
        let appetite = if self.calm { 6 } else { 2 };
        if guest_more && self.random.one_in(appetite) {
            self.guest_request();
        } else {
            self.advance();
        }
    }

    /// Whether others do something in this step, while the migration stands still.
    fn others_come_in_a_pause(&mut self) -> bool {
        if self.random.one_in(self.setup.foreign_while_paused) {
            self.others_write_while_paused();
            return true;
        }
        let goes_off = !self.vm_is_off && self.random.one_in(self.setup.backups);
        self.vm_is_off |= goes_off;
        goes_off
    }

    /// Whether something went wrong with the source in this step.
    fn is_source_in_trouble(&mut self) -> bool {
        if self.random.one_in(self.setup.source_forgets) {
            self.source_forgets();
        } else if self.random.one_in(self.setup.writeback_fails) {
            self.images.source_drops(&mut self.random);
        } else if self.random.one_in(self.setup.goes_bad) {
            self.goes_bad();
        } else {
            return false;
        }
        true
    }

    fn control(&mut self) {
        let control = match self.random.below(10) {
            0..=2 => Control::Pause,
            3..=5 => Control::Resume,
            6 => Control::SetRate(self.random.one_in(2).then_some(16 << 20)),
            7..=8 => Control::Allow(self.any_allowance()),
            _ => Control::Cancel,
        };
        match control {
            Control::Resume => self.resume(),
            control => self.tell(Event::Control(control)),
        }
    }

    fn any_allowance(&mut self) -> Allowance {
        let rates = [None, Some(0), Some(1 << 20), Some(16 << 20)];
        let mut any = || rates[self.random.below(4) as usize];
        let (busy, idle) = (any(), any());
        let modes = [CopyMode::Even, CopyMode::ShortChunks, CopyMode::Burst];
        let mode = modes[self.random.below(3) as usize];
        Allowance { busy, idle, mode, leaves_idle_gaps: self.random.one_in(3) }
    }

    fn guest_request(&mut self) {
        let random = &mut self.random;
        let request = self.guest.send(&self.setup, random, self.now, self.clock);
        self.tell(Event::Arrived(request));
    }

    /// Lets time pass or an operation go a step further.
    fn advance(&mut self) {
        if !self.postponed.is_empty() && self.random.one_in(4) {
            return self.go_on_with_postponed();
        }
        let (operations, now) = (&self.operations, self.now);
        let mut ready =
            (0..operations.len()).filter(|i| operations[*i].not_before <= now);
        let many = ready.clone().count();
        if many == 0 || self.random.one_in(12) {
            self.pass_time();
            return;
        }
        let pick = self.random.below(many as u64) as usize;
        if let Some(at) = ready.nth(pick) {
            self.go_on_with(at);
        }
    }

    fn pass_time(&mut self) {
        let mut to = self.now.plus(Nanos(self.random.below(4_000_000)));
        if self.operations.iter().all(|o| o.not_before > self.now) {
            let next = self.operations.iter().map(|o| o.not_before).min();
            to = next.unwrap_or(to).max(to);
        }
        if let Some(deadline) = self.mirror.deadline()
            && deadline <= to
        {
            self.now = self.now.max(deadline);
            self.tell(Event::Tick);
            let again = self.mirror.deadline();
            assert!(again.is_none_or(|d| d > self.now), "a deadline that does not pass");
            return;
        }
        self.now = to;
    }

    /// Tells the mirror and does what it asks for.
    fn tell(&mut self, event: Event) {
        let mut actions = mem::take(&mut self.actions);
        self.mirror.handle(self.now, event, &mut actions);
        for action in actions.drain(..) {
            self.act(&action);
        }
        self.actions = actions;
        while let Some(event) = self.later.pop() {
            self.tell(event);
        }
        // As the driver lets go of it: reads that began before the commit end there.
        let completed = self.ended == Some(MirrorEnd::Completed) && self.mirror.is_idle();
        if completed && self.is_found() {
            self.images.free_source();
        }
        match (self.mirror.holding(), self.held_from) {
            (true, None) => self.held_from = Some(self.now),
            (false, Some(since)) => {
                self.longest_hold = self.longest_hold.max(self.now.since(since));
                self.held_from = None;
            }
            _ => {}
        }
    }

    fn act(&mut self, action: &Action) {
        match *action {
            Action::Source(id) => self.start_request(id, Side::Source),
            Action::Destination(id)
                if !self.calm && self.random.one_in(self.setup.skips) =>
            {
                self.postponed.push(id);
            }
            Action::Destination(id) => self.start_request(id, Side::Destination),
            Action::Answer(id) => self.answered(id),
            Action::Moved(id) => self.start_request(id, Side::Moved),
            Action::Start(job) => self.start_job(job),
            Action::FlushDestination => self.flush(),
            Action::FlushSource => self.flush_source(),
            Action::Prepare => self.begin(Effect::Prepare, vec![]),
            Action::Seal => self.begin(Effect::Seal, vec![]),
            Action::Notice(Notice::Paused(PauseReason::BadSectors(places))) => {
                self.check_bad(places);
            }
            Action::Unseal => self.sealed = false,
            Action::Notice(_) => {}
            Action::Commit => {
                self.check_commit();
                self.meddle_at_the_commit();
                if self.setup.mistake == Some(Mistake::SourceFreedEarly) {
                    self.images.free_source();
                }
                self.begin(Effect::Commit, vec![]);
                self.meddle_beneath_the_commit();
            }
            Action::Ended(end) => {
                self.ended = Some(end);
                self.leaves_what_is_owed();
            }
        }
    }

    /// At the commit both images agree to the last block, durably, nothing is under way
    /// that could change that, and all of it was compared if that was asked for.
    fn check_commit(&mut self) {
        self.check_skipped();
        self.check_sealed();
        // A world that acknowledges flushes early has to be caught by what it loses.
        let early = self.setup.mistake == Some(Mistake::FlushAcknowledgedEarly);
        assert!(early || self.images.is_flushed(), "the destination is not flushed");
        let progress = self.mirror.progress();
        let all = progress.verified.is_none_or(|it| it == progress.total);
        assert!(all, "not all is compared: {progress:?}");
        let busy = self.operations.iter().any(|o| o.effect.forbids_commit());
        assert!(!busy, "in flight at the commit");
    }

    /// As a driver does it: what the mirror still counts on is started.
    fn go_on_with_postponed(&mut self) {
        let at = self.random.below(self.postponed.len() as u64) as usize;
        let id = self.postponed.swap_remove(at);
        if self.mirror.awaits_destination(id) {
            self.start_request(id, Side::Destination);
        } else {
            self.tell(Event::DestinationSkipped { id });
        }
    }

    fn answered(&mut self, id: RequestId) {
        if let Some(at) = self.postponed.iter().position(|postponed| *postponed == id) {
            self.postponed.swap_remove(at);
            self.later.push(Event::DestinationSkipped { id });
        }
        self.guest.answered(id, self.now, self.clock, self.longest_hold);
    }
}
