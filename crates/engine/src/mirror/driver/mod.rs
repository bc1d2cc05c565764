//! The mirror on a reactor: carries out what `core::mirror` decides.
//!
//! The driver translates. A guest request becomes an `Arrived`, an image's
//! answer a `SourceDone`, `DestinationDone` or a step of a job; an action
//! becomes an operation on one of the two images, an answer to the guest, or a
//! message to the daemon. It decides nothing. The guest's requests are in `guest`.
//!
//! **Memory.** What the copier's chunks are made of is the matter of `jobs`, what
//! mirrored writes are made of that of the loan pool (`buffer_loans`).
//!
//! **A destination that has failed** is let go of, so that it can be put right, and opened
//! anew; see `away`.
//!
//! **The end.** After the commit the destination is the disk's image and the
//! driver is done. After a cancel it stays until nothing is in flight on the
//! destination any more, and says so (`Released`): whoever used the destination
//! before that could find an old write on top of a new one.

mod away;
mod guest;
mod source;

use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::sync::mpsc::Sender;

use sterna_core::Nanos;
use sterna_core::durability::Loss;
use sterna_core::mirror::{
    self, Action, Commit, Config, Control, Counted, Doubt, Event, Fault, Findings, Job,
    JobId, Mirror, MirrorEnd, PauseReason, Progress, RequestId, SECTOR, Suspicion,
};

use super::buffer_loans::{BufferLoan, LoanPool};
use super::job::{Side, Style, fault};
use super::jobs::{Asked, Jobs};
use super::map::MapFile;
use super::translate::{can_share, number};
use super::{MigrationEvent, MigrationId, Options};
use crate::disk::{Core, Driver};
use crate::image::{Cx, Image, ImageOp, ImageResult, Ticket};
use crate::io::{Owner, Token};
use crate::qos::Copied;
use crate::slab::Slab;
use crate::timer::Alarm;
use away::Away;
use guest::Told;
use source::SourceFile;
pub use source::SourceLook;

/// What an answer with one of our own tickets belongs to.
#[derive(Clone, Copy, Debug)]
enum Own {
    /// The destination's part of a mirrored write, with the memory it holds.
    Mirrored(RequestId, BufferLoan, Copied),
    /// An operation of a job.
    Job(JobId, Side),
    /// The flush of the destination.
    Flush,
    /// The flush of the source.
    SourceFlush,
}

/// What the daemon or the operator says.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Message {
    Control(Control),
    /// Somebody else has changed the destination.
    Distrust,
    /// Somebody else may have written to an image unseen while the migration stood still.
    Unwatched,
    Prepared(Option<Nanos>),
    Sealed(Result<(), Fault>),
    Committed(Commit),
}

/// A migration on its disk's reactor.
pub(crate) struct MirrorDriver {
    id: MigrationId,
    mirror: Mirror<MapFile>,
    source: u16,
    destination: u16,
    jobs: Jobs,
    loans: LoanPool,
    tickets: Slab<Own>,
    /// The guest's requests, by their number on the disk.
    told: HashMap<u32, Told>,
    count: u32,
    /// Requests that were in flight before the migration: on the source already.
    adopted: Vec<RequestId>,
    /// The mirror has been told that the guest waits for admission.
    guest_waits: bool,
    events: Sender<MigrationEvent>,
    alarm: Alarm,
    actions: Vec<Action>,
    /// What came up while an action was carried out.
    later: VecDeque<Event>,
    asked: Vec<Asked>,
    ended: Option<MirrorEnd>,
    /// Nothing of ours is at the destination any more, which was given up.
    released: bool,
    away: Away,
    source_file: SourceFile,
}

impl MirrorDriver {
    /// Begins the migration `id` of the disk `core` to its image `destination`.
    pub(crate) fn start(
        core: &mut Core,
        cx: &mut Cx,
        id: MigrationId,
        options: &Options,
        map: Counted<MapFile>,
        destination: u16,
        events: Sender<MigrationEvent>,
    ) -> std::io::Result<MirrorDriver> {
        let source = core.current();
        let scan = core.image(source).is_some_and(|image| image.info().finds_holes);
        // Shared blocks are reserved for nobody, so only thin images share them.
        let sharing = options.thin && core.image(destination).is_some_and(can_share);
        let clone = core.image(source).filter(|_| sharing).and_then(Image::file);
        let region = u64::from(map.map().key().region);
        let config = Config {
            region,
            scan,
            reads_zero: options.reads_zero && !options.write_zeroes,
            allocated: options.allocated,
            verify: options.verify,
            rate: options.rate,
            allowance: options.allowance,
            sector: sector(core, [source, destination]),
            skip_bad: options.skip_bad,
            ..Config::new(core.size)
        };
        let away = Away::new(map.map().destination());
        let source_file = SourceFile::new(map.map().source());
        let mirror = Mirror::new_paused(cx.now, config, map, PauseReason::Asked);
        let style = Style {
            write_zeroes: options.write_zeroes,
            unmap: options.thin,
            region: region as usize,
        };
        let mut driver = MirrorDriver {
            id,
            mirror,
            source,
            destination,
            jobs: Jobs::new(style, clone)?,
            loans: LoanPool::new()?,
            tickets: Slab::new(),
            told: HashMap::new(),
            count: 0,
            adopted: Vec::new(),
            guest_waits: false,
            events,
            alarm: Alarm::default(),
            actions: Vec::new(),
            later: VecDeque::new(),
            asked: Vec::new(),
            ended: None,
            released: false,
            away,
            source_file,
        };
        driver.adopt(core, cx);
        if !options.paused {
            driver.tell(core, cx, Event::Control(Control::Resume));
        }
        Ok(driver)
    }

    pub(crate) fn id(&self) -> MigrationId {
        self.id
    }

    /// Its destination, by its number on the disk.
    pub(crate) fn destination(&self) -> u16 {
        self.destination
    }

    /// The migration in figures.
    pub(crate) fn progress(&self, now: Nanos) -> Progress {
        self.mirror.progress_at(now)
    }

    /// What somebody should know of the two images.
    pub(crate) fn findings(&self) -> Findings {
        self.mirror.findings()
    }

    /// The daemon or the operator speaks. Messages that nobody asked for (the
    /// answers of a daemon to a migration that has ended) are dropped.
    pub(crate) fn message(&mut self, core: &mut Core, cx: &mut Cx, message: Message) {
        let event = match message {
            Message::Control(control) => Event::Control(control),
            Message::Distrust => {
                let written = Suspicion::Written(mirror::Side::Destination);
                Event::Doubted(written.doubt())
            }
            Message::Unwatched => Event::Unwatched,
            Message::Prepared(record) => Event::Prepared(record),
            Message::Sealed(result) => Event::Sealed(result),
            Message::Committed(commit) => Event::Committed(commit),
        };
        self.tell(core, cx, event);
    }

    /// Tells the mirror and does what it asks for.
    fn tell(&mut self, core: &mut Core, cx: &mut Cx, event: Event) {
        self.note_writes(core, cx);
        let mut next = Some(event);
        while let Some(event) = next {
            let mut actions = std::mem::take(&mut self.actions);
            self.mirror.handle(cx.now, event, &mut actions);
            for action in actions.drain(..) {
                self.act(core, cx, action);
            }
            self.actions = actions;
            next = self.later.pop_front().or_else(|| self.who_waits(core));
        }
        self.set_alarm(core, cx);
        self.leave_if_astray(core, cx);
        self.note_what_is_owed();
        self.note_what_a_commit_owes(core, cx);
        if self.ended.is_some() && self.has_left_destination() && !self.released {
            self.released = true;
            core.close_image(cx, self.loser());
            self.send(MigrationEvent::Released(self.id));
        }
    }

    /// Whether the guest waits for admission, if the mirror does not know. Said after all
    /// else: a request that is admitted comes before nobody waits any more.
    fn who_waits(&mut self, core: &Core) -> Option<Event> {
        let is = core.is_waiting();
        let was = std::mem::replace(&mut self.guest_waits, is);
        (is != was).then_some(Event::GuestWaits(is))
    }

    fn has_left_destination(&self) -> bool {
        self.mirror.has_left_destination() && self.jobs.is_idle()
    }

    /// The image that is not the disk's after the end.
    fn loser(&self) -> u16 {
        match self.ended {
            Some(MirrorEnd::Completed) => self.source,
            _ => self.destination,
        }
    }

    fn act(&mut self, core: &mut Core, cx: &mut Cx, action: Action) {
        match action {
            Action::Source(id) => self.ask_source(core, cx, id),
            Action::Destination(id) => self.ask_destination(core, cx, id),
            Action::Answer(id) => self.answer(core, cx, id),
            Action::Moved(id) => {
                let number = number(id);
                self.told.remove(&number);
                core.carry_out(cx, number, self.destination, u64::from(number));
            }
            Action::Start(job) => self.start_job(core, cx, job),
            Action::FlushDestination => {
                self.own(core, cx, Own::Flush, self.destination, ImageOp::Flush);
            }
            Action::FlushSource => {
                self.own(core, cx, Own::SourceFlush, self.source, ImageOp::Flush);
            }
            Action::Prepare => self.send(MigrationEvent::Prepare(self.id)),
            Action::Seal => self.send(MigrationEvent::Seal(self.id)),
            Action::Unseal => self.send(MigrationEvent::Unseal(self.id)),
            Action::Commit => {
                self.note_what_a_commit_owes(core, cx);
                self.send(MigrationEvent::Commit(self.id));
            }
            Action::Notice(notice) => {
                self.away.hear(&notice);
                self.send(MigrationEvent::Notice(self.id, notice));
            }
            Action::Ended(end) => {
                self.ended = Some(end);
                match end {
                    MirrorEnd::Completed => {
                        core.set_current(cx, self.destination);
                        if self.mirror.owes_comparison() {
                            core.tell_of_loss(cx, Loss::FlushFailed);
                        }
                    }
                    MirrorEnd::Cancelled => {
                        core.give_up_copies(cx);
                        core.abort_image(cx, self.destination);
                    }
                }
                let (progress, findings) = (self.progress(cx.now), self.findings());
                let last = Box::new((progress, findings));
                self.send(MigrationEvent::Ended(self.id, end, last));
            }
        }
    }

    /// Sends an event to the daemon. A daemon that has gone is about to end this
    /// thread as well; there is nobody left to tell.
    fn send(&self, event: MigrationEvent) {
        let _ = self.events.send(event);
    }

    /// Starts an operation under a ticket of our own.
    fn own(&mut self, core: &mut Core, cx: &mut Cx, own: Own, image: u16, op: ImageOp) {
        if image == self.destination {
            self.note_copy(cx);
        }
        let ticket = Core::OWN + u64::from(self.tickets.insert(own));
        core.submit(cx, image, ticket, op);
    }

    /// Starts what jobs ask for.
    fn fulfil(&mut self, core: &mut Core, cx: &mut Cx, mut asked: Vec<Asked>) {
        for asked in asked.drain(..) {
            match asked {
                Asked::Operation(id, side, op) => {
                    let image = match side {
                        Side::Source => self.source,
                        Side::Destination => self.destination,
                    };
                    if side == Side::Destination {
                        self.note_copy(cx);
                    }
                    let own = self.tickets.insert(Own::Job(id, side));
                    let ticket = Core::OWN + u64::from(own);
                    if self.ended.is_some() {
                        // What a job still wants would wait for admission in vain.
                        core.refuse(cx, ticket);
                    } else if core.copy(cx, image, ticket, op) {
                        self.later.push_back(Event::JobHeld { job: id, is: true });
                    }
                }
                Asked::OnSource(job, is) => {
                    self.later.push_back(Event::JobOnSource { job, is });
                }
            }
        }
        self.asked = asked;
    }

    fn start_job(&mut self, core: &mut Core, cx: &mut Cx, job: Job) {
        let mut asked = std::mem::take(&mut self.asked);
        self.jobs.start(job, &mut asked);
        self.fulfil(core, cx, asked);
    }

    /// An operation of a job has ended.
    fn job_step(
        &mut self,
        core: &mut Core,
        cx: &mut Cx,
        id: JobId,
        side: Side,
        result: ImageResult,
    ) {
        self.note_writes(core, cx);
        let mut asked = std::mem::take(&mut self.asked);
        let outcome = self.jobs.done(id, side, result, &mut asked);
        self.fulfil(core, cx, asked);
        let event = outcome.map(|outcome| Event::JobDone { job: id, outcome });
        if let Some(event) = event.or_else(|| self.later.pop_front()) {
            self.tell(core, cx, event);
        }
    }

    fn set_alarm(&mut self, core: &Core, cx: &mut Cx) {
        let deadline = if self.released { None } else { self.mirror.deadline() };
        let token = Token { owner: Owner::Disk(core.index), tag: 0 };
        self.alarm.set(&mut cx.timers, deadline, token);
    }

    /// The source may have failed a flush. What its cache has dropped the copy may have, or
    /// lack; both are to hold the same after the switch-over as before.
    fn look_for_loss(&mut self, core: &mut Core, cx: &mut Cx) {
        core.look_for_loss(cx, self.source);
        if core.hears_loss() && self.ended.is_none() {
            self.tell(core, cx, Event::SourceForgot(Loss::FlushFailed));
        }
    }

    /// The next daemon has to know what clients are to be told before a commit is durable.
    fn note_what_a_commit_owes(&self, core: &mut Core, cx: &Cx) {
        let owed = self.mirror.commit_owes().then_some(Loss::FlushFailed);
        core.foresees_loss(cx, owed);
    }

    /// Something has happened to one of the images.
    fn look(&mut self, core: &mut Core, cx: &mut Cx) {
        if let Some(why) = core.has_forgotten(cx, self.source) {
            self.tell(core, cx, Event::SourceForgot(why));
        }
        if core.has_forgotten(cx, self.destination).is_some() {
            self.tell(core, cx, Event::DestinationForgot);
        }
        if core.has_gone_back(cx, self.source) {
            self.tell(core, cx, Event::SourceForgot(Loss::WentBack));
        }
        if core.has_gone_back(cx, self.destination) {
            self.tell(core, cx, Event::Doubted(Doubt::Everything));
        }
        let unfit = core.unfit(self.destination);
        self.tell(core, cx, Event::DestinationUnfit(unfit));
        let is = core.is_in_reach(self.destination);
        self.tell(core, cx, Event::DestinationInReach(is));
    }
}

/// The least that all of these images can be asked for.
fn sector(core: &Core, images: [u16; 2]) -> u64 {
    let blocks = images.into_iter().filter_map(|image| core.image(image));
    let blocks = blocks.map(|image| u64::from(image.info().min_block));
    blocks.fold(SECTOR, u64::max).next_power_of_two()
}

impl Driver for MirrorDriver {
    fn arrived(&mut self, core: &mut Core, cx: &mut Cx, number: u32) {
        if self.ended == Some(MirrorEnd::Cancelled) {
            // Nothing is mirrored any more. Beside a guest that always has something under
            // way the mirror would never come to rest.
            core.carry_out(cx, number, self.source, u64::from(number));
        } else if let Some(request) = self.name(core, number) {
            self.tell(core, cx, Event::Arrived(request));
        }
    }

    fn look_who_waits(&mut self, core: &mut Core, cx: &mut Cx) {
        if let Some(event) = self.who_waits(core) {
            self.tell(core, cx, event);
        }
    }

    fn finished(&mut self, core: &mut Core, cx: &mut Cx, id: u64, result: ImageResult) {
        if id == Ticket::NEWS {
            return self.look(core, cx);
        }
        let Some(own) = id.checked_sub(Core::OWN) else {
            self.source_done(core, cx, id as u32, result);
            return;
        };
        let own = self.tickets.remove(own as u32);
        if !matches!(own, Some(Own::Job(_, Side::Source) | Own::SourceFlush) | None) {
            self.note_copy(cx); // As late as now.
        }
        match own {
            Some(Own::Mirrored(id, loan, copied)) => {
                loan.end(cx);
                core.mirrored(cx, self.destination, copied);
                self.start_postponed(core, cx);
                let result = result.map(|_| ()).map_err(fault);
                self.tell(core, cx, Event::DestinationDone { id, result });
            }
            Some(Own::Job(job, side)) => {
                if core.copy_done(cx, id) {
                    self.later.push_back(Event::JobHeld { job, is: false });
                }
                self.job_step(core, cx, job, side, result);
            }
            Some(Own::Flush) => {
                let result = result.map(|_| ()).map_err(fault);
                self.tell(core, cx, Event::Flushed(result));
            }
            Some(Own::SourceFlush) => {
                self.look_for_loss(core, cx);
                let ok = result.is_ok() && core.acknowledges_flushes();
                self.tell(core, cx, Event::SourceFlushed(ok));
            }
            None => {}
        }
    }

    fn copy_started(&mut self, core: &mut Core, cx: &mut Cx, id: u64) {
        let own = id.checked_sub(Core::OWN).and_then(|own| self.tickets.get(own as u32));
        if let Some(Own::Job(job, _)) = own {
            self.tell(core, cx, Event::JobHeld { job: *job, is: false });
        }
    }

    fn timer(&mut self, core: &mut Core, cx: &mut Cx, _tag: u32) {
        self.alarm.fired();
        self.tell(core, cx, Event::Tick);
    }

    fn active(&self) -> bool {
        // An answer that comes late must not meet the tickets of the next driver.
        !(self.released && self.mirror.is_idle())
    }

    fn awaits_source(&self) -> bool {
        self.released
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}
