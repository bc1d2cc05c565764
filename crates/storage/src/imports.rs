//! Imports: a raw image that exists becomes a disk, in place.
//!
//! Its bytes are taken as they are. What its sidecar says decides whether it may
//! be taken at all: an image that calls itself active is, or was, the truth of
//! some Sterna, and two of them must not write to it.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sterna_api::{Disk, Error, ErrorCode, ImportDisk, Provision, Result};
use sterna_engine::datastore::{Datastore, DatastoreError, SidecarPlace};
use sterna_engine::sidecar::{FIRST, Identity, Role, SidecarError};
use sterna_engine::{Ground, ImageSpec, is_of_this_machine, opened_by_others};
use sterna_os::lock;
use sterna_state::DiskRecord;

use crate::Storage;
use crate::asker::Asker;
use crate::datastores::check_name;
use crate::disks::{SECTOR, check_size, identity, new_record};
use crate::handle::DatastoreHandle;
use crate::hard_links::Linked;
use crate::own_disk::{ASKING, has_open, silent};
use crate::twins::Use;

/// How long the links on the way to an image may take to follow: somebody waits.
const RESOLVING: Duration = Duration::from_secs(2);

impl Storage {
    /// Makes a raw image that exists a disk, in place, and serves it.
    pub fn import_disk(&self, request: &ImportDisk) -> Result<Disk> {
        let ImportDisk { name, datastore, file: asked } = request;
        check_name("disk", name)?;
        let _claims = self.claim_new(name, datastore)?;
        self.check_open_files(name)?;
        self.check_state_has_room(&format!("disk {name}"))?;
        let handle = self.handle(datastore)?;
        handle.must_answer()?;
        // Before anything is advised about the file.
        self.check_is_not_state(&handle)?;
        let (file, size) = find_image(&handle, asked)?;
        self.check_is_no_state_file(&handle, &file)?;
        // One at a time: of two names of one image, each would be found to be nobody's.
        let _placing = lock(&self.placing);
        self.check_unused(datastore, &file, asked)?;
        if handle.is_shared() {
            self.check_is_no_disks_place(&handle, &file)?;
            check_unlocked(&handle, &file)?;
        }
        let store = match handle.is_shared() {
            false => self.open_for(&handle, Use::Imported)?,
            true => handle.open()?,
        };
        let image = handle.image(&file)?;
        let mut record = new_record(name, size, datastore, Provision::Thin)?;
        self.take_identity(&mut record, &store, &image, &handle)?;
        let active = identity(&record, record.generation, Role::Active);
        store.adopt(&file, &active).map_err(|error| handle.refused(&error))?;
        handle.note_size(&store);
        if store.is_thick(&image, size) {
            record.provision = Provision::Thick;
        }
        record.image = file;
        record.imported = true;
        if let Err(error) = self.begin(&record, &image, &handle) {
            // Its bytes are as they were; its sidecar says that nobody has it.
            let retired = Identity { role: Role::Retired, ..active };
            let _ = store.write_sidecar(&image, &retired);
            return Err(error);
        }
        tracing::info!(disk = name, id = %record.id, size, datastore, "disk imported");
        self.view_disk(record)
    }

    /// Refuses an image that a disk or a migration of this daemon has.
    fn check_unused(&self, datastore: &str, file: &str, asked: &str) -> Result<()> {
        let mut disks = self.store.disks()?.into_iter();
        if let Some(owner) =
            disks.find(|disk| disk.datastore == datastore && disk.image == file)
        {
            let message = format!("{asked} is the image of disk {}", owner.name);
            let hint = format!("see `sterna disk show {}`", owner.name);
            return Err(Error::in_use(message).hint(hint));
        }
        let mut migrations = self.store.open_migrations()?.into_iter();
        match migrations.find(|one| one.has(datastore, file)) {
            Some(one) => {
                let message = format!("{asked} is used by migration {}", one.id);
                Err(Error::in_use(message).hint("wait for the migration, or cancel it"))
            }
            None => Ok(()),
        }
    }

    /// Refuses a file whose bytes are those of a disk, or that another program writes to:
    /// then two would write to one place.
    fn check_is_no_disks_place(
        &self,
        handle: &DatastoreHandle,
        file: &str,
    ) -> Result<()> {
        let Some(directory) = handle.record().location.directory() else { return Ok(()) };
        let path = directory.join(file);
        let shown = path.display().to_string();
        let opened = handle.answer_to({
            let path = path.clone();
            move || {
                let file = File::options().read(true).write(true).open(&path)?;
                let is_local = is_of_this_machine(&file);
                let found = file.metadata()?;
                let inode = (found.dev(), found.ino());
                let linked = Linked { inode, names: found.nlink(), is_local };
                Ok((Ground::of(&file)?, file, linked))
            }
        })?;
        let (ground, file, linked) = opened.map_err(unreadable(&path))?;
        if let Some(what) = self.shares_with(&ground)? {
            let message = format!("{shown} has the same bytes as {what}");
            return Err(Error::in_use(message).hint(
                "import another image: two disks on the same bytes would destroy each \
                 other",
            ));
        }
        self.check_is_no_other_name(handle, &shown, linked)?;
        // While it is open, a file system in user space has what is below open as well.
        let (disks, mut grounds) = match linked.is_local {
            true => Default::default(),
            false => self.grounds()?,
        };
        grounds.push(ground);
        let asked = Asker::default().ask(ASKING, move || {
            let found = opened_by_others(&grounds);
            drop(file);
            found
        });
        let Some((at, opener)) = asked.answer().ok_or_else(|| silent(handle, ASKING))?
        else {
            return Ok(());
        };
        let message = match disks.get(at) {
            Some(disk) => has_open(&opener, disk, &shown),
            None => format!("{opener} has {shown} open for writing"),
        };
        Err(Error::in_use(message).hint("stop that program, or import another image"))
    }

    /// Gives the record the identity that the image has, if it is free to be
    /// taken up again; refuses an image that is somebody's truth.
    fn take_identity(
        &self,
        record: &mut DiskRecord,
        store: &Datastore,
        image: &ImageSpec,
        handle: &DatastoreHandle,
    ) -> Result<()> {
        // A device or an export may have been a smaller disk.
        let said = match store.holds_many() {
            true => store.read_sidecar(image, record.size).map(Some),
            false => store.says_as_a_whole(),
        };
        let found = match said {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(()),
            Err(DatastoreError::Sidecar {
                source: SidecarError::Missing | SidecarError::Damaged(_),
                ..
            }) => return Ok(()),
            Err(error) => return Err(handle.refused(&error)),
        };
        let owner = self.store.disks()?.into_iter().find(|disk| disk.id == found.id);
        if found.role != Role::Retired {
            let (what, or_else) = match found.role {
                Role::Partial if found.generation == FIRST => (
                    "is not finished: it was being made for",
                    "wait until the daemon that was making it has removed it, or ",
                ),
                Role::Partial => ("is an unfinished copy of", ""),
                _ => ("belongs to", "recover that disk with `sterna disk recover`, or "),
            };
            let name = &found.name;
            if let Some(disk) = owner {
                return Err(is_known(&disk, what));
            }
            let message = format!("this image {what} disk {name} of some Sterna");
            let sidecar = match store.sidecar_place(image, found.size) {
                Ok(SidecarPlace::File(path)) => path.display().to_string(),
                _ => "its sidecar".into(),
            };
            return Err(Error::in_use(message).hint(format!(
                "if no Sterna has that disk any more, {or_else}remove {sidecar} and \
                 import again"
            )));
        }
        if owner.is_none() && found.size == record.size {
            record.id = found.id;
            record.generation = found.generation + 1;
            return Ok(());
        }
        // An old copy of a disk that lives elsewhere: a disk of its own from now on.
        match store.sidecar_place(image, found.size) {
            Ok(SidecarPlace::File(path)) => sterna_engine::sidecar::file::remove(&path)
                .map_err(|error| {
                    Error::unavailable(format!("cannot take the image over: {error}"))
                }),
            // On a device or an export, this removes the sidecar alone.
            _ => {
                let removed = store.remove_image(image, found.size, None);
                removed.map_err(|it| handle.refused(&it))
            }
        }
    }
}

/// The file's name in its datastore, and the size of a disk made of it.
fn find_image(handle: &DatastoreHandle, file: &str) -> Result<(String, u64)> {
    let location = &handle.record().location;
    let Some(directory) = location.directory() else {
        // One place has many spellings.
        if file.parse().as_ref() != Ok(location) {
            let message = format!("datastore {} holds {location} alone", handle.name());
            return Err(Error::invalid(message).hint(format!("import {location}")));
        }
        handle.open()?;
        let space = handle.space().map(|space| space.capacity);
        let size = space.ok_or_else(|| {
            Error::unavailable(format!("the size of {location} is unknown"))
        })?;
        if !size.is_multiple_of(SECTOR) || size == 0 {
            return Err(no_size(file, size));
        }
        check_size(size)?;
        return Ok((String::new(), size));
    };
    let name = match name_in(directory, Path::new(file)) {
        Some(name) => Some(name),
        // Links may lead to what hangs, on no datastore at all.
        None => {
            let (directory, path) = (directory.to_owned(), PathBuf::from(file));
            let asked =
                Asker::default().ask(RESOLVING, move || resolve(&directory, &path));
            asked.answer().ok_or_else(|| hangs(file))?
        }
    };
    let Some(name) = name.filter(|name| !name.contains('/')) else {
        let message =
            format!("{file} is not in datastore {} ({location})", handle.name());
        return Err(Error::invalid(message).hint(
            "Sterna imports an image in place: choose or add the datastore that holds \
             it",
        ));
    };
    let path = directory.join(&name);
    let unreadable = unreadable(&path);
    let metadata = path.symlink_metadata().map_err(&unreadable)?;
    if metadata.is_symlink() {
        return Err(is_link(&path));
    }
    // One whose name is too long, before all else is asked of it.
    handle.image(&name)?;
    if !metadata.is_file() {
        let message = format!("{} is not a regular file", path.display());
        return Err(Error::invalid(message).hint("give a raw file"));
    }
    if let Some(format) = format_of(&path).map_err(&unreadable)? {
        return Err(not_raw(&path, format));
    }
    check_length(&path, metadata.len())?;
    check_size(metadata.len())?;
    Ok((name, metadata.len()))
}

/// A link is no image: it may lead elsewhere tomorrow.
fn is_link(path: &Path) -> Error {
    let shown = path.display();
    let message = match fs::read_link(path) {
        Ok(to) => format!("{shown} is a symbolic link to {}", to.display()),
        Err(_) => format!("{shown} is a symbolic link"),
    };
    Error::invalid(format!("{message}, and Sterna imports no links")).hint(
        "import the target of the link, on a datastore of the target's directory; or \
         replace the link by the file",
    )
}

/// An image says that it is a disk of this daemon's.
fn is_known(disk: &DiskRecord, what: &str) -> Error {
    let (name, datastore) = (&disk.name, &disk.datastore);
    let message = format!(
        "this image says that it {what} disk {name} of this daemon, which is on datastore \
         {datastore}: it may be that very image under another name"
    );
    Error::in_use(message).hint(
        "if it is a copy that you made, give Sterna the copy without its sidecar (of a file: \
         the .sterna file beside it); if it is the image itself, it is imported already",
    )
}

/// Refuses a file that another program has locked.
fn check_unlocked(handle: &DatastoreHandle, file: &str) -> Result<()> {
    let Some(directory) = handle.record().location.directory() else { return Ok(()) };
    let path = directory.join(file);
    let unreadable = unreadable(&path);
    let opened = File::open(&path).map_err(&unreadable)?;
    if sterna_engine::is_used(&opened).map_err(|errno| unreadable(errno.into()))? {
        let message = format!("{} is in use by another process", path.display());
        return Err(Error::in_use(message)
            .hint("the image is locked, probably by a running VM: stop the VM first"));
    }
    Ok(())
}

fn unreadable(path: &Path) -> impl Fn(io::Error) -> Error {
    move |error| {
        let message = format!("cannot read {}: {error}", path.display());
        Error::new(ErrorCode::NotFound, message)
            .hint("give a raw file in the datastore's directory")
    }
}

/// How files of other formats than raw begin: where, and with what.
const FORMATS: [(&str, usize, &[u8]); 13] = [
    ("qcow", 0, b"QFI\xfb\0\0\0\x01"),
    ("qcow2", 0, b"QFI\xfb"),
    ("vmdk", 0, b"KDMV"),
    ("vmdk", 0, b"# Disk DescriptorFile"),
    ("vhdx", 0, b"vhdxfile"),
    ("vdi", 64, b"\x7f\x10\xda\xbe"),
    // A fixed one is raw, with this at its end.
    ("vpc (vhd)", 0, b"conectix"),
    ("qed", 0, b"QED\0"),
    ("parallels", 0, b"WithoutFreeSpace"),
    ("parallels", 0, b"WithouFreSpacExt"),
    (GZIP, 0, b"\x1f\x8b\x08"),
    (XZ, 0, b"\xfd7zXZ\0"),
    (ZSTD, 0, b"\x28\xb5\x2f\xfd"),
];
const GZIP: &str = "gzip";
const XZ: &str = "xz";
const ZSTD: &str = "zstd";

/// The format that a file says it has; a raw one says nothing.
fn format_of(path: &Path) -> io::Result<Option<&'static str>> {
    let mut head = Vec::new();
    File::open(path)?.take(SECTOR).read_to_end(&mut head)?;
    let begins = |(_, at, magic): &&(&str, usize, &[u8])| {
        head.get(*at..).is_some_and(|head| head.starts_with(magic))
    };
    Ok(FORMATS.iter().find(begins).map(|(format, ..)| *format))
}

fn not_raw(path: &Path, format: &str) -> Error {
    let path = path.display();
    let convert = format!(
        "convert it: `qemu-img convert -O raw {path} {path}.raw`, and import the raw file"
    );
    // QEMU itself reads these while their VM runs.
    let hint = match format {
        "qcow2" => format!(
            "if a VM runs on the image, `sterna vm adopt` takes its disk without a stop; \
             else {convert}"
        ),
        GZIP | XZ | ZSTD => {
            format!("unpack it with `{format} --decompress`, and import the raw file")
        }
        _ => convert,
    };
    Error::invalid(format!("{path} is a {format} image; Sterna imports only raw images"))
        .hint(hint)
}

/// The path inside the directory, as far as their names tell.
fn name_in(directory: &Path, path: &Path) -> Option<String> {
    let inside = match path.strip_prefix(directory) {
        Ok(inside) => inside,
        Err(_) if path.is_absolute() => return None,
        Err(_) => path,
    };
    Some(inside.to_str()?.to_owned())
}

/// The path inside the directory, where either was reached by a link.
fn resolve(directory: &Path, path: &Path) -> Option<String> {
    let parent = fs::canonicalize(path.parent()?).ok()?;
    let is_same = fs::canonicalize(directory).ok()? == parent;
    is_same.then(|| path.file_name()?.to_str().map(str::to_owned)).flatten()
}

fn hangs(file: &str) -> Error {
    let message = format!("cannot find {file}: its file system does not answer");
    Error::unavailable(message).hint("repair this, or give the path in the datastore")
}

/// Refuses a file of a length that no disk has.
fn check_length(path: &Path, length: u64) -> Result<()> {
    let shown = path.display();
    if length == 0 {
        let message = format!("{shown} is empty");
        return Err(Error::invalid(message)
            .hint("give an image; `sterna disk create` creates an empty disk"));
    }
    if length.is_multiple_of(SECTOR) {
        return Ok(());
    }
    let refusal = no_size(&shown, length);
    let next = length.next_multiple_of(SECTOR);
    Err(refusal.hint(format!(
        "if it is a complete raw image, lengthen it: `truncate -s {next} {shown}`"
    )))
}

fn no_size(place: impl std::fmt::Display, size: u64) -> Error {
    Error::invalid(format!("{place} has {size} bytes: no disk has that size")).hint(
        format!("check that it is complete: disks have a multiple of {SECTOR} bytes"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(content: &[u8]) -> (tempfile::TempDir, std::path::PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.img");
        fs::write(&path, content).unwrap();
        (directory, path)
    }

    #[test]
    fn a_format_is_known_by_its_first_bytes() {
        let mut vdi = [0; 100];
        vdi[64..68].copy_from_slice(b"\x7f\x10\xda\xbe");
        for (content, format) in [
            (b"QFI\xfb\0\0\0\x03".as_slice(), Some("qcow2")),
            (b"QFI\xfb\0\0\0\x01".as_slice(), Some("qcow")),
            (b"conectix\0\0\0\x02".as_slice(), Some("vpc (vhd)")),
            (b"\x1f\x8b\x08\0".as_slice(), Some(GZIP)),
            (b"KDMV".as_slice(), Some("vmdk")),
            (b"# Disk DescriptorFile\nversion=1".as_slice(), Some("vmdk")),
            (b"vhdxfile".as_slice(), Some("vhdx")),
            (vdi.as_slice(), Some("vdi")),
            ([0; 512].as_slice(), None),
            (b"".as_slice(), None),
        ] {
            let (_directory, path) = file(content);
            assert_eq!(format_of(&path).unwrap(), format);
        }
    }

    #[test]
    fn a_file_that_is_not_empty_is_to_be_lengthened() {
        let (_directory, path) = file(&[0; 1000]);
        let hint = |path: &Path, length| check_length(path, length).unwrap_err().hint;
        let whole = format!("truncate -s 1024 {}", path.display());
        assert!(hint(&path, 1000).contains(&whole));
        assert!(!hint(&path, 0).contains("truncate"));
        assert!(check_length(&path, 1024).is_ok());
    }
}
