//! Hosts that fail, and what becomes of their machines.

use sterna_core::Nanos;

use super::building::{LOPSIDED, ran};

const AT: Nanos = Nanos::from_secs(3600);

fn with_failure(more: &str) -> String {
    format!("{LOPSIDED}[[failure]]\nhost = 'b'\nat = '1h'\n{more}")
}

#[test]
fn machines_of_a_host_that_fails_wait_for_it_if_nobody_starts_them() {
    let forever = ran(&with_failure(""));
    assert!(forever.with.down > 0);
    assert!(forever.with.total.least < 0.2, "an hour of six at most");
    assert!(forever.without.down == 0, "nothing was there");
    let back = ran(&with_failure("for = '30min'\n"));
    assert_eq!(back.with.down, 0);
    let last = &back.with.events[1];
    assert_eq!(last.0, AT.plus(Nanos::from_secs(1800)));
    assert!(last.1.starts_with("b is back, and with it "), "{last:?}");
}

#[test]
fn they_are_started_elsewhere_if_the_scenario_says_so() {
    let outcome = ran(&with_failure("restart = '2min'\n"));
    assert_eq!(outcome.with.down, 0);
    let [fails, started] = &outcome.with.events[..] else {
        panic!("{:?}", outcome.with.events)
    };
    assert!(fails.1.starts_with("b fails, and with it "), "{fails:?}");
    assert_eq!(started.0, AT.plus(Nanos::from_secs(120)));
    assert!(started.1.ends_with("started on other hosts"), "{started:?}");
}

#[test]
fn where_there_is_no_room_they_are_not() {
    // One has 24 GiB, which is what three of the six ask for.
    let text = with_failure("restart = '2min'\n").replacen("64G", "24G", 1);
    let outcome = ran(&text.replace("on = 'a'", "on = 'b'"));
    assert_eq!(outcome.without.down, 3, "{:?}", outcome.without.events);
    assert!(outcome.without.events[1].1.contains("3 find no room"));
}

#[test]
fn a_rule_that_must_hold_holds_for_those_who_are_started() {
    let rule = "[[rule]]\nname = 'there'\nkind = 'on'\nvms = ['web-1']\n\
                hosts = ['b']\nmust = true\n";
    let text = with_failure("restart = '2min'\n").replace("on = 'a'", "on = 'b'");
    let outcome = ran(&(text + rule));
    assert_eq!(outcome.without.down, 1, "{:?}", outcome.without.events);
}

#[test]
fn a_copy_to_a_host_that_fails_comes_to_nothing() {
    // 8 GiB at 64 MiB a second: the first leaves after four minutes, and takes two.
    let slow = "memory = '64G'\nlink = '64M'\n[[profile]]";
    let text = with_failure("").replace("at = '1h'", "at = '5min'");
    let outcome = ran(&text.replacen("memory = '64G'\n[[profile]]", slow, 1));
    assert_eq!((outcome.with.failed, outcome.with.moves.len()), (1, 0));
    assert_eq!(outcome.with.down, 0, "it runs where it was");
}

#[test]
fn what_was_started_elsewhere_is_left_alone_for_an_hour() {
    // Before anything has moved by itself all start on the other, and soon there is room.
    let text = with_failure("for = '5min'\nrestart = '1min'\n");
    let text = text.replace("at = '1h'", "at = '3min'").replace("on = 'a'", "on = 'b'");
    let outcome = ran(&text);
    let first = outcome.with.moves.first().expect("it evens out");
    assert!(first.at >= Nanos::from_secs(240 + 3600), "{first:?}");
}

#[test]
fn time_goes_on_while_no_host_is_left() {
    let both = "[[failure]]\nhost = 'a'\nat = '1h'\nfor = '2h'\n";
    let outcome = ran(&(with_failure("for = '1h'\nrestart = '1min'\n") + both));
    assert_eq!((outcome.with.down, outcome.without.down), (0, 0));
    let last = outcome.with.periods.last().expect("hours");
    assert_eq!((last.total.held, last.until), (6, Nanos::from_secs(6 * 3600)));
}
