//! Plans: many moves, made, begun and seen to their end.
//!
//! A plan is made from what there is (`make`) and kept; nothing begins before it is
//! applied. From then on a thread (`drive`) has the plan's state machine
//! (`placement::waves`) hear what became of its moves and does what it asks for, by the
//! migrations that `sterna_moves` carries out. A migration of a plan is one like any
//! other: it can be paused, changed and cancelled by its number, and the plan takes note.
//!
//! **What is durable.** All that a step of the state machine has changed is in the store
//! before anything is done about it. A move that is to begin has the number of the last
//! migration there was: after a kill, a later one of its disk is its own, and without one
//! it has not begun. What the plan has had stand still says so until it goes on again, so
//! that a kill in between leaves no migration paused that nobody would wake.
//!
//! **Locks.** Whoever holds a plan's lock, or the turn in which plans begin, asks no
//! datastore for anything: a list, a page and a wish are answered however long one hangs.
//! What may hang is done on threads, one for each move at most (`begin`, `control_request`) and one
//! for each tile (`hooks`).
//!
//! **Failure cases.** A state that takes no more stops a plan, not the moves that are
//! under way, and it goes on when that can be recorded.

mod begin;
mod control_request;
mod drive;
mod ends;
mod hooks;
mod make;
mod others;
mod plan_run;
mod remove;
mod scene;
mod tiles;
mod view;
mod warnings;
mod words;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use sterna_api::{Error, Plan, PlanState, Result};
use sterna_core::{DiskId, Nanos};
use sterna_os::wake::Waker;
use sterna_os::{clock, lock};
use sterna_placement::waves::{Event, PlanRun, Stage, Wish};
use sterna_state::{PlanChanges, PlanRecord};
use sterna_telemetry::figures::RECENT;
use tokio::sync::watch;

pub use self::drive::driving;
use self::hooks::check_hooks_still;
use self::plan_run::run_of;
use self::scene::check_still_fits;
use crate::Planner;
use crate::site::Site;

/// What the daemon has for plans.
#[derive(Debug)]
pub(crate) struct Plans {
    /// When their clock began.
    began: Instant,
    /// Whoever begins a plan, or ends one that has not begun, holds this.
    turn: Mutex<()>,
    /// Those that are applied and not over.
    live: Mutex<BTreeMap<u64, Arc<Live>>>,
    /// Wakes who drives them.
    pub(crate) waker: Waker,
}

impl Plans {
    /// None is under way.
    pub(crate) fn new() -> Plans {
        Plans {
            began: Instant::now(),
            turn: Mutex::default(),
            live: Mutex::default(),
            waker: Waker::default(),
        }
    }
}

/// A plan that is applied and not over.
#[derive(Debug)]
struct Live {
    id: u64,
    state: Mutex<State>,
    /// What threads have found out that start moves, or run hooks.
    inbox: Mutex<Vec<Heard>>,
    /// Whether it is given up.
    given_up: watch::Sender<bool>,
}

/// How far a plan is.
#[derive(Clone, Debug)]
struct State {
    record: PlanRecord,
    run: PlanRun,
    /// When the state machine wants to be asked again.
    wake: Option<Nanos>,
    /// The moves of which something is being asked.
    control_requests: HashSet<usize>,
    /// When moves were told to be given up.
    told_to_leave: HashMap<usize, Instant>,
    /// Why what it has heard could not be recorded.
    stuck: Option<String>,
}

/// Something that a plan's state machine is to hear.
#[derive(Clone, Debug)]
struct Heard {
    event: Event,
    /// The migration, of one that has begun.
    migration: Option<u64>,
    /// What went wrong, in words.
    problem: Option<String>,
    /// What the migration took, in seconds.
    took_s: Option<f64>,
}

/// A move that a plan under way has still to make, or is making.
#[derive(Clone, Debug)]
pub(crate) struct StillPlanned {
    /// The plan.
    pub(crate) plan: u64,
    pub(crate) disk: DiskId,
    /// Its last migration, if it had any.
    pub(crate) migration: Option<u64>,
    /// The datastore that the plan empties.
    pub(crate) empties: String,
    pub(crate) to: String,
    /// Bytes that the disk may take there.
    pub(crate) needs: u64,
}

impl Heard {
    fn of(event: Event) -> Heard {
        Heard { event, migration: None, problem: None, took_s: None }
    }
}

impl State {
    fn new(record: PlanRecord, run: PlanRun) -> State {
        State {
            record,
            run,
            wake: None,
            control_requests: HashSet::new(),
            told_to_leave: HashMap::new(),
            stuck: None,
        }
    }
}

impl Live {
    fn new(record: PlanRecord, run: PlanRun) -> Live {
        let given_up = watch::Sender::new(run.wish() == Wish::Cancel);
        let (id, state) = (record.id, Mutex::new(State::new(record, run)));
        Live { id, state, inbox: Mutex::default(), given_up }
    }
}

impl Planner {
    /// All plans, oldest first.
    pub fn list_plans(&self) -> Result<Vec<Plan>> {
        // Those under way first: one that ends now is in the state with its end.
        let live = self.live_plans();
        let view = |record: PlanRecord| {
            let live = live.iter().find(|one| one.id == record.id);
            self.view_known_plan(live, record)
        };
        Ok(self.storage.store.plans()?.into_iter().map(view).collect())
    }

    /// One plan.
    pub fn show_plan(&self, id: u64) -> Result<Plan> {
        let live = self.live_plan(id);
        Ok(self.view_known_plan(live.as_ref(), self.plan_record(id)?))
    }

    /// A record as the API shows it; that of a plan under way as it is now.
    fn view_known_plan(&self, live: Option<&Arc<Live>>, record: PlanRecord) -> Plan {
        let (record, run) = match live {
            Some(live) => {
                let State { record, run, .. } = lock(&live.state).clone();
                (record, run)
            }
            None => {
                let run = run_of(&record).0;
                (record, run)
            }
        };
        self.view_plan(record, &run)
    }

    fn plan_record(&self, id: u64) -> Result<PlanRecord> {
        self.storage.store.plan(id)?.ok_or_else(|| Error::not_found("plan", id))
    }

    fn live_plan(&self, id: u64) -> Option<Arc<Live>> {
        lock(&self.plans.live).get(&id).cloned()
    }

    fn live_plans(&self) -> Vec<Arc<Live>> {
        lock(&self.plans.live).values().cloned().collect()
    }

    /// The plan under way that a datastore is an end of.
    pub(crate) fn plan_that_uses(&self, datastore: &str) -> Option<u64> {
        let uses = |one: &StillPlanned| one.empties == datastore || one.to == datastore;
        self.still_planned().iter().find(|one| uses(one)).map(|one| one.plan)
    }

    /// Begins a plan.
    pub fn apply_plan(self: &Arc<Self>, id: u64) -> Result<Plan> {
        let mut site = self.site_at_rest(RECENT, |_| false)?;
        // Programs may be where nobody answers: nobody else waits for that.
        check_hooks_still(&self.plan_record(id)?)?;
        let _turn = lock(&self.plans.turn);
        let mut record = self.plan_record(id)?;
        self.see_what_is_under_way(&mut site)?;
        self.check_may_begin(&record, &site)?;
        record.state = PlanState::Running;
        record.started = Some(clock::now());
        self.storage.store.set_plan(&record, PlanChanges::default())?;
        let (run, _) = run_of(&record);
        let live = Arc::new(Live::new(record, run));
        lock(&self.plans.live).insert(id, live);
        tracing::info!(plan = id, "plan begun");
        self.plans.waker.wake();
        self.show_plan(id)
    }

    fn check_may_begin(&self, record: &PlanRecord, site: &Site) -> Result<()> {
        let id = record.id;
        match record.state {
            PlanState::Planned => {}
            PlanState::Paused => {
                let message = format!("plan {id} is paused");
                let hint = format!("resume the plan: `sterna plan resume {id}`");
                return Err(Error::in_use(message).hint(hint));
            }
            state => {
                let message =
                    format!("plan {id} is {state}, and a plan begins only once");
                return Err(Error::invalid(message).hint(again(record)));
            }
        }
        if record.moves.is_empty() {
            let message = format!("plan {id} moves nothing");
            let hint = format!("`sterna plan show {id}` gives the reasons");
            return Err(Error::invalid(message).hint(hint));
        }
        let used = record.moves.iter().flat_map(|one| [one.design.from, one.design.to]);
        for end in used {
            self.storage.handle(&record.design.ends[end].name)?;
        }
        let planned: HashMap<DiskId, u64> =
            site.planned.iter().map(|one| (one.disk, one.plan)).collect();
        for one in &record.moves {
            if let Some(other) = planned.get(&one.disk) {
                let name = &one.design.name;
                let message = format!("disk {name} is moved by plan {other} already");
                let hint = format!("wait for that plan, or `sterna plan cancel {other}`");
                return Err(Error::in_use(message).hint(hint));
            }
        }
        self.check_still_together(record)?;
        check_still_fits(record, site)
    }

    /// The moves that plans under way have still to make, or are making, and those after
    /// which something has still to be started.
    pub(crate) fn still_planned(&self) -> Vec<StillPlanned> {
        let of_plan = |live: &Arc<Live>| {
            let state = lock(&live.state);
            let ends = &state.record.design.ends;
            let moves = state.record.moves.iter().zip(state.run.tasks());
            let is_down = |group: Option<usize>| {
                group.is_some_and(|it| !state.run.workloads()[it].running.is_settled())
            };
            let open = moves
                .filter(|(one, task)| !task.stage.ended() || is_down(one.design.group));
            let planned = open.map(|(one, task)| StillPlanned {
                plan: live.id,
                disk: one.disk,
                migration: one.course.migration,
                empties: ends[one.design.from].name.clone(),
                to: ends[task.to].name.clone(),
                needs: one.design.needs,
            });
            planned.collect::<Vec<_>>()
        };
        self.live_plans().iter().flat_map(of_plan).collect()
    }

    /// Makes a plan and its moves stand still.
    pub fn pause_plan(self: &Arc<Self>, id: u64) -> Result<Plan> {
        self.wish_of_plan(id, Wish::Pause)
    }

    /// Makes a plan and its moves go on.
    pub fn resume_plan(self: &Arc<Self>, id: u64) -> Result<Plan> {
        self.wish_of_plan(id, Wish::Run)
    }

    /// Gives a plan up. What has moved stays where it is.
    pub fn cancel_plan(self: &Arc<Self>, id: u64) -> Result<Plan> {
        let turn = lock(&self.plans.turn);
        let mut record = self.plan_record(id)?;
        if record.state != PlanState::Planned {
            drop(turn);
            return self.wish_of_plan(id, Wish::Cancel);
        }
        record.state = PlanState::Cancelled;
        record.ended = Some(clock::now());
        let given_up = record.moves.iter_mut().enumerate().map(|(at, one)| {
            one.course.stage = Stage::GivenUp;
            (at, one.course.clone())
        });
        let moves = given_up.collect();
        self.storage
            .store
            .set_plan(&record, PlanChanges { moves, ..PlanChanges::default() })?;
        tracing::info!(plan = id, "plan cancelled before it began");
        drop(turn);
        self.show_plan(id)
    }

    fn wish_of_plan(self: &Arc<Self>, id: u64, wish: Wish) -> Result<Plan> {
        let Some(live) = self.live_plan(id) else {
            return Err(not_under_way(&self.plan_record(id)?));
        };
        let mut state = lock(&live.state);
        if state.run.has_ended() {
            return Err(not_under_way(&state.record));
        }
        if state.run.wish() == Wish::Cancel && wish != Wish::Cancel {
            let message = format!("plan {id} is being cancelled");
            return Err(Error::in_use(message).hint(again(&state.record)));
        }
        let actions = self.advance(&mut state, vec![Heard::of(Event::Wish(wish))])?;
        drop(state);
        if wish == Wish::Cancel {
            live.given_up.send_replace(true);
        }
        tracing::info!(plan = id, ?wish, "a plan has a new command");
        self.carry_out(&live, actions);
        self.plans.waker.wake();
        self.show_plan(id)
    }
}

/// Nothing more can be asked of a plan that is over, or has not begun.
fn not_under_way(record: &PlanRecord) -> Error {
    let id = record.id;
    match record.state {
        PlanState::Planned => Error::invalid(format!("plan {id} has not begun"))
            .hint(format!("begin the plan: `sterna plan apply {id}`")),
        state => Error::invalid(format!("plan {id} has ended: {state}"))
            .hint(format!("see `sterna plan report {id}`")),
    }
}

/// How to move what a plan has not moved.
fn again(record: &PlanRecord) -> String {
    let datastore = &record.design.datastore;
    format!(
        "to move the remaining disks, make a new plan: `sterna plan evacuate {datastore}`"
    )
}
