//! What was done, by whom, and what the daemon decided.
//!
//! Two ways lead here. Each request that changes something leaves an entry with whoever
//! asked, what was asked, and whether it was refused (`requests`). And what the daemon says
//! of itself in its log, it says here, too (`notes`): its decisions are entries of
//! `sterna`.

mod notes;
mod requests;
mod words;

use sterna_api::{Activities, Activity, Error, Result};
use sterna_state::Wanted;

pub(crate) use self::requests::{Asked, Outcome};
use crate::Server;

pub use self::notes::entry;

/// What entries are about.
const KINDS: [&str; 10] = [
    "disk",
    "datastore",
    "migration",
    "plan",
    "class",
    "policy",
    "vm",
    "host",
    "pool",
    "rule",
];

/// What entries say they are about if they are about `of`, which is `KIND:NAME`. Nothing is
/// about an unknown kind: an empty list would be the answer to a mistake.
pub(crate) fn about(of: &str) -> Result<String> {
    match of.split_once(':') {
        Some((kind, name)) if KINDS.contains(&kind) && !name.is_empty() => {
            Ok(format!("{kind} {name}"))
        }
        _ => Err(Error::invalid(format!("no entry can be about `{of}`"))
            .hint(format!("give KIND:NAME; the kinds are {}", KINDS.join(", ")))),
    }
}

impl Server {
    /// The entries that are wanted, the latest first.
    pub(crate) fn activities(&self, wanted: Wanted) -> Result<Activities> {
        Ok(Activities { entries: self.activity.read(wanted)? })
    }

    /// The entries after that number, the oldest first; the last `most` of all if there is
    /// no number.
    pub(crate) fn activities_since(
        &self,
        after: Option<u64>,
        most: usize,
    ) -> Result<Vec<Activity>> {
        let wanted = Wanted { after, limit: most, ..Wanted::default() };
        let mut entries = self.activity.read(wanted)?;
        entries.reverse();
        Ok(entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_entries_can_be_about_has_a_known_kind_and_a_name() {
        assert_eq!(about("disk:db").ok().as_deref(), Some("disk db"));
        assert_eq!(about("policy:1").ok().as_deref(), Some("policy 1"));
        for wrong in ["foo", "dsk:db", "disk:", ":db", "disk db"] {
            let refused = about(wrong).expect_err("it is refused");
            assert!(refused.hint.contains("datastore, migration"), "{refused:?}");
        }
    }
}
