//! What a move must bring, and what it costs.

use sterna_core::Nanos;

/// What is asked of moves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Moves of this priority or more are made: 1 is the most, 5 the least.
    pub threshold: u8,
    /// The most moves that are recommended at once.
    pub moves: usize,
    /// By what part of the most that two hosts could be evened out a move must do so.
    pub margin: f64,
    /// How long loads are taken to stay as they are.
    pub stable: Nanos,
    /// How fast memory is copied, in bytes per second.
    pub speed: f64,
    /// How many processors a copy takes, at each end.
    pub copier: f64,
}

impl Default for Bounds {
    /// Moves that matter moderately (VMware's default). Loads last for ten minutes; a
    /// copy takes one processor at each end, and a link of 10 Gbit/s.
    fn default() -> Bounds {
        Bounds {
            threshold: 3,
            moves: 10,
            margin: 0.02,
            stable: Nanos::from_secs(600),
            speed: 1.1e9,
            copier: 1.0,
        }
    }
}

/// From which imbalance on evening out has which priority. Below the last, loads differ by
/// no more than they do from one minute to the next.
const PRIORITIES: [(f64, u8); 4] = [(0.30, 2), (0.20, 3), (0.10, 4), (0.05, 5)];

/// How much it matters that loads differ by this deviation; nothing if it does not.
pub(super) fn priority(deviation: f64) -> Option<u8> {
    PRIORITIES.iter().find(|(from, _)| deviation >= *from).map(|(_, priority)| *priority)
}
