//! Policies, by what they promise: what holds when, what cannot be had together, and
//! what a datastore cannot keep, each with its numbers.

use proptest::prelude::*;
use sterna_core::Nanos;
use sterna_core::qos::policy::{
    Aim, Basis, Capacity, Cruise, DEPTH_MAX, Fallback, Plan, Policy, PolicyId, Stands,
    Tolerance, admit, check, resolve,
};
use sterna_core::qos::{Goal, Rate, SHARES};
use sterna_core::schedule::{Moment, WEEK, Weekday};

const MONDAY_NOON: u32 = 12 * 3600;

fn monday_noon() -> Moment {
    Moment::new(Weekday::Monday, MONDAY_NOON)
}

fn goal(text: &str) -> Goal {
    text.parse().unwrap()
}

/// A plan without anything.
fn plan() -> Plan {
    Plan { reservation: None, shares: SHARES, policies: Vec::new() }
}

fn reserving(rate: &str) -> Plan {
    Plan { reservation: Some(rate.parse().unwrap()), ..plan() }
}

/// A plan with these policies; they get the numbers 1, 2, …
fn with(plan: &Plan, aims: &[(Aim, &str)]) -> Plan {
    let policies = aims.iter().zip(1..).map(|((aim, schedule), id)| Policy {
        id: PolicyId(id),
        aim: *aim,
        schedule: (!schedule.is_empty()).then(|| schedule.parse().unwrap()),
    });
    Plan { policies: policies.collect(), ..*plan }
}

fn limit(text: &str) -> Aim {
    Aim::Limit(goal(text))
}

fn cruise(target: &str, percent: u8) -> Aim {
    Aim::Cruise(Cruise {
        target: goal(target),
        tolerance: Tolerance::new(percent).unwrap(),
        floor: None,
        fallback: Fallback::None,
    })
}

fn floored(target: &str, floor: &str) -> Aim {
    let Aim::Cruise(cruise) = cruise(target, 10) else { unreachable!("it is one") };
    Aim::Cruise(Cruise { floor: Some(floor.parse().unwrap()), ..cruise })
}

#[track_caller]
fn refused(plan: &Plan) -> String {
    check(plan).expect_err("it should be refused").to_string()
}

#[test]
fn of_several_limits_the_tightest_of_each_metric_binds() {
    let plan = with(
        &plan(),
        &[
            (limit("5M"), ""),
            (limit("2M"), ""),
            (limit("100iops"), ""),
            (limit("5ms"), ""),
            (limit("20ms"), ""),
            (Aim::Depth(8), ""),
            (Aim::Depth(4), ""),
        ],
    );
    check(&plan).unwrap();
    let now = resolve(&plan, monday_noon());
    assert_eq!(now.terms.limit.bytes, Some(2 << 20));
    assert_eq!(now.terms.limit.requests, Some(100));
    assert_eq!(now.terms.limit.response, Some(Nanos::from_millis(20)));
    assert_eq!(now.terms.depth, Some(4));
    assert_eq!(plan.until_change(monday_noon()), None);
    let stands: Vec<_> = now.standings.iter().map(|one| one.stands).collect();
    let looser = |id| Stands::Looser(PolicyId(id));
    use Stands::Binds;
    assert_eq!(stands, [looser(2), Binds, Binds, looser(5), Binds, looser(7), Binds]);
}

#[test]
fn a_looser_limit_is_shown_against_the_tightest() {
    let limits = [(limit("9M"), ""), (limit("5M"), ""), (limit("2M"), "")];
    let plan = with(&plan(), &limits);
    let now = resolve(&plan, monday_noon());
    assert_eq!(now.standings[0].stands, Stands::Looser(PolicyId(3)));
}

#[test]
fn of_two_limits_that_say_the_same_the_older_binds() {
    let plan = with(&plan(), &[(limit("2M"), ""), (limit("2M"), "")]);
    let now = resolve(&plan, monday_noon());
    assert_eq!(now.standings[0].stands, Stands::Binds);
    assert_eq!(now.standings[1].stands, Stands::Looser(PolicyId(1)));
}

#[test]
fn a_schedule_switches_at_its_second() {
    let plan = with(&plan(), &[(limit("2M"), "Mon 12:00:05-13:00"), (limit("9M"), "")]);
    let noon = resolve(&plan, monday_noon());
    assert_eq!(noon.terms.limit.bytes, Some(9 << 20));
    assert_eq!(noon.standings[0].stands, Stands::Closed);
    assert_eq!(plan.until_change(monday_noon()), Some(5));
    assert_eq!(resolve(&plan, monday_noon().after(4)), noon);
    let open = monday_noon().after(5);
    assert_eq!(resolve(&plan, open).terms.limit.bytes, Some(2 << 20));
    assert_eq!(plan.until_change(open), Some(3595));
}

#[test]
fn a_floor_is_a_reservation_while_its_policy_is_open() {
    let plan = with(&reserving("100iops"), &[(floored("1000iops", "400iops"), "Mon")]);
    check(&plan).unwrap();
    let now = resolve(&plan, monday_noon());
    assert_eq!(now.terms.reservation, Some(Rate::Requests(400)));
    assert_eq!(now.cruise.map(|(id, _)| id), Some(PolicyId(1)));
    let tuesday = resolve(&plan, Moment::new(Weekday::Tuesday, 0));
    assert_eq!(tuesday.terms.reservation, Some(Rate::Requests(100)));
    assert_eq!(tuesday.cruise, None);
}

#[test]
fn a_limit_below_the_reservation_is_refused_with_both() {
    let plan = with(&reserving("20M"), &[(limit("2M"), "")]);
    assert_eq!(
        refused(&plan),
        "the limit of 2.00 MiB/s (policy 1) is below the reservation of 20.0 MiB/s"
    );
    // Of another metric it may be met, for all that is known.
    check(&with(&reserving("20M"), &[(limit("100iops"), "")])).unwrap();
    check(&with(&reserving("2M"), &[(limit("2M"), "")])).unwrap();
}

#[test]
fn a_limit_meets_a_floor_only_where_their_schedules_do() {
    let both = |limited, floor| {
        let floor = (floored("1000iops", "400iops"), floor);
        with(&plan(), &[(limit("950iops"), ""), (limit("300iops"), limited), floor])
    };
    check(&both("Mon-Fri 08:00-12:00", "Mon-Fri 12:00-18:00")).unwrap();
    let text = refused(&both("Mon-Fri 08:00-12:30", "Wed 12:00-18:00"));
    let expected = "the limit of 300 IO/s (policy 2) is below the reservation of 400 \
                    IO/s (on Wed 12:00)";
    assert_eq!(text, expected);
}

#[test]
fn a_queue_of_slow_requests_is_counted_against_what_is_wanted() {
    let slow = [(limit("20ms"), ""), (Aim::Depth(8), "")];
    check(&with(&reserving("400iops"), &slow)).unwrap();
    assert_eq!(
        refused(&with(&reserving("500iops"), &slow)),
        "8 requests at once that take 20.0 ms each come to 400 IO/s, and 500 IO/s are \
         wanted"
    );
    let wants = [slow[0], slow[1], (cruise("500iops", 10), "")];
    assert!(refused(&with(&plan(), &wants)).contains("450 IO/s are wanted"));
}

#[test]
fn a_class_has_one_cruise_control_at_a_time() {
    let two = |one, other| {
        with(&plan(), &[(cruise("15M", 10), one), (cruise("5ms", 10), other)])
    };
    check(&two("22:00-06:00", "06:00-22:00")).unwrap();
    let text = refused(&two("Sun 20:00-24:00", "Sun,Fri 22:00-06:00, 21:00-22:00"));
    assert!(text.contains("(on Sun 21:00)"), "the first moment of the week: {text}");
    let text = refused(&two("Mon-Fri 22:00-06:00", "Sat 04:00-08:00"));
    assert!(
        text.contains("policy 1 and policy 2 hold together (on Sat 04:00)"),
        "{text}"
    );
    assert!(refused(&two("", "")).ends_with("together, always"));
}

#[test]
fn a_target_that_the_classs_own_limit_keeps_it_from_is_refused_with_its_tolerance() {
    let both = |target, percent, own| {
        with(&plan(), &[(cruise(target, percent), ""), (limit(own), "")])
    };
    check(&both("15M", 10, "14M")).unwrap();
    assert_eq!(
        refused(&both("15M", 10, "13M")),
        "the target of 15.0 MiB/s - 10% (policy 1) is 13.5 MiB/s, which is above the \
         limit of 13.0 MiB/s (policy 2)"
    );
    check(&both("5ms", 20, "6ms")).unwrap();
    assert_eq!(
        refused(&both("5ms", 10, "20ms")),
        "the target of 5.0 ms + 10% (policy 1) is 5.5 ms, which is shorter than the \
         least response time of 20.0 ms (policy 2)"
    );
}

#[test]
fn a_floor_must_be_below_its_target_and_comparable_with_the_reservation() {
    let text = refused(&with(&plan(), &[(floored("15M", "20M"), "")]));
    assert_eq!(text, "the floor of 20.0 MiB/s is above the target of 15.0 MiB/s");
    check(&with(&plan(), &[(floored("5ms", "20M"), "")])).unwrap();
    let text = refused(&with(&reserving("500iops"), &[(floored("5ms", "20M"), "")]));
    assert!(text.contains("500 IO/s") && text.contains("20.0 MiB/s"), "{text}");
}

#[test]
fn what_is_out_of_range_is_refused_with_the_range() {
    assert!(refused(&Plan { shares: 0, ..plan() }).contains("1 to 100000 shares"));
    for depth in [0, DEPTH_MAX + 1] {
        let text = refused(&with(&plan(), &[(Aim::Depth(depth), "")]));
        assert!(text.contains("1 to 65535"), "{text}");
    }
    for text in ["0%", "51%", "ten", "-1%", "10.5%", ""] {
        let error = text.parse::<Tolerance>().unwrap_err().to_string();
        assert!(error.contains("1% to 50%"), "{error}");
    }
    assert_eq!("10%".parse::<Tolerance>().unwrap().percent(), 10);
    assert_eq!("50".parse::<Tolerance>().unwrap().to_string(), "50%");
}

#[test]
fn a_fallback_is_read_as_it_is_written() {
    assert_eq!("none".parse(), Ok(Fallback::None));
    assert_eq!("release".parse(), Ok(Fallback::Release));
    assert_eq!("limit=2M".parse(), Ok(Fallback::Limit(goal("2M"))));
    for wrong in ["", "limit", "limit=", "limit=fast", "give up"] {
        let error = wrong.parse::<Fallback>().unwrap_err().to_string();
        assert!(error.contains("limit=2M"), "{error}");
    }
}

const SHAPED: Capacity =
    Capacity { bytes: None, requests: Some(1000), basis: Basis::Shape };

fn measured(error_percent: u8) -> Capacity {
    Capacity { basis: Basis::Measured { error_percent }, ..SHAPED }
}

#[test]
fn reservations_above_what_a_datastore_does_are_refused_with_the_sum() {
    let (oltp, web) = (reserving("500iops"), reserving("600iops"));
    let both = [("oltp", &oltp), ("web", &web)];
    let text = admit(&both, Some(&SHAPED)).unwrap_err().to_string();
    assert_eq!(
        text,
        "reserved: oltp 500 IO/s + web 600 IO/s = 1100 IO/s; the datastore can do 1000 \
         IO/s (by its shape)"
    );
    assert_eq!(admit(&both[..1], Some(&SHAPED)), Ok(Vec::new()));
    let text = admit(&both, Some(&measured(5))).unwrap_err().to_string();
    assert!(
        text.ends_with("the datastore can do 1000 IO/s (as measured, within 5 %)"),
        "{text}"
    );
}

#[test]
fn what_cannot_be_told_is_accepted_and_said() {
    let (oltp, web) = (reserving("500iops"), reserving("600iops"));
    let both = [("oltp", &oltp), ("web", &web)];
    let said = |capacity| admit(&both, capacity).unwrap()[0].to_string();
    assert_eq!(
        said(None),
        "1100 IO/s reserved; what the datastore can do is unknown yet"
    );
    assert!(
        said(Some(&measured(15)))
            .contains("the datastore can do 1000 IO/s (as measured, within")
    );
    // Bytes are not known of this one.
    let backup = reserving("20M");
    assert_eq!(admit(&[("backup", &backup)], Some(&SHAPED)).unwrap().len(), 1);
}

#[test]
fn what_was_done_already_can_be_kept_and_more_is_never_refused() {
    let basis = Basis::Done { error_percent: 20 };
    let done = Capacity { basis, ..SHAPED };
    let said = |rate| {
        let plan = reserving(rate);
        let unproven = admit(&[("oltp", &plan)], Some(&done)).unwrap();
        unproven.first().map(ToString::to_string)
    };
    assert_eq!(said("800iops"), None);
    let more = "9000 IO/s reserved; the datastore can do 1000 IO/s (at least: its load \
                never reached its limit)";
    assert_eq!(said("9000iops").as_deref(), Some(more));
    assert!(said("801iops").is_some());
    let bytes = "20.0 MiB/s reserved; Sterna knows MB/s only of a datastore with a shape";
    assert_eq!(said("20M").as_deref(), Some(bytes));
}

/// The most that can be asked for is looked through while somebody waits for it.
#[test]
fn the_largest_plan_is_checked_within_a_request() {
    // 32 policies with 32 windows each, all of them other ones.
    let window = |hour: u32, minute: u32| {
        let (hour, half) = (hour / 2, hour % 2 * 30);
        format!("{hour:02}:{:02}-{hour:02}:{:02}:30", half + minute / 2, half + 20)
    };
    let schedules: Vec<String> = (0..32)
        .map(|minute| {
            (0..32).map(|hour| window(hour, minute)).collect::<Vec<_>>().join(",")
        })
        .collect();
    let limits = schedules.iter().zip(1..);
    let limits: Vec<_> = limits
        .map(|(schedule, at)| (Aim::Limit(Goal::Requests(at)), schedule.as_str()))
        .collect();
    let since = std::time::Instant::now();
    check(&with(&plan(), &limits)).unwrap();
    assert!(since.elapsed().as_secs() < 10, "{:?}", since.elapsed());
}

#[test]
fn floors_count_as_reservations_when_they_meet() {
    let floor = |schedule| with(&plan(), &[(floored("900iops", "600iops"), schedule)]);
    let (day, night) = (floor("06:00-22:00"), floor("22:00-06:00"));
    assert!(admit(&[("day", &day), ("night", &night)], Some(&SHAPED)).is_ok());
    let late = floor("20:00-24:00");
    assert!(admit(&[("day", &day), ("late", &late)], Some(&SHAPED)).is_err());
}

#[test]
fn many_classes_are_not_all_named() {
    let one = reserving("300iops");
    let all = ["a", "b", "c", "d", "e", "f"].map(|name| (name, &one));
    let text = admit(&all, Some(&SHAPED)).unwrap_err().to_string();
    assert!(text.contains("d 300 IO/s + 2 more = 1800 IO/s"), "{text}");
}

fn any_aim() -> impl Strategy<Value = Aim> {
    let goal = prop_oneof![
        (1..50u64).prop_map(|rate| Goal::Bytes(rate << 20)),
        (1..50u64).prop_map(Goal::Requests),
        (1..50u64).prop_map(|span| Goal::Response(Nanos::from_millis(span))),
    ];
    let floor = prop_oneof![Just(None), (1..50u64).prop_map(|r| Some(Rate::Requests(r)))];
    let cruise = (goal.clone(), 1..=50u8, floor).prop_map(|(target, percent, floor)| {
        let tolerance = Tolerance::new(percent).unwrap();
        Aim::Cruise(Cruise { target, tolerance, floor, fallback: Fallback::None })
    });
    prop_oneof![3 => goal.prop_map(Aim::Limit), 1 => cruise, 1 => (1..9u32).prop_map(Aim::Depth)]
}

fn any_plan() -> impl Strategy<Value = Plan> {
    let hours = (0..24u32, 1..24u32).prop_map(|(from, length)| {
        format!("{from:02}:00-{:02}:00", (from + length) % 24)
    });
    let schedule = prop_oneof![Just(String::new()), hours];
    let policies = prop::collection::vec((any_aim(), schedule), 0..6);
    let reservation =
        prop_oneof![Just(None), (1..50u64).prop_map(|r| Some(Rate::Requests(r)))];
    (policies, reservation).prop_map(|(policies, reservation)| {
        let policies: Vec<_> =
            policies.iter().map(|(aim, schedule)| (*aim, schedule.as_str())).collect();
        with(&Plan { reservation, ..plan() }, &policies)
    })
}

proptest! {
    /// Whatever is accepted is free of contradictions in every second of the week.
    #[test]
    fn what_is_accepted_can_be_had_at_any_time(plan in any_plan(), second in 0..WEEK) {
        if check(&plan).is_ok() {
            let now = resolve(&plan, monday_noon().after(second));
            let terms = now.terms;
            if let (Some(Rate::Requests(promised)), Some(limit)) =
                (terms.reservation, terms.limit.requests)
            {
                prop_assert!(promised <= limit);
            }
            let cruises = now.standings.iter().filter(|one| {
                one.stands != Stands::Closed && matches!(one.policy.aim, Aim::Cruise(_))
            });
            prop_assert!(cruises.count() <= 1);
        }
    }

    /// Nothing changes before the change that is announced.
    #[test]
    fn terms_change_only_when_it_is_said(
        plan in any_plan(),
        second in 0..WEEK,
        part in 0..1000u64,
    ) {
        let now = monday_noon().after(second);
        let one = resolve(&plan, now);
        let ahead = plan.until_change(now).unwrap_or(WEEK);
        let later = now.after((u64::from(ahead) * part / 1000) as u32);
        prop_assert_eq!(one.terms, resolve(&plan, later).terms);
    }

    /// Taking a policy away never makes a contradiction.
    #[test]
    fn less_is_never_refused_where_more_is_not(plan in any_plan(), drop in 0..6usize) {
        let mut less = plan.clone();
        if drop < less.policies.len() {
            less.policies.remove(drop);
        }
        prop_assert!(check(&plan).is_err() || check(&less).is_ok());
    }
}

#[test]
fn a_goal_that_nobody_can_mean_is_refused_with_what_was_meant() {
    for (wrong, meant) in [
        ("20", "the minimum is 256 KiB/s (did you mean 20M, 20iops or 20ms?)"),
        (
            "20K",
            "20.0 KiB/s would stop a guest: one request of 1.00 MiB takes 51.2 s; the \
             minimum is 256 KiB/s (did you mean 20M, 20iops",
        ),
        ("64K", "takes 16.0 s; the minimum is 256 KiB/s"),
        ("1", "the minimum is 256 KiB/s (did you mean 1M or 1ms?)"),
        (
            "1iops",
            "1 IO/s would stop a guest: the last of 32 requests at once takes 32 / 1 = \
             32.0 s, and the maximum is 10.0 s; the minimum is 4 IO/s (did you mean 1M?)",
        ),
        ("3iops", "32 / 3 = 10.7 s"),
        ("20s", "20.0 s would stop a guest: the maximum is 10.0 s (did you mean 20ms?)"),
    ] {
        let fallback = Fallback::Limit(goal(wrong));
        let tolerance = "10%".parse().unwrap();
        let cruise = Cruise { target: goal("5M"), tolerance, floor: None, fallback };
        let target = Cruise { target: goal(wrong), fallback: Fallback::None, ..cruise };
        for aim in [Aim::Limit(goal(wrong)), Aim::Cruise(cruise), Aim::Cruise(target)] {
            let said = aim.check().unwrap_err().to_string();
            assert!(said.contains(meant), "{said}");
        }
    }
    let boundless = Aim::Limit(Goal::Response(Nanos(u64::MAX)));
    let said = boundless.check().unwrap_err().to_string();
    assert!(said.ends_with("the maximum is 10.0 s"), "{said}");
    for fine in ["256K", "4iops", "10s"] {
        assert_eq!(Aim::Limit(goal(fine)).check(), Ok(()), "{fine}");
    }
}
