//! What applications get from a disk, in figures.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A disk's service in one window of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Figures {
    /// How long the window was, in seconds.
    pub window_s: f64,
    /// Reads and writes per second.
    pub iops: f64,
    /// Bytes read and written per second.
    pub bytes_per_second: f64,
    /// The 99th percentile of the response time in microseconds; absent if
    /// nothing was asked of the disk.
    pub p99_us: Option<f64>,
}

/// The effect of a migration on the application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Application {
    /// The seconds before the migration began.
    pub before: Option<Figures>,
    /// The last window.
    pub now: Option<Figures>,
    /// The whole migration so far.
    pub during: Option<Figures>,
    /// The worst window's 99th percentile so far, in microseconds.
    pub worst_p99_us: Option<f64>,
    /// Seconds in which a window's 99th percentile was above the guard's bound; nothing if
    /// the guard has no such bound.
    #[serde(default)]
    pub above_p99_s: Option<f64>,
}

impl Application {
    /// The part of its IO/s that it kept on the whole. Whoever asks for nothing has nothing
    /// to lose, and a disk does not move without answering what it is asked.
    pub fn kept(&self) -> Option<f64> {
        let (before, during) = (self.before?, self.during?);
        let is_busy = before.iops > 0.0 && during.iops > 0.0;
        is_busy.then(|| during.iops / before.iops)
    }
}
