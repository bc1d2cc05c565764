//! Datastores that are exports of NBD servers.

use super::*;

/// An nbdkit of this test, killed when dropped. What it says about clients that go
/// away without a goodbye is shown only if the test fails.
struct Nbdkit {
    child: Child,
    directory: TempDir,
}

impl Nbdkit {
    fn start(arguments: &[&str]) -> Nbdkit {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("s");
        let child = Command::new("nbdkit")
            .args(["-f", "-U", socket.to_str().unwrap()])
            .args(arguments)
            .stdin(Stdio::null())
            .stderr(fs::File::create(directory.path().join("said")).unwrap())
            .spawn()
            .expect("nbdkit is installed");
        let server = Nbdkit { child, directory };
        let end = Instant::now() + Duration::from_secs(20);
        while UnixStream::connect(&socket).is_err() {
            assert!(Instant::now() < end, "nbdkit does not listen");
            std::thread::sleep(Duration::from_millis(5));
        }
        server
    }

    fn uri(&self) -> String {
        format!("nbd+unix:///?socket={}", self.directory.path().join("s").display())
    }
}

impl Drop for Nbdkit {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let said = fs::read_to_string(self.directory.path().join("said"));
            eprintln!("nbdkit said:\n{}", said.unwrap_or_default());
        }
    }
}

#[test]
fn an_export_holds_one_disk_and_its_sidecar_in_the_last_block() {
    for (structured, arguments) in [
        (true, ["--filter=log", "memory", "8M", "logfile=/dev/null"]),
        (false, ["--no-sr", "--filter=nozero", "memory", "8M"]),
    ] {
        let server = Nbdkit::start(&arguments);
        let store = open(&server.uri()).unwrap();
        let identity = disk("a", 4 * MIB);
        let created = store.create_image(&identity, Provision::Thin).unwrap();
        // Known to be zero only if the server can say so.
        assert_eq!(created.reads_zero, structured);
        let allocated = store.allocated(&created.image, identity.size);
        assert_eq!(allocated, structured.then_some(0));
        for generation in 2..4 {
            let newer = Identity { generation, ..identity.clone() };
            store.write_sidecar(&created.image, &newer).unwrap();
            open(&server.uri()).unwrap().open_image("", &newer).unwrap();
        }
        let other = store.create_image(&disk("b", 4 * MIB), Provision::Thin);
        assert!(matches!(other, Err(DatastoreError::Occupied { .. })), "{other:?}");
        store.fill_zeroes(&created.image, identity.size, &mut |_| true).unwrap();
        store.remove_image(&created.image, identity.size, None).unwrap();
        assert!(store.images().unwrap().is_empty());
    }
}

#[test]
fn an_export_whose_server_is_gone_has_nothing_wherever_its_sidecar_is() {
    let sidecars = tempfile::tempdir().unwrap();
    for (size, sidecar) in [(4 * MIB, "in the trailer"), (8 * MIB, "in a file")] {
        let server = Nbdkit::start(&["memory", "8M"]);
        let store = open(&server.uri()).unwrap().keep_sidecars_in(sidecars.path());
        store.create_image(&disk("a", size), Provision::Thin).unwrap();
        let (capacity, room) = (8 * MIB, None);
        assert_eq!(store.space().unwrap(), Space { capacity, free: 0, room });
        drop(server);
        let space = store.space();
        let gone = matches!(space, Err(DatastoreError::Remote { .. }));
        assert!(gone, "{sidecar}: {space:?}");
    }
}

#[test]
fn a_server_that_cannot_be_used_is_refused_with_what_to_do() {
    let readonly = Nbdkit::start(&["-r", "memory", "8M"]);
    let large = ["--filter=blocksize-policy", "memory", "8M", "blocksize-minimum=4K"];
    let large = Nbdkit::start(&large);
    let broken = Nbdkit::start(&["--filter=error", "memory", "8M", "error-rate=100%"]);
    for (uri, text) in [
        (readonly.uri(), "export it writable"),
        (large.uri(), "export it with smaller blocks"),
        ("nbd+unix:///?socket=/nothing".into(), "is the server running?"),
        ("nbd://localhost:1/".into(), "is the server running?"),
    ] {
        let error = open(&uri).unwrap_err().to_string();
        assert!(error.contains(text) && error.contains(&uri), "{error}");
    }
    let store = open(&broken.uri()).unwrap();
    let error = store.create_image(&disk("a", MIB), Provision::Thin).unwrap_err();
    assert!(matches!(error, DatastoreError::Remote { .. }), "{error}");
}

#[test]
fn a_server_that_accepts_and_says_nothing_does_not_hold_anybody_up_for_long() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("s");
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let silent = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let start = Instant::now();
    let uri = format!("nbd+unix:///?socket={}", socket.display());
    let error = open(&uri).unwrap_err().to_string();
    assert!(error.contains("did not finish the handshake"), "{error}");
    assert!(start.elapsed() < Duration::from_secs(8));
    silent.join().unwrap();
}

#[test]
fn an_image_that_is_kept_on_an_export_has_it_also_when_that_is_larger() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("export.raw");
    let file = fs::File::create(&path).unwrap();
    file.set_len(8 * MIB).unwrap();
    let arguments = ["file", path.to_str().unwrap()];
    let active = disk("a", 4 * MIB);
    let retired = Identity { role: Role::Retired, ..active.clone() };
    let server = Nbdkit::start(&arguments);
    let store = open(&server.uri()).unwrap();
    let image = store.create_image(&active, Provision::Thin).unwrap().image;
    store.write_sidecar(&image, &retired).unwrap();
    drop(server);

    file.set_len(12 * MIB).unwrap();
    let server = Nbdkit::start(&arguments);
    let store = open(&server.uri()).unwrap().was_so_large(8 * MIB).unwrap();
    assert!(store.has_left_behind());
    assert_eq!(store.space().unwrap().free, 0);
    assert_eq!(store.says_as_a_whole().unwrap(), Some(retired));
    let other = store.create_image(&disk("b", 4 * MIB), Provision::Thin);
    assert!(matches!(other, Err(DatastoreError::Occupied { .. })), "{other:?}");

    // The disk itself may come back, and go again.
    let image = store.create_image(&active, Provision::Thin).unwrap().image;
    assert_eq!(store.says_as_a_whole().unwrap().as_ref(), Some(&active));
    store.remove_image(&image, active.size, None).unwrap();
    assert_eq!(store.space().unwrap().free, 12 * MIB);
}

/// An export of a file whose last block of before has the sidecar of an image, and which was
/// made larger since: with its server, open.
fn grown(scratch: &TempDir, image: &Identity) -> (fs::File, Nbdkit, Datastore) {
    let path = scratch.path().join("export.raw");
    let options = fs::File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(&path);
    let file = options.unwrap();
    file.set_len(8 * MIB).unwrap();
    let arguments = ["file", path.to_str().unwrap()];
    let server = Nbdkit::start(&arguments);
    let store = open(&server.uri()).unwrap();
    let made = Identity { role: Role::Active, ..image.clone() };
    let made = store.create_image(&made, Provision::Thin).unwrap().image;
    store.write_sidecar(&made, image).unwrap();
    drop(server);
    file.set_len(12 * MIB).unwrap();
    let server = Nbdkit::start(&arguments);
    let store = open(&server.uri()).unwrap().was_so_large(8 * MIB).unwrap();
    (file, server, store)
}

fn block(file: &fs::File, end: u64) -> Vec<u8> {
    let mut bytes = vec![0; 4096];
    file.read_exact_at(&mut bytes, end - 4096).unwrap();
    bytes
}

#[test]
fn a_sidecar_that_was_left_behind_goes_and_what_is_at_the_end_stays() {
    let scratch = tempfile::tempdir().unwrap();
    let kept = Identity { role: Role::Retired, ..disk("a", 4 * MIB) };
    let (file, _server, store) = grown(&scratch, &kept);
    let somebodys = vec![7; 4096];
    file.write_all_at(&somebodys, 12 * MIB - 4096).unwrap();
    let image = store.image("").unwrap();
    store.remove_image(&image, kept.size, None).unwrap();
    assert!(block(&file, 12 * MIB) == somebodys);
    assert!(store.images().unwrap().is_empty());
    store.adopt("", &disk("b", 8 * MIB)).unwrap();
}

#[test]
fn an_image_says_of_itself_what_was_left_behind_until_its_sidecar_is_at_the_end() {
    let scratch = tempfile::tempdir().unwrap();
    let active = disk("a", 4 * MIB);
    let (file, _server, store) = grown(&scratch, &active);
    let image = store.image("").unwrap();
    // Whatever the size is of the disk that is thought to be there.
    for size in [4 * MIB, 10 * MIB] {
        assert_eq!(store.read_sidecar(&image, size).unwrap(), active);
    }
    assert_eq!(store.says_in_use().unwrap().whole, Some(active.clone()));
    let newer = Identity { generation: 2, ..active.clone() };
    store.write_sidecar(&image, &newer).unwrap();
    assert_eq!(store.read_sidecar(&image, active.size).unwrap(), newer);
    assert!(block(&file, 8 * MIB).iter().all(|byte| *byte == 0), "it is there twice");
}

#[test]
fn a_sidecar_that_was_left_behind_is_changed_where_it_is_if_it_is_ours() {
    let scratch = tempfile::tempdir().unwrap();
    let active = disk("a", 4 * MIB);
    let (file, _server, store) = grown(&scratch, &active);
    let image = store.image("").unwrap();
    let newer = Identity { generation: 2, ..active.clone() };
    store.change_sidecar(&image, &newer, &|it| *it == active).unwrap();
    assert_eq!(store.read_sidecar(&image, active.size).unwrap(), newer);
    assert!(store.change_sidecar(&image, &active, &|it| *it == active).is_err());
    assert_eq!(store.read_sidecar(&image, active.size).unwrap(), newer);
    // Another connection might lead to another export.
    assert!(block(&file, 12 * MIB).iter().all(|byte| *byte == 0));
}

#[test]
fn what_looks_like_a_sidecar_within_a_disk_is_the_disks() {
    let scratch = tempfile::tempdir().unwrap();
    let kept = Identity { role: Role::Retired, ..disk("a", 4 * MIB) };
    let (file, _server, store) = grown(&scratch, &kept);
    let before = block(&file, 8 * MIB);
    let image = store.image("").unwrap();
    let larger = Identity { role: Role::Active, size: 10 * MIB, ..kept.clone() };
    store.write_sidecar(&image, &larger).unwrap();
    store.remove_image(&image, larger.size, None).unwrap();
    assert!(block(&file, 8 * MIB) == before);
}

/// Its sidecar was in a file, and belongs to the end now.
#[test]
fn a_disk_that_filled_a_place_which_has_grown_says_nothing_old_and_can_be_removed() {
    let full = disk("a", 8 * MIB);
    let retired = Identity { role: Role::Retired, ..full.clone() };
    for is_kept in [true, false] {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("export.raw");
        let file = fs::File::create(&path).unwrap();
        let opened = || {
            let server = Nbdkit::start(&["file", path.to_str().unwrap()]);
            let store = open(&server.uri()).unwrap().keep_sidecars_in(scratch.path());
            (server, store)
        };
        file.set_len(8 * MIB).unwrap();
        let (_server, store) = opened();
        store.create_image(&full, Provision::Thin).unwrap();
        file.set_len(12 * MIB).unwrap();
        let (_server, store) = opened();
        let image = store.image("").unwrap();
        if is_kept {
            store.write_sidecar(&image, &retired).unwrap();
            assert_eq!(store.says_as_a_whole().unwrap().as_ref(), Some(&retired));
        } else {
            store.remove_image(&image, full.size, None).unwrap();
            assert!(store.images().unwrap().is_empty());
        }
    }
}
