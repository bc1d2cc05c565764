//! The driver of a move: a thread that carries out what `core::mover` decides.
//!
//! What a move does next, and what its end is, is decided there, and so is what happens
//! if a VM does not answer, a state takes no step, or a daemon is killed. Here it is
//! asked for: of the VM (`asking`), of the guest's figures (`watching`), of the
//! destination (`destination`, `files`) and of the state (`end`, which has the words for
//! people, too). Each question is answered by exactly one event.
//!
//! The connection to a VM is held while it is asked ten times a second, and let go of
//! when it is asked seldom: another program may want the monitor.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sterna_api::Error;
use sterna_core::Nanos;
use sterna_core::mover::{
    AGAIN, Action, Copy as Copied, Event, Mover, MoverStep as At, Notice, Owner, Place,
    Setup, Wishes,
};
use sterna_engine::datastore::Known;
use sterna_moves::GuardRunner;
use sterna_os::lock;
use sterna_qemu::{Copy, Export, Place as To, Stats, VmHandle};
use sterna_runtime::threads;
use sterna_state::{Reach, Step, VmMoveKind, VmMoveRecord};
use sterna_storage::asker::Asker;
use sterna_telemetry::figures::Watch;
use tokio::time::{Instant, timeout};

use self::end::Closing;
use super::link::Link;
use super::pace::Pace;
use super::under_way::Move;
use crate::Machines;

mod asking;
mod destination;
mod end;
mod files;
mod watching;
mod words;

/// Who carries out the move of one disk.
struct Driver {
    machines: Arc<Machines>,
    one: Arc<Move>,
    link: Arc<Link>,
    /// The connection, while the VM is asked often.
    vm: Option<Arc<VmHandle>>,
    reach: Reach,
    record: VmMoveRecord,
    copy: Copy,
    pace: Pace,
    runner: Option<GuardRunner>,
    watch: Watch,
    /// What the disk had done at the last tick, and when that was.
    last: Option<(Stats, Instant)>,
    /// Bytes that QEMU has copied.
    done: u64,
    /// Bytes that it was to copy, as far as it has said.
    total: u64,
    /// What the destination's file is known by, once it is known to be ours: in the process
    /// that has made it by all that is known of a file, and later by what is recorded.
    file: Option<Known>,
    /// A file has the destination's name, and nothing says whether that is the copy.
    is_unknown: bool,
    /// Who asks the destination's file system.
    asker: Asker,
    /// Whether response times are counted for this move alone.
    counts_times: bool,
    /// It was said that the state does not say what is wanted.
    is_deaf: bool,
    /// How it has ended, once that is to be recorded.
    closing: Option<Closing>,
    /// It has ended, and its VM may still have something of it.
    tidies: bool,
    /// The VM's time begins.
    began: Instant,
}

/// Starts the thread of a move, of one that has just been asked for unless it is resumed.
pub(super) fn start(
    machines: &Arc<Machines>,
    one: Arc<Move>,
    record: VmMoveRecord,
    reach: &Reach,
    resumed: bool,
) -> Result<(), Error> {
    let name = format!("sterna-vm-{}", record.id);
    let mover = Mover::new(setup_of(&record, reach, resumed));
    let driver = Driver::new(machines, one, record, reach);
    let runtime = machines.vms.runtime.clone();
    threads::start(name, move || runtime.block_on(driver.go(mover)))
}

/// What is durable of a move.
fn setup_of(record: &VmMoveRecord, reach: &Reach, resumed: bool) -> Setup {
    let step = match record.step {
        Step::Created => At::Created,
        Step::Copying => At::Copying,
        Step::Switching => At::Switching,
        Step::Committed => At::Committed,
        Step::Completed | Step::Cancelled => At::Ended,
    };
    // After a release was given up, a file of that name is its user's.
    let copy = match record.kind {
        VmMoveKind::Release(_) if step == At::Ended => Copied::NotOurs,
        _ => Copied::Unknown,
    };
    Setup {
        owner: match reach {
            Reach::Qmp(_) => Owner::Qemu,
            Reach::Libvirt { .. } => Owner::Libvirt,
        },
        place: if record.kind.adopts() { Place::Disk } else { Place::File },
        step,
        wishes: wishes_of(record),
        copy,
        resumed,
    }
}

fn wishes_of(record: &VmMoveRecord) -> Wishes {
    Wishes { cancel: record.cancel, paused: record.paused, rate: record.rate }
}

impl Driver {
    fn new(
        machines: &Arc<Machines>,
        one: Arc<Move>,
        record: VmMoveRecord,
        reach: &Reach,
    ) -> Driver {
        let copy = Copy {
            // Numbers begin anew in another state directory; its moments do not.
            name: format!("sterna-{}-{:x}", record.id, record.started),
            device: record.device.clone(),
            source: record.source.clone(),
            to: match Export::parse(&record.destination) {
                Some(export) => To::Export(export),
                None => To::File {
                    path: record.destination.clone(),
                    format: record.format.clone(),
                },
            },
            gentle: !record.guard.is_none() || record.rate.is_some(),
            // Known when it is made.
            thick: false,
        };
        Driver {
            machines: machines.clone(),
            link: machines.vms.link(reach),
            vm: None,
            reach: reach.clone(),
            watch: Watch::new(record.application),
            tidies: false,
            one,
            file: files::recorded(&record),
            is_unknown: false,
            record,
            copy,
            pace: Pace::default(),
            runner: None,
            last: None,
            done: 0,
            total: 0,
            asker: Asker::default(),
            counts_times: false,
            is_deaf: false,
            closing: None,
            began: Instant::now(),
        }
    }

    async fn go(mut self, mover: Mover) {
        if self.record.step.ended() {
            self.tidies();
        }
        self.drive(mover).await;
        lock(&self.machines.vms.tidying).remove(&self.record.id);
    }

    async fn drive(&mut self, mut mover: Mover) {
        let mut event = Event::Start;
        loop {
            let mut actions = Vec::new();
            if self.machines.vms.stopping.load(Ordering::SeqCst) {
                mover.handle(self.now(), Event::Stop, &mut actions);
            }
            mover.handle(self.now(), event, &mut actions);
            if self.tidies && self.is_let_go() {
                return;
            }
            let mut answer = None;
            for action in actions {
                if let Action::Wait(until) = action {
                    if self.wait(until).await {
                        mover.handle(self.now(), Event::Asked, &mut Vec::new());
                    }
                    answer = Some(Event::Woken);
                } else {
                    answer = self.carry_out_unless_let_go(action).await.or(answer);
                }
            }
            match answer {
                Some(answer) => event = answer,
                None => return,
            }
        }
    }

    /// Carries out an action. Nothing more is answered once nobody wants to know any more
    /// what the VM still has: one that goes on answering then is not told anything.
    async fn carry_out_unless_let_go(&mut self, action: Action) -> Option<Event> {
        let (one, tidies) = (self.one.clone(), self.tidies);
        loop {
            tokio::select! {
                biased;
                () = one.asked.notified(), if tidies => {
                    if self.is_let_go() {
                        return None;
                    }
                }
                answer = self.carry_out(action.clone()) => return answer,
            }
        }
    }

    fn now(&self) -> Nanos {
        self.began.elapsed().into()
    }

    /// Waits until then, or until something is asked for; says whether that is so.
    async fn wait(&mut self, until: Nanos) -> bool {
        let span = until.since(self.now());
        if span >= AGAIN {
            self.vm = None;
        }
        let asked = self.one.asked.notified();
        timeout(Duration::from_nanos(span.0), asked).await.is_ok()
    }

    /// Carries out an action; gives the answer, if it is a question.
    async fn carry_out(&mut self, action: Action) -> Option<Event> {
        Some(match action {
            Action::Look => Event::Looked(self.look().await),
            Action::Find => Event::Found(self.find().await),
            Action::Watch(job) => Event::Watched(self.watch(job.as_ref()).await),
            Action::CountTimes => Event::Done(self.count_times().await),
            Action::Begin(speed) => Event::Done(self.begin(speed).await),
            Action::SetSpeed(speed) => Event::Done(self.set_speed(speed).await),
            Action::Complete => Event::Done(self.complete().await),
            Action::CallOff => Event::Done(self.call_off().await),
            Action::GiveUp => Event::GaveUp(self.give_up().await),
            Action::PutAway => Event::Done(self.put_away().await),
            Action::Peek => Event::Peeked(self.is_blank()),
            Action::Make => Event::Made(self.make().await),
            Action::Remove => Event::Removed(self.remove().await),
            Action::Seal => Event::Sealed(self.seal()),
            Action::Unseal => Event::Stored(self.unseal()),
            Action::ReadWishes => Event::Wished(self.read_wishes()),
            Action::Record(step) => Event::Stored(self.record_step(step)),
            Action::RecordSwitching => Event::MaySwitch(self.record_switching()),
            Action::Close(verdict) => Event::Stored(self.close(&verdict)),
            Action::RecordTidy(tidied) => Event::Stored(self.record_tidy(&tidied)),
            Action::Wait(_) | Action::Over => return None,
            Action::Know => {
                self.file = self.file.or_else(|| self.known());
                return None;
            }
            Action::Tell(notice) => {
                self.tell(notice);
                return None;
            }
        })
    }

    fn tell(&self, notice: Notice) {
        let id = self.record.id;
        match notice {
            Notice::Trouble(why) => {
                tracing::warn!(migration = id, why, "a move halts");
                self.one.note(|standing| standing.trouble = Some(why));
            }
            Notice::CalledOff => {
                tracing::info!(migration = id, "a switch-over is called off");
            }
            Notice::Untidy(why) => tracing::warn!(migration = id, why, "not tidy"),
            Notice::Kept => tracing::warn!(migration = id, "{}", self.keeps_unseen()),
        }
    }
}
