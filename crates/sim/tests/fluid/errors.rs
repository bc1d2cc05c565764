//! What is no scenario is refused with its line and with what would be one.

use sterna_sim::fluid::{Run, Scenario};

const GOOD: &str = "\
title = 'one machine'
[[array]]
name = 'old'
model = 'old-fc'
[[datastore]]
name = 'from'
array = 'old'
[[datastore]]
name = 'to'
array = 'old'
[host]
count = 1
[[profile]]
name = 'db'
size = '10G'
[[vms]]
name = 'db'
profile = 'db'
on = 'from'
[[wave]]
name = 'first'
move = ['db']
to = 'to'
";

#[track_caller]
fn refused(from: &str, to: &str, line: usize, says: &str) {
    assert!(GOOD.contains(from));
    let error = GOOD.replacen(from, to, 1).parse::<Scenario>().expect_err("refused");
    assert!(error.what.contains(says), "{error}");
    assert_eq!(error.line, line, "{error}");
    assert!(error.to_string().starts_with(&format!("line {line}: ")), "{error}");
}

#[test]
fn a_good_one_is_taken() {
    let scenario: Scenario = GOOD.parse().expect("a scenario");
    assert_eq!((scenario.vms.len(), scenario.waves.len()), (1, 1));
}

#[test]
fn an_unknown_key_is_refused_with_those_that_are_known() {
    refused("size = '10G'", "sise = '10G'", 15, "`sise`");
    refused("size = '10G'", "sise = '10G'", 15, "`size`");
    refused("[host]", "[hosts]", 11, "`host`");
}

#[test]
fn a_missing_key_is_named() {
    refused("size = '10G'\n", "", 13, "size");
}

#[test]
fn a_value_that_makes_no_sense_is_refused_with_what_does() {
    refused("size = '10G'", "size = 'large'", 15, "a size");
    refused("model = 'old-fc'", "model = 'fast'", 4, "old-fc, new-fc");
    refused("count = 1", "count = 0", 12, "from 1 to");
    refused("size = '10G'", "size = '10G'\nread = 120", 16, "0 to 100");
    refused("to = 'to'", "to = 'to'\nat = 'noon'", 24, "a duration");
    refused("to = 'to'", "to = 'to'\nwindow = 'nights'", 24, "nights");
    refused("to = 'to'", "to = 'to'\nstopped = 'yes'", 24, "boolean");
    refused("title = 'one machine'", "title = 'x'\nstarts = 'Someday'", 2, "Mon 18:00");
}

#[test]
fn a_name_that_nothing_has_is_refused_with_those_that_there_are() {
    refused("on = 'from'", "on = 'form'", 19, "there are from, to");
    refused("move = ['db']", "move = ['web']", 22, "there are db");
    refused("array = 'old'", "array = 'new'", 7, "no array `new`");
    refused("profile = 'db'", "profile = 'oltp'", 18, "no profile `oltp`");
}

#[test]
fn two_things_of_one_kind_have_two_names() {
    refused("name = 'to'", "name = 'from'", 9, "two datastores");
    refused("name = 'to'", "name = ''", 9, "no name");
}

#[test]
fn what_is_no_toml_is_refused_with_its_line() {
    refused("count = 1", "count =", 12, "");
}

#[test]
fn more_than_fits_is_refused() {
    refused("on = 'from'", "on = 'from'\ncount = 100001", 20, "from 1 to 100000");
    refused("size = '10G'", "size = '65T'", 15, "64.0 TiB");
    refused("array = 'old'\n[host]", "array = 'old'\ncount = 1000\n[host]", 9, "1000");
}

#[test]
fn what_is_where_it_goes_already_takes_no_time() {
    let again = "[[wave]]\nname = 'again'\nmove = ['db']\nto = 'to'\n".repeat(900);
    let scenario: Scenario = format!("{GOOD}{again}").parse().expect("a scenario");
    let outcome = Run::whole(&scenario);
    assert_eq!((outcome.stuck, outcome.phases.len()), (0, 1));
}
