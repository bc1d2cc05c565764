//! By whom a disk is hurt, and what would help.

use sterna_core::Nanos;
use sterna_core::hurt::{Cause, Help, Hurt, Neighbour, STEP, Share, Shared, cause, help};
use sterna_core::measure::{Line, LqFit};

fn hurt() -> Hurt {
    let took = Some(Nanos::from_millis(40));
    let usual = Some(Nanos::from_millis(10));
    Hurt { since: Nanos(0), took, usual, promised: None, recovers: false }
}

fn share(iops: f64, length: f64) -> Share {
    Share { iops, bytes_per_second: iops * length, since: None }
}

/// A disk with two others: one with many requests.
fn beside_etl() -> Shared {
    let others = vec![share(1.0, 4096.0), share(100.0, 65536.0)];
    Shared { own: share(20.0, 4096.0), others, ..Shared::default() }
}

#[test]
fn who_does_most_of_the_work_is_named() {
    let shared = beside_etl();
    let Cause::Neighbour { at, part, later } = cause(&hurt(), &shared) else { panic!() };
    assert_eq!((at, later), (1, None));
    assert!((0.92..0.94).contains(&part), "{part}");
    let copies = Shared { copies: share(400.0, 262_144.0), ..shared.clone() };
    assert!(matches!(cause(&hurt(), &copies), Cause::Copies { .. }));
    let alone = Shared { others: vec![share(1.0, 4096.0)], ..shared.clone() };
    assert_eq!(cause(&hurt(), &alone), Cause::Device);
    let queued = Shared { queued: 0.9, ..shared.clone() };
    assert_eq!(cause(&hurt(), &queued), Cause::Queued { part: 0.9 });
    let more = Shared { usual_iops: Some(5.0), ..shared.clone() };
    assert_eq!(cause(&hurt(), &more), Cause::Itself { times: 4.0 });
    let hangs = Hurt { took: None, ..hurt() };
    assert_eq!(cause(&hangs, &shared), Cause::Hangs);
}

#[test]
fn of_two_disks_only_one_does_most_of_the_work() {
    // One has more requests, the other more bytes.
    let (web, app) = (share(60.0, 4096.0), share(40.0, 131_072.0));
    let of = |own, other| {
        let shared = Shared { own, others: vec![other], ..Shared::default() };
        cause(&hurt(), &shared)
    };
    assert!(matches!(of(web, app), Cause::Neighbour { .. }));
    assert_eq!(of(app, web), Cause::Device);
}

#[test]
fn a_neighbour_whose_load_began_later_did_not_make_the_disk_slow_first() {
    let mut shared = beside_etl();
    let since = Nanos::from_secs(70);
    shared.others[1].since = Some(since);
    let Cause::Neighbour { later, .. } = cause(&hurt(), &shared) else { panic!() };
    assert_eq!(later, Some(since));
    shared.others[1].since = Some(STEP);
    let Cause::Neighbour { later, .. } = cause(&hurt(), &shared) else { panic!() };
    assert_eq!(later, None, "steps are no more exact");
}

#[test]
fn a_limit_on_the_neighbour_is_foreseen_by_the_devices_line() {
    let shared = beside_etl();
    let neighbour = Neighbour { at: 1, service: Nanos::from_millis(40) };
    // 200 requests a second at most: 121 of them leave 40 % of the time.
    let line = Line {
        unloaded: Nanos::from_millis(16),
        slope: 5e6,
        slope_error: 1e5,
        points: 100,
        seen: (0.5, 20.0),
    };
    let line = LqFit::Line(line);
    let Help::Limit { bytes_per_second, then } = help(&hurt(), &shared, neighbour, &line)
    else {
        panic!()
    };
    // With a quarter of the neighbour's requests 46 are left; a tenth would hardly save more.
    assert_eq!(bytes_per_second, 25.0 * 65536.0);
    assert!((20.5..21.0).contains(&then.as_millis_f64()), "{then}");
    let promised = Some(Nanos::from_millis(19));
    let promised = Hurt { promised, ..hurt() };
    let sharp = help(&promised, &shared, neighbour, &line);
    let Help::Limit { bytes_per_second, .. } = sharp else { panic!("{sharp:?}") };
    assert_eq!(bytes_per_second, 10.0 * 65536.0, "no milder one keeps what is promised");
    let flat = LqFit::Flat { seen: (0.1, 8.0), latency: Nanos::from_millis(40) };
    assert_eq!(help(&hurt(), &shared, neighbour, &flat), Help::InVain);
    let unknown = LqFit::TooFew { points: 2 };
    let half = Help::Unforeseen { bytes_per_second: 50.0 * 65536.0 };
    assert_eq!(help(&hurt(), &shared, neighbour, &unknown), half);
}

#[test]
fn what_is_foreseen_is_no_less_than_usual_and_what_is_met_of_long_requests() {
    let others = vec![share(40.0, 262_144.0)];
    let shared = Shared { own: share(40.0, 8192.0), others, ..Shared::default() };
    let took = Some(Nanos::from_millis(120));
    let usual = Some(Nanos::from_micros(60));
    let hurt = Hurt { took, usual, ..hurt() };
    let neighbour = Neighbour { at: 0, service: Nanos::from_millis(160) };
    // By the line alone, next to nothing would be left.
    let line = LqFit::Line(Line {
        unloaded: Nanos::from_micros(60),
        slope: 5e6,
        slope_error: 1e5,
        points: 100,
        seen: (0.1, 12.0),
    });
    let Help::Limit { bytes_per_second, then } = help(&hurt, &shared, neighbour, &line)
    else {
        panic!()
    };
    assert_eq!(bytes_per_second, 20.0 * 262_144.0, "half is enough");
    assert!((6.2..6.4).contains(&then.as_millis_f64()), "{then}");
}
