//! The model's numbers, and where each comes from.
//!
//! *Fitted* is what was chosen so that a published figure comes out; `FITTED` says
//! which. *Assumed* is what neither the study nor a fit says; `ASSUMED` names it. What
//! is in neither list is what the study or the makers of the disks state.

use sterna_core::Nanos;

use super::scene::Side;

/// The bytes of a MiB.
const MIB: u64 = 1 << 20;

/// What a read takes at the old array beside its spindles and link.
pub(super) const OLD_READ: Nanos = Nanos::from_micros(4340);

/// What the model was told, beside the arrays' pools.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// Bytes per second through an array's controller and link.
    pub link: [u64; 2],
    /// Bytes of a chunk of the copier.
    pub chunk: u64,
    /// How many are in flight.
    pub in_flight: usize,
    /// Cycles that the host spends on a chunk.
    pub chunk_cycles: f64,
    /// Reads of the data disk for an order.
    pub data_reads: f64,
    /// Reads of each index disk for an order.
    pub index_reads: f64,
    /// Bytes that an order writes to the log.
    pub log_bytes: u64,
    /// Cycles of an order.
    pub order_cycles: f64,
    /// Cycles per second that the host needs beside orders.
    pub background: f64,
    /// Cores of the host.
    pub cores: usize,
    /// Cycles per second of a core.
    pub clock: f64,
    /// Users, at low and at high load.
    pub users: usize,
    /// Their pause between two orders at low load, on average.
    pub low_pause: Nanos,
    /// The same at high load.
    pub high_pause: Nanos,
}

impl Default for Parameters {
    fn default() -> Self {
        Parameters {
            link: [380 * MIB, 380 * MIB],
            chunk: 64 << 10,
            in_flight: 30,
            chunk_cycles: 110e3,
            data_reads: 1.07,
            index_reads: 0.63,
            log_bytes: 8 << 10,
            order_cycles: 22.34e6,
            background: 1.014e9,
            cores: 4,
            clock: 3.01e9,
            users: 120,
            low_pause: Nanos::from_millis(1299),
            high_pause: Nanos::from_millis(206),
        }
    }
}

impl Parameters {
    pub(super) fn link(&self, array: Side) -> u64 {
        match array {
            Side::Old => self.link[0],
            Side::New => self.link[1],
        }
    }

    /// Cycles per second of all cores.
    pub fn cycles(&self) -> f64 {
        self.clock * self.cores as f64
    }
}

/// A number of the model that was fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fitted {
    /// What it is.
    pub what: &'static str,
    /// Its value.
    pub value: &'static str,
    /// The published figure that it was fitted to.
    pub to: &'static str,
}

const fn fitted(what: &'static str, value: &'static str, to: &'static str) -> Fitted {
    Fitted { what, value, to }
}

/// All numbers that were fitted.
pub const FITTED: [Fitted; 14] = [
    fitted("chunks in flight", "30", "read and write latency, VM off"),
    fitted("old array, fixed time of a read", "4.34 ms", "data, VM off: 330 MB/s"),
    fitted("new array, cached write", "0.95 ms", "write latency, VM off"),
    fitted("flash, fixed time of a write", "0.78 ms", "index, VM off: 258 s"),
    fitted("ageing in a spindle's queue", "24 ms", "data, high load: -56 %"),
    fitted("reads of the data disk, an order", "1.07", "data, low load: 2250 s"),
    fitted("reads of an index disk, an order", "0.63", "index, high load: 318 s"),
    fitted("CPU, a chunk", "110 kcycles", "cost of the migration"),
    fitted("CPU, an order", "22.34 Mcycles", "33.68 and 24.57 Mcycles"),
    fitted("CPU, beside orders", "1.01 Gcycles/s", "33.68 and 24.57 Mcycles"),
    fitted("CPU, clock of a core", "3.01 GHz", "25 % of 4 cores at low load"),
    fitted("users", "120", "data, high load: 427 orders/s"),
    fitted("pause of a user, low load", "1299 ms", "89.41 orders/s"),
    fitted("pause of a user, high load", "206 ms", "455.27 orders/s"),
];

/// What is assumed.
pub const ASSUMED: [&str; 7] = [
    "each array's pools share a link of 4 Gbit/s Fibre Channel (380 MiB/s)",
    "prefetch of 4 (old) and 32 (new) elements of 64 KiB ahead of a stream",
    "an order's reads come one after the other, at random places",
    "an order ends with one write of 8 KiB to the log, which it waits for",
    "the host has the 4 cores that the study counts with",
    "while one core works for the copier, the database's others wait for it",
    "each step of the switch-over beside the arrays takes 1 ms",
];

#[cfg(test)]
mod tests {
    use super::*;
    use sterna_core::array::Preset;

    #[test]
    fn the_fitted_numbers_are_those_of_the_model() {
        let it = Parameters::default();
        let value = |what: &str| {
            let found = FITTED.iter().find(|fitted| fitted.what == what);
            let text = found.expect("it is listed").value;
            text.split(' ').next().unwrap().parse::<f64>().unwrap()
        };
        assert_eq!(value("chunks in flight"), it.in_flight as f64);
        assert_eq!(value("old array, fixed time of a read"), OLD_READ.as_millis_f64());
        assert_eq!(value("reads of the data disk, an order"), it.data_reads);
        assert_eq!(value("reads of an index disk, an order"), it.index_reads);
        assert_eq!(value("CPU, a chunk") * 1e3, it.chunk_cycles);
        assert_eq!(value("CPU, an order"), it.order_cycles / 1e6);
        assert_eq!(value("CPU, beside orders"), (it.background / 1e7).floor() / 100.0);
        assert_eq!(value("CPU, clock of a core"), it.clock / 1e9);
        assert_eq!(value("users"), it.users as f64);
        assert_eq!(value("pause of a user, low load"), it.low_pause.as_millis_f64());
        assert_eq!(value("pause of a user, high load"), it.high_pause.as_millis_f64());
        // What is the arrays' own shows where it is not what the preset has.
        let has = |preset: Preset, value: &str, other: &str| {
            let same: sterna_core::array::Model =
                format!("{}?{value}", preset.name()).parse().unwrap();
            let differs: sterna_core::array::Model =
                format!("{}?{other}", preset.name()).parse().unwrap();
            assert!(same == preset.model() && differs != preset.model(), "{value}");
        };
        has(Preset::NewFc, "ack=0.95ms", "ack=1ms");
        has(Preset::SataSsd, "overhead=0.78ms", "overhead=1ms");
        has(Preset::OldFc, "ageing=24ms&prefetch=4", "ageing=23ms");
        has(Preset::NewFc, "ageing=24ms&prefetch=32", "ageing=23ms");
    }
}
