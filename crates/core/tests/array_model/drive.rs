//! A client with a fixed number of requests in flight, in virtual time.

use std::collections::BTreeMap;

use sterna_core::Nanos;
use sterna_core::array::{Array, Completion, Kind, Model, Request};

use crate::random::Random;

/// What a client got.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Figures {
    pub(crate) operations: u64,
    pub(crate) bytes: u64,
    /// The sum of the response times.
    pub(crate) response: Nanos,
    pub(crate) span: Nanos,
}

impl Figures {
    pub(crate) fn iops(&self) -> f64 {
        self.operations as f64 / self.span.as_secs_f64()
    }

    pub(crate) fn mib_per_second(&self) -> f64 {
        self.bytes as f64 / self.span.as_secs_f64() / 1048576.0
    }

    pub(crate) fn mean_ms(&self) -> f64 {
        self.response.as_millis_f64() / self.operations as f64
    }
}

pub(crate) fn array(text: &str) -> Array {
    let model: Model = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
    Array::new(model, 1)
}

/// Keeps `outstanding` requests in flight for `seconds`; `make` makes the offset and
/// length of each.
pub(crate) fn closed(
    array: &mut Array,
    kind: Kind,
    outstanding: u64,
    seconds: u64,
    mut make: impl FnMut(u64) -> (u64, u64),
) -> Figures {
    let end = Nanos::from_secs(seconds);
    let mut figures = Figures { span: end, ..Figures::default() };
    let mut begun = BTreeMap::new();
    let mut submit = |array: &mut Array, begun: &mut BTreeMap<u64, _>, now, id| {
        let (offset, bytes) = make(id);
        begun.insert(id, (now, bytes));
        array.submit(now, Request { id, lun: 0, kind, offset, bytes });
    };
    let mut next = 0;
    while next < outstanding {
        submit(array, &mut begun, Nanos(0), next);
        next += 1;
    }
    let mut answers: Vec<Completion> = Vec::new();
    while let Some(now) = array.next_event().filter(|now| *now < end) {
        array.advance(now, &mut answers);
        for answer in answers.drain(..) {
            let (since, bytes) = begun.remove(&answer.id).expect("answered once");
            figures.operations += 1;
            figures.bytes += bytes;
            figures.response = figures.response.plus(now.since(since));
            submit(array, &mut begun, now, next);
            next += 1;
        }
    }
    figures
}

/// Scattered offsets: multiples of `bytes` in 300 GB.
pub(crate) fn random(bytes: u64) -> impl FnMut(u64) -> (u64, u64) {
    move |id| (Random::new(id).below(300_000_000_000 / bytes) * bytes, bytes)
}

/// One after the other.
pub(crate) fn sequential(bytes: u64) -> impl FnMut(u64) -> (u64, u64) {
    move |id| (id * bytes, bytes)
}
