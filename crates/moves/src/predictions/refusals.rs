//! Why there is no prediction, and what to do next.

use sterna_api::Error;
use sterna_core::predict::Move;
use sterna_core::{Bytes, Nanos};

use super::Seen;

/// Why nothing is known, and what is known all the same.
pub(super) fn not_known(from: &str, to: &str, seen: &Seen, one: &Move) -> Error {
    let (copies, do_not, them) = match seen.copies {
        1 => ("the one copy".to_owned(), "does not", "it"),
        many => (format!("the {many} copies"), "do not", "them"),
    };
    let why = match seen.all_limited_to() {
        _ if seen.copies == 0 => {
            format!("Sterna has not copied from {from} or to {to} yet")
        }
        Some(most) => format!(
            "{copies} from {from} or to {to} had a limit (--rate, at most {}/s), so the \
             speed without a limit is unknown",
            Bytes(most)
        ),
        None => format!(
            "{copies} from {from} or to {to} {do_not} show the speed: there was nothing \
             to copy, or limits, hours, deadlines, applications or an old copy held \
             {them} back"
        ),
    };
    let least = one.least().zip(one.terms.limit).map(|(least, limit)| {
        format!("; at {}/s the move takes at least {}", Bytes(limit), rough(least))
    });
    let message = format!("no prediction: {why}{}", least.unwrap_or_default());
    let without = if seen.copies == 0 { "" } else { ", without a limit or a promise" };
    Error::unavailable(message).hint(format!(
        "move a small disk first{without}: `sterna migrate DISK --to {to}`"
    ))
}

/// A span in whole seconds, or minutes: it is a bound.
fn rough(span: Nanos) -> String {
    match span.as_secs_f64().ceil() as u64 {
        seconds @ 0..600 => format!("{seconds} s"),
        seconds @ 600..36_000 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}

/// A destination that says nothing would take no disk either.
pub(super) fn is_silent(to: &str, why: &str) -> Error {
    let message = format!("no prediction: datastore {to} cannot be used: {why}");
    Error::unavailable(message).hint(format!(
        "repair this (`sterna datastore show {to}`), or choose another datastore"
    ))
}

pub(super) fn never_seen(disk: &str) -> Error {
    let message =
        format!("no load of disk {disk} was recorded for this hour in the last week");
    Error::unavailable(message).hint(
        "leave out --at to use the load of now; the daemon records hours while it runs",
    )
}

#[cfg(test)]
mod tests {
    use sterna_core::predict::{Terms, Work};

    use super::super::one_move;
    use super::*;

    /// What is said where so many copies were seen, these of them with limits in MiB/s.
    fn said(copies: usize, limits: &[u64], rate: Option<u64>) -> String {
        let most = limits.iter().max().map(|limit| limit << 20);
        let seen = Seen { copies, limited: limits.len(), most };
        let terms = Terms { limit: rate, ..Terms::default() };
        let one = one_move(70 << 20, 200 << 20, false, Work::default(), terms);
        not_known("old", "new", &seen, &one).to_string()
    }

    #[test]
    fn copies_that_were_limited_are_not_said_to_be_none() {
        assert!(said(0, &[], None).contains("Sterna has not copied"));
        let limited = said(2, &[5, 40], None);
        let part =
            "the 2 copies from old or to new had a limit (--rate, at most 40.0 MiB/s";
        assert!(limited.contains(part), "{limited}");
        let others = said(3, &[5], None);
        assert!(others.contains("held them back"), "{others}");
    }

    #[test]
    fn a_limit_is_a_bound_where_nothing_else_is_known() {
        for copies in [0, 1] {
            let text = said(copies, &[5][..copies], Some(5 << 20));
            assert!(
                text.ends_with("; at 5.00 MiB/s the move takes at least 14 s"),
                "{text}"
            );
        }
        assert!(!said(1, &[5], None).contains("at least"));
    }
}
