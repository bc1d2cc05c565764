//! What an application did with its disk lately, before the disk moves.
//!
//! While a disk is adopted, QEMU writes its copy to it: that is no work of the application, and
//! would make it look much busier than it is.

use sterna_api::Result;
use sterna_core::Nanos;
use sterna_core::measure::Summary;
use sterna_os::clock;
use sterna_state::DiskRecord;
use sterna_telemetry::figures::RECENT;

use crate::Moves;

impl Moves {
    /// What the application did lately; since the disk was adopted, if that is shorter ago.
    pub fn lately(&self, disk: &DiskRecord) -> Result<Summary> {
        let all = self.storage.store.vm_moves()?.into_iter();
        let adopted = all.filter(|one| one.kind.adopts_disk(disk.id));
        let ended = adopted.filter_map(|one| one.ended).max();
        let span = span_since(ended, clock::now());
        Ok(self.storage.samples.of_disk(disk.id, span))
    }
}

/// How much of the last seconds came after an adoption that ended then (seconds since 1970).
fn span_since(ended: Option<u64>, now: u64) -> Nanos {
    // Ends are known to the second: of that second nobody knows whose work it was.
    let own = |ended: u64| Nanos::from_secs(now.saturating_sub(ended + 1));
    ended.map_or(RECENT, |ended| own(ended).min(RECENT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_before_the_end_of_an_adoption_is_nobodys_work() {
        assert_eq!(span_since(None, 1000), RECENT);
        assert_eq!(span_since(Some(900), 1000), RECENT);
        assert_eq!(span_since(Some(996), 1000), Nanos::from_secs(3));
        for ended in [999, 1000, 1001] {
            assert_eq!(span_since(Some(ended), 1000), Nanos(0), "{ended}");
        }
    }
}
