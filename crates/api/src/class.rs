//! Classes: sets of disks that service levels speak of.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};
use sterna_core::qos;
use utoipa::ToSchema;

use crate::{Goal, Policy, Rate};

/// The class of the copies of all migrations. It is built in.
pub const MIGRATION_CLASS: &str = "migration";

/// The terms of a class.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Terms {
    /// The reservation: what the class gets before any class gets more than its own
    /// reservation.
    pub reservation: Option<Rate>,
    /// At most so many bytes per second.
    pub bytes_per_second: Option<u64>,
    /// At most so many requests per second.
    pub iops: Option<u64>,
    /// The minimum mean response time, in milliseconds.
    pub response_ms: Option<f64>,
    /// The most requests at the device at once.
    pub queue_depth: Option<u32>,
    /// The weight of the class in what reservations leave.
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
    /// The terms in force now, from the class and its policies.
    pub in_force: Terms,
    /// How far the class gets its reservation; `null` without a reservation, right after
    /// a change, and beside a limit of its response time.
    #[serde(default)]
    pub attained: Option<ReservationState>,
    /// Additional limits, while cruise control requires them.
    #[serde(default)]
    pub held: Option<HeldFor>,
    /// What is uncertain about its reservation, a sentence for each datastore.
    pub notes: Vec<String>,
    /// When it was created (seconds since 1970).
    pub created: u64,
}

/// How far a class gets its reservation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ReservationState {
    /// Whether the class gets its reservation, and if not, why.
    pub state: Attainment,
    /// Since when (seconds since 1970).
    pub since: u64,
    /// What the class gets, the mean of some seconds.
    pub has: Rate,
    /// The same in percent of its reservation.
    pub percent: f64,
}

/// How far a reservation is attained, and if not, why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Attainment {
    /// The class sends no requests.
    Idle,
    /// The class gets all of it.
    Kept,
    /// The class's own limit permits less.
    Limited,
    /// The class asks for less.
    Sated,
    /// The class gets less, although no other class uses the datastore.
    Alone,
    /// The class gets less, and Sterna slows other classes.
    Sought,
    /// The class gets less, and slowing other classes further does not help.
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

/// A limit that cruise control sets for a class, to keep the target of another class or
/// its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HeldFor {
    /// The policy that has the target.
    pub policy: u64,
    /// The class of that policy.
    pub class: String,
    /// At most so many bytes per second.
    pub bytes_per_second: Option<u64>,
    /// At most so many requests per second.
    pub iops: Option<u64>,
    /// The minimum mean response time, in milliseconds.
    pub response_ms: Option<f64>,
}

/// Of the limits on a class, the one that binds first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BindingLimit {
    /// The policy that it is of.
    pub policy: u64,
    /// The class whose target the limit is for; absent if the policy limits the class itself.
    pub target_of: Option<String>,
    /// The limit, for all of the class together.
    pub limit: Goal,
}

/// Asks for a new class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateClass {
    /// Its name.
    pub name: String,
    /// Its disks. Sterna refuses a disk that is in a class already.
    #[serde(default)]
    pub disks: Vec<String>,
    /// Its shares; 1000 if left out.
    #[serde(default)]
    pub shares: Option<u32>,
    /// The reservation: what the class gets before any class gets more than its own
    /// reservation.
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

/// What limits a class now, since when, and what would change this.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Explanation {
    /// The class.
    pub class: Class,
    /// Its policies and their states.
    pub policies: Vec<Policy>,
    /// The local time that schedules use: `Mon 22:00:17`.
    pub local_time: String,
    /// The time zone of it, if it has a name.
    pub time_zone: Option<String>,
    /// When a schedule changes something next (seconds since 1970).
    pub next_change: Option<u64>,
    /// The terms in force then.
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
