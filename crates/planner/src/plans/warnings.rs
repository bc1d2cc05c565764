//! What somebody should look at of plans.

use sterna_api::{Result, Warning, WorkloadState};
use sterna_os::{clock, lock};
use sterna_placement::waves::Stage;
use sterna_state::PlanRecord;

use super::State;
use super::view::view_workloads;
use crate::Planner;

/// For how long it is said of a plan that is over that what it stopped did not start. Nobody
/// tells the daemon when it was started by hand; whoever looks once a day is told.
const SAID_FOR: u64 = 24 * 60 * 60;

impl Planner {
    /// What somebody should look at of plans under way, and what ended ones have left down.
    pub fn plan_warnings(&self) -> Result<Vec<Warning>> {
        let live = self.live_plans();
        let mut warnings = Vec::new();
        for one in &live {
            warnings.extend(of_live(&lock(&one.state)));
        }
        let left =
            self.storage.store.plans_left_down(clock::now().saturating_sub(SAID_FOR))?;
        let over = left.iter().filter(|plan| live.iter().all(|one| one.id != plan.id));
        warnings.extend(over.flat_map(left_down));
        Ok(warnings)
    }
}

fn of_live(state: &State) -> Vec<Warning> {
    let record = &state.record;
    let id = record.id;
    let failed = state.run.tasks().iter();
    let failed = failed.filter(|it| matches!(it.stage, Stage::Failed(_))).count();
    let closed = record.closed.iter().zip(&record.design.ends);
    let closed = closed.filter_map(|(closed, end)| {
        let why = &closed.as_ref()?.why;
        Some(format!("datastore {} is left alone: {why}", end.name))
    });
    let failed =
        (failed > 0).then(|| format!("{failed} of the plan's moves have failed"));
    let down = view_workloads(record).into_iter();
    let down = down.filter_map(|it| {
        Some(format!(
            "the application on tile {} ({}): {}",
            it.tile, it.state, it.problem?
        ))
    });
    let see = |message| Warning {
        about: format!("plan {id}"),
        message,
        hint: format!("see `sterna plan report {id}`"),
    };
    let stuck = state.stuck.as_ref().map(|why| Warning {
        about: format!("plan {id}"),
        message: format!(
            "the plan is stalled, because Sterna cannot record its progress: {why}"
        ),
        hint: "repair this: the plan then continues by itself".into(),
    });
    stuck.into_iter().chain(closed.chain(failed).chain(down).map(see)).collect()
}

/// What a plan has stopped, and nobody has started since as far as it knows.
fn left_down(plan: &PlanRecord) -> Vec<Warning> {
    let left = view_workloads(plan).into_iter();
    let left = left.filter(|it| it.state == WorkloadState::NotStarted);
    let warning = |tile: String, problem: Option<String>| Warning {
        about: format!("plan {}", plan.id),
        message: format!(
            "the application on tile {tile} was not started again: {}",
            problem.unwrap_or_default()
        ),
        hint:
            "if the application is still stopped, start it by hand (this warning stays \
             for a day)"
                .into(),
    };
    left.map(|it| warning(it.tile, it.problem)).collect()
}
