//! The switch-over, which QEMU does and only QEMU can tell the outcome of.
//!
//! QEMU switches over at the first moment at which nothing is left to copy. Before that
//! moment it can be called off, and is: when somebody cancels the move, and when a guest
//! goes on writing faster than the destination takes ([`CATCH_UP`]). Whether that came in
//! time, QEMU is asked again. libvirt calls nothing off that it has told QEMU to do.

use std::time::Duration;

use sterna_core::mirror::Allowance;
use sterna_qemu::{Machine, QemuError};
use tokio::time::Instant;

use super::{AGAIN, Halt, Mover, Outcome, both};
use crate::error::DaemonError;
use crate::store::Step;

/// How long QEMU may copy at full speed for the last writes to be on both sides: what a
/// guest may have to bear once, and hundreds of times what it takes otherwise.
const CATCH_UP: Duration = Duration::from_secs(60);

/// What QEMU says of a place where there is no room, and of one where a quota lets it
/// have none (ENOSPC and EDQUOT, in the C locale's words).
const FULL: &str = "No space left on device";
const QUOTA: &str = "Disk quota exceeded";

/// What this daemon has told QEMU of the switch-over.
#[derive(Clone, Copy, Debug)]
pub(super) enum Told {
    /// Nothing yet.
    Nothing,
    /// To switch over, at this moment.
    Complete(Instant),
    /// Not to, after all, at this moment.
    CallOff(Instant),
}

impl Mover {
    /// Both sides were the same, and QEMU waits.
    pub(super) async fn at_the_switch(&mut self, machine: &Machine) -> Result<(), Halt> {
        let is_late = |at: Instant| at.elapsed() >= CATCH_UP;
        match self.told_to_switch {
            // Whether it has heard that is not known if it did not answer.
            Told::CallOff(at) if at.elapsed() < AGAIN => Ok(()),
            Told::CallOff(_) => self.call_off(machine).await,
            _ if self.record.cancel => self.call_off(machine).await,
            Told::Complete(at) if is_late(at) => self.call_off(machine).await,
            // A pause that comes when it is under way comes too late.
            Told::Nothing
                if !self.record.paused || self.record.step == Step::Switching =>
            {
                self.switch_over(machine).await
            }
            Told::Nothing | Told::Complete(_) => Ok(()),
        }
    }

    async fn switch_over(&mut self, machine: &Machine) -> Result<(), Halt> {
        // What was asked for a moment ago counts.
        let id = self.record.id;
        if !self.daemon.store.vm_move_switches(id).map_err(DaemonError::from)? {
            self.is_asked = true;
            return Ok(());
        }
        self.record.step = Step::Switching;
        if !self.is_in_its_place() || !self.seal()? {
            // QEMU was not told, and is not to be: what it copies to is no copy of ours.
            let (_, destination) = both(&self.record);
            self.called_off = Some(format!(
                "{destination} is not what was made for the copy: it was not switched over"
            ));
            return self.call_off(machine).await;
        }
        // What is written meanwhile is all that is left, and it is not to take long.
        machine.set_speed(&self.copy, 0).await?;
        machine.complete(&self.copy).await?;
        self.told_to_switch = Told::Complete(Instant::now());
        Ok(())
    }

    async fn call_off(&mut self, machine: &Machine) -> Result<(), Halt> {
        let told = machine.call_off(&self.copy).await;
        // What is not answered in time may be carried out all the same.
        if told.is_ok() || told.as_ref().is_err_and(QemuError::is_silent) {
            let again = Told::CallOff(Instant::now());
            let before = std::mem::replace(&mut self.told_to_switch, again);
            if !matches!(before, Told::CallOff(_)) {
                tracing::info!(migration = self.record.id, "a switch-over is called off");
            }
        }
        Ok(told?)
    }

    /// The copy has ended, in whatever way: where is the disk?
    pub(super) async fn judge(
        &self,
        machine: &Machine,
        error: Option<String>,
    ) -> Result<Outcome, Halt> {
        let drive = match machine.drive(&self.record.device).await {
            Err(QemuError::NoDrive { .. }) if self.record.step == Step::Switching => {
                return Ok(Outcome::Torn("the disk was taken away at the switch-over"));
            }
            found => found?,
        };
        if drive.image == self.record.destination {
            return Ok(Outcome::Moved);
        }
        // Unless QEMU says that the copy failed, it may have been there since: somebody may
        // have put an overlay on it.
        if error.is_none() && drive.image != self.record.source {
            return Ok(Outcome::Torn("the disk is at neither image"));
        }
        let why = match error {
            Some(reason) if reason.contains(QUOTA) => Some(format!(
                "a quota lets the disk have no more room on datastore {}: raise it, or \
                 make room, and move it again (QEMU's copy failed: {reason})",
                self.record.to
            )),
            Some(reason) if reason.contains(FULL) => Some(format!(
                "datastore {} is full: make room there, and move it again (QEMU's copy \
                 failed: {reason})",
                self.record.to
            )),
            Some(reason) if !reason.contains("canceled") => {
                Some(format!("QEMU's copy failed: {reason}"))
            }
            _ if self.called_off.is_some() => self.called_off.clone(),
            _ if self.record.cancel => None,
            _ if matches!(self.told_to_switch, Told::CallOff(_)) => Some(format!(
                "{} did not catch up with what the guest writes in {} s: it was not \
                 switched over",
                self.record.to,
                CATCH_UP.as_secs()
            )),
            _ => Some("somebody else gave QEMU's copy up".to_owned()),
        };
        Ok(Outcome::Stayed(why))
    }

    /// QEMU knows nothing of the copy any more. While it was to switch over, it may have
    /// done so, and may have been started anew since, with the old image: then what the
    /// guest wrote in between is in the other one. libvirt would know of that, and has
    /// nothing to say of a copy that it has called off.
    pub(super) async fn judge_unseen(&self, machine: &Machine) -> Result<Outcome, Halt> {
        let told = self.told_to_switch;
        let is_known = machine.makes_files() && matches!(told, Told::CallOff(_));
        match self.judge(machine, None).await? {
            Outcome::Stayed(_) if self.record.step == Step::Switching && !is_known => {
                Ok(Outcome::Torn("QEMU knows nothing of the switch-over"))
            }
            outcome => Ok(outcome),
        }
    }

    /// Nobody will watch over the copy for a while.
    pub(super) async fn stand_still(&self, machine: &Machine) {
        let halted = self.pace.speed(Allowance::default(), None, true);
        if let Err(error) = machine.set_speed(&self.copy, halted).await {
            tracing::warn!(migration = self.record.id, %error, "the copy goes on alone");
        }
    }
}
