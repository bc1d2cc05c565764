//! Guards through the API: what is refused, and what is said of one that waits.

mod site;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use site::{Site, refused};
use sterna_api::{AskGuard, GuardState, StartMigration};

const MIB: u64 = 1 << 20;

fn to_slow(disk: &str, guard: AskGuard) -> StartMigration {
    StartMigration { guard, ..site::to_slow(disk) }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_guard_can_hold_is_refused() {
    let site = Site::with_datastores().await;
    site.imported("db", MIB).await;
    let p99 = |micros| AskGuard { p99_us: Some(micros), ..AskGuard::default() };
    let by =
        |text: &str| AskGuard { finish_by: Some(text.into()), ..AskGuard::default() };
    for (guard, words) in [
        (AskGuard { keep: Some(1.5), ..AskGuard::default() }, "cannot keep"),
        (p99(0), "the minimum is 10.0 us"),
        (p99(20_000_000), "the maximum is 10.0 s"),
        (p99(u64::MAX), "the maximum is 10.0 s"),
        (by("yesterday"), "no time to finish by"),
        (by("9999-01-01 06:00"), "more than a year away"),
        (AskGuard { window: Some(another_day().into()), ..by("8h") }, "does not open"),
    ] {
        let message = refused(site.client().migrate(&to_slow("db", guard)).await);
        assert!(message.contains(words), "{message}");
    }
    assert!(site.client().migrations().await.unwrap().is_empty());
    site.stop().await;
}

/// A day on which nobody's clock is, whatever the zone.
fn another_day() -> &'static str {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    // The first of January 1970 was a Thursday; three days on.
    let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
    days[(now.as_secs() / 86_400 % 7) as usize]
}

#[tokio::test(flavor = "multi_thread")]
async fn not_a_byte_is_copied_before_the_schedule_opens() {
    let site = Site::with_datastores().await;
    site.imported("db", 8 * MIB).await;
    let window = Some(another_day().into());
    let guard = AskGuard { window, ..AskGuard::default() };
    let id = site.client().migrate(&to_slow("db", guard)).await.unwrap().id;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let shown = site.client().migration(id).await.unwrap();
    assert_eq!(shown.progress.unwrap().copied, 0);
    assert_eq!(shown.guard.unwrap().state, Some(GuardState::Closed));
    site.client().set_guard(id, &AskGuard::default()).await.unwrap();
    site.ended(id).await;
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_that_will_end_too_late_is_not_said_to_hold() {
    let site = Site::with_datastores().await;
    site.imported("db", 8 * MIB).await;
    let finish_by = Some("3s".into());
    let guard = AskGuard { finish_by, ..AskGuard::default() };
    // Two minutes' work.
    let slowly = StartMigration { rate: Some(64 << 10), ..to_slow("db", guard) };
    let id = site.client().migrate(&slowly).await.unwrap().id;
    let mut late = None;
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let guard = site.client().migration(id).await.unwrap().guard.unwrap();
        late = guard.late_s;
        if late.is_some() {
            assert_eq!(guard.state, Some(GuardState::Late));
        }
        // The copy begins faster than its rate, so by little at first.
        if late > Some(30.0) {
            break;
        }
    }
    assert!(late > Some(30.0), "{late:?}");
    // Nothing is held of one that stands still.
    site.client().pause(id).await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let guard = site.client().migration(id).await.unwrap().guard.unwrap();
    assert_eq!(guard.state, None);
    site.stop().await;
}
