//! How a guest that was sent comes to run at the other QEMU.
//!
//! **Never from older memory.** Once the other QEMU may have run the guest, what is left in
//! the old one is older than the disks. So the commit is undone only where this process
//! itself has told the other QEMU to run it for the first time, that has refused, and the
//! guest stands there as it has come. A daemon that finds a commit does not know what was
//! told: it goes on telling the other QEMU.
//!
//! A guest that was told to run, and that something has befallen since (it was shut down,
//! it has crashed, it is being dumped), is at the other QEMU all the same: the transfer has
//! ended, and what is the matter is said. So it is with one that had come like that.

use std::mem;

use sterna_qemu::qmp::{PATIENCE, QmpError};
use sterna_qemu::{QemuError, Stand};
use tokio::time::{Instant, sleep};

use super::ends::Left;
use super::mover::{Mover, Outcome, SHORT, Trouble};
use super::qemu::is_broken;
use crate::store::TransferStep;

impl Mover {
    /// All has been sent: has the guest run at the other QEMU. What an earlier round, or an
    /// earlier daemon, has had run where it was does not run there as well.
    pub(super) async fn arrive(&mut self) -> Result<Outcome, Trouble> {
        let is_committed = self.record.step == TransferStep::Committed;
        if is_committed {
            match self.stand().await {
                Ok(Stand::Still) => {}
                Ok(stand) => return Ok(self.there(stand)),
                Err(error) => return self.without_receiver(error).await,
            }
        }
        let left = self.left().await?;
        // After the commit it is of no matter what else the old one does.
        if left == Left::GoesOn && (!is_committed || self.source.run().await?.running) {
            if is_committed {
                self.uncommit()?;
            }
            return self.take_back(Some("it goes on where it was".into())).await;
        }
        if !is_committed && let Some(outcome) = self.hand_over(left).await? {
            return Ok(outcome);
        }
        self.have_it_run().await
    }

    /// Makes it the other QEMU's; gives how it ends, if it does not become that.
    async fn hand_over(&mut self, left: Left) -> Result<Option<Outcome>, Trouble> {
        if let Err(why) = self.wait_until_come().await {
            return self.take_back(Some(why)).await.map(Some);
        }
        // Where its own QEMU has gone, all of it that there is has come.
        let heeds = left == Left::Stands;
        match self.commit(heeds) {
            Ok(true) => Ok(None),
            Ok(false) => self.take_back(None).await.map(Some),
            Err(error) if !heeds => {
                Err(Trouble(format!("it cannot be recorded: {error}")))
            }
            Err(error) => {
                // It may be recorded all the same.
                self.uncommit()?;
                let why = format!("it cannot be recorded: {error}");
                self.take_back(Some(why)).await.map(Some)
            }
        }
    }

    async fn have_it_run(&mut self) -> Result<Outcome, Trouble> {
        let may_have_run = mem::replace(&mut self.may_have_run, true);
        match self.receiver.ask(async |qemu| qemu.go_on().await).await {
            Ok(()) => {}
            Err(error) if error.is_refusal() => {
                self.may_have_run = may_have_run;
                return self.refused(error).await;
            }
            Err(error) => return self.without_receiver(error).await,
        }
        match self.stand().await {
            Ok(Stand::Still) => {
                Err(Trouble("the QEMU that it has gone to does not run it".into()))
            }
            Ok(stand) => Ok(self.there(stand)),
            Err(error) => self.without_receiver(error).await,
        }
    }

    /// The other QEMU does not run it, in its own words.
    async fn refused(&mut self, error: QemuError) -> Result<Outcome, Trouble> {
        match self.stand().await {
            Ok(Stand::Still) if self.may_have_run => Err(Trouble(format!(
                "the QEMU that it has gone to: {error}; it may have run there before, so \
                 no other may run it"
            ))),
            Ok(Stand::Still) => self.undo(error).await,
            Ok(stand) => Ok(self.there(stand)),
            Err(error) => self.without_receiver(error).await,
        }
    }

    /// How it goes with the guest at the other QEMU. One that waits for a guest after the
    /// commit is another one: ours has ended.
    async fn stand(&mut self) -> Result<Stand, QemuError> {
        match self.receiver.ask(async |qemu| qemu.stand().await).await? {
            Stand::Awaited => Err(QmpError::Gone.into()),
            stand => Ok(stand),
        }
    }

    fn there(&mut self, stand: Stand) -> Outcome {
        if let Stand::Otherwise(word) = stand {
            let (vm, to) = (&self.record.vm, &self.record.design.to);
            self.befallen = Some(format!(
                "{vm} has come to {to} and does not run there: QEMU says {word}"
            ));
        }
        // Where a daemon was killed, nobody has seen for how long.
        if let Some((at, before)) = self.sent_at.filter(|_| !self.resumed) {
            self.held_ms = Some(before + at.elapsed().as_secs_f64() * 1e3);
        }
        Outcome::There
    }

    /// Waits until the other QEMU has taken in all that was sent.
    async fn wait_until_come(&mut self) -> Result<(), String> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.has_come().await {
                Ok(true) => return Ok(()),
                Ok(false) if Instant::now() < deadline => sleep(SHORT).await,
                Ok(false) => return Err("the QEMU that it goes to takes too long".into()),
                Err(error) if is_broken(&error) && Instant::now() < deadline => {}
                Err(error) => {
                    self.deaf = error.is_silent();
                    return Err(format!(
                        "the QEMU that it was sent to does not take it: {error}"
                    ));
                }
            }
        }
    }
}
