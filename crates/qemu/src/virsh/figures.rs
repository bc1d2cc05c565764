//! What `virsh` prints as `key=value`.

use std::collections::HashMap;

use crate::qmp::Stats;

/// A disk's figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockFigures {
    /// Its name (`vda`).
    pub target: String,
    /// The size that the guest sees.
    pub size: u64,
    /// What it takes where it lies.
    pub allocated: Option<u64>,
    /// What it did so far.
    pub stats: Stats,
}

/// A job's figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobFigures {
    /// So many bytes are done.
    pub done: u64,
    /// Of so many.
    pub total: u64,
}

fn pairs(text: &str) -> HashMap<&str, &str> {
    text.lines().filter_map(|line| line.trim().split_once('=')).collect()
}

impl BlockFigures {
    /// Reads what `domstats --block` prints of one VM.
    pub fn parse(text: &str) -> Vec<BlockFigures> {
        let pairs = pairs(text);
        let number = |key: String| pairs.get(key.as_str())?.parse::<u64>().ok();
        // A count that makes no sense has no disks behind it.
        let mut disks = Vec::new();
        for at in 0.. {
            let Some(target) = pairs.get(format!("block.{at}.name").as_str()) else {
                return disks;
            };
            let of = |key: &str| number(format!("block.{at}.{key}"));
            let three = |kind: &str| {
                ["reqs", "bytes", "times"]
                    .map(|what| of(&format!("{kind}.{what}")).unwrap_or(0))
            };
            disks.push(BlockFigures {
                target: (*target).to_owned(),
                size: of("capacity").unwrap_or(0),
                allocated: of("physical"),
                stats: Stats::counted(three("rd"), three("wr")),
            });
        }
        disks
    }
}

impl JobFigures {
    /// Reads what `blockjob --info --raw` prints: nothing, if there is no job.
    pub fn parse(text: &str) -> Option<JobFigures> {
        let pairs = pairs(text);
        let number = |key: &str| pairs.get(key)?.parse().ok();
        Some(JobFigures { done: number("cur")?, total: number("end")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disks_figures_are_read() {
        let recorded = "Domain: 'st-test'\n  block.count=1\n  block.0.name=vda\n  \
            block.0.path=/vm/a.raw\n  block.0.rd.reqs=1\n  block.0.rd.bytes=512\n  \
            block.0.rd.times=27781317\n  block.0.wr.reqs=0\n  block.0.allocation=0\n  \
            block.0.capacity=67108864\n  block.0.physical=20975616\n\n";
        let figures = BlockFigures::parse(recorded);
        let [one] = figures.as_slice() else { panic!("{figures:?}") };
        assert_eq!((one.target.as_str(), one.size), ("vda", 67_108_864));
        assert_eq!(one.allocated, Some(20_975_616));
        assert_eq!(one.stats, Stats::counted([1, 512, 27_781_317], [0, 0, 0]));
        assert!(BlockFigures::parse("Domain: 'off'\n").is_empty());
    }

    #[test]
    fn a_jobs_figures_are_read() {
        let recorded = " type=Block Copy\n bandwidth=1\n cur=16777216\n end=67108864\n";
        let job = JobFigures { done: 16_777_216, total: 67_108_864 };
        assert_eq!(JobFigures::parse(recorded), Some(job));
        assert_eq!(JobFigures::parse("\n"), None);
    }
}
