//! What others write to the source while the disk is served from it.
//!
//! A backup that is restored over the image while its machine is off, and the daemon runs, is
//! the truth from then on: what was copied before is older. The file system says when the file
//! last changed, and the driver knows when its guests last wrote. So a change that comes later
//! than that is somebody else's, and both sides are compared.
//!
//! Guests that write again hide what others have written before. So the daemon looks every few
//! seconds, and before a migration goes on or switches over. What others write while guests
//! write, too, does not show, and no file system would survive it. Devices and servers do not
//! say when they changed.

use sterna_core::Nanos;
use sterna_core::mirror::{Event, Found, Origin, Side, Suspicion, suspicion_of};

use super::MirrorDriver;
use super::guest::Told;
use crate::disk::Core;
use crate::image::Cx;
use crate::origin;

/// What a look at the source shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceLook {
    /// Nobody but its guests has written to it since the last look.
    Unchanged,
    /// Somebody else has: both sides are compared.
    Written,
    /// Its guests are writing, which hides what others do.
    Busy,
    /// Its file system does not say.
    Unknown,
}

/// What is known of the source beside its image.
#[derive(Debug)]
pub(super) struct SourceFile {
    /// What it was known by when the migration began.
    origin: Origin,
    /// When a guest last wrote to it, at the latest (since 1970).
    wrote: Nanos,
    /// When it had last changed as of the last look. What was seen once is no news: a time that is
    /// ahead of the clock would else be taken for a change at each look.
    seen: Option<Nanos>,
}

/// File systems with times in whole seconds may mean any moment of one, and are taken to mean its
/// last one where the doubt is about an earlier daemon's writes (`origin`). A look that comes
/// every few seconds would take each write of a guest for somebody else's then: here it is the
/// first one, and what others write in the second of a guest's write does not show.
const WHOLE_SECOND: u64 = 999_999_999;

impl SourceFile {
    pub(super) fn new(origin: Origin) -> SourceFile {
        SourceFile { origin, wrote: origin::now(), seen: None }
    }

    /// A guest's write begins, or has ended.
    pub(super) fn is_written(&mut self) {
        self.wrote = origin::now();
    }

    /// What has become of it, as it is `found`. A file that is another one by its name is not
    /// the source.
    fn look(&self, found: &Found) -> SourceLook {
        let (side, now) = (Side::Source, origin::now());
        let is_seen = self.seen.is_some() && self.seen == found.changed;
        let changed = found.changed.map(earliest);
        let found = Found { changed, ..*found };
        match suspicion_of(side, &self.origin, &found, self.wrote, now) {
            None => SourceLook::Unchanged,
            Some(Suspicion::Written(_)) if is_seen => SourceLook::Unchanged,
            Some(Suspicion::Written(_)) => SourceLook::Written,
            Some(_) => SourceLook::Unknown,
        }
    }
}

/// The first moment that a time of a file may mean.
fn earliest(changed: Nanos) -> Nanos {
    match changed.0 % 1_000_000_000 {
        WHOLE_SECOND => Nanos(changed.0 - WHOLE_SECOND),
        _ => changed,
    }
}

impl MirrorDriver {
    /// The source's file was `found` like this. If somebody else has written to it since the
    /// last look, both sides are compared.
    pub(crate) fn look_at_source(
        &mut self,
        core: &mut Core,
        cx: &mut Cx,
        found: &Found,
    ) -> SourceLook {
        let look = self.source_file.look(found);
        if look == SourceLook::Written {
            if self.ended.is_some() || self.told.values().any(Told::is_being_written) {
                return SourceLook::Busy;
            }
            self.source_file.origin = found.origin;
            let why = Suspicion::Written(Side::Source);
            self.tell(core, cx, Event::Doubted(why.doubt()));
        }
        self.source_file.seen = found.changed;
        look
    }
}

#[cfg(test)]
mod tests {
    use sterna_core::mirror::Storage;

    use super::*;

    const ORIGIN: Origin =
        Origin { storage: Storage::Mounted { instance: 1, file: 2 }, size: 4096 };

    #[test]
    fn what_changed_after_the_last_write_of_a_guest_was_somebody_else() {
        let mut file = SourceFile::new(ORIGIN);
        file.wrote = Nanos::from_secs(1000);
        let at = |secs| Found { origin: ORIGIN, changed: Some(Nanos::from_secs(secs)) };
        assert_eq!(file.look(&at(1000)), SourceLook::Unchanged);
        assert_eq!(file.look(&at(1001)), SourceLook::Written);
        // Another file, and one of a server's that does not say when it changed.
        let mut other = at(1001);
        other.origin.storage = Storage::Mounted { instance: 1, file: 3 };
        assert_eq!(file.look(&other), SourceLook::Unknown);
        let silent = Found { changed: None, ..at(1001) };
        assert_eq!(file.look(&silent), SourceLook::Unknown);
        file.is_written();
        assert_eq!(file.look(&at(1001)), SourceLook::Unchanged);
    }

    #[test]
    fn a_time_that_is_ahead_of_the_clock_is_news_once() {
        let mut file = SourceFile::new(ORIGIN);
        let ahead = origin::now().plus(Nanos::from_secs(3600));
        let found = Found { origin: ORIGIN, changed: Some(ahead) };
        assert_eq!(file.look(&found), SourceLook::Written);
        file.seen = found.changed;
        assert_eq!(file.look(&found), SourceLook::Unchanged);
        let later = Found { changed: Some(ahead.plus(Nanos(1))), ..found };
        assert_eq!(file.look(&later), SourceLook::Written);
    }

    #[test]
    fn a_guests_write_is_its_own_where_times_are_whole_seconds() {
        let mut file = SourceFile::new(ORIGIN);
        file.wrote = Nanos::from_millis(1_000_200);
        let second = |secs| Nanos(Nanos::from_secs(secs).0 + WHOLE_SECOND);
        let at = |secs| Found { origin: ORIGIN, changed: Some(second(secs)) };
        assert_eq!(file.look(&at(1000)), SourceLook::Unchanged);
        assert_eq!(file.look(&at(1002)), SourceLook::Written);
    }
}
