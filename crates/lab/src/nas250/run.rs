//! The experiment for real: everybody works, and wave after wave is moved by a plan.
//!
//! A wave's machines stop, the plan empties their datastore, and they work again. What is
//! said of each wave is what the plan said before it began; and a disk counts as moved
//! only if both of its images were compared and found the same.

use std::time::Duration;

use anyhow::Context;
use sterna_api::{
    Client, Plan, PlanEvacuation, PlannedMove, PlannedMoveState, StartMigration,
};
use sterna_console::output::Output;
use sterna_console::screen::Screen;
use sterna_sim::fluid::{Foretold, Outcome, Phase};
use tokio::time::{MissedTickBehavior, interval};

use super::cast::{Cast, NAS};
use super::stage::{Stage, scout};

/// How often it is looked at.
const WINDOW: Duration = Duration::from_millis(500);

/// The part of the NAS's room that plans may fill: the directory it is in is as full as
/// it is, and that there is room was looked at before.
const SPACE: f64 = 0.98;

/// The experiment under way.
pub(super) struct Run<'s> {
    stage: Stage,
    cast: &'s Cast,
    client: &'s Client,
    /// How long all work before the first wave and after the last, in seconds.
    rest: f64,
    outcome: Outcome,
}

impl<'s> Run<'s> {
    /// Nothing has happened yet.
    pub(super) fn new(
        stage: Stage,
        cast: &'s Cast,
        client: &'s Client,
        rest: f64,
    ) -> Run<'s> {
        Run { stage, cast, client, rest, outcome: Outcome::default() }
    }

    /// Goes through all of it.
    pub(super) async fn go(mut self, output: Output) -> anyhow::Result<Outcome> {
        let waves = self.cast.scenario.waves.len();
        let mut total = 2.0 * self.rest;
        for wave in 0..waves {
            total += self.foretell(wave).await?;
        }
        let screen = Screen::new(output, total);
        self.stage.begin()?;
        self.rest("before", &screen).await?;
        for wave in 0..waves {
            self.wave(wave, &screen).await?;
        }
        self.rest("after", &screen).await?;
        Ok(self.outcome)
    }

    /// Moves a small disk, for predictions to know something of a datastore; gives what a
    /// wave is to take, in seconds.
    async fn foretell(&self, wave: usize) -> anyhow::Result<f64> {
        let disk = scout(&Cast::block(wave));
        let request = StartMigration {
            disk: disk.clone(),
            to: NAS.into(),
            provision: None,
            rate: None,
            verify: true,
            keep_source: false,
            skip_bad_sectors: false,
            guard: Default::default(),
        };
        let id = self.client.migrate(&request).await?.id;
        let mut ticker = interval(WINDOW);
        while !self.client.migration(id).await?.state.ended() {
            ticker.tick().await;
        }
        let plan = PlanEvacuation { dry_run: true, ..evacuation(wave) };
        let plan = self.client.plan_evacuation(&plan).await?;
        Ok(plan.estimate.likely_s.unwrap_or_default())
    }

    /// Some seconds in which nothing is moved.
    async fn rest(&mut self, name: &str, screen: &Screen) -> anyhow::Result<()> {
        screen.phase(self.stage.now(), name);
        let mut phase = self.begin(name)?;
        let mut ticker = interval(WINDOW);
        ticker.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while self.stage.now() < phase.from + self.rest {
            ticker.tick().await;
            let sample = self.stage.window()?;
            screen.tick(sample.at);
            self.outcome.samples.push(sample);
        }
        self.end(&mut phase);
        Ok(())
    }

    /// A wave stops, is moved, and starts again.
    async fn wave(&mut self, wave: usize, screen: &Screen) -> anyhow::Result<()> {
        let name = self.cast.scenario.waves[wave].name.clone();
        screen.phase(self.stage.now(), &name);
        self.stage.stop(wave)?;
        let mut phase = self.begin(&name)?;
        phase.wave = Some(wave);
        let plan = self.client.plan_evacuation(&evacuation(wave)).await?;
        let mut plan = self.client.apply_plan(plan.id).await?;
        phase.predicted = foretold(&plan);
        let mut ticker = interval(WINDOW);
        ticker.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !plan.state.ended() {
            ticker.tick().await;
            plan = self.client.plan(plan.id).await?;
            let cut = phase.until;
            let mut sample = self.stage.window()?;
            let copied = plan.moves.iter().map(copied).sum::<f64>();
            sample.copied = (copied - phase.copied).max(0.0) / (sample.at - cut);
            sample.moving = moves(&plan, PlannedMoveState::Moving).count();
            (phase.copied, phase.until) = (copied, sample.at);
            screen.tick(sample.at);
            self.outcome.samples.push(sample);
        }
        self.moved(&mut phase, &plan);
        self.end(&mut phase);
        self.stage.start(wave)
    }

    /// What a plan that is over has come to.
    fn moved(&mut self, phase: &mut Phase, plan: &Plan) {
        let took = moves(plan, PlannedMoveState::Moved).filter_map(|it| it.took_s);
        phase.moved = moves(plan, PlannedMoveState::Moved).count();
        phase.disks = phase.moved as u64;
        phase.written = phase.copied;
        phase.longest = took.clone().fold(0.0, f64::max);
        phase.shortest = took.reduce(f64::min).unwrap_or_default();
        for stays in plan.moves.iter().filter(|it| it.state != PlannedMoveState::Moved) {
            let why = stays.problem.as_deref().unwrap_or("no reason is known");
            let what = format!("{} did not move: {why}", stays.disk);
            self.outcome.events.push((phase.until, what));
            self.outcome.stuck += 1;
        }
        for stays in &plan.refused {
            let what = format!("{} stays: {}", stays.disk, stays.reason);
            self.outcome.events.push((phase.until, what));
            self.outcome.stuck += 1;
        }
    }

    fn begin(&mut self, name: &str) -> anyhow::Result<Phase> {
        self.stage.phase().with_context(|| format!("cannot begin {name}"))?;
        let from = self.stage.now();
        self.outcome.events.push((from, format!("{name} begins")));
        Ok(Phase { name: name.into(), from, until: from, ..Phase::default() })
    }

    fn end(&mut self, phase: &mut Phase) {
        phase.until = self.stage.now();
        self.stage.tell(phase);
        self.outcome.phases.push(std::mem::take(phase));
    }
}

/// What is asked for: all that is on a wave's datastore goes to the NAS.
fn evacuation(wave: usize) -> PlanEvacuation {
    PlanEvacuation {
        datastore: Cast::block(wave),
        to: vec![NAS.into()],
        space: SPACE,
        by: None,
        keep: None,
        p99_us: None,
        idle_only: false,
        window: None,
        rate: None,
        verify: true,
        at_once: None,
        tiles: Vec::new(),
        dry_run: false,
    }
}

fn foretold(plan: &Plan) -> Option<Foretold> {
    let estimate = &plan.estimate;
    Some(Foretold {
        least: estimate.least_s?,
        likely: estimate.likely_s?,
        most: estimate.most_s?,
    })
}

fn moves(
    plan: &Plan,
    state: PlannedMoveState,
) -> impl Iterator<Item = &PlannedMove> + Clone {
    plan.moves.iter().filter(move |it| it.state == state)
}

/// Bytes of a move that are copied.
fn copied(one: &PlannedMove) -> f64 {
    let part = match one.state {
        PlannedMoveState::Moved => 1.0,
        _ => one.done.unwrap_or_default(),
    };
    part * one.bytes as f64
}
