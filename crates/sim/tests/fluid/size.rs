//! A large scenario: a day of 10,000 machines with 50,000 disks.

use std::time::Instant;

use sterna_sim::fluid::{Run, Scenario};

/// Ten arrays, a hundred hosts, and a thousand machines of ten kinds an hour.
fn large(sets: u32) -> String {
    let mut text = String::from("title = 'a day'\nlength = '24h'\n");
    for array in 0..10 {
        text += &format!(
            "[[array]]\nname = 'old-{array}'\nmodel = 'sas-10k?raid=6:6+2x13'\n\
             [[array]]\nname = 'new-{array}'\nmodel = 'sata-ssd?spindles=48&link=4000M'\n\
             [[datastore]]\nname = 'from-{array}'\ncount = 2\narray = 'old-{array}'\n\
             [[datastore]]\nname = 'to-{array}'\ncount = 2\narray = 'new-{array}'\n\
             thin = true\n"
        );
    }
    text += "[host]\ncount = 100\n";
    for kind in 0..10 {
        text += &format!(
            "[[profile]]\nname = 'p{kind}'\niops = {}\nread = {}\nsize = '{}G'\n\
             written = '5G'\ndisks = 5\n",
            2 + kind,
            50 + 4 * kind,
            50 + 10 * kind
        );
    }
    for array in 0..10 {
        text += &format!(
            "[[vms]]\nname = 'set-{array}'\nprofile = 'p{array}'\ncount = {sets}\n\
             on = 'from-{array}'\n[[wave]]\nname = 'wave {array}'\n\
             at = '{array}h'\nmove = ['set-{array}']\nto = 'to-{array}'\n"
        );
    }
    text
}

#[test]
fn a_small_day_goes_by() {
    let scenario: Scenario = large(20).parse().expect("a scenario");
    let outcome = Run::whole(&scenario);
    assert_eq!(outcome.phases.iter().map(|it| it.disks).sum::<u64>(), 1000);
    assert!(outcome.phases.last().is_some_and(|it| it.until >= 86400.0));
}

/// `cargo test --release -p sterna-sim --test fluid -- --ignored --nocapture`
#[test]
#[ignore = "a measurement: a minute or more"]
fn a_day_of_10_000_machines_with_50_000_disks() {
    let scenario: Scenario = large(1000).parse().expect("a scenario");
    assert_eq!((scenario.vms.len(), scenario.disks()), (10_000, 50_000));
    let start = Instant::now();
    let outcome = Run::whole(&scenario);
    let took = start.elapsed().as_secs_f64();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak =
        status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("VmHWM: ?");
    let moved: u64 = outcome.phases.iter().map(|it| it.disks).sum();
    let days = outcome.phases.last().map_or(0.0, |it| it.until / 86400.0);
    println!(
        "{moved} disks moved in {days:.2} days; {took:.1} s, {} times settled, {peak}",
        outcome.settled
    );
    assert!(took < 600.0);
}
