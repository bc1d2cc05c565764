//! How much of the study is run.

use sterna_core::Nanos;

/// How much of a disk is moved, and how long a run without a move lasts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extent {
    /// Bytes of a disk that are moved, at most. What the whole disk takes follows from
    /// that: the copy's rate is the same from its begin to its end.
    pub bytes: u64,
    /// How long a run lasts in which none is moved.
    pub alone: Nanos,
}

impl Extent {
    /// Every byte.
    pub const WHOLE: Extent = Extent { bytes: u64::MAX, alone: Nanos::from_secs(600) };

    /// The first of each disk, enough for a thousand orders at low load.
    pub const SAMPLE: Extent = Extent { bytes: 4 << 30, alone: Nanos::from_secs(60) };
}
