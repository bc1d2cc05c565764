//! What is advised, seen from what was measured.

use sterna_core::Nanos;
use sterna_core::advise::{
    About, Advice, Datastore, Disk, Facts, Finding, Nature, Requests, Way, advise,
};
use sterna_core::measure::{Line, LqFit};

/// Disks that seek: 5 ms, and 5 ms more for each request that is there.
fn spindles() -> Datastore {
    let line = Line {
        unloaded: Nanos::from_millis(5),
        slope: 5e6,
        slope_error: 1e5,
        points: 100,
        seen: (0.5, 20.0),
    };
    Datastore {
        taken: Some(0.5),
        shared_room: None,
        device: LqFit::Line(line),
        iops: 50.0,
    }
}

fn flash() -> Datastore {
    let device = LqFit::Flat { seen: (0.1, 8.0), latency: Nanos::from_micros(200) };
    Datastore { device, ..spindles() }
}

fn requests(iops: f64, length: f64, in_order: f64) -> Requests {
    Requests { iops, bytes_per_second: iops * length, in_order: Some(in_order) }
}

/// One that asks for nothing.
fn idle() -> Disk {
    Disk {
        datastore: 0,
        read: Requests::default(),
        write: Requests::default(),
        outstanding: 0.0,
        queue: None,
        service: None,
        there: 0.0,
        way: Way::VhostUser,
        governed: false,
        moving: false,
    }
}

fn database() -> Disk {
    Disk {
        read: requests(100.0, 65536.0, 0.02),
        outstanding: 4.0,
        queue: Some(Nanos(0)),
        service: Some(Nanos::from_millis(9)),
        there: 0.9,
        ..idle()
    }
}

fn log() -> Disk {
    Disk {
        write: requests(40.0, 8192.0, 0.98),
        outstanding: 0.4,
        service: Some(Nanos::from_millis(4)),
        there: 1.0,
        ..idle()
    }
}

fn backup() -> Disk {
    Disk {
        read: requests(300.0, 262_144.0, 0.99),
        outstanding: 8.0,
        service: Some(Nanos::from_millis(3)),
        there: 1.0,
        ..idle()
    }
}

fn found(datastores: &[Datastore], disks: &[Disk]) -> Vec<Advice> {
    advise(&Facts { datastores: datastores.into(), disks: disks.into() })
}

/// What is said about a disk.
fn of_disk(advice: &[Advice], at: usize) -> Vec<Finding> {
    let its = advice.iter().filter(|one| one.about == About::Disk(at));
    its.map(|one| one.finding).collect()
}

#[test]
fn natures_are_told_by_requests() {
    let natures = [idle(), database(), log(), backup()].map(|disk| Nature::of(&disk));
    assert_eq!(natures, [Nature::Idle, Nature::Random, Nature::Log, Nature::Stream]);
    let both = Disk { write: requests(90.0, 8192.0, 0.98), ..database() };
    assert_eq!(Nature::of(&both), Nature::Mixed);
}

#[test]
fn of_what_asks_for_nothing_nothing_is_said() {
    assert_eq!(found(&[spindles(), flash()], &[idle(), idle()]), []);
}

#[test]
fn a_disk_that_is_read_at_random_is_moved_when_it_is_quiet_and_best_to_flash() {
    let said = found(&[spindles(), flash()], &[database()]);
    let wanted = Finding::MoveWhenQuiet { random: 0.98, there: 0.9, flash: Some(1) };
    assert_eq!(of_disk(&said, 0), [wanted]);
    let quiet = Disk { there: 0.2, ..database() };
    assert_eq!(found(&[spindles(), flash()], &[quiet]), []);
}

#[test]
fn another_directory_of_the_same_file_system_is_no_flash_to_move_to() {
    let [from, to] =
        [spindles(), flash()].map(|one| Datastore { shared_room: Some(7), ..one });
    let said = found(&[from, to], &[database()]);
    let wanted = Finding::MoveWhenQuiet { random: 0.98, there: 0.9, flash: None };
    assert_eq!(of_disk(&said, 0), [wanted]);
}

#[test]
fn what_is_in_order_can_be_moved_any_time_unless_its_bandwidth_is_needed() {
    let any_time =
        |it: &[Finding]| it.iter().any(|it| matches!(it, Finding::MoveAnyTime { .. }));
    let calm = found(&[spindles()], &[backup()]);
    assert!(any_time(&of_disk(&calm, 0)), "{calm:?}");
    // The device can do 200 a second.
    let said = found(&[Datastore { iops: 190.0, ..spindles() }], &[backup()]);
    assert!(!any_time(&of_disk(&said, 0)), "{said:?}");
    let part = said.iter().find_map(|one| match one.finding {
        Finding::NearPeak { part, peak } => Some((part, peak)),
        _ => None,
    });
    assert_eq!(part, Some((0.95, 200.0)));
}

#[test]
fn small_requests_that_somebody_waits_for_are_moved_with_a_bound() {
    let said = found(&[flash()], &[log()]);
    let bound =
        Finding::MoveWithBound { length: 8192.0, response: Nanos::from_millis(4) };
    assert!(of_disk(&said, 0).contains(&bound), "{said:?}");
    let many = Disk { outstanding: 12.0, ..log() };
    assert!(!of_disk(&found(&[flash()], &[many]), 0).contains(&bound));
}

#[test]
fn a_log_beside_random_reads_is_broken_on_spindles_and_not_on_flash() {
    let disks = [log(), database()];
    let broken = Finding::Broken { by: 1 };
    assert!(of_disk(&found(&[spindles()], &disks), 0).contains(&broken));
    assert!(!of_disk(&found(&[flash()], &disks), 0).contains(&broken));
    let apart = [log(), Disk { datastore: 1, ..database() }];
    assert!(!of_disk(&found(&[spindles(), spindles()], &apart), 0).contains(&broken));
}

#[test]
fn a_backup_beside_a_database_wants_something_that_holds_it() {
    let holds = |backup: Disk, beside: Disk| {
        let said = of_disk(&found(&[spindles()], &[backup, beside]), 0);
        said.iter().any(|it| matches!(it, Finding::Ungoverned { beside: 1, .. }))
    };
    assert!(holds(backup(), database()));
    assert!(!holds(Disk { governed: true, ..backup() }, database()));
    assert!(!holds(backup(), idle()), "it disturbs nobody");
}

#[test]
fn who_waits_for_a_turn_most_of_the_time_is_told_so() {
    let held = Disk { queue: Some(Nanos::from_millis(27)), ..database() };
    let queued = Finding::Queued { part: 0.75 };
    assert!(of_disk(&found(&[spindles()], &[held]), 0).contains(&queued));
    assert!(!of_disk(&found(&[spindles()], &[database()]), 0).contains(&queued));
}

#[test]
fn the_sixteen_requests_of_qemus_nbd_client_are_named() {
    let many = Disk { outstanding: 15.2, ..database() };
    let narrow = Finding::Narrow { outstanding: 15.2 };
    let over_nbd = Disk { way: Way::Nbd, ..many };
    assert!(of_disk(&found(&[spindles()], &[over_nbd]), 0).contains(&narrow));
    assert!(!of_disk(&found(&[spindles()], &[many]), 0).contains(&narrow));
}

#[test]
fn a_datastore_that_is_full_or_was_never_measured_is_named() {
    let blank = Datastore { device: LqFit::TooFew { points: 3 }, ..spindles() };
    let findings = |datastore: Datastore, disk: Disk| {
        let said = found(&[datastore], &[disk]).into_iter();
        let its = said.filter(|one| one.about == About::Datastore(0));
        its.map(|one| one.finding).collect::<Vec<_>>()
    };
    assert_eq!(findings(blank, database()), [Finding::Unmeasured]);
    assert_eq!(findings(blank, idle()), [], "nobody asks it for anything");
    let full = Datastore { taken: Some(0.93), ..flash() };
    assert_eq!(findings(full, idle()), [Finding::Full { taken: 0.93 }]);
}

#[test]
fn a_disk_that_is_being_moved_is_not_advised_to_move() {
    let moves = |moving| {
        let said = found(&[spindles(), flash()], &[Disk { moving, ..database() }]);
        of_disk(&said, 0).len()
    };
    assert_eq!((moves(false), moves(true)), (1, 0));
}
