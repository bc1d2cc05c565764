//! What a limit on a neighbour would do for a disk that is hurt.
//!
//! By the device's L-Q line: if all send requests at their rates, a request takes
//! `unloaded / (1 - rate / peak)`. A limit takes a part of the neighbour's rate away. The line is
//! of all requests, and the neighbour's may be long ones: so a request of the disk takes no less
//! than usual and half of what it meets of the neighbour's, each of which takes the device as
//! long as comes from one to the next now. What an application asks for more once it is
//! answered sooner is not foreseen, so the time is said to be about that.

use super::cause::Shared;
use super::remedy::WORTH;
use super::watch::Hurt;
use crate::Nanos;
use crate::measure::{Line, LqFit};

/// The parts of what the neighbour does now that are tried, the mildest first.
const TRIED: [f64; 3] = [0.5, 0.25, 0.1];
/// A milder limit is enough that saves this part of what the sharpest one does.
const ENOUGH: f64 = 0.9;

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
    let then = |part: f64| then(hurt, shared, neighbour, line, part);
    let mut tried = TRIED.iter().filter_map(|part| Some((*part, then(*part)?)));
    let Some((_, sharpest)) = tried.clone().next_back() else { return Help::InVain };
    let saved = |time: Nanos| hurt.took.unwrap_or_default().since(time).0 as f64;
    let enough = |(_, time): &(f64, Nanos)| match hurt.promised {
        Some(promised) if sharpest <= promised => *time <= promised,
        _ => saved(*time) >= saved(sharpest) * ENOUGH,
    };
    tried.find(enough).map_or(Help::InVain, |(part, then)| Help::Limit {
        bytes_per_second: other.bytes_per_second * part,
        then,
    })
}

/// What another limit on the same neighbour would do.
pub fn help_at(
    hurt: &Hurt,
    shared: &Shared,
    neighbour: Neighbour,
    device: &LqFit,
    bytes_per_second: f64,
) -> Help {
    let LqFit::Line(line) = device else { return Help::Unforeseen { bytes_per_second } };
    let part = bytes_per_second / shared.others[neighbour.at].bytes_per_second.max(1.0);
    then(hurt, shared, neighbour, line, part.min(1.0))
        .map_or(Help::InVain, |then| Help::Limit { bytes_per_second, then })
}

/// What a request of the disk takes with this part of the neighbour's load, if that is clearly
/// less.
fn then(
    hurt: &Hurt,
    shared: &Shared,
    neighbour: Neighbour,
    line: &Line,
    part: f64,
) -> Option<Nanos> {
    let (other, took) = (shared.others[neighbour.at], hurt.took?);
    let rate = shared.iops() - other.iops * (1.0 - part);
    let room = 1.0 - rate / line.peak();
    // Past the peak there is no time in which requests would be answered.
    let service = line.unloaded.0 as f64 / room;
    let by_line = took.0 as f64 * service / neighbour.service.0.max(1) as f64;
    let meets = part * 0.5e9 / other.iops;
    let least = hurt.usual.map_or(0.0, |usual| usual.0 as f64 + meets);
    let then = by_line.max(least);
    (room > 0.0 && then < took.0 as f64 * WORTH).then_some(Nanos(then as u64))
}
