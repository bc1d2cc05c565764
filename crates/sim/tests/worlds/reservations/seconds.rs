//! What is made of seconds that no array of ours has, one after the other.

use sterna_core::Nanos;
use sterna_core::measure::Window;
use sterna_core::qos::{Attainment, ClassId, Reserved, Terms, WindowControl, threshold};

use super::terms;

/// A device that takes so long for a request, whatever else is there, for a second in
/// which these were there.
fn flat(millis: u64, there: f64) -> Window {
    let (span, service) = (Nanos::from_secs(1), Nanos::from_millis(millis));
    let operations = (there * 1000.0 / millis as f64) as u64;
    let mut window = Window { span, ..Window::default() };
    window.read.operations = operations;
    window.read.service = Nanos(service.0 * operations);
    window
}

#[test]
fn a_limit_in_the_other_unit_is_no_reason_to_give_up_what_is_reserved_until_it_is_reached()
 {
    let mut own = flat(10, 4.0);
    own.read.bytes = 8192 * own.read.operations;
    let fewest = |bytes| {
        let mut terms = terms(1000);
        terms.limit.bytes = Some(bytes);
        let mut control = WindowControl::default();
        let fewest = (0..30).map(|_| {
            let reserved = Reserved::of(ClassId(1), &terms, &own, &own);
            let reserved: Vec<_> = reserved.into_iter().collect();
            control.step(&flat(10, 28.0), threshold(None), &reserved)
        });
        fewest.min().expect("steps")
    };
    let (high, reached) = (fewest(4 * own.read.bytes), fewest(own.read.bytes));
    assert!(high < 28 && reached >= 28, "{high} and {reached} of 28 under way");
}

#[test]
fn a_device_that_is_slow_by_itself_is_not_choked_by_a_trial() {
    let mut control = WindowControl::default();
    let mut done = 0.0;
    for second in 0..600 {
        let there = f64::from(control.window()).min(200.0);
        let own = flat(40, there.min(8.0));
        let reserved = Reserved::of(ClassId(1), &terms(1000), &own, &own);
        let seen = flat(40, there);
        control.step(&seen, threshold(None), &reserved.into_iter().collect::<Vec<_>>());
        done += if second < 15 { 0.0 } else { seen.iops() / 585.0 };
    }
    println!("{done:.0} of 5000");
    assert!(done > 0.8 * 5000.0, "{done:.0} of 5000");
}

/// A second in which so many requests were answered, and so many were under way on
/// average, all of them at the device.
fn second(rate: u64, under_way: u64) -> Window {
    let mut window = Window { span: Nanos::from_secs(1), ..Window::default() };
    let there = Nanos::from_secs(under_way);
    window.read.operations = rate;
    (window.read.response, window.read.service) = (there, there);
    window
}

/// Steps with a class under these terms that did so much, beside others with so many at
/// the device that it does not help to slow them; gives the windows.
fn steps(
    control: &mut WindowControl,
    count: u32,
    terms: &Terms,
    own: &Window,
) -> Vec<u32> {
    let step = |_| {
        let reserved = Reserved::of(ClassId(1), terms, own, own);
        let mut all = second(1000, 40);
        all.join(own);
        let reserved: Vec<_> = reserved.into_iter().collect();
        control.step(&all, threshold(Some(Nanos::from_millis(30))), &reserved)
    };
    (0..count).map(step).collect()
}

fn state(control: &WindowControl) -> Attainment {
    control.attained().next().expect("a class").state
}

#[test]
fn who_has_less_and_fewer_under_way_than_when_it_was_tried_is_tried_again() {
    let (mut control, terms) = (WindowControl::default(), terms(1000));
    steps(&mut control, 30, &terms, &second(500, 20));
    assert_eq!(state(&control), Attainment::Lacking);
    let own = second(100, 14);
    steps(&mut control, 5, &terms, &own);
    assert_eq!(state(&control), Attainment::Sated);
    let said = (0..130).map(|_| {
        steps(&mut control, 1, &terms, &own);
        state(&control)
    });
    assert!(said.filter(|it| *it == Attainment::Lacking).count() > 5);
}

#[test]
fn a_second_without_answers_does_not_end_a_trial() {
    let (mut control, terms) = (WindowControl::default(), terms(1000));
    let own = second(500, 8);
    let before = steps(&mut control, 2, &terms, &own);
    // What was answered then had waited for long.
    steps(&mut control, 1, &terms, &second(500, 100));
    let after = steps(&mut control, 8, &terms, &own);
    assert_eq!(after.iter().min(), Some(&8), "{before:?}, then {after:?}");
}

#[test]
fn what_waits_for_a_classs_own_queue_depth_is_no_reason_not_to_slow_others() {
    let mut control = WindowControl::default();
    let terms = Terms { depth: Some(4), ..terms(1000) };
    // 64 are under way, four of them at the device.
    let mut own = second(500, 64);
    own.read.service = Nanos::from_secs(4);
    let windows = steps(&mut control, 12, &terms, &own);
    assert_eq!(windows.iter().min(), Some(&4), "{windows:?}");
}
