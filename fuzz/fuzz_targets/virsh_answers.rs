//! Any text in the place of what `virsh` prints: a machine's XML, the figures of its disks,
//! or those of a job.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sterna_qemu::virsh::{BlockFigures, Domain, JobFigures};

fuzz_target!(|text: &str| {
    if let Ok(domain) = text.parse::<Domain>() {
        for disk in &domain.disks {
            assert!(domain.disk(&disk.target).is_some());
        }
    }
    let figures = BlockFigures::parse(text);
    assert!(figures.len() <= text.lines().count(), "each disk has a line of its own");
    if let Some(job) = JobFigures::parse(text) {
        let printed = format!("cur={}\nend={}\n", job.done, job.total);
        assert_eq!(JobFigures::parse(&printed), Some(job));
    }
});
