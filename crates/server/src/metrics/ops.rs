//! The kinds of requests, as labels.

use sterna_core::measure::{Timed, Traffic};
use sterna_telemetry::samples::Total;

/// A kind of request, and what came of it.
pub(super) type Op = (&'static str, Traffic);

/// All kinds.
pub(super) fn ops(total: &Total) -> [Op; 4] {
    [
        ("read", total.read),
        ("write", total.write),
        ("flush", total.flush),
        ("zero", total.zero),
    ]
}

/// Reads and writes, and of the others those that there were: most disks are never told to
/// zero anything, and each row costs whoever keeps it.
pub(super) fn used(total: &Total) -> impl Iterator<Item = Op> {
    let always = |op: &str| matches!(op, "read" | "write");
    ops(total).into_iter().filter(move |(op, it)| always(op) || it.operations > 0)
}

/// The response times of a kind.
pub(super) fn times(traffic: &Traffic) -> Timed {
    Timed { steps: traffic.steps, sum: traffic.response }
}
