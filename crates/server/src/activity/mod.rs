//! What was done, by whom, and what the daemon decided.
//!
//! Two ways lead here. Each request that changes something leaves an entry with whoever
//! asked, what was asked, and whether it was refused (`requests`). And what the daemon says
//! of itself in its log, it says here, too (`notes`): its decisions are entries of
//! `sterna`.

mod notes;
mod requests;

use sterna_api::{Activities, Activity, Result};
use sterna_state::Wanted;

pub(crate) use self::requests::Asked;
use crate::Server;

pub use self::notes::entry;

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
