//! Small file systems and block devices, out of files. All of it needs root.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use crate::images::write_image;
use crate::programs;
use crate::wait::{seconds, until};

/// What allocating at once leaves, as it may take blocks for its own records.
const FOR_METADATA: u64 = 256 << 10;

/// Stops the file system at `sys.argv[1]` without writing its log: `FS_IOC_SHUTDOWN` with
/// `FS_SHUTDOWN_FLAGS_NOLOGFLUSH`, which ext4 and XFS know.
///
/// `xfs_io -c shutdown` asks the same, but it looks at every mount of the host first,
/// and waits wherever a file system in user space (another test's) does not answer.
const SHUT_DOWN: &str = "import fcntl, os, struct, sys; \
    fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), 0x8004587d, struct.pack('I', 2))";

/// A loop device over a file.
pub struct Loop {
    device: PathBuf,
}

impl Loop {
    /// Makes one of `size` bytes.
    #[track_caller]
    pub fn new(file: &Path, size: u64) -> Loop {
        write_image(file, size, 0);
        Loop::over(file)
    }

    /// Makes one over a file that is there.
    #[track_caller]
    pub fn over(file: &Path) -> Loop {
        Loop::with(file, &[])
    }

    /// Makes one over a stretch of a file that is there, as the options of `losetup` say.
    #[track_caller]
    pub fn with(file: &Path, options: &[&str]) -> Loop {
        // Of two that look for a free device at once, both open the same one for writing,
        // and who comes too late closes it after the other has begun to use it.
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let file = file.to_str().expect("a plain path");
        let arguments = options.iter().copied().chain(["--find", "--show", file]);
        let device = programs::run("losetup", arguments);
        Loop { device: device.trim().into() }
    }

    /// Makes its file and the device larger, as an operator does with a volume in use.
    #[track_caller]
    pub fn grow(&self, size: u64) {
        let device = self.device.to_str().expect("a plain path");
        let file = programs::run("losetup", ["-n", "-O", "BACK-FILE", device]);
        let file = std::fs::OpenOptions::new().write(true).open(file.trim());
        file.and_then(|file| file.set_len(size)).expect("make the file larger");
        programs::run("losetup", ["-c", device]);
    }

    /// The device's path.
    pub fn device(&self) -> &Path {
        &self.device
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let device = self.device.as_os_str();
        let _ = programs::attempt("losetup", ["--detach".as_ref(), device]);
    }
}

/// A partition of a loop device that was made with `--partscan`, with which it ends.
#[track_caller]
pub fn partition(of: &Loop, number: u32, start: u64, len: u64) -> PathBuf {
    let whole = of.device().display().to_string();
    let [begin, sectors] = [start, len].map(|bytes| (bytes / 512).to_string());
    programs::run("addpart", [&whole, &number.to_string(), &begin, &sectors]);
    let device = PathBuf::from(format!("{whole}p{number}"));
    until("the partition's node", seconds(10), || device.exists().then_some(()));
    device
}

/// Another node of a device.
pub struct Node(PathBuf);

impl Node {
    /// Makes one in `/dev`, where devices are looked for.
    #[track_caller]
    pub fn of(device: &Path) -> Node {
        let number = std::fs::metadata(device).expect("ask for a device").rdev();
        let [major, minor] = [rustix::fs::major(number), rustix::fs::minor(number)];
        let node = Node::unused("node");
        let name = node.0.display().to_string();
        programs::run("mknod", [&name, "b", &major.to_string(), &minor.to_string()]);
        node
    }

    /// A link there that leads to a device.
    #[track_caller]
    pub fn link_to(device: &Path) -> Node {
        let node = Node::unused("link");
        std::os::unix::fs::symlink(device, &node.0).expect("make a link");
        node
    }

    /// The link leads to another device from now on.
    #[track_caller]
    pub fn lead_to(&self, device: &Path) {
        std::fs::remove_file(&self.0).expect("remove a link");
        std::os::unix::fs::symlink(device, &self.0).expect("make a link");
    }

    fn unused(kind: &str) -> Node {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let number = MADE.fetch_add(1, Relaxed);
        Node(format!("/dev/sterna-test-{}-{kind}-{number}", std::process::id()).into())
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A small file system of its own, mounted.
pub struct TinyFs {
    mount: PathBuf,
    /// None: it is unmounted, and its file may be away.
    device: Option<Loop>,
}

impl TinyFs {
    /// Makes an ext4 of `size` bytes over `file`, and mounts it at `mount`.
    #[track_caller]
    pub fn new(file: &Path, mount: &Path, size: u64) -> TinyFs {
        // No blocks kept back for root, no lazy work behind our back.
        let options = "lazy_itable_init=0,lazy_journal_init=0";
        TinyFs::made(file, mount, size, &["mkfs.ext4", "-q", "-m", "0", "-E", options])
    }

    /// Makes an ext4 that does not say when files were made, and gives the number of a file
    /// that is gone to the next one.
    #[track_caller]
    pub fn undated(file: &Path, mount: &Path, size: u64) -> TinyFs {
        TinyFs::made(file, mount, size, &["mkfs.ext4", "-q", "-m", "0", "-I", "128"])
    }

    /// Makes an XFS, which has 300 MiB at least.
    #[track_caller]
    pub fn xfs(file: &Path, mount: &Path, size: u64) -> TinyFs {
        TinyFs::made(file, mount, size, &["mkfs.xfs", "-q"])
    }

    /// Makes a btrfs.
    #[track_caller]
    pub fn btrfs(file: &Path, mount: &Path, size: u64) -> TinyFs {
        TinyFs::made(file, mount, size, &["mkfs.btrfs", "-q", "--mixed"])
    }

    #[track_caller]
    fn made(file: &Path, mount: &Path, size: u64, make: &[&str]) -> TinyFs {
        let device = Loop::new(file, size);
        let path = device.device().to_str().expect("a plain path");
        programs::run(make[0], make[1..].iter().copied().chain([path]));
        std::fs::create_dir_all(mount).expect("make the mount point");
        let at = mount.to_str().expect("a plain path");
        programs::run("mount", [path, at]);
        TinyFs { mount: mount.into(), device: Some(device) }
    }

    /// Stops it, as one stops that has lost its device: everything fails from now on, and
    /// what it had not made durable is gone.
    #[track_caller]
    pub fn shut_down(&self) {
        let mount = self.mount.to_str().expect("a plain path");
        // `-I -S`: nothing but the interpreter is looked for, so it is soon at work.
        programs::run("/usr/bin/python3", ["-I", "-S", "-c", SHUT_DOWN, mount]);
    }

    /// Has whoever writes to it wait, until what this gives is dropped. What was written
    /// is on its device.
    #[track_caller]
    pub fn freeze(&self) -> Frozen {
        programs::run("fsfreeze", ["--freeze".as_ref(), self.mount.as_os_str()]);
        Frozen(self.mount.clone())
    }

    /// Takes it away from its path, where the bare mount point is seen then. What is
    /// open stays open.
    #[track_caller]
    pub fn leave(&self) {
        let mount = self.mount.as_os_str();
        programs::run("umount", ["--lazy".as_ref(), mount]);
    }

    /// Mounts it again.
    #[track_caller]
    pub fn come_back(&self) {
        let device = self.device.as_ref().expect("a device").device();
        programs::run("mount", [device.as_os_str(), self.mount.as_os_str()]);
        // If another program of the host got a mount namespace meanwhile, the file system
        // never went, and is shut down still.
        let synced = File::open(&self.mount).and_then(|it| it.sync_all());
        assert!(
            synced.is_ok(),
            "{} (see `lsns -t mnt`): {synced:?}",
            self.mount.display()
        );
    }

    /// Mounts it again on a device of its own, over its file, which is there again.
    #[track_caller]
    pub fn come_back_over(&mut self, file: &Path) {
        self.device = Some(Loop::over(file));
        self.come_back();
    }

    /// Unmounts it. Nothing of it may be open any more for that; says whether it worked.
    pub fn unmounted(&self) -> bool {
        programs::attempt("umount", [self.mount.as_os_str()]).0
    }

    /// Lets go of the file of one that is unmounted.
    pub fn let_go(&mut self) {
        self.device = None;
    }

    /// Where it is mounted.
    pub fn dir(&self) -> &Path {
        &self.mount
    }

    /// Takes all but `leave` bytes of its free space; gives the file that
    /// does, to be removed when there is to be room again.
    #[track_caller]
    pub fn fill(&self, leave: u64) -> PathBuf {
        let space = rustix::fs::statvfs(&self.mount).expect("ask for free space");
        let free = space.f_bavail * space.f_frsize;
        let path = self.mount.join("ballast");
        let file = std::fs::File::create(&path).expect("create ballast");
        let take = free.saturating_sub(leave);
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, take)
            .expect("allocate ballast");
        path
    }

    /// Makes files until there is no inode for another one; gives them.
    #[track_caller]
    pub fn use_up_inodes(&self) -> Vec<PathBuf> {
        let files = (0..).map(|number| self.mount.join(format!("file-{number}")));
        let made = files.take_while(|path| std::fs::File::create(path).is_ok());
        made.collect()
    }

    /// Takes its free space to the last block; gives the file that does.
    #[track_caller]
    pub fn fill_up(&self) -> PathBuf {
        let path = self.fill(FOR_METADATA);
        let mut file =
            std::fs::File::options().append(true).open(&path).expect("open ballast");
        while file.write_all(&[0; 1024]).is_ok() {}
        path
    }
}

/// A file system that stands still.
pub struct Frozen(PathBuf);

impl Drop for Frozen {
    fn drop(&mut self) {
        let mount = self.0.as_os_str();
        let _ = programs::attempt("fsfreeze", ["--unfreeze".as_ref(), mount]);
    }
}

impl Drop for TinyFs {
    fn drop(&mut self) {
        // Lazily: a daemon that is being killed may still hold it.
        let mount = self.mount.as_os_str();
        let _ = programs::attempt("umount", ["--lazy".as_ref(), mount]);
    }
}
