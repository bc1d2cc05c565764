//! The end of a move: what is left is put away, and the record gets its figures.

use std::time::Duration;

use sterna_api::Report;
use sterna_qemu::QemuError;
use tokio::time::sleep;

use super::destination::{allocated, both, left_behind};
use super::{AGAIN, Halt, Mover, Outcome};
use crate::clock;
use crate::daemon::lock;
use crate::store::{Ending, Step, StoreError};
use crate::vms::Kind;

/// What has become of a move's record.
enum End {
    /// It has ended.
    Recorded,
    /// It is to be looked at again.
    Open,
}

impl Mover {
    /// Ends the move as it turned out; or says after which time to try again.
    pub(super) async fn end(
        &mut self,
        outcome: Result<Outcome, Halt>,
    ) -> Option<Duration> {
        let ended = match outcome {
            Ok(Outcome::Left) => return None,
            Ok(Outcome::Moved) => self.moved().await,
            Ok(Outcome::Stayed(why)) => self.stayed(why).await,
            Ok(Outcome::Torn) => self.torn("QEMU knows nothing of the switch-over"),
            Err(halt) => self.halted(halt).await,
        };
        match ended {
            Ok(End::Recorded) => {
                self.forget();
                return None;
            }
            Ok(End::Open) => {}
            Err(error) => {
                let id = self.record.id;
                tracing::error!(
                    migration = id,
                    error = error.with_cause(),
                    "not recorded"
                );
            }
        }
        (!self.is_stopping()).then_some(AGAIN)
    }

    /// The move is under way no more.
    fn forget(&self) {
        lock(&self.daemon.vms.moves).remove(&self.record.id);
        // Policies may end with it.
        self.daemon.service.bell.ring();
    }

    /// The disk is at the destination.
    async fn moved(&mut self) -> Result<End, StoreError> {
        let id = self.record.id;
        let store = self.daemon.store.clone();
        for step in [Step::Switching, Step::Committed] {
            if self.record.step.leads_to(step) && self.record.step != step {
                // Somebody else may have had QEMU switch over.
                if step == Step::Committed
                    && let Err(error) = self.seal()
                {
                    let why = error.to_string();
                    tracing::warn!(migration = id, why, "not sealed");
                    self.one.note(|standing| standing.trouble = Some(why));
                    return Ok(End::Open);
                }
                store.vm_move_advances(id, step)?;
                self.record.step = step;
            }
        }
        let put_away = match self.link.machine().await {
            Ok(machine) => {
                self.stop_counting().await;
                machine.put_away(&self.copy).await
            }
            Err(error) => Err(error),
        };
        let kept = left_behind(&self.record);
        let note = match put_away {
            Ok(()) => kept,
            Err(error) => format!("{kept}; {error}"),
        };
        self.close(Step::Completed, Some(note))?;
        self.open();
        Ok(End::Recorded)
    }

    /// The disk is where it was.
    async fn stayed(&mut self, why: Option<String>) -> Result<End, StoreError> {
        let given_up = match self.link.machine().await {
            Ok(machine) => {
                self.stop_counting().await;
                machine.give_up(&self.copy).await
            }
            Err(error) => Err(error),
        };
        let left = given_up.err().map(|error| format!("QEMU may still have it: {error}"));
        self.cancelled(why, left).await
    }

    /// Something is wrong. Ends the move, or leaves it to be looked at again.
    async fn halted(&mut self, halt: Halt) -> Result<End, StoreError> {
        let id = self.record.id;
        let why = match &halt {
            Halt::Machine(error) => error.to_string(),
            Halt::Here(error) => error.to_string(),
        };
        tracing::warn!(migration = id, why, step = %self.record.step, "a move halts");
        match (self.record.step, halt) {
            (Step::Switching, Halt::Machine(error)) if error.is_gone() => {
                self.lost().await
            }
            // Only the machine can say where the disk is; it is asked again.
            (Step::Switching | Step::Committed, _) => {
                self.one.note(|standing| standing.trouble = Some(why));
                Ok(End::Open)
            }
            (_, Halt::Machine(error)) if error.is_gone() || error.is_silent() => {
                let silent = error.is_silent();
                let ended = self.cancelled(Some(why), None).await;
                if silent && ended.is_ok() {
                    self.tidy().await;
                }
                ended
            }
            _ => self.stayed(Some(why)).await,
        }
    }

    /// QEMU has gone while it switched over.
    async fn lost(&mut self) -> Result<End, StoreError> {
        // libvirt knows of a machine that is off what its disks are; and so does one that
        // has been started since. Where that is the source, it may be out of date.
        if let Ok(machine) = self.link.machine().await
            && let Ok(drive) = machine.drive(&self.record.device).await
            && drive.image == self.record.destination
        {
            return self.moved().await;
        }
        self.torn("QEMU ended while it switched over")
    }

    /// Nobody knows where the last writes are: nothing is removed.
    fn torn(&mut self, why: &str) -> Result<End, StoreError> {
        let (source, destination) = both(&self.record);
        let note = format!(
            "{why}, so its last writes may be in either image; both are kept: {source} \
             and {destination}"
        );
        self.close(Step::Cancelled, Some(note))?;
        self.open();
        Ok(End::Recorded)
    }

    /// A disk of ours that was adopted, or may have been, is one like any other.
    fn open(&self) {
        if let Kind::Adopt(disk) = &self.record.kind {
            self.daemon.open_adopted(disk);
        }
    }

    /// Records that the disk is where it was; the destination goes.
    async fn cancelled(
        &mut self,
        why: Option<String>,
        left: Option<String>,
    ) -> Result<End, StoreError> {
        if self.record.step == Step::Switching {
            self.daemon.store.vm_move_advances(self.record.id, Step::Copying)?;
            self.record.step = Step::Copying;
        }
        let kept = self.remove_destination().await;
        let parts = [why, left, kept];
        let note: Vec<String> = parts.into_iter().flatten().collect();
        let note = (!note.is_empty()).then(|| note.join("; "));
        self.close(Step::Cancelled, note)?;
        Ok(End::Recorded)
    }

    fn close(&self, step: Step, note: Option<String>) -> Result<(), StoreError> {
        let record = &self.record;
        let copying = self.began.elapsed().as_secs_f64();
        let report = Report {
            duration_s: clock::now().saturating_sub(record.started) as f64,
            copied: self.done,
            average_rate: self.done as f64 / copying.max(1e-3),
            allocated: allocated(&self.daemon, record),
            ..Report::default()
        };
        let application = self.watch.application();
        tracing::info!(
            migration = record.id,
            note = note.as_deref().unwrap_or(""),
            "move {step}"
        );
        let at = clock::now();
        let ending = Ending { at, note, application, report: Some(report) };
        self.daemon.store.vm_move_ends(record.id, step, ending)
    }

    async fn stop_counting(&self) {
        if !self.counts_times {
            return;
        }
        if let Ok(machine) = self.link.machine().await
            && let Ok(drive) = machine.drive(&self.record.device).await
        {
            // What is counted for nobody costs next to nothing.
            let _ = machine.stop_counting_times(&drive).await;
        }
    }

    /// Gives up what a machine that did not answer still has of the copy, as soon as it
    /// answers.
    async fn tidy(&mut self) {
        self.forget();
        while !self.is_stopping() {
            sleep(AGAIN).await;
            let given_up = match self.link.machine().await {
                Ok(machine) => machine.give_up(&self.copy).await,
                Err(error) => Err(error),
            };
            match given_up {
                Err(error @ QemuError::Unending { .. }) => {
                    tracing::warn!(migration = self.record.id, %error, "not yet tidy");
                }
                Err(error) if error.is_silent() => {}
                _ => {
                    if let Some(why) = self.remove_destination().await {
                        tracing::warn!(migration = self.record.id, why, "left behind");
                    }
                    return;
                }
            }
        }
    }
}
