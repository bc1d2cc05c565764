//! Attaching, detaching, starting and stopping.

mod common;

use common::{Client, DISK, Stage, on_both};
use sterna_core::DiskId;
use sterna_engine::{Config, DiskSpec, Engine, EngineError, ImageSpec, IoChoice};
use sterna_nbd::Command;

const MIB: u64 = 1 << 20;

#[test]
fn a_detached_disk_closes_its_connections_and_can_come_back() {
    on_both(|io| {
        let stage = Stage::new(io, 4 * MIB);
        let mut client = stage.client();
        client.write(0, &[3; 4096]);
        for _ in 0..50 {
            client.send(Command::Read { offset: 0, len: 1 << 20, df: false }, &[]);
        }
        stage.engine.detach(DISK).unwrap();
        assert!(client.is_hung_up());
        assert!(matches!(stage.engine.stats(DISK), Err(EngineError::NotAttached)));
        assert!(matches!(stage.engine.detach(DISK), Err(EngineError::NotAttached)));
        stage.engine.attach(stage.disk(4 * MIB, true)).unwrap();
        assert_eq!(stage.client().read(0, 4096), [3; 4096]);
    });
}

#[test]
fn many_disks_share_the_reactors() {
    on_both(|io| {
        let stage = Stage::new(io, MIB);
        for n in 0..20u8 {
            let path = stage.directory.path().join(format!("{n}.raw"));
            std::fs::write(&path, vec![n; 1 << 20]).unwrap();
            let image = ImageSpec::File { path, direct: true };
            let (id, name) = (DiskId(100 + u128::from(n)), format!("disk-{n}"));
            stage
                .engine
                .attach(DiskSpec { id, name, image, ..stage.disk(MIB, true) })
                .unwrap();
        }
        let mut clients: Vec<Client> = (0..20u8)
            .map(|n| Client::connect_to(&stage.socket(), &format!("disk-{n}"), true))
            .collect();
        for (n, client) in (0u8..).zip(&mut clients) {
            assert_eq!(client.read(4096, 512), [n; 512]);
        }
    });
}

#[test]
fn what_cannot_be_attached_is_refused_with_the_reason() {
    let stage = Stage::new(IoChoice::Auto, MIB);
    let spec = |id, name: &str, size| DiskSpec {
        id: DiskId(id),
        name: name.into(),
        ..stage.disk(size, true)
    };
    let refused = |spec| stage.engine.attach(spec).unwrap_err().to_string();
    let message = refused(spec(8, "x", MIB));
    assert!(message.contains("another program uses it"), "{message}");
    // The rest is about another image.
    let other = stage.file().with_file_name("other.raw");
    std::fs::File::create(&other).unwrap().set_len(MIB).unwrap();
    let spec = |id, name: &str, size| DiskSpec {
        image: ImageSpec::File { path: other.clone(), direct: true },
        ..spec(id, name, size)
    };
    assert_eq!(refused(spec(DISK.0, "x", MIB)), "the disk is attached already");
    assert_eq!(
        refused(spec(8, "disk", MIB)),
        "there is another disk with the name `disk`"
    );
    assert!(refused(spec(8, "x", 1000)).contains("multiple of 512"));
    let message = refused(spec(8, "x", 2 * MIB));
    assert_eq!(message, "the image has 1048576 bytes, its disk 2097152");
    let image = ImageSpec::File { path: "/nowhere/x.raw".into(), direct: true };
    let message = refused(DiskSpec { image, ..spec(8, "x", MIB) });
    assert!(message.starts_with("cannot open /nowhere/x.raw: No such file"), "{message}");
    // None of that took the name or the id.
    stage.engine.attach(spec(8, "x", MIB)).unwrap();
}

#[test]
fn the_way_to_the_kernel_is_the_one_asked_for() {
    let start = |io| Engine::start(&Config { io, ..Config::default() }).unwrap().io();
    assert_eq!(start(IoChoice::Threads).name, "threads");
    assert_eq!(start(IoChoice::Uring).name, "io_uring");
}

#[test]
fn an_engine_that_is_dropped_with_work_in_flight_ends() {
    on_both(|io| {
        let stage = Stage::new(io, 64 * MIB);
        let mut client = stage.client();
        for n in 0..100 {
            let write = Command::Write { offset: n * 65536, len: 65536, fua: false };
            client.send(write, &vec![1; 65536]);
        }
        drop(stage);
        assert!(client.is_hung_up());
    });
}
