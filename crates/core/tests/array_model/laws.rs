//! What holds for any model and any requests. A failure prints the seed.

use std::collections::BTreeMap;

use proptest::prelude::*;
use sterna_core::Nanos;
use sterna_core::array::{Array, Completion, Kind, Model, Request};

/// Requests with the microseconds between each and the one before it.
fn requests() -> impl Strategy<Value = Vec<(u64, Request)>> {
    let kind = prop_oneof![Just(Kind::Read), Just(Kind::Write)];
    // Few places, so that requests meet in elements, streams and stripes.
    let offset = prop_oneof![0u64..64, 0u64..100_000].prop_map(|at| at * 8192);
    let one = (0u64..20_000, 0u32..3, kind, offset, 0u64..512 << 10);
    prop::collection::vec(one, 1..200).prop_map(|all| {
        let number = |(id, one): (usize, (u64, u32, Kind, u64, u64))| {
            let (wait, lun, kind, offset, bytes) = one;
            (wait, Request { id: id as u64, lun, kind, offset, bytes })
        };
        all.into_iter().enumerate().map(number).collect()
    })
}

fn models() -> impl Strategy<Value = Model> {
    prop::sample::select(vec![
        "old-fc",
        "new-fc?spindles=2&write-cache=256K",
        "e4-fc?write-cache=1M&cache=1M",
        "sas-10k?coalesce=yes&write-cache=2M&hits=12",
        "sas-10k?write-cache=0",
        "sata-7k?cache=0",
        "flash-2010",
        "old-fc?seek=0s&revolution=0s&ack=0s&overhead=0s",
    ])
    .prop_map(|text| text.parse().unwrap())
}

/// Runs to the end; gives each answer with its moment.
fn run(model: &Model, seed: u64, requests: &[(u64, Request)]) -> Vec<Completion> {
    let mut array = Array::new(model.clone(), seed);
    let (mut now, mut answers) = (Nanos(0), Vec::new());
    for (wait, request) in requests {
        now = now.plus(Nanos::from_micros(*wait));
        while let Some(next) = array.next_event().filter(|next| *next <= now) {
            array.advance(next, &mut answers);
        }
        array.submit(now, *request);
    }
    while let Some(next) = array.next_event() {
        assert!(next >= now, "time goes back");
        now = next;
        array.advance(now, &mut answers);
    }
    assert_eq!((array.in_flight(), array.dirty()), (0, 0));
    answers
}

proptest! {
    #[test]
    fn every_request_is_answered_once_after_it_came_and_in_order(
        model in models(),
        seed: u64,
        requests in requests(),
    ) {
        let answers = run(&model, seed, &requests);
        let mut came = BTreeMap::new();
        let mut now = Nanos(0);
        for (wait, request) in &requests {
            now = now.plus(Nanos::from_micros(*wait));
            came.insert(request.id, now);
        }
        let mut last = Nanos(0);
        for answer in &answers {
            let since = came.remove(&answer.id);
            prop_assert!(since.is_some_and(|since| since <= answer.at), "{:?}", answer);
            prop_assert!(last <= answer.at);
            last = answer.at;
        }
        prop_assert!(came.is_empty(), "not answered: {:?}", came);
    }

    #[test]
    fn the_same_seed_gives_the_same_answers(
        model in models(),
        seed: u64,
        requests in requests(),
    ) {
        prop_assert_eq!(run(&model, seed, &requests), run(&model, seed, &requests));
    }

    #[test]
    fn it_does_not_matter_how_often_it_is_asked(
        model in models(),
        seed: u64,
        requests in requests(),
    ) {
        let mut lazy = Array::new(model.clone(), seed);
        let (mut now, mut answers) = (Nanos(0), Vec::new());
        for (wait, request) in &requests {
            now = now.plus(Nanos::from_micros(*wait));
            lazy.submit(now, *request);
        }
        lazy.advance(Nanos::MAX, &mut answers);
        prop_assert_eq!(answers, run(&model, seed, &requests));
    }
}
