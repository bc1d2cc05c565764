//! Writes that a disk's own image has failed. Its clients are told, one by one; a guest may
//! do no more than make its file system read-only, so whoever looks after the daemon is told,
//! too.

use sterna_core::Nanos;

use crate::image::ImageOp;
use crate::io::Errno;
use crate::troubles::{Trouble, TroubleKind};

/// They are shown for so long after the last one: whoever looks once a day sees them.
const SHOWN: Nanos = Nanos::from_secs(24 * 3600);

/// How many there were, and the last.
#[derive(Debug, Default)]
pub(super) struct Failures {
    count: u64,
    last: Option<(Nanos, Errno)>,
    /// How many images the disk has left since the last, with the one that has failed them.
    moves_since: u32,
}

impl Failures {
    /// A request has failed.
    pub(super) fn add(&mut self, now: Nanos, op: &ImageOp, errno: Errno) {
        if matches!(op, ImageOp::Write { .. } | ImageOp::Zero { .. }) {
            if std::mem::take(&mut self.moves_since) > 0 {
                self.count = 0;
            }
            self.count += 1;
            self.last = Some((now, errno));
        }
    }

    /// The disk has another image, which has failed nothing yet.
    pub(super) fn moved(&mut self) {
        self.moves_since = self.moves_since.saturating_add(1);
    }

    /// What somebody should look at.
    pub(super) fn trouble(&self, now: Nanos) -> Option<Trouble> {
        let (at, Errno(errno)) = self.last.filter(|(at, _)| now.since(*at) < SHOWN)?;
        let Failures { count, moves_since, .. } = *self;
        let kind = TroubleKind::FailsWrites { count, errno, moves_since };
        Some(Trouble { kind, age: now.since(at).into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_that_fail_are_counted_and_shown_for_a_day() {
        let zero =
            ImageOp::Zero { offset: 0, len: 512, fua: false, unmap: false, fast: false };
        let mut failures = Failures::default();
        failures.add(Nanos(0), &ImageOp::Flush, Errno(libc::EIO));
        assert_eq!(failures.trouble(Nanos(0)), None);
        failures.add(Nanos(0), &zero, Errno(libc::EIO));
        failures.add(Nanos(5), &zero, Errno(libc::EPERM));
        let shown = failures.trouble(Nanos(7)).map(|trouble| (trouble.kind, trouble.age));
        let kind =
            TroubleKind::FailsWrites { count: 2, errno: libc::EPERM, moves_since: 0 };
        assert_eq!(shown, Some((kind, std::time::Duration::from_nanos(2))));
        assert_eq!(failures.trouble(Nanos(5).plus(SHOWN)), None);
    }

    #[test]
    fn writes_that_an_image_failed_which_the_disk_has_left_are_that_ones() {
        let zero =
            ImageOp::Zero { offset: 0, len: 512, fua: false, unmap: false, fast: false };
        let mut failures = Failures::default();
        failures.moved();
        failures.add(Nanos(1), &zero, Errno(libc::EIO));
        failures.add(Nanos(2), &zero, Errno(libc::ENOSPC));
        let kind = |failures: &Failures| failures.trouble(Nanos(3)).map(|it| it.kind);
        let fails = |count, errno, moves_since| TroubleKind::FailsWrites {
            count,
            errno,
            moves_since,
        };
        assert_eq!(kind(&failures), Some(fails(2, libc::ENOSPC, 0)));
        failures.moved();
        assert_eq!(kind(&failures), Some(fails(2, libc::ENOSPC, 1)));
        failures.moved();
        assert_eq!(kind(&failures), Some(fails(2, libc::ENOSPC, 2)));
        failures.add(Nanos(3), &zero, Errno(libc::EIO));
        assert_eq!(kind(&failures), Some(fails(1, libc::EIO, 0)));
    }
}
