//! What holds in any world. A failure prints the plan with its seed.

use proptest::prelude::*;
use sterna_core::Nanos;
use sterna_core::qos::{Limit, Terms};
use sterna_sim::{Access, Client, Load, Orders, Plan, Seen, Series, SlowDown, World};

fn loads() -> impl Strategy<Value = Load> {
    let span = || (1u64..2_000).prop_map(Nanos::from_millis);
    prop_oneof![
        (1u32..64).prop_map(|outstanding| Load::Closed { outstanding }),
        (1u32..32, span(), span()).prop_map(|(outstanding, on, off)| Load::Bursts {
            outstanding,
            on,
            off
        }),
        (1.0..3000.0).prop_map(|rate| Load::Open { rate }),
        (1.0..1000.0, 0.0..1.0, span()).prop_map(|(mean, swing, period)| Load::Sine {
            mean,
            swing,
            period
        }),
    ]
}

fn clients() -> impl Strategy<Value = Client> {
    let access = (1u64..512, 0u32..=100, any::<bool>(), 20u32..38);
    let access = access.prop_map(|(sectors, read_percent, random, size)| Access {
        bytes: sectors * 512,
        read_percent,
        random,
        size: 1 << size,
    });
    (loads(), access, 0usize..3, 0u64..3_000, 0u64..5_000).prop_map(
        |(load, access, array, from, until)| {
            let client = Client::new("one", load, access);
            let (from, until) = (Nanos::from_millis(from), Nanos::from_millis(until));
            Client { array, ..client.starting(from).ending(until) }
        },
    )
}

fn plans() -> impl Strategy<Value = Plan> {
    let arrays = prop::sample::select(vec!["old-fc", "e4-fc", "sata-7k", "sas-10k"]);
    let arrays = prop::collection::vec(arrays, 1..3);
    let clients = prop::collection::vec(clients(), 1..5);
    (any::<u64>(), 1u64..500, arrays, clients, 0.0..0.5).prop_map(
        |(seed, period, arrays, clients, noise)| Plan {
            seed,
            period: Nanos::from_millis(period),
            span: Nanos::from_secs(4),
            arrays: arrays.iter().map(|text| text.parse().unwrap()).collect(),
            clients,
            faults: SlowDown::scattered(seed, 0, 3, Nanos::from_secs(4)),
            noise,
        },
    )
}

/// Terms for one client after the other, and a window that comes and goes.
fn meddling() -> impl FnMut(Nanos, Seen<'_>) -> Orders {
    let mut turn = 0;
    move |_, seen| {
        turn += 1;
        let limit = Limit { requests: Some(10 + turn as u64 % 300), ..Limit::default() };
        let depth = (turn % 3 == 0).then_some(1 + turn as u32 % 8);
        let terms = Terms { limit, depth, ..Terms::default() };
        let client = turn % seen.clients.len().max(1);
        let window = (turn % 2 == 0).then_some(1 + turn as u32 % 16);
        Orders { terms: vec![(client, terms)], windows: vec![(0, window)] }
    }
}

fn run(plan: &Plan) -> Series {
    World::run(plan.clone(), &mut meddling())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Requests in flight, summed over time, are the sum of their response times: to
    /// the nanosecond, as both are counted from the same events.
    #[test]
    fn littles_law_holds(plan in plans()) {
        // Whole periods, so that the windows have all.
        let span = Nanos(plan.span.0 / plan.period.0 * plan.period.0);
        for course in &run(&Plan { span, ..plan }).clients {
            let whole = course.whole();
            let sum = whole.total().response.plus(course.open);
            prop_assert_eq!(course.in_flight, sum);
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_series(plan in plans()) {
        prop_assert_eq!(run(&plan), run(&plan));
    }

    #[test]
    fn arrays_did_what_their_clients_got(plan in plans()) {
        let series = run(&plan);
        let of_clients: u64 =
            series.clients.iter().map(|it| it.whole().total().operations).sum();
        let of_arrays: u64 =
            series.arrays.iter().map(|it| it.whole().total().operations).sum();
        prop_assert_eq!(of_clients, of_arrays);
    }

    #[test]
    fn response_is_queue_and_service(plan in plans()) {
        for course in &run(&plan).clients {
            for window in &course.windows {
                let total = window.total();
                prop_assert_eq!(total.response, total.queue.plus(total.service));
            }
        }
    }
}
