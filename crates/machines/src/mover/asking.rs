//! What is asked of the VM, and what its answers mean.

use std::sync::Arc;

use sterna_core::mover::{At, Ended, Failure, GivenUp, Job};
use sterna_qemu::qmp::QmpError;
use sterna_qemu::{CopyState, GivenUp as Found, QemuError, Stats, VmHandle};
use sterna_state::VmMoveKind;

use super::Driver;

/// What QEMU says of a job that was given up (ECANCELED, in the C locale's words).
const CANCELLED: &str = "canceled";

/// What an error says of the VM.
fn failure(error: &QemuError) -> Failure {
    let words = error.to_string();
    match error {
        // That nobody listens is said by the system, and not by a connection.
        QemuError::Qmp(QmpError::Connect { nobody: true, .. }) => {
            Failure::Nobody(format!("QEMU has ended: {words}"))
        }
        QemuError::Qmp(QmpError::Gone | QmpError::Broken) => Failure::Cut(words),
        QemuError::Unserved { .. } => Failure::Unserved(words),
        error if error.is_gone() => Failure::Nobody(words),
        error if error.is_silent() => Failure::Silent(words),
        error if error.is_refusal() => Failure::Refused(words),
        _ => Failure::Other(words),
    }
}

impl Driver {
    /// The VM; reached, if it is not.
    pub(super) async fn vm(&mut self) -> Result<Arc<VmHandle>, Failure> {
        let vm = self.link.vm().await.map_err(|error| failure(&error))?;
        self.vm = Some(vm.clone());
        Ok(vm)
    }

    pub(super) async fn look(&mut self) -> Result<Job, Failure> {
        let vm = self.vm().await?;
        let state = vm.look(&self.copy).await.map_err(|error| failure(&error))?;
        self.one.note(|standing| standing.trouble = None);
        Ok(match state {
            CopyState::Copying { done, total } => Job::Copying { done, total },
            CopyState::Ready { done } => {
                // Of a quick one this is the first that is seen.
                self.done = self.done.max(done);
                self.note_ready();
                Job::Ready { done }
            }
            CopyState::Switching => Job::Switching,
            CopyState::Ended(None) => Job::Ended(Ended::Clean),
            CopyState::Ended(Some(why)) if why.contains(CANCELLED) => {
                Job::Ended(Ended::Cancelled)
            }
            CopyState::Ended(Some(why)) => Job::Ended(Ended::Failed(why)),
            CopyState::Unknown => Job::Unknown,
        })
    }

    pub(super) async fn find(&mut self) -> Result<At, Failure> {
        let vm = self.vm().await?;
        match vm.drive(&self.record.device).await {
            Ok(drive) if drive.image == self.record.destination => Ok(At::Destination),
            Ok(drive) if drive.image == self.record.source => Ok(At::Source),
            Ok(drive) => Ok(At::Elsewhere(drive.image)),
            Err(QemuError::NoDrive { .. }) => Ok(At::Nowhere),
            Err(error) => Err(failure(&error)),
        }
    }

    pub(super) async fn stats(&mut self) -> Result<Vec<(String, Stats)>, Failure> {
        self.vm().await?.stats().await.map_err(|error| failure(&error))
    }

    pub(super) async fn count_times(&mut self) -> Result<(), Failure> {
        let vm = self.vm().await?;
        let counts =
            async { vm.count_times(&vm.drive(&self.record.device).await?).await };
        self.counts_times = counts.await.map_err(|error: QemuError| failure(&error))?;
        Ok(())
    }

    async fn stop_counting(&mut self, vm: &VmHandle) {
        if !std::mem::replace(&mut self.counts_times, false) {
            return;
        }
        if let Ok(drive) = vm.drive(&self.record.device).await {
            // What is counted for nobody costs next to nothing.
            let _ = vm.stop_counting_times(&drive).await;
        }
    }

    pub(super) async fn begin(&mut self, speed: u64) -> Result<(), Failure> {
        let vm = self.vm().await?;
        let drive = vm.drive(&self.record.device).await;
        let drive = drive.map_err(|error| failure(&error))?;
        if drive.image != self.record.source {
            return Err(Failure::Other(self.is_elsewhere(&drive.image)));
        }
        let begun = vm.begin(&self.copy, &drive, speed).await;
        begun.map_err(|error| failure(&error))?;
        self.pace.begin();
        Ok(())
    }

    pub(super) async fn set_speed(&mut self, speed: u64) -> Result<(), Failure> {
        let vm = self.vm().await?;
        vm.set_speed(&self.copy, speed).await.map_err(|error| failure(&error))
    }

    pub(super) async fn complete(&mut self) -> Result<(), Failure> {
        let vm = self.vm().await?;
        vm.complete(&self.copy).await.map_err(|error| failure(&error))
    }

    pub(super) async fn call_off(&mut self) -> Result<(), Failure> {
        let vm = self.vm().await?;
        vm.call_off(&self.copy).await.map_err(|error| failure(&error))
    }

    pub(super) async fn give_up(&mut self) -> Result<GivenUp, Failure> {
        let served = self.destination_is_served();
        let vm = self.vm().await?;
        self.stop_counting(&vm).await;
        let found = vm.give_up(&self.copy, served).await;
        Ok(match found.map_err(|error| failure(&error))? {
            Found::Nothing => GivenUp::Nothing,
            Found::Something => GivenUp::Something,
            Found::Undone => GivenUp::Undone,
        })
    }

    pub(super) async fn put_away(&mut self) -> Result<(), Failure> {
        // QEMU has copied more since it was last looked at.
        self.done = self.done.max(self.total);
        let served = self.source_is_served();
        let vm = self.vm().await?;
        self.stop_counting(&vm).await;
        vm.put_away(&self.copy, served).await.map_err(|error| failure(&error))
    }

    /// Whether the destination is served, if it is a disk of ours. QEMU flushes what it
    /// forgets, and stands still with its guest until that is answered.
    fn destination_is_served(&self) -> bool {
        match &self.record.kind {
            VmMoveKind::Adopt(disk) => {
                self.machines.storage.engine.stats(disk.id).is_ok()
            }
            VmMoveKind::Move | VmMoveKind::Release(_) => true,
        }
    }

    /// The same of the source.
    fn source_is_served(&self) -> bool {
        match &self.record.kind {
            VmMoveKind::Release(disk) => {
                self.machines.storage.engine.stats(disk.id).is_ok()
            }
            VmMoveKind::Move | VmMoveKind::Adopt(_) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_socket_without_a_listener_says_that_qemu_has_ended() {
        let connect = |nobody| {
            let (socket, reason) = ("/run/q".into(), "refused".into());
            QemuError::from(QmpError::Connect { socket, reason, nobody })
        };
        assert!(matches!(failure(&connect(true)), Failure::Nobody(_)));
        assert!(matches!(failure(&connect(false)), Failure::Silent(_)));
        for cut in [QmpError::Gone, QmpError::Broken] {
            assert!(matches!(failure(&cut.into()), Failure::Cut(_)));
        }
    }
}
