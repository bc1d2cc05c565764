//! Datastores that are block devices.

use super::*;

#[test]
fn a_device_holds_one_disk_and_its_sidecar_in_the_last_block() {
    if !is_root("a device as a datastore") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let device = Loop::over(&directory.path().join("d"), 8 * MIB);
    let store = open(&device.0).unwrap();
    assert_eq!(store.space().unwrap().capacity, 8 * MIB);
    assert!(store.images().unwrap().is_empty() && !store.supports_thin());
    let identity = disk("a", 4 * MIB);
    let created = store.create_image(&identity, Provision::Thin).unwrap();
    assert!(!created.reads_zero);
    let place = store.sidecar_place(&created.image, identity.size).unwrap();
    assert_eq!(place, SidecarPlace::Trailer(8 * MIB - 4096));
    for generation in 2..5 {
        let newer = Identity { generation, ..identity.clone() };
        store.write_sidecar(&created.image, &newer).unwrap();
        // As another daemon would find it.
        open(&device.0).unwrap().open_image("", &newer).unwrap();
    }
    assert_eq!(store.space().unwrap().free, 0);
    let found = store.images().unwrap();
    assert_eq!(found[0].identity.as_ref().unwrap().generation, 4);
    let other = store.create_image(&disk("b", 4 * MIB), Provision::Thin);
    assert!(matches!(other, Err(DatastoreError::Occupied { .. })), "{other:?}");
    store.remove_image(&created.image, identity.size, None).unwrap();
    store.create_image(&disk("b", 4 * MIB), Provision::Thin).unwrap();
    let large =
        open(&device.0).unwrap().create_image(&disk("b", 9 * MIB), Provision::Thin);
    assert!(matches!(large, Err(DatastoreError::TooSmall { .. })), "{large:?}");
}

#[test]
fn a_disk_that_fills_its_device_has_its_sidecar_elsewhere() {
    if !is_root("a full device") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let device = Loop::over(&directory.path().join("d"), 8 * MIB);
    let identity = disk("a", 8 * MIB);
    let store = open(&device.0).unwrap();
    let homeless = store.create_image(&identity, Provision::Thin);
    assert!(matches!(homeless, Err(DatastoreError::NoSidecarPlace(_))), "{homeless:?}");
    let store = store.keep_sidecars_in(directory.path());
    let image = store.create_image(&identity, Provision::Thin).unwrap().image;
    let place = store.sidecar_place(&image, identity.size).unwrap();
    assert_eq!(place, SidecarPlace::File(directory.path().join("store.sterna")));
    // The guest writes what looks like a sidecar where one would be.
    let forged = Identity { generation: 999, ..disk("x", MIB) }.encode().unwrap();
    let medium = fs::OpenOptions::new().write(true).open(&device.0).unwrap();
    medium.write_all_at(&forged, 8 * MIB - 4096).unwrap();
    medium.sync_all().unwrap();
    assert_eq!(store.images().unwrap()[0].identity.as_ref().unwrap(), &identity);
    store.open_image("", &identity).unwrap();
}

#[test]
fn a_device_in_use_is_refused_and_the_error_says_by_whom() {
    if !is_root("a mounted device") {
        return;
    }
    let mount = Mount::ext4(16 * MIB);
    let error = open(&mount.device.0).unwrap_err();
    assert!(matches!(error, DatastoreError::Mounted { .. }), "{error}");
    assert!(error.to_string().contains(mount.at.to_str().unwrap()), "{error}");
    let directory = open("/dev/shm").unwrap();
    assert!(directory.holds_many());
    for (location, text) in [
        ("/dev/null", "is not a block device"),
        ("/dev/nothing", "does not exist"),
        ("/nothing/here", "does not exist"),
        ("/etc/passwd", "is not a directory"),
    ] {
        let error = open(location).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
}
