//! Service levels in words.

use sterna_api::{
    Aim, Attainment, BindingLimit, Class, Fallback, Goal, HeldFor, Rate,
    ReservationState, Terms,
};
use sterna_core::Nanos;

use crate::format::{moment_ago, rate as bytes_rate};
use crate::table::Pairs;

/// What is not there.
pub const NOTHING: &str = "-";

/// `1 policy`, `2 policies`.
pub fn policies(number: u64) -> String {
    match number {
        1 => "1 policy".into(),
        many => format!("{many} policies"),
    }
}

/// A rate: `20.0 MiB/s`, `500 IO/s`.
pub fn rate(rate: Rate) -> String {
    match rate {
        Rate::BytesPerSecond(rate) => bytes_rate(rate as f64),
        Rate::Iops(rate) => format!("{rate} IO/s"),
    }
}

/// A goal: `20.0 MiB/s`, `500 IO/s`, `5.0 ms`.
pub fn goal(goal: Goal) -> String {
    match goal {
        Goal::BytesPerSecond(bytes) => rate(Rate::BytesPerSecond(bytes)),
        Goal::Iops(iops) => rate(Rate::Iops(iops)),
        Goal::ResponseMs(span) => Nanos((span * 1e6) as u64).to_string(),
    }
}

/// A limit, which of a response time is the least that requests take.
fn limited(wanted: Goal) -> String {
    match wanted {
        Goal::ResponseMs(_) => format!("at least {}", goal(wanted)),
        Goal::BytesPerSecond(_) | Goal::Iops(_) => goal(wanted),
    }
}

/// What a class is held to: `2.00 MiB/s, 100 IO/s, at least 20.0 ms`.
pub fn limit(terms: &Terms) -> String {
    goals(terms.bytes_per_second, terms.iops, terms.response_ms)
}

/// What a class is held to besides: `to 2.00 MiB/s, for policy 4 of class oltp`.
pub fn held(held: &HeldFor) -> String {
    let to = goals(held.bytes_per_second, held.iops, held.response_ms);
    format!("to {to}, for policy {} of class {}", held.policy, held.class)
}

/// The limit on a class that binds first: `10.0 MiB/s, by policy 9`, `1.00 MiB/s, for policy 2
/// of class gold`.
pub fn binding(by: &BindingLimit) -> String {
    let (limit, policy) = (limited(by.limit), by.policy);
    match &by.target_of {
        Some(class) => format!("to {limit}, for policy {policy} of class {class}"),
        None => format!("to {limit}, by policy {policy}"),
    }
}

fn goals(bytes: Option<u64>, iops: Option<u64>, response_ms: Option<f64>) -> String {
    let goals = [
        bytes.map(Goal::BytesPerSecond),
        iops.map(Goal::Iops),
        response_ms.map(Goal::ResponseMs),
    ];
    let goals: Vec<_> = goals.into_iter().flatten().map(limited).collect();
    match goals.is_empty() {
        true => NOTHING.into(),
        false => goals.join(", "),
    }
}

/// A queue depth, if there is one.
pub fn depth(terms: &Terms) -> String {
    terms.queue_depth.map_or(NOTHING.into(), |depth| depth.to_string())
}

/// A reservation, if there is one.
pub fn reservation(reservation: Option<Rate>) -> String {
    reservation.map_or(NOTHING.into(), rate)
}

/// How far a class's reservation is attained, in a word.
pub fn attainment(class: &Class) -> String {
    class.attained.as_ref().map_or(NOTHING.into(), |it| it.state.to_string())
}

/// What a class has of its reservation, and what that means, if there is something to say.
pub fn attained(class: &Class, pairs: &mut Pairs) {
    let Some(ReservationState { state, since, has, percent }) = &class.attained else {
        return;
    };
    let since = moment_ago(*since);
    pairs.add("attained", format!("{}, {percent} %: {state} since {since}", rate(*has)));
    let why = match state {
        Attainment::Kept => return,
        Attainment::Idle => "the class sends no requests",
        Attainment::Limited => "the class's own limit permits no more",
        Attainment::Sated => "the class asks for less, or for fewer requests at a time",
        Attainment::Alone => "there is no other load",
        Attainment::Sought => {
            "others are slowed down until the class has its reservation"
        }
        Attainment::Lacking => "others are slowed down as far as this helps",
    };
    pairs.add("", why);
}

/// A kind of policy.
pub fn kind(aim: &Aim) -> &'static str {
    match aim {
        Aim::Limit { .. } => "limit",
        Aim::Cruise { .. } => "cruise",
        Aim::QueueDepth { .. } => "queue-depth",
    }
}

/// What a policy wants, without its kind.
pub fn wish(aim: &Aim) -> String {
    match aim {
        Aim::Limit { goal: wanted } => limited(*wanted),
        Aim::Cruise { goal: wanted, tolerance_percent, .. } => {
            format!("{} ± {tolerance_percent} %", goal(*wanted))
        }
        Aim::QueueDepth { depth } => depth.to_string(),
    }
}

/// A fallback in words.
pub fn fallback(fallback: Fallback) -> String {
    match fallback {
        Fallback::None => "other classes stay slow".into(),
        Fallback::Limit(wanted) => {
            format!("each other class is limited to {}", limited(wanted))
        }
        Fallback::Release => "other classes are released".into(),
    }
}

/// What is other then than now: `limit - -> 2.00 MiB/s`.
pub fn changes(now: &Terms, then: &Terms) -> Vec<String> {
    let both = [
        ("reservation", reservation(now.reservation), reservation(then.reservation)),
        ("limit", limit(now), limit(then)),
        ("queue depth", depth(now), depth(then)),
    ];
    let changed = both.into_iter().filter(|(_, now, then)| now != then);
    changed.map(|(what, now, then)| format!("{what} {now} -> {then}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FREE: Terms = Terms {
        reservation: None,
        bytes_per_second: None,
        iops: None,
        response_ms: None,
        queue_depth: None,
        shares: 1000,
    };

    #[test]
    fn limits_are_named_with_their_units() {
        assert_eq!(limit(&FREE), "-");
        let all = Terms {
            bytes_per_second: Some(2 << 20),
            iops: Some(100),
            response_ms: Some(20.0),
            ..FREE
        };
        assert_eq!(limit(&all), "2.00 MiB/s, 100 IO/s, at least 20.0 ms");
        let aim = Aim::Limit { goal: Goal::ResponseMs(20.0) };
        assert_eq!(wish(&aim), "at least 20.0 ms");
    }

    #[test]
    fn only_what_is_other_is_told_of_a_change() {
        let limited = Terms { iops: Some(100), reservation: Some(Rate::Iops(9)), ..FREE };
        let told = changes(&FREE, &limited);
        assert_eq!(told, ["reservation - -> 9 IO/s", "limit - -> 100 IO/s"]);
        assert!(changes(&limited, &limited).is_empty());
    }
}
