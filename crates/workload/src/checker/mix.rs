//! What to do next: sizes, places and kinds of requests.
//!
//! Places come from three sources, because a mirror has different weak spots:
//! all over the disk (regions long settled), a small hot range (the same
//! regions again and again, and neighbours within one region at once), and a
//! sequential stream (a copier's cursor is met sooner or later).

use sterna_nbd::TransmissionFlags;

use crate::random::Random;

/// What a write leaves behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The contents that belong to the write.
    Data = 1,
    /// Zeroes.
    Zeroes = 2,
    /// Zeroes, or what was there.
    Trim = 3,
}

/// A request that the checker wants to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    /// Read and compare.
    Read,
    /// Write one of the effects; with `fua`, durable when acknowledged.
    Write {
        /// What it leaves.
        effect: Effect,
        /// Force unit access.
        fua: bool,
    },
    /// Flush.
    Flush,
}

/// How large requests are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// One block to 256 KiB, small ones more often.
    Mixed,
    /// Always so many bytes.
    Fixed(u32),
}

/// The largest request of [`Sizes::Mixed`].
const LARGEST: u32 = 256 << 10;
/// How large the hot range is.
const HOT: u64 = 4 << 20;
/// How often a busy place is given up for another one. After that the
/// generator rests until something is answered.
const TRIES: u32 = 8;

/// Proportions, in percent of all requests.
#[derive(Clone, Copy, Debug)]
pub struct Mix {
    /// Reads.
    pub reads: u32,
    /// Trims.
    pub trims: u32,
    /// Writes of zeroes.
    pub zeroes: u32,
    /// Flushes.
    pub flushes: u32,
    /// Writes with FUA, in percent of the writes.
    pub fua: u32,
    /// Requests in the hot range.
    pub hot: u32,
    /// Requests of the sequential stream.
    pub sequential: u32,
    /// How large.
    pub sizes: Sizes,
}

impl Default for Mix {
    fn default() -> Self {
        Mix {
            reads: 50,
            trims: 1,
            zeroes: 1,
            flushes: 1,
            fua: 3,
            hot: 30,
            sequential: 20,
            sizes: Sizes::Mixed,
        }
    }
}

impl Mix {
    /// The mix without what a server with these flags can't do.
    pub(crate) fn fit(self, flags: TransmissionFlags) -> Mix {
        let only = |flag, share| if flags.has(flag) { share } else { 0 };
        Mix {
            trims: only(TransmissionFlags::SEND_TRIM, self.trims),
            zeroes: only(TransmissionFlags::SEND_WRITE_ZEROES, self.zeroes),
            flushes: only(TransmissionFlags::SEND_FLUSH, self.flushes),
            fua: only(TransmissionFlags::SEND_FUA, self.fua),
            ..self
        }
    }
}

/// A request with its place, in blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pick {
    pub(crate) intent: Intent,
    pub(crate) first: u64,
    pub(crate) count: u64,
}

/// Draws requests from a mix.
pub(crate) struct Generator {
    mix: Mix,
    random: Random,
    block: u64,
    /// The blocks that the workload stays within.
    span: u64,
    /// The next block of the sequential stream.
    cursor: u64,
    /// The next block of the initial fill, while that lasts.
    fill: Option<u64>,
}

impl Generator {
    pub(crate) fn new(mix: Mix, seed: u64, block: u64, span: u64, fill: bool) -> Self {
        let mut random = Random::new(seed ^ 0x5157_0000);
        let cursor = random.below(span);
        Generator { mix, random, block, span, cursor, fill: fill.then_some(0) }
    }

    /// Whether the initial fill is still going on.
    pub(crate) fn filling(&self) -> bool {
        self.fill.is_some()
    }

    /// The next request, on blocks that `reserve` could take.
    pub(crate) fn next(
        &mut self,
        mut reserve: impl FnMut(std::ops::Range<u64>) -> bool,
    ) -> Option<Pick> {
        if let Some(first) = self.fill {
            return self.next_of_fill(first, reserve);
        }
        let intent = self.intent();
        if intent == Intent::Flush {
            return Some(Pick { intent, first: 0, count: 0 });
        }
        for _ in 0..TRIES {
            let count = self.count();
            let first = self.place(count);
            if reserve(first..first + count) {
                return Some(Pick { intent, first, count });
            }
        }
        None
    }

    fn next_of_fill(
        &mut self,
        first: u64,
        mut reserve: impl FnMut(std::ops::Range<u64>) -> bool,
    ) -> Option<Pick> {
        let count = (u64::from(LARGEST) / self.block).min(self.span - first);
        if !reserve(first..first + count) {
            return None;
        }
        let next = first + count;
        self.fill = (next < self.span).then_some(next);
        let intent = Intent::Write { effect: Effect::Data, fua: false };
        Some(Pick { intent, first, count })
    }

    fn intent(&mut self) -> Intent {
        let mut dice = self.random.below(100) as u32;
        let mut falls = |share: u32| {
            let hit = dice < share;
            dice = dice.saturating_sub(share);
            hit
        };
        if falls(self.mix.reads) {
            return Intent::Read;
        }
        if falls(self.mix.flushes) {
            return Intent::Flush;
        }
        let effect = if falls(self.mix.trims) {
            Effect::Trim
        } else if falls(self.mix.zeroes) {
            Effect::Zeroes
        } else {
            Effect::Data
        };
        Intent::Write { effect, fua: self.random.percent(self.mix.fua) }
    }

    /// How many blocks: for mixed sizes the exponent is drawn evenly, and then
    /// the size below it, so that odd lengths are as common as round ones.
    fn count(&mut self) -> u64 {
        let blocks = match self.mix.sizes {
            Sizes::Fixed(bytes) => u64::from(bytes) / self.block,
            Sizes::Mixed => {
                let largest = u64::from(LARGEST) / self.block;
                let top = 1 << self.random.below(u64::from(largest.ilog2()) + 1);
                if self.random.percent(50) { top } else { self.random.below(top) + 1 }
            }
        };
        blocks.clamp(1, self.span)
    }

    fn place(&mut self, count: u64) -> u64 {
        let last = self.span - count;
        let dice = self.random.below(100) as u32;
        if dice < self.mix.sequential {
            let first = if self.cursor > last { 0 } else { self.cursor };
            self.cursor = first + count;
            return first;
        }
        let hot = dice < self.mix.sequential + self.mix.hot;
        let within = if hot { (HOT / self.block).min(last) } else { last };
        let first = self.random.below(within + 1);
        match self.mix.sizes {
            // As an application that uses pages does: aligned to its size.
            Sizes::Fixed(_) => first / count * count,
            Sizes::Mixed => first,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_stay_within_the_span() {
        let mut generator = Generator::new(Mix::default(), 1, 512, 1000, false);
        for _ in 0..10_000 {
            let pick = generator.next(|_| true).expect("everything is free");
            assert!(pick.first + pick.count <= 1000);
        }
    }

    #[test]
    fn the_fill_writes_every_block_once() {
        let mut generator = Generator::new(Mix::default(), 1, 4096, 1000, true);
        let mut next = 0;
        while generator.filling() {
            let pick = generator.next(|_| true).expect("everything is free");
            assert_eq!(pick.first, next);
            next += pick.count;
        }
        assert_eq!(next, 1000);
    }

    #[test]
    fn a_mix_without_reads_makes_none() {
        let mix = Mix { reads: 0, ..Mix::default() };
        let mut generator = Generator::new(mix, 1, 4096, 1000, false);
        let reads = (0..1000)
            .filter_map(|_| generator.next(|_| true))
            .filter(|pick| pick.intent == Intent::Read);
        assert_eq!(reads.count(), 0);
    }
}
