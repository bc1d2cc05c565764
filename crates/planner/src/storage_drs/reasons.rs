//! Why a disk stays, in words.

use sterna_core::{Nanos, Percent};
use sterna_placement::storage::{Because, Cooldown, Pinned};

/// A response time that is said to be longer is endless: a device that does not keep up.
const ENDLESS: Nanos = Nanos::from_secs(3600);

/// Why a disk does not go to a datastore; `rules` are the names of all rules.
pub(super) fn reason(because: Because, to: Option<&str>, rules: &[String]) -> String {
    let to = to.unwrap_or("elsewhere");
    match because {
        Because::Pinned(Pinned::Moves) => format!("the disk is already moving to {to}"),
        Because::Pinned(pinned) => stays(pinned),
        Because::Idle => "its load is too small to matter".into(),
        Because::Closed => "no other datastore can take disks now".into(),
        Because::Full(part) => {
            format!("{to} would be too full: {} used", Percent(part))
        }
        Because::AsFull(part) => {
            format!("{to} is hardly emptier: {} used", Percent(part))
        }
        Because::Settling => {
            format!(
                "a disk has come to or left its datastore or {to}; Storage DRS first \
                 measures both for one window"
            )
        }
        Because::SourceUnknown => {
            "another disk leaves its datastore first; the speed of its datastore with \
             less load is unknown"
                .into()
        }
        Because::DestinationUnknown => {
            format!("the speed of {to} with such a load is unknown yet")
        }
        Because::Slow(latency) if latency > ENDLESS => {
            format!("{to} would not keep up with it")
        }
        Because::Slow(latency) => {
            format!("{to} would be no faster, or too slow: p95 {latency}")
        }
        Because::NoGain => {
            format!("with the disk at {to}, both datastores together would be no faster")
        }
        Because::Rule(rule) => {
            format!("the disk at {to} would violate rule {}", rules[rule])
        }
    }
}

fn stays(pinned: Pinned) -> String {
    match pinned {
        Pinned::NotServed => "the disk is not served".into(),
        Pinned::Away => "its datastore cannot be used now".into(),
        Pinned::Moves => "the disk is already moving".into(),
        Pinned::Moved(rest) => rests(rest),
    }
}

/// Why a disk rests: `it has moved 12 min ago`.
fn rests(rest: Cooldown) -> String {
    let (ago, left) = (hours(rest.ago), hours(rest.left));
    if rest.contested {
        return format!(
            "a user or program also moves this disk; Storage DRS leaves it alone for \
             {left}"
        );
    }
    let who = if rest.others { "it was moved" } else { "it has moved" };
    format!(
        "{who} {ago} ago; the disk rests for {left} more, unless you give --ignore-rest"
    )
}

/// A span in hours, as they are begun; the last one in minutes.
fn hours(span: Nanos) -> String {
    let minutes = span.0.div_ceil(Nanos::from_secs(60).0);
    match minutes {
        0..60 => format!("{minutes} min"),
        _ => format!("{} h", minutes.div_ceil(60)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3600;

    #[test]
    fn a_disk_that_rests_says_for_how_long() {
        let rest = |others, contested| Cooldown {
            ago: Nanos::from_secs(HOUR / 2),
            left: Nanos::from_secs(7 * HOUR / 2),
            others,
            contested,
        };
        assert_eq!(
            rests(rest(false, false)),
            "it has moved 30 min ago; the disk rests for 4 h more, unless you give --ignore-rest"
        );
        assert!(rests(rest(true, false)).starts_with("it was moved 30 min ago"));
        assert!(rests(rest(true, true)).contains("also moves this disk"));
        assert_eq!(hours(Nanos::from_secs(61)), "2 min");
        assert_eq!(hours(Nanos::from_secs(HOUR)), "1 h");
        assert_eq!(hours(Nanos::from_secs(HOUR + 1)), "2 h");
    }
}
