//! What a step has begin and go on, as a look at every move in turn decides it. The machine looks
//! at few of them, and must decide the same.

use sterna_core::Nanos;
use sterna_placement::waves::{
    Action, LEAST, MOST, Move, Others, PlanRun, Running, Setup, Stage, Wish,
};

/// What moves that are under way take of the datastores: how many there are, and what they
/// copy.
struct Taken {
    at: Vec<(usize, f64)>,
    under_way: usize,
}

impl Taken {
    fn take(&mut self, one: &Move, to: usize) {
        self.under_way += 1;
        for end in [one.from, to] {
            self.at[end] = (self.at[end].0 + 1, self.at[end].1 + one.rate);
        }
    }

    fn has_place(&self, setup: &Setup, one: &Move, to: usize) -> bool {
        if self.under_way == 0 {
            return true;
        }
        let has_place = |end: usize| {
            let (count, rate) = self.at[end];
            let fits = setup.ends[end].speed.is_some_and(|it| rate + one.rate <= it);
            count < LEAST || (count < MOST && fits)
        };
        let at_once = setup.at_once.unwrap_or(usize::MAX);
        self.under_way < at_once && has_place(one.from) && has_place(to)
    }
}

/// By group, whether all of its moves have moved, its workload has started again, and so
/// it is with all groups before it: these have lower numbers.
fn moved(run: &PlanRun) -> Vec<bool> {
    let setup = run.setup();
    let mut moved: Vec<bool> = Vec::new();
    for (at, group) in setup.groups.iter().enumerate() {
        let mine = setup.moves.iter().zip(run.tasks());
        let mut mine = mine.filter(|(one, _)| one.group == Some(at));
        let all = mine.all(|(_, task)| task.stage == Stage::Moved);
        let has_moves = setup.moves.iter().any(|one| one.group == Some(at));
        let is_hooked = has_moves && (group.stops || group.starts);
        let all = all && (!is_hooked || run.workloads()[at].running == Running::Started);
        moved.push(all && group.after.iter().all(|before| moved[*before]));
    }
    moved
}

/// What a step has asked for.
#[derive(Default)]
struct Told {
    begun: Vec<usize>,
    stopped: Vec<usize>,
    woken: Vec<Nanos>,
}

impl Told {
    fn by(actions: &[Action]) -> Told {
        let mut told = Told::default();
        for action in actions {
            match action {
                Action::Start { task, .. } => told.begun.push(*task),
                Action::StopWorkload(group) => told.stopped.push(*group),
                Action::Wake(at) => told.woken.push(*at),
                _ => {}
            }
        }
        told
    }
}

/// What was taken before the step had anything begin.
fn taken_before(run: &PlanRun, others: &[Others], told: &Told) -> Taken {
    let setup = run.setup();
    let at = others.iter().map(|it| (it.copies, it.rate)).collect();
    let mut taken = Taken { at, under_way: 0 };
    for (at, (one, task)) in setup.moves.iter().zip(run.tasks()).enumerate() {
        if task.stage.takes_a_place() && !told.begun.contains(&at) {
            taken.take(one, task.to);
        }
    }
    for (group, workload) in run.workloads().iter().enumerate() {
        let Running::Stopping(at) = workload.running else { continue };
        let waits = run.tasks()[at].stage == Stage::Waiting;
        if waits && !told.stopped.contains(&group) {
            taken.take(&setup.moves[at], run.tasks()[at].to);
        }
    }
    taken
}

/// Whether a group's workload has to stop first, and had not been told to before the step.
fn stops_now(run: &PlanRun, group: usize, told: &Told) -> bool {
    let is_untouched = run.workloads()[group].running == Running::Untouched;
    run.setup().groups[group].stops && (is_untouched || told.stopped.contains(&group))
}

/// When what did not start is tried again.
fn starts(run: &PlanRun) -> Vec<Nanos> {
    let workloads = run.workloads().iter().enumerate();
    let down = workloads.filter(|(group, workload)| {
        let mut mine = run.setup().moves.iter().zip(run.tasks());
        let ended =
            mine.all(|(one, task)| one.group != Some(*group) || task.stage.ended());
        workload.running == Running::Stopped && ended
    });
    down.map(|(_, workload)| workload.not_before).collect()
}

/// Checks what a step has had begin and go on, and when it wants to be asked again.
/// `expected` is the move whose workload has just stopped.
#[track_caller]
pub(crate) fn check(
    run: &PlanRun,
    (others, expected): (&[Others], Option<usize>),
    now: Nanos,
    open: bool,
    actions: &[Action],
) {
    let (setup, told) = (run.setup(), Told::by(actions));
    if run.wish() != Wish::Run || !open {
        assert_eq!(told.begun, [], "nothing may begin");
        return;
    }
    let mut taken = taken_before(run, others, &told);
    let moved = moved(run);
    let (mut begun, mut stopped, mut wakes) = (Vec::new(), Vec::new(), starts(run));
    if let Some(at) = expected {
        let (one, task) = (&setup.moves[at], run.tasks()[at]);
        let held = [one.from, task.to, run.records()].map(|end| run.held_until(end));
        let held = held.into_iter().flatten().max().unwrap_or_default();
        let waited = task.stage == Stage::Waiting || told.begun.contains(&at);
        let may_begin = waited && task.not_before.max(held) <= now;
        if may_begin && taken.has_place(setup, one, task.to) {
            taken.take(one, task.to);
            begun.push(at);
        }
    }
    for (one, task) in setup.moves.iter().zip(run.tasks()) {
        let stands = matches!(task.stage, Stage::Stalled(_)) && task.not_before <= now;
        assert!(!stands || !taken.has_place(setup, one, task.to), "it could go on");
    }
    for (at, (one, task)) in setup.moves.iter().zip(run.tasks()).enumerate() {
        if begun.contains(&at) {
            continue;
        }
        let waited = task.stage == Stage::Waiting || told.begun.contains(&at);
        let held = [one.from, task.to, run.records()].map(|end| run.held_until(end));
        let held = held.into_iter().flatten().max().unwrap_or_default();
        let not_before = match task.stage {
            Stage::Stalled(_) => task.not_before,
            _ => task.not_before.max(held),
        };
        let stops = one.group.filter(|group| stops_now(run, *group, &told));
        let is_held = one.group.is_some_and(|group| match stops {
            Some(_) => stopped.contains(&group),
            None => matches!(run.workloads()[group].running, Running::Stopping(_)),
        });
        let is_ready = !is_held
            && one
                .group
                .is_none_or(|it| setup.groups[it].after.iter().all(|it| moved[*it]));
        if waited && is_ready && not_before <= now && taken.has_place(setup, one, task.to)
        {
            taken.take(one, task.to);
            match stops {
                Some(group) => stopped.push(group),
                None => begun.push(at),
            }
        } else if (waited || matches!(task.stage, Stage::Stalled(_))) && not_before > now
        {
            wakes.push(not_before);
        }
    }
    assert_eq!(told.begun, begun, "these begin");
    assert_eq!(told.stopped, stopped, "these are stopped first");
    let first: Vec<Nanos> = wakes.into_iter().min().into_iter().collect();
    assert_eq!(told.woken, first, "wakes");
}
