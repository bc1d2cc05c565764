//! The tick of a copy: what the guest notices of it, and how fast it may go on.

use sterna_api::{Guarding, Progress};
use sterna_core::Nanos;
use sterna_core::guard::Observation;
use sterna_core::measure::Window;
use sterna_core::mirror::Allowance;
use sterna_core::mover::{Failure, Job, Watched};
use sterna_moves::{GuardRunner, first_allowance};
use tokio::time::Instant;

use super::Driver;

impl Driver {
    /// What the guest does, and what the copy may take; before it has begun, the former.
    pub(super) async fn watch(&mut self, job: Option<&Job>) -> Result<Watched, Failure> {
        let (there, window) = self.look_at_guest().await?;
        let (Some(window), Some(job)) = (window, job) else {
            let first = first_allowance(&self.record.guard);
            return Ok(Watched { there, allowed: self.pace.allowed(first) });
        };
        let gone = self.pace.look(&window);
        let (done, left) = match *job {
            // QEMU has not counted yet what there is to copy.
            Job::Copying { done, total: 0 } => (done, self.record.size),
            Job::Copying { done, total } => {
                self.total = self.total.max(total);
                (done, total.saturating_sub(done))
            }
            Job::Ready { done } => (done, 0),
            Job::Switching | Job::Ended(_) | Job::Unknown => (self.done, 0),
        };
        let copied = self.pace.note(done, window.span);
        self.done = self.done.max(done);
        let seen = Observation {
            guest: &window,
            copied,
            idle: gone,
            mirror_wait: Nanos(0),
            mirrored_writes: 0,
            // QEMU's copier uses no short gaps.
            idle_processors: Some(1.0),
        };
        let (allowance, guarding) = self.guard(&seen, left);
        let progress = self.progress(left);
        let application = self.watch.application();
        self.one.note(|standing| {
            standing.progress = Some(progress);
            standing.guarding = guarding;
            standing.application = application;
        });
        Ok(Watched { there, allowed: self.pace.allowed(allowance) })
    }

    /// What the guard lets the copy have, if there is one.
    fn guard(
        &mut self,
        seen: &Observation<'_>,
        left: u64,
    ) -> (Allowance, Option<Guarding>) {
        let guard = &self.record.guard;
        let is_another =
            self.runner.as_ref().is_none_or(|runner| runner.asked() != guard);
        if is_another {
            self.runner = (!guard.is_none()).then(|| GuardRunner::of_qemu(guard));
        }
        match self.runner.as_mut().filter(|_| !self.record.paused) {
            Some(runner) => {
                let allowance = runner.step(seen, left);
                (allowance, Some(runner.report(self.record.id, allowance)))
            }
            None => (Allowance::default(), None),
        }
    }

    /// Both sides are the same: what was left at the last tick is so no more.
    pub(super) fn note_ready(&self) {
        let progress = Progress { eta_s: None, ..self.progress(0) };
        self.one.note(|standing| standing.progress = Some(progress));
    }

    /// Whether the VM has the disk, and what its guest did since the last look; nothing
    /// at the first.
    async fn look_at_guest(&mut self) -> Result<(bool, Option<Window>), Failure> {
        let all = self.stats().await?;
        let now = Instant::now();
        let found = all.into_iter().find(|(device, _)| *device == self.record.device);
        let Some((_, stats)) = found else { return Ok((false, None)) };
        let last = self.last.replace((stats.clone(), now));
        let window = last.map(|(before, at)| stats.since(&before, (now - at).into()));
        if let Some(window) = &window {
            self.watch.add(window, self.record.guard.p99_us);
        }
        Ok((true, window))
    }

    fn progress(&self, left: u64) -> Progress {
        let (total, rate) = (self.record.size, self.pace.rate());
        Progress {
            total,
            synced: total.saturating_sub(left),
            copied: self.done,
            to_copy: left,
            rate,
            eta_s: (rate > 0.0).then(|| left as f64 / rate),
            ..Progress::default()
        }
    }
}
