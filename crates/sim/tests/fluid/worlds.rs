//! How near flows are to a world of single requests, on the same arrays.

use sterna_core::Nanos;
use sterna_sim::fluid::{Run, Scenario};
use sterna_sim::svmotion::Load::Off;
use sterna_sim::svmotion::{Disk, Extent, Parameters, Scene, Side, Study};
use sterna_sim::{Access, Client, Load, Plan, Uncontrolled, World};

/// What flows may be off by: where everything is random, or a stream is alone.
const BOUND: f64 = 0.1;

/// The same of a stream beside random requests, which break it now and then.
const BOUND_BROKEN: f64 = 0.35;

/// A closed client of an array.
#[derive(Clone, Copy)]
struct Asks {
    outstanding: u32,
    kib: u64,
    read: u32,
    random: bool,
}

/// Requests per second of each, by single requests: on average from the tenth second on.
fn by_requests(model: &str, clients: &[Asks]) -> Vec<f64> {
    let client = |(number, it): (usize, &Asks)| {
        let bytes = it.kib << 10;
        let access =
            Access { bytes, read_percent: it.read, random: it.random, size: 100 << 30 };
        let load = Load::Closed { outstanding: it.outstanding };
        Client::new(&number.to_string(), load, access)
    };
    let plan = Plan {
        seed: 1,
        period: Nanos::from_millis(100),
        span: Nanos::from_secs(40),
        arrays: vec![model.parse().expect("a model")],
        clients: clients.iter().enumerate().map(client).collect(),
        faults: Vec::new(),
        noise: 0.0,
    };
    let series = World::run(plan, &mut Uncontrolled);
    let from = Nanos::from_secs(10);
    series.clients.iter().map(|it| it.between(from, Nanos::MAX).iops()).collect()
}

/// The same by flows.
fn by_flows(model: &str, clients: &[Asks]) -> Vec<f64> {
    let mut text = format!(
        "title = 'x'\nlength = '10min'\nhost.count = 1\n\
         [[array]]\nname = 'a'\nmodel = '{model}'\n\
         [[datastore]]\nname = 'd'\narray = 'a'\n"
    );
    for (number, it) in clients.iter().enumerate() {
        let random = if it.random { 100 } else { 0 };
        text += &format!(
            "[[profile]]\nname = 'p{number}'\noutstanding = {}\nrequest = '{}K'\n\
             read = {}\nrandom = {random}\nsize = '100G'\n\
             [[vms]]\nname = 'v{number}'\nprofile = 'p{number}'\non = 'd'\n",
            it.outstanding, it.kib, it.read
        );
    }
    let scenario: Scenario = text.parse().expect("a scenario");
    let outcome = Run::whole(&scenario);
    let phase = &outcome.phases[0];
    phase.profiles.iter().map(|it| it.requests / phase.seconds()).collect()
}

#[track_caller]
fn near(model: &str, clients: &[Asks], bound: f64) {
    let (requests, flows) = (by_requests(model, clients), by_flows(model, clients));
    for (one, other) in requests.iter().zip(&flows) {
        let off = other / one - 1.0;
        let told = format!("{one:.0}/s by requests, {other:.0}/s by flows");
        println!("{model}: {told}: {:+.1} %", 100.0 * off);
        assert!(off.abs() <= bound, "{model}: {told}: off by {:+.1} %", 100.0 * off);
    }
}

const fn asks(outstanding: u32, kib: u64, read: u32, random: bool) -> Asks {
    Asks { outstanding, kib, read, random }
}

#[test]
fn random_reads_at_any_depth() {
    for outstanding in [1, 8, 32, 128] {
        near("old-fc", &[asks(outstanding, 8, 100, true)], BOUND);
    }
    near("sas-10k?raid=6:6+2x2", &[asks(64, 64, 100, true)], BOUND);
}

#[test]
fn random_writes_that_a_cache_is_full_of() {
    near("sas-10k?raid=6:6+2&write-cache=16M", &[asks(16, 8, 0, true)], BOUND);
    near("e4-fc?write-cache=16M", &[asks(16, 8, 0, true)], BOUND);
}

#[test]
fn reads_and_writes_of_a_database() {
    near("e4-fc?write-cache=16M", &[asks(16, 8, 70, true)], BOUND);
}

#[test]
fn what_a_copy_reads_alone() {
    near("old-fc", &[asks(30, 64, 100, false)], BOUND);
    near("new-fc", &[asks(30, 64, 100, false)], BOUND);
}

#[test]
fn what_a_copy_reads_beside_a_load() {
    near("old-fc", &[asks(30, 64, 100, false), asks(16, 8, 100, true)], BOUND_BROKEN);
    near("new-fc", &[asks(30, 64, 100, false), asks(16, 8, 100, true)], BOUND_BROKEN);
}

/// The daemon's own mirror moves a data disk and a log between two arrays, request by
/// request, in the study of a database's disks (`svmotion`): 30 chunks under way, and
/// 4.34 ms for a read at the old array.
#[test]
fn a_whole_copy_with_the_daemons_own_mirror() {
    let extent = Extent { bytes: 256 << 20, alone: Nanos::from_secs(1) };
    let study = Study::run(Parameters::default(), extent, 1, |_| {});
    for (disk, spindles, gib) in [(Disk::Data, [7, 6], 600), (Disk::Log, [4, 4], 50)] {
        let scene = Scene { from: Side::Old, disk: Some(disk), load: Off };
        let moved = study.course(scene).and_then(|it| it.moved).expect("it has moved");
        let [old, new] = spindles;
        let text = format!(
            "title = 'x'\ncopier.in-flight = 30\nhost.count = 1\n\
             [[array]]\nname = 'old'\n\
             model = 'old-fc?spindles={old}&overhead=4.34ms&link=380M'\n\
             [[array]]\nname = 'new'\nmodel = 'new-fc?spindles={new}&link=380M'\n\
             [[datastore]]\nname = 'old'\narray = 'old'\n\
             [[datastore]]\nname = 'new'\narray = 'new'\n\
             [[profile]]\nname = 'p'\niops = 0\nsize = '{gib}G'\n\
             [[vms]]\nname = 'v'\nprofile = 'p'\non = 'old'\n\
             [[wave]]\nname = 'w'\nmove = ['v']\nto = 'new'\n"
        );
        let scenario: Scenario = text.parse().expect("a scenario");
        let flows = Run::whole(&scenario).wave(0).expect("it ran").seconds();
        let told = format!("{disk:?}: {moved:.0} s by requests, {flows:.0} s by flows");
        let off = flows / moved - 1.0;
        println!("{told}: {:+.1} %", 100.0 * off);
        assert!(off.abs() <= BOUND, "{told}: off by {:+.1} %", 100.0 * off);
    }
}
