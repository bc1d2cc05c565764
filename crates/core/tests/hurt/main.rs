//! Which disks are hurt and which are slower than usual, since when, and until when.

mod neighbours;
mod said;

use sterna_core::hurt::{
    Did, End, Held, Hurt, KeptUsual, STEP, Turn, Usual, Watch, Watches,
};
use sterna_core::measure::{Side, Summary};
use sterna_core::{DiskId, Nanos};

const DISK: DiskId = DiskId(7);

/// A step in which so many reads of a length took so long each.
fn reads(count: u64, length: u64, micros: u64) -> Summary {
    let took = (count > 0).then_some(Nanos::from_micros(micros));
    let bytes = (count * length) as f64;
    let read = Side { operations: count, bytes, response: took };
    Summary { span: STEP, read, service: took, ..Summary::default() }
}

/// Requests of 4 KiB, 100 a second.
fn at(micros: u64) -> Summary {
    reads(500, 4096, micros)
}

/// A step of a disk that nobody holds back, and to which nothing is promised.
fn free(summary: Summary) -> Did {
    Did { summary, ..Did::default() }
}

/// A disk, and the time.
#[derive(Default)]
struct Stage {
    watch: Watch,
    now: Nanos,
}

impl Stage {
    /// A disk whose requests have taken so long for ten minutes.
    fn usually(micros: u64) -> Stage {
        let mut stage = Stage::default();
        for _ in 0..120 {
            stage.step(&at(micros), None);
        }
        stage
    }

    fn step(&mut self, did: &Summary, promised: Option<Nanos>) -> Vec<Turn> {
        self.step_held(&Did { summary: *did, promised, held: None })
    }

    fn step_held(&mut self, did: &Did) -> Vec<Turn> {
        self.now = self.now.plus(STEP);
        self.watch.step(self.now, did).into_iter().flatten().collect()
    }

    fn steps(&mut self, count: usize, did: &Summary) -> Vec<Turn> {
        (0..count).flat_map(|_| self.step(did, None)).collect()
    }
}

#[test]
fn two_slow_steps_hurt_and_six_others_heal() {
    let mut stage = Stage::usually(500);
    let before = stage.now;
    assert_eq!(stage.steps(1, &at(8_000)), [], "one slow step is chance");
    let turns = stage.steps(1, &at(8_000));
    let [Turn::Rose(hurt)] = turns[..] else { panic!("{turns:?}") };
    assert_eq!((hurt.since, hurt.took), (before, Some(Nanos::from_millis(8))));
    let usual = hurt.usual.unwrap().0 as f64;
    assert!((450_000.0..550_000.0).contains(&usual), "{usual}");
    stage.steps(1, &at(9_000));
    assert_eq!(stage.steps(5, &at(500)), [], "it may come back");
    let took = stage.watch.hurt().unwrap().took;
    assert_eq!(took, Some(Nanos::from_micros(500)), "but this is what it takes now");
    let turns = stage.steps(1, &at(500));
    let [Turn::Fell { lasted, worst, end }] = turns[..] else { panic!("{turns:?}") };
    assert_eq!((lasted, end), (Nanos::from_secs(15), End::Well));
    assert_eq!(worst, Some(Nanos::from_millis(9)));
    assert_eq!(stage.watch.hurt(), None);
}

#[test]
fn between_slow_and_well_nothing_changes() {
    let mut stage = Stage::usually(1_000);
    for _ in 0..50 {
        stage.steps(1, &at(3_500));
        assert_eq!(
            stage.steps(1, &at(2_000)),
            [],
            "not hurt: no two slow steps in a row"
        );
    }
    assert_eq!(stage.steps(2, &at(4_000)).len(), 1);
    assert_eq!(stage.steps(50, &at(2_000)), [], "hurt: it is not well yet");
}

#[test]
fn a_disk_that_takes_twice_as_long_is_slower_than_usual_before_it_is_hurt() {
    let mut stage = Stage::usually(3_300);
    let before = stage.now;
    stage.steps(1, &at(8_000));
    assert_eq!(stage.watch.slower(), None, "one step is chance");
    assert_eq!(stage.steps(7, &at(8_000)), [], "and nothing is said of it");
    let slower = stage.watch.slower().unwrap();
    assert_eq!((slower.since, slower.took), (before, Nanos::from_millis(8)));
    let usual = slower.usual.as_millis_f64();
    assert!((3.0..3.6).contains(&usual), "{usual}");
    stage.steps(5, &at(3_300));
    assert!(stage.watch.slower().is_some(), "it may come back");
    stage.steps(1, &at(3_300));
    assert_eq!(stage.watch.slower(), None);
}

#[test]
fn a_disk_that_is_hurt_is_not_slower_as_well_however_much_is_promised() {
    let mut stage = Stage::usually(3_300);
    for _ in 0..3 {
        stage.step(&at(12_000), Some(Nanos::from_millis(15)));
    }
    assert!(stage.watch.hurt().is_some());
    assert_eq!(stage.watch.slower(), None);
}

#[test]
fn a_minute_without_requests_ends_being_slower() {
    let mut stage = Stage::usually(1_000);
    stage.steps(3, &at(2_500));
    stage.steps(11, &reads(0, 0, 0));
    assert!(stage.watch.slower().is_some());
    stage.steps(1, &reads(0, 0, 0));
    assert_eq!(stage.watch.slower(), None);
}

#[test]
fn what_is_usual_says_since_when_it_is_learned_and_how_much_is_missing() {
    let mut stage = Stage::default();
    assert_eq!(stage.watch.usual().since(), None);
    stage.steps(12, &reads(0, 0, 0));
    let began = stage.now;
    stage.steps(24, &at(500));
    let usual = stage.watch.usual();
    assert_eq!(usual.since(), Some(began));
    let [kind] = usual.kinds()[..] else { panic!() };
    assert_eq!((kind.writes, kind.longest, kind.response), (false, Some(16 << 10), None));
    let (learned, needed) = (kind.learned.as_secs_f64(), Usual::NEEDED.as_secs_f64());
    assert!((119.0..121.0).contains(&learned) && needed == 300.0, "{learned} {needed}");
    stage.steps(40, &at(500));
    let response = stage.watch.usual().kinds()[0].response.unwrap().as_millis_f64();
    assert!((0.45..0.55).contains(&response), "{response}");
}

#[test]
fn what_was_learned_comes_back_as_it_was() {
    let stage = Stage::usually(500);
    let kept = stage.watch.usual().kept().unwrap();
    let usual = Usual::restored(&kept);
    assert_eq!(usual.kinds()[0].response, stage.watch.usual().kinds()[0].response);
    assert_eq!(usual.since(), Some(Nanos(0)));
    assert_eq!(usual.rate(), stage.watch.usual().rate());
    assert_eq!(Usual::restored(&kept).kept(), Some(kept));
    let mut next = Stage { watch: Watch::knowing(usual), now: Nanos(0) };
    assert_eq!(next.steps(1, &at(8_000)), []);
    assert!(matches!(next.steps(1, &at(8_000))[0], Turn::Rose(_)), "at once");
}

#[test]
fn a_disk_that_is_not_served_for_a_while_keeps_what_is_usual_and_is_not_hurt() {
    let (mut watches, mut now) = (Watches::default(), Nanos(0));
    let mut step = |watches: &mut Watches, did: &[(DiskId, Did)]| {
        now = now.plus(STEP);
        watches.step(now, did);
    };
    for micros in std::iter::repeat_n(500, 100).chain([9_000; 3]) {
        step(&mut watches, &[(DISK, free(at(micros)))]);
    }
    assert_eq!(watches.hurt().len(), 1);
    step(&mut watches, &[]);
    assert_eq!(watches.hurt(), []);
    let next = Watches::knowing(&watches.kept());
    let usual = |it: &Watches| it.of(DISK).unwrap().usual().kinds()[0].response;
    assert!(usual(&next).is_some() && usual(&next) == usual(&watches));
    watches.forget_others(&[DiskId(9)].into());
    assert!(watches.of(DISK).is_none(), "it is no more");
}

#[test]
fn what_is_none_of_ours_is_learned_anew() {
    let levels = vec![(0, vec![1; 7]), (250, vec![600; 96])];
    let usual = Usual::restored(&KeptUsual { since: Nanos(7), levels });
    assert_eq!((usual.kinds().len(), usual.rate()), (0, None));
}

#[test]
fn less_load_than_usual_hurts_nobody_and_neither_does_more() {
    let mut stage = Stage::usually(1_000);
    assert_eq!(stage.steps(50, &reads(100, 4096, 1_000)), []);
    assert_eq!(stage.steps(50, &reads(5_000, 4096, 1_000)), []);
    let iops = stage.watch.usual().rate().unwrap();
    assert!((90.0..110.0).contains(&iops), "{iops}");
}

#[test]
fn long_requests_are_compared_with_long_ones() {
    let mut stage = Stage::usually(500);
    let long = reads(100, 1 << 20, 9_000);
    assert_eq!(stage.steps(200, &long), [], "a backup is no trouble");
    assert_eq!(stage.steps(1, &reads(100, 1 << 20, 40_000)), []);
    assert!(matches!(stage.steps(1, &reads(100, 1 << 20, 40_000))[..], [Turn::Rose(_)]));
}

#[test]
fn a_disk_is_not_judged_before_five_minutes_of_load() {
    let mut stage = Stage::default();
    stage.steps(50, &at(500));
    assert_eq!(stage.steps(5, &at(9_000)), []);
}

#[test]
fn microseconds_more_hurt_nobody() {
    let mut stage = Stage::usually(60);
    assert_eq!(stage.steps(50, &at(500)), []);
}

#[test]
fn a_missed_promise_hurts_whatever_is_usual() {
    let mut stage = Stage::usually(8_000);
    let promised = Some(Nanos::from_millis(5));
    stage.step(&at(8_000), promised);
    let made = stage.now;
    assert_eq!(stage.step(&at(8_000), promised), []);
    let turns = stage.step(&at(8_000), promised);
    let [Turn::Rose(hurt)] = turns[..] else { panic!("{turns:?}") };
    assert_eq!(hurt.promised, promised);
    assert_eq!(hurt.since, made, "the step in which it was promised was not wholly so");
    for _ in 0..5 {
        assert_eq!(stage.step(&at(4_000), promised), []);
        assert!(stage.watch.hurt().unwrap().recovers);
    }
    assert!(matches!(stage.step(&at(4_000), promised)[..], [Turn::Fell { .. }]));
}

#[test]
fn what_a_missed_promise_takes_is_not_learned_as_usual() {
    let mut stage = Stage::usually(4_800);
    let before = stage.watch.usual().kept();
    for _ in 0..300 {
        stage.step(&at(9_600), Some(Nanos::from_micros(6_600)));
    }
    let mut learned = Stage::usually(4_800);
    learned.steps(1, &at(9_600));
    let response = |stage: &Stage| stage.watch.usual().kinds()[0].response;
    assert_eq!(response(&stage), response(&learned));
    assert!(before.is_some() && stage.watch.hurt().is_some());
}

#[test]
fn a_promise_that_is_taken_back_hurts_nobody_any_more() {
    let mut stage = Stage::default();
    let promised = Some(Nanos::from_millis(5));
    stage.step(&at(8_000), promised);
    stage.step(&at(8_000), promised);
    let turns = stage.step(&at(8_000), promised);
    assert!(matches!(turns[..], [Turn::Rose(_)]), "{turns:?}");
    assert_eq!(stage.steps(5, &at(8_000)), []);
    let turns = stage.steps(1, &at(8_000));
    assert!(matches!(turns[..], [Turn::Fell { end: End::Well, .. }]), "{turns:?}");
}

/// Reads that wait so many milliseconds for a policy's sake, and take 6 ms at the device.
fn held(wait: u64, by: Held) -> Did {
    let (wait, service) = (Nanos::from_millis(wait), Nanos::from_millis(6));
    let took = at(wait.plus(service).0 / 1_000);
    let summary = Summary { queue: Some(wait), service: Some(service), ..took };
    Did { summary, promised: None, held: Some(by) }
}

#[test]
fn a_wait_that_a_policy_asks_for_hurts_nobody_and_is_told_as_the_client_feels_it() {
    for by in [Held::Limit, Held::Target] {
        let mut stage = Stage::usually(6_000);
        let began = stage.now;
        let usual = stage.watch.usual().kept();
        for _ in 0..100 {
            assert_eq!(stage.step_held(&held(150, by)), []);
        }
        assert_eq!((stage.watch.hurt(), stage.watch.slower()), (None, None));
        let slowed = stage.watch.slowed().unwrap();
        assert_eq!((slowed.since, slowed.took), (began, Nanos::from_millis(156)));
        assert_eq!(stage.watch.usual().kept(), usual, "it is not learned");
        stage.steps(2, &at(6_000));
        assert_eq!(stage.watch.slowed(), None);
    }
}

#[test]
fn a_limit_on_a_disk_that_is_hurt_makes_it_no_quicker() {
    let mut stage = Stage::usually(6_000);
    stage.steps(5, &at(98_000));
    assert_eq!(stage.step_held(&held(238, Held::Limit)), []);
    assert_eq!(stage.watch.hurt().unwrap().took, Some(Nanos::from_millis(244)));
    let turns = stage.step_held(&held(238, Held::Limit));
    let [Turn::Fell { worst, end: End::OnPurpose, .. }] = turns[..] else {
        panic!("{turns:?}")
    };
    assert_eq!(worst, Some(Nanos::from_millis(98)));
    assert!(stage.watch.slowed().is_some());
}

#[test]
fn a_step_on_purpose_and_a_recovery_are_not_added_up() {
    let mut stage = Stage::usually(6_000);
    stage.steps(5, &at(98_000));
    stage.steps(5, &at(6_000));
    assert_eq!(stage.step_held(&held(238, Held::Limit)), [], "the first of its kind");
    assert_eq!(stage.steps(5, &at(6_000)), [], "so it begins anew");
    let turns = stage.steps(1, &at(6_000));
    assert!(matches!(turns[..], [Turn::Fell { end: End::Well, .. }]), "{turns:?}");
}

#[test]
fn a_disk_that_is_held_for_another_class_and_misses_its_own_promise_is_hurt() {
    let mut stage = Stage::usually(6_000);
    let promised = Some(Nanos::from_millis(20));
    for _ in 0..3 {
        stage.step_held(&Did { promised, ..held(150, Held::Target) });
    }
    assert_eq!(stage.watch.hurt().unwrap().promised, promised);
    let mut own = Stage::usually(6_000);
    for _ in 0..3 {
        own.step_held(&Did { promised, ..held(150, Held::Limit) });
    }
    assert_eq!(own.watch.hurt(), None, "its own limit breaks no promise");
}

#[test]
fn a_limit_that_nobody_reaches_changes_nothing() {
    let mut stage = Stage::usually(6_000);
    let usual = stage.watch.usual().kept();
    stage.step_held(&held(0, Held::Limit));
    assert_ne!(stage.watch.usual().kept(), usual, "it is learned");
    let slow = Did { held: Some(Held::Limit), ..free(at(30_000)) };
    stage.step_held(&slow);
    assert!(matches!(stage.step_held(&slow)[..], [Turn::Rose(_)]));
}

#[test]
fn the_wait_for_a_policy_is_none_of_the_devices() {
    let Did { summary, .. } = held(150, Held::Limit);
    let waits = Summary { p95: Some(Nanos::from_millis(312)), ..summary };
    let there = waits.at_device();
    assert_eq!(there.read.response, Some(Nanos::from_millis(6)));
    assert_eq!(there.p95, Some(Nanos::from_millis(12)));
}

#[test]
fn requests_that_hang_hurt() {
    let mut stage = Stage::usually(500);
    let hangs = Summary { in_flight: 3, ..reads(0, 0, 0) };
    let turns = stage.steps(2, &hangs);
    assert!(matches!(turns[..], [Turn::Rose(Hurt { took: None, .. })]), "{turns:?}");
}

#[test]
fn a_pause_is_no_recovery_and_a_minute_without_requests_ends_it() {
    let mut stage = Stage::usually(500);
    stage.steps(2, &at(8_000));
    assert_eq!(stage.steps(11, &reads(0, 0, 0)), []);
    let turns = stage.steps(1, &reads(0, 0, 0));
    assert!(matches!(turns[0], Turn::Fell { end: End::Quiet, .. }), "{turns:?}");
}

#[test]
fn a_time_that_lasts_becomes_usual() {
    let mut stage = Stage::usually(500);
    let turns = stage.steps(3_000, &at(8_000));
    assert!(matches!(turns[..], [Turn::Rose(_), Turn::Fell { .. }]), "{turns:?}");
}

#[test]
fn a_load_begins_and_ends_once() {
    let mut stage = Stage::default();
    let turns = stage.steps(2, &at(500));
    assert_eq!(turns, [Turn::Began { iops: 100.0 }]);
    let mut turns = Vec::new();
    for _ in 0..20 {
        turns.extend(stage.steps(5, &reads(0, 0, 0)));
        turns.extend(stage.steps(1, &at(500)));
    }
    assert_eq!(turns, [], "a load with pauses is one load");
    let turns = stage.steps(12, &reads(0, 0, 0));
    assert_eq!(turns, [Turn::Ended { lasted: Nanos::from_secs(10 + 20 * 30) }]);
}
