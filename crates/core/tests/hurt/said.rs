//! What is said of disks that turn slow and well, and how often.

use sterna_core::hurt::{STEP, Said, Turn, Watches};
use sterna_core::measure::Summary;
use sterna_core::{DiskId, Nanos};

use super::{DISK, at, free};

/// What is said of a disk that does one thing after another.
fn said(steps: impl Iterator<Item = Summary>) -> Vec<Said> {
    let (mut watches, mut now, mut said) = (Watches::default(), Nanos(0), Vec::new());
    for did in steps {
        now = now.plus(STEP);
        said.extend(watches.step(now, &[(DISK, free(did))]));
    }
    said
}

#[test]
fn what_was_said_to_begin_is_said_to_end_however_often_it_happens() {
    // Hurt for half a minute out of each minute, for five hours.
    let usual = std::iter::repeat_n(at(500), 200);
    let waves = (0..3_600).map(|step| if step % 12 < 6 { at(9_000) } else { at(500) });
    let said = said(usual.chain(waves));
    let rose = said.iter().filter(|one| matches!(one.turn, Turn::Rose(_))).count();
    let fell = said.iter().filter(|one| matches!(one.turn, Turn::Fell { .. })).count();
    assert!((10..=20).contains(&rose), "eight at once, six an hour: {rose}");
    assert!(rose - fell <= 1, "{rose} {fell}");
    let unsaid: u32 = said.iter().map(|one| one.unsaid).sum();
    assert!(unsaid > 200, "the others are counted: {unsaid}");
}

#[test]
fn a_load_that_was_there_before_the_daemon_does_not_begin() {
    let said = said(std::iter::repeat_n(at(500), 50));
    assert_eq!(said, []);
}

#[test]
fn a_thousand_disks_that_turn_slow_at_once_do_not_flood() {
    let (mut watches, mut now) = (Watches::default(), Nanos(0));
    let all = |did: Summary| -> Vec<_> {
        (0..1_000).map(|disk| (DiskId(disk), free(did))).collect()
    };
    let mut step = |did: Summary, steps: usize| {
        let mut said = 0;
        for _ in 0..steps {
            now = now.plus(STEP);
            said += watches.step(now, &all(did)).len();
        }
        (said, watches.hurt().len())
    };
    assert_eq!(step(at(500), 100), (0, 0));
    let (said, hurt) = step(at(9_000), 2);
    assert_eq!(hurt, 1_000);
    assert!((1..=60).contains(&said), "{said}");
}
