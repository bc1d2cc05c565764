//! What a guard is told: what the guest and the copier did in one window of time.

use crate::Nanos;
use crate::measure::Window;

/// One window, about 100 ms long. Loops count windows, not time, so windows should
/// be of one length.
#[derive(Clone, Copy, Debug)]
pub struct Observation<'a> {
    /// What the guest did.
    pub guest: &'a Window,
    /// Bytes that the copier got through (`Progress::passed`, what it grew by).
    pub copied: u64,
    /// How long the guest was idle (`Progress::guest_idle`, what it grew by).
    pub idle: Nanos,
    /// How long its writes waited for the destination alone, all of them together
    /// (`Progress::mirror_wait`, what it grew by).
    pub mirror_wait: Nanos,
    /// How many of its writes went to both images (`Progress::mirrored_writes`, what it
    /// grew by).
    pub mirrored_writes: u64,
    /// The part of the host's processors that was idle of late, 0 to 1; nothing if it has
    /// not been looked at yet. 1 where it cannot be known.
    pub idle_processors: Option<f64>,
}

/// A window tells about the guest at work if it was idle for no more than this part:
/// then the edges of a burst are left out.
const IDLE_MAX: f64 = 0.1;

impl Observation<'_> {
    /// Whether the guest was at work all the time.
    pub(super) fn is_busy(&self) -> bool {
        self.idle_part() <= IDLE_MAX
    }

    /// Whether the guest waits for something, and got no answer in this window.
    pub(super) fn is_silent(&self) -> bool {
        self.guest.in_flight > 0 && self.guest.total().operations == 0
    }

    /// The part of the window that the guest was idle.
    pub(super) fn idle_part(&self) -> f64 {
        (self.idle.0 as f64 / (self.guest.span.0 as f64).max(1.0)).min(1.0)
    }

    /// Bytes per second that the copier got through.
    pub(super) fn copy_rate(&self) -> f64 {
        self.copied as f64 / self.guest.span.as_secs_f64().max(1e-9)
    }
}
