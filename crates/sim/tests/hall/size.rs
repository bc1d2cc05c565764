//! A large hall: a day of 10,000 machines on 500 hosts.

use std::time::Instant;

use super::building::{ran, read};

/// Five kinds of machines that work at five times of the day; each on its own fifth of the
/// hosts at first, or all kinds on all hosts.
fn large(hosts: usize, machines: usize, mixed: bool) -> String {
    let mut text = String::from("title = 'a day'\nlength = '24h'\n[drs]\n");
    for kind in 0..5 {
        let from = 4 * kind;
        text += &format!(
            "[[host]]\nname = 'h{kind}'\ncount = {}\ncpu = 64\nmemory = '512G'\n\
             [[profile]]\nname = 'p{kind}'\ncpu = 4\nmemory = '16G'\nvaries = 20\n\
             busy = '{from:02}:00-{:02}:00'\nidle = 20\n",
            hosts / 5,
            from + 4,
        );
    }
    for kind in 0..5 {
        let on = if mixed { String::new() } else { format!("on = 'h{kind}'\n") };
        text += &format!(
            "[[vms]]\nname = 'v{kind}'\nprofile = 'p{kind}'\ncount = {}\n{on}",
            machines / 5
        );
    }
    text
}

#[test]
fn a_small_day_goes_by() {
    let outcome = ran(&large(10, 200, false));
    assert_eq!((outcome.with.periods.len(), outcome.with.returned), (24, 0));
    let [with, without] = [outcome.with.total, outcome.without.total];
    assert!(with.got.cpu > without.got.cpu, "{with:?}\n{without:?}");
}

/// `cargo test --release -p sterna-sim --test hall -- --ignored --nocapture`
#[test]
#[ignore = "a measurement: some minutes"]
fn a_day_of_10_000_machines_on_500_hosts() {
    for mixed in [true, false] {
        let text = large(500, 10_000, mixed);
        let scenario = read(&text);
        assert_eq!((scenario.vms.len(), scenario.hosts.len()), (10_000, 500));
        let start = Instant::now();
        let outcome = ran(&text);
        let took = start.elapsed().as_secs_f64();
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let peak = status.lines().find(|line| line.starts_with("VmHWM"));
        let of = |it: &sterna_sim::hall::Total| 100.0 * it.got.cpu / it.entitled.cpu;
        println!(
            "mixed: {mixed}; {} moves; machines got {:.2} % of their processors, without \
             DRS {:.2} %; {took:.1} s, {}",
            outcome.with.moves.len(),
            of(&outcome.with.total),
            of(&outcome.without.total),
            peak.unwrap_or("VmHWM: ?")
        );
        assert!(took < 1200.0);
    }
}
