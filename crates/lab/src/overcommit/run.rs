//! The experiment for real: on each medium, the guest's memory goes out and comes back in each way.
//!
//! The kernel's own way comes first: for it the daemon forgets the VM, and with it what it knows of
//! earlier wakes. Then the guest wakes once for Sterna to learn from.

use std::time::Duration;

use anyhow::{Context, ensure};
use sterna_api::{VmMemory, VmMemoryState, WakeVm};
use sterna_console::screen::Screen;
use sterna_sim::overcommit::Medium;
use tokio::time::{Instant, interval};

use super::bars;
use super::outcome::{Base, Outcome, Sleep, Trial};
use super::plan::{LEARN, Plan, WARM_UP, Way};
use super::stage::{Stage, VM};
use super::tier::{Tier, name as tier_name};
use crate::guest::customers::Customers;
use crate::site::Site;

/// How often the time left is shown, and customers are looked after.
const SHOWN: Duration = Duration::from_secs(1);

/// The experiment under way.
pub(super) struct Run<'s> {
    // First: the guest ends before its swap does.
    stage: Stage<'s>,
    tier: Option<Tier>,
    site: &'s Site,
    screen: &'s Screen,
    plan: &'s Plan,
    began: Instant,
    outcome: Outcome,
}

impl<'s> Run<'s> {
    /// An experiment with a guest that has done nothing yet.
    pub(super) fn new(
        stage: Stage<'s>,
        site: &'s Site,
        screen: &'s Screen,
        plan: &'s Plan,
        began: Instant,
    ) -> Run<'s> {
        let outcome = Outcome::default();
        Run { stage, tier: None, site, screen, plan, began, outcome }
    }

    /// Goes through all media.
    pub(super) async fn go(mut self) -> anyhow::Result<Outcome> {
        self.phase("customers warm the guest up");
        self.shop(WARM_UP).await?;
        for medium in &self.plan.media {
            self.medium(*medium).await?;
        }
        self.phase("the experiment looks for each order");
        self.outcome.found = self.stage.check().await?;
        Ok(self.outcome)
    }

    async fn medium(&mut self, medium: Medium) -> anyhow::Result<()> {
        self.phase(&format!("{medium}: a swap tier is made and measured"));
        let tier = Tier::add(self.site, medium, super::plan::MEMORY).await?;
        let facts = tier.facts.clone();
        self.tier = Some(tier);
        self.phase(&format!("{medium}: orders without any wake"));
        let orders = self.shop(self.plan.seconds).await?;
        ensure!(orders.iter().sum::<f64>() > 0.0, "the guest's database took no orders");
        let usual = bars::mean_of(&orders);
        self.screen.say(&format!("{medium}, without a wake: orders/s {usual:.1}"));
        self.outcome.bases.push(Base { medium, tier: facts, orders });
        for _ in 0..self.plan.repeats {
            self.alone(medium).await?;
        }
        self.phase(&format!("{medium}: a wake that Sterna learns from"));
        let customers = self.gather().await?;
        self.stage.sleep(&tier_name(medium)).await?;
        self.stage.go_on().await?;
        let customers = self.watch(customers, LEARN).await?;
        self.leave(customers, LEARN).await?;
        self.woke().await?;
        for _ in 0..self.plan.repeats {
            for way in [Way::Beside, Way::Held] {
                self.wake(medium, way).await?;
            }
        }
        self.phase(&format!("{medium}: the swap tier is removed"));
        if let Some(tier) = self.tier.take() {
            tier.remove(self.site).await?;
        }
        Ok(())
    }

    /// A wake that only the kernel brings about.
    async fn alone(&mut self, medium: Medium) -> anyhow::Result<()> {
        self.phase(&format!("{medium}, {}: the guest sleeps", Way::Alone));
        let customers = self.gather().await?;
        let asleep = self.stage.sleep(&tier_name(medium)).await?;
        self.stage.forgotten().await?;
        self.stage.go_on().await?;
        self.phase(&format!("{medium}, {}: customers come", Way::Alone));
        let customers = self.watch(customers, self.plan.seconds).await?;
        // Those who wait for an order would wait for minutes.
        self.stage.known().await?;
        self.site.client().wake_vm(VM, &WakeVm::default()).await?;
        let orders = self.leave(customers, self.plan.seconds).await?;
        self.keep(medium, Way::Alone, asleep, orders);
        self.woke().await?;
        Ok(())
    }

    /// A wake that Sterna brings about.
    async fn wake(&mut self, medium: Medium, way: Way) -> anyhow::Result<()> {
        self.phase(&format!("{medium}, {way}: the guest sleeps"));
        let customers = self.gather().await?;
        let asleep = self.stage.sleep(&tier_name(medium)).await?;
        self.phase(&format!("{medium}, {way}: customers come"));
        // Before the guest goes on: its first request would have it woken, and perhaps held.
        if way == Way::Beside {
            self.site.client().wake_vm(VM, &WakeVm { hold_ms: Some(0) }).await?;
        }
        self.stage.go_on().await?;
        let customers = self.watch(customers, self.plan.seconds).await?;
        let orders = self.leave(customers, self.plan.seconds).await?;
        self.keep(medium, way, asleep, orders);
        let woke = self.woke().await?;
        if let Some(trial) = self.outcome.trials.last_mut() {
            trial.wake = woke.last_wake;
        }
        Ok(())
    }

    fn keep(
        &mut self,
        medium: Medium,
        way: Way,
        (memory, sleep): (VmMemory, Sleep),
        orders: Vec<f64>,
    ) {
        // What is known by now is told: the rest takes a while, and may fail.
        let of = |until: usize| bars::mean_of(&orders[..until.min(orders.len())]);
        let (first, early, all) = (of(bars::FIRST), of(bars::EARLY), of(orders.len()));
        let told =
            format!("{first:.1} in the first 10 s, {early:.1} in 30 s, {all:.1} in all");
        self.screen.say(&format!("{medium}, {way}: orders/s {told}"));
        let sleep = (memory.state == VmMemoryState::Asleep).then_some(sleep);
        let out = memory.out.unwrap_or_default();
        let trial = Trial { medium, way, orders, out, sleep, wake: None };
        self.outcome.trials.push(trial);
    }

    /// Waits until the guest is awake, and looks whether its memory is what it was.
    async fn woke(&mut self) -> anyhow::Result<VmMemory> {
        let memory = self.stage.awake().await?;
        let whole = self.stage.is_whole().await?;
        self.outcome.looks.0 += 1;
        self.outcome.looks.1 += u64::from(!whole);
        Ok(memory)
    }

    /// Customers shop for so long: the orders of each second.
    async fn shop(&mut self, seconds: u64) -> anyhow::Result<Vec<f64>> {
        let customers = self.gather().await?;
        let customers = self.watch(customers, seconds).await?;
        self.leave(customers, seconds).await
    }

    /// Customers come to the door. They do before the guest sleeps: one that starves takes no
    /// connections.
    async fn gather(&mut self) -> anyhow::Result<Customers> {
        let (store, server) = self.stage.shop()?;
        let orders = self.stage.orders();
        Customers::gather(&server, store, None, self.plan.seed, &orders).await
    }

    /// The door opens, and they shop for so long.
    async fn watch(
        &mut self,
        mut customers: Customers,
        seconds: u64,
    ) -> anyhow::Result<Customers> {
        customers.open();
        let end = Instant::now() + Duration::from_secs(seconds);
        let mut ticks = interval(SHOWN);
        while Instant::now() < end {
            ticks.tick().await;
            self.screen.tick(self.began.elapsed().as_secs_f64());
            ensure!(!customers.have_left(), "the customers have left");
        }
        Ok(customers)
    }

    /// They leave when they have got what they ordered last: the orders of each of the first
    /// seconds.
    async fn leave(
        &mut self,
        customers: Customers,
        seconds: u64,
    ) -> anyhow::Result<Vec<f64>> {
        let seen = customers.leave().await.context("the guest's store")?;
        let errors = seen.report.errors.iter().map(|trouble| trouble.count);
        self.outcome.failed += errors.sum::<u64>();
        let all = seen.report.series.iter().map(|window| window.orders_per_s);
        let mut all: Vec<f64> = all.take(seconds as usize).collect();
        all.resize(seconds as usize, 0.0);
        Ok(all)
    }

    fn phase(&self, what: &str) {
        self.screen.phase(self.began.elapsed().as_secs_f64(), what);
    }
}
