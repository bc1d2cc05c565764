//! The mirror's rules, one by one: what it asks for in the situations that the
//! design names.

use sterna_core::mirror::{
    Action, Commit, Config, Control, Counted, End, Event, Fault, HOLD_BUDGET, Job,
    JobKind, MemoryMap, Mirror, Notice, Outcome, PATIENCE, PauseReason, Phase, RegionMap,
    Request, RequestId, RequestKind, Stored,
};
use sterna_core::{ByteRange, Nanos};

const REGION: u64 = 64 << 10;
const REGIONS: u64 = 16;

/// A mirror, its time, and what it asked for last.
struct Bench {
    mirror: Mirror<MemoryMap>,
    now: Nanos,
    asked: Vec<Action>,
}

impl Bench {
    /// A mirror in which all regions are as `stored` says.
    fn with(stored: Stored, config: Config) -> Bench {
        let map = MemoryMap::new(config.regions(), stored);
        let now = Nanos::from_secs(1);
        Bench {
            mirror: Mirror::new(now, config, Counted::new(map)),
            now,
            asked: Vec::new(),
        }
    }

    fn config() -> Config {
        Config { scan: false, ..Config::new(REGIONS * REGION) }
    }

    /// A mirror whose regions are synced but the last, which keeps the
    /// switch-over from beginning: its copy is in flight and never ends.
    fn almost_done() -> Bench {
        let mut map = MemoryMap::new(REGIONS, Stored::Synced);
        map.set(REGIONS - 1, Stored::Late);
        let now = Nanos::from_secs(1);
        let mirror = Mirror::new(now, Bench::config(), Counted::new(map));
        let mut bench = Bench { mirror, now, asked: Vec::new() };
        bench.tell(Event::Tick);
        bench
    }

    fn tell(&mut self, event: Event) -> &[Action] {
        self.asked.clear();
        self.mirror.handle(self.now, event, &mut self.asked);
        &self.asked
    }

    fn after(&mut self, span: Nanos) -> &mut Bench {
        self.now = self.now.plus(span);
        self
    }

    /// A guest write of one block in `region`.
    fn write(&mut self, id: u64, region: u64) -> &[Action] {
        let range = ByteRange::new(region * REGION, 4096);
        self.arrive(id, RequestKind::Write, range)
    }

    fn arrive(&mut self, id: u64, kind: RequestKind, range: ByteRange) -> &[Action] {
        self.tell(Event::Arrived(Request { id: RequestId(id), kind, range }))
    }

    fn source_done(&mut self, id: u64) -> &[Action] {
        self.tell(Event::SourceDone { id: RequestId(id), ok: true })
    }

    fn destination_done(&mut self, id: u64) -> &[Action] {
        self.tell(Event::DestinationDone { id: RequestId(id), result: Ok(()) })
    }

    fn jobs(&self) -> Vec<Job> {
        let job = |action: &Action| match action {
            Action::Start(job) => Some(*job),
            _ => None,
        };
        self.asked.iter().filter_map(job).collect()
    }

    fn copied(&mut self, job: Job) -> &[Action] {
        let outcome = Outcome::Copied { written: job.range.len };
        self.tell(Event::JobDone { job: job.id, outcome })
    }

    fn stored(&self, region: u64) -> Stored {
        self.mirror.map().get(region)
    }

    /// Brings a fully synced mirror to the step in which the commit is asked for.
    fn reach_commit(&mut self) {
        assert_eq!(self.asked.last(), Some(&Action::FlushDestination));
        assert_eq!(self.tell(Event::Flushed(Ok(()))), [Action::Prepare]);
        self.tell(Event::Prepared(true));
        assert!(self.mirror.holding());
        assert_eq!(self.asked.last(), Some(&Action::FlushDestination));
        assert_eq!(self.tell(Event::Flushed(Ok(()))), [Action::Seal]);
        assert_eq!(self.tell(Event::Sealed(Ok(()))), [Action::Commit]);
    }
}

fn source(id: u64) -> Action {
    Action::Source(RequestId(id))
}

fn destination(id: u64) -> Action {
    Action::Destination(RequestId(id))
}

fn answer(id: u64) -> Action {
    Action::Answer(RequestId(id))
}

#[test]
fn a_write_to_a_synced_region_goes_to_both_and_is_answered_when_both_are_done() {
    let mut bench = Bench::almost_done();
    assert_eq!(bench.write(1, 0), [source(1), destination(1)]);
    assert_eq!(bench.stored(0), Stored::Late, "a crash now would find the sides unequal");
    assert_eq!(bench.source_done(1), []);
    assert_eq!(bench.destination_done(1), [answer(1)]);
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
fn a_destination_error_pauses_with_the_reason_and_the_guest_sees_nothing() {
    let mut bench = Bench::almost_done();
    bench.write(1, 0);
    let full = Event::DestinationDone { id: RequestId(1), result: Err(Fault::Full) };
    let reason = PauseReason::Destination(Fault::Full);
    assert_eq!(bench.tell(full), [Action::Notice(Notice::Paused(reason))]);
    assert_eq!(bench.source_done(1), [answer(1)]);
    assert_eq!(bench.write(2, 0), [source(2)], "paused: the source alone");
    assert_eq!(bench.mirror.progress().phase, Phase::Paused(reason));
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

#[test]
fn a_destination_that_never_answers_pauses_the_migration() {
    let mut bench = Bench::almost_done();
    bench.after(Nanos::from_secs(10)).tell(Event::Tick);
    let phase = bench.mirror.progress().phase;
    assert!(matches!(phase, Phase::Paused(PauseReason::DestinationTimedOut(_))));
}

#[test]
fn a_destination_out_of_reach_is_lost_after_two_seconds_and_not_before() {
    let lost = Phase::Paused(PauseReason::Destination(Fault::Lost));
    let mut bench = Bench::almost_done();
    bench.tell(Event::DestinationInReach(false));
    bench.after(Nanos::from_millis(1900)).tell(Event::Tick);
    assert_eq!(bench.mirror.progress().phase, Phase::Copying);
    bench.tell(Event::DestinationInReach(true));
    bench.tell(Event::DestinationInReach(false));
    bench.after(Nanos::from_millis(1900)).tell(Event::Tick);
    assert_eq!(bench.mirror.progress().phase, Phase::Copying, "each outage for itself");
    bench.after(Nanos::from_millis(100)).tell(Event::Tick);
    assert_eq!(bench.mirror.progress().phase, lost);
    assert_eq!(bench.mirror.deadline(), None);
    // Resumed, it has as long again to come back.
    bench.after(Nanos::from_secs(60)).tell(Event::Control(Control::Resume));
    bench.after(Nanos::from_secs(1)).tell(Event::Tick);
    assert_eq!(bench.mirror.progress().phase, Phase::Copying);
    bench.after(Nanos::from_secs(1)).tell(Event::Tick);
    assert_eq!(bench.mirror.progress().phase, lost);
    bench.tell(Event::DestinationInReach(true));
    bench.tell(Event::Control(Control::Resume));
    bench.after(Nanos::from_secs(5)).tell(Event::Tick);
    assert_eq!(bench.mirror.progress().phase, Phase::Copying);
}

#[test]
fn a_destination_that_is_lost_during_the_commit_changes_nothing() {
    let mut bench = Bench::with(Stored::Synced, Bench::config());
    bench.tell(Event::Tick);
    bench.reach_commit();
    bench.tell(Event::DestinationInReach(false));
    assert_eq!(bench.mirror.deadline(), None, "the commit's answer decides");
    assert_eq!(bench.after(Nanos::from_secs(3)).tell(Event::Tick), []);
    bench.tell(Event::Committed(Commit::Refused));
    let phase = bench.mirror.progress().phase;
    assert_eq!(phase, Phase::Paused(PauseReason::Destination(Fault::Lost)));
}

#[test]
fn a_switch_over_holds_requests_and_hands_them_to_the_destination() {
    let mut bench = Bench::with(Stored::Synced, Bench::config());
    bench.tell(Event::Tick);
    bench.reach_commit();
    assert_eq!(bench.write(1, 0), []);
    bench.after(Nanos::from_millis(3));
    let moved = Action::Moved(RequestId(1));
    assert_eq!(
        bench.tell(Event::Committed(Commit::Durable)),
        [moved, Action::Ended(End::Completed)]
    );
    assert_eq!(bench.mirror.progress().held, Some(Nanos::from_millis(3)));
}

#[test]
fn a_switch_over_past_its_budget_is_undone_and_tried_again() {
    let mut bench = Bench::with(Stored::Synced, Bench::config());
    bench.tell(Event::Tick);
    bench.tell(Event::Flushed(Ok(())));
    bench.tell(Event::Prepared(true));
    bench.write(1, 0);
    bench.after(HOLD_BUDGET).tell(Event::Tick);
    let undone = Action::Notice(Notice::SwitchOverUndone { held: HOLD_BUDGET });
    assert_eq!(bench.asked, [undone, source(1), destination(1)]);
    // The flush that was under way must be answered before the next attempt.
    bench.source_done(1);
    bench.destination_done(1);
    assert_eq!(bench.tell(Event::Flushed(Ok(()))), []);
    bench.after(Nanos::from_secs(5)).tell(Event::Tick);
    assert_eq!(bench.asked, [Action::FlushDestination]);
}

#[test]
fn a_seal_that_comes_too_late_is_taken_back() {
    let mut bench = Bench::with(Stored::Synced, Bench::config());
    bench.tell(Event::Tick);
    bench.tell(Event::Flushed(Ok(())));
    bench.tell(Event::Prepared(true));
    assert_eq!(bench.tell(Event::Flushed(Ok(()))), [Action::Seal]);
    bench.after(HOLD_BUDGET).tell(Event::Tick);
    assert!(!bench.mirror.holding());
    assert_eq!(bench.tell(Event::Sealed(Ok(()))), [Action::Unseal]);
}

#[test]
fn a_commit_that_was_asked_for_is_never_undone() {
    let mut bench = Bench::with(Stored::Synced, Bench::config());
    bench.tell(Event::Tick);
    bench.reach_commit();
    bench.after(HOLD_BUDGET).tell(Event::Tick);
    assert_eq!(bench.tell(Event::Control(Control::Cancel)), []);
    assert_eq!(bench.tell(Event::Control(Control::Pause)), []);
    assert!(bench.mirror.holding());
    assert_eq!(
        bench.tell(Event::Committed(Commit::Durable)),
        [Action::Ended(End::Completed)]
    );
}

#[test]
fn a_commit_that_failed_gives_the_guest_back_to_the_source() {
    let mut bench = Bench::with(Stored::Synced, Bench::config());
    bench.tell(Event::Tick);
    bench.reach_commit();
    bench.write(1, 0);
    bench.tell(Event::Committed(Commit::Failed));
    assert!(bench.asked.contains(&Action::Unseal) && bench.asked.contains(&source(1)));
    assert_eq!(bench.mirror.progress().phase, Phase::Paused(PauseReason::StateStore));
}

#[test]
fn a_commit_that_is_refused_gives_the_guest_back_and_is_tried_again() {
    let mut bench = Bench::with(Stored::Synced, Bench::config());
    bench.tell(Event::Tick);
    bench.reach_commit();
    bench.write(1, 0);
    bench.tell(Event::Committed(Commit::Refused));
    assert!(bench.asked.contains(&Action::Unseal) && bench.asked.contains(&source(1)));
    bench.source_done(1);
    bench.destination_done(1);
    bench.after(Nanos::from_secs(5)).tell(Event::Tick);
    bench.reach_commit();
    assert_eq!(
        bench.tell(Event::Committed(Commit::Durable)),
        [Action::Ended(End::Completed)]
    );
}

#[test]
fn a_pause_during_a_commit_that_is_refused_holds_unless_it_was_taken_back() {
    for taken_back in [false, true] {
        let mut bench = Bench::with(Stored::Synced, Bench::config());
        bench.tell(Event::Tick);
        bench.reach_commit();
        bench.tell(Event::Control(Control::Pause));
        if taken_back {
            bench.tell(Event::Control(Control::Resume));
        }
        bench.tell(Event::Committed(Commit::Refused));
        let paused = bench.mirror.progress().phase == Phase::Paused(PauseReason::Asked);
        assert_eq!(paused, !taken_back);
    }
}

#[test]
fn a_flush_that_is_never_answered_pauses_once_and_asks_for_no_more_time() {
    let mut bench = Bench::with(Stored::Synced, Bench::config());
    bench.tell(Event::Tick);
    bench.after(Nanos::from_secs(120)).tell(Event::Tick);
    let phase = bench.mirror.progress().phase;
    assert!(matches!(phase, Phase::Paused(PauseReason::DestinationTimedOut(_))));
    assert_eq!(bench.mirror.deadline(), None);
    bench.tell(Event::Control(Control::Cancel));
    assert_eq!(bench.mirror.deadline(), None);
}

#[test]
fn after_a_flush_that_failed_nothing_that_was_copied_is_believed() {
    let mut bench = Bench::with(Stored::Synced, Bench::config());
    bench.tell(Event::Tick);
    bench.tell(Event::Flushed(Err(Fault::Error(5))));
    assert!((0..REGIONS).all(|region| bench.stored(region) == Stored::Late));
    bench.tell(Event::Control(Control::Resume));
    assert!(bench.jobs().iter().all(|job| matches!(job.kind, JobKind::Copy { .. })));
}

#[test]
fn a_destination_that_may_have_forgotten_is_compared() {
    let mut bench = Bench::with(Stored::Synced, Bench::config());
    bench.tell(Event::Tick);
    bench.tell(Event::Flushed(Ok(())));
    bench.tell(Event::Prepared(true));
    assert!(bench.mirror.holding());
    bench.tell(Event::DestinationForgot);
    assert!(!bench.mirror.holding());
    assert!(bench.jobs().iter().all(|job| job.kind == JobKind::Compare));
}

#[test]
fn a_cancel_during_a_commit_that_fails_is_not_forgotten() {
    let mut bench = Bench::with(Stored::Synced, Bench::config());
    bench.tell(Event::Tick);
    bench.reach_commit();
    bench.tell(Event::Control(Control::Cancel));
    bench.tell(Event::Committed(Commit::Failed));
    assert!(bench.asked.contains(&Action::Ended(End::Cancelled)));
}

#[test]
fn cancelling_leaves_the_source_as_it_was() {
    let mut bench = Bench::almost_done();
    bench.write(1, 0);
    assert_eq!(
        bench.tell(Event::Control(Control::Cancel)),
        [Action::Ended(End::Cancelled)]
    );
    assert_eq!(bench.source_done(1), [answer(1)]);
    assert_eq!(bench.write(2, 0), [source(2)]);
}

#[test]
fn holes_are_not_copied_to_a_destination_that_reads_as_zeroes() {
    let config = Config { scan: true, reads_zero: true, ..Bench::config() };
    let mut bench = Bench::with(Stored::Absent, config);
    bench.tell(Event::Tick);
    let [scan] = bench.jobs()[..] else { panic!("the scan comes first") };
    assert_eq!(scan.kind, JobKind::Scan);
    let hole = ByteRange::new(REGION, (REGIONS - 1) * REGION);
    bench.tell(Event::JobDone { job: scan.id, outcome: Outcome::Scanned(vec![hole]) });
    let [copy] = bench.jobs()[..] else { panic!("only the data is copied") };
    assert_eq!(copy.kind, JobKind::Copy { fresh: true });
    assert_eq!(copy.range, ByteRange::new(0, REGION));
}

#[test]
fn a_hole_that_is_written_during_the_scan_is_copied() {
    let config = Config { scan: true, reads_zero: true, ..Bench::config() };
    let mut bench = Bench::with(Stored::Absent, config);
    bench.tell(Event::Tick);
    let scan = bench.jobs()[0];
    bench.write(1, 3);
    bench.source_done(1);
    let hole = ByteRange::new(0, REGIONS * REGION);
    bench.tell(Event::JobDone { job: scan.id, outcome: Outcome::Scanned(vec![hole]) });
    let [copy] = bench.jobs()[..] else { panic!("one region is copied") };
    assert_eq!(copy.range, ByteRange::new(3 * REGION, REGION));
}

#[test]
fn holes_are_zeroed_on_a_destination_that_holds_something_else() {
    let mut bench = Bench::with(Stored::Late, Config { scan: true, ..Bench::config() });
    bench.tell(Event::Tick);
    let scan = bench.jobs()[0];
    let hole = ByteRange::new(0, REGIONS * REGION);
    bench.tell(Event::JobDone { job: scan.id, outcome: Outcome::Scanned(vec![hole]) });
    assert!(bench.jobs().iter().all(|job| job.kind == JobKind::Zero));
}

#[test]
fn after_a_power_loss_regions_are_compared_and_only_what_differs_is_copied() {
    let mut bench = Bench::with(Stored::Suspect, Bench::config());
    bench.tell(Event::Tick);
    let jobs = bench.jobs();
    assert!(jobs.iter().all(|job| job.kind == JobKind::Compare));
    let differing = vec![ByteRange::new(jobs[0].range.offset, 512)];
    bench.tell(Event::JobDone {
        job: jobs[0].id,
        outcome: Outcome::Compared { differing },
    });
    let [copy] = bench.jobs()[..] else { panic!("one region differs") };
    assert_eq!(copy.range, ByteRange::new(0, REGION));
}

#[test]
fn verification_copies_what_differs_and_compares_it_again() {
    let config = Config { verify: true, ..Bench::config() };
    let mut bench = Bench::with(Stored::Synced, config);
    bench.tell(Event::Tick);
    let compare = bench.jobs()[0];
    let differing = vec![ByteRange::new(REGION, 512)];
    bench.tell(Event::JobDone {
        job: compare.id,
        outcome: Outcome::Compared { differing },
    });
    assert!(bench.asked.contains(&Action::Notice(Notice::Differing { regions: 1 })));
    let [copy] = bench.jobs()[..] else { panic!("what differs is copied") };
    assert_eq!(copy.range, ByteRange::new(REGION, REGION));
    bench.copied(copy);
    let [again] = bench.jobs()[..] else { panic!("and compared again") };
    assert_eq!((again.kind, again.range), (JobKind::Compare, copy.range));
    bench.tell(Event::JobDone {
        job: again.id,
        outcome: Outcome::Compared { differing: vec![] },
    });
    assert_eq!(bench.asked, [Action::FlushDestination]);
}

#[test]
fn a_source_that_cannot_be_read_is_tried_again_and_then_pauses() {
    let mut bench = Bench::with(Stored::Late, Bench::config());
    bench.tell(Event::Tick);
    let mut jobs = bench.jobs();
    for _ in 0..3 {
        let job = jobs.remove(0);
        let outcome = Outcome::SourceFailed(5);
        bench.tell(Event::JobDone { job: job.id, outcome });
        jobs.extend(bench.jobs());
    }
    assert_eq!(bench.mirror.progress().phase, Phase::Paused(PauseReason::Source(5)));
}

#[test]
fn a_rate_limits_how_often_chunks_start() {
    let config = Config { rate: Some(REGION * 10), ..Bench::config() };
    let mut bench = Bench::with(Stored::Late, config);
    bench.tell(Event::Tick);
    assert_eq!(bench.jobs().len(), 1, "one chunk of debt");
    let next = bench.mirror.deadline().expect("the next chunk has its time");
    assert_eq!(next.since(bench.now).0 / 1_000_000, 100, "64 KiB at 640 KiB/s");
}
