//! Disks in figures, and in trouble: what the engine is asked for to see how they fare.

use std::sync::Arc;

use sterna_core::measure::Window;
use sterna_core::qos::Pool;

use super::{Engine, EngineError};
use crate::reactor::Reactor;
use crate::stats::{DiskProfile, DiskStats, DiskWindow, Reach};
use crate::troubles::Trouble;
use sterna_core::DiskId;

impl Engine {
    /// A disk in figures.
    pub fn stats(&self, disk: DiskId) -> Result<DiskStats, EngineError> {
        self.on_disk(disk, |disk, _| {
            let core = &disk.core;
            let in_flight = u32::try_from(core.in_flight()).unwrap_or(u32::MAX);
            core.counters.stats(core.connections, in_flight)
        })
    }

    /// Has `tell` called once when the next request of a disk comes, on the disk's reactor: it must
    /// not wait. Whoever was to be told before is not.
    pub fn tell_of_next_request(
        &self,
        disk: DiskId,
        tell: impl FnOnce() + Send + 'static,
    ) -> Result<(), EngineError> {
        self.on_disk(disk, |disk, _| disk.core.counters.told = Some(Box::new(tell)))
    }

    /// How a disk's image is reached, or the copy that a move makes of it; nothing if that is
    /// out of reach.
    pub fn reach(&self, disk: DiskId, copy: bool) -> Result<Option<Reach>, EngineError> {
        self.on_disk(disk, move |disk, _| disk.core.reach(copy))
    }

    /// What a disk's requests are like. Some 100 KiB are copied.
    pub fn profile(&self, disk: DiskId) -> Result<DiskProfile, EngineError> {
        self.on_disk(disk, |disk, _| {
            let core = &disk.core;
            let in_flight = u32::try_from(core.in_flight()).unwrap_or(u32::MAX);
            core.counters.profile(core.connections, in_flight)
        })
    }

    /// What disks did since the last call: those that did something since then or in
    /// the window before, or have requests under way. For one caller, again and again.
    pub fn take_windows(&self) -> Result<Vec<DiskWindow>, EngineError> {
        let all = self.call_all(Reactor::take_windows)?;
        Ok(all.into_iter().flatten().collect())
    }

    /// What was copied from and to datastores since the last call: the copier's reads
    /// and writes, and writes of guests that were mirrored. Only those where something
    /// was. Tell them apart with [`Budget::is`](crate::Budget::is).
    pub fn take_copied(&self) -> Result<Vec<(Arc<Pool>, Window)>, EngineError> {
        let taken =
            self.call_all(|reactor| reactor.cx.qos.take_copied(reactor.cx.now))?;
        let mut all: Vec<(Arc<Pool>, Window)> = Vec::new();
        for (pool, window) in taken.into_iter().flatten() {
            match all.iter_mut().find(|(known, _)| Arc::ptr_eq(known, &pool)) {
                Some((_, known)) => known.join(&window),
                None => all.push((pool, window)),
            }
        }
        Ok(all)
    }

    /// The disks that somebody should look at.
    pub fn troubles(&self) -> Result<Vec<(DiskId, Trouble)>, EngineError> {
        let all = self.call_all(Reactor::troubles)?;
        Ok(all.into_iter().flatten().collect())
    }
}
