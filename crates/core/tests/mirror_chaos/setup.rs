//! What a world is like: how large, how busy, and what goes wrong in it.
//!
//! A test says which trouble it wants and takes the rest from [`Setup::calm`],
//! which is a migration that nothing happens to.

use sterna_core::Nanos;
use sterna_core::mirror::{Allowance, Config};

use crate::mistake::Mistake;
use crate::random::Random;

/// Large blocks, so that the copier's chunks are a part of the disk.
pub(crate) const BLOCK: u64 = 16 << 10;
/// Blocks in a region; a block is also a sector.
pub(crate) const SECTORS: u64 = 4;
const REGION: u64 = SECTORS * BLOCK;

/// What a world is like. Numbers are "once in so many steps"; zero is never.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) blocks: u64,
    pub(crate) chaos_steps: u64,
    pub(crate) guest_depth: usize,
    /// The guest writes one place after another, mostly.
    pub(crate) log: bool,
    /// Bytes that the copier goes through at a time.
    pub(crate) segment: u64,
    pub(crate) verify: bool,
    pub(crate) reads_zero: bool,
    pub(crate) scan: bool,
    pub(crate) rate: Option<u64>,
    /// The copier yields to the guest from the beginning.
    pub(crate) allowance: Allowance,
    pub(crate) destination_slow: bool,
    pub(crate) destination_fails: u64,
    pub(crate) source_fails: u64,
    pub(crate) hangs: u64,
    /// Commits whose record takes seconds.
    pub(crate) slow_commits: u64,
    /// Commits whose record cannot be written.
    pub(crate) failing_commits: u64,
    /// The destination goes out of reach, or comes back.
    pub(crate) outages: u64,
    pub(crate) kills: u64,
    /// The same in each step in which a commit is under way.
    pub(crate) kills_at_commits: u64,
    pub(crate) power_losses: u64,
    pub(crate) controls: u64,
    /// The operator pauses or resumes, and does not cancel.
    pub(crate) pauses: u64,
    pub(crate) discards: u64,
    /// Blocks that the copier writes and the destination silently drops.
    pub(crate) lies: u64,
    /// Mirrored writes that wait for memory, and may wait in vain.
    pub(crate) skips: u64,
    /// The destination's server is gone for a moment, with what it had not been made to
    /// keep.
    pub(crate) reconnects: u64,
    /// What the destination had not been made to keep is gone once it has failed: at
    /// once, or when the operator mounts it anew.
    pub(crate) aborts: bool,
    /// A destination that has failed is opened anew before it goes on, and perhaps is
    /// another.
    pub(crate) reopens: bool,
    /// While the daemon is away, the destination forgets what it was not made to keep.
    pub(crate) forgets_at_kill: bool,
    /// Others remove, replace or shorten the destination's file, put it back, or write to
    /// it.
    pub(crate) meddling: u64,
    /// While the daemon is away, others write to an image: once in so many kills.
    pub(crate) foreign: u64,
    /// The source's storage loses what it was not made to keep, and the driver sees it.
    pub(crate) source_forgets: u64,
    /// The source is on a server that drops with the daemon's connection what it was not
    /// made to keep.
    pub(crate) source_drops: bool,
    /// The source's cache drops what it cannot write, and only a flush tells.
    pub(crate) writeback_fails: u64,
    /// Flushes of the source take up to 0.3 s.
    pub(crate) source_slow: bool,
    /// They hang for longer than anybody waits: one in so many.
    pub(crate) source_hangs: u64,
    /// Others write to the destination while the migration stands still.
    pub(crate) foreign_while_paused: u64,
    /// In so many of these steps the VM is switched off, and a backup put over the source.
    pub(crate) backups: u64,
    /// How long the destination is left without a flush.
    pub(crate) flush_every: Nanos,
    /// Nobody sees what others write to the destination, so the daemon has what was compared
    /// before a pause compared again.
    pub(crate) unwatched: bool,
    /// Blocks of the source that cannot be read from the beginning: one in so many of those
    /// with data.
    pub(crate) bad: u64,
    /// A block of the source goes bad, for a while or for good.
    pub(crate) goes_bad: u64,
    /// The operator has bad sectors left behind, sooner or later.
    pub(crate) skips_bad: bool,
    /// What the world gets wrong: such a world has to be caught.
    pub(crate) mistake: Option<Mistake>,
}

impl Setup {
    pub(crate) fn calm(random: &mut Random) -> Self {
        Setup {
            blocks: 4 + random.below(200),
            chaos_steps: 300 + random.below(600),
            guest_depth: 1 + random.below(12) as usize,
            log: random.one_in(3),
            segment: REGION << random.below(5),
            verify: false,
            reads_zero: random.one_in(2),
            scan: !random.one_in(4),
            rate: random.one_in(5).then_some(8 << 20),
            allowance: Allowance::default(),
            destination_slow: false,
            destination_fails: 0,
            source_fails: 0,
            hangs: 0,
            slow_commits: 0,
            failing_commits: 0,
            outages: 0,
            kills: 0,
            kills_at_commits: 0,
            power_losses: 0,
            controls: 0,
            pauses: 0,
            discards: 5,
            lies: 0,
            skips: 0,
            reconnects: 0,
            aborts: false,
            reopens: false,
            forgets_at_kill: true,
            meddling: 0,
            foreign: 0,
            source_forgets: 0,
            source_drops: false,
            writeback_fails: 0,
            source_slow: false,
            source_hangs: 0,
            foreign_while_paused: 0,
            backups: 0,
            flush_every: Nanos::from_millis(2 + random.below(60)),
            unwatched: false,
            bad: 0,
            goes_bad: 0,
            skips_bad: false,
            mistake: None,
        }
    }

    /// What the mirror is told of it.
    pub(crate) fn config(&self) -> Config {
        Config {
            region: REGION,
            segment: self.segment,
            scan_window: self.segment * 4,
            scan: self.scan,
            reads_zero: self.reads_zero,
            verify: self.verify,
            rate: self.rate,
            allowance: self.allowance,
            flush_every: self.flush_every,
            sector: BLOCK,
            ..Config::new(self.blocks * BLOCK)
        }
    }
}
