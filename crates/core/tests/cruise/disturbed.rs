//! What disturbs a target that is held: steps, bursts and waves of the others, and a
//! device that is slower for a while.

use proptest::prelude::*;
use sterna_core::guard::cruise::{CruiseControl, CruiseHold, RATE_MIN};
use sterna_core::qos::Goal;

use crate::{Device, MIB, Neighbour, World, cruise, run};

/// What happens to a world for a while.
#[derive(Clone, Copy, Debug)]
enum Disturbance {
    /// The others do so many times as much.
    Step(f64),
    /// They do that every other so many periods.
    Bursts(f64, usize),
    /// They go up and down by such a part, in so many periods.
    Wave(f64, usize),
    /// The device takes so many times as long.
    Slow(f64),
}

impl Disturbance {
    /// What the others do in a period of it, and what the device takes, in times of the
    /// usual.
    fn at(self, period: usize) -> (f64, f64) {
        match self {
            Disturbance::Step(times) => (times, 1.0),
            Disturbance::Bursts(times, on) if (period / on).is_multiple_of(2) => {
                (times, 1.0)
            }
            Disturbance::Bursts(..) => (1.0, 1.0),
            Disturbance::Wave(swing, length) => {
                let turn = period as f64 / length as f64 * std::f64::consts::TAU;
                (1.0 + swing * turn.sin(), 1.0)
            }
            Disturbance::Slow(times) => (1.0, times),
        }
    }
}

fn disturbances() -> impl Strategy<Value = Disturbance> {
    prop_oneof![
        (0.1f64..4.0).prop_map(Disturbance::Step),
        (0.1f64..4.0, 1usize..5).prop_map(|(times, on)| Disturbance::Bursts(times, on)),
        (0.1f64..0.9, 3usize..12).prop_map(|(swing, it)| Disturbance::Wave(swing, it)),
        (1.0f64..1.3).prop_map(Disturbance::Slow),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    /// Whatever happens for half a minute: the class never has more than its target and
    /// a tenth while others yield to it, and ten periods later all is well again.
    #[test]
    fn what_disturbs_is_over_within_ten_periods(
        disturbance in disturbances(),
        loaded in 3.0f64..15.0,
        part in 0.4f64..0.7,
        does in prop::collection::vec(20.0f64..200.0, 1..5),
        noise in prop::sample::select(vec![0.0, 0.01, 0.03]),
        seed in any::<u64>(),
    ) {
        let (own, all) = (0.005, does.iter().sum::<f64>());
        let device = Device {
            own,
            per_mib: own * (loaded - 1.0) / all,
            shared: None,
            outstanding: 16.0,
            size: 8192.0,
            asks: f64::MAX,
        };
        let neighbours =
            does.iter().map(|does| Neighbour { does: does * MIB, floor: 0.0 }).collect();
        let mut world = World { device, neighbours, noise, seed };
        let target = 16.0 / own * part;
        let floors = does.len() as f64 * RATE_MIN / MIB;
        let least = 16.0 / (1.3 * (own + device.per_mib * floors));
        prop_assume!(least > target * 1.1);
        let mut control = CruiseControl::new(cruise(Goal::Requests(target as u64)));
        let mut hold = CruiseHold::default();
        run(&mut control, &mut world, &mut hold, 30);
        let usual = (world.device, world.neighbours.clone());
        for period in 0..30 {
            let (more, slower) = disturbance.at(period);
            world.device.own = usual.0.own * slower;
            world.device.per_mib = usual.0.per_mib * slower;
            for (one, before) in world.neighbours.iter_mut().zip(&usual.1) {
                one.does = before.does * more;
            }
            let held = !hold.others.is_empty();
            let (windows, _) = run(&mut control, &mut world, &mut hold, 1);
            let speed = windows[0].iops() / target;
            prop_assert!(!held || speed < 1.1, "{speed:.2} in period {period}");
        }
        (world.device, world.neighbours) = usual;
        let (windows, _) = run(&mut control, &mut world, &mut hold, 60);
        let speeds: Vec<f64> = windows.iter().map(|one| one.iops() / target).collect();
        let low = speeds[10..].iter().filter(|speed| **speed < 0.89).count();
        let strays = if noise > 0.0 { 2 } else { 0 };
        prop_assert!(low <= strays, "{low} low: {speeds:.2?}");
    }
}
