//! What is no hall is refused with its line and with what would be one.

use sterna_sim::Scenario;

use super::building::LOPSIDED;

const STORAGE: &str = "title = 'an array'\nhost.count = 1\n\
    [[array]]\nname = 'a'\nmodel = 'old-fc'\n[[datastore]]\nname = 'd'\narray = 'a'\n\
    [[profile]]\nname = 'p'\nsize = '10G'\n[[vms]]\nname = 'v'\nprofile = 'p'\non = 'd'\n";

/// Line 21 is the last.
#[track_caller]
fn refused(from: &str, to: &str, line: usize, says: &str) {
    assert!(LOPSIDED.contains(from), "{from}");
    let error = LOPSIDED.replacen(from, to, 1).parse::<Scenario>().expect_err("refused");
    assert!(error.what.contains(says), "{error}");
    assert_eq!(error.line, line, "{error}");
}

/// The same of something that is added at the end.
#[track_caller]
fn refused_with(more: &str, line: usize, says: &str) {
    refused("on = 'a'\n", &format!("on = 'a'\n{more}"), line, says);
}

#[test]
fn what_has_drs_is_about_hosts_and_what_has_not_is_about_storage() {
    assert!(matches!(LOPSIDED.parse(), Ok(Scenario::Hosts(_))));
    assert!(matches!(STORAGE.parse(), Ok(Scenario::Storage(_))));
    refused("[drs]\n", "", 1, "missing field `drs`");
}

#[test]
fn an_unknown_key_is_refused_with_those_that_are_known() {
    refused("cpu-demand", "demand", 16, "`cpu-demand`");
    refused("[drs]", "[drs]\nmoves = 3", 4, "`cooldown`");
}

#[test]
fn a_missing_key_is_named() {
    refused("length = '6h'\n", "", 1, "length");
    refused("cpu = 16\n", "", 4, "cpu");
}

#[test]
fn a_name_that_nothing_has_is_refused_with_those_that_there_are() {
    refused("on = 'a'", "on = 'c'", 21, "no host `c`; there are a, b");
    refused("profile = 'web'", "profile = 'db'", 19, "no profile `db`");
    refused_with("pool = 'gold'", 22, "no pool at all");
    refused_with("[[failure]]\nhost = 'c'\nat = '1h'", 23, "there are a, b");
    let rule = "[[rule]]\nname = 'r'\nkind = 'affinity'\nvms = ['db']";
    refused_with(rule, 25, "no machine `db`");
}

#[test]
fn more_than_any_host_has_is_refused() {
    refused("memory = '8G'", "memory = '65G'", 15, "64.0 GiB is the most");
    refused("cpu = 4\n", "cpu = 17\n", 14, "16 are the most");
    refused("cpu-demand = 2.5", "cpu-demand = 5", 16, "from 0 to 4");
    refused("cpu-demand = 2.5", "memory-demand = '9G'", 16, "to 8.00 GiB");
}

#[test]
fn a_value_that_makes_no_sense_is_refused_with_what_does() {
    refused("length = '6h'", "length = '32d'", 2, "60s to 2678400s");
    refused("[drs]", "[drs]\nautomation = 'auto'", 4, "`manual`, `partial`, `full`");
    refused("[drs]", "[drs]\nthreshold = 6", 4, "from 1 to 5");
    refused("[drs]", "[drs]\nround = '2h'", 4, "1s to 3600s");
    refused("[drs]", "[drs]\nhold = 0", 4, "from 1 to 60");
    refused("[drs]", "[drs]\ncooldown = '2d'", 4, "0s to 86400s");
    refused("cpu = 16", "cpu = -1", 6, "from 0.01 to");
    refused("cpu-demand = 2.5", "hours = [10, 20]", 16, "24 percentages");
    refused("cpu-demand = 2.5", "idle = 20", 16, "goes with `busy`");
    let both = "busy = '08:00-10:00'\nhours = [1]";
    refused("cpu-demand = 2.5", both, 17, "not both");
    refused("count = 6", "count = 20001", 20, "from 1 to 20000");
}

#[test]
fn what_cannot_be_had_together_is_refused() {
    let pool = "[[pool]]\nname = 'gold'\ncpu-reservation = 33";
    refused_with(pool, 23, "33 processors, and all hosts have 32 processors");
    let inner = "[[pool]]\nname = 'a'\n[[pool]]\nname = 'b'\nparent = 'a'\n\
                 memory-reservation = '1G'";
    refused_with(inner, 23, "this pool has reserved 0 B");
    let pool = "[[pool]]\nname = 'gold'\ncpu-reservation = 3\ncpu-limit = 2";
    refused_with(pool, 23, "limit is below");
    let rule = |name: &str, kind: &str, more: &str| {
        format!(
            "[[rule]]\nname = '{name}'\nkind = '{kind}'\nvms = ['web-1', 'web-2']\n\
             must = true\n{more}"
        )
    };
    let two = rule("near", "affinity", "") + &rule("far", "anti-affinity", "");
    refused_with(&two, 28, "web-1 and web-2 must be together by other rules");
    let all = rule("far", "anti-affinity", "").replace("'web-1', 'web-2'", "'web'");
    refused_with(&all, 23, "6 machines apart, on 2 hosts");
    let nowhere = rule("out", "not-on", "hosts = ['a', 'b']");
    refused_with(&nowhere, 23, "no host on which web-1 may be");
    refused_with(&rule("in", "on", ""), 23, "name `hosts`");
}
