//! What is asked next, in virtual time.

use sterna_core::{Bytes, Nanos};
use sterna_workload::load::{
    Demand, Kind, Lengths, Next, Order, Pace, Profile, ProfileError, Request,
};

const DISK: Bytes = Bytes(1 << 30);
const SECOND: Nanos = Nanos::from_secs(1);

/// Everything that starts before `end` on a disk that answers at once.
fn run(demand: &mut Demand, end: Nanos, mut each: impl FnMut(Nanos, Request)) {
    // A closed loop on such a disk stands still in time; so it may not be given one.
    let mut now = Nanos(0);
    while now < end {
        match demand.next(now) {
            Next::Start(request) => {
                each(now, request);
                demand.answered();
            }
            Next::At(moment) => now = moment,
            Next::Answer => panic!("nothing is under way at {now}"),
        }
    }
}

fn demand(profile: Profile, seed: u64) -> Demand {
    Demand::new(&profile, DISK, seed).expect("a good profile")
}

/// The first requests of a closed loop, each answered at once.
fn first(profile: Profile, seed: u64, count: usize) -> Vec<Request> {
    let mut demand = demand(profile, seed);
    let each = (0..count).map(|_| match demand.next(Nanos(0)) {
        Next::Start(request) => {
            demand.answered();
            request
        }
        other => panic!("seed {seed}: {other:?}"),
    });
    each.collect()
}

#[test]
fn the_same_seed_asks_for_the_same() {
    let (a, b) = (first(Profile::stress(), 7, 1000), first(Profile::stress(), 7, 1000));
    assert_eq!(a, b);
    assert_ne!(a, first(Profile::stress(), 8, 1000));
}

#[test]
fn requests_are_as_long_as_asked_and_stay_within_the_span() {
    let span = Bytes((1 << 20) + 4096);
    for seed in 0..50 {
        for order in [Order::Random, Order::Sequential] {
            let profile = Profile { order, ..Profile::stress() }.within(span);
            let mut lengths = std::collections::BTreeSet::new();
            for request in first(profile, seed, 2000) {
                let Request { offset, len, .. } = request;
                assert!(offset + u64::from(len) <= span.0, "seed {seed}: {request:?}");
                assert!(
                    offset % 4096 == 0 && len % 4096 == 0,
                    "seed {seed}: {request:?}"
                );
                lengths.insert(len);
            }
            let (least, most) = (lengths.first().copied(), lengths.last().copied());
            assert_eq!((least, most), (Some(4096), Some(65536)), "seed {seed}");
        }
    }
}

#[test]
fn a_sequential_application_goes_on_where_it_ended_and_begins_anew_at_the_end() {
    let profile = Profile::backup().within(Bytes(1 << 20));
    let offsets: Vec<u64> =
        first(profile, 1, 6).iter().map(|request| request.offset >> 10).collect();
    assert_eq!(offsets, [0, 256, 512, 768, 0, 256]);
}

#[test]
fn so_many_in_a_hundred_are_reads() {
    for (profile, reads) in [
        (Profile::oltp(), 7000),
        (Profile::backup(), 10_000),
        (Profile::log(), 0),
        (Profile::random_reader(), 10_000),
    ] {
        let profile = Profile { flush_every: None, ..profile };
        let requests = first(profile, 3, 10_000);
        let found = requests.iter().filter(|request| request.kind == Kind::Read).count();
        assert!(found.abs_diff(reads) < 150, "{profile:?}: {found}");
    }
}

#[test]
fn a_closed_loop_keeps_so_many_under_way() {
    let mut demand = demand(Profile::oltp(), 1);
    for _ in 0..16 {
        assert!(matches!(demand.next(Nanos(5)), Next::Start(_)));
    }
    assert_eq!(demand.next(SECOND), Next::Answer);
    demand.answered();
    assert!(matches!(demand.next(SECOND), Next::Start(Request { due: SECOND, .. })));
    assert_eq!(demand.next(SECOND), Next::Answer);
    assert_eq!(demand.outstanding(), 16);
}

#[test]
fn an_open_loop_asks_at_its_rate_and_at_random() {
    let mut demand = demand(Profile::oltp().at_rate(500.0), 11);
    let mut moments = Vec::new();
    run(&mut demand, Nanos::from_secs(100), |now, request| {
        assert_eq!(now, request.due);
        moments.push(now);
    });
    assert!(moments.len().abs_diff(50_000) < 1000, "{}", moments.len());
    let gaps: Vec<f64> =
        moments.windows(2).map(|pair| pair[1].since(pair[0]).as_secs_f64()).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance =
        gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    // Of an exponential distribution the deviation is the mean.
    let ratio = variance.sqrt() / mean;
    assert!((0.95..1.05).contains(&ratio), "{ratio}");
}

#[test]
fn what_could_not_be_sent_in_time_counts_from_when_it_was_due() {
    let mut demand = demand(Profile::oltp().at_rate(100.0), 5);
    // Nobody looked for a second: about 100 requests are due, the oldest longest.
    let mut due = Vec::new();
    while let Next::Start(request) = demand.next(SECOND) {
        due.push(request.due);
        demand.answered();
    }
    assert!(due.len().abs_diff(100) < 40, "{}", due.len());
    assert!(due.is_sorted() && due[0] < Nanos::from_millis(100), "{due:?}");
    assert!(*due.last().expect("many") <= SECOND);
}

#[test]
fn an_open_loop_has_no_more_under_way_than_a_queue_holds() {
    let mut demand = demand(Profile::oltp().at_rate(1000.0), 5);
    let mut started = 0;
    while let Next::Start(_) = demand.next(Nanos::from_secs(10)) {
        started += 1;
    }
    assert_eq!(started, 256);
    assert_eq!(demand.next(Nanos::from_secs(10)), Next::Answer);
}

#[test]
fn a_bursty_application_rests() {
    let (on, off) = (Nanos::from_secs(2), Nanos::from_secs(3));
    let mut closed = demand(Profile::oltp().in_bursts(on, off), 1);
    assert!(matches!(closed.next(Nanos::from_millis(1999)), Next::Start(_)));
    assert_eq!(closed.next(on), Next::At(Nanos::from_secs(5)));
    assert!(matches!(closed.next(Nanos::from_secs(5)), Next::Start(_)));

    let mut open = demand(Profile::oltp().at_rate(100.0).in_bursts(on, off), 1);
    let mut count = 0;
    run(&mut open, Nanos::from_secs(50), |now, _| {
        assert!(now.0 % 5_000_000_000 < on.0, "{now}");
        count += 1;
    });
    // It works 20 s of the 50.
    assert!(2000_u32.abs_diff(count) < 200, "{count}");
}

#[test]
fn a_log_makes_each_write_durable_before_the_next() {
    let mut demand = demand(Profile::log(), 9);
    for _ in 0..100 {
        for kind in [Kind::Write, Kind::Flush] {
            let Next::Start(request) = demand.next(SECOND) else { panic!("{kind:?}") };
            assert_eq!(request.kind, kind);
            assert_eq!(demand.next(SECOND), Next::Answer);
            demand.answered();
        }
    }
}

#[test]
fn a_profile_that_makes_no_sense_is_refused() {
    let refused =
        |profile: Profile| Demand::new(&profile, DISK, 0).expect_err("it makes no sense");
    let oltp = Profile::oltp();
    let lengths = |least, most| Profile { lengths: Lengths { least, most }, ..oltp };
    for wrong in [lengths(0, 8192), lengths(100, 8192), lengths(8192, 4096)] {
        assert!(matches!(refused(wrong), ProfileError::Lengths(_)));
    }
    assert_eq!(refused(lengths(64 << 20, 64 << 20)), ProfileError::TooLong(64 << 20));
    assert_eq!(refused(Profile { reads: 101, ..oltp }), ProfileError::Reads(101));
    let none = Pace::Closed { outstanding: 0 };
    assert_eq!(refused(Profile { pace: none, ..oltp }), ProfileError::Outstanding(0));
    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(refused(oltp.at_rate(rate)), ProfileError::Rate(_)), "{rate}");
    }
    assert_eq!(refused(oltp.in_bursts(Nanos(0), SECOND)), ProfileError::Bursts);
    let never = Profile { flush_every: Some(0), ..oltp };
    assert_eq!(refused(never), ProfileError::FlushEvery);
    let over = refused(oltp.within(Bytes(2 << 30)));
    assert!(over.to_string().contains("the first 2.00 GiB of a disk of 1.00 GiB"));
    assert!(matches!(refused(oltp.within(Bytes(4096))), ProfileError::Span { .. }));
}

#[test]
fn a_profile_is_told_in_words() {
    let told = |profile: Profile| profile.to_string();
    assert_eq!(told(Profile::oltp()), "random, 8.00 KiB, 70 % reads, 16 under way");
    let log = "sequential, 4.00 KiB to 60.0 KiB, 0 % reads, 1 under way, a flush after \
               each 1";
    assert_eq!(told(Profile::log()), log);
    let bursty = Profile::random_reader().at_rate(80.0);
    let bursty = bursty.in_bursts(Nanos::from_secs(2), Nanos::from_secs(3));
    let words = "random, 64.0 KiB, 100 % reads, 80 a second at random moments, on for \
                 2.0 s and off for 3.0 s, in the first 1.00 MiB";
    assert_eq!(told(bursty.within(Bytes(1 << 20))), words);
}
