//! A VM's balloon: the device by which a guest gives memory back, and says what it has.
//!
//! QEMU speaks of the size that the guest is to have, and not of what the balloon is to take.

use serde::{Deserialize, Serialize};

use super::command::{Nothing, command};

/// How much memory the guest has, without what its balloon has taken. An error without a balloon.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct QueryBalloon {}
command!(QueryBalloon, "query-balloon", BalloonSize);

/// What a guest has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct BalloonSize {
    /// In bytes.
    pub actual: u64,
}

/// Has the balloon take or give, until the guest has so much memory.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SetBalloon {
    /// In bytes.
    pub value: u64,
}
command!(SetBalloon, "balloon", Nothing);

/// The devices below a path.
#[derive(Clone, Debug, Serialize)]
pub struct ListObjects {
    /// The path.
    pub path: String,
}
command!(ListObjects, "qom-list", Vec<ObjectProperty>);

/// A property of an object, or an object below it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ObjectProperty {
    /// Its name.
    pub name: String,
    /// Its type; of an object, `child<…>`.
    #[serde(rename = "type")]
    pub kind: String,
}

/// A property of an object.
#[derive(Clone, Debug, Serialize)]
pub struct GetProperty {
    /// The object's path.
    pub path: String,
    /// Its name.
    pub property: &'static str,
}
command!(GetProperty, "qom-get", serde_json::Value);

/// What a guest says of its memory.
#[derive(Clone, Debug, Serialize)]
pub struct GetGuestStats {
    /// The balloon.
    path: String,
    property: &'static str,
}
command!(GetGuestStats, "qom-get", GuestStats);

impl GetGuestStats {
    /// Of the balloon at this path.
    pub fn of(path: String) -> GetGuestStats {
        GetGuestStats { path, property: "guest-stats" }
    }
}

/// What a guest has said of its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct GuestStats {
    stats: Values,
    /// When it did (seconds since 1970, by this host's clock); 0 for never.
    pub last_update: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Values {
    stat_available_memory: u64,
    stat_total_memory: u64,
    stat_free_memory: u64,
}

/// What a guest says that does not say something.
const UNKNOWN: u64 = u64::MAX;

impl GuestStats {
    /// What programs in the guest could have without swapping, in bytes, if it says so.
    pub fn available(&self) -> Option<u64> {
        Some(self.stats.stat_available_memory)
            .filter(|it| *it != UNKNOWN && self.is_said())
    }

    /// What nobody uses in the guest, in bytes, if it says so.
    pub fn free(&self) -> Option<u64> {
        Some(self.stats.stat_free_memory).filter(|it| *it != UNKNOWN && self.is_said())
    }

    /// What the guest's system counts as its memory, in bytes, if it says so.
    pub fn total(&self) -> Option<u64> {
        Some(self.stats.stat_total_memory).filter(|it| *it != UNKNOWN && self.is_said())
    }

    fn is_said(&self) -> bool {
        self.last_update > 0
    }
}

/// Has a guest say every so often what it has.
#[derive(Clone, Debug, Serialize)]
pub struct SetStatsInterval {
    path: String,
    property: &'static str,
    /// In seconds; 0 for never.
    value: u64,
}
command!(SetStatsInterval, "qom-set", Nothing);

impl SetStatsInterval {
    /// The guest of the balloon at this path.
    pub fn of(path: String, seconds: u64) -> SetStatsInterval {
        SetStatsInterval {
            path,
            property: "guest-stats-polling-interval",
            value: seconds,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_guest_has_not_said_is_not_known() {
        let text = r#"{"stats": {"stat-available-memory": 18446744073709551615,
            "stat-total-memory": 18446744073709551615,
            "stat-free-memory": 18446744073709551615, "stat-swap-in": 0}, "last-update": 0}"#;
        let never: GuestStats = serde_json::from_str(text).unwrap();
        assert_eq!((never.available(), never.total(), never.free()), (None, None, None));
        let said =
            text.replace("18446744073709551615", "4096").replace("e\": 0", "e\": 7");
        let said: GuestStats = serde_json::from_str(&said).unwrap();
        assert_eq!(
            (said.available(), said.total(), said.free()),
            (Some(4096), Some(4096), Some(4096))
        );
    }
}
