//! In which order the disk is copied: out of the way of a guest that writes one place
//! after another.

use sterna_core::mirror::{
    Action, Allowance, Config, Control, Event, RequestKind, Stored,
};
use sterna_core::{ByteRange, Nanos};

use crate::bench::{Bench, REGION, destination, jobs};

const SEGMENT: u64 = 16;
const DISK: u64 = 1024;

/// A disk of 64 segments whose copier waits until it is told to go on.
fn waiting() -> Bench {
    let config = Config {
        segment: SEGMENT * REGION,
        scan: false,
        allowance: Allowance { busy: Some(0), idle: Some(0), ..Allowance::default() },
        ..Config::new(DISK * REGION)
    };
    Bench::with(Stored::Absent, config)
}

/// The guest writes 4 KiB sixteen times, which is a region; gives what was asked for.
fn write_region(bench: &mut Bench, id: &mut u64, region: u64) -> Vec<Action> {
    let mut asked = Vec::new();
    for page in 0..16 {
        *id += 1;
        let range = ByteRange::new(region * REGION + page * 4096, 4096);
        asked.extend_from_slice(bench.arrive(*id, RequestKind::Write, range));
        let mirrored = asked.contains(&destination(*id));
        asked.extend_from_slice(bench.source_done(*id));
        if mirrored {
            asked.extend_from_slice(bench.destination_done(*id));
        }
    }
    asked
}

/// Goes through the whole disk with the guest writing a region for each two that are
/// copied; gives the segments in their order, and how many writes were made twice.
fn race(bench: &mut Bench, mut head: impl FnMut(u64) -> u64) -> (Vec<u64>, usize) {
    let (mut order, mut twice, mut id) = (Vec::new(), 0, 1000);
    bench.tell(Event::Control(Control::Allow(Allowance::default())));
    let mut waiting = bench.jobs();
    let mut copied = 0;
    while !waiting.is_empty() {
        let job = waiting.remove(0);
        let segment = job.range.offset / REGION / SEGMENT;
        if order.last() != Some(&segment) {
            order.push(segment);
        }
        bench.after(Nanos::from_millis(1));
        bench.copied(job);
        waiting.extend(bench.jobs());
        copied += job.range.len / REGION;
        while copied >= 2 {
            copied -= 2;
            let region = head(id);
            let asked = write_region(bench, &mut id, region);
            let mirrored = |action: &&Action| matches!(action, Action::Destination(_));
            twice += asked.iter().filter(mirrored).count();
            waiting.extend(jobs(&asked));
        }
    }
    (order, twice)
}

#[test]
fn a_disk_is_copied_from_its_beginning_to_its_end() {
    let (order, _) = race(&mut waiting(), |id| id * 7919 % DISK);
    assert!(order[..60].is_sorted(), "{order:?}");
}

#[test]
fn of_a_logs_writes_few_are_made_twice_until_it_has_gone_around() {
    let (mut bench, mut id) = (waiting(), 0);
    for region in 512..552 {
        write_region(&mut bench, &mut id, region);
    }
    let mut at = 551;
    let (order, twice) = race(&mut bench, |_| {
        at += 1;
        at % DISK
    });
    assert_eq!(order[0], 512 / SEGMENT - 1);
    // All in all it writes half of the disk, in pages.
    let all = (DISK / 2 * 16) as usize;
    assert!(twice * 16 < all, "{twice} of {all} writes were made twice: {order:?}");
}

#[test]
fn what_a_journal_goes_around_is_copied_at_the_end() {
    let (mut bench, mut id) = (waiting(), 0);
    // Around regions 512 to 640, again and again.
    let ring = |at: u64| 512 + at % 128;
    for at in 0..40 {
        write_region(&mut bench, &mut id, ring(at));
    }
    let mut at = 39;
    let (order, twice) = race(&mut bench, |_| {
        at += 1;
        ring(at)
    });
    // It goes around four times in that time, and is followed once at the end.
    let all = (DISK / 2 * 16) as usize;
    assert!(twice * 9 < all, "{twice} of {all} writes were made twice: {order:?}");
}
