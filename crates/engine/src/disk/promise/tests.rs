use std::time::{Duration, Instant};

use sterna_core::DiskId;
use sterna_core::durability::Keeper;

use super::*;
use crate::account::{AccountSpec, Late};
use crate::boot::BootId;
use crate::image::Done;

const FAILS: ImageResult = Err(Errno(libc::EIO));

const AWAY: Loss = Loss::ServerAway;
const OLD: Client = Client::Connection(1);
const NEW: Client = Client::Connection(2);

const NOW: Nanos = Nanos(1);

/// A disk of which one client is there.
fn promise() -> Promise {
    let mut promise = Promise::default();
    promise.comes(NOW, OLD);
    promise
}

/// The disk with the next daemon, and one of its clients.
fn next_daemon(spec: &AccountSpec) -> Promise {
    let keep = Keep::new(DiskId(9), spec.clone(), Late::default());
    keep.take_up(None).unwrap();
    let mut next = Promise::default();
    next.keep_account(NOW, "db", keep);
    next.comes(NOW, NEW);
    next
}

/// A client's flush, from its beginning to its answer.
fn flush_of(client: Client, promise: &mut Promise) -> ImageResult {
    promise.asks(NOW, client);
    promise.answer(client, &ImageOp::Flush, promise.now(), Ok(Done::Ok))
}

fn flush(promise: &mut Promise) -> ImageResult {
    flush_of(OLD, promise)
}

fn zero(fua: bool) -> ImageOp {
    ImageOp::Zero { offset: 0, len: 512, unmap: true, fua, fast: false }
}

#[test]
fn after_a_loss_one_flush_fails_and_nothing_else() {
    let mut promise = promise();
    assert_eq!(flush(&mut promise), Ok(Done::Ok));
    promise.lose(NOW, "db", AWAY);
    let began = promise.now();
    let answer =
        |promise: &mut Promise, op| promise.answer(OLD, &op, began, Ok(Done::Ok));
    assert_eq!(answer(&mut promise, zero(false)), Ok(Done::Ok));
    assert_eq!(answer(&mut promise, zero(true)), FAILS);
    assert_eq!(flush(&mut promise), Ok(Done::Ok));
}

#[test]
fn each_client_that_was_there_is_told() {
    let mut promise = promise();
    promise.comes(NOW, NEW);
    promise.lose(NOW, "db", AWAY);
    let told = |promise: &Promise| {
        let kind = promise.troubles(NOW).next().map(|trouble| trouble.kind);
        kind == Some(TroubleKind::Forgot { told: true, why: AWAY })
    };
    assert_eq!(flush_of(NEW, &mut promise), FAILS);
    assert_eq!(flush_of(NEW, &mut promise), Ok(Done::Ok));
    assert!(!told(&promise));
    assert_eq!(flush_of(OLD, &mut promise), FAILS);
    assert_eq!(flush_of(OLD, &mut promise), Ok(Done::Ok));
    assert!(told(&promise));
}

#[test]
fn no_other_error_takes_the_place_of_a_loss() {
    for other in [libc::ENOSPC, libc::EOPNOTSUPP] {
        let mut promise = promise();
        let refused = Err(Errno(other));
        let answer = |promise: &mut Promise| {
            promise.answer(OLD, &zero(true), promise.now(), refused.clone())
        };
        assert_eq!(answer(&mut promise), refused);
        promise.lose(NOW, "db", AWAY);
        assert_eq!(answer(&mut promise), FAILS);
        assert_eq!(answer(&mut promise), refused);
    }
}

#[test]
fn a_client_that_comes_back_is_told_what_was_said_to_a_connection_that_is_gone() {
    for notices_first in [true, false] {
        let mut promise = promise();
        let began = promise.now();
        promise.lose(NOW, "db", AWAY);
        // The flush is sent again on another connection, and then the first is answered.
        promise.comes(NOW, NEW);
        promise.asks(NOW, NEW);
        let again = promise.now();
        let answer = |promise: &mut Promise, client, began| {
            promise.answer(client, &ImageOp::Flush, began, Ok(Done::Ok))
        };
        assert_eq!(answer(&mut promise, OLD, began), FAILS);
        if notices_first {
            promise.leaves(NOW, OLD);
        }
        assert_eq!(answer(&mut promise, NEW, again), FAILS);
        promise.leaves(NOW, OLD);
        // And now it has been heard.
        assert_eq!(flush_of(NEW, &mut promise), Ok(Done::Ok));
    }
}

#[test]
fn a_loss_that_nobody_has_heard_of_is_owed_again() {
    let mut promise = promise();
    promise.lose(NOW, "db", AWAY);
    assert_eq!(flush_of(OLD, &mut promise), FAILS);
    promise.leaves(NOW, OLD);
    let mut kinds = promise.troubles(Nanos(2)).map(|trouble| trouble.kind);
    assert_eq!(kinds.next(), Some(TroubleKind::Forgot { told: false, why: AWAY }));
    drop(kinds);
    promise.comes(NOW, NEW);
    assert_eq!(flush_of(NEW, &mut promise), FAILS);
    assert_eq!(flush_of(NEW, &mut promise), Ok(Done::Ok));
}

#[test]
fn a_flush_that_has_failed_for_good_goes_on_to_fail_until_the_disk_moves() {
    let mut promise = promise();
    promise.lost(Nanos(1), "db");
    for _ in 0..3 {
        assert_eq!(flush(&mut promise), FAILS);
    }
    let kinds = |promise: &Promise| {
        let troubles = promise.troubles(Nanos(2));
        troubles.map(|trouble| trouble.kind).collect::<Vec<_>>()
    };
    assert_eq!(kinds(&promise), [TroubleKind::CannotFlush]);
    promise.moved();
    assert_eq!(flush(&mut promise), Ok(Done::Ok));
    let why = Loss::FlushFailed;
    assert_eq!(kinds(&promise), [TroubleKind::Forgot { told: true, why }]);
}

#[test]
fn a_client_that_has_not_heard_of_a_failed_flush_is_told_after_the_move() {
    let mut promise = promise();
    promise.comes(NOW, NEW);
    // The kernel has dropped writes of both, and the copy has what was there before.
    promise.lost(NOW, "db");
    assert_eq!(flush_of(OLD, &mut promise), FAILS);
    promise.moved();
    assert_eq!(flush_of(OLD, &mut promise), Ok(Done::Ok));
    assert_eq!(flush_of(NEW, &mut promise), FAILS);
    assert_eq!(flush_of(NEW, &mut promise), Ok(Done::Ok));
    // Each failed flush may have lost something else.
    promise.lost(NOW, "db");
    promise.lost(NOW, "db");
    assert_eq!(flush_of(OLD, &mut promise), FAILS);
    promise.lost(NOW, "db");
    promise.moved();
    assert_eq!(flush_of(OLD, &mut promise), FAILS);
    assert_eq!(flush_of(OLD, &mut promise), Ok(Done::Ok));
}

#[test]
fn a_client_that_has_not_heard_of_a_failed_flush_is_told_by_the_next_daemon() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("account");
    let spec = AccountSpec { path, boot: BootId([3; 16]) };
    let keep = Keep::new(DiskId(9), spec.clone(), Late::default());
    let mut promise = promise();
    promise.comes(NOW, NEW);
    promise.keep_account(NOW, "db", Arc::clone(&keep));
    promise.lost(NOW, "db");
    let end = Instant::now() + Duration::from_secs(20);
    while keep.account().is_none() {
        assert!(Instant::now() < end, "no account was made");
        std::thread::yield_now();
    }
    assert_eq!(flush_of(OLD, &mut promise), FAILS);
    promise.asks(NOW, OLD);
    // The daemon is killed: nothing of it is dropped in good order.
    std::mem::forget((promise, keep));
    let mut next = next_daemon(&spec);
    assert_eq!(flush_of(NEW, &mut next), FAILS);
    assert_eq!(flush_of(NEW, &mut next), Ok(Done::Ok));
    spec.remove().unwrap();
}

#[test]
fn an_account_that_could_not_be_made_is_tried_again_although_nothing_new_is_lost() {
    let directory = tempfile::tempdir().unwrap();
    let there = directory.path().join("accounts");
    let spec = AccountSpec { path: there.join("9"), boot: BootId([3; 16]) };
    let keep = Keep::new(DiskId(9), spec.clone(), Late::default());
    let mut promise = promise();
    promise.keep_account(NOW, "db", Arc::clone(&keep));
    promise.lost(NOW, "db");
    let end = Instant::now() + Duration::from_secs(20);
    while keep.is_asked_for() {
        assert!(Instant::now() < end, "it is still being made");
        std::thread::yield_now();
    }
    std::fs::create_dir(&there).unwrap();
    promise.looks(Nanos::from_secs(60));
    while keep.account().is_none() {
        assert!(Instant::now() < end, "no account was made");
        std::thread::yield_now();
    }
    spec.remove().unwrap();
}

#[test]
fn a_loss_moves_along_and_is_shown_for_a_day() {
    let mut promise = promise();
    promise.lose(Nanos(0), "db", AWAY);
    promise.moved();
    let shown = |promise: &Promise, at| promise.troubles(at).next().map(|it| it.kind);
    let (soon, later) = (Nanos::from_secs(60), Nanos::from_secs(25 * 3600));
    assert_eq!(
        shown(&promise, soon),
        Some(TroubleKind::Forgot { told: false, why: AWAY })
    );
    assert_eq!(flush(&mut promise), FAILS);
    assert_eq!(
        shown(&promise, soon),
        Some(TroubleKind::Forgot { told: true, why: AWAY })
    );
    assert_eq!(shown(&promise, later), None);
}

#[test]
fn what_a_commit_owes_is_told_by_the_next_daemon_and_by_this_one_only_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("account");
    let spec = AccountSpec { path, boot: BootId([3; 16]) };
    let why = Loss::FlushFailed;
    for (is_undone, is_told) in [(false, true), (true, false)] {
        let keep = Keep::new(DiskId(9), spec.clone(), Late::default());
        keep.take_up(Some(Keeper::Kernel { address: 4 })).unwrap();
        let mut promise = promise();
        promise.keep_account(NOW, "db", Arc::clone(&keep));
        promise.foresees(NOW, Some(why));
        assert_eq!(flush(&mut promise), Ok(Done::Ok), "nothing is lost yet");
        if is_undone {
            promise.foresees(NOW, None);
        }
        // The daemon is killed: nothing of it is dropped in good order.
        std::mem::forget((promise, keep));
        let mut next = next_daemon(&spec);
        assert_eq!(flush_of(NEW, &mut next) == FAILS, is_told);
        assert_eq!(flush_of(NEW, &mut next), Ok(Done::Ok));
        spec.remove().unwrap();
    }
}
