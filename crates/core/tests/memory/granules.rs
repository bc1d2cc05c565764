//! Sets of granules, and what is known of the last wakes.

use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use sterna_core::memory::{
    GRANULE, GranuleSet, Heat, Needed, WAKES_KEPT, WakeRecord, granules_in,
};

fn set(of: u32, granules: impl IntoIterator<Item = u32>) -> GranuleSet {
    let mut set = GranuleSet::none(of);
    granules.into_iter().for_each(|one| set.insert(one));
    set
}

/// A wake that needed these within two seconds.
fn wake(of: u32, hot: &[u32]) -> Needed {
    let mut needed = Needed::none(of);
    hot.iter().for_each(|one| needed.note(*one, 0));
    needed
}

proptest! {
    #[test]
    fn a_set_has_what_was_put_into_it_in_order_and_survives_its_bytes(
        of in 0..400_u32,
        put in btree_set(0..500_u32, 0..200),
    ) {
        let set = set(of, put.iter().copied());
        let expected: Vec<u32> = put.into_iter().filter(|one| *one < of).collect();
        prop_assert_eq!(set.iter().collect::<Vec<_>>(), expected.clone());
        prop_assert_eq!(set.len() as usize, expected.len());
        prop_assert_eq!(set.is_empty(), expected.is_empty());
        prop_assert!(expected.iter().all(|one| set.has(*one)));
        prop_assert_eq!(GranuleSet::from_bytes(of, &set.bytes()), Some(set));
    }

    #[test]
    fn bytes_that_no_set_of_this_size_wrote_are_refused(
        of in 0..200_u32,
        bytes in vec(any::<u8>(), 0..40),
    ) {
        if let Some(set) = GranuleSet::from_bytes(of, &bytes) {
            prop_assert_eq!(set.bytes(), bytes);
            prop_assert!(set.iter().all(|one| one < of));
        }
    }
}

#[test]
fn memory_is_counted_in_whole_granules() {
    assert_eq!(granules_in(0), 0);
    assert_eq!(granules_in(1), 1);
    assert_eq!(granules_in(4 << 30), 65_536);
    assert_eq!(granules_in(GRANULE + 1), 2);
}

#[test]
fn a_granule_is_as_hot_as_it_was_in_half_of_the_wakes() {
    let mut record = WakeRecord::default();
    assert_eq!(record.heat(1), Heat::Cold, "nothing is known");
    record.add(wake(8, &[1, 2]));
    assert_eq!((record.heat(1), record.heat(3)), (Heat::Hot, Heat::Cold));
    record.add(wake(8, &[1, 3]));
    assert_eq!((record.heat(2), record.heat(3)), (Heat::Hot, Heat::Hot));
    record.add(wake(8, &[1, 3]));
    assert_eq!((record.heat(1), record.heat(2)), (Heat::Hot, Heat::Cold));
    assert_eq!(record.heat(3), Heat::Hot);
}

#[test]
fn what_was_needed_later_is_less_hot() {
    let mut needed = Needed::none(8);
    needed.note(0, 0);
    needed.note(1, 1);
    needed.note(2, 2);
    let record = WakeRecord::new([needed]);
    let heats: Vec<Heat> = (0..4).map(|granule| record.heat(granule)).collect();
    assert_eq!(heats, Heat::ALL);
}

#[test]
fn only_the_last_wakes_of_a_vm_of_this_size_count() {
    let mut record = WakeRecord::new((0..9).map(|_| wake(8, &[5])));
    assert_eq!(record.wakes(), WAKES_KEPT);
    for _ in 0..WAKES_KEPT {
        record.add(wake(8, &[6]));
    }
    assert_eq!((record.heat(5), record.heat(6)), (Heat::Cold, Heat::Hot));
    record.add(wake(16, &[9]));
    assert_eq!(
        (record.wakes(), record.heat(6), record.heat(9)),
        (1, Heat::Cold, Heat::Hot)
    );
}
