//! What binds a class now, since when, and what would change that, in words.

use sterna_api::{
    Aim, CruisePhase, CruiseState, Explanation, Fallback, Policy, Standing,
};
use sterna_console::format::{moment_ago, moment_ahead};
use sterna_console::output::Output;
use sterna_console::table::Pairs;
use sterna_console::terms::{attained, changes, fallback, held, kind, rate, wish};

/// The whole explanation.
pub(crate) fn words(said: &Explanation, output: Output) -> String {
    let mut pairs = Pairs::new();
    pairs.add("class", said.class.name.as_str());
    let zone = said.time_zone.as_deref().unwrap_or("local time");
    pairs.add("now", format!("{} ({zone})", said.local_time));
    pairs.add("shares", said.class.shares.to_string());
    reserved(said, &mut pairs);
    attained(&said.class, &mut pairs);
    standing(said, &mut pairs);
    if let Some(by) = &said.class.held {
        pairs.add("held", held(by));
    }
    coming(said, &mut pairs);
    for note in &said.class.notes {
        pairs.add("note", note.as_str());
    }
    output.pairs(&pairs)
}

fn reserved(said: &Explanation, pairs: &mut Pairs) {
    let now = said.class.in_force.reservation;
    let by_policy = said.policies.iter().find(|one| match one.aim {
        Aim::Cruise { floor, .. } => {
            one.standing == Standing::Binds && floor.is_some() && floor == now
        }
        _ => false,
    });
    let text = match (now, by_policy) {
        (None, _) => "nothing".into(),
        (Some(now), Some(by)) if said.class.reservation != Some(now) => {
            format!("{}: the floor of policy {}", rate(now), by.id)
        }
        (Some(now), _) => format!("{}: the class's own", rate(now)),
    };
    pairs.add("reserved", text);
}

/// What binds first, then what would.
fn standing(said: &Explanation, pairs: &mut Pairs) {
    let of = |standing| said.policies.iter().filter(move |one| one.standing == standing);
    if of(Standing::Binds).next().is_none() {
        pairs.add("binds", "no policy");
    }
    for one in of(Standing::Binds) {
        let cruise = one.cruise.as_ref().map(|cruise| cruise.phase);
        // What has not begun binds nobody yet.
        let verb = match cruise {
            Some(CruisePhase::NotStarted) => "waits",
            _ => "binds",
        };
        pairs.add(verb, format!("{}, since {}", name(one), moment_ago(one.since)));
        if let (Some(cruise), Aim::Cruise { fallback: then, .. }) = (&one.cruise, one.aim)
        {
            pairs.add("", course(cruise, then));
        }
    }
    for one in of(Standing::Looser) {
        let than = one.looser_than.map_or(String::new(), |id| format!("policy {id} "));
        pairs.add("holds too", format!("{}: {than}is tighter", name(one)));
    }
    for one in of(Standing::Closed) {
        let opens = one.until.map_or(String::new(), moment_ahead);
        pairs.add("closed", format!("{}: opens {opens}", name(one)));
    }
}

/// What has become of a target, and of the others if it is out of reach.
fn course(cruise: &CruiseState, then: Fallback) -> String {
    let mut text = cruise.phase.to_string();
    if let Some(reason) = &cruise.reason {
        text.push_str(&format!(": {reason}"));
    }
    match cruise.fallback {
        Some(in_force) => format!("{text}; so {}", fallback(in_force)),
        None => format!("{text}; if the target is out of reach: {}", fallback(then)),
    }
}

/// What would change it, the next first.
fn coming(said: &Explanation, pairs: &mut Pairs) {
    let mut nothing = true;
    if let (Some(next), Some(then)) = (said.next_change, &said.then) {
        nothing = false;
        let due = said.policies.iter().filter(|one| one.until == Some(next));
        let switched: Vec<_> = due.map(switch).collect();
        let mut text = format!("{}: {}", moment_ahead(next), switched.join(", "));
        let changed = changes(&said.class.in_force, then);
        if !changed.is_empty() {
            text.push_str(&format!("; {}", changed.join(", ")));
        }
        pairs.add("changes", text);
    }
    for one in &said.policies {
        if let Some(job) = one.until_job {
            nothing = false;
            let text = format!("when migration {job} ends: policy {} goes", one.id);
            pairs.add("changes", text);
        }
    }
    if nothing {
        pairs.add("changes", "only by a command: no policy has a schedule or a job");
    }
}

fn switch(one: &Policy) -> String {
    let word = match one.standing {
        Standing::Closed => "opens",
        Standing::Binds | Standing::Looser => "closes",
    };
    format!("policy {} {word}", one.id)
}

/// `limit 2.00 MiB/s (policy 3, Mon-Fri 22:00-06:00)`.
fn name(one: &Policy) -> String {
    let schedule = one.schedule.as_ref().map_or(String::new(), |it| format!(", {it}"));
    format!("{} {} (policy {}{schedule})", kind(&one.aim), wish(&one.aim), one.id)
}

#[cfg(test)]
mod tests {
    use sterna_api::{CruisePhase, Goal};

    use super::*;

    #[test]
    fn a_fallback_that_is_in_force_is_not_said_as_one_that_may_come() {
        let then = Fallback::Limit(Goal::BytesPerSecond(5 << 20));
        let cruise = |phase, fallback| CruiseState {
            phase,
            since: Some(1),
            reason: None,
            fallback,
        };
        let others = "each other class is limited to 5.00 MiB/s";
        let coming = course(&cruise(CruisePhase::Holding, None), then);
        assert_eq!(coming, format!("holding; if the target is out of reach: {others}"));
        let in_force = course(&cruise(CruisePhase::Unreachable, Some(then)), then);
        assert_eq!(in_force, format!("unreachable; so {others}"));
    }
}
