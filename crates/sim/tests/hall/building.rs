//! Halls, in few words.

use sterna_sim::hall::{Outcome, Scenario, run};
use sterna_workload::random::Random;

/// Two hosts, the first with all six machines.
pub(crate) const LOPSIDED: &str = "\
title = 'two hosts'
length = '6h'
[drs]
[[host]]
name = 'a'
cpu = 16
memory = '64G'
[[host]]
name = 'b'
cpu = 16
memory = '64G'
[[profile]]
name = 'web'
cpu = 4
memory = '8G'
cpu-demand = 2.5
[[vms]]
name = 'web'
profile = 'web'
count = 6
on = 'a'
";

pub(crate) fn read(text: &str) -> Scenario {
    text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"))
}

pub(crate) fn ran(text: &str) -> Outcome {
    run(&read(text))
}

/// Any hall: kinds of hosts, shapes of load, rules, and perhaps a host that fails.
pub(crate) fn any_hall(seed: u64) -> String {
    let mut random = Random::new(seed);
    let mut text = format!(
        "title = 'any'\nlength = '12h'\nstarts = 'Mon 04:00'\nseed = {}\n\
         [drs]\nthreshold = {}\n",
        seed % 1000,
        3 + random.below(3)
    );
    for kind in ["a", "b"] {
        let (cpu, gib) = (16 + 16 * random.below(2), 64 + 64 * random.below(3));
        text += &format!(
            "[[host]]\nname = '{kind}'\ncount = {}\ncpu = {cpu}\nmemory = '{gib}G'\n\
             copies = {}\nlink = '{}M'\n",
            2 + random.below(3),
            1 + random.below(3),
            100 + random.below(1000)
        );
    }
    for number in 0..3 {
        let shape = match random.below(3) {
            0 => String::new(),
            1 => {
                let from = 4 + random.below(8);
                format!(
                    "busy = '{from:02}:00-{:02}:30'\nidle = 10\nkeeps = 60\n",
                    from + 4
                )
            }
            _ => {
                let hours: Vec<String> =
                    (0..24).map(|_| random.below(101).to_string()).collect();
                format!("hours = [{}]\n", hours.join(", "))
            }
        };
        text += &format!(
            "[[profile]]\nname = 'p{number}'\ncpu = 4\nmemory = '{}G'\nvaries = {}\n\
             {shape}[[vms]]\nname = 'v{number}'\nprofile = 'p{number}'\ncount = {}\n\
             on = '{}'\n",
            4 + random.below(12),
            random.below(40),
            2 + random.below(12),
            if random.percent(50) { "a" } else { "b" }
        );
    }
    if random.percent(50) {
        text += "[[rule]]\nname = 'far'\nkind = 'anti-affinity'\nvms = ['v0-1', 'v0-2']\n\
                 must = true\n";
    }
    if random.percent(50) {
        text += "[[rule]]\nname = 'near'\nkind = 'affinity'\nvms = ['v1-1', 'v2-1']\n";
    }
    if random.percent(50) {
        text += "[[failure]]\nhost = 'a-1'\nat = '3h'\nfor = '2h'\n";
        text += if random.percent(50) { "restart = '90s'\n" } else { "" };
    }
    text
}
