//! What must hold for the application while its disk moves: how it is asked for, and
//! how it fares, in words.

use clap::Args;
use sterna_api::{AskGuard, Guard, GuardState, Guarding};
use sterna_console::format::{iops, moment, rate, response, span};
use sterna_core::Nanos;
use sterna_core::qos::policy::RESPONSE_MIN;
use sterna_core::schedule::Schedule;
use sterna_daemon::is_moment;

/// What is promised to the application.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct PromiseArgs {
    /// The application keeps at least this part of its IO/s (97%)
    #[arg(long, value_name = "PERCENT", value_parser = parse_part)]
    keep: Option<f64>,
    /// The application's p99 response time stays below this (5ms)
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    p99: Option<Nanos>,
    /// Copy only while the application sends no requests
    #[arg(long, conflicts_with_all = ["keep", "p99"])]
    idle_only: bool,
}

/// What must hold meanwhile.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct GuardArgs {
    #[command(flatten)]
    promise: PromiseArgs,
    /// The move should end by this time (06:00, "2027-01-31 06:00", 8h); the promise to
    /// the application comes first
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    finish_by: Option<String>,
    /// Copy only while this schedule is open ("22:00-06:00")
    #[arg(long, value_name = "SCHEDULE", value_parser = parse_schedule)]
    window: Option<String>,
}

impl PromiseArgs {
    /// In the API's form.
    pub(crate) fn request(&self) -> AskGuard {
        AskGuard {
            keep: self.keep,
            p99_us: self.p99.map(|span| span.0.div_ceil(1000)),
            idle_only: self.idle_only,
            ..AskGuard::default()
        }
    }
}

impl GuardArgs {
    /// Whether nothing is asked for.
    pub(crate) fn is_none(&self) -> bool {
        self.request() == AskGuard::default()
    }

    /// In the API's form.
    pub(crate) fn request(&self) -> AskGuard {
        AskGuard {
            finish_by: self.finish_by.clone(),
            window: self.window.clone(),
            ..self.promise.request()
        }
    }
}

/// A guard as options of `sterna migrate`, each behind a space: ` --keep 97%`.
pub(crate) fn options(guard: &AskGuard) -> String {
    let keep = guard.keep.map(|keep| format!(" --keep {}", percent(keep)));
    let p99 = guard.p99_us.map(|p99| match p99 % 1000 {
        0 => format!(" --p99 {}ms", p99 / 1000),
        _ => format!(" --p99 {p99}us"),
    });
    let by = guard.finish_by.as_ref().map(|by| format!(" --finish-by '{by}'"));
    let idle = guard.idle_only.then(|| " --idle-only".to_owned());
    let window = guard.window.as_ref().map(|window| format!(" --window '{window}'"));
    keep.into_iter().chain(p99).chain(by).chain(idle).chain(window).collect()
}

/// The smallest part that is asked for, in percent: less is shown as nothing, and is a mistake.
const LEAST_PART: f64 = 0.1;

pub(crate) fn parse_part(text: &str) -> Result<f64, String> {
    let bare = text.trim();
    let number = bare.strip_suffix('%');
    let percent = number.unwrap_or(bare).trim().parse().ok();
    let percent = percent.filter(|part: &f64| *part > 0.0 && *part <= 100.0);
    let percent = percent.ok_or("give a percentage above 0% and at most 100% (90%)")?;
    if percent < LEAST_PART && (number.is_some() || percent * 100.0 < LEAST_PART) {
        return Err(format!("give at least {LEAST_PART}%"));
    }
    if number.is_none() && percent < 1.0 {
        let meant = (percent * 1e6).round() / 1e4;
        return Err(match percent < LEAST_PART {
            true => format!("give {meant}%"),
            false => format!("give {meant}%, or {bare}% if you mean less than 1%"),
        });
    }
    Ok(percent / 100.0)
}

/// A response time.
pub(crate) fn parse_span(text: &str) -> Result<Nanos, String> {
    match parse_short(text)? {
        Nanos(0) => Err("give a response time above zero".into()),
        span if span < RESPONSE_MIN => {
            Err(format!("give a response time of at least {RESPONSE_MIN}"))
        }
        span => Ok(span),
    }
}

/// Reads a span. If the unit is missing, the error names the two usual ones.
fn span_of(text: &str, usual: [&str; 2]) -> Result<Nanos, String> {
    let number = text.trim();
    if number.parse::<f64>().is_ok_and(|it| it > 0.0 && it.is_finite()) {
        let [one, other] = usual;
        return Err(format!(
            "the unit is missing: give {number}{one} or {number}{other}"
        ));
    }
    text.parse().map_err(|error| format!("{error}"))
}

/// A short span, which may be zero.
pub(crate) fn parse_short(text: &str) -> Result<Nanos, String> {
    span_of(text, ["ms", "s"])
}

/// A span of minutes, hours or days.
pub(crate) fn parse_long(text: &str) -> Result<Nanos, String> {
    match span_of(text, ["min", "h"])? {
        Nanos(0) => Err("give a span above zero (30s, 5min, 1h)".into()),
        span => Ok(span),
    }
}

/// Checked here, so that a mistake is a usage error; said as it was typed.
pub(crate) fn parse_schedule(text: &str) -> Result<String, String> {
    text.parse::<Schedule>().map(|_| text.to_owned()).map_err(|error| error.to_string())
}

/// A moment: checked here, so that a mistake is a usage error; said as it was typed. Which one it
/// is, the daemon says by its own clock.
pub(crate) fn parse_moment(text: &str) -> Result<String, String> {
    let wrong = || {
        "this is no time: give a time of day (06:00), a date and a time (2027-01-31 06:00), or \
         a span from now (8h)"
            .to_owned()
    };
    is_moment(text).then(|| text.to_owned()).ok_or_else(wrong)
}

/// What was asked for: `keep 97%, by 06:00`.
pub(crate) fn asked(guard: &Guard) -> String {
    let mut parts = Vec::new();
    if let Some(keep) = guard.keep {
        parts.push(format!("keep {}", percent(keep)));
    }
    if let Some(p99) = guard.p99_us {
        parts.push(format!("p99 below {}", response(Some(p99 as f64))));
    }
    if guard.idle_only {
        parts.push("only while the disk is idle".into());
    }
    if let Some(window) = &guard.window {
        parts.push(format!("only {window}"));
    }
    if let Some(by) = guard.finish_by {
        parts.push(format!("by {}", moment(by)));
    }
    if parts.is_empty() { "none".into() } else { parts.join(", ") }
}

/// How it fares: `holding: 98.2% of 4120 IO/s, copy up to 212 MiB/s`.
pub(crate) fn fares(guarding: &Guarding) -> Option<String> {
    let state = guarding.state?;
    let mut parts = Vec::new();
    match (guarding.kept, guarding.baseline_iops) {
        (Some(kept), Some(baseline)) => {
            parts.push(format!("{} of {} IO/s", percent(kept), iops(baseline)));
        }
        (_, Some(baseline)) => parts.push(format!("{} IO/s by itself", iops(baseline))),
        _ => {}
    }
    if let Some(p99) = guarding.p99_us {
        parts.push(format!("p99 {}", response(Some(p99 as f64))));
    }
    match guarding.allowance {
        Some(0) if state != GuardState::Closed => {
            parts.push("copy only while idle".into());
        }
        Some(most) if most > 0 => parts.push(format!("copy up to {}", rate(most as f64))),
        _ => {}
    }
    if let Some(late) = guarding.late_s.filter(|late| *late >= 1.0) {
        parts.push(format!("{} late", span(late)));
    }
    if let Some(reason) = &guarding.reason {
        parts.push(reason.clone());
    }
    match parts.is_empty() {
        true => Some(state.to_string()),
        false => Some(format!("{state}: {}", parts.join(", "))),
    }
}

pub(crate) fn percent(part: f64) -> String {
    let text = format!("{:.1}", part * 100.0);
    format!("{}%", text.strip_suffix(".0").unwrap_or(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_read_in_percent() {
        assert_eq!(parse_part("97%"), Ok(0.97));
        assert_eq!(parse_part("97.5"), Ok(0.975));
        for wrong in ["0", "101%", "-1%", "most", ""] {
            assert!(parse_part(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_part_of_one_is_not_taken_for_less_than_a_percent() {
        assert_eq!(parse_part("0.5%"), Ok(0.005));
        assert_eq!(parse_part("0.1%"), Ok(0.001));
        assert_eq!(parse_part("1"), Ok(0.01));
        for (typed, meant) in [("0.97", "give 97%, or 0.97%"), (".995", "give 99.5%")] {
            let error = parse_part(typed).unwrap_err();
            assert!(error.contains(meant), "{error}");
        }
    }

    #[test]
    fn a_part_that_would_be_shown_as_nothing_is_a_mistake() {
        for wrong in ["1e-308", "0.0000001%", "0.09%"] {
            assert_eq!(parse_part(wrong), Err("give at least 0.1%".into()), "{wrong}");
        }
    }

    #[test]
    fn a_moment_that_is_none_is_a_usage_error() {
        for right in ["06:00", "2027-01-31 06:00", "8h", "Sun 06:00"] {
            assert_eq!(parse_moment(right).as_deref(), Ok(right));
        }
        for wrong in ["25:00", "soon", ""] {
            assert!(parse_moment(wrong).unwrap_err().contains("(06:00)"), "{wrong}");
        }
    }

    #[test]
    fn spans_may_have_days_hours_and_minutes() {
        assert_eq!(parse_long("7d"), Ok(Nanos::from_secs(7 * 86_400)));
        assert_eq!(parse_long("1h"), Ok(Nanos::from_secs(3600)));
        assert_eq!(parse_long("1.5 min"), Ok(Nanos::from_secs(90)));
        assert_eq!(parse_long("600s"), Ok(Nanos::from_secs(600)));
        for wrong in ["0h", "h", "hourly", "-1min", "600"] {
            assert!(parse_long(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_a_right_form() {
        let keep = parse_part("abc").unwrap_err();
        assert_eq!(keep, "give a percentage above 0% and at most 100% (90%)");
        assert_eq!(parse_span("5").unwrap_err(), "the unit is missing: give 5ms or 5s");
        assert_eq!(parse_long("5").unwrap_err(), "the unit is missing: give 5min or 5h");
        assert_eq!(parse_span("0ms").unwrap_err(), "give a response time above zero");
        let short = "give a response time of at least 10.0 us";
        assert_eq!(parse_span("1ns").unwrap_err(), short);
        assert!(parse_span("inf").unwrap_err().contains("`inf` is not a duration"));
        let large = "the unit is missing: give 1e300ms or 1e300s";
        assert_eq!(parse_span("1e300").unwrap_err(), large);
        for nothing in ["0s", "0min", "0h", "0ms"] {
            let said = parse_long(nothing).unwrap_err();
            assert!(!said.contains("response time"), "{nothing}: {said}");
        }
        let p99 = parse_span("fast").unwrap_err();
        assert!(p99.contains("`fast` is not a duration") && p99.contains("5ms"), "{p99}");
        let window = parse_schedule("3-4").unwrap_err();
        assert!(window.contains("`3-4` is not a span of hours"), "{window}");
        assert!(window.contains("like 22:00-06:00"), "{window}");
    }

    #[test]
    fn a_guard_is_said_in_a_line() {
        let asked = Guard { keep: Some(0.97), ..Guard::default() };
        let guarding = Guarding {
            asked: asked.clone(),
            state: Some(GuardState::Holding),
            baseline_iops: Some(4120.0),
            kept: Some(0.982),
            allowance: Some(212 << 20),
            ..Guarding::default()
        };
        assert_eq!(super::asked(&asked), "keep 97%");
        let line = fares(&guarding).unwrap();
        assert_eq!(line, "holding: 98.2% of 4120 IO/s, copy up to 212 MiB/s");
    }
}
