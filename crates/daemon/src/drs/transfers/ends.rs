//! How a transfer ends: the commit, what undoes it, and what is left to put away.
//!
//! The commit is one change of the roll: the machine is reached at the other QEMU, and is
//! on the other host. Where that QEMU refuses to run it, the opposite is recorded before the
//! guest runs where it was: at no moment may both.

use sterna_qemu::qmp::{PATIENCE, QmpError};
use sterna_qemu::{QemuError, Stand};
use tokio::time::{Instant, sleep};

use super::fit::stream_of;
use super::mover::{Mover, Outcome, SHORT, Trouble};
use crate::clock;
use crate::daemon::lock;
use crate::drs::hold;
use crate::drs::round::{now, trail};
use crate::error::Result;
use crate::store::{Entry, Roll, SeatRecord, TransferEnd, TransferRecord, TransferStep};
use crate::vms::Reach;

/// QEMU's word for one that has sent its guest, which stands still there.
const HANDED_OVER: &str = "postmigrate";

/// And for one that is about to.
const HANDS_OVER: &str = "finish-migrate";

/// What has become of a guest where it was, when all of it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// It stands still there.
    Stands,
    /// Its QEMU has ended.
    Gone,
    /// It was told to go on.
    GoesOn,
}

impl Mover {
    /// What has become of the guest where it was.
    pub(super) async fn left(&mut self) -> Result<Left, QemuError> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.source.run().await {
                // QEMU says a little earlier that all is sent.
                Ok(run) if run.word == HANDS_OVER => {
                    if Instant::now() >= deadline {
                        return Err(QemuError::Unending { job: HANDS_OVER.into() });
                    }
                    sleep(SHORT).await;
                }
                Ok(run) if run.word == HANDED_OVER => return Ok(Left::Stands),
                Ok(_) => return Ok(Left::GoesOn),
                Err(error) if error.is_gone() => return Ok(Left::Gone),
                Err(error) => return Err(error),
            }
        }
    }

    /// The machine is at the other QEMU from now on, unless somebody has just had it given
    /// up, if that is heeded; says whether it is.
    pub(super) fn commit(&mut self, heeds: bool) -> Result<bool> {
        let record =
            TransferRecord { step: TransferStep::Committed, ..self.record.clone() };
        let design = &record.design;
        let (mut is_wanted, mut before) = (true, None);
        let committed = self.daemon.drs.ledger.change(&mut |roll| {
            let now = roll.transfers.iter().find(|one| one.id == record.id);
            is_wanted = !heeds || !now.is_some_and(|one| one.cancel);
            let seat = roll.seats.iter().find(|seat| seat.vm == record.vm);
            before = seat.and_then(|seat| seat.trail.clone());
            if !is_wanted {
                return Ok(Vec::new());
            }
            let reach = Reach::Qmp(design.destination.clone());
            Ok(vec![
                Entry::Transfer(record.clone()),
                Entry::Reach { vm: record.vm.clone(), reach },
                self.seat(roll, &design.to, true),
            ])
        });
        if is_wanted {
            self.before = before;
        }
        committed?;
        if is_wanted {
            self.record = record;
        }
        Ok(is_wanted)
    }

    /// Where the machine is, for the roll; and that a move of it has succeeded, or failed.
    fn seat(&self, roll: &Roll, host: &str, moved: bool) -> Entry {
        let vm = &self.record.vm;
        let mut state = lock(&self.daemon.drs.state);
        state.settle(roll);
        let hold = hold(&roll.settings);
        match moved {
            true => state.calm.moved(now(), vm, host, &hold),
            false => state.calm.failed(now(), vm, host, &hold),
        }
        let mut known = state.calm.known();
        let kept = known.find(|(name, _)| *name == vm).map(|(_, known)| trail(known));
        let pool = roll.seats.iter().find(|seat| seat.vm == *vm);
        let pool = pool.and_then(|seat| seat.pool.clone());
        let (vm, host) = (vm.clone(), Some(host.to_owned()));
        Entry::Seat(SeatRecord { vm, host, pool, trail: kept })
    }

    /// The guest is to run where it was. Before the commit that is safe, whatever became of
    /// the other QEMU.
    pub(super) async fn take_back(
        &mut self,
        why: Option<String>,
    ) -> Result<Outcome, Trouble> {
        let error = match self.left().await {
            Ok(Left::Stands) => {
                self.source.ask(async |qemu| qemu.go_on().await).await.err()
            }
            Ok(Left::GoesOn) => None,
            Ok(Left::Gone) => Some(QmpError::Gone.into()),
            Err(error) => Some(error),
        };
        if let Some(error) = error {
            if !error.is_gone() {
                self.giving_up = Some(why);
                return Err(Trouble(format!("the guest does not go on: {error}")));
            }
            self.dismiss().await;
            let why = why.map_or(String::new(), |why| format!("; before that: {why}"));
            return Ok(Outcome::Lost(format!(
                "the QEMU that it ran in has ended ({error}): it runs nowhere{why}"
            )));
        }
        self.dismiss().await;
        Ok(Outcome::Stayed(why))
    }

    /// The other QEMU has said that it does not run the guest, and has not run it. That the
    /// machine is where it was is recorded first: what ends the other one may be the last
    /// that is done.
    pub(super) async fn undo(&mut self, error: QemuError) -> Result<Outcome, Trouble> {
        self.uncommit()?;
        if !self.dismiss().await {
            let why = "it neither runs the machine nor ends";
            return Err(Trouble(format!("the QEMU that it has gone to: {error}; {why}")));
        }
        self.take_back(Some(error.to_string())).await
    }

    /// The machine is where it was, as if nothing had been.
    pub(super) fn uncommit(&mut self) -> Result<()> {
        let record =
            TransferRecord { step: TransferStep::Copying, ..self.record.clone() };
        let design = &record.design;
        self.daemon.drs.ledger.change(&mut |roll| {
            let reach = Reach::Qmp(design.source.clone());
            let vm = record.vm.clone();
            let pool = roll.seats.iter().find(|seat| seat.vm == vm);
            let pool = pool.and_then(|seat| seat.pool.clone());
            let (host, trail) = (Some(design.from.clone()), self.before.clone());
            Ok(vec![
                Entry::Transfer(record.clone()),
                Entry::Reach { vm: vm.clone(), reach },
                Entry::Seat(SeatRecord { vm, host, pool, trail }),
            ])
        })?;
        self.record = record;
        Ok(())
    }

    /// After the commit the other QEMU is not there, or does not answer.
    pub(super) async fn without_receiver(
        &mut self,
        error: QemuError,
    ) -> Result<Outcome, Trouble> {
        if !error.is_gone() {
            return Err(Trouble(format!("the QEMU that it has gone to: {error}")));
        }
        // A commit that seemed to fail may have come up after all.
        match self.source.run().await {
            Ok(run) if run.running => {
                self.uncommit()?;
                return Ok(Outcome::Stayed(Some(error.to_string())));
            }
            Err(other) if !other.is_gone() => return Err(other.into()),
            _ => {}
        }
        let socket = self.record.design.source.display();
        Ok(Outcome::Lost(format!(
            "the QEMU that it has gone to has ended ({error}), and may have run it: start \
             it anew, and end what is left of it at {socket}: its memory may be older than \
             its disks"
        )))
    }

    /// Ends the QEMU that waits, if it was started for this, or told of it; says whether it
    /// has ended, or nothing is to end. One that hangs ends by itself when it goes on: what
    /// was to come does not. One that may be somebody else's is left.
    pub(super) async fn dismiss(&mut self) -> bool {
        if !self.told || self.deaf {
            return !self.told;
        }
        self.spared = false;
        match self.is_ours().await {
            Ok(true) => self.receiver.quit().await,
            Ok(false) => {
                self.spared = true;
                false
            }
            Err(error) if error.is_gone() => true,
            Err(_) if self.is_unsure() => {
                self.spared = true;
                false
            }
            Err(_) => self.receiver.quit().await,
        }
    }

    /// Whether an earlier daemon may not have got to telling the other QEMU that a guest
    /// comes, and it was not started for this.
    fn is_unsure(&self) -> bool {
        let is_new = self.record.step == TransferStep::Created;
        self.resumed && is_new && self.record.design.program.is_none()
    }

    /// Whether the QEMU at the other socket is the one that waits, or has the guest as it
    /// has come: another one may have been started there since. Where we have made up the
    /// socket's name, nobody else's is there; but one that runs a guest is somebody's by
    /// now.
    async fn is_ours(&mut self) -> Result<bool, QemuError> {
        let is_named_here = self.record.design.program.is_some();
        Ok(match self.receiver.ask(async |qemu| qemu.stand().await).await? {
            Stand::Runs => false,
            _ if is_named_here => true,
            Stand::Awaited if self.is_unsure() => {
                self.receiver.ask(async |qemu| qemu.expects().await).await?
            }
            Stand::Awaited => true,
            Stand::Still => !self.is_unsure(),
            Stand::Otherwise(_) => false,
        })
    }

    /// Puts away what is left; gives what there is to be said of the end.
    pub(super) async fn put_away(&mut self, outcome: &Outcome) -> Option<String> {
        // It may be gone already.
        let _ = std::fs::remove_file(stream_of(&self.record.design.destination));
        let left = match outcome {
            Outcome::There => self.put_away_source().await,
            Outcome::Stayed(_) | Outcome::Lost(_) => self.spared.then(|| {
                let socket = self.record.design.destination.display();
                format!("the QEMU at {socket} is left: it may be somebody else's by now")
            }),
        };
        let what = match outcome {
            Outcome::There => self.befallen.take(),
            Outcome::Stayed(why) => why.clone(),
            Outcome::Lost(why) => Some(why.clone()),
        };
        let parts: Vec<String> = [what, left].into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// Ends the QEMU that it has left; says what is in the way.
    async fn put_away_source(&mut self) -> Option<String> {
        let socket = self.record.design.source.display().to_string();
        match self.left().await {
            Ok(Left::Gone) => None,
            Ok(Left::Stands) if self.source.quit().await => None,
            Ok(Left::GoesOn) => Some(format!(
                "the QEMU at {socket}, which it has left, does something else by now"
            )),
            _ => Some(format!(
                "the QEMU that it has left, at {socket}, does not end: end it by hand"
            )),
        }
    }

    /// Records how it has ended.
    pub(super) fn close(&self, outcome: &Outcome, note: Option<&str>) -> Result<()> {
        let step = match outcome {
            Outcome::There => TransferStep::Completed,
            Outcome::Stayed(_) => TransferStep::Cancelled,
            Outcome::Lost(_) => TransferStep::Lost,
        };
        let report = matches!(outcome, Outcome::There).then(|| self.report());
        let note = note.map(str::to_owned);
        let end = TransferEnd { at: clock::now(), note: note.clone(), report };
        let failed = self.record.design.automatic && step == TransferStep::Cancelled;
        self.daemon.drs.ledger.change(&mut |roll| {
            let now = roll.transfers.iter().find(|one| one.id == self.record.id);
            let cancel = now.is_some_and(|one| one.cancel);
            let (record, end) = (self.record.clone(), Some(end.clone()));
            let mut entries =
                vec![Entry::Transfer(TransferRecord { step, cancel, end, ..record })];
            if failed {
                let why = note.clone().unwrap_or_else(|| "it was given up".into());
                lock(&self.daemon.drs.state).failures.insert(self.record.vm.clone(), why);
                entries.push(self.seat(roll, &self.record.design.from, false));
            }
            Ok(entries)
        })?;
        let (id, vm) = (self.record.id, &self.record.vm);
        tracing::info!(transfer = id, vm, note, "transfer {step:?}");
        Ok(())
    }
}
