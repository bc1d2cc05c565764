//! Predictions of wakes that are compared with what became of them.

use proptest::collection::vec;
use proptest::prelude::*;
use sterna_core::memory::WakeScores;

#[test]
fn of_few_wakes_nothing_is_learned() {
    let none = WakeScores::default();
    assert_eq!((none.range(2.0), none.error(), none.wakes()), ((1.0, 4.0), None, 0));
    let few = WakeScores::new([(1.0, 3.0), (0.0, 1.0), (1.0, 0.0)]);
    assert_eq!((few.range(2.0), few.wakes()), ((1.0, 4.0), 1));
    assert_eq!(few.error(), Some(2.0));
}

#[test]
fn a_device_that_is_always_shared_moves_the_range() {
    let scores = WakeScores::new((0..10).map(|_| (2.0, 4.0)));
    let (low, high) = scores.range(1.0);
    assert!(low > 1.7 && high < 2.3, "{low} to {high}");
    assert_eq!(scores.error(), Some(1.0));
}

proptest! {
    #[test]
    fn nine_of_ten_wakes_are_in_the_range_that_they_make(
        ratios in vec(0.2..5.0_f64, 20..32),
        predicted in 0.01..100.0_f64,
    ) {
        let scores = WakeScores::new(ratios.iter().map(|ratio| (1.0, *ratio)));
        let (low, high) = scores.range(predicted);
        let inside = ratios.iter().filter(|it| (low..=high).contains(&(**it * predicted)));
        prop_assert!(inside.count() * 10 >= ratios.len() * 9);
        prop_assert!(low <= high && low > 0.0);
    }
}
