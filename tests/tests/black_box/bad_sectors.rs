//! A source that cannot read some of its sectors: these stay behind, and nothing else; the
//! operator learns which they are, and can move the rest knowingly.

use serde_json::{Value, json};
use sterna_tests::images::write_image;
use sterna_tests::wait::seconds;
use sterna_tests::{Forgetful, MIB, Stage};

const SIZE: u64 = 16 * MIB;
const SECTOR: usize = 512;
/// Two of them in one region, with one between that can be read.
const BAD: [u64; 3] = [5_000_192, 5_001_216, 9_000_448];

/// A disk `d` on such a source.
struct Scene {
    stage: Stage,
    source: Forgetful,
    content: Vec<u8>,
}

impl Scene {
    fn new() -> Scene {
        let stage = Stage::new();
        let image = stage.scratch.path("source.raw");
        write_image(&image, SIZE, SIZE);
        let content = std::fs::read(&image).expect("read the source");
        let source = Forgetful::start(&stage.scratch, "bad", SIZE);
        source.holds(&content, &BAD);
        stage.datastore("bad", source.location());
        stage
            .daemon
            .sterna(&format!("disk import d --on bad {}", source.location()))
            .ok();
        Scene { stage, source, content }
    }

    /// What the source holds, with zeroes for what cannot be read.
    fn readable(&self) -> Vec<u8> {
        let mut bytes = self.content.clone();
        for offset in BAD {
            bytes[offset as usize..][..SECTOR].fill(0);
        }
        bytes
    }

    fn moved(&self) -> Vec<u8> {
        std::fs::read(self.stage.scratch.path("here").join("d.raw"))
            .expect("the new image")
    }

    /// The move stands still in the end, for what cannot be read.
    #[track_caller]
    fn pauses(&self) -> u64 {
        let id = self.stage.daemon.migrate("d --to here");
        let paused = self.stage.daemon.wait_for(id, "paused", seconds(60));
        let reason = paused["reason"].as_str().expect("a reason");
        assert!(reason.contains("1536 bytes") && reason.contains("5000192"), "{reason}");
        assert_eq!(paused["bad_sectors"], listed());
        id
    }
}

fn listed() -> Value {
    let spans = BAD.map(|offset| json!({ "offset": offset, "length": SECTOR }));
    json!({ "places": 3, "bytes": 3 * SECTOR, "listed": spans })
}

#[test]
fn they_alone_stay_behind_and_the_rest_moves_knowingly() {
    let mut scene = Scene::new();
    let id = scene.pauses();
    let shown = scene.stage.daemon.sterna(&format!("migration show {id}")).ok().stdout;
    assert!(shown.contains("512 bytes at 9000448"), "{shown}");
    // Their neighbours are copied.
    assert!(scene.moved() == scene.readable(), "the rest is copied");
    // Nothing is forgotten when the daemon is killed, and nothing is left behind unasked.
    scene.stage.daemon.kill();
    scene.stage.daemon.restart();
    scene.stage.daemon.wait_for(id, "paused", seconds(60));
    scene.stage.daemon.sterna(&format!("migration resume {id} --skip-bad-sectors")).ok();
    let done = scene.stage.daemon.wait_for(id, "completed", seconds(60));
    assert_eq!(done["bad_sectors"], listed());
    assert!(scene.moved() == scene.readable());
    // The report has them for ever.
    scene.stage.daemon.kill();
    scene.stage.daemon.restart();
    assert_eq!(scene.stage.daemon.migration(id)["bad_sectors"], listed());
}

#[test]
fn what_can_be_read_again_is_moved_like_anything_else() {
    let scene = Scene::new();
    let id = scene.pauses();
    scene.source.holds(&scene.content, &[]);
    scene.stage.daemon.sterna(&format!("migration resume {id}")).ok();
    let done = scene.stage.daemon.wait_for(id, "completed", seconds(60));
    assert_eq!(done["bad_sectors"], Value::Null);
    assert!(scene.moved() == scene.content);
}
