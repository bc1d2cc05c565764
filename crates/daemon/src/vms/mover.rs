//! The move itself: a thread that has QEMU copy a disk, and watches it do so.
//!
//! ```text
//! created ── begin ──> copying ── ready ──> switching ──> committed ──> completed
//!    └────────────────────┴──────────────────── ┴──> cancelled
//! ```
//!
//! `switching` is made durable before QEMU is told to switch over: from then on only
//! QEMU can say where the disk is. Whatever ends the copy, that is asked
//! ([`Mover::judge`]): also where somebody else has given the job up, or completed it. A
//! daemon that was killed right after `switching` may not have told QEMU, so the next one
//! tells it (again) if both sides are still the same. While they are, the switch-over can
//! still be called off (`switching`).
//!
//! The destination is a file, or a disk of ours (`destination`).
//!
//! **Failures.** Before `switching`, a machine that has died or does not answer ends the
//! move: the source is the truth, and the destination goes, if this process has made it,
//! or has seen QEMU copy to it ([`Making`]); what the record alone calls a copy may be the
//! disk by now, and another file of that name is somebody's. What such a machine still has
//! of the copy is given up as soon as it answers again (`end`); until then a disk of ours
//! that it copies to is served, also by a later daemon: QEMU flushes what it forgets, and
//! its guest would wait. From `switching` on a machine that does not answer is waited for.
//! One that has died by then, or knows nothing of the copy, may have had its last writes on
//! either side: both images are kept, and it is said. The destination goes only where QEMU
//! itself says that the copy ended before it switched over.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use sterna_engine::FileIdentity;
use sterna_qemu::{Copy, CopyState, Drive, Export, Machine, Place, QemuError, Stats};
use tokio::time::{Instant, timeout};

pub(super) use self::destination::both;
use self::end::Closing;
use self::switching::Told;
use super::link::Link;
use super::moves::Move;
use super::pace::Pace;
use super::{Kind, Reach};
use crate::daemon::Daemon;
use crate::error::DaemonError;
use crate::figures::Watch;
use crate::jobs::{Post, first_allowance};
use crate::store::{Step, VmMoveRecord};

mod destination;
mod end;
mod files;
mod switching;
mod watching;

/// How often QEMU is looked at: as often as disks of ours are sampled.
const TICK: Duration = Duration::from_millis(100);

/// How often libvirt is asked: each time is four processes.
const SLOW_TICK: Duration = Duration::from_millis(300);

/// How long the application is watched before the copy begins, for the figures of
/// before.
const BEFORE: Duration = Duration::from_secs(1);

/// How often a machine that does not answer is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// What a stretch of the way ended with.
enum Outcome {
    /// The disk is at the destination.
    Moved,
    /// The disk is where it was; why, unless that was asked for.
    Stayed(Option<String>),
    /// Either image may have had the last writes; why.
    Torn(&'static str),
    /// The daemon stops; the next one goes on.
    Left,
}

/// Why a stretch of the way ended early.
#[derive(Debug)]
enum Halt {
    /// The machine.
    Machine(QemuError),
    /// The state, or the destination's file.
    Here(DaemonError),
}

impl From<QemuError> for Halt {
    fn from(error: QemuError) -> Self {
        Halt::Machine(error)
    }
}

impl From<DaemonError> for Halt {
    fn from(error: DaemonError) -> Self {
        Halt::Here(error)
    }
}

/// What is known of the destination. Of a file's making only this process knows, and a
/// state that is an old backup takes the machine's disk for a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Making {
    /// Nothing: it may be the machine's disk.
    Unknown,
    /// It is nothing but this move's copy: it was made here, or QEMU was seen to copy to
    /// it.
    Ours,
    /// It is gone, or somebody else's.
    NotOurs,
}

/// Who moves one disk.
struct Mover {
    daemon: Arc<Daemon>,
    one: Arc<Move>,
    link: Arc<Link>,
    reach: Reach,
    record: VmMoveRecord,
    copy: Copy,
    pace: Pace,
    post: Option<Post>,
    watch: Watch,
    /// What the disk had done at the last tick, and when that was.
    last: Option<(Stats, Instant)>,
    /// What QEMU was told last.
    told: Option<u64>,
    /// Bytes that QEMU has copied.
    done: u64,
    /// Bytes that it was to copy, as far as it has said.
    total: u64,
    told_to_switch: Told,
    making: Making,
    /// What the destination's file is known by, once it is known to be ours.
    file: Option<FileIdentity>,
    /// Why the switch-over was called off, if not because it took too long.
    called_off: Option<String>,
    /// Whether response times are counted for this move alone.
    counts_times: bool,
    /// Whether something may have been asked for since the record was read.
    is_asked: bool,
    /// The state did not say what.
    is_deaf: bool,
    /// How it has ended, while the state does not take it.
    closing: Option<Closing>,
}

/// Starts the thread of a move.
pub(super) fn start(
    daemon: &Arc<Daemon>,
    one: Arc<Move>,
    record: VmMoveRecord,
    reach: &Reach,
) -> Result<(), DaemonError> {
    let thread = thread::Builder::new().name(format!("sterna-vm-{}", record.id));
    let mover = Mover::new(daemon, one, record, reach);
    let runtime = daemon.vms.runtime.clone();
    let started = thread.spawn(move || runtime.block_on(mover.go()));
    started
        .map(drop)
        .map_err(|error| DaemonError::internal(format!("cannot start a thread: {error}")))
}

impl Mover {
    fn new(
        daemon: &Arc<Daemon>,
        one: Arc<Move>,
        record: VmMoveRecord,
        reach: &Reach,
    ) -> Mover {
        let copy = Copy {
            // Numbers begin anew in another state directory; its moments do not.
            name: format!("sterna-{}-{:x}", record.id, record.started),
            device: record.device.clone(),
            source: record.source.clone(),
            to: match Export::parse(&record.destination) {
                Some(export) => Place::Export(export),
                None => Place::File {
                    path: record.destination.clone(),
                    format: record.format.clone(),
                },
            },
            gentle: !record.guard.is_none() || record.rate.is_some(),
        };
        // After a release was given up, a file of that name is its user's.
        let making = match record.kind {
            Kind::Release(_) if record.step.ended() => Making::NotOurs,
            _ => Making::Unknown,
        };
        Mover {
            daemon: daemon.clone(),
            link: daemon.vms.link(reach),
            reach: reach.clone(),
            watch: Watch::new(record.application),
            one,
            record,
            copy,
            pace: Pace::default(),
            post: None,
            last: None,
            told: None,
            done: 0,
            total: 0,
            told_to_switch: Told::Nothing,
            making,
            file: None,
            called_off: None,
            counts_times: false,
            is_asked: true,
            is_deaf: false,
            closing: None,
        }
    }

    async fn go(mut self) {
        // What is left of a move that a machine did not let go of.
        if self.record.step.ended() {
            return self.tidy().await;
        }
        while let Some(again) = self.go_on().await {
            // Where each round fails, a wish is what ends them.
            self.is_asked |= timeout(again, self.one.asked.notified()).await.is_ok();
        }
    }

    /// Goes on until it ends; or says after which time to try again.
    async fn go_on(&mut self) -> Option<Duration> {
        if let Some(closing) = self.closing.take() {
            return self.record_end(closing).await;
        }
        let outcome = match self.record.step {
            Step::Created => self.begin().await,
            Step::Committed => Ok(Outcome::Moved),
            _ => self.follow().await,
        };
        self.end(outcome).await
    }

    /// Makes the destination and begins the copy.
    async fn begin(&mut self) -> Result<Outcome, Halt> {
        let machine = self.link.machine().await?;
        // A daemon may have been killed after it had begun: then the file is of its making,
        // unless somebody else has completed the copy since.
        let served = self.destination_is_served();
        let had_begun = machine.give_up(&self.copy, served).await?;
        let drive = machine.drive(&self.record.device).await?;
        if drive.image != self.record.source {
            let (source, image) = (&self.record.source, &drive.image);
            let message = format!("the disk is at {image} now, and not at {source}");
            return Err(DaemonError::in_use(message).into());
        }
        if had_begun.is_something() || self.is_blank() {
            self.is_seen();
        }
        self.count_times(&machine, &drive).await?;
        let until = Instant::now() + BEFORE;
        while Instant::now() < until && !self.is_stopping() && !self.record.cancel {
            self.heed();
            self.look_at_guest(&machine).await?;
            self.tick(&machine).await;
        }
        if self.is_stopping() {
            return Ok(Outcome::Left);
        }
        if self.record.cancel {
            return Ok(Outcome::Stayed(None));
        }
        let before = self.watch.application().during;
        self.watch = Watch::new(sterna_api::Application { before, ..Default::default() });
        self.make_destination(&machine)?;
        let speed = self.speed(first_allowance(&self.record.guard));
        if let Err(error) = machine.begin(&self.copy, &drive, speed).await {
            self.has_not_begun(&error);
            return Err(error.into());
        }
        // Whoever has made the file, it is nothing but the copy.
        self.is_seen();
        self.told = Some(speed);
        self.pace.begin();
        self.advance(Step::Copying)?;
        self.follow().await
    }

    /// Has the disk count how long its requests take. That may be refused: then
    /// percentiles are not known.
    async fn count_times(
        &mut self,
        machine: &Machine,
        drive: &Drive,
    ) -> Result<(), QemuError> {
        match machine.count_times(drive).await {
            Err(error) if error.is_gone() || error.is_silent() => return Err(error),
            counts => self.counts_times = counts.unwrap_or(false),
        }
        Ok(())
    }

    /// Watches the copy until it has ended.
    async fn follow(&mut self) -> Result<Outcome, Halt> {
        let machine = self.link.machine().await?;
        self.one.note(|standing| standing.trouble = None);
        loop {
            if self.is_stopping() {
                self.stand_still(&machine).await;
                return Ok(Outcome::Left);
            }
            self.heed();
            if self.record.cancel && self.record.step == Step::Copying {
                return Ok(Outcome::Stayed(None));
            }
            match machine.look(&self.copy).await? {
                CopyState::Copying { done, total } => {
                    self.is_seen();
                    match self.watch_over(&machine, done, total).await {
                        // If it has failed meanwhile, that says why.
                        Err(error) if error.is_refusal() => {
                            self.check_under_way(&machine, error).await?;
                        }
                        watched => watched?,
                    }
                }
                CopyState::Ready { done } => {
                    self.is_seen();
                    // Of a quick one this is the first that is seen.
                    self.done = self.done.max(done);
                    self.note_ready();
                    self.at_the_switch(&machine).await?;
                }
                CopyState::Switching => {}
                CopyState::Ended(error) => return self.judge(&machine, error).await,
                CopyState::Unknown => return self.judge_unseen(&machine).await,
            }
            self.tick(&machine).await;
        }
    }

    /// Gives an error that was no consequence of the copy's end.
    async fn check_under_way(
        &self,
        machine: &Machine,
        error: QemuError,
    ) -> Result<(), QemuError> {
        match machine.look(&self.copy).await? {
            CopyState::Ended(_) => Ok(()),
            _ => Err(error),
        }
    }

    /// Waits for the next tick, or for a wish.
    async fn tick(&mut self, machine: &Machine) {
        let tick = if machine.makes_files() { SLOW_TICK } else { TICK };
        self.is_asked |= timeout(tick, self.one.asked.notified()).await.is_ok();
    }

    fn is_stopping(&self) -> bool {
        self.daemon.vms.stopping.load(Ordering::SeqCst)
    }

    /// Looks at what is asked for by now, if anything is: a state that does not answer is
    /// in the way of a wish, and not of the guard. The move goes on as it was last asked to.
    fn heed(&mut self) {
        if !self.is_asked {
            return;
        }
        let id = self.record.id;
        match self.daemon.store.vm_move(id) {
            Ok(Some(record)) => self.record = record,
            Ok(None) => {}
            Err(error) => {
                // Each tick asks again, and once is worth knowing.
                if !std::mem::replace(&mut self.is_deaf, true) {
                    tracing::warn!(migration = id, %error, "wishes are not known");
                }
                return;
            }
        }
        (self.is_asked, self.is_deaf) = (false, false);
    }

    fn advance(&mut self, step: Step) -> Result<(), DaemonError> {
        self.daemon.store.vm_move_advances(self.record.id, step)?;
        self.record.step = step;
        Ok(())
    }
}
