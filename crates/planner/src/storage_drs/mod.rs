//! Storage DRS: what there is, as `core` is told of it, and what becomes of what it says.
//!
//! - `scene`: datastores, disks and rules, in `core`'s terms. A disk that moves counts for
//!   the datastore that it goes to, so that asking twice does not send two disks into the
//!   same room.
//! - `settings`, `rules`: what it is told, durable before the answer.
//! - `run`: the thread that looks, and has moves begin by itself where it is told to.
//! - `begin`: how they begin, step by step, and are kept.
//! - `benefit`: what came of these moves.
//! - `placement`: where new disks go.
//! - `slow`: warnings of datastores over their bound for response times.
//!
//! **One writer.** Moves begin as those of operators do, and are refused for the same
//! reasons. A disk that somebody else has moved is left alone for a while, as `core` says.

mod begin;
mod benefit;
mod placement;
mod reasons;
mod rules;
mod run;
mod scene;
mod settings;
mod slow;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Instant;

use sterna_api::{
    AskStorageDrs, Balanced, BalancedOutcome, BalancedScores, Migration, Recommendations,
    Result, StorageDrs, StorageDrsBounds, StorageDrsRun, StorageDrsSettings,
};
use sterna_core::Nanos;
use sterna_os::{clock, lock};
use sterna_placement::storage::{Cycle, advise};

use self::begin::Kept;
pub use self::run::balancing;
use self::settings::{bounds_of, check_bounds};
use self::slow::Slow;
use crate::Planner;

/// How many of its moves that have ended are shown.
const ENDED_SHOWN: usize = 10;

/// The most moves that are recommended, unless somebody asks for more.
const MOVES: u64 = 10;

/// What the daemon has for Storage DRS.
pub(crate) struct Balancer {
    epoch: Instant,
    /// Whoever changes settings or rules holds this.
    turn: Mutex<()>,
    settings: Mutex<StorageDrsSettings>,
    /// When it looks; nothing before it has begun to, or while it does nothing by itself.
    cycle: Mutex<Option<Cycle<String>>>,
    /// What it did when it last acted.
    last: Mutex<Option<StorageDrsRun>>,
    /// Its moves, by number.
    kept: Mutex<Kept>,
    /// Those that are to be cancelled, as their step could not begin as a whole.
    called_off: Mutex<BTreeSet<u64>>,
    /// Which datastores are too slow.
    slow: Mutex<Slow>,
}

impl Default for Balancer {
    fn default() -> Self {
        let (turn, settings, cycle, last, kept) = Default::default();
        let (called_off, slow) = Default::default();
        let epoch = Instant::now();
        Balancer { epoch, turn, settings, cycle, last, kept, called_off, slow }
    }
}

impl Balancer {
    /// What was promised of a migration, if Storage DRS has begun it.
    pub(crate) fn balanced(&self, migration: u64) -> Option<Balanced> {
        lock(&self.kept).moves.get(&migration).cloned()
    }

    /// Whether Storage DRS has begun a migration.
    pub(crate) fn has_begun(&self, migration: u64) -> bool {
        lock(&self.kept).moves.contains_key(&migration)
    }

    pub(crate) fn settings(&self) -> StorageDrsSettings {
        lock(&self.settings).clone()
    }

    /// How long it has been there.
    fn now(&self) -> Nanos {
        Nanos::from(self.epoch.elapsed())
    }

    /// Whether its moves have paid.
    fn scores(&self) -> BalancedScores {
        let kept = lock(&self.kept);
        let count = |outcome| {
            kept.moves.values().filter(|one| one.outcome == outcome).count() as u64
        };
        let paid = count(BalancedOutcome::Paid);
        BalancedScores {
            paid,
            known: paid + count(BalancedOutcome::NotPaid),
            waiting: count(BalancedOutcome::Waiting),
        }
    }
}

impl Planner {
    /// Reads settings and moves from the state, before anybody asks.
    pub fn load_balancer(&self) -> Result<()> {
        *lock(&self.balancer.settings) = self.storage.store.storage_drs()?;
        *lock(&self.balancer.kept) = Kept::of(self.storage.store.balanced_moves()?);
        Ok(())
    }

    /// What should move, and why the rest should not.
    pub fn recommend(&self, asked: &AskStorageDrs) -> Result<Recommendations> {
        self.recommend_to(asked, |_| true)
    }

    /// The same, with moves to these datastores alone.
    pub(crate) fn recommend_to(
        &self,
        asked: &AskStorageDrs,
        may_take: impl Fn(&str) -> bool,
    ) -> Result<Recommendations> {
        let settings = self.balancer.settings();
        let ignore_rest = asked.ignore_rest;
        let asked = StorageDrsBounds {
            window_s: asked.window_s.unwrap_or(settings.window_s),
            space: asked.space.unwrap_or(settings.space),
            latency_us: asked.latency_us.unwrap_or(settings.latency_us),
            moves: asked.moves.unwrap_or(MOVES),
        };
        check_bounds(&asked)?;
        let bounds = bounds_of(&asked);
        let mut scene = self.scene(Nanos((asked.window_s * 1e9) as u64))?;
        if ignore_rest {
            scene.wake();
        }
        let ends = scene.inventory.datastores.iter_mut().zip(&scene.names);
        ends.for_each(|(end, name)| end.takes_disks &= may_take(name));
        let advice = advise(&scene.inventory, &bounds);
        let moves = advice.moves.iter().map(|one| self.recommended(&scene, one));
        Ok(Recommendations {
            asked,
            guard: settings.guard,
            datastores: scene.judged(&bounds, |name| self.space_trend(name)),
            moves: moves.collect::<Result<_>>()?,
            staying: advice.refused.iter().map(|one| scene.staying(one)).collect(),
        })
    }

    /// Storage DRS in one page.
    pub fn show_storage_drs(&self) -> Result<StorageDrs> {
        let settings = self.balancer.settings();
        let asked = asked(&settings);
        let scene = self.scene(Nanos((asked.window_s * 1e9) as u64))?;
        let ours =
            self.moves.list_migrations()?.into_iter().filter(|it| it.balanced.is_some());
        let (mut ended, moves): (Vec<Migration>, Vec<Migration>) =
            ours.partition(|one| one.state.ended());
        ended.reverse();
        ended.truncate(ENDED_SHOWN);
        let next = lock(&self.balancer.cycle).as_ref().map(Cycle::next_act);
        let ahead = |next: Nanos| next.since(self.balancer.now()).as_secs_f64();
        Ok(StorageDrs {
            datastores: scene.judged(&bounds_of(&asked), |name| self.space_trend(name)),
            broken: scene.broken(),
            next: next.map(|next| clock::now() + ahead(next).ceil() as u64),
            last: lock(&self.balancer.last).clone(),
            moves,
            ended,
            scores: self.balancer.scores(),
            settings,
        })
    }
}

/// What the settings ask for.
fn asked(settings: &StorageDrsSettings) -> StorageDrsBounds {
    StorageDrsBounds {
        window_s: settings.window_s,
        space: settings.space,
        latency_us: settings.latency_us,
        moves: MOVES,
    }
}
