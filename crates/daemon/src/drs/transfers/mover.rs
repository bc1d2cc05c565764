//! The transfer itself: a thread that has QEMU send a guest to another QEMU, and watches.
//!
//! ```text
//! created ── begin ──> copying ── all sent, all come ──> committed ── runs ──> completed
//!    └────────────────────┴──> cancelled                     └──> cancelled, lost
//! ```
//!
//! `copying` is durable before QEMU is told to send, `committed` before the other QEMU is
//! told to run the guest. So a daemon that is killed leaves one of three things, and the
//! next one asks both QEMUs which it is: the guest runs where it was and is still being
//! sent, or stays there; it has come and stands still, and is to run there; or it runs
//! there already. QEMU goes on sending while no daemon is there. A guest that has come by
//! then stands still until the next daemon has it run.
//!
//! **Failures.** A QEMU that does not answer within [`sterna_qemu::qmp::PATIENCE`] counts
//! as hanging; all of this is said at once.
//!
//! - *The other QEMU ends or hangs* before the commit: the guest runs where it was. If all
//!   had been sent, it is told to, which is safe: the other one runs nothing by itself.
//! - *The one that sends ends* before all has come: the guest has ended with it. After
//!   that: it runs at the other one.
//! - *The one that sends hangs*: the guest is in it. The other QEMU is ended, and the
//!   transfer with it, as soon as the guest's QEMU answers again, or has ended.
//! - After the commit only the other QEMU may run the guest (`arrival`). If it refuses the
//!   first time that it is told to, all is undone (`ends`); if it hangs, it is waited for;
//!   if it has ended, nobody knows whether the guest ran there, so it is not run from its
//!   older memory: that is for a person.
//! - *A connection breaks*: it is connected to anew (`qemu`).

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use sterna_api::{TransferProgress, TransferReport};
use sterna_qemu::{QemuError, Sent, SentBytes};
use tokio::time::{Instant, sleep, timeout};

use super::RATE;
use super::fit::stream_of;
use super::qemu::{Qemu, direct, is_broken};
use super::way::Way;
use crate::clock;
use crate::daemon::Daemon;
use crate::error::{DaemonError, Result};
use crate::store::{Entry, Trail, TransferRecord, TransferStep};
use crate::vms::Reach;

/// How often QEMU is looked at while nothing is heard of it.
const TICK: Duration = Duration::from_millis(100);

/// How often it is looked whether a guest has come: it stands still meanwhile.
pub(super) const SHORT: Duration = Duration::from_millis(5);

/// How often one that does not answer is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// How long a QEMU may take to listen after the program that starts it has ended.
const START: Duration = Duration::from_secs(10);

/// How long a QEMU may take to take in what has come when the one that sent it has ended.
const LAST: Duration = Duration::from_secs(1);

/// A guest's memory is gone through so often at most. One that writes faster than it is
/// copied is not slowed down, and would be copied for ever.
const PASSES: u64 = 60;

/// What a stretch of the way ended with.
pub(super) enum Outcome {
    /// The guest runs at the other QEMU.
    There,
    /// It runs where it was; why, unless that was asked for.
    Stayed(Option<String>),
    /// It runs nowhere, or it is not known where; what is known.
    Lost(String),
}

/// Why a stretch of the way ended early; it is tried again.
pub(super) struct Trouble(pub(super) String);

impl From<QemuError> for Trouble {
    fn from(error: QemuError) -> Self {
        Trouble(error.to_string())
    }
}

impl From<DaemonError> for Trouble {
    fn from(error: DaemonError) -> Self {
        Trouble(error.to_string())
    }
}

/// Who moves one machine.
pub(super) struct Mover {
    pub(super) daemon: Arc<Daemon>,
    way: Arc<Way>,
    pub(super) source: Qemu,
    pub(super) receiver: Qemu,
    pub(super) record: TransferRecord,
    began: Instant,
    /// What was sent.
    pub(super) bytes: SentBytes,
    /// Whether it is being given up, and why, unless that was asked for.
    pub(super) giving_up: Option<Option<String>>,
    /// Whether an earlier daemon has begun.
    pub(super) resumed: bool,
    /// Whether the receiver was told that a guest comes.
    pub(super) told: bool,
    /// Whether it does not answer: what it is told then takes long, and is not heard.
    pub(super) deaf: bool,
    /// Whether it was left alone because it may be somebody else's.
    pub(super) spared: bool,
    /// Whether it may have been told to run the guest, and have done so.
    pub(super) may_have_run: bool,
    /// What has befallen the guest at it, if it does not run there.
    pub(super) befallen: Option<String>,
    /// What was known of the machine's moves before the commit.
    pub(super) before: Option<Trail>,
    /// When all had been sent, and how long the guest had stood still by then.
    pub(super) sent_at: Option<(Instant, f64)>,
    /// How long the guest has stood still, in milliseconds.
    pub(super) held_ms: Option<f64>,
}

impl Daemon {
    /// Gives a transfer its mover.
    pub(super) fn start_transfer_mover(
        self: &Arc<Self>,
        record: &TransferRecord,
        resumed: bool,
    ) -> Result<()> {
        let way = Arc::new(Way::new(record.cancel));
        self.drs.ways.add(record.id, way.clone());
        let qemu = |socket: &Path| Qemu::new(self.vms.link(&Reach::Qmp(socket.into())));
        let mover = Mover {
            daemon: self.clone(),
            way,
            source: qemu(&record.design.source),
            receiver: qemu(&record.design.destination),
            record: record.clone(),
            began: Instant::now(),
            bytes: SentBytes::default(),
            giving_up: None,
            resumed,
            told: resumed,
            deaf: false,
            spared: false,
            // A daemon that was killed may have told it.
            may_have_run: record.step == TransferStep::Committed,
            befallen: None,
            before: None,
            sent_at: None,
            held_ms: None,
        };
        let (id, to) = (record.id, &record.design.to);
        tracing::info!(transfer = id, vm = record.vm, to, resumed, "transfer");
        let runtime = self.vms.runtime().clone();
        let thread = thread::Builder::new().name(format!("sterna-drs-{id}"));
        let started = thread.spawn(move || runtime.block_on(mover.go()));
        started.map(drop).map_err(|error| {
            DaemonError::internal(format!("cannot start a thread: {error}"))
        })
    }
}

impl Mover {
    async fn go(mut self) {
        let outcome = loop {
            match self.go_on().await {
                Ok(outcome) => break outcome,
                Err(Trouble(why)) => {
                    let id = self.record.id;
                    tracing::warn!(transfer = id, why, "it cannot go on; tried again");
                    self.way.note(|standing| standing.trouble = Some(why));
                    let _ = timeout(AGAIN, self.way.asked.notified()).await;
                    if self.is_stopping() {
                        return;
                    }
                }
            }
        };
        let note = self.put_away(&outcome).await;
        while let Err(error) = self.close(&outcome, note.as_deref()) {
            tracing::error!(transfer = self.record.id, %error, "its end is not recorded");
            sleep(AGAIN).await;
            if self.is_stopping() {
                return;
            }
        }
        self.daemon.drs.ways.remove(self.record.id);
    }

    async fn go_on(&mut self) -> Result<Outcome, Trouble> {
        match self.record.step {
            TransferStep::Created if self.resumed => {
                self.dismiss().await;
                let why = "the daemon was ended before anything was sent";
                Ok(Outcome::Stayed(Some(why.into())))
            }
            TransferStep::Created => self.begin().await,
            TransferStep::Copying => self.follow().await,
            _ => self.arrive().await,
        }
    }

    /// Has the other QEMU wait, and the guest's send.
    async fn begin(&mut self) -> Result<Outcome, Trouble> {
        let way = self.way.clone();
        let daemon = self.daemon.clone();
        let prepared = tokio::select! {
            prepared = self.prepare() => prepared.map_err(|error| Some(error.to_string())),
            why = unwanted(&daemon, &way) => Err(why),
        };
        if let Err(why) = prepared {
            self.dismiss().await;
            return Ok(Outcome::Stayed(why));
        }
        if let Err(error) = self.advance(TransferStep::Copying) {
            self.dismiss().await;
            return Ok(Outcome::Stayed(Some(format!("it cannot be recorded: {error}"))));
        }
        let design = &self.record.design;
        let stream = stream_of(&design.destination);
        let speed = design.rate.unwrap_or(RATE);
        match self.source.ask(async |qemu| qemu.send(&stream, speed).await).await {
            Ok(()) => self.follow().await,
            Err(error) if error.is_refusal() => {
                self.dismiss().await;
                Ok(Outcome::Stayed(Some(error.to_string())))
            }
            // It may have been told.
            Err(error) => self.without_source(error).await,
        }
    }

    async fn prepare(&mut self) -> Result<()> {
        let design = self.record.design.clone();
        if let Some(program) = &design.program {
            // It may start one and fail then.
            self.told = true;
            let started = self.daemon.run_program(program, &self.record).await;
            started.map_err(DaemonError::unavailable)?;
            self.wait_for_receiver().await?;
        }
        let source = self.source.machine().await.map_err(DaemonError::unavailable)?;
        let receiver = self.receiver.machine().await.map_err(DaemonError::unavailable)?;
        self.daemon.check_fit(&source, &receiver).await?;
        self.told = true;
        let told = direct(&receiver).receive(&stream_of(&design.destination)).await;
        told.map_err(DaemonError::unavailable)
    }

    /// Waits until a QEMU that was just started listens.
    async fn wait_for_receiver(&mut self) -> Result<()> {
        let deadline = Instant::now() + START;
        loop {
            match self.receiver.machine().await {
                Ok(_) => return Ok(()),
                Err(error) if error.is_gone() && Instant::now() < deadline => {
                    sleep(TICK).await;
                }
                Err(error) => return Err(DaemonError::unavailable(error)),
            }
        }
    }

    /// Watches the guest being sent until it has come, or stays.
    async fn follow(&mut self) -> Result<Outcome, Trouble> {
        let machine = match self.source.machine().await {
            Ok(machine) => machine,
            Err(error) => return self.without_source(error).await,
        };
        self.way.note(|standing| standing.trouble = None);
        let (source, way) = (direct(&machine), self.way.clone());
        let mut events = source.monitor().events();
        loop {
            match source.sent().await {
                Err(error) => {
                    let error = self.source.meaning(error.into()).await;
                    return self.without_source(error).await;
                }
                Ok(Sent::UnderWay(bytes)) => self.watch(bytes).await,
                Ok(Sent::All(bytes, downtime)) => {
                    self.bytes = bytes;
                    self.sent_at.get_or_insert((Instant::now(), downtime));
                    return match self.giving_up.take() {
                        Some(why) => self.take_back(why).await,
                        None => self.arrive().await,
                    };
                }
                Ok(Sent::Stayed(why)) => {
                    let why = why.map(|why| format!("QEMU has given it up: {why}"));
                    let why = self.giving_up.take().unwrap_or(why);
                    return self.take_back(why).await;
                }
                Ok(Sent::Nothing) => {
                    let why =
                        "QEMU knows nothing of it: it was started anew, or never told";
                    return self.take_back(Some(why.into())).await;
                }
            }
            tokio::select! {
                _ = events.recv() => {}
                () = way.asked.notified() => {}
                () = sleep(TICK) => {}
            }
        }
    }

    /// Takes note of how far it is, and gives it up if that is wished or needed.
    async fn watch(&mut self, bytes: SentBytes) {
        self.bytes = bytes;
        let eta = (bytes.rate > 0.0).then(|| bytes.left as f64 / bytes.rate);
        let progress = TransferProgress {
            sent: bytes.done,
            left: bytes.left,
            rate: bytes.rate,
            eta_s: eta,
            passes: bytes.passes,
        };
        self.way.note(|standing| standing.progress = Some(progress));
        if self.giving_up.is_some() {
            return;
        }
        let why = match wished(&self.daemon, &self.way) {
            Some(wish) => Some(wish),
            None if bytes.passes > PASSES => Some(Some(format!(
                "the guest writes to its memory faster than it is copied: {PASSES} times \
                 was not enough"
            ))),
            None => self.missing_receiver().await.map(Some),
        };
        if let Some(why) = why {
            // Whether it could be is seen at the next look.
            let told = self.source.ask(async |qemu| qemu.give_up_sending().await).await;
            if told.is_ok() {
                self.giving_up = Some(why);
            }
        }
    }

    /// What is wrong with the other QEMU, if something is.
    async fn missing_receiver(&mut self) -> Option<String> {
        let error = self.has_come().await.err().filter(|error| !is_broken(error))?;
        self.deaf = error.is_silent();
        Some(format!("the QEMU that it goes to does not take it: {error}"))
    }

    pub(super) async fn has_come(&mut self) -> Result<bool, QemuError> {
        self.receiver.ask(async |qemu| qemu.has_come().await).await
    }

    /// The guest's QEMU has ended. If all has come, it was all sent, and the guest stood
    /// still by then.
    async fn orphaned(&mut self, error: QemuError) -> Result<Outcome, Trouble> {
        let deadline = Instant::now() + LAST;
        loop {
            match self.has_come().await {
                Ok(true) => return self.arrive().await,
                Ok(false) if Instant::now() < deadline => sleep(SHORT).await,
                Err(other) if !other.is_gone() => {
                    return Err(Trouble(format!(
                        "the QEMU that it ran in has ended ({error}), and whether all of \
                         it has come is not known: the one that it goes to: {other}"
                    )));
                }
                Ok(false) | Err(_) => break,
            }
        }
        self.dismiss().await;
        Ok(Outcome::Lost(format!(
            "the QEMU that it ran in has ended while it was copied ({error}): it runs \
             nowhere; start it anew"
        )))
    }

    /// The guest's QEMU does not answer.
    async fn without_source(&mut self, error: QemuError) -> Result<Outcome, Trouble> {
        if is_broken(&error) {
            return Err(Trouble(error.to_string()));
        }
        if error.is_gone() {
            return self.orphaned(error).await;
        }
        let other = match self.dismiss().await {
            true => "was ended",
            false => "does not end: end it by hand, as the guest may wait for it",
        };
        self.giving_up.get_or_insert(Some("its QEMU did not answer".into()));
        Err(Trouble(format!(
            "the QEMU that it runs in does not answer ({error}): it stays there, and the \
             one that waited for it {other}"
        )))
    }

    /// How it went.
    pub(super) fn report(&self) -> TransferReport {
        let since = clock::now().saturating_sub(self.record.started) as f64;
        let seconds = self.began.elapsed().as_secs_f64();
        TransferReport {
            seconds: if self.resumed { since } else { seconds },
            sent: self.bytes.done,
            passes: self.bytes.passes,
            held_ms: self.held_ms,
        }
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.daemon.drs.ways.stopping.load(Ordering::SeqCst)
    }

    /// Makes a step durable. What is asked for meanwhile stays so.
    pub(super) fn advance(&mut self, step: TransferStep) -> Result<()> {
        let next = TransferRecord { step, ..self.record.clone() };
        self.daemon.drs.ledger.change(&mut |roll| {
            let now = roll.transfers.iter().find(|one| one.id == next.id);
            let cancel = now.is_some_and(|one| one.cancel);
            Ok(vec![Entry::Transfer(TransferRecord { cancel, ..next.clone() })])
        })?;
        self.record.step = step;
        Ok(())
    }
}

/// Whether it is to be given up, and why, unless somebody has asked for that.
fn wished(daemon: &Daemon, way: &Way) -> Option<Option<String>> {
    if way.is_cancelled() {
        return Some(None);
    }
    let stops = daemon.drs.ways.stopping.load(Ordering::SeqCst);
    stops.then(|| Some("the daemon was stopped".to_owned()))
}

/// Waits until it is to be given up.
async fn unwanted(daemon: &Daemon, way: &Way) -> Option<String> {
    loop {
        if let Some(why) = wished(daemon, way) {
            return why;
        }
        way.asked.notified().await;
    }
}
