//! Worlds: what holds in any of them, what each part of them does, and the published
//! experiments.

mod laws;
mod loads;
mod published;
mod reservations;
mod terms;

use sterna_core::Nanos;
use sterna_sim::{Access, Client, Load, Plan};

/// Random requests of `bytes`, so many reads of a hundred, over 100 GiB.
fn random(bytes: u64, read_percent: u32) -> Access {
    Access { bytes, read_percent, random: true, size: 100 << 30 }
}

/// Reads of `bytes`, one place after the other, over 400 GiB.
fn sequential(bytes: u64) -> Access {
    Access { bytes, read_percent: 100, random: false, size: 400 << 30 }
}

fn closed(name: &str, outstanding: u32, access: Access) -> Client {
    Client::new(name, Load::Closed { outstanding }, access)
}

/// These clients at one array for so many seconds, in periods of 100 ms.
fn plan(model: &str, seconds: u64, clients: Vec<Client>) -> Plan {
    Plan {
        seed: 1,
        period: Nanos::from_millis(100),
        span: Nanos::from_secs(seconds),
        arrays: vec![model.parse().expect("a model")],
        clients,
        faults: Vec::new(),
        noise: 0.0,
    }
}

#[track_caller]
fn near(found: f64, expected: f64, tolerance: f64) {
    let ratio = found / expected;
    assert!((ratio - 1.0).abs() <= tolerance, "{found} is not {expected}");
}
