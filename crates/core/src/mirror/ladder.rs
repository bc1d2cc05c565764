//! The size of chunks and how many are in flight, where nothing else decides that.
//!
//! Chunk and depth are one ladder with few rungs, from gentle to greedy, all
//! within 12 MiB, so that a migration stays within its memory. Each window the
//! throughput at the present rung is measured; the copier climbs while that pays and
//! steps back when it does not, then rests for a while before it tries again, since
//! devices change.

/// What the copier keeps in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rung {
    /// Bytes in a chunk: a region's, times a power of two.
    pub chunk: u64,
    /// Chunks in flight, above zero.
    pub depth: usize,
}

/// The rungs.
const LADDER: [Rung; 6] = [
    Rung { chunk: 256 << 10, depth: 4 },
    Rung { chunk: 512 << 10, depth: 4 },
    Rung { chunk: 1 << 20, depth: 4 },
    Rung { chunk: 1 << 20, depth: 8 },
    Rung { chunk: 1 << 20, depth: 12 },
    Rung { chunk: 2 << 20, depth: 6 },
];

/// The rung to begin with: as fast as the greedier ones on most devices. Where they
/// are faster, the top is five windows away.
const FIRST_RUNG: usize = 1;

/// A climb must gain this much to be kept; less is noise.
const GAIN: f64 = 1.04;

/// Windows to stay on a rung after the neighbours were found no better.
const REST: u32 = 20;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Search {
    /// Measuring the rung we are on, to compare others with it.
    Measuring,
    /// Trying a neighbour; the figure to beat, and the rung to go back to.
    Trying { best: f64, home: usize },
    /// Staying for so many windows.
    Resting(u32),
}

/// Where on the ladder the copier is.
#[derive(Debug)]
pub(super) struct Ladder {
    /// The one rung there is, if it was told.
    only: Option<Rung>,
    rung: usize,
    search: Search,
    upwards: bool,
}

impl Ladder {
    /// A ladder to search, or one that has `only` this rung.
    pub(super) fn new(only: Option<Rung>) -> Self {
        Ladder { only, rung: FIRST_RUNG, search: Search::Measuring, upwards: true }
    }

    fn at(&self) -> Rung {
        self.only.unwrap_or(LADDER[self.rung])
    }

    /// Bytes in a chunk.
    pub(super) fn chunk(&self) -> u64 {
        self.at().chunk
    }

    /// Chunks in flight.
    pub(super) fn depth(&self) -> usize {
        self.at().depth
    }

    /// What was being measured does not count.
    pub(super) fn restart(&mut self) {
        if let Search::Trying { home, .. } = self.search {
            self.rung = home;
        }
        self.search = Search::Measuring;
    }

    /// A window at the present rung gave so many bytes per second: where next?
    pub(super) fn measured(&mut self, rate: f64) {
        self.search = match self.search {
            Search::Measuring => self.step_from(rate),
            Search::Trying { best, .. } if rate > best * GAIN => self.step_from(rate),
            Search::Trying { home, .. } => {
                self.rung = home;
                self.upwards = !self.upwards;
                Search::Resting(REST)
            }
            Search::Resting(0) => Search::Measuring,
            Search::Resting(left) => Search::Resting(left - 1),
        };
    }

    fn neighbour(&self) -> Option<usize> {
        if self.upwards {
            (self.rung + 1 < LADDER.len()).then(|| self.rung + 1)
        } else {
            self.rung.checked_sub(1)
        }
    }

    fn step_from(&mut self, rate: f64) -> Search {
        match self.neighbour() {
            Some(next) => {
                let home = self.rung;
                self.rung = next;
                Search::Trying { best: rate, home }
            }
            None => {
                self.upwards = !self.upwards;
                Search::Resting(REST)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_rewards_depth_is_given_depth_within_five_windows() {
        let mut ladder = Ladder::new(None);
        for _ in 0..5 {
            let in_flight = ladder.chunk() * ladder.depth() as u64;
            ladder.measured(in_flight as f64 * 100.0);
        }
        assert!(ladder.chunk() * ladder.depth() as u64 >= 8 << 20);
    }

    #[test]
    fn a_device_that_does_not_care_is_not_given_more() {
        let mut ladder = Ladder::new(None);
        let before = (ladder.chunk(), ladder.depth());
        for _ in 0..10 {
            ladder.measured(5e8);
        }
        assert_eq!((ladder.chunk(), ladder.depth()), before);
    }

    #[test]
    fn a_copier_that_was_told_its_rung_stays_on_it() {
        let only = Rung { chunk: 64 << 10, depth: 30 };
        let mut ladder = Ladder::new(Some(only));
        for window in 1..10 {
            ladder.measured(f64::from(window) * 1e8);
            assert_eq!((ladder.chunk(), ladder.depth()), (only.chunk, only.depth));
        }
    }

    #[test]
    fn a_trial_that_was_interrupted_is_not_where_the_copier_stays() {
        let mut ladder = Ladder::new(None);
        let before = (ladder.chunk(), ladder.depth());
        ladder.measured(5e8);
        ladder.restart();
        assert_eq!((ladder.chunk(), ladder.depth()), before);
    }
}
