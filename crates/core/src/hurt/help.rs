//! What a limit on a neighbour would do for a disk that is hurt.
//!
//! By the device's L-Q line: if all send requests at their rates, a request takes
//! `unloaded / (1 - rate / peak)`. A limit takes a part of the neighbour's rate away. What an
//! application asks for more once it is answered sooner is not foreseen, so the time is said
//! to be about that.

use super::cause::Shared;
use super::watch::Hurt;
use crate::Nanos;
use crate::measure::LqFit;

/// The parts of what the neighbour does now that are tried, the mildest first.
const TRIED: [f64; 3] = [0.5, 0.25, 0.1];
/// Below so many times the usual, the disk is hurt no more.
const WELL: f64 = 1.5;
/// A limit that leaves more than this part of the time is not worth it.
const WORTH: f64 = 0.8;

/// The neighbour that does most of the work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Neighbour {
    /// Which of the others.
    pub at: usize,
    /// The mean time of a request at the device now.
    pub service: Nanos,
}

/// What a limit on a neighbour would do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Help {
    /// Requests of the disk would take about so long.
    Limit {
        /// The limit, in bytes per second.
        bytes_per_second: f64,
        /// What a request would take.
        then: Nanos,
    },
    /// What the device does with a load is not known, so nothing is foreseen. Half of what
    /// the neighbour does is a beginning.
    Unforeseen {
        /// The limit, in bytes per second.
        bytes_per_second: f64,
    },
    /// It would not help: the device answers as quickly with a load as without.
    InVain,
}

/// What a limit on that neighbour would do for the disk.
pub fn help(hurt: &Hurt, shared: &Shared, neighbour: Neighbour, device: &LqFit) -> Help {
    let other = shared.others[neighbour.at];
    let line = match device {
        LqFit::Line(line) => line,
        LqFit::Flat { .. } => return Help::InVain,
        LqFit::TooFew { .. } | LqFit::NoVariation { .. } => {
            return Help::Unforeseen { bytes_per_second: other.bytes_per_second / 2.0 };
        }
    };
    let Some(took) = hurt.took else { return Help::InVain };
    let usual = hurt.usual.map(|usual| Nanos((usual.0 as f64 * WELL) as u64));
    let wanted = hurt.promised.or(usual).unwrap_or_default();
    let then = |part: f64| {
        let rate = shared.iops() - other.iops * (1.0 - part);
        let room = 1.0 - rate / line.peak();
        // Past the peak there is no time in which requests would be answered.
        let service = line.unloaded.0 as f64 / room;
        let part = service / neighbour.service.0.max(1) as f64;
        (room > 0.0 && part < WORTH).then_some(Nanos((took.0 as f64 * part) as u64))
    };
    let mut tried = TRIED.iter().filter_map(|part| Some((*part, then(*part)?)));
    let enough = |(_, time): &(f64, Nanos)| *time <= wanted;
    let best = tried.clone().find(enough).or_else(|| tried.next_back());
    best.map_or(Help::InVain, |(part, then)| Help::Limit {
        bytes_per_second: other.bytes_per_second * part,
        then,
    })
}
