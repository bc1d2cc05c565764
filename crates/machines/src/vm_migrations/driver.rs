//! The driver of a VM migration: a thread that carries out what `core::transfer` decides.
//!
//! What a migration does next, and what its end is, is decided there, and so is what happens
//! if a QEMU does not answer, the state takes no step, or a daemon is killed. Here it is
//! asked for: of both QEMUs (`asking`, `qemu`), of what starts them (`program`, `fit`) and
//! of the state (`ends`). `words` has the words for people. Each question is answered by
//! exactly one event.
//!
//! A QEMU that does not answer within [`sterna_qemu::qmp::ANSWER_WITHIN`] counts as silent. It
//! goes on sending while no daemon is there. A guest that has come by then stands still
//! until the next daemon has it run.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sterna_api::{Result, TransferProgress, TransferReport};
use sterna_core::Nanos;
use sterna_core::transfer::{AGAIN, Action, End, Event, Setup, Step, Transfer, Trouble};
use sterna_os::clock;
use sterna_qemu::SentBytes;
use sterna_qemu::qmp::Event as Said;
use sterna_runtime::threads;
use sterna_state::{History, Reach, TransferRecord, TransferStep};
use tokio::sync::broadcast::Receiver;
use tokio::time::{Instant, sleep};

use super::qemu::{Qemu, process};
use super::session::Session;
use super::stream::Stream;
use crate::Machines;

/// Carries out the migration of one VM.
pub(super) struct Driver {
    pub(super) machines: Arc<Machines>,
    pub(super) session: Arc<Session>,
    pub(super) source: Qemu,
    pub(super) receiver: Qemu,
    pub(super) record: TransferRecord,
    /// Where the receiver is told that the guest comes.
    pub(super) stream: Stream,
    /// What the source says by itself, since it was last asked how far it is.
    pub(super) said: Option<Receiver<Said>>,
    began: Instant,
    /// Whether an earlier daemon has begun.
    resumed: bool,
    /// What was sent.
    pub(super) bytes: SentBytes,
    /// What was known of the VM's moves before the commit.
    pub(super) before: Option<History>,
    /// When all had been sent, and how long the guest had stood still by then.
    pub(super) sent_at: Option<(Instant, f64)>,
    /// How long the guest has stood still, in milliseconds.
    held_ms: Option<f64>,
}

impl Machines {
    /// Gives a VM migration its driver.
    pub(super) fn start_driver(
        self: &Arc<Self>,
        record: &TransferRecord,
        resumed: bool,
    ) -> Result<()> {
        let session = Arc::new(Session::new(record.cancel));
        self.sessions.add(record.id, session.clone());
        let qemu = |socket: &Path, process| {
            Qemu::new(self.vms.link(&Reach::Qmp(socket.into())), process)
        };
        let transfer = Transfer::new(Setup {
            step: step_of(record.step),
            cancel: record.cancel,
            by_program: record.design.program.is_some(),
            resumed,
        });
        // Before it is recorded that the guest is sent, the receiver was told to wait for it.
        let may_be_told = record.step != TransferStep::Created;
        let driver = Driver {
            machines: self.clone(),
            session,
            source: qemu(&record.design.source, None),
            receiver: qemu(
                &record.design.destination,
                record.design.receiver.map(process),
            ),
            stream: Stream::to(&record.design.destination, may_be_told),
            record: record.clone(),
            said: None,
            began: Instant::now(),
            resumed,
            bytes: SentBytes::default(),
            before: None,
            sent_at: None,
            held_ms: None,
        };
        let (id, to) = (record.id, &record.design.to);
        tracing::info!(transfer = id, vm = record.vm, to, resumed, "transfer");
        let runtime = self.vms.runtime.clone();
        let work = move || runtime.block_on(driver.go(transfer));
        let started = threads::start(format!("sterna-drs-{id}"), work);
        started.inspect_err(|_| self.sessions.remove(id))
    }
}

/// Where a VM migration is that has not ended.
fn step_of(step: TransferStep) -> Step {
    match step {
        TransferStep::Created => Step::Created,
        TransferStep::Copying => Step::Copying,
        TransferStep::Returning => Step::Returning,
        TransferStep::Committed
        | TransferStep::Completed
        | TransferStep::Cancelled
        | TransferStep::Lost => Step::Committed,
    }
}

impl Driver {
    async fn go(mut self, mut transfer: Transfer) {
        let mut event = Event::Start;
        loop {
            let mut actions = Vec::new();
            if self.session.is_cancelled() {
                transfer.handle(self.now(), Event::Cancel, &mut actions);
            }
            if self.machines.sessions.is_stopping() {
                transfer.handle(self.now(), Event::Stop, &mut actions);
            }
            transfer.handle(self.now(), event, &mut actions);
            let mut answer = None;
            for action in actions {
                answer = self.carry_out(action).await.or(answer);
            }
            match answer {
                Some(answer) => event = answer,
                None => return,
            }
        }
    }

    fn now(&self) -> Nanos {
        self.began.elapsed().into()
    }

    /// Carries out an action; gives the answer, if it is a question.
    async fn carry_out(&mut self, action: Action) -> Option<Event> {
        Some(match action {
            Action::Start => Event::Prepared(self.start().await),
            Action::Check => Event::Prepared(self.check().await),
            Action::Receive => Event::Done(self.receive().await),
            Action::Send => Event::Done(self.send().await),
            Action::GiveUp => Event::Done(self.give_up().await),
            Action::AskSent => Event::Sent(self.ask_sent().await),
            Action::AskLeft => Event::Left(self.ask_left().await),
            Action::AskStand => Event::Stands(self.ask_stand().await),
            Action::GoOn(end) => Event::Done(self.go_on(end).await),
            Action::Quit(end) => Event::Quit(self.qemu(end).quit().await),
            Action::RecordCopying => Event::Stored(self.record_copying()),
            Action::TakeBack => Event::Stored(self.take_back()),
            Action::Commit { heeds } => Event::Committed(self.commit(heeds)),
            Action::Close(verdict) => Event::Stored(self.close(&verdict)),
            Action::Wait(until) => {
                self.wait(until).await;
                Event::Woken
            }
            Action::Arrived => {
                self.arrived();
                return None;
            }
            Action::Tell(trouble) => {
                self.tell(&trouble);
                return None;
            }
            Action::Over => return None,
        })
    }

    pub(super) fn qemu(&mut self, end: End) -> &mut Qemu {
        match end {
            End::Source => &mut self.source,
            End::Receiver => &mut self.receiver,
        }
    }

    /// Waits until then, or until something is wanted, or QEMU says something.
    async fn wait(&mut self, until: Nanos) {
        let span = until.since(self.now());
        let listens = span < AGAIN;
        let said = async {
            match &mut self.said {
                Some(said) if listens => said.recv().await.is_ok(),
                _ => std::future::pending().await,
            }
        };
        let is_said = tokio::select! {
            is_said = said => is_said,
            () = self.session.asked.notified() => true,
            () = sleep(Duration::from_nanos(span.0)) => true,
        };
        // Nothing more will be said there.
        if !is_said {
            self.said = None;
        }
    }

    /// The guest is at the receiver. Where a daemon was killed, nobody has seen for how
    /// long it stood still.
    fn arrived(&mut self) {
        if let Some((at, before)) = self.sent_at.filter(|_| !self.resumed) {
            self.held_ms = Some(before + at.elapsed().as_secs_f64() * 1e3);
        }
    }

    fn tell(&self, trouble: &Trouble) {
        let why = self.trouble(trouble);
        tracing::warn!(
            transfer = self.record.id,
            why,
            "a VM migration cannot continue; Sterna tries again"
        );
        self.session.note(|status| status.trouble = Some(why));
    }

    /// Takes note of how far it is.
    pub(super) fn note_sent(&mut self, bytes: SentBytes) {
        self.bytes = bytes;
        let eta = (bytes.rate > 0.0).then(|| bytes.left as f64 / bytes.rate);
        let progress = TransferProgress {
            sent: bytes.done,
            left: bytes.left,
            rate: bytes.rate,
            eta_s: eta,
            passes: bytes.passes,
        };
        self.session.note(|status| status.progress = Some(progress));
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
}
