//! Servers that come back with other bytes.

use sterna_core::DiskId;

use super::rig::LONG;
use super::*;
use crate::image::Opened;
use crate::sidecar::trailer;
use crate::sidecar::{Identity, Role};

const SIZE: u64 = 16 << 20;
/// Places that are not zeroes of which something has to be known.
const SEVERAL: usize = 3;
/// Where the sidecar is, if there is room for one.
const ROOM: u64 = SIZE + 65536;

/// A file in the place whose first bytes are all `byte`, with the sidecar of a disk.
fn export(place: &Place, name: &str, byte: u8, sidecar: Option<u128>) -> String {
    let path = place.directory.path().join(name);
    let mut bytes = vec![byte; SIZE as usize];
    if let Some(id) = sidecar {
        let (id, name, size) = (DiskId(id), name.to_owned(), SIZE);
        let identity = Identity { id, name, size, generation: 1, role: Role::Active };
        bytes.resize(ROOM as usize, 0);
        let record = identity.encode().unwrap();
        let blank = [0; trailer::TRAILER_LEN];
        let written = *trailer::steps(&blank, &record).last().unwrap();
        bytes[ROOM as usize - written.len()..].copy_from_slice(&written);
    }
    std::fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().to_owned()
}

fn serve(place: &Place, file: &str) -> Server {
    Server::nbdkit(&place.socket, &["file", file])
}

fn open(place: &Place, disk: u128) -> Rig {
    Rig::open_with(IoChoice::Auto, &place.uri, |opened| {
        opened.belong(DiskId(disk), SIZE).unwrap();
    })
}

fn strength(rig: &Rig) -> usize {
    rig.image.memory().map_or(0, |memory| memory.witnesses.strength())
}

/// Waits until an export is known by what it holds.
fn becomes_known(rig: &mut Rig) {
    rig.run_until(|rig| strength(rig) >= 2 * SEVERAL);
}

#[test]
fn another_export_is_not_used_and_the_right_one_is_waited_for() {
    for room in [false, true] {
        let place = place();
        let id = |id| Some(id).filter(|_| room);
        let (right, wrong) =
            (export(&place, "right", 1, id(1)), export(&place, "wrong", 2, id(2)));
        let server = serve(&place, &right);
        let mut rig = open(&place, 1);
        if !room {
            becomes_known(&mut rig);
        }
        server.kill();
        let before = std::fs::read(&wrong).unwrap();
        let server = serve(&place, &wrong);
        let buf = rig.buffer(4096);
        buf.zero();
        let write = rig.submit(ImageOp::Write { offset: 0, buf, fua: true });
        rig.run_until(|rig| rig.image.another_since().is_some());
        rig.run_for(Duration::from_millis(1200));
        assert!(rig.take(write).is_none() && !rig.image.is_in_reach());
        server.kill();
        assert!(std::fs::read(&wrong).unwrap() == before, "it is as it was");
        let _server = serve(&place, &right);
        assert_eq!(rig.wait(write), Ok(Done::Ok));
        assert_eq!(rig.image.another_since(), None);
        assert!(!rig.image.has_gone_back());
        assert_eq!(rig.read(4096, 512), [1; 512]);
        rig.close();
    }
}

#[test]
fn an_older_state_is_used_and_told_once() {
    let place = place();
    let path = export(&place, "image", 1, None);
    let server = serve(&place, &path);
    let mut rig = open(&place, 1);
    becomes_known(&mut rig);
    let older = std::fs::read(&path).unwrap();
    let end = Instant::now() + LONG;
    // Half of it changes, and becomes known.
    loop {
        assert!(Instant::now() < end, "nothing is known of what was written");
        for at in 0..SIZE / 2 / MIB as u64 {
            assert_eq!(rig.write(at * MIB as u64, &[3; MIB], false), Ok(Done::Ok));
        }
        assert_eq!(rig.call(ImageOp::Flush), Ok(Done::Ok));
        rig.run_for(Duration::from_millis(500));
        if rig.image.memory().is_some_and(|memory| knows_half(&memory)) {
            break;
        }
    }
    server.kill();
    rig.run_until(|rig| !rig.image.is_in_reach());
    std::fs::write(&path, older).unwrap();
    let _server = serve(&place, &path);
    assert_eq!(rig.read(0, 512), [1; 512]);
    assert!(rig.image.has_gone_back() && !rig.image.has_gone_back());
    assert_eq!(rig.image.another_since(), None);
    rig.close();
}

/// Whether places of the half that was written are known, and of the other one.
fn knows_half(memory: &Memory) -> bool {
    let questions = memory.witnesses.questions();
    let written = questions.iter().filter(|it| it.range.offset < SIZE / 2).count();
    written >= SEVERAL && questions.len() - written >= questions.len() / 4
}

#[test]
fn the_same_server_is_known_again_whenever_it_comes_back() {
    let place = place();
    let path = export(&place, "image", 1, Some(1));
    let mut server = serve(&place, &path);
    let mut rig = open(&place, 1);
    let mut random = Random(5);
    for round in 0..6 {
        let mut waiting = Vec::new();
        for _ in 0..200 {
            let buf = rig.buffer(4096);
            buf.with_mut(|bytes| bytes.fill(random.below(256) as u8));
            let (offset, fua) = (random.below(4096) * 4096, random.below(3) == 0);
            waiting.push(rig.submit(ImageOp::Write { offset, buf, fua }));
            if random.below(20) == 0 {
                waiting.push(rig.submit(ImageOp::Flush));
            }
        }
        rig.run_for(Duration::from_millis(20 * round));
        server.kill();
        server = serve(&place, &path);
        for id in waiting {
            assert_eq!(rig.wait(id), Ok(Done::Ok));
        }
        rig.run_until(|rig| rig.image.is_in_reach());
        assert_eq!(rig.image.another_since(), None);
        assert!(!rig.image.has_gone_back(), "round {round}");
    }
    rig.close();
}

#[test]
fn an_image_that_is_opened_anew_in_the_place_of_another_must_be_that_one() {
    let place = place();
    let (right, wrong) =
        (export(&place, "right", 1, None), export(&place, "wrong", 2, None));
    let server = serve(&place, &right);
    let mut rig = open(&place, 1);
    becomes_known(&mut rig);
    let memory = rig.image.memory().unwrap();
    rig.close();
    server.kill();
    let server = serve(&place, &wrong);
    let mut rig = Rig::open_with(IoChoice::Auto, &place.uri, |opened| {
        opened.belong(DiskId(1), SIZE).unwrap();
        opened.recall(memory);
    });
    let read = rig.submit(ImageOp::Read { offset: 0, buf: rig.buffer(512) });
    rig.run_until(|rig| rig.image.another_since().is_some());
    assert!(!rig.image.is_in_reach() && rig.take(read).is_none());
    server.kill();
    let _server = serve(&place, &right);
    assert_eq!(rig.wait(read), Ok(Done::Ok));
    rig.close();
}

#[test]
fn an_export_with_the_sidecar_of_another_disk_is_not_opened() {
    let place = place();
    let _server = serve(&place, &export(&place, "theirs", 1, Some(2)));
    let mut opened =
        OpenedNbd::open(&place.uri.parse().unwrap(), &Arc::default()).unwrap();
    let refused = opened.belong(DiskId(1), SIZE).unwrap_err().to_string();
    assert!(refused.contains("has the image of disk theirs"), "{refused}");
    // In the last block of a disk that fills its export are the guest's bytes.
    opened.belong(DiskId(1), ROOM).unwrap();
}
