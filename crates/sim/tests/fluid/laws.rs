//! What holds in any scenario.

use proptest::prelude::*;
use sterna_sim::fluid::{Outcome, Run, Scenario};

/// A small scenario: an old and a new array, two kinds of machines, two waves.
#[derive(Clone, Debug)]
struct Small {
    old: &'static str,
    new: &'static str,
    iops: Option<u32>,
    read: u32,
    random: u32,
    disks: u32,
    machines: u32,
    stopped: bool,
    thin: bool,
    fails_min: Option<u32>,
}

fn smalls() -> impl Strategy<Value = Small> {
    let old = prop::sample::select(vec!["old-fc", "sas-10k", "sata-7k", "e4-fc"]);
    let new = prop::sample::select(vec!["new-fc", "sata-ssd", "sas-10k?raid=6:6+2x3"]);
    let load = (prop::option::of(1u32..300), 0u32..=100, 0u32..=100);
    let rest = (1u32..4, 1u32..6, any::<bool>(), any::<bool>());
    (old, new, load, rest, prop::option::of(1u32..60)).prop_map(
        |(
            old,
            new,
            (iops, read, random),
            (disks, machines, stopped, thin),
            fails_min,
        )| {
            Small {
                old,
                new,
                iops,
                read,
                random,
                disks,
                machines,
                stopped,
                thin,
                fails_min,
            }
        },
    )
}

impl Small {
    fn text(&self) -> String {
        let iops = self.iops.map_or(String::new(), |iops| format!("iops = {iops}\n"));
        let failure = self.fails_min.map_or(String::new(), |at| {
            format!("[[failure]]\narray = 'new'\nat = '{at}min'\nfor = '10min'\n")
        });
        format!(
            "title = 'small'\n[[array]]\nname = 'old'\nmodel = '{}'\n[[array]]\n\
             name = 'new'\nmodel = '{}'\n[[datastore]]\nname = 'from'\ncount = 2\n\
             array = 'old'\n[[datastore]]\nname = 'to'\narray = 'new'\nthin = {}\n\
             [host]\ncount = 2\nlink = '400M'\n[[profile]]\nname = 'db'\n{iops}\
             outstanding = 16\nread = {}\nrandom = {}\nsize = '20G'\nwritten = '5G'\n\
             disks = {}\n[[vms]]\nname = 'db'\nprofile = 'db'\ncount = {}\n\
             on = 'from'\n[[wave]]\nname = 'first'\nat = '5min'\nmove = ['db']\n\
             to = 'to'\nstopped = {}\n{failure}",
            self.old,
            self.new,
            self.thin,
            self.read,
            self.random,
            self.disks,
            self.machines,
            self.stopped
        )
    }

    fn run(&self) -> (Scenario, Outcome) {
        let scenario: Scenario = self.text().parse().expect("a scenario");
        let outcome = Run::whole(&scenario);
        (scenario, outcome)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn what_is_copied_are_the_images_that_were_moved(small in smalls()) {
        let (scenario, outcome) = small.run();
        prop_assert_eq!(outcome.stuck, 0);
        let copied: f64 = outcome.phases.iter().map(|it| it.copied).sum();
        let bytes = scenario.bytes() as f64;
        prop_assert!((copied / bytes - 1.0).abs() < 1e-6, "{} of {}", copied, bytes);
        let moved: u64 = outcome.phases.iter().map(|it| it.disks).sum();
        prop_assert_eq!(moved, scenario.disks());
        let written: f64 = outcome.phases.iter().map(|it| it.written).sum();
        prop_assert!(written <= copied * (1.0 + 1e-9));
        prop_assert!(small.thin || (written / copied - 1.0).abs() < 1e-9);
    }

    #[test]
    fn no_spindle_works_more_than_all_the_time(small in smalls()) {
        let (_, outcome) = small.run();
        for sample in &outcome.samples {
            for busy in &sample.busy {
                prop_assert!((0.0..=1.0 + 1e-9).contains(busy), "{:?}", sample);
            }
        }
    }

    /// Requests under way are the rate times the response (Little), and no machine has
    /// more under way than it may.
    #[test]
    fn littles_law_holds(small in smalls()) {
        let (_, outcome) = small.run();
        for phase in &outcome.phases {
            let seconds: f64 = phase.profiles.iter().map(|it| it.seconds).sum();
            let under_way = seconds / phase.seconds();
            let most = f64::from(16 * small.machines);
            prop_assert!(under_way <= most * 1.001, "{} of {}", under_way, most);
        }
    }

    #[test]
    fn nobody_gets_more_than_was_wanted(small in smalls()) {
        let (_, outcome) = small.run();
        for phase in &outcome.phases {
            prop_assert!(phase.least.is_none_or(|least| least <= 1.0 + 1e-9));
            prop_assert!(phase.held <= phase.working);
        }
    }

    #[test]
    fn the_same_file_gives_the_same_outcome(small in smalls()) {
        prop_assert_eq!(small.run().1, small.run().1);
    }
}
