//! What a flush that fails means, with a kernel that fails when it is told to.

mod left;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sterna_core::mirror::Storage;

use super::*;
use crate::buffer::{Pool, Slice};
use crate::io::{Io, Token};
use crate::qos::Qos;

/// Everything succeeds at once but the next flush, if it is to fail, and with what.
#[derive(Default)]
struct Kernel {
    done: Vec<Completion>,
    flush_fails: Arc<Mutex<Option<i32>>>,
    /// The next write fails, and no flush in it.
    write_fails: Arc<Mutex<Option<i32>>>,
    /// How often it was asked for a flush.
    flushes: Arc<AtomicUsize>,
}

impl Io for Kernel {
    fn submit(&mut self, token: Token, op: Op) {
        if let Op::Sync { .. } = op {
            self.flushes.fetch_add(1, Ordering::Relaxed);
        }
        let result = match &op {
            Op::Write { buf, dsync, .. } => {
                let fails = match dsync {
                    true => &self.flush_fails,
                    false => &self.write_fails,
                };
                match fails.lock().unwrap().take() {
                    Some(errno) => Err(Errno(errno)),
                    None => Ok(buf.len() as u64),
                }
            }
            Op::Sync { .. } => match self.flush_fails.lock().unwrap().take() {
                Some(errno) => Err(Errno(errno)),
                None => Ok(0),
            },
            _ => Ok(0),
        };
        self.done.push(Completion { token, result, op });
    }

    fn wait(&mut self, _timeout: Option<Duration>, out: &mut Vec<Completion>) {
        out.append(&mut self.done);
    }

    fn cancel(&mut self, _token: Token) {}

    fn in_flight(&self) -> usize {
        self.done.len()
    }
}

struct Rig {
    cx: Cx,
    image: Box<dyn Image>,
    flush_fails: Arc<Mutex<Option<i32>>>,
    write_fails: Arc<Mutex<Option<i32>>>,
    flushes: Arc<AtomicUsize>,
    buffer: Slice,
    /// How often the image had something to tell.
    news: u64,
}

/// An image of which direct operations are multiples of `align`, if it has any.
fn rig(align: Option<u32>) -> Rig {
    rig_on(align, true)
}

/// The same; `direct_is_stored` as the file system has it.
fn rig_on(align: Option<u32>, direct_is_stored: bool) -> Rig {
    let mut rig = rig_as_opened(align, direct_is_stored);
    // What a process before may have left is written.
    assert!(rig.call(ImageOp::Flush).is_ok());
    rig.flushes.store(0, Ordering::Relaxed);
    rig
}

/// The same, with no flush yet.
fn rig_as_opened(align: Option<u32>, direct_is_stored: bool) -> Rig {
    rig_with(align, direct_is_stored, None)
}

/// The same, with a line in its disk's account.
fn rig_with(align: Option<u32>, direct_is_stored: bool, line: Option<Line>) -> Rig {
    let kernel = Kernel::default();
    let flush_fails = Arc::clone(&kernel.flush_fails);
    let write_fails = Arc::clone(&kernel.write_fails);
    let flushes = Arc::clone(&kernel.flushes);
    let buffers = Pool::new(8 << 20).unwrap();
    let buffer = buffers.get(1 << 20).unwrap().slice(0, 1 << 20);
    let (io, qos) = (Box::new(kernel), Qos::new(0, Arc::default()));
    let others = [Pool::new(1 << 20).unwrap(), Pool::new(1 << 20).unwrap()];
    let mut cx = Cx::new(io, buffers, others, qos, Default::default()).unwrap();
    let named = tempfile::NamedTempFile::new().unwrap();
    let file = || Stored::new(named.reopen().unwrap(), &Arc::default(), true);
    let seek = Arc::new(file());
    let files = Files {
        storage: Storage::Unknown,
        line,
        claim: None,
        buffered: file(),
        direct: align.map(|_| file()),
        direct_is_stored,
        held: Arc::new(HeldFile::new(named.path(), Arc::clone(&seek)).unwrap()),
        seek,
        at_once: true,
        size: 1 << 20,
        align: align.unwrap_or(1),
        whole: align.unwrap_or(1),
    };
    let id = ImageId { disk: 1, image: 2 };
    let image = Box::new(OpenedFile(files)).start(&mut cx, id);
    Rig { cx, image, flush_fails, write_fails, flushes, buffer, news: 0 }
}

impl Rig {
    fn call(&mut self, op: ImageOp) -> ImageResult {
        self.image.submit(&mut self.cx, Ticket { disk: 1, id: 1 }, op);
        loop {
            let finished = std::mem::take(&mut self.cx.finished);
            for (ticket, result) in finished {
                match ticket.id {
                    Ticket::NEWS => self.news += 1,
                    _ => return result,
                }
            }
            let mut completions = Vec::new();
            self.cx.io.wait(None, &mut completions);
            for completion in completions {
                self.image.completed(&mut self.cx, completion);
            }
        }
    }

    /// That many flushes at once: what became of each.
    fn flush_at_once(&mut self, count: u64) -> Vec<ImageResult> {
        for id in 0..count {
            self.image.submit(&mut self.cx, Ticket { disk: 1, id }, ImageOp::Flush);
        }
        while self.image.in_flight() > 0 {
            let mut completions = Vec::new();
            self.cx.io.wait(None, &mut completions);
            assert!(!completions.is_empty(), "something waits for nothing");
            // Those that come last may well be answered first.
            for completion in completions.into_iter().rev() {
                self.image.completed(&mut self.cx, completion);
            }
        }
        let mut answers = std::mem::take(&mut self.cx.finished);
        answers.retain(|(ticket, _)| ticket.id != Ticket::NEWS);
        answers.sort_by_key(|(ticket, _)| ticket.id);
        assert_eq!(answers.len() as u64, count);
        answers.into_iter().map(|(_, result)| result).collect()
    }

    /// The daemon ends.
    fn leave(&mut self) {
        self.image.take_leave(&mut self.cx);
        let mut completions = Vec::new();
        self.cx.io.wait(None, &mut completions);
        for completion in completions {
            self.image.completed(&mut self.cx, completion);
        }
        assert!(self.image.idle() && self.cx.finished.is_empty());
    }

    fn write(&mut self, offset: u64, len: usize, fua: bool) -> ImageResult {
        let buf = self.buffer.part(0, len);
        self.call(ImageOp::Write { offset, buf, fua })
    }

    /// A flush that fails, and whether the image says that its writes are lost.
    fn failing_flush_loses(&mut self) -> bool {
        *self.flush_fails.lock().unwrap() = Some(libc::EIO);
        assert_eq!(self.call(ImageOp::Flush), Err(Errno(libc::EIO)));
        let lost = self.image.has_lost();
        assert!(!self.image.has_lost(), "said once");
        lost
    }
}

#[test]
fn what_went_through_the_page_cache_is_lost_when_its_flush_fails() {
    let mut rig = rig(None);
    assert!(rig.write(0, 4096, false).is_ok());
    assert!(rig.failing_flush_loses());
    // Nothing has been written since, and the failed flush has covered nothing.
    assert!(rig.failing_flush_loses());
}

#[test]
fn a_flush_that_was_taken_back_before_the_kernel_was_asked_loses_nothing() {
    let mut rig = rig(None);
    assert!(rig.write(0, 4096, false).is_ok());
    *rig.flush_fails.lock().unwrap() = Some(libc::ECANCELED);
    assert_eq!(rig.call(ImageOp::Flush), Err(Errno(libc::ECANCELED)));
    assert!(!rig.image.has_lost());
    // What was written is still to be flushed.
    assert!(rig.failing_flush_loses());
}

#[test]
fn what_was_flushed_before_is_not_lost() {
    let mut rig = rig(None);
    assert!(rig.write(0, 4096, false).is_ok());
    assert!(rig.call(ImageOp::Flush).is_ok());
    assert!(!rig.failing_flush_loses());
}

#[test]
fn the_first_flush_tells_of_pages_that_a_process_before_has_left() {
    for align in [None, Some(4096)] {
        let mut rig = rig_as_opened(align, true);
        assert!(rig.failing_flush_loses());
    }
}

#[test]
fn a_device_that_fails_a_flush_may_have_dropped_direct_writes_and_says_so_once() {
    let mut rig = rig(Some(4096));
    assert!(!rig.failing_flush_loses());
    assert!(rig.image.has_forgotten().is_none(), "nothing was written");
    assert!(rig.write(0, 8192, false).is_ok());
    assert!(!rig.failing_flush_loses(), "later flushes are believed");
    assert_eq!(rig.image.has_forgotten(), Some(Loss::FlushFailed));
    assert_eq!((rig.image.has_forgotten(), rig.news), (None, 1));
    assert!(rig.call(ImageOp::Flush).is_ok());
    assert!(!rig.failing_flush_loses());
    assert!(rig.image.has_forgotten().is_none(), "all was flushed");
}

#[test]
fn pages_among_direct_writes_make_a_failed_flush_final() {
    let mut rig = rig(Some(4096));
    assert!(rig.write(0, 8192, false).is_ok());
    // One write that the device does not take as it is goes through the cache.
    assert!(rig.write(512, 512, false).is_ok());
    assert!(rig.write(0, 8192, true).is_ok());
    assert!(rig.failing_flush_loses());
}

#[test]
fn zeroes_are_written_in_whole_blocks_and_their_edges_apart() {
    let pieces = |mut at: u64, end: u64| {
        let mut found = Vec::new();
        while at < end {
            found.push(super::piece(at, end - at, 64 << 10));
            at += found[found.len() - 1];
        }
        found
    };
    assert_eq!(pieces(512, 5120), [3584, 1024]);
    assert_eq!(pieces(512, 1024), [512]);
    assert_eq!(pieces(0, 4096), [4096]);
    assert_eq!(pieces(100, 140_000), [3996, 64 << 10, 64 << 10, 4096, 736]);
}

#[test]
fn direct_writes_that_a_server_may_cache_are_lost_when_their_flush_fails() {
    let mut rig = rig_on(Some(4096), false);
    // Nothing was written, or only what is durable when it is answered.
    assert!(!rig.failing_flush_loses());
    assert!(rig.write(0, 8192, true).is_ok());
    assert!(!rig.failing_flush_loses());
    assert_eq!(rig.flushes.load(Ordering::Relaxed), 2, "such a write needs no flush");
    assert!(rig.write(0, 8192, false).is_ok());
    assert!(rig.call(ImageOp::Flush).is_ok());
    assert!(!rig.failing_flush_loses());
    assert!(rig.write(0, 8192, false).is_ok());
    assert!(rig.failing_flush_loses());
}

#[test]
fn a_direct_write_with_fua_that_a_server_fails_takes_earlier_writes_with_it() {
    for (is_stored, before, errno, loses, forgets) in [
        (false, true, libc::EIO, true, false),
        (false, true, libc::ENOSPC, false, false),
        (false, false, libc::EIO, false, false),
        (true, true, libc::EIO, false, true),
        (true, true, libc::ENOSPC, false, false),
        (true, false, libc::EIO, false, false),
    ] {
        let mut rig = rig_on(Some(4096), is_stored);
        if before {
            assert!(rig.write(0, 8192, false).is_ok());
        }
        *rig.flush_fails.lock().unwrap() = Some(errno);
        assert_eq!(rig.write(8192, 4096, true), Err(Errno(errno)));
        assert_eq!(rig.image.has_lost(), loses, "{is_stored} {before} {errno}");
        let forgot = rig.image.has_forgotten().is_some();
        assert_eq!(forgot, forgets, "{is_stored} {before} {errno}");
    }
}

#[test]
fn a_write_with_fua_that_fails_on_its_way_to_the_page_cache_loses_nothing_else() {
    for is_stored in [false, true] {
        let mut rig = rig_on(None, is_stored);
        assert!(rig.write(0, 8192, false).is_ok());
        *rig.write_fails.lock().unwrap() = Some(libc::EIO);
        assert_eq!(rig.write(8192, 4096, true), Err(Errno(libc::EIO)));
        assert!(!rig.image.has_lost() && rig.image.has_forgotten().is_none());
        assert!(rig.failing_flush_loses(), "what is in pages is not flushed yet");
    }
}

#[test]
fn a_bad_sector_under_a_direct_write_with_fua_does_not_make_later_flushes_worthless() {
    let mut rig = rig(Some(4096));
    // One write that goes through the cache, one that does not.
    assert!(rig.write(512, 512, false).is_ok());
    assert!(rig.write(0, 8192, false).is_ok());
    *rig.flush_fails.lock().unwrap() = Some(libc::EIO);
    assert_eq!(rig.write(8192, 4096, true), Err(Errno(libc::EIO)));
    assert!(!rig.image.has_lost());
    assert_eq!(rig.image.has_forgotten(), Some(Loss::FlushFailed));
    assert!(rig.failing_flush_loses(), "the kernel tells of the page at the next flush");
}

#[test]
fn a_direct_write_with_fua_that_fails_may_have_dropped_pages_that_the_kernel_had_written()
{
    let mut rig = rig(Some(4096));
    assert!(rig.write(512, 512, false).is_ok());
    *rig.flush_fails.lock().unwrap() = Some(libc::EIO);
    assert_eq!(rig.write(8192, 4096, true), Err(Errno(libc::EIO)));
    assert!(!rig.image.has_lost(), "a later flush is true for what is written later");
    assert_eq!(rig.image.has_forgotten(), Some(Loss::FlushFailed));
}

#[test]
fn zeroes_dirty_pages_at_their_edges_only() {
    let zero =
        |offset, len| ImageOp::Zero { offset, len, unmap: true, fua: false, fast: false };
    let mut rig = rig(Some(512));
    assert!(rig.call(zero(4096, 65536)).is_ok());
    assert!(!rig.failing_flush_loses());
    assert!(rig.call(zero(512, 65536)).is_ok());
    assert!(rig.failing_flush_loses());
}

#[test]
fn a_cached_write_with_fua_fails_as_its_flush_does() {
    let mut rig = rig(None);
    *rig.flush_fails.lock().unwrap() = Some(libc::EIO);
    assert_eq!(rig.write(0, 4096, true), Err(Errno(libc::EIO)));
    assert!(rig.image.has_lost());
}

#[test]
fn a_loss_fails_every_flush_that_was_asked_for_before_it_was_told() {
    let mut rig = rig(None);
    assert!(rig.write(0, 4096, false).is_ok());
    *rig.flush_fails.lock().unwrap() = Some(libc::EIO);
    let failed = Err(Errno(libc::EIO));
    assert_eq!(rig.flush_at_once(3), [failed.clone(), failed.clone(), failed]);
    assert!(rig.image.has_lost());
}

#[test]
fn flushes_that_come_during_one_are_done_together_by_the_next() {
    let mut rig = rig(None);
    assert!(rig.write(0, 4096, false).is_ok());
    assert!(rig.flush_at_once(8).iter().all(Result::is_ok));
    assert_eq!(rig.flushes.load(Ordering::Relaxed), 2);
    assert!(!rig.failing_flush_loses());
}

#[test]
fn after_a_flush_that_failed_and_lost_nothing_the_others_are_tried() {
    let mut rig = rig(Some(4096));
    assert!(rig.write(0, 8192, false).is_ok());
    *rig.flush_fails.lock().unwrap() = Some(libc::EIO);
    let results = rig.flush_at_once(3);
    assert_eq!(results[0], Err(Errno(libc::EIO)));
    assert!(results[1..].iter().all(Result::is_ok), "{results:?}");
}

#[test]
fn flushes_that_wait_end_with_the_image() {
    let mut rig = rig(None);
    for id in 0..3 {
        rig.image.submit(&mut rig.cx, Ticket { disk: 1, id }, ImageOp::Flush);
    }
    rig.image.abort(&mut rig.cx);
    assert_eq!((rig.cx.finished.len(), rig.image.in_flight()), (2, 1));
}
