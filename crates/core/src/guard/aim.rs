//! What must hold for the guest while its disk moves.

use crate::Nanos;

/// What a guard holds. All that is set holds at once; what must hold for the guest
/// comes before the time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GuardAim {
    /// The part of its IO/s that the guest keeps at least, above 0 and at most 1.
    pub keep: Option<f64>,
    /// What the 99th percentile of its response times stays below, above zero.
    pub p99: Option<Nanos>,
    /// The copy goes on only while the guest is idle.
    pub idle_only: bool,
}

/// How far it is to the end of a migration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Remaining {
    /// Bytes that are still to be copied and compared.
    pub bytes: u64,
    /// The time until it shall have ended, if that was asked for; zero once it is over.
    pub time: Option<Nanos>,
}
