//! Cruise control in front of a device whose requests wait behind each other.

mod alone;
mod disturbed;
mod needless;
mod unreachable;

use proptest::prelude::*;
use sterna_core::Nanos;
use sterna_core::guard::cruise::{
    CruiseControl, CruiseHold, CruiseOutcome, Other, PERIOD, RATE_MIN,
};
use sterna_core::measure::{Traffic, Window};
use sterna_core::qos::policy::{Cruise, Fallback, Tolerance};
use sterna_core::qos::{ClassId, Goal, Limit};

const MIB: f64 = 1048576.0;

/// A device: what a request of the class takes alone, and for each MiB/s of the others.
#[derive(Clone, Copy, Debug)]
struct Device {
    own: f64,
    per_mib: f64,
    /// Where the device's time is shared: MiB/s of the others that leave the class
    /// nothing but its part in the queue, a twentieth.
    shared: Option<f64>,
    /// Requests that the class keeps in flight, and of how many bytes.
    outstanding: f64,
    size: f64,
    /// The most that the class asks for, in requests per second.
    asks: f64,
}

/// Others: what each would do, and what it is held to.
#[derive(Clone, Copy, Debug)]
struct Neighbour {
    does: f64,
    floor: f64,
}

struct World {
    device: Device,
    neighbours: Vec<Neighbour>,
    noise: f64,
    seed: u64,
}

impl World {
    fn noisy(&mut self, value: f64) -> f64 {
        // A multiplicative congruence is enough for a level of noise.
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let part = (self.seed >> 33) as f64 / (1u64 << 31) as f64;
        value * (1.0 + self.noise * (2.0 * part - 1.0))
    }

    /// One period: what the class and the others do under their limits.
    fn period(&mut self, hold: &CruiseHold) -> (Window, Vec<Other>) {
        let held = |(one, id): (&Neighbour, u32)| {
            let bytes = hold.others.get(&ClassId(id)).and_then(|limit| limit.bytes);
            bytes.map_or(one.does, |bytes| one.does.min(bytes as f64))
        };
        let does: Vec<f64> = self.neighbours.iter().zip(1..).map(held).collect();
        let total: f64 = does.iter().sum();
        let Device { own, per_mib, shared, outstanding, size, asks } = self.device;
        let response = match shared {
            Some(all) => own / (1.0 - total / MIB / all).max(0.05),
            None => own + per_mib * total / MIB,
        };
        let service = self.noisy(response);
        let rate = (outstanding / service).min(asks).min(most(&hold.own, size));
        // With so many under way, what is not at the device waits for its turn.
        let least = hold.own.response.map_or(0.0, Nanos::as_secs_f64);
        let waits = if rate < asks { outstanding / rate } else { service };
        let response = service.max(least).max(waits);
        let rate = rate.min(outstanding / response);
        let window = window(rate, size, response, service);
        let neighbours = self.neighbours.clone();
        let others =
            neighbours.iter().zip(does).zip(1..).map(|((one, does), id)| Other {
                class: ClassId(id),
                window: window_of(self.noisy(does)),
                floor: one.floor,
            });
        (window, others.collect())
    }
}

/// Requests per second that a limit lets through.
fn most(limit: &Limit, size: f64) -> f64 {
    let bytes = limit.bytes.map_or(f64::MAX, |bytes| bytes as f64 / size);
    limit.requests.map_or(f64::MAX, |requests| requests as f64).min(bytes)
}

fn window(rate: f64, size: f64, response: f64, service: f64) -> Window {
    let operations = (rate * PERIOD.as_secs_f64()) as u64;
    let sum = |seconds: f64| Nanos((seconds * 1e9 * operations as f64) as u64);
    let (response, service) = (sum(response), sum(service));
    let queue = response.since(service);
    let bytes = (size * operations as f64) as u64;
    let read =
        Traffic { operations, bytes, response, queue, service, ..Traffic::default() };
    Window { span: PERIOD, read, ..Window::default() }
}

/// The mean response time.
fn mean_ms(window: &Window) -> f64 {
    let total = window.total();
    total.mean(total.response).unwrap().as_millis_f64()
}

fn window_of(rate: f64) -> Window {
    let operations = if rate > 0.0 { 1000 } else { 0 };
    let read = Traffic { operations, bytes: rate as u64, ..Traffic::default() };
    Window { span: PERIOD, read, ..Window::default() }
}

fn cruise(target: Goal) -> Cruise {
    let tolerance = Tolerance::new(10).unwrap();
    Cruise { target, tolerance, floor: None, fallback: Fallback::None }
}

/// Runs for so many periods; gives the class's windows, and the limits' sums.
fn run(
    control: &mut CruiseControl,
    world: &mut World,
    hold: &mut CruiseHold,
    periods: usize,
) -> (Vec<Window>, Vec<f64>) {
    let (mut windows, mut sums) = (Vec::new(), Vec::new());
    for _ in 0..periods {
        let (own, others) = world.period(hold);
        *hold = control.step(&own, &others);
        windows.push(own);
        sums.push(sum(hold));
    }
    (windows, sums)
}

/// What the others may have together; without limits, any amount.
fn allowed(hold: &CruiseHold) -> f64 {
    match hold.others.len() {
        0 => f64::INFINITY,
        _ => sum(hold),
    }
}

/// Of the limits, in bytes per second.
fn sum(hold: &CruiseHold) -> f64 {
    hold.others.values().filter_map(|limit| limit.bytes).sum::<u64>() as f64
}

/// E4's figures: 14 MB/s alone, 2 MB/s beside a backup and a stress tool.
fn e4() -> World {
    let neighbour = |does: f64| Neighbour { does: does * MIB, floor: 0.0 };
    World {
        device: Device {
            own: 16.0 * 8192.0 / 14e6,
            per_mib: 16.0 * 8192.0 * (1.0 / 2e6 - 1.0 / 14e6) / 100.0,
            shared: None,
            outstanding: 16.0,
            size: 8192.0,
            asks: f64::MAX,
        },
        neighbours: vec![neighbour(80.0), neighbour(20.0)],
        noise: 0.03,
        seed: 1,
    }
}

fn settles(goal: Goal, value: fn(&Window) -> f64, target: f64) {
    let (mut control, mut world) = (CruiseControl::new(cruise(goal)), e4());
    let (windows, _) = run(&mut control, &mut world, &mut CruiseHold::default(), 310);
    let part = |window: &Window| value(window) / target;
    let shown: Vec<f64> = windows.iter().take(12).map(part).collect();
    let late = windows[10..].iter().map(part);
    assert!(late.clone().all(|part| (0.89..1.11).contains(&part)), "{shown:.2?}");
    assert!(windows.iter().map(part).all(|part| part < 1.1), "{shown:.2?}");
    assert_eq!(*control.outcome(), CruiseOutcome::Holding);
}

#[test]
fn a_target_in_bytes_is_held_within_ten_seconds_and_for_five_minutes() {
    settles(Goal::Bytes(10_000_000), Window::bytes_per_second, 10_000_000.0);
}

#[test]
fn a_target_in_requests_is_held_within_ten_seconds_and_for_five_minutes() {
    settles(Goal::Requests(1000), Window::iops, 1000.0);
}

#[test]
fn a_target_in_milliseconds_is_kept_from_the_tenth_second_on_and_for_five_minutes() {
    let goal = Goal::Response(Nanos::from_millis(15));
    let (mut control, mut world) = (CruiseControl::new(cruise(goal)), e4());
    let (windows, sums) = run(&mut control, &mut world, &mut CruiseHold::default(), 310);
    let means: Vec<f64> = windows.iter().map(mean_ms).collect();
    assert!(means[10..].iter().all(|mean| *mean < 1.1 * 15.0), "{:.2?}", &means[..12]);
    assert_eq!(*control.outcome(), CruiseOutcome::Holding);
    // It leaves 10.1 MiB/s of the 100 to the others: what takes 15 ms, and 9.4 alone. They
    // have at least what leaves the class a fifth to spare.
    let least = sums[60..].iter().copied().fold(f64::INFINITY, f64::min) / MIB;
    assert!(least > 0.9 * 5.6, "the others have {least:.1} MiB/s");
}

#[test]
fn nobody_is_held_below_a_reservation() {
    let (mut control, mut world) =
        (CruiseControl::new(cruise(Goal::Bytes(10_000_000))), e4());
    world.neighbours[1].floor = 19.0 * MIB;
    let mut hold = CruiseHold::default();
    run(&mut control, &mut world, &mut hold, 60);
    let limit = |id| hold.others[&ClassId(id)].bytes.unwrap() as f64;
    assert!(limit(2) >= 19.0 * MIB - 1.0 && limit(1) >= RATE_MIN - 1.0, "{hold:?}");
}

#[test]
fn a_class_that_asks_for_less_does_not_keep_the_others_down() {
    let (mut control, mut world) =
        (CruiseControl::new(cruise(Goal::Requests(1500))), e4());
    world.device.asks = 100.0;
    let mut hold = CruiseHold::default();
    run(&mut control, &mut world, &mut hold, 60);
    assert_eq!(*control.outcome(), CruiseOutcome::Holding);
    assert!(allowed(&hold) > 60.0 * MIB, "{hold:?}");
}

#[test]
fn a_class_with_a_limit_of_its_own_below_its_target_keeps_nobody_down() {
    let (mut control, mut world) =
        (CruiseControl::new(cruise(Goal::Requests(1500))), e4());
    let mut hold = CruiseHold::default();
    let mut go_on = |control: &mut CruiseControl, limit: Limit, periods: usize| {
        control.limit_own(limit, None);
        let mut last = 0.0;
        for _ in 0..periods {
            let bytes = [hold.own.bytes, limit.bytes].into_iter().flatten().min();
            let own = Limit { bytes, ..hold.own };
            let (own, others) =
                world.period(&CruiseHold { own, others: hold.others.clone() });
            hold = control.step(&own, &others);
            last = own.iops();
        }
        (last, allowed(&hold))
    };
    // Held for its target, then limited to less, then not any more.
    let (has, before) = go_on(&mut control, Limit::default(), 30);
    assert!((1350.0..1650.0).contains(&has) && before < 60.0 * MIB, "{has}, {before}");
    let limit = Limit { bytes: Some(5 << 20), ..Limit::default() };
    let (has, others) = go_on(&mut control, limit, 60);
    assert!(has < 650.0 && others > 5.0 * before, "{has}, {others}");
    assert_eq!(*control.outcome(), CruiseOutcome::Holding);
    assert_eq!(control.note(), Some("the class's own limit permits no more"));
    let (has, _) = go_on(&mut control, Limit::default(), 15);
    assert!((1350.0..1650.0).contains(&has), "{has}");
    // Nor if it was out of reach before.
    let mut control = CruiseControl::new(cruise(Goal::Requests(50_000)));
    go_on(&mut control, Limit::default(), 20);
    assert!(matches!(control.outcome(), CruiseOutcome::Unreachable(_)));
    let (_, before) = go_on(&mut control, limit, 2);
    assert_eq!(*control.outcome(), CruiseOutcome::Holding);
    let (_, others) = go_on(&mut control, limit, 20);
    assert!(others > 2.0 * before, "{before}, {others}");
}

/// It would have its pages in no time, and works on each for 5 ms.
#[test]
fn a_class_that_seldom_waits_keeps_nobody_down_however_little_they_do() {
    let (mut control, mut world) =
        (CruiseControl::new(cruise(Goal::Requests(1500))), e4());
    world.neighbours = vec![Neighbour { does: 4.0 * MIB, floor: 0.0 }];
    world.device = Device { asks: 200.0, own: 0.001, per_mib: 1e-5, ..world.device };
    let mut hold = CruiseHold::default();
    for period in 0..60 {
        run(&mut control, &mut world, &mut hold, 1);
        assert_eq!(*control.outcome(), CruiseOutcome::Holding, "in period {period}");
        assert_eq!(hold, CruiseHold::default(), "in period {period}");
    }
}

/// Beside the other it has three or four answers in a second, and the next is under way.
#[test]
fn a_starved_class_with_few_and_slow_requests_asks_for_its_target() {
    let target = 50.0;
    let mut control = CruiseControl::new(cruise(Goal::Requests(target as u64)));
    let (mut world, mut hold) = (e4(), CruiseHold::default());
    world.neighbours = vec![Neighbour { does: 10.0 * MIB, floor: 0.0 }];
    let (own, outstanding, shared) = (0.0155, 1.14, Some(10.0 / 0.97));
    world.device = Device { own, outstanding, shared, ..world.device };
    world.noise = 0.0;
    let (windows, _) = run(&mut control, &mut world, &mut hold, 30);
    let speeds: Vec<f64> = windows.iter().map(|one| one.iops() / target).collect();
    assert!(speeds[10..].iter().all(|speed| *speed > 0.89), "{speeds:.2?}");
}

#[test]
fn an_idle_class_lets_the_others_go() {
    let (mut control, mut world) =
        (CruiseControl::new(cruise(Goal::Bytes(10_000_000))), e4());
    let mut hold = CruiseHold::default();
    run(&mut control, &mut world, &mut hold, 20);
    assert!(!hold.others.is_empty());
    world.device.asks = 0.0;
    run(&mut control, &mut world, &mut hold, 60);
    assert_eq!(hold, CruiseHold::default());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5000))]

    /// Whatever the device and the others are like: within the tolerance after ten
    /// periods and for five minutes, never over it by more than a fifth, and the
    /// allowance does not swing. What is measured varies by up to 3 %; that may push a
    /// period over an edge now and then, and mislead the first two cuts.
    #[test]
    fn a_target_within_reach_is_held(
        own_ms in 1.0f64..20.0,
        loaded in 2.0f64..20.0,
        part in 0.4f64..0.8,
        outstanding in 1.0f64..64.0,
        does in prop::collection::vec(10.0f64..200.0, 1..6),
        shared in any::<bool>(),
        noise in prop::sample::select(vec![0.0, 0.0, 0.01, 0.03]),
        seed in any::<u64>(),
    ) {
        let all: f64 = does.iter().sum();
        let own = own_ms / 1000.0;
        let device = Device {
            own,
            per_mib: own * (loaded - 1.0) / all,
            shared: shared.then_some(all / 0.97),
            outstanding,
            size: 8192.0,
            asks: f64::MAX,
        };
        let neighbours =
            does.iter().map(|does| Neighbour { does: does * MIB, floor: 0.0 }).collect();
        let mut world = World { device, neighbours, noise, seed };
        let alone = outstanding / own;
        let target = alone * part;
        let floors = does.len() as f64 * RATE_MIN / MIB;
        // Within reach: the others at their floors leave more than that.
        let least = match device.shared {
            Some(all) => alone * (1.0 - floors / all),
            None => outstanding / (own + device.per_mib * floors),
        };
        prop_assume!(least > target * 1.1 && target >= 50.0);
        let mut control = CruiseControl::new(cruise(Goal::Requests(target as u64)));
        let (windows, sums) = run(&mut control, &mut world, &mut CruiseHold::default(), 310);
        let crowded = shared || alone / loaded < target;
        let parts: Vec<f64> = windows.iter().map(|one| one.iops() / target).collect();
        let late = &parts[10..];
        let low = late.iter().filter(|part| **part < 0.89).count();
        let strays = if noise > 0.0 { 8 } else { 0 };
        prop_assert!(low <= strays, "{low} low: {:.2?}", &parts[..20]);
        if crowded {
            let over = parts.iter().filter(|part| **part > 1.1).count();
            prop_assert!(over <= strays, "{over} over: {:.2?}", &parts[..20]);
            // A swing is a change of direction by more than a tenth.
            let turns = turns(&sums[20..]);
            prop_assert!(turns <= 4, "{turns} turns: {:.0?}", &sums[..40]);
        }
    }
}

/// How often a series turns round by more than a tenth.
fn turns(series: &[f64]) -> usize {
    let (mut extreme, mut up, mut turns) = (series[0], None, 0);
    for &value in series {
        let (higher, lower) = (value > extreme * 1.1, value < extreme * 0.9);
        match up {
            Some(true) if value > extreme => extreme = value,
            Some(false) if value < extreme => extreme = value,
            _ if higher || lower => {
                turns += usize::from(up.is_some());
                (up, extreme) = (Some(higher), value);
            }
            _ => {}
        }
    }
    turns
}
