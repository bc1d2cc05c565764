//! The end of a move: what is left is put away, and the record gets its figures.
//!
//! A machine that does not answer keeps nobody waiting: the end is recorded, and with it
//! that the machine may still have something of the copy. That is given up as soon as it
//! answers ([`Mover::tidy`]), if need be by a later daemon.

use std::time::Duration;

use sterna_api::Report;
use sterna_qemu::{CopyState, GivenUp, QemuError};
use tokio::time::sleep;

use super::destination::{allocated, both, left_behind};
use super::{AGAIN, Halt, Making, Mover, Outcome};
use crate::clock;
use crate::daemon::lock;
use crate::error::DaemonError;
use crate::store::{Ending, Leaves, Step, StoreError};
use crate::vms::Kind;

/// The state is an old one, or somebody has put another image in the copy's place.
const NO_COPY: &str = "the image that QEMU has copied to is not the one that was made";

/// How a move has ended, to be recorded.
#[derive(Clone, Debug)]
pub(super) struct Closing {
    step: Step,
    ending: Ending,
    /// Whether a disk of ours that it has to do with may be the truth.
    opens: bool,
    leaves: Leaves,
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
            Ok(Outcome::Torn(why)) => Ok(Some(self.torn(why))),
            Err(halt) => self.halted(halt).await,
        };
        match ended {
            Ok(Some(closing)) => self.record_end(closing).await,
            Ok(None) => self.again(),
            Err(error) => {
                self.not_recorded(&error);
                self.again()
            }
        }
    }

    /// Records how it has ended; what led there is not asked again, and not done again.
    pub(super) async fn record_end(&mut self, closing: Closing) -> Option<Duration> {
        let Closing { step, ending, opens, leaves } = closing.clone();
        let id = self.record.id;
        let note = ending.note.clone().unwrap_or_default();
        if let Err(error) = self.daemon.store.vm_move_ends(id, step, ending, leaves) {
            self.not_recorded(&error);
            self.closing = Some(closing);
            return self.again();
        }
        tracing::info!(migration = id, note, "move {step}");
        // What may be the truth is for all at once.
        if opens || !leaves.untidy {
            self.settle(opens);
        }
        lock(&self.daemon.vms.moves).remove(&id);
        // Policies may end with it.
        self.daemon.service.bell.ring();
        if leaves.untidy {
            self.tidy().await;
        }
        None
    }

    /// The disk of an adoption that has ended, if there is one, is like any other from now
    /// on, or nobody's.
    fn settle(&self, opens: bool) {
        let Kind::Adopt(disk) = &self.record.kind else { return };
        match opens {
            true => self.daemon.open_adopted(disk),
            false => self.daemon.put_aside(disk),
        }
    }

    fn not_recorded(&self, error: &StoreError) {
        let (migration, error) = (self.record.id, error.with_cause());
        tracing::error!(migration, error, "not recorded");
    }

    /// The destination does not say of itself what it is.
    fn not_said(&self, error: &DaemonError) {
        let (migration, why) = (self.record.id, error.to_string());
        tracing::warn!(migration, why, "the image does not say what it is");
        self.one.note(|standing| standing.trouble = Some(why));
    }

    fn again(&self) -> Option<Duration> {
        (!self.is_stopping()).then_some(AGAIN)
    }

    /// The disk is at the destination.
    async fn moved(&mut self) -> Result<Option<Closing>, StoreError> {
        let id = self.record.id;
        // QEMU has copied more since it was last looked at.
        self.done = self.done.max(self.total);
        for step in [Step::Switching, Step::Committed] {
            if self.record.step.leads_to(step) && self.record.step != step {
                // Somebody else may have had QEMU switch over.
                if step == Step::Committed {
                    match self.seal() {
                        Ok(true) => {}
                        Ok(false) => return Ok(Some(self.torn(NO_COPY))),
                        Err(error) => {
                            self.not_said(&error);
                            return Ok(None);
                        }
                    }
                }
                self.daemon.store.vm_move_advances(id, step)?;
                self.record.step = step;
            }
        }
        let put_away = match self.link.machine().await {
            Ok(machine) => {
                self.stop_counting().await;
                machine.put_away(&self.copy, self.source_is_served()).await
            }
            Err(error) => Err(error),
        };
        let kept = left_behind(&self.record);
        let next = self.next_start();
        let parts = [Some(kept), next, put_away.err().map(|error| error.to_string())];
        let note: Vec<String> = parts.into_iter().flatten().collect();
        let note = note.join("; ");
        Ok(Some(self.closing(Step::Completed, Some(note))))
    }

    /// The disk is where it was.
    async fn stayed(
        &mut self,
        why: Option<String>,
    ) -> Result<Option<Closing>, StoreError> {
        if self.record.step == Step::Switching
            && let Err(error) = self.unseal()
        {
            self.not_said(&error);
            return Ok(None);
        }
        self.copies_again()?;
        let given_up = match self.link.machine().await {
            Ok(machine) => {
                self.stop_counting().await;
                machine.give_up(&self.copy, self.destination_is_served()).await
            }
            Err(error) => Err(error),
        };
        if given_up.as_ref().is_ok_and(|found| found.is_something()) {
            self.is_seen();
        }
        let is_undone = matches!(given_up, Ok(GivenUp::Undone));
        // Somebody else may have had QEMU switch over, at the last moment.
        if self.is_there_after_all(is_undone).await && self.record.step == Step::Copying {
            return self.moved().await;
        }
        Ok(Some(self.cancelled(why, given_up.err()).await))
    }

    /// Where the machine says that its disk is.
    async fn image(&self) -> Result<String, QemuError> {
        let machine = self.link.machine().await?;
        Ok(machine.drive(&self.record.device).await?.image)
    }

    /// Whether the machine says that its disk is at the destination.
    async fn is_at_destination(&self) -> Result<bool, QemuError> {
        Ok(self.image().await? == self.record.destination)
    }

    /// The same; and a destination is no copy unless the machine says that its disk is
    /// where it was, or that the copy was `undone` before it switched over.
    async fn is_there_after_all(&mut self, undone: bool) -> bool {
        let image = self.image().await;
        let is_copy = match &image {
            Ok(image) => *image == self.record.source,
            Err(QemuError::NoDrive { .. }) => false,
            Err(_) => undone,
        };
        if !is_copy && self.making == Making::Ours {
            self.making = Making::Unknown;
        }
        image.is_ok_and(|image| image == self.record.destination)
    }

    /// Something is wrong. Ends the move, or leaves it to be looked at again.
    async fn halted(&mut self, halt: Halt) -> Result<Option<Closing>, StoreError> {
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
                Ok(None)
            }
            (_, Halt::Machine(error)) if error.is_gone() || error.is_silent() => {
                Ok(Some(self.cancelled(Some(why), Some(error)).await))
            }
            _ => self.stayed(Some(why)).await,
        }
    }

    /// QEMU has gone while it switched over.
    async fn lost(&mut self) -> Result<Option<Closing>, StoreError> {
        // It may be the connection alone that has ended, and one that does not answer may
        // be there.
        match self.look().await {
            Ok(CopyState::Unknown) => {}
            Err(error) if error.is_gone() => {}
            Ok(_) => return Ok(None),
            Err(error) => {
                self.one.note(|standing| standing.trouble = Some(error.to_string()));
                return Ok(None);
            }
        }
        // libvirt knows of a machine that is off what its disks are; and so does one that
        // has been started since. Where that is the source, it may be out of date.
        match self.is_at_destination().await {
            Ok(true) => self.moved().await,
            Err(error) if error.is_silent() => Ok(None),
            _ => Ok(Some(self.torn("QEMU ended while it switched over"))),
        }
    }

    async fn look(&self) -> Result<CopyState, QemuError> {
        self.link.machine().await?.look(&self.copy).await
    }

    /// Nobody knows where the last writes are: nothing is removed.
    fn torn(&self, why: &str) -> Closing {
        let (source, destination) = both(&self.record);
        let note = format!(
            "{why}, so its last writes may be in either image; both are kept: {source} \
             and {destination}"
        );
        // An image that is not the one that was made is no question of which of two.
        let leaves = Leaves { unclear: why != NO_COPY, ..Leaves::default() };
        Closing { opens: true, leaves, ..self.closing(Step::Cancelled, Some(note)) }
    }

    /// The disk is where it was; the destination goes.
    async fn cancelled(
        &mut self,
        why: Option<String>,
        still_has: Option<QemuError>,
    ) -> Closing {
        let is_had = still_has.is_some();
        let still_has = still_has.filter(|error| !error.is_gone());
        let kept = match (&still_has, &self.record.kind) {
            (Some(_), Kind::Adopt(disk)) => Some(format!("disk {} goes then", disk.name)),
            _ => self.remove_destination().await,
        };
        // One that has gone has nothing; but it may be the connection alone.
        let untidy = is_had || self.making == Making::Ours;
        let opens = kept.is_some() && self.is_sealed();
        let left = still_has.map(|error| {
            tracing::warn!(migration = self.record.id, %error, "not yet tidy");
            let what = "what QEMU still has of the copy is given up once it";
            match error {
                QemuError::Unserved { .. } => format!("{what} is served again"),
                _ => format!("{what} answers"),
            }
        });
        let parts = [why, left, kept];
        let note: Vec<String> = parts.into_iter().flatten().collect();
        let note = (!note.is_empty()).then(|| note.join("; "));
        let leaves = Leaves { untidy, ..Leaves::default() };
        Closing { leaves, opens, ..self.closing(Step::Cancelled, note) }
    }

    /// QEMU itself says that the disk is where it was. From here on whoever is asked says
    /// so, though QEMU forget it.
    fn copies_again(&mut self) -> Result<(), StoreError> {
        if self.record.step == Step::Switching {
            self.daemon.store.vm_move_advances(self.record.id, Step::Copying)?;
            self.record.step = Step::Copying;
        }
        Ok(())
    }

    fn closing(&self, step: Step, note: Option<String>) -> Closing {
        let record = &self.record;
        let at = clock::now();
        let duration_s = at.saturating_sub(record.started) as f64;
        let report = Report {
            duration_s,
            copied: self.done,
            // What was seen of it may be a part. Of less than a second nothing is known.
            average_rate: match duration_s {
                0.0 => self.pace.average(),
                _ => self.done as f64 / duration_s,
            },
            allocated: allocated(&self.daemon, record),
            ..Report::default()
        };
        let application = self.watch.application();
        let ending = Ending { at, note, application, report: Some(report) };
        let opens = step == Step::Completed;
        Closing { step, ending, opens, leaves: Leaves::default() }
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

    /// Gives up what a machine still has of the copy, as soon as it answers, and removes
    /// what is left of it here.
    pub(super) async fn tidy(&mut self) {
        let id = self.record.id;
        let mut is_told = false;
        while !self.is_stopping() {
            sleep(AGAIN).await;
            let (again, why) = match self.give_up().await {
                Err(error) if error.is_silent() => continue,
                Err(error) if !error.is_gone() => (true, Some(error.to_string())),
                _ => {
                    let why = self.remove_destination().await;
                    // What may be somebody's is kept for good.
                    (self.making == Making::Ours, why)
                }
            };
            if let Some(why) = why
                && !std::mem::replace(&mut is_told, true)
            {
                tracing::warn!(migration = id, why, "not tidy");
            }
            if again {
                continue;
            }
            if let Err(error) = self.daemon.store.vm_move_is_tidy(id) {
                self.not_recorded(&error);
            }
            tracing::info!(migration = id, "nothing is left of the copy at its machine");
            self.settle(self.is_sealed());
            return;
        }
    }

    /// Has a machine give up what it has of the copy. That it is gone may be said of a
    /// connection alone, so it is asked twice.
    async fn give_up(&mut self) -> Result<(), QemuError> {
        let served = self.destination_is_served();
        let found = match self.rest_of_copy(served).await {
            Err(error) if error.is_gone() => self.rest_of_copy(served).await?,
            found => found?,
        };
        if found.is_something() {
            self.is_seen();
        }
        self.is_there_after_all(found == GivenUp::Undone).await;
        Ok(())
    }

    async fn rest_of_copy(&self, served: bool) -> Result<GivenUp, QemuError> {
        self.link.machine().await?.give_up(&self.copy, served).await
    }
}
