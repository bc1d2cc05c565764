//! The size of chunks and how many are in flight, where nothing else decides that.
//!
//! Chunk and depth are one table of few steps, from gentle to greedy, all
//! within 12 MiB, so that a migration stays within its memory. Each window the
//! throughput at the present step is measured; the copier climbs while that pays and
//! steps back when it does not, then rests for a while before it tries again, since
//! devices change.

/// What the copier keeps in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyStep {
    /// Bytes in a chunk: a region's, times a power of two.
    pub chunk: u64,
    /// Chunks in flight, above zero.
    pub depth: usize,
}

/// The table.
const STEPS: [CopyStep; 6] = [
    CopyStep { chunk: 256 << 10, depth: 4 },
    CopyStep { chunk: 512 << 10, depth: 4 },
    CopyStep { chunk: 1 << 20, depth: 4 },
    CopyStep { chunk: 1 << 20, depth: 8 },
    CopyStep { chunk: 1 << 20, depth: 12 },
    CopyStep { chunk: 2 << 20, depth: 6 },
];

/// The step to begin with: as fast as the greedier ones on most devices. Where they
/// are faster, the top is five windows away.
const FIRST_STEP: usize = 1;

/// A climb must gain this much to be kept; less is noise.
const GAIN: f64 = 1.04;

/// Windows to stay at a step after the neighbours were found no better.
const REST: u32 = 20;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Search {
    /// Measuring the present step, to compare others with it.
    Measuring,
    /// Trying a neighbour; the figure to beat, and the step to go back to.
    Trying { best: f64, home: usize },
    /// Staying for so many windows.
    Resting(u32),
}

/// Where in the table the copier is.
#[derive(Debug)]
pub(super) struct StepTable {
    /// The only step, if the copier was told one.
    only: Option<CopyStep>,
    step: usize,
    search: Search,
    upwards: bool,
}

impl StepTable {
    /// A table to search, or one that has `only` this step.
    pub(super) fn new(only: Option<CopyStep>) -> Self {
        StepTable { only, step: FIRST_STEP, search: Search::Measuring, upwards: true }
    }

    fn at(&self) -> CopyStep {
        self.only.unwrap_or(STEPS[self.step])
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
            self.step = home;
        }
        self.search = Search::Measuring;
    }

    /// A window at the present step gave so many bytes per second: where next?
    pub(super) fn measured(&mut self, rate: f64) {
        self.search = match self.search {
            Search::Measuring => self.step_from(rate),
            Search::Trying { best, .. } if rate > best * GAIN => self.step_from(rate),
            Search::Trying { home, .. } => {
                self.step = home;
                self.upwards = !self.upwards;
                Search::Resting(REST)
            }
            Search::Resting(0) => Search::Measuring,
            Search::Resting(left) => Search::Resting(left - 1),
        };
    }

    fn neighbour(&self) -> Option<usize> {
        if self.upwards {
            (self.step + 1 < STEPS.len()).then(|| self.step + 1)
        } else {
            self.step.checked_sub(1)
        }
    }

    fn step_from(&mut self, rate: f64) -> Search {
        match self.neighbour() {
            Some(next) => {
                let home = self.step;
                self.step = next;
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
        let mut table = StepTable::new(None);
        for _ in 0..5 {
            let in_flight = table.chunk() * table.depth() as u64;
            table.measured(in_flight as f64 * 100.0);
        }
        assert!(table.chunk() * table.depth() as u64 >= 8 << 20);
    }

    #[test]
    fn a_device_that_does_not_care_is_not_given_more() {
        let mut table = StepTable::new(None);
        let before = (table.chunk(), table.depth());
        for _ in 0..10 {
            table.measured(5e8);
        }
        assert_eq!((table.chunk(), table.depth()), before);
    }

    #[test]
    fn a_copier_that_was_told_its_step_stays_at_it() {
        let only = CopyStep { chunk: 64 << 10, depth: 30 };
        let mut table = StepTable::new(Some(only));
        for window in 1..10 {
            table.measured(f64::from(window) * 1e8);
            assert_eq!((table.chunk(), table.depth()), (only.chunk, only.depth));
        }
    }

    #[test]
    fn a_trial_that_was_interrupted_is_not_where_the_copier_stays() {
        let mut table = StepTable::new(None);
        let before = (table.chunk(), table.depth());
        table.measured(5e8);
        table.restart();
        assert_eq!((table.chunk(), table.depth()), before);
    }
}
