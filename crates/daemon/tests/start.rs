//! What a start waits for, and what it must not believe.

mod site;

use std::net::TcpListener;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use site::Site;
use sterna_api::MigrationState;

const MIB: u64 = 1 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn a_hung_datastore_keeps_the_disks_of_others_waiting_for_moments_only() {
    let mut site = Site::with_datastores().await;
    site.imported("db", MIB).await;
    site.down().await;
    // The kernel takes connections; nobody ever answers them.
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let location = format!("nbd://{}/x", mute.local_addr().unwrap());
    site.record_datastore("hung", &location);
    let since = Instant::now();
    site.up().await;
    let took = since.elapsed();
    assert!(took < Duration::from_millis(3500), "the start took {took:?}");
    assert!(site.client().disk("db").await.unwrap().served);
    assert!(site.client().datastore("hung").await.unwrap().problem.is_some());
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_while_the_destination_is_away_reaches_it() {
    let mut site = Site::with_datastores().await;
    let mut bytes = site.imported("db", 8 * MIB).await;
    let id = site.slow_migration("db").await;
    site.under_way(id).await;
    site.down().await;
    std::fs::rename(site.slow(""), site.away()).unwrap();
    site.up().await;
    let paused = site.client().migration(id).await.unwrap();
    assert_eq!(paused.state, MigrationState::Paused, "{paused:?}");
    // What a guest writes now goes to the source, and no mirror sees it.
    let source = std::fs::OpenOptions::new().write(true).open(site.fast("db.raw"));
    source.unwrap().write_all_at(&[7; 4096], 0).unwrap();
    bytes[..4096].fill(7);
    std::fs::rename(site.away(), site.slow("")).unwrap();
    site.client().set_rate(id, None).await.unwrap();
    assert_eq!(site.ended(id).await.state, MigrationState::Completed);
    assert!(std::fs::read(site.slow("db.raw")).unwrap() == bytes);
    site.stop().await;
}
