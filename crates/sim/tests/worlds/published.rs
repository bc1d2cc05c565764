//! Published experiments at their published size.

use sterna_core::Nanos;
use sterna_core::qos::WindowControl;
use sterna_sim::{Client, Controller, Orders, Plan, Seen, Series, Uncontrolled, World};

use crate::{closed, near, plan, random, sequential};

/// When the backup begins, of an hour.
const BACKUP: Nanos = Nanos::from_secs(600);

/// E4: a database and a backup on one set of spindles. The spindles are the published
/// ones. Fitted are the requests in flight: 16 of the database give its 2000 IO/s,
/// 72 of the backup leave it 300. 7 KiB are its 14 MB/s over its 2000 IO/s; that 80
/// of a hundred are reads, and the 256 KiB of the backup, are assumed.
fn shared_spindles() -> Plan {
    let database = closed("oltp", 16, random(7 << 10, 80));
    let backup = closed("backup", 72, sequential(256 << 10)).starting(BACKUP);
    let period = Nanos::from_secs(1);
    Plan { period, ..plan("e4-fc", 1200, vec![database, backup]) }
}

#[test]
fn a_backup_takes_the_spindles_from_a_database_that_nothing_protects() {
    let series = World::run(shared_spindles(), &mut Uncontrolled);
    let database = series.client("oltp").expect("it is there");
    let alone = database.between(Nanos::from_secs(10), BACKUP);
    near(alone.iops(), 2000.0, 0.05);
    near(alone.bytes_per_second() / 1e6, 14.0, 0.05);
    let beside = database.between(BACKUP.plus(Nanos::from_secs(10)), Nanos::MAX);
    near(beside.iops(), 300.0, 0.05);
    near(beside.bytes_per_second() / 1e6, 2.0, 0.15);
}

/// PARDA's table 3: four hosts, random reads of 16 KiB, with 125 in flight. The
/// number of spindles is fitted.
fn four_hosts(controller: &mut dyn Controller) -> Series {
    let host = |number: u32| {
        let outstanding = 31 + u32::from(number == 0);
        closed(&format!("host {number}"), outstanding, random(16 << 10, 100))
    };
    let hosts: Vec<Client> = (0..4).map(host).collect();
    World::run(plan("old-fc?spindles=19", 120, hosts), controller)
}

/// Requests per second, and the latency at the array.
#[track_caller]
fn iops_at(series: &Series, iops: f64, latency_ms: f64, tolerance: f64) {
    let array = series.arrays[0].between(Nanos::from_secs(20), Nanos::MAX);
    near(array.iops(), iops, tolerance);
    let total = array.total();
    let latency = total.mean(total.service).expect("requests").as_millis_f64();
    near(latency, latency_ms, tolerance);
}

#[test]
fn four_hosts_without_control_wait_for_37_ms() {
    iops_at(&four_hosts(&mut Uncontrolled), 3360.0, 37.0, 0.02);
}

#[test]
fn four_hosts_with_a_window_wait_for_31_ms_and_lose_nothing() {
    let mut window = WindowControl::default();
    let threshold = Nanos::from_millis(30);
    let mut control = |_: Nanos, seen: Seen<'_>| Orders {
        windows: vec![(0, Some(window.step(&seen.arrays[0], threshold, &[])))],
        ..Orders::default()
    };
    // Whole requests, and one window for all instead of one for each host.
    iops_at(&four_hosts(&mut control), 3350.0, 31.0, 0.05);
}
