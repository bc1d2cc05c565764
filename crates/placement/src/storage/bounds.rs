//! When a datastore is over its bound, and what a move must bring.

use sterna_core::Nanos;

/// What is asked of datastores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// The part of its room that may be taken, above 0 and at most 1.
    pub space: f64,
    /// By what part of the room the destination must be emptier than the source, from 0
    /// to 1.
    pub difference: f64,
    /// Of the response times, the 95th percentile may be so long.
    pub latency: Nanos,
    /// By what part the slower of the two must be faster than the source was, from 0 to 1.
    pub gain: f64,
    /// The most moves that are recommended at once.
    pub moves: usize,
}

impl Default for Bounds {
    /// Those of Storage DRS, as operators know them: 80 % and 5 % of the room, 15 ms. The
    /// gain is ours: what a model of latency is off by, at its best.
    fn default() -> Bounds {
        Bounds {
            space: 0.80,
            difference: 0.05,
            latency: Nanos::from_millis(15),
            gain: 0.20,
            moves: 10,
        }
    }
}
