//! What requests ask for, in words: the parts of the API that are objects with a meaning of
//! their own.

use serde_json::Value;
use sterna_api::{Aim, AskGuard, Fallback, Goal, Rate};
use sterna_core::{Bytes, Nanos, qos};

/// A field's object in words, if it is one of these; nothing if it does not make sense.
pub(super) fn object(field: &str, value: &Value) -> Option<String> {
    match field {
        "aim" => serde_json::from_value(value.clone()).ok().map(aim),
        "guard" => serde_json::from_value(value.clone()).ok().map(|it| guard(&it)),
        "reservation" => serde_json::from_value(value.clone()).ok().map(rate),
        _ => None,
    }
}

/// `cruise at 1000 IO/s ± 10 %`.
fn aim(aim: Aim) -> String {
    match aim {
        Aim::Limit { goal: most } => format!("limit to {}", goal(most)),
        Aim::QueueDepth { depth } => format!("queue depth {depth}"),
        Aim::Cruise { goal: target, tolerance_percent, floor, fallback } => {
            let mut text =
                format!("cruise at {} \u{b1} {tolerance_percent} %", goal(target));
            if let Some(floor) = floor {
                text.push_str(&format!(", at least {}", rate(floor)));
            }
            text.push_str(&match fallback {
                Fallback::None => String::new(),
                Fallback::Release => ", else release the others".into(),
                Fallback::Limit(most) => {
                    format!(", else limit the others to {}", goal(most))
                }
            });
            text
        }
    }
}

fn goal(goal: Goal) -> String {
    // What is no goal is refused, and told as it came.
    qos::Goal::try_from(goal).map_or_else(|_| format!("{goal:?}"), |it| it.to_string())
}

fn rate(rate: Rate) -> String {
    match rate {
        Rate::BytesPerSecond(rate) => format!("{}/s", Bytes(rate)),
        Rate::Iops(rate) => format!("{rate} IO/s"),
    }
}

/// `keep 97%, p99 below 5.0 ms`.
fn guard(guard: &AskGuard) -> String {
    let AskGuard { keep, p99_us, finish_by, idle_only, window } = guard;
    let parts = [
        keep.map(|part| format!("keep {}", percent(part))),
        p99_us.map(|micros| format!("p99 below {}", Nanos::from_micros(micros))),
        idle_only.then(|| "only while the application is idle".into()),
        window.as_ref().map(|window| format!("only {window}")),
        finish_by.as_ref().map(|by| format!("by {by}")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// A part of a whole, as it is typed: `97%`, `99.5%`.
fn percent(part: f64) -> String {
    let text = format!("{:.1}", part * 100.0);
    format!("{}%", text.strip_suffix(".0").unwrap_or(&text))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn aims_and_guards_are_said_as_people_say_them() {
        let cruise = json!({"kind": "cruise", "goal": {"iops": 1000},
                            "tolerance_percent": 10, "fallback": "none"});
        assert_eq!(object("aim", &cruise).unwrap(), "cruise at 1000 IO/s \u{b1} 10 %");
        let limit = json!({"kind": "limit", "goal": {"bytes_per_second": 20 << 20}});
        assert_eq!(object("aim", &limit).unwrap(), "limit to 20.0 MiB/s");
        let guard = json!({"keep": 0.995, "p99_us": 5000});
        assert_eq!(object("guard", &guard).unwrap(), "keep 99.5%, p99 below 5.0 ms");
        assert_eq!(object("reservation", &json!({"iops": 50})).unwrap(), "50 IO/s");
    }

    #[test]
    fn what_is_no_aim_has_no_words() {
        assert_eq!(object("aim", &json!({"kind": "hope"})), None);
        assert_eq!(object("size", &json!({})), None);
    }
}
