//! What becomes of guest requests.

use sterna_core::ByteRange;
use sterna_core::mirror::{Control, Event, Job, PATIENCE, RequestKind, Stored};

use crate::bench::{Bench, REGION, answer, destination, source};

#[test]
fn a_write_to_a_synced_region_goes_to_both_and_is_answered_when_both_are_done() {
    let mut bench = Bench::almost_done();
    assert_eq!(bench.write(1, 0), [source(1), destination(1)]);
    assert_eq!(bench.stored(0), Stored::Late, "a crash now would find the sides unequal");
    assert_eq!(bench.source_done(1), []);
    assert_eq!(bench.destination_done(1), [answer(1)]);
    assert_eq!(bench.stored(0), Stored::Late, "no flush covers it");
    bench.flush();
    assert_eq!(bench.stored(0), Stored::Synced);
}

#[test]
fn a_write_to_an_absent_region_goes_to_the_source_only() {
    let mut bench = Bench::with(Stored::Absent, Bench::config());
    bench.tell(Event::Control(Control::Pause));
    assert_eq!(bench.write(1, 0), [source(1)]);
    assert_eq!(bench.source_done(1), [answer(1)]);
    assert_eq!(bench.stored(0), Stored::Absent);
}

#[test]
fn past_patience_the_guest_is_answered_and_the_region_is_copied_after_the_overdue_write()
{
    let mut bench = Bench::almost_done();
    bench.write(1, 0);
    bench.source_done(1);
    assert_eq!(bench.mirror.deadline(), Some(bench.now.plus(PATIENCE)));
    bench.after(PATIENCE).tell(Event::Tick);
    assert_eq!(bench.asked, [answer(1)]);
    assert_eq!(bench.jobs(), [], "the overdue write could land on the copy");
    bench.destination_done(1);
    let [job] = bench.jobs()[..] else { panic!("the region is copied anew") };
    assert_eq!(job.range, ByteRange::new(0, REGION));
}

#[test]
fn overlapping_writes_to_a_synced_region_go_one_after_the_other() {
    let mut bench = Bench::almost_done();
    bench.write(1, 0);
    assert_eq!(bench.write(2, 0), []);
    bench.source_done(1);
    assert_eq!(bench.destination_done(1), [answer(1), source(2), destination(2)]);
}

#[test]
fn an_overlapping_write_waits_no_longer_than_patience() {
    let mut bench = Bench::almost_done();
    bench.write(1, 0);
    bench.write(2, 0);
    bench.after(PATIENCE).tell(Event::Tick);
    assert_eq!(bench.asked, [source(2)], "to the source alone: the order is unknown");
    assert_eq!(bench.source_done(2), [answer(2)]);
}

#[test]
fn a_flush_and_a_read_concern_the_source_alone() {
    let mut bench = Bench::almost_done();
    assert_eq!(bench.arrive(1, RequestKind::Read, ByteRange::new(0, 512)), [source(1)]);
    assert_eq!(bench.arrive(2, RequestKind::Flush, ByteRange::new(0, 0)), [source(2)]);
    assert_eq!(bench.source_done(2), [answer(2)]);
}

#[test]
fn a_region_written_during_three_copies_is_claimed_and_its_writes_wait() {
    let mut bench = Bench::with(Stored::Late, Bench::config());
    bench.tell(Event::Tick);
    let first = bench.jobs()[0];
    // Everything is copied but region 0, which is written during each copy.
    let mut others: Vec<Job> = bench.jobs()[1..].to_vec();
    let mut job = first;
    for round in 0..3 {
        bench.write(round, 0);
        bench.source_done(round);
        bench.copied(job);
        others.extend(bench.jobs());
        loop {
            if let Some(at) = others.iter().position(|j| j.range.offset == 0) {
                job = others.remove(at);
                break;
            }
            let other = others.remove(0);
            bench.copied(other);
            others.extend(bench.jobs());
        }
    }
    assert_eq!(job.range.len, REGION, "one small chunk");
    assert_eq!(bench.write(10, 0), [], "waits for the copy");
    let asked = bench.copied(job).to_vec();
    assert_eq!(asked[..2], [source(10), destination(10)]);
}

#[test]
fn a_pause_releases_writes_that_wait_for_the_destination() {
    let mut bench = Bench::almost_done();
    bench.write(1, 0);
    bench.source_done(1);
    bench.write(2, 0); // Overlaps, waits.
    bench.tell(Event::Control(Control::Pause));
    assert!(bench.asked.contains(&answer(1)) && bench.asked.contains(&source(2)));
}

#[test]
fn many_overdue_writes_mean_a_stalled_destination_that_nobody_waits_for() {
    let mut bench = Bench::almost_done();
    for id in 0..8 {
        bench.write(id, id);
        bench.source_done(id);
    }
    bench.after(PATIENCE).tell(Event::Tick);
    assert_eq!(bench.write(20, 9), [source(20)]);
    assert_eq!(bench.source_done(20)[0], answer(20));
}
