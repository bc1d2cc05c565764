//! A large scenario: a day of 10,000 machines with 50,000 disks.

use std::time::Instant;

use sterna_sim::fluid::{Run, Scenario};

/// Ten old arrays, a large new one, a hundred hosts, and machines of a hundred kinds
/// with five disks each, all of which move.
fn large(sets: u32) -> String {
    let mut text = String::from("title = 'a day'\nlength = '24h'\n");
    for array in 0..10 {
        text += &format!(
            "[[array]]\nname = 'old-{array}'\nmodel = 'sas-10k?raid=6:6+2x13'\n\
             [[datastore]]\nname = 'from-{array}'\ncount = 2\narray = 'old-{array}'\n"
        );
    }
    text += "[[array]]\nname = 'new'\nmodel = 'sata-ssd?spindles=480&link=40000M'\n\
             [[datastore]]\nname = 'to'\narray = 'new'\nthin = true\ncopies = 200\n\
             [host]\ncount = 100\n";
    let mut waves = [Vec::new(), Vec::new()];
    for array in 0..10 {
        for kind in 0..10 {
            // No two kinds are alike, so hardly two moves end together.
            let (name, iops) = (format!("{array}-{kind}"), 1.0 + 0.3 * f64::from(kind));
            let (read, size) = (50 + 4 * kind, 10_000 + 1000 * kind + 97 * array);
            text += &format!(
                "[[profile]]\nname = 'p{name}'\niops = {iops}\nread = {read}\n\
                 size = '{size}M'\nwritten = '5G'\ndisks = 5\n\
                 [[vms]]\nname = 'set-{name}'\nprofile = 'p{name}'\n\
                 count = {sets}\non = 'from-{array}'\n"
            );
            waves[array as usize / 5].push((kind, array));
        }
    }
    // Half of the arrays from the early morning on, half from noon on.
    for (hour, mut sets) in [1, 12].into_iter().zip(waves) {
        // Those who come one after the other are on one array after the other.
        sets.sort_unstable();
        let name = |(kind, array): &(i32, i32)| format!("'set-{array}-{kind}'");
        let names: Vec<String> = sets.iter().map(name).collect();
        text += &format!(
            "[[wave]]\nname = 'from {hour}'\nat = '{hour}h'\nmove = [{}]\n\
             to = 'to'\n",
            names.join(", ")
        );
    }
    text
}

#[test]
fn a_small_day_goes_by() {
    let scenario: Scenario = large(2).parse().expect("a scenario");
    let outcome = Run::whole(&scenario);
    assert_eq!(outcome.phases.iter().map(|it| it.disks).sum::<u64>(), 1000);
    assert!(outcome.phases.last().is_some_and(|it| it.until >= 86400.0));
}

/// `cargo test --release -p sterna-sim --test fluid -- --ignored --nocapture`
#[test]
#[ignore = "a measurement: a minute or more"]
fn a_day_of_10_000_machines_with_50_000_disks() {
    let scenario: Scenario = large(100).parse().expect("a scenario");
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
