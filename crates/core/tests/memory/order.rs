//! In which order memory goes out and comes back.

use std::collections::BTreeSet;

use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use sterna_core::memory::{
    GRANULE, GranuleSet, Heat, Needed, OUT_BATCH, OutGranule, WakeRecord, batches, runs,
    streams,
};

const OF: u32 = 300;

fn record(hot: &BTreeSet<u32>, cool: &BTreeSet<u32>) -> WakeRecord {
    let mut needed = Needed::none(OF);
    cool.iter().for_each(|one| needed.note(*one, 2));
    hot.iter().for_each(|one| needed.note(*one, 0));
    WakeRecord::new([needed])
}

fn out(granule: u32, device: u8, slot: u64) -> OutGranule {
    OutGranule { granule, device, slot, pages: 16 }
}

proptest! {
    #[test]
    fn all_that_is_present_goes_out_once_and_the_hot_part_last(
        present in btree_set(0..OF, 0..200),
        hot in btree_set(0..OF, 0..60),
        cool in btree_set(0..OF, 0..60),
        hot_stays: bool,
    ) {
        let mut set = GranuleSet::none(OF);
        present.iter().for_each(|one| set.insert(*one));
        let record = record(&hot, &cool);
        let all = batches(&set, &record, hot_stays);
        let mut gone = Vec::new();
        for batch in &all {
            prop_assert!(batch.len > 0 && batch.len <= OUT_BATCH);
            prop_assert_eq!((batch.offset % GRANULE, batch.len % GRANULE), (0, 0));
            gone.extend(batch.offset / GRANULE..batch.end() / GRANULE);
        }
        let heat = |granule: &u64| record.heat(*granule as u32);
        prop_assert!(gone.is_sorted_by_key(|one| (std::cmp::Reverse(heat(one)), *one)));
        let expected: BTreeSet<u64> = present
            .iter()
            .map(|one| u64::from(*one))
            .filter(|one| !(hot_stays && heat(one) == Heat::Hot))
            .collect();
        prop_assert_eq!(gone.len(), expected.len());
        prop_assert_eq!(gone.into_iter().collect::<BTreeSet<_>>(), expected);
    }

    #[test]
    fn each_device_gives_the_hottest_first_and_then_by_slot(
        places in vec((0..3_u8, 0..5_000_u64), OF as usize),
        hot in btree_set(0..OF, 0..60),
        cool in btree_set(0..OF, 0..60),
    ) {
        let all: Vec<OutGranule> = (0..OF)
            .zip(&places)
            .map(|(granule, (device, slot))| out(granule, *device, *slot))
            .collect();
        let record = record(&hot, &cool);
        let streams = streams(&all, &record);
        prop_assert!(streams.is_sorted_by(|one, next| one.device < next.device));
        let mut seen = BTreeSet::new();
        for stream in &streams {
            prop_assert!(stream.granules.is_sorted_by_key(|(heat, it)| (*heat, it.slot)));
            for (heat, it) in &stream.granules {
                prop_assert_eq!(it.device, stream.device);
                prop_assert_eq!(*heat, record.heat(it.granule));
                prop_assert!(seen.insert(it.granule));
            }
        }
        prop_assert_eq!(seen.len(), OF as usize);
    }
}

#[test]
fn what_lies_together_is_one_run() {
    let together = [out(7, 0, 160), out(3, 0, 176), out(9, 0, 192)];
    assert_eq!(runs(&together), 1);
    assert_eq!(runs(&[out(7, 0, 160), out(3, 0, 192), out(9, 0, 176)]), 3);
    assert_eq!(runs(&[]), 0);
}
