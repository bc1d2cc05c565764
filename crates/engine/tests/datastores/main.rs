//! Datastores on real file systems, devices and servers.
//!
//! What needs root (loop devices, mounts) says so and passes where it is not.

mod devices;
mod exports;

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sterna_core::DiskId;
use sterna_engine::datastore::{
    Datastore, DatastoreError, FoundSidecar, Location, Provision, SidecarPlace, Space,
};
use sterna_engine::sidecar::slots::Origin;
use sterna_engine::sidecar::{Identity, Role, SidecarError};
use sterna_engine::{FileIdentity, ImageSpec};
use tempfile::TempDir;

const MIB: u64 = 1 << 20;

fn open(location: &str) -> Result<Datastore, DatastoreError> {
    let location: Location = location.parse().unwrap();
    Datastore::open("store", location)
}

fn open_directory(path: &Path) -> Datastore {
    open(path.to_str().unwrap()).unwrap()
}

fn disk(name: &str, size: u64) -> Identity {
    let id = DiskId(name.bytes().fold(1, |id, byte| id * 31 + u128::from(byte)));
    Identity { id, name: name.into(), size, generation: 1, role: Role::Active }
}

fn path(image: &ImageSpec) -> &Path {
    match image {
        ImageSpec::File { path, .. } => path,
        other => panic!("{other:?} is no file"),
    }
}

fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().into()
}

/// Whether this is root; says what is left out otherwise.
fn is_root(test: &str) -> bool {
    let root = fs::metadata("/proc/self").unwrap().uid() == 0;
    if !root {
        eprintln!("{test} is left out: it needs root for loop devices");
    }
    root
}

/// A loop device over a file.
struct Loop(String);

impl Loop {
    fn over(file: &Path, size: u64) -> Loop {
        fs::File::create(file).unwrap().set_len(size).unwrap();
        Loop(run("losetup", &["--find", "--show", file.to_str().unwrap()]))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        run("losetup", &["-d", &self.0]);
    }
}

/// A file system of its own.
struct Mount {
    directory: TempDir,
    at: PathBuf,
    device: Loop,
}

impl Mount {
    fn ext4(size: u64) -> Mount {
        let directory = tempfile::tempdir().unwrap();
        let device = Loop::over(&directory.path().join("fs"), size);
        run("mkfs.ext4", &["-q", "-m", "0", &device.0]);
        let at = directory.path().join("mnt");
        fs::create_dir(&at).unwrap();
        run("mount", &[&device.0, at.to_str().unwrap()]);
        Mount { directory, at, device }
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        run("umount", &[self.at.to_str().unwrap()]);
        let _ = &self.directory;
    }
}

#[test]
fn images_are_made_found_opened_and_removed() {
    let directory = tempfile::tempdir().unwrap();
    let store = open_directory(directory.path());
    let provisions =
        [("a", Provision::Thin), ("b", Provision::Thick), ("c", Provision::ThickZeroed)];
    for (name, provision) in provisions {
        let identity = disk(name, 3 * MIB + 512);
        let created = store.create_image(&identity, provision).unwrap();
        assert_eq!(created.reads_zero, provision != Provision::ThickZeroed);
        let size = path(&created.image).metadata().unwrap().len();
        assert_eq!(size, identity.size);
        let allocated = store.allocated(&created.image, identity.size).unwrap();
        assert_eq!(allocated >= identity.size, provision != Provision::Thin, "{name}");
        let file = store.file_of(&created.image).unwrap();
        assert_eq!(file, format!("{name}.raw"));
        assert_eq!(store.open_image(&file, &identity).unwrap(), created.image);
    }
    let found = store.images().unwrap();
    let names: Vec<_> = found.iter().map(|image| image.file.as_str()).collect();
    assert_eq!(names, ["a.raw", "b.raw", "c.raw"]);
    assert!(found.iter().all(|image| image.identity.is_ok()));
    for image in found {
        store.remove_image(&image.image, 3 * MIB + 512, None).unwrap();
        store.remove_image(&image.image, 3 * MIB + 512, None).unwrap();
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn nothing_is_overwritten_and_no_path_leads_out() {
    let directory = tempfile::tempdir().unwrap();
    let store = open_directory(directory.path());
    fs::write(directory.path().join("a.raw"), b"precious").unwrap();
    let taken = store.create_image(&disk("a", MIB), Provision::Thin);
    assert!(matches!(taken, Err(DatastoreError::Exists(_))), "{taken:?}");
    assert_eq!(fs::read(directory.path().join("a.raw")).unwrap(), b"precious");
    for name in ["../a", "/etc/a", ".a", "a/b", "a\0"] {
        let result = store.create_image(&disk(name, MIB), Provision::Thin);
        assert!(matches!(result, Err(DatastoreError::Name(_))), "{name}: {result:?}");
        assert!(store.image(name).is_err(), "{name}");
    }
    for size in [0, 100, u64::MAX] {
        let result = store.create_image(&disk("b", size), Provision::Thin);
        assert!(matches!(result, Err(DatastoreError::Size(_))), "{size}: {result:?}");
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    let elsewhere = ImageSpec::File { path: "/etc/passwd".into(), direct: false };
    let result = store.remove_image(&elsewhere, MIB, None);
    assert!(matches!(result, Err(DatastoreError::Foreign { .. })), "{result:?}");
}

#[test]
fn an_image_that_is_not_the_expected_one_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let store = open_directory(directory.path());
    let identity = disk("a", MIB);
    let image = store.create_image(&identity, Provision::Thin).unwrap().image;
    let refused = |expected: Identity, text: &str| {
        let error = store.open_image("a.raw", &expected).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    };
    refused(Identity { id: DiskId(5), ..identity.clone() }, "belongs to the disk a");
    refused(Identity { generation: 2, ..identity.clone() }, "generation 1 and not 2");
    refused(
        Identity { role: Role::Partial, ..identity.clone() },
        "active, generation 1, and not partial, generation 1",
    );
    let newer = Identity { generation: 2, role: Role::Retired, ..identity.clone() };
    store.write_sidecar(&image, &newer).unwrap();
    assert_eq!(store.read_sidecar(&image, MIB).unwrap(), newer);
    store.open_image("a.raw", &newer).unwrap();
    fs::OpenOptions::new().write(true).open(path(&image)).unwrap().set_len(512).unwrap();
    refused(newer, "the disk needs 1.00 MiB");
    fs::write(directory.path().join("a.raw.sterna"), [0x77; 512]).unwrap();
    refused(identity.clone(), "not a sidecar");
    fs::remove_file(directory.path().join("a.raw.sterna")).unwrap();
    refused(identity, "no sidecar");
}

#[test]
fn a_raw_file_is_adopted_where_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let store = open_directory(directory.path());
    let file = directory.path().join("old.img");
    fs::write(&file, vec![5; MIB as usize]).unwrap();
    let identity = disk("a", MIB);
    let image = store.adopt(file.to_str().unwrap(), &identity).unwrap();
    assert_eq!(path(&image), file);
    assert_eq!(store.open_image("old.img", &identity).unwrap(), image);
    // Again for the same disk; never for another one, nor what is no file.
    store.adopt("old.img", &identity).unwrap();
    let other = store.adopt("old.img", &disk("b", MIB));
    assert!(matches!(other, Err(DatastoreError::Occupied { .. })), "{other:?}");
    std::os::unix::fs::symlink("/etc/passwd", directory.path().join("link")).unwrap();
    for name in ["link", "nothing", "../x", "/etc/passwd"] {
        assert!(store.adopt(name, &disk("c", 512)).is_err(), "{name}");
    }
    assert_eq!(fs::read(file).unwrap(), vec![5; MIB as usize]);
}

#[test]
fn a_file_whose_sidecar_cannot_be_read_is_not_adopted() {
    let directory = tempfile::tempdir().unwrap();
    let store = open_directory(directory.path());
    fs::write(directory.path().join("old.img"), vec![5; MIB as usize]).unwrap();
    // Who reads it is refused.
    let sidecar = directory.path().join("old.img.sterna");
    std::os::unix::fs::symlink("elsewhere.sterna", &sidecar).unwrap();
    let refused = store.adopt("old.img", &disk("a", MIB)).unwrap_err();
    assert!(!refused.says_no_sidecar(), "{refused}");
    assert_eq!(fs::read_link(&sidecar).unwrap(), Path::new("elsewhere.sterna"));
    fs::remove_file(&sidecar).unwrap();
    store.adopt("old.img", &disk("a", MIB)).unwrap();
}

#[test]
fn a_file_that_is_not_known_is_not_removed() {
    let directory = tempfile::tempdir().unwrap();
    let store = open_directory(directory.path());
    let identity = disk("a", MIB);
    let image = store.create_image(&identity, Provision::Thin).unwrap().image;
    let made = FileIdentity::at(path(&image)).unwrap();
    fs::rename(path(&image), directory.path().join("away")).unwrap();
    fs::write(path(&image), b"another").unwrap();
    for held in [None, Some(&made)] {
        let refused = store.remove_image(&image, MIB, held);
        assert!(matches!(refused, Err(DatastoreError::Another(_))), "{refused:?}");
    }
    // The sidecar of an older Sterna does not know the file.
    let sidecar = directory.path().join("a.raw.sterna");
    fs::write(&sidecar, identity.encode().unwrap()).unwrap();
    let refused = store.remove_image(&image, MIB, None);
    assert!(matches!(refused, Err(DatastoreError::Unproven(_))), "{refused:?}");
    assert_eq!(fs::read(path(&image)).unwrap(), b"another");
    // Whoever serves it says which it is.
    let is = FileIdentity::at(path(&image)).unwrap();
    assert_eq!(store.bind(&image, &is).unwrap(), None);
    store.remove_image(&image, MIB, None).unwrap();
    assert!(!path(&image).exists() && !sidecar.exists());
}

#[test]
fn an_image_that_was_there_before_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let store = open_directory(directory.path());
    fs::write(directory.path().join("old.img"), vec![5; MIB as usize]).unwrap();
    let imported = store.adopt("old.img", &disk("a", MIB)).unwrap();
    assert_eq!(store.origin(&imported).unwrap(), Some(Origin::Found));
    let made = store.create_image(&disk("b", MIB), Provision::Thin).unwrap().image;
    assert_eq!(store.origin(&made).unwrap(), Some(Origin::Made));
    let retired = Identity { role: Role::Retired, ..disk("b", MIB) };
    store.write_sidecar(&made, &retired).unwrap();
    assert_eq!(store.origin(&made).unwrap(), Some(Origin::Made));
    let partial = Identity { role: Role::Partial, generation: 2, ..disk("b", MIB) };
    store.take_over(&made, &partial).unwrap();
    assert_eq!(store.origin(&made).unwrap(), Some(Origin::Found));
    assert_eq!(store.read_sidecar(&made, MIB).unwrap(), partial);
}

#[test]
fn a_sidecar_is_rewritten_where_there_is_no_room() {
    if !is_root("a full file system") {
        return;
    }
    let mount = Mount::ext4(16 * MIB);
    let store = open_directory(&mount.at);
    let identity = disk("a", MIB);
    let image = store.create_image(&identity, Provision::Thin).unwrap().image;
    let old = store.create_image(&disk("b", MIB), Provision::Thin).unwrap().image;
    let record = disk("b", MIB).encode().unwrap();
    fs::write(mount.at.join("b.raw.sterna"), record).unwrap();
    let mut filler = fs::File::create(mount.at.join("filler")).unwrap();
    for piece in [1 << 20, 4096, 512] {
        while std::io::Write::write_all(&mut filler, &vec![1; piece]).is_ok() {}
    }
    for generation in 2..6 {
        for (image, name) in [(&image, "a"), (&old, "b")] {
            let identity = Identity { generation, ..disk(name, MIB) };
            store.write_sidecar(image, &identity).unwrap();
            assert_eq!(store.read_sidecar(image, MIB).unwrap(), identity);
        }
    }
}

#[test]
fn zeroes_are_written_out_and_can_be_stopped() {
    let directory = tempfile::tempdir().unwrap();
    let store = open_directory(directory.path());
    let size = 3 * MIB + 512;
    let image = store.create_image(&disk("a", size), Provision::Thin).unwrap().image;
    let mut done = 0;
    let mut progress = |bytes| {
        done = bytes;
        true
    };
    store.fill_zeroes(&image, size, &mut progress).unwrap();
    assert_eq!(done, size);
    assert!(store.allocated(&image, size).unwrap() >= size);
    assert_eq!(path(&image).metadata().unwrap().len(), size);
    let stopped = store.fill_zeroes(&image, size, &mut |_| false);
    assert!(matches!(stopped, Err(DatastoreError::Stopped)));
}

#[test]
fn a_thick_image_that_does_not_fit_is_refused_at_once_and_leaves_nothing() {
    if !is_root("a thick image that does not fit") {
        return;
    }
    let mount = Mount::ext4(32 * MIB);
    let store = open_directory(&mount.at);
    let before = fs::read_dir(&mount.at).unwrap().count();
    let space = store.space().unwrap();
    let needed = (space.free / 512 + 100) * 512;
    let result = store.create_image(&disk("a", needed), Provision::Thick);
    assert!(matches!(result, Err(DatastoreError::Full { .. })), "{result:?}");
    let message = result.unwrap_err().to_string();
    assert!(message.contains("free, and the image needs"), "{message}");
    assert_eq!(fs::read_dir(&mount.at).unwrap().count(), before);
    assert_eq!(store.space().unwrap(), space);
    // Thin fits, and so does thick in what there is.
    store.create_image(&disk("a", needed), Provision::Thin).unwrap();
    store.create_image(&disk("b", 8 * MIB), Provision::Thick).unwrap();
    assert!(store.space().unwrap().free <= space.free - 8 * MIB);
}

#[test]
fn a_region_map_on_a_full_file_system_fails_when_it_is_made() {
    use sterna_engine::boot::BootId;
    use sterna_engine::mirror::{MapError, MapFile, MapKey};

    if !is_root("a region map on a full file system") {
        return;
    }
    let mount = Mount::ext4(16 * MIB);
    // A map of 16 TiB in regions of 64 KiB takes 128 MiB.
    let key = MapKey { migration: 1, disk: DiskId(1), size: 16 << 40, region: 65536 };
    let error =
        MapFile::create(&mount.at.join("1.map"), key, BootId([0; 16])).unwrap_err();
    let MapError::Io { source, .. } = &error else { panic!("{error}") };
    assert_eq!(source.kind(), std::io::ErrorKind::StorageFull);
    let names: Vec<_> =
        fs::read_dir(&mount.at).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["lost+found"]);
}

#[test]
fn sidecars_are_told_by_name_first_and_none_is_looked_for_that_is_not_there() {
    let directory = tempfile::tempdir().unwrap();
    let store = open_directory(directory.path());
    for name in ["a", "b", "c"] {
        store.create_image(&disk(name, MIB), Provision::Thin).unwrap();
    }
    let first: BTreeSet<String> = ["c.raw", "gone.raw"].map(str::to_owned).into();
    let (mut files, mut answers) = (Vec::new(), 0);
    let mut each = |found: Option<FoundSidecar>| {
        answers += 1;
        files.extend(found.map(|it| it.file));
    };
    store.sidecars(&first, &mut each).unwrap();
    assert_eq!(files, ["c.raw", "a.raw", "b.raw"]);
    // Each entry of the list, and each sidecar.
    assert_eq!(answers, 2 * 3 + 3);
}

#[test]
fn a_sidecar_of_a_newer_sterna_may_be_any_disks_and_hides_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let store = open_directory(directory.path());
    for name in ["a", "b"] {
        store.create_image(&disk(name, MIB), Provision::Thin).unwrap();
    }
    let mut record = disk("a", MIB).encode().unwrap();
    let crc_at = record.len() - 4;
    record[8] = 9;
    let crc = crc32c::crc32c(&record[..crc_at]);
    record[crc_at..].copy_from_slice(&crc.to_le_bytes());
    fs::write(directory.path().join("a.raw.sterna"), record).unwrap();
    let is_newer = |error: DatastoreError| {
        matches!(error, DatastoreError::Sidecar { source: SidecarError::Version(9), .. })
    };
    assert!(store.found_sidecar("a.raw").is_err_and(is_newer));
    let mut files = Vec::new();
    let mut each = |found: Option<FoundSidecar>| files.extend(found.map(|it| it.file));
    let told = store.sidecars(&BTreeSet::new(), &mut each);
    assert!(told.is_err_and(is_newer), "nobody knows what it says");
    assert_eq!(files, ["b.raw"]);
}
