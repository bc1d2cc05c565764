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
//! tells it (again) if both sides are still the same.
//!
//! The destination is a file, or a disk of ours (`destination`).
//!
//! **Failures.** Before `switching`, a machine that has died or does not answer ends the
//! move: the source is the truth, and the destination goes. What such a machine still has
//! of the copy is given up as soon as it answers again ([`Mover::tidy`]). From `switching`
//! on a machine that does not answer is waited for. One that has died by then, or knows
//! nothing of the copy, may have had its last writes on either side: both images are kept,
//! and it is said. The destination goes only where QEMU itself says that the copy ended
//! before it switched over.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use sterna_api::{Guarding, Progress};
use sterna_core::guard::Observation;
use sterna_core::mirror::Allowance;
use sterna_core::{Nanos, measure};
use sterna_qemu::{Copy, CopyState, Drive, Export, Machine, Place, QemuError, Stats};
use tokio::time::{Instant, sleep, timeout};

use super::Reach;
use super::link::Link;
use super::moves::Move;
use super::pace::Pace;
use crate::daemon::Daemon;
use crate::error::DaemonError;
use crate::figures::Watch;
use crate::jobs::{Post, first_allowance};
use crate::store::{Step, VmMoveRecord};

mod destination;
mod end;
mod files;

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
    /// Either image may have had the last writes.
    Torn,
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

/// Who moves one disk.
struct Mover {
    daemon: Arc<Daemon>,
    one: Arc<Move>,
    link: Arc<Link>,
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
    /// Whether QEMU was told to switch over, by this daemon.
    switches: bool,
    /// Whether the destination's file is this move's.
    may_remove: bool,
    /// Whether response times are counted for this move alone.
    counts_times: bool,
    began: Instant,
}

/// Starts the thread of a move.
pub(super) fn start(
    daemon: &Arc<Daemon>,
    one: Arc<Move>,
    record: VmMoveRecord,
    reach: &Reach,
) -> std::io::Result<()> {
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
        gentle: !record.guard.is_none(),
    };
    let record_has_file = record.step != Step::Created;
    let thread = thread::Builder::new().name(format!("sterna-vm-{}", record.id));
    let mover = Mover {
        daemon: daemon.clone(),
        link: daemon.vms.link(&record.vm, reach),
        watch: Watch::new(record.application),
        one,
        record,
        copy,
        pace: Pace::default(),
        post: None,
        last: None,
        told: None,
        done: 0,
        switches: false,
        may_remove: record_has_file,
        counts_times: false,
        began: Instant::now(),
    };
    let runtime = daemon.vms.runtime.clone();
    thread.spawn(move || runtime.block_on(mover.go()))?;
    Ok(())
}

impl Mover {
    async fn go(mut self) {
        loop {
            let outcome = match self.record.step {
                Step::Created => self.begin().await,
                Step::Committed => Ok(Outcome::Moved),
                _ => self.follow().await,
            };
            match self.end(outcome).await {
                Some(again) => sleep(again).await,
                None => return,
            }
        }
    }

    /// Makes the destination and begins the copy.
    async fn begin(&mut self) -> Result<Outcome, Halt> {
        let machine = self.link.machine().await?;
        // A daemon may have been killed after it had begun.
        machine.give_up(&self.copy).await?;
        let drive = machine.drive(&self.record.device).await?;
        self.count_times(&machine, &drive).await?;
        let until = Instant::now() + BEFORE;
        while Instant::now() < until && !self.is_to_stop()? {
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
        machine.begin(&self.copy, &drive, speed).await?;
        self.told = Some(speed);
        self.advance(Step::Copying)?;
        self.began = Instant::now();
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
            if self.is_to_stop()? {
                if self.is_stopping() {
                    self.stand_still(&machine).await;
                    return Ok(Outcome::Left);
                }
                if self.record.step == Step::Copying {
                    return Ok(Outcome::Stayed(None));
                }
            }
            match machine.look(&self.copy).await? {
                CopyState::Copying { done, total } => {
                    self.watch_over(&machine, done, total).await?;
                }
                CopyState::Ready if !self.switches && !self.record.paused => {
                    self.switch_over(&machine).await?;
                }
                CopyState::Ready | CopyState::Switching => {}
                CopyState::Ended(error) => return self.judge(&machine, error).await,
                CopyState::Unknown => return self.judge_unseen(&machine).await,
            }
            self.tick(&machine).await;
        }
    }

    /// One tick of the copy: what the guest does, what the copy may take.
    async fn watch_over(
        &mut self,
        machine: &Machine,
        done: u64,
        total: u64,
    ) -> Result<(), QemuError> {
        let Some(window) = self.look_at_guest(machine).await? else { return Ok(()) };
        let gone = self.pace.look(&window);
        let copied = self.pace.note(done, window.span);
        self.done = self.done.max(done);
        let left = total.saturating_sub(done);
        let seen = Observation {
            guest: &window,
            copied,
            gone,
            mirrored: Nanos(0),
            mirrored_writes: 0,
            // QEMU's copier uses no short gaps.
            idle_processors: Some(1.0),
        };
        let guard = &self.record.guard;
        let is_another = self.post.as_ref().is_none_or(|post| post.asked() != guard);
        if is_another {
            self.post = (!guard.is_none()).then(|| Post::of_qemu(guard));
        }
        let mut allowance = Allowance::default();
        let mut guarding: Option<Guarding> = None;
        if let Some(post) = self.post.as_mut().filter(|_| !self.record.paused) {
            allowance = post.step(&seen, left);
            guarding = Some(post.report(self.record.id, allowance));
        }
        let speed = self.speed(allowance);
        if self.told != Some(speed) {
            machine.set_speed(&self.copy, speed).await?;
            self.told = Some(speed);
        }
        let progress = self.progress(left);
        let application = self.watch.application();
        self.one.note(|standing| {
            standing.progress = Some(progress);
            standing.guarding = guarding;
            standing.application = application;
        });
        Ok(())
    }

    /// What the guest did since the last look; nothing at the first.
    async fn look_at_guest(
        &mut self,
        machine: &Machine,
    ) -> Result<Option<measure::Window>, QemuError> {
        let all = machine.stats().await?;
        let now = Instant::now();
        let found = all.into_iter().find(|(device, _)| *device == self.record.device);
        let Some((_, stats)) = found else { return Ok(None) };
        let last = self.last.replace((stats.clone(), now));
        let window = last.map(|(before, at)| stats.since(&before, (now - at).into()));
        if let Some(window) = &window {
            self.watch.add(window);
        }
        Ok(window)
    }

    fn speed(&self, allowance: Allowance) -> u64 {
        self.pace.speed(allowance, self.record.rate, self.record.paused)
    }

    fn progress(&self, left: u64) -> Progress {
        let (total, rate) = (self.record.size, self.pace.rate());
        Progress {
            total,
            synced: total.saturating_sub(left),
            copied: self.done,
            rate,
            eta_s: (rate > 0.0).then(|| left as f64 / rate),
            ..Progress::default()
        }
    }

    /// Both sides are the same: has QEMU switch over.
    async fn switch_over(&mut self, machine: &Machine) -> Result<(), Halt> {
        self.advance(Step::Switching)?;
        self.seal()?;
        // What is written meanwhile is all that is left, and it is not to take long.
        machine.set_speed(&self.copy, 0).await?;
        machine.complete(&self.copy).await?;
        self.switches = true;
        Ok(())
    }

    /// The copy has ended, in whatever way: where is the disk?
    async fn judge(
        &self,
        machine: &Machine,
        error: Option<String>,
    ) -> Result<Outcome, Halt> {
        let drive = machine.drive(&self.record.device).await?;
        if drive.image == self.record.destination {
            return Ok(Outcome::Moved);
        }
        let why = match error {
            Some(reason) if !reason.contains("canceled") => {
                format!("QEMU's copy failed: {reason}")
            }
            _ => "somebody else gave QEMU's copy up".to_owned(),
        };
        Ok(Outcome::Stayed(Some(why)))
    }

    /// QEMU knows nothing of the copy any more. While it was to switch over, it may have
    /// done so, and may have been started anew since, with the old image: then what the
    /// guest wrote in between is in the other one.
    async fn judge_unseen(&self, machine: &Machine) -> Result<Outcome, Halt> {
        match self.judge(machine, None).await? {
            Outcome::Stayed(_) if self.record.step == Step::Switching => {
                Ok(Outcome::Torn)
            }
            outcome => Ok(outcome),
        }
    }

    /// Nobody will watch over the copy for a while.
    async fn stand_still(&self, machine: &Machine) {
        let halted = self.pace.speed(Allowance::default(), None, true);
        if let Err(error) = machine.set_speed(&self.copy, halted).await {
            tracing::warn!(migration = self.record.id, %error, "the copy goes on alone");
        }
    }

    /// Waits for the next tick, or for a wish.
    async fn tick(&self, machine: &Machine) {
        let tick = if machine.makes_files() { SLOW_TICK } else { TICK };
        let _ = timeout(tick, self.one.asked.notified()).await;
    }

    fn is_stopping(&self) -> bool {
        self.daemon.vms.stopping.load(Ordering::SeqCst)
    }

    /// Looks at what is asked for by now; says whether the copy is to end.
    fn is_to_stop(&mut self) -> Result<bool, DaemonError> {
        if let Some(record) = self.daemon.store.vm_move(self.record.id)? {
            self.record = record;
        }
        Ok(self.record.cancel || self.is_stopping())
    }

    fn advance(&mut self, step: Step) -> Result<(), DaemonError> {
        self.daemon.store.vm_move_advances(self.record.id, step)?;
        self.record.step = step;
        Ok(())
    }
}
