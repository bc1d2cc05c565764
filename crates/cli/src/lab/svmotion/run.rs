//! The experiment: goes through the states, and moves each disk there and back in each.

use std::time::Duration;

use anyhow::{Context, bail, ensure};
use sterna_api::{AskGuard, Migration, MigrationState, StartMigration};
use tokio::time::{Instant, timeout_at};

use super::customers::Customers;
use super::outcome::{Outcome, Second, Trial};
use super::plan::{Disk, Plan, State};
use super::stage::Stage;
use super::watch::{Watch, clock};
use crate::lab::record::Mark;
use crate::lab::screen::Screen;

/// What the guest keeps of what its disks give it, while they move.
pub(super) const KEEP: f64 = 0.97;
/// Of the orders of the high load, what comes at the low one: as in the study.
const LOW: f64 = 0.2;
/// How long one migration may take: a guard may make it long.
const MOVE: Duration = Duration::from_secs(3600);

/// The experiment under way.
pub(super) struct Run<'s> {
    stage: Stage<'s>,
    watch: Watch,
    screen: &'s Screen,
    plan: &'s Plan,
    seed: u64,
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
    ) -> Run<'s> {
        let watch = Watch::begin(stage.client(), daemon);
        Run { stage, watch, screen, plan, seed, outcome: Outcome::default() }
    }

    /// Goes through the states, and asks the guest how it is.
    pub(super) async fn go(mut self) -> anyhow::Result<Outcome> {
        self.note("the guest makes its database");
        self.stage.furnish(self.plan).await?;
        for &state in &self.plan.states {
            match state {
                State::Off => self.stage.off().await?,
                State::Idle | State::Low | State::High => self.stage.on().await?,
            }
            if state.is_busy() {
                self.shop(state).await?;
            } else {
                self.moves(state, None).await?;
            }
        }
        self.note("the guest looks for what is lost or wrong");
        self.outcome.orders = self.stage.check().await?;
        self.outcome.complaints = self.stage.complaints().await?;
        self.outcome.clock = clock()?;
        self.outcome.ticks = self.watch.ticks;
        Ok(self.outcome)
    }

    /// Moves with customers in the store.
    async fn shop(&mut self, state: State) -> anyhow::Result<()> {
        let rate = match state {
            State::Low => Some(LOW * self.most().await?),
            _ => None,
        };
        let customers = self.enter(rate)?;
        self.watch(self.plan.warm_up).await?;
        self.moves(state, Some(&customers)).await?;
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

    /// Moves each disk there and back.
    async fn moves(
        &mut self,
        state: State,
        customers: Option<&Customers>,
    ) -> anyhow::Result<()> {
        let plan = self.plan;
        for &disk in &plan.disks {
            let mut before = self.calm(state).await?;
            for forth in [true, false] {
                let from = self.watch.now();
                let migration = self.migrate(disk, state, forth, customers).await?;
                let until = self.watch.now();
                let after = self.calm(state).await?;
                let calm = [before, after];
                before = after;
                let trial = Trial { disk, state, forth, from, until, calm, migration };
                self.outcome.trials.push(trial);
            }
        }
        Ok(())
    }

    /// A time without a migration.
    async fn calm(&mut self, state: State) -> anyhow::Result<(f64, f64)> {
        let from = self.watch.now();
        self.watch(self.plan.calm(state)).await?;
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

    /// One migration, to its end.
    async fn migrate(
        &mut self,
        disk: Disk,
        state: State,
        forth: bool,
        customers: Option<&Customers>,
    ) -> anyhow::Result<Migration> {
        let (to, way) = match forth {
            true => (disk.new_store(), "old → new"),
            false => (disk.old_store(), "new → old"),
        };
        self.note(&format!("{disk} moves {way}, {state}"));
        let asked = StartMigration {
            disk: disk.name().into(),
            to,
            provision: None,
            rate: None,
            verify: false,
            keep_source: false,
            guard: AskGuard { keep: Some(KEEP), ..AskGuard::default() },
        };
        let id = self.stage.client().migrate(&asked).await?.id;
        let mut switched = false;
        let end = Instant::now() + MOVE;
        loop {
            let ticked = timeout_at(end, self.tick()).await;
            ticked.with_context(|| format!("{disk} should have moved by now"))??;
            let migration = self.stage.client().migration(id).await?;
            let over = matches!(
                migration.state,
                MigrationState::CleaningUp | MigrationState::Completed
            );
            if over && !std::mem::replace(&mut switched, true) {
                self.note("switched over");
            }
            match migration.state {
                MigrationState::Completed => return Ok(migration),
                MigrationState::Paused | MigrationState::Cancelled => {
                    let reason = migration.reason.unwrap_or_default();
                    bail!("{disk} does not move: {}: {reason}", migration.state);
                }
                _ if customers.is_some_and(Customers::have_left) => {
                    bail!("the customers have left while {disk} moved");
                }
                _ => {}
            }
        }
    }

    fn note(&mut self, text: &str) {
        let at = self.watch.now();
        self.screen.phase(at, text);
        self.outcome.marks.push(Mark { at, text: text.into() });
    }
}
