//! The tick of a copy: what the guest notices of it, and how fast it may go on.

use sterna_api::{Guarding, Progress};
use sterna_core::guard::Observation;
use sterna_core::mirror::Allowance;
use sterna_core::{Nanos, measure};
use sterna_qemu::{Machine, QemuError};
use tokio::time::Instant;

use super::Mover;
use crate::jobs::Post;

impl Mover {
    /// One tick of the copy: what the guest does, what the copy may take.
    pub(super) async fn watch_over(
        &mut self,
        machine: &Machine,
        done: u64,
        total: u64,
    ) -> Result<(), QemuError> {
        let Some(window) = self.look_at_guest(machine).await? else { return Ok(()) };
        let gone = self.pace.look(&window);
        let copied = self.pace.note(done, window.span);
        self.done = self.done.max(done);
        self.total = self.total.max(total);
        let left = match total {
            // QEMU has not counted yet what there is to copy.
            0 => self.record.size,
            total => total.saturating_sub(done),
        };
        let seen = Observation {
            guest: &window,
            copied,
            gone,
            mirrored: Nanos(0),
            mirrored_writes: 0,
            // QEMU's copier uses no short gaps.
            idle_processors: Some(1.0),
        };
        let guard = &self.record.guard;
        let is_another = self.post.as_ref().is_none_or(|post| post.asked() != guard);
        if is_another {
            self.post = (!guard.is_none()).then(|| Post::of_qemu(guard));
        }
        let mut allowance = Allowance::default();
        let mut guarding: Option<Guarding> = None;
        if let Some(post) = self.post.as_mut().filter(|_| !self.record.paused) {
            allowance = post.step(&seen, left);
            guarding = Some(post.report(self.record.id, allowance));
        }
        let speed = self.speed(allowance);
        if self.told != Some(speed) {
            machine.set_speed(&self.copy, speed).await?;
            self.told = Some(speed);
        }
        let progress = self.progress(left);
        let application = self.watch.application();
        self.one.note(|standing| {
            standing.progress = Some(progress);
            standing.guarding = guarding;
            standing.application = application;
        });
        Ok(())
    }

    /// Both sides are the same: what was left at the last tick is so no more.
    pub(super) fn note_ready(&self) {
        let progress = Progress { eta_s: None, ..self.progress(0) };
        self.one.note(|standing| standing.progress = Some(progress));
    }

    /// What the guest did since the last look; nothing at the first.
    pub(super) async fn look_at_guest(
        &mut self,
        machine: &Machine,
    ) -> Result<Option<measure::Window>, QemuError> {
        let all = machine.stats().await?;
        let now = Instant::now();
        let found = all.into_iter().find(|(device, _)| *device == self.record.device);
        let Some((_, stats)) = found else { return Ok(None) };
        let last = self.last.replace((stats.clone(), now));
        let window = last.map(|(before, at)| stats.since(&before, (now - at).into()));
        if let Some(window) = &window {
            self.watch.add(window);
        }
        Ok(window)
    }

    pub(super) fn speed(&self, allowance: Allowance) -> u64 {
        self.pace.speed(allowance, self.record.rate, self.record.paused)
    }

    fn progress(&self, left: u64) -> Progress {
        let (total, rate) = (self.record.size, self.pace.rate());
        Progress {
            total,
            synced: total.saturating_sub(left),
            copied: self.done,
            rate,
            eta_s: (rate > 0.0).then(|| left as f64 / rate),
            ..Progress::default()
        }
    }
}
