//! What must hold for the application while its disk moves: what may be asked for.

use sterna_api::{AskGuard, Error, Guard, Result};
use sterna_core::Nanos;
use sterna_core::qos::policy::{RESPONSE_MAX, RESPONSE_MIN};
use sterna_core::schedule::Schedule;
use sterna_os::Local;

/// The farthest end of a migration that can be asked for, in seconds from now: what is
/// farther away is a year that was mistyped.
const FINISH_MAX: u64 = 366 * 24 * 60 * 60;

/// What is asked for, checked; times are moments from here on.
pub fn wanted(asked: &AskGuard) -> Result<Guard> {
    let AskGuard { keep, p99_us, finish_by, idle_only, window } = asked;
    if let Some(keep) = keep.filter(|keep| !(*keep > 0.0 && *keep <= 1.0)) {
        let message = format!("the application cannot keep {keep:?} of its IO/s");
        return Err(Error::invalid(message).hint(
            "give a part above 0 and at most 1 (on the command line: --keep 97%)",
        ));
    }
    let p99 = p99_us.map(Nanos::from_micros);
    if let Some(p99) = p99.filter(|p99| *p99 < RESPONSE_MIN) {
        let message =
            format!("the p99 of {p99} is too short: the minimum is {RESPONSE_MIN}");
        return Err(Error::invalid(message)
            .hint("give a time that the disk can keep (--p99 5ms)"));
    }
    if let Some(p99) = p99.filter(|p99| *p99 > RESPONSE_MAX) {
        let long = p99.beside(RESPONSE_MAX);
        let message =
            format!("the p99 of {long} is too long: the maximum is {RESPONSE_MAX}");
        return Err(Error::invalid(message)
            .hint("give a time that the application can tolerate (--p99 5ms)"));
    }
    if *idle_only && (keep.is_some() || p99_us.is_some()) {
        let message = "with --idle-only the copy takes nothing from the application, so \
                       no other promise is necessary";
        return Err(
            Error::invalid(message).hint("leave out --idle-only, or --keep and --p99")
        );
    }
    let window = window.as_ref().map(|text| text.parse::<Schedule>()).transpose();
    let window = window.map_err(Error::invalid)?;
    let finish_by =
        finish_by.as_ref().map(|text| moment(text, "finish by")).transpose()?;
    if let (Some(window), Some(by)) = (&window, finish_by)
        && Local::now().open_until(window, by) == 0
    {
        let message =
            format!("the schedule {window} does not open before the move should end");
        return Err(Error::invalid(message)
            .hint("choose another --window, or a later --finish-by"));
    }
    Ok(Guard {
        keep: *keep,
        p99_us: *p99_us,
        finish_by,
        idle_only: *idle_only,
        window: window.map(|window| window.to_string()),
    })
}

/// A moment that is to come, in seconds since 1970, at which a move shall begin, or by which
/// it shall end.
pub fn moment(text: &str, shall: &str) -> Result<u64> {
    let now = Local::now();
    let hint = "give a time of day (06:00), a date and a time (2027-01-31 06:00), or a \
                span from now (8h)";
    let Some(moment) = now.moment_of(text) else {
        let message = format!("`{text}` is no time to {shall}");
        return Err(Error::invalid(message).hint(hint));
    };
    if !now.is_ahead(moment) {
        let message = format!("a move cannot {shall} `{text}`, which has passed");
        return Err(Error::invalid(message).hint(hint));
    }
    if moment - now.back(0) > FINISH_MAX {
        let message = format!("`{text}` is more than a year away");
        return Err(Error::invalid(message).hint(hint));
    }
    Ok(moment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_to_finish_by_that_is_none_is_told_from_one_that_has_passed() {
        for (text, wrong) in [
            ("25:00", "`25:00` is no time to finish by"),
            ("soon", "`soon` is no time to finish by"),
            ("2020-01-01 06:00", "which has passed"),
            ("0s", "which has passed"),
            ("20000h", "more than a year away"),
        ] {
            let body = moment(text, "finish by").unwrap_err();
            assert!(body.message.contains(wrong), "{text}: {body:?}");
            assert!(body.hint.contains("(06:00)"), "{text}: {body:?}");
        }
        assert!(moment("8h", "finish by").is_ok());
        let body = moment("soon", "begin at").unwrap_err();
        assert!(body.message.contains("`soon` is no time to begin at"), "{body:?}");
    }
}
