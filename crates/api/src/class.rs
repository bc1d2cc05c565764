//! Classes: sets of disks that service levels speak of.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};
use sterna_core::qos;
use utoipa::ToSchema;

use crate::{Policy, Rate};

/// The class of the copies of all migrations. It is built in.
pub const MIGRATION_CLASS: &str = "migration";

/// What holds for a class.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Terms {
    /// What it gets before anybody gets more than theirs.
    pub reservation: Option<Rate>,
    /// Bytes per second at most.
    pub bytes_per_second: Option<u64>,
    /// Requests per second at most.
    pub iops: Option<u64>,
    /// The mean response time at least, in milliseconds.
    pub response_ms: Option<f64>,
    /// Requests at the device at most.
    pub queue_depth: Option<u32>,
    /// Its part of what is left, against the shares of the others.
    pub shares: u32,
}

impl From<qos::Terms> for Terms {
    fn from(terms: qos::Terms) -> Terms {
        let qos::Terms { reservation, limit, shares, depth } = terms;
        Terms {
            reservation: reservation.map(Rate::from),
            bytes_per_second: limit.bytes,
            iops: limit.requests,
            response_ms: limit.response.map(|span| span.as_millis_f64()),
            queue_depth: depth,
            shares,
        }
    }
}

/// A class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Class {
    /// Its name.
    pub name: String,
    /// Whether Sterna has made it, for itself. Such a class has no disks and stays.
    pub built_in: bool,
    /// Its disks, by name.
    pub disks: Vec<String>,
    /// Its shares.
    pub shares: u32,
    /// Its reservation, if it has one.
    pub reservation: Option<Rate>,
    /// The numbers of its policies.
    pub policies: Vec<u64>,
    /// What it and its policies come to now.
    pub in_force: Terms,
    /// What it has of its reservation. `null`, if nothing is reserved now, if that has
    /// just been changed, and beside a limit of its response time.
    #[serde(default)]
    pub attained: Option<ReservationState>,
    /// What it is held to besides, while a target asks for it.
    #[serde(default)]
    pub held: Option<HeldFor>,
    /// What cannot be told of its reservation, a sentence for each datastore.
    pub notes: Vec<String>,
    /// When it was created (seconds since 1970).
    pub created: u64,
}

/// What a class has of its reservation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ReservationState {
    /// How far that is what is reserved, and if not, why.
    pub state: Attainment,
    /// Since when (seconds since 1970).
    pub since: u64,
    /// What it has, the mean of some seconds.
    pub has: Rate,
    /// The part of its reservation that this is.
    pub percent: f64,
}

/// How far a reservation is attained, and if not, why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Attainment {
    /// The class asks for nothing.
    Idle,
    /// It has all of it.
    Kept,
    /// A limit of its own leaves it less.
    Limited,
    /// It asks for less.
    Sated,
    /// It has less, with the datastore for itself.
    Alone,
    /// It has less, and others are slowed for it.
    Sought,
    /// It has less, and slowing others further brings it no more.
    Lacking,
}

impl From<qos::Attainment> for Attainment {
    fn from(state: qos::Attainment) -> Attainment {
        match state {
            qos::Attainment::Idle => Attainment::Idle,
            qos::Attainment::Kept => Attainment::Kept,
            qos::Attainment::Limited => Attainment::Limited,
            qos::Attainment::Sated => Attainment::Sated,
            qos::Attainment::Alone => Attainment::Alone,
            qos::Attainment::Sought => Attainment::Sought,
            qos::Attainment::Lacking => Attainment::Lacking,
        }
    }
}

impl fmt::Display for Attainment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Attainment::Idle => "idle",
            Attainment::Kept => "kept",
            Attainment::Limited => "limited",
            Attainment::Sated => "sated",
            Attainment::Alone => "alone",
            Attainment::Sought => "sought",
            Attainment::Lacking => "lacking",
        })
    }
}

/// What a class is held to for the sake of a target: another class's, to which it
/// yields, or its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HeldFor {
    /// The policy that has the target.
    pub policy: u64,
    /// The class of that policy.
    pub class: String,
    /// Bytes per second at most.
    pub bytes_per_second: Option<u64>,
    /// Requests per second at most.
    pub iops: Option<u64>,
    /// The mean response time at least, in milliseconds.
    pub response_ms: Option<f64>,
}

/// Asks for a new class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateClass {
    /// Its name.
    pub name: String,
    /// Its disks. One that is in a class already is refused.
    #[serde(default)]
    pub disks: Vec<String>,
    /// Its shares; 1000 if left out.
    #[serde(default)]
    pub shares: Option<u32>,
    /// What it gets before anybody gets more than theirs.
    #[serde(default)]
    pub reservation: Option<Rate>,
}

/// Changes a class: all of it or, if something is wrong, nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeClass {
    /// Disks that shall be in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub add: Vec<String>,
    /// Disks that shall not be in it any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<String>,
    /// Its new shares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shares: Option<u32>,
    /// Its new reservation; `null` lifts it.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "given"
    )]
    #[schema(value_type = Option<Rate>)]
    pub reservation: Option<Option<Rate>>,
}

/// What is there, be it `null`, as against what is not.
fn given<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Option<Rate>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// What binds a class now, since when, and what would change that.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Explanation {
    /// The class.
    pub class: Class,
    /// Its policies, with how each stands.
    pub policies: Vec<Policy>,
    /// The local time by which schedules go: `Mon 22:00:17`.
    pub local_time: String,
    /// The time zone of it, if it has a name.
    pub time_zone: Option<String>,
    /// When a schedule changes something next (seconds since 1970).
    pub next_change: Option<u64>,
    /// What it all comes to then.
    pub then: Option<Terms>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reservation_that_is_lifted_is_not_one_that_is_left() {
        let read = |text| serde_json::from_str::<ChangeClass>(text).unwrap().reservation;
        assert_eq!(read("{}"), None);
        assert_eq!(read(r#"{"reservation":null}"#), Some(None));
        let rate = Some(Some(Rate::Iops(500)));
        assert_eq!(read(r#"{"reservation":{"iops":500}}"#), rate);
        let lifted = ChangeClass { reservation: Some(None), ..ChangeClass::default() };
        assert_eq!(serde_json::to_string(&lifted).unwrap(), r#"{"reservation":null}"#);
    }
}
