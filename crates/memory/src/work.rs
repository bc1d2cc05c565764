//! What is being done with the memory of a VM.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use sterna_api::{MemoryWork, MemoryWorkKind};

/// A VM that goes to sleep, or wakes.
#[derive(Debug)]
pub(crate) struct Work {
    kind: MemoryWorkKind,
    began: Instant,
    /// Bytes that are to go out, or to come back.
    total: u64,
    done: AtomicU64,
    /// How long it took until all was done.
    took: OnceLock<Duration>,
    is_held: AtomicBool,
    ends: AtomicBool,
}

impl Work {
    pub(crate) fn new(kind: MemoryWorkKind, total: u64) -> Work {
        Work {
            kind,
            began: Instant::now(),
            total,
            done: AtomicU64::new(0),
            took: OnceLock::new(),
            is_held: AtomicBool::new(false),
            ends: AtomicBool::new(false),
        }
    }

    /// What the VM does, behind its name.
    pub(crate) fn what(&self) -> &'static str {
        match self.kind {
            MemoryWorkKind::Sleep => "is going to sleep",
            MemoryWorkKind::Wake => "is waking",
        }
    }

    pub(crate) fn is_sleep(&self) -> bool {
        self.kind == MemoryWorkKind::Sleep
    }

    pub(crate) fn add(&self, bytes: u64) {
        let done = self.done.fetch_add(bytes, SeqCst) + bytes;
        if done >= self.total {
            let _ = self.took.set(self.began.elapsed());
        }
    }

    pub(crate) fn done(&self) -> u64 {
        self.done.load(SeqCst)
    }

    pub(crate) fn left(&self) -> u64 {
        self.total.saturating_sub(self.done())
    }

    pub(crate) fn set_held(&self, is_held: bool) {
        self.is_held.store(is_held, SeqCst);
    }

    /// It is to end early.
    pub(crate) fn stop(&self) {
        self.ends.store(true, SeqCst);
    }

    pub(crate) fn is_to_stop(&self) -> bool {
        self.ends.load(SeqCst)
    }

    pub(crate) fn view(&self) -> MemoryWork {
        let done = self.done().min(self.total);
        let took = self.took.get().copied().unwrap_or_else(|| self.began.elapsed());
        let took = took.as_secs_f64();
        let rate = (took > 0.0).then(|| done as f64 / took).filter(|rate| *rate > 0.0);
        MemoryWork {
            kind: self.kind,
            total: self.total,
            done,
            bytes_per_s: rate.map(|rate| rate as u64),
            eta_s: rate.map(|rate| (self.total - done) as f64 / rate),
            held: self.is_held.load(SeqCst),
        }
    }
}
