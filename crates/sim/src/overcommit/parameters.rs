//! The model's numbers, and where each comes from.
//!
//! No number was fitted to a result of the study: what it measured is kept aside, to check.

use sterna_core::Nanos;
use sterna_core::memory::WAKES_KEPT;

/// The bytes of a MiB.
const MIB: u64 = 1 << 20;

/// What the model was told, beside the devices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// The memory that is out, in bytes.
    pub out: u64,
    /// The guest's processors.
    pub processors: usize,
    /// How long a processor computes for an order.
    pub order: Nanos,
    /// Touches of the core by an order.
    pub core_touches: u32,
    /// The part of the memory that is the core: what every order needs.
    pub core: f64,
    /// Places anywhere that an order touches, on average.
    pub places: f64,
    /// Pages of each.
    pub place_pages: u32,
    /// What it takes to use a page that is in memory and that the guest has not used yet.
    pub minor_fault: Nanos,
    /// How long it is watched.
    pub seconds: u32,
    /// Wakes that Sterna has seen before.
    pub wakes: usize,
}

impl Default for Parameters {
    fn default() -> Self {
        Parameters {
            out: (4096 - 1536) * MIB,
            processors: 2,
            // 22.34 Mcycles at 3.01 GHz.
            order: Nanos::from_micros(7_422),
            core_touches: 33,
            core: 0.05,
            // 1.07 reads of the data, and 0.63 of each of four index disks.
            places: 3.59,
            place_pages: 2,
            minor_fault: Nanos(2_900),
            seconds: 120,
            wakes: WAKES_KEPT,
        }
    }
}

/// Where a number comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The study states it as what it was made with.
    Published,
    /// Another published study, or measurements of Sterna's own.
    Elsewhere,
    /// Nobody states it.
    Assumed,
}

impl Basis {
    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            Basis::Published => "published",
            Basis::Elsewhere => "elsewhere",
            Basis::Assumed => "assumed",
        }
    }
}

/// A number of the model, and where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number {
    /// What it is.
    pub what: &'static str,
    /// Its value.
    pub value: &'static str,
    /// What kind of reason there is for it.
    pub basis: Basis,
    /// The reason.
    pub why: &'static str,
}

const fn number(
    what: &'static str,
    value: &'static str,
    basis: Basis,
    why: &'static str,
) -> Number {
    Number { what, value, basis, why }
}

/// All numbers and what is assumed beside them.
pub const NUMBERS: [Number; 14] = [
    number("FC", "4 spindles", Basis::Published, "RAID-0 of 15K disks: old-fc"),
    number("SATA", "2 spindles", Basis::Published, "RAID-0: sata-7k"),
    number("flash", "1 device", Basis::Published, "a local SSD: flash-2010"),
    number(
        "memory that is out",
        "2560 MiB",
        Basis::Published,
        "4 GB, of which the balloon may take 1536 MB; that all the rest was out is assumed: the \
         worst case",
    ),
    number("watched", "120 s", Basis::Published, "the study's first two minutes"),
    number(
        "an order computes",
        "7.42 ms",
        Basis::Elsewhere,
        "the same store in the study of 2012: 22.34 Mcycles at 3.01 GHz (lab svmotion)",
    ),
    number(
        "an order's own places",
        "3.59",
        Basis::Elsewhere,
        "reads of an order that found nothing in the cache, in the study of 2012: places at random",
    ),
    number("a place", "2 pages", Basis::Elsewhere, "SQL Server's pages have 8 KiB"),
    number(
        "a page that is in memory",
        "2.9 us",
        Basis::Elsewhere,
        "measured: the first use of a page that was read ahead",
    ),
    number(
        "the core",
        "5 %",
        Basis::Assumed,
        "of the memory, in whole granules at random: 50 MiB of upper levels of the indexes of 20 \
         GB, 30 MiB of products, 50 MiB of code of Windows and SQL Server",
    ),
    number(
        "touches of the core",
        "33",
        Basis::Assumed,
        "an order has a dozen queries, each of which goes down two or three levels of an index",
    ),
    number(
        "processors",
        "2",
        Basis::Assumed,
        "usual for 4 GB in 2009; always busy, so more of them change both sides alike",
    ),
    number(
        "a fault halts its processor",
        "yes",
        Basis::Assumed,
        "the study's guest (Windows) does not know of asynchronous faults",
    ),
    number(
        "all was written to",
        "yes",
        Basis::Assumed,
        "between two wakes, so that all goes out anew, in the order that Sterna wants",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_that_are_told_are_those_of_the_model() {
        let it = Parameters::default();
        let value = |what: &str| {
            let found = NUMBERS.iter().find(|number| number.what == what);
            let text = found.expect("it is listed").value;
            text.split(' ').next().unwrap().parse::<f64>().unwrap()
        };
        assert_eq!(value("memory that is out") as u64 * MIB, it.out);
        assert_eq!(value("watched"), f64::from(it.seconds));
        assert!((value("an order computes") - it.order.as_millis_f64()).abs() < 0.01);
        assert_eq!(value("an order's own places"), it.places);
        assert_eq!(value("a place"), f64::from(it.place_pages));
        assert_eq!(value("the core"), it.core * 100.0);
        assert_eq!(value("touches of the core"), f64::from(it.core_touches));
        assert_eq!(value("a page that is in memory") * 1e3, it.minor_fault.0 as f64);
        assert_eq!(value("processors"), it.processors as f64);
    }
}
