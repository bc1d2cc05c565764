//! The experiment: goes through the states, and moves each disk there and back in each.

use std::pin::pin;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use sterna_api::{AskGuard, MigrationState, StartMigration};
use sterna_console::screen::Screen;
use tokio::time::{Instant, interval, timeout_at};

use super::ending::{Ending, Point};
use super::outcome::{Moved, Outcome, Second, Trial};
use super::plan::{CHECK, Disk, Plan, State, Way};
use super::stage::Stage;
use super::watch::{Watch, clock};
use crate::guest::Link;
use crate::guest::customers::Customers;
use crate::record::Mark;

/// What the guest keeps of what its disks give it, while they move.
pub(super) const KEEP: f64 = 0.97;
/// Of the orders of the high load, what comes at the low one: as in the study.
const LOW: f64 = 0.2;
/// How often the time left is shown while nothing is watched.
const SHOWN: Duration = Duration::from_secs(1);
/// How long one migration may take: a guard may make it long.
const MOVE: Duration = Duration::from_secs(3600);

/// The experiment under way.
pub(super) struct Run<'s> {
    stage: Stage<'s>,
    watch: Watch,
    screen: &'s Screen,
    plan: &'s Plan,
    seed: u64,
    ending: &'s Ending,
    outcome: Outcome,
}

impl<'s> Run<'s> {
    /// An experiment on a stage where nothing has happened yet.
    pub(super) fn new(
        stage: Stage<'s>,
        daemon: u32,
        screen: &'s Screen,
        plan: &'s Plan,
        seed: u64,
        ending: &'s Ending,
    ) -> Run<'s> {
        let watch = Watch::begin(stage.client(), daemon);
        Run { stage, watch, screen, plan, seed, ending, outcome: Outcome::default() }
    }

    /// Goes through the states, and asks the guest how it is.
    pub(super) async fn go(mut self) -> anyhow::Result<Outcome> {
        self.note("the guest makes its database");
        shown(self.screen, &self.watch, self.stage.furnish(self.plan)).await?;
        for link in [Link::VhostUser, Link::Nbd] {
            let ways = self.plan.ways_over(link);
            if !ways.is_empty() && !self.ending.is_wanted() {
                self.round(link, &ways).await?;
            }
        }
        if self.outcome.trials.is_empty() {
            return Ok(self.outcome);
        }
        self.ending.reached(Point::Checking);
        self.screen.expect(self.watch.now(), CHECK);
        self.note("the guest checks for lost and wrong data");
        let checked = shown(self.screen, &self.watch, self.stage.check()).await?;
        self.outcome.orders = checked;
        let said = shown(self.screen, &self.watch, self.stage.complaints()).await?;
        self.outcome.complaints = said;
        self.outcome.clock = clock()?;
        self.outcome.ticks = self.watch.ticks;
        Ok(self.outcome)
    }

    /// Goes through the states with a guest that reaches its disks so.
    async fn round(&mut self, link: Link, ways: &[Way]) -> anyhow::Result<()> {
        for state in self.plan.states_over(link) {
            if self.ending.is_wanted() {
                break;
            }
            self.screen.expect(self.watch.now(), self.plan.seconds_from(link, state));
            let stage = &mut self.stage;
            let turned = async {
                match state {
                    State::Off => stage.off().await,
                    State::Idle | State::Low | State::High => stage.on(link).await,
                }
            };
            shown(self.screen, &self.watch, turned).await?;
            if state.is_busy() {
                self.shop(state, ways).await?;
            } else {
                self.moves(state, ways, None).await?;
            }
        }
        Ok(())
    }

    /// Moves with customers in the store.
    async fn shop(&mut self, state: State, ways: &[Way]) -> anyhow::Result<()> {
        let rate = match state {
            State::Low => Some(LOW * self.most().await?),
            _ => None,
        };
        let customers = self.enter(rate)?;
        self.watch(self.plan.warm_up).await?;
        self.moves(state, ways, Some(&customers)).await?;
        self.leave(customers).await?;
        Ok(())
    }

    /// The most orders a second that the guest can take.
    async fn most(&mut self) -> anyhow::Result<f64> {
        self.note("how many orders the guest can take");
        let customers = self.enter(None)?;
        self.watch(self.plan.warm_up).await?;
        let from = self.watch.now();
        self.watch(self.plan.calm(State::High)).await?;
        self.leave(customers).await?;
        let since = self.outcome.seconds.iter().filter(|second| second.at > from);
        let orders: Vec<f64> = since.map(|second| second.orders).collect();
        let most = orders.iter().sum::<f64>() / orders.len().max(1) as f64;
        ensure!(most > 0.0, "the guest's database took no orders");
        Ok(most)
    }

    fn enter(&mut self, rate: Option<f64>) -> anyhow::Result<Customers> {
        let store = self.stage.store.context("there is no store yet")?;
        let (server, orders) = (self.stage.server()?, self.stage.orders());
        Ok(Customers::enter(&server, store, rate, self.seed, &orders))
    }

    async fn leave(&mut self, customers: Customers) -> anyhow::Result<()> {
        let seen = customers.leave().await?;
        let from = self.watch.moment(seen.from);
        let seconds = seen.report.series.iter().map(|window| Second::of(from, window));
        self.outcome.seconds.extend(seconds);
        self.outcome.failed +=
            seen.report.errors.iter().map(|trouble| trouble.count).sum::<u64>();
        Ok(())
    }

    /// Moves each disk there and back, in each of the ways.
    async fn moves(
        &mut self,
        state: State,
        ways: &[Way],
        customers: Option<&Customers>,
    ) -> anyhow::Result<()> {
        let plan = self.plan;
        for &disk in &plan.disks {
            if self.ending.is_wanted() {
                break;
            }
            let first = self.outcome.trials.len();
            let mut calms = vec![self.calm(plan.calm(state)).await?];
            let once = ways.iter().flat_map(|way| [(*way, true), (*way, false)]);
            let often = (0..plan.repeats).flat_map(|_| once.clone());
            for (way, forth) in often {
                if self.ending.is_wanted() {
                    break;
                }
                let from = self.watch.now();
                let path = if forth { "old → new" } else { "new → old" };
                self.note(&format!("{disk} moves {path}, {state}, {way}"));
                self.ending.reached(Point::Moving);
                let (seconds, held_ms) = match way {
                    Way::Mirror => (self.mirror(disk, forth, customers).await?, None),
                    Way::VhostUser | Way::Nbd => {
                        self.migrate(disk, forth, customers).await?
                    }
                };
                self.ending.reached(Point::Between);
                let until = self.watch.now();
                let calm = calms.last().copied().into_iter().collect();
                // The one before is compared with it, too, and the next one.
                let before = self.outcome.trials[first..].last();
                let longest =
                    before.map_or(0.0, |it| it.until - it.from).max(until - from);
                calms.push(self.calm(plan.calm_after(state, longest)).await?);
                let bytes = plan.size(disk);
                let moved = Moved { bytes, seconds, held_ms };
                let trial = Trial { disk, state, way, forth, from, until, calm, moved };
                self.outcome.trials.push(trial);
            }
            // The arrays are not equally fast, so it is compared with the same one. A move
            // forth is followed by one back.
            let back = calms.iter().skip(2);
            for (trial, calm) in self.outcome.trials[first..].iter_mut().zip(back) {
                trial.calm.push(*calm);
            }
        }
        Ok(())
    }

    /// So many seconds without a migration: from when to when.
    async fn calm(&mut self, seconds: f64) -> anyhow::Result<(f64, f64)> {
        let from = self.watch.now();
        self.watch(seconds).await?;
        Ok((from, self.watch.now()))
    }

    async fn watch(&mut self, seconds: f64) -> anyhow::Result<()> {
        let end = self.watch.now() + seconds;
        while self.watch.now() < end {
            self.tick().await?;
        }
        Ok(())
    }

    async fn tick(&mut self) -> anyhow::Result<()> {
        self.watch.tick(self.stage.guest()).await?;
        self.screen.tick(self.watch.now());
        Ok(())
    }

    /// One move by QEMU's mirror, to its end: how long it took, in seconds.
    async fn mirror(
        &mut self,
        disk: Disk,
        forth: bool,
        customers: Option<&Customers>,
    ) -> anyhow::Result<f64> {
        let begin = Instant::now();
        let moving = self.stage.mirror(disk, forth).await?.end();
        let mut moving = pin!(moving);
        loop {
            tokio::select! {
                moved = &mut moving => {
                    return moved.map(|()| begin.elapsed().as_secs_f64());
                }
                watched = self.beside(disk, begin + MOVE, customers) => watched?,
            }
        }
    }

    /// One migration, to its end: how long it took, in seconds, and for how long the
    /// guest was held at the switch-over, in milliseconds.
    async fn migrate(
        &mut self,
        disk: Disk,
        forth: bool,
        customers: Option<&Customers>,
    ) -> anyhow::Result<(f64, Option<f64>)> {
        let to = if forth { disk.new_store() } else { disk.old_store() };
        let asked = StartMigration {
            disk: disk.name().into(),
            to,
            provision: None,
            rate: None,
            verify: false,
            keep_source: false,
            skip_bad_sectors: false,
            guard: AskGuard { keep: Some(KEEP), ..AskGuard::default() },
        };
        let id = self.stage.client().migrate(&asked).await?.id;
        let mut switched = false;
        let begin = Instant::now();
        loop {
            self.beside(disk, begin + MOVE, customers).await?;
            let migration = self.stage.client().migration(id).await?;
            let over = matches!(
                migration.state,
                MigrationState::CleaningUp | MigrationState::Completed
            );
            if over && !std::mem::replace(&mut switched, true) {
                self.note("switched over");
            }
            match migration.state {
                MigrationState::Completed => {
                    let report = migration.report.unwrap_or_default();
                    return Ok((report.duration_s, report.switch_over_ms));
                }
                MigrationState::Paused | MigrationState::Cancelled => {
                    let reason = migration.reason.unwrap_or_default();
                    bail!("{disk} does not move: {}: {reason}", migration.state);
                }
                _ => {}
            }
        }
    }

    /// Watches beside a move that must have ended by then.
    async fn beside(
        &mut self,
        disk: Disk,
        end: Instant,
        customers: Option<&Customers>,
    ) -> anyhow::Result<()> {
        let ticked = timeout_at(end, self.tick()).await;
        ticked.with_context(|| format!("{disk} should have moved by now"))??;
        let left = customers.is_some_and(Customers::have_left);
        ensure!(!left, "the customers have left while {disk} moved");
        Ok(())
    }

    fn note(&mut self, text: &str) {
        let at = self.watch.now();
        self.screen.phase(at, text);
        self.outcome.marks.push(Mark { at, text: text.into() });
    }
}

/// Does something in which nothing is watched, and shows meanwhile how time goes by.
async fn shown<T>(screen: &Screen, watch: &Watch, doing: impl Future<Output = T>) -> T {
    let mut doing = pin!(doing);
    let mut ticks = interval(SHOWN);
    loop {
        tokio::select! {
            done = &mut doing => return done,
            _ = ticks.tick() => screen.tick(watch.now()),
        }
    }
}
