//! A probe loads a device more and more, and leaves off in time.

use sterna_core::Nanos;
use sterna_core::measure::probe::{DEEPEST, End, Next, Probe, Step, fit};
use sterna_core::measure::{LqFit, LqLine};

/// Probes a device that answers so many of so many outstanding requests per second, beside
/// others who get so many; gives the loads and the end.
fn probed(
    before: f64,
    iops: impl Fn(u32) -> f64,
    others: impl Fn(u32) -> f64,
) -> (Vec<u32>, End) {
    let mut probe = Probe::new(before);
    let (mut loads, mut outstanding) = (Vec::new(), probe.first());
    loop {
        loads.push(outstanding);
        assert!(loads.len() < 100, "it has no end: {loads:?}");
        let iops = iops(outstanding);
        let response = Nanos((f64::from(outstanding) / iops * 1e9) as u64);
        let others = others(outstanding);
        match probe.next(Step { outstanding, iops, response, others }) {
            Next::Load(next) => outstanding = next,
            Next::Done(end) => {
                assert_eq!(probe.steps().len(), loads.len());
                return (loads, end);
            }
        }
    }
}

#[test]
fn a_device_is_loaded_until_more_brings_no_more() {
    // A request takes 5 ms alone, and each other one adds 1 ms: 1000 a second at most.
    let line = |q: u32| f64::from(q) / (0.004 + 0.001 * f64::from(q));
    let (loads, end) = probed(0.0, line, |_| 0.0);
    assert_eq!((loads, end), (vec![1, 2, 4, 8, 16, 32, 64], End::Peak));
    let one_arm = |_| 100.0;
    // At its peak from the beginning on; and yet a line wants several points.
    assert_eq!(probed(0.0, one_arm, |_| 0.0), (vec![1, 2, 4, 8], End::Peak));
}

#[test]
fn a_device_without_a_peak_is_loaded_as_far_as_that_may_be() {
    let (loads, end) = probed(0.0, |q| 5000.0 * f64::from(q), |_| 0.0);
    assert_eq!((loads.last(), end), (Some(&DEEPEST), End::Deepest));
}

#[test]
fn it_leaves_off_where_others_get_less() {
    let falls = |q: u32| 400.0 * (1.0 - 0.03 * f64::from(q));
    let (loads, end) = probed(400.0, |q| 50.0 * f64::from(q), falls);
    let End::Others(kept) = end else { panic!("{end:?}") };
    assert_eq!(loads, [1, 2, 4, 8]);
    assert!((kept - 0.76).abs() < 1e-9, "{kept}");
    // Who hardly asks for anything is nobody.
    assert_eq!(probed(0.5, f64::from, |_| 0.0).1, End::Deepest);
}

fn step(outstanding: u32, response_us: u64, others: f64) -> Step {
    let response = Nanos::from_micros(response_us);
    let iops = f64::from(outstanding) / response.as_secs_f64();
    Step { outstanding, iops, response, others }
}

#[test]
fn a_device_with_a_limit_is_a_line_through_the_origin() {
    let steps = [1, 2, 4, 8].map(|q| step(q, 1000 * u64::from(q), 0.0));
    let LqFit::Line(line) = fit(&steps) else { panic!("{:?}", fit(&steps)) };
    assert!(
        (line.peak() - 1000.0).abs() < 1.0 && line.unloaded < Nanos(1000),
        "{line:?}"
    );
}

#[test]
fn others_count_among_those_that_are_outstanding() {
    // A request takes 4 ms and 1 ms for each that is there; 100 a second are always made:
    // L = 4 + q + 0.1 * L, in milliseconds.
    let with = |q: u32| step(q, ((4.0 + f64::from(q)) / 0.9 * 1e3) as u64, 100.0);
    let LqFit::Line(line) = fit(&[1, 2, 4, 8, 16].map(with)) else { panic!("no line") };
    assert!((line.peak() - 1000.0).abs() < 5.0, "{line:?}");
    assert!((line.unloaded.as_secs_f64() - 0.004).abs() < 1e-4, "{line:?}");
}

#[test]
fn a_device_that_is_far_from_its_limits_is_flat() {
    let steps = [1, 2, 4, 8, 16].map(|q| step(q, 200 + u64::from(q % 3), 0.0));
    assert!(matches!(fit(&steps), LqFit::Flat { .. }), "{:?}", fit(&steps));
    assert_eq!(fit(&steps[..2]), LqFit::TooFew { points: 2 });
}

#[test]
fn what_a_probe_found_counts_where_traffic_tells_no_line_and_for_an_hour() {
    let found = fit(&[1, 2, 4, 8].map(|q| step(q, 1000 * u64::from(q), 0.0)));
    let mut line = LqLine::default();
    assert_eq!(line.fit(Nanos(0)), LqFit::TooFew { points: 0 });
    line.probed(Nanos::from_secs(5), found);
    assert_eq!(line.fit(Nanos::from_secs(1800)), found);
    line.probed(Nanos::from_secs(1801), fit(&[]));
    assert_eq!(line.fit(Nanos::from_secs(1802)), found, "it left off too soon to tell");
    assert_eq!(line.fit(Nanos::from_secs(3700)), LqFit::TooFew { points: 0 });
}
