//! What a daemon leaves to the next one, of an image in a file.

use sterna_core::durability::{Clients, LONG_FLUSH};
use sterna_core::{DiskId, Nanos};

use super::super::super::LEAVING;
use super::*;
use crate::account::{Account, AccountSpec};
use crate::boot::BootId;

/// The account of a disk in a file of a mounting, and what a daemon finds in it.
struct Kept {
    _directory: tempfile::TempDir,
    spec: AccountSpec,
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.spec.remove().unwrap();
    }
}

impl Kept {
    fn new() -> Kept {
        let directory = tempfile::tempdir().unwrap();
        let spec =
            AccountSpec { path: directory.path().join("account"), boot: BootId([3; 16]) };
        Kept { _directory: directory, spec }
    }

    /// A daemon that has the image in a mounting: its line, and the loss that it is to tell of.
    fn take_up(&self, mounting: u32) -> (Line, Option<Loss>, Clients) {
        let keeper = Keeper::Kernel { address: mounting };
        let (account, line) =
            Account::take_up(&self.spec, DiskId(9), Some(keeper)).unwrap();
        let (left, clients) = account.left();
        (line.unwrap(), left, clients)
    }

    /// Whether the account says that writes are in doubt.
    fn is_in_doubt(&self) -> bool {
        let keeper = Some(Keeper::Kernel { address: 1 });
        Account::is_owed(&self.spec, DiskId(9), keeper)
    }

    /// A rig in the first mounting.
    fn rig(&self) -> Rig {
        rig_with(Some(4096), true, Some(self.take_up(1).0))
    }
}

#[test]
fn a_file_that_is_found_in_another_mounting_may_lack_what_was_not_flushed() {
    for flushes in [false, true] {
        let kept = Kept::new();
        let mut rig = kept.rig();
        assert!(rig.write(0, 8192, false).is_ok());
        if flushes {
            assert!(rig.call(ImageOp::Flush).is_ok());
        }
        drop(rig); // Killed.
        let (line, left, _) = kept.take_up(1);
        assert_eq!((left, line.is_unflushed()), (None, !flushes), "the same mounting");
        drop(line);
        let (_, left, _) = kept.take_up(2);
        assert_eq!(left, (!flushes).then_some(Loss::MountedAnew));
    }
}

#[test]
fn a_daemon_that_has_written_nothing_leaves_nothing() {
    let kept = Kept::new();
    let mut rig = kept.rig();
    assert!(rig.write(0, 8192, true).is_ok());
    drop(rig);
    assert_eq!(kept.take_up(2).1, None);
}

#[test]
fn an_image_that_is_left_in_good_order_is_flushed() {
    let kept = Kept::new();
    let mut rig = kept.rig();
    assert!(rig.write(0, 8192, false).is_ok());
    rig.leave();
    assert_eq!(rig.flushes.load(Ordering::Relaxed), 1);
    drop(rig);
    assert_eq!(kept.take_up(2).1, None);
}

#[test]
fn if_the_last_flush_fails_the_next_daemon_tells_all_clients() {
    let kept = Kept::new();
    let mut rig = kept.rig();
    assert!(rig.write(0, 8192, false).is_ok());
    *rig.flush_fails.lock().unwrap() = Some(libc::EIO);
    rig.leave();
    drop(rig);
    let (_, left, clients) = kept.take_up(1);
    assert_eq!((left, clients.owed), (Some(Loss::FlushFailed), 1));
}

#[test]
fn nobody_waits_long_for_the_last_flush() {
    let kept = Kept::new();
    let mut rig = kept.rig();
    assert!(rig.write(0, 8192, false).is_ok());
    rig.image.take_leave(&mut rig.cx);
    assert!(!rig.image.idle());
    rig.image.timer(&mut rig.cx, LEAVING);
    assert!(rig.image.idle());
    drop(rig);
    let (_, left, clients) = kept.take_up(1);
    assert_eq!(left, Some(Loss::FlushUnheard), "nobody has heard how it ends");
    assert_eq!(clients.owed, 1);
}

#[test]
fn a_daemon_that_is_killed_during_the_last_flush_leaves_a_doubt() {
    let kept = Kept::new();
    let mut rig = kept.rig();
    assert!(rig.write(0, 8192, false).is_ok());
    rig.image.take_leave(&mut rig.cx);
    drop(rig);
    assert_eq!(kept.take_up(1).1, Some(Loss::FlushUnheard));
}

#[test]
fn the_last_flush_does_not_take_an_error_that_nobody_could_be_told_of() {
    let mut rig = rig_with(Some(4096), true, None);
    assert!(rig.write(0, 8192, false).is_ok());
    rig.leave();
    assert_eq!(rig.flushes.load(Ordering::Relaxed), 0);
}

#[test]
fn a_flush_that_began_while_another_one_was_in_doubt_is_watched_too() {
    let kept = Kept::new();
    let mut rig = with_a_flush(&kept, false, Nanos(LONG_FLUSH.0 / 2));
    // A write that must be durable, in the middle of it.
    let op = ImageOp::Write { offset: 0, buf: rig.buffer.part(0, 4096), fua: true };
    rig.image.submit(&mut rig.cx, Ticket { disk: 1, id: 2 }, op);
    rig.passes(Nanos(LONG_FLUSH.0 / 2));
    assert!(kept.is_in_doubt());
    // The flush ends, and leaves what was written after it began.
    let buf = rig.buffer.part(0, 4096);
    let more = ImageOp::Write { offset: 0, buf, fua: false };
    rig.image.submit(&mut rig.cx, Ticket { disk: 1, id: 3 }, more);
    let mut completions = Vec::new();
    rig.cx.io.wait(None, &mut completions);
    let write = completions.pop().unwrap();
    rig.image.completed(&mut rig.cx, write);
    rig.image.completed(&mut rig.cx, completions.remove(0));
    assert!(!kept.is_in_doubt());
    rig.passes(Nanos(LONG_FLUSH.0 / 2));
    assert!(kept.is_in_doubt());
}

/// A rig of which a flush, or a write with FUA, has been under way for so long.
fn with_a_flush(kept: &Kept, is_fua: bool, long: Nanos) -> Rig {
    let mut rig = kept.rig();
    assert!(rig.write(0, 8192, false).is_ok());
    let op = match is_fua {
        true => ImageOp::Write { offset: 0, buf: rig.buffer.part(0, 4096), fua: true },
        false => ImageOp::Flush,
    };
    rig.image.submit(&mut rig.cx, Ticket { disk: 1, id: 1 }, op);
    rig.passes(long);
    rig
}

impl Rig {
    /// Time passes, and nothing else but timers.
    fn passes(&mut self, time: Nanos) {
        self.cx.now = self.cx.now.plus(time);
        while self.cx.timers.due(self.cx.now).is_some() {
            self.image.timer(&mut self.cx, DOUBT);
        }
    }
}

#[test]
fn a_flush_that_was_under_way_for_long_at_a_kill_may_have_failed_since() {
    for is_fua in [false, true] {
        for (long, left) in
            [(LONG_FLUSH, Some(Loss::FlushUnheard)), (Nanos(LONG_FLUSH.0 - 1), None)]
        {
            let kept = Kept::new();
            drop(with_a_flush(&kept, is_fua, long)); // Killed.
            let (line, found, _) = kept.take_up(1);
            assert_eq!(found, left);
            assert!(line.is_unflushed());
        }
    }
}

#[test]
fn a_long_flush_that_has_ended_well_leaves_no_doubt() {
    let kept = Kept::new();
    let mut rig = with_a_flush(&kept, false, LONG_FLUSH);
    assert!(rig.call(ImageOp::Flush).is_ok());
    assert!(rig.write(0, 8192, false).is_ok());
    drop(rig);
    assert_eq!(kept.take_up(1).1, None);
}

#[test]
fn the_alarm_goes_on_with_the_flush_that_is_the_oldest_then() {
    let kept = Kept::new();
    let half = Nanos(LONG_FLUSH.0 / 2);
    let mut rig = with_a_flush(&kept, false, half);
    assert!(rig.call(ImageOp::Flush).is_ok());
    // Both have ended; the next one begins before the alarm rings.
    rig.image.submit(&mut rig.cx, Ticket { disk: 1, id: 2 }, ImageOp::Flush);
    assert!(rig.write(0, 8192, false).is_ok());
    rig.image.submit(&mut rig.cx, Ticket { disk: 1, id: 3 }, ImageOp::Flush);
    for (after, is_doubtful) in [(half, false), (half, true)] {
        rig.passes(after);
        assert_eq!(kept.is_in_doubt(), is_doubtful);
    }
}

#[test]
fn a_flush_that_has_lost_something_leaves_a_doubt_until_the_next_one_succeeds() {
    for recovers in [false, true] {
        let kept = Kept::new();
        let mut rig = kept.rig();
        assert!(rig.call(ImageOp::Flush).is_ok());
        assert!(rig.write(0, 8192, false).is_ok());
        assert!(!rig.failing_flush_loses());
        if recovers {
            assert!(rig.call(ImageOp::Flush).is_ok());
            assert!(rig.write(0, 8192, false).is_ok());
        }
        drop(rig); // Killed before the disk has asked.
        assert_eq!(kept.take_up(1).1, (!recovers).then_some(Loss::FlushUnheard));
    }
}

#[test]
fn a_line_that_comes_late_says_what_is_unflushed_by_then() {
    for flushes in [false, true] {
        let kept = Kept::new();
        // The account could not be made when the disk came.
        let mut rig = rig_with(Some(4096), true, None);
        assert!(rig.write(0, 8192, false).is_ok());
        if flushes {
            assert!(rig.call(ImageOp::Flush).is_ok());
        }
        let (line, left, _) = kept.take_up(1);
        assert_eq!(left, None);
        rig.image.keep_late(&mut rig.cx, line);
        drop(rig); // Killed.
        let (_, left, _) = kept.take_up(2);
        assert_eq!(left, (!flushes).then_some(Loss::MountedAnew), "flushed: {flushes}");
    }
}

#[test]
fn a_line_that_comes_late_notes_what_comes_then() {
    let kept = Kept::new();
    let mut rig = rig_with(Some(4096), true, None);
    rig.image.keep_late(&mut rig.cx, kept.take_up(1).0);
    assert!(rig.write(0, 8192, false).is_ok());
    drop(rig);
    assert_eq!(kept.take_up(2).1, Some(Loss::MountedAnew));
}

#[test]
fn an_image_that_gets_a_daemon_s_writes_late_has_them_until_its_next_flush() {
    let kept = Kept::new();
    let mut rig = rig_with(Some(4096), true, None);
    let (mut inherited, ..) = kept.take_up(1);
    inherited.set(true);
    rig.image.keep_late(&mut rig.cx, inherited);
    drop(rig);
    assert_eq!(kept.take_up(2).1, Some(Loss::MountedAnew));
}
