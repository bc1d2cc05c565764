//! A VM that is asked over QMP.
//!
//! The copy is `blockdev-mirror`, from the disk's root node to a node of our own: a format
//! over a file, or an export of an NBD server, named after the copy. When it is complete, QEMU
//! puts our node where the old one was; the old ones are then dropped as far as they are named
//! (those that are not, QEMU drops by itself).
//!
//! **Thin.** Our nodes discard (`unmap`), so that QEMU zeroes the destination by making
//! holes, and then copies only what is allocated. That would take the room from a file to
//! which it was given: of such a copy the nodes discard nothing, and QEMU writes all of it.
//!
//! **Special cases.** A job may have been given up by somebody else, or have failed:
//! that is seen in how it has ended. One that is unknown was ended and dismissed by
//! somebody else. In neither case it says where the disk is now; that is asked for
//! ([`Direct::drives`]).

use std::path::Path;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use crate::copy::{GENTLE, Place};
use crate::drive::{Drive, Node, Unmovable, file_of, files_in, is_known};
use crate::qmp::{
    ANSWER_WITHIN, AddNode, Bitmap, Block, CompleteJob, CreateImage, DeleteNode,
    DismissJob, ExportOptions, FileOptions, FormatOptions, Inserted, Job, JobStatus,
    LatencyHistogram, Mirror, Monitor, NewImage, NodeOptions, QmpError, QueryBlock,
    QueryBlockStats, QueryJobs, QueryMemory, QueryNodes, QueryProcessors, QueryStatus,
    SetSpeed, Stats, StopJob, UnixServer,
};
use crate::{
    Copy, CopyState, Export, GivenUp, Identity, Process, QemuError, RECONNECT, Run, Usage,
};

/// What QEMU calls the overlays that it makes for `snapshot=on`, wherever those are.
const OVERLAY: &str = "vl.";

/// How often a job that is about to end is looked at where no event says so.
const LOOK: Duration = Duration::from_millis(100);

/// A VM that is asked over QMP.
#[derive(Clone, Debug)]
pub struct Direct {
    monitor: Monitor,
}

impl Direct {
    /// Connects to its monitor, where it is known who has listened there last.
    pub(crate) async fn connect(
        socket: &Path,
        last: Option<Process>,
    ) -> Result<Direct, QmpError> {
        Ok(Direct { monitor: Monitor::connect_again(socket, last).await? })
    }

    /// Its monitor.
    pub fn monitor(&self) -> &Monitor {
        &self.monitor
    }

    pub(crate) async fn run(&self) -> Result<Run, QmpError> {
        let state = self.monitor.call(&QueryStatus {}).await?;
        Ok(Run { on: true, running: state.running, word: state.status })
    }

    pub(crate) async fn identity(&self) -> Result<Option<Identity>, QmpError> {
        let threads = self.processor_threads().await?.into_iter().collect();
        Ok(Identity::of(self.monitor.process(), threads))
    }

    /// The process that QEMU is, where that listens itself: somebody between it and us has
    /// none of the threads that run its processors.
    pub async fn process(&self) -> Result<Option<Process>, QmpError> {
        let Some(process) = self.monitor.listener() else { return Ok(None) };
        let mut threads = self.processor_threads().await?.into_iter();
        Ok(threads.any(|thread| process.has_thread(thread)).then_some(process))
    }

    /// Its threads that run the guest's processors, as this host numbers threads.
    pub async fn processor_threads(&self) -> Result<Vec<i64>, QmpError> {
        let processors = self.monitor.call(&QueryProcessors {}).await?;
        Ok(processors.into_iter().filter_map(|one| one.thread_id).collect())
    }

    pub(crate) async fn usage(&self) -> Result<Option<Usage>, QmpError> {
        let processors = self.monitor.call(&QueryProcessors {}).await?.len();
        let memory = self.memory_size().await?;
        let processors = u32::try_from(processors).unwrap_or(u32::MAX);
        let taken = self.monitor.taken();
        Ok(taken.map(|(busy, held)| Usage { processors, memory, busy, held }))
    }

    /// How much memory the VM has, whatever its balloon has of it, in bytes.
    pub(crate) async fn memory_size(&self) -> Result<u64, QmpError> {
        let memory = self.monitor.call(&QueryMemory {}).await?;
        Ok(memory.base_memory + memory.plugged_memory.unwrap_or(0))
    }

    pub(crate) async fn drives(&self) -> Result<Vec<Drive>, QmpError> {
        let directory = self.monitor.directory();
        let blocks = self.monitor.call(&QueryBlock {}).await?;
        let drive = |block: Block| {
            let device = name_of(&block);
            let inserted = block.inserted?;
            Some(drive_of(
                device,
                block.qdev,
                whole(directory.as_deref(), &inserted.file),
                inserted,
            ))
        };
        let mut drives: Vec<Drive> = blocks.into_iter().filter_map(drive).collect();
        drives.sort_by(|one, other| one.device.cmp(&other.device));
        Ok(drives)
    }

    pub(crate) async fn files(&self) -> Result<Vec<String>, QmpError> {
        let directory = self.monitor.directory();
        let nodes = self.monitor.call(&QueryNodes { flat: true }).await?;
        let blocks = self.monitor.call(&QueryBlock {}).await?;
        let inserted = blocks.into_iter().filter_map(|block| block.inserted);
        let named = nodes.into_iter().chain(inserted).flat_map(|it| files_in(&it.file));
        let mut files: Vec<String> =
            named.map(|file| whole(directory.as_deref(), &file)).collect();
        files.sort();
        files.dedup();
        Ok(files)
    }

    pub(crate) async fn stats(&self) -> Result<Vec<(String, Stats)>, QmpError> {
        let all = self.monitor.call(&QueryBlockStats {}).await?;
        let named = all.into_iter().map(|one| {
            let name = device_name(&one.device, one.qdev.as_deref(), one.node.as_deref());
            (name, one.stats)
        });
        Ok(named.collect())
    }

    pub(crate) async fn count_times(&self, drive: &Drive) -> Result<bool, QmpError> {
        let Some(qdev) = drive.node.as_ref().and_then(|node| node.qdev.clone()) else {
            return Ok(false);
        };
        let stats = self.stats().await?;
        let counts = stats
            .iter()
            .any(|(device, stats)| *device == drive.device && stats.has_times());
        if counts {
            return Ok(false);
        }
        self.monitor.call(&LatencyHistogram::fine(qdev)).await?;
        Ok(true)
    }

    pub(crate) async fn stop_counting_times(
        &self,
        drive: &Drive,
    ) -> Result<(), QmpError> {
        match drive.node.as_ref().and_then(|node| node.qdev.clone()) {
            Some(qdev) => {
                self.monitor.call(&LatencyHistogram::none(qdev)).await.map(drop)
            }
            None => Ok(()),
        }
    }

    pub(crate) async fn begin(
        &self,
        copy: &Copy,
        drive: &Drive,
        speed: u64,
    ) -> Result<(), QemuError> {
        let Some(node) = &drive.node else {
            let device = drive.device.clone();
            return Err(QemuError::NoDrive { device, has: "no node for it".into() });
        };
        match &copy.to {
            Place::File { path, format } => {
                self.add_file(copy, path, format, drive.size, node).await?;
            }
            Place::Export(export) => self.add_export(copy, export, node).await?,
        }
        let mirror = Mirror {
            job_id: copy.name.clone(),
            device: node.name.clone(),
            target: copy.name.clone(),
            sync: "full",
            speed,
            buf_size: copy.gentle.then_some(GENTLE),
            auto_dismiss: false,
        };
        self.monitor.call(&mirror).await?;
        Ok(())
    }

    /// Adds the nodes of a destination that is a file.
    async fn add_file(
        &self,
        copy: &Copy,
        path: &str,
        format: &str,
        size: u64,
        like: &Node,
    ) -> Result<(), QemuError> {
        let file = FileOptions {
            driver: "file",
            filename: path.into(),
            node: options(copy.file_node(), like, copy.thick),
        };
        self.monitor.call(&AddNode::File(file)).await?;
        if format == "qcow2" {
            self.create_image(copy, size, like.cluster_size).await?;
        }
        let format = FormatOptions {
            driver: format.into(),
            file: copy.file_node(),
            detect_zeroes: like.detect_zeroes.clone(),
            node: options(copy.name.clone(), like, copy.thick),
        };
        self.monitor.call(&AddNode::Format(format)).await?;
        Ok(())
    }

    /// Adds the node of a destination that is an export.
    async fn add_export(
        &self,
        copy: &Copy,
        export: &Export,
        like: &Node,
    ) -> Result<(), QemuError> {
        let export = ExportOptions {
            driver: "nbd",
            server: UnixServer { r#type: "unix", path: export.socket.clone() },
            export: export.name.clone(),
            reconnect_delay: RECONNECT,
            detect_zeroes: like.detect_zeroes.clone(),
            node: options(copy.name.clone(), like, false),
        };
        self.monitor.call(&AddNode::Export(export)).await?;
        Ok(())
    }

    /// Makes a qcow2 image in the destination's file.
    async fn create_image(
        &self,
        copy: &Copy,
        size: u64,
        cluster_size: Option<u64>,
    ) -> Result<(), QemuError> {
        let driver = "qcow2".into();
        let options = NewImage { driver, file: copy.file_node(), size, cluster_size };
        let job_id = copy.name.clone();
        self.monitor.call(&CreateImage { job_id, options }).await?;
        let ended = self.ended(&copy.name).await?;
        self.dismiss(&copy.name).await?;
        match ended.and_then(|job| job.error) {
            Some(reason) => Err(QemuError::Job { job: copy.name.clone(), reason }),
            None => Ok(()),
        }
    }

    pub(crate) async fn look(&self, copy: &Copy) -> Result<CopyState, QmpError> {
        let Some(job) = self.job(&copy.name).await? else {
            return Ok(CopyState::Unknown);
        };
        Ok(match job.status {
            JobStatus::Ready | JobStatus::Standby => {
                CopyState::Ready { done: job.current_progress }
            }
            JobStatus::Waiting | JobStatus::Pending => CopyState::Switching,
            JobStatus::Concluded | JobStatus::Null => CopyState::Ended(job.error),
            _ => CopyState::Copying {
                done: job.current_progress,
                total: job.total_progress,
            },
        })
    }

    pub(crate) async fn set_speed(
        &self,
        copy: &Copy,
        speed: u64,
    ) -> Result<(), QmpError> {
        self.monitor.call(&SetSpeed { id: copy.name.clone(), speed }).await?;
        Ok(())
    }

    pub(crate) async fn complete(&self, copy: &Copy) -> Result<(), QmpError> {
        self.monitor.call(&CompleteJob { id: copy.name.clone() }).await?;
        Ok(())
    }

    pub(crate) async fn call_off(&self, copy: &Copy) -> Result<(), QmpError> {
        // It may be ending by itself at this moment.
        optional(self.monitor.call(&StopJob { id: copy.name.clone() }).await).map(drop)
    }

    pub(crate) async fn give_up(
        &self,
        copy: &Copy,
        served: bool,
    ) -> Result<GivenUp, QemuError> {
        let mut found = GivenUp::Nothing;
        if self.job(&copy.name).await?.is_some() {
            self.call_off(copy).await?;
            let ended = self.ended(&copy.name).await?;
            self.dismiss(&copy.name).await?;
            // One that has switched over has no error.
            found = match ended.and_then(|job| job.error) {
                Some(_) => GivenUp::Undone,
                None => GivenUp::Something,
            };
        }
        if !served && self.has_node(&copy.name).await? {
            return Err(QemuError::Unserved { what: copy.name.clone() });
        }
        for node in [copy.name.clone(), copy.file_node()] {
            if self.delete(node).await? && found == GivenUp::Nothing {
                found = GivenUp::Something;
            }
        }
        Ok(found)
    }

    pub(crate) async fn put_away(
        &self,
        copy: &Copy,
        served: bool,
    ) -> Result<(), QemuError> {
        self.dismiss(&copy.name).await?;
        if !served {
            return Err(QemuError::Unserved { what: copy.source.clone() });
        }
        let directory = self.monitor.directory();
        let nodes = self.monitor.call(&QueryNodes { flat: true }).await?;
        let old = nodes
            .into_iter()
            .filter(|node| whole(directory.as_deref(), &node.file) == copy.source);
        let mut old: Vec<String> = old.filter_map(|node| node.node).collect();
        // A node goes only after those above it. There are few, so each is tried until
        // a round drops none: what is left is in use, or is not to be dropped by us.
        loop {
            let before = old.len();
            let mut left = Vec::new();
            for name in old {
                if !self.delete(name.clone()).await? {
                    left.push(name);
                }
            }
            if left.is_empty() || left.len() == before {
                return Ok(());
            }
            old = left;
        }
    }

    async fn has_node(&self, name: &str) -> Result<bool, QmpError> {
        let nodes = self.monitor.call(&QueryNodes { flat: true }).await?;
        Ok(nodes.iter().any(|node| node.node.as_deref() == Some(name)))
    }

    async fn job(&self, id: &str) -> Result<Option<Job>, QmpError> {
        let jobs = self.monitor.call(&QueryJobs {}).await?;
        Ok(jobs.into_iter().find(|job| job.id == id))
    }

    /// Waits for the end of a job that is to end soon.
    async fn ended(&self, id: &str) -> Result<Option<Job>, QemuError> {
        let mut events = self.monitor.events();
        let deadline = Instant::now() + ANSWER_WITHIN;
        while Instant::now() < deadline {
            match self.job(id).await? {
                Some(job) if job.status != JobStatus::Concluded => {}
                job => return Ok(job),
            }
            // An event, or none: it is looked at again.
            let _ = timeout(LOOK, events.recv()).await;
        }
        Err(QemuError::Unending { job: id.into() })
    }

    async fn dismiss(&self, id: &str) -> Result<(), QmpError> {
        optional(self.monitor.call(&DismissJob { id: id.into() }).await).map(drop)
    }

    /// Drops a node; says whether it is dropped.
    async fn delete(&self, node_name: String) -> Result<bool, QmpError> {
        optional(self.monitor.call(&DeleteNode { node_name }).await)
    }
}

/// What a node of ours has, to be as another is.
fn options(node_name: String, like: &Node, thick: bool) -> NodeOptions {
    let discard = if thick { "ignore" } else { "unmap" };
    NodeOptions { node_name, cache: like.cache, discard }
}

/// A node's file; one that is relative to QEMU's directory as a whole path.
fn whole(directory: Option<&Path>, file: &str) -> String {
    match directory {
        // What is no path has a scheme, or is JSON.
        Some(directory) if !file.contains(':') && !file.is_empty() => {
            directory.join(file).display().to_string()
        }
        _ => file.to_owned(),
    }
}

/// A command that may be refused because there is nothing to do; says whether it was
/// carried out.
pub(crate) fn optional<T>(answer: Result<T, QmpError>) -> Result<bool, QmpError> {
    match answer {
        Ok(_) => Ok(true),
        Err(error) if error.is_refusal() => Ok(false),
        Err(error) => Err(error),
    }
}

fn name_of(block: &Block) -> String {
    let node = block.inserted.as_ref().and_then(|inserted| inserted.node.as_deref());
    device_name(&block.device, block.qdev.as_deref(), node)
}

/// What people call a device: the name of the guest's device if it has one, else the
/// drive's, else the node's. QEMU names the part of the device that has the drive: by its
/// name alone if it is the named device itself (SCSI, IDE, SATA), and by its path if it is
/// below that (virtio-blk) or nobody has named it.
fn device_name(device: &str, qdev: Option<&str>, node: Option<&str>) -> String {
    let named = qdev.and_then(|qdev| match qdev.strip_prefix("/machine/peripheral/") {
        Some(path) => path.split('/').next(),
        None => Some(qdev).filter(|name| !name.is_empty() && !name.starts_with('/')),
    });
    match (named, device) {
        (Some(named), _) => named.to_owned(),
        (None, "") => node.or(qdev).unwrap_or("?").to_owned(),
        (None, device) => device.to_owned(),
    }
}

fn drive_of(
    device: String,
    qdev: Option<String>,
    image: String,
    inserted: Inserted,
) -> Drive {
    // Whatever else is in the way, without a name there is nothing to speak of.
    let is_unnamed = inserted.node.as_ref() == Some(&device);
    let unmovable = match unmovable(&inserted) {
        None if is_unnamed => Some(Unmovable::Unnamed),
        None if is_temporary(&image) => Some(Unmovable::Temporary),
        found => found,
    };
    let Inserted { node, driver, cache, detect_zeroes, read_only, .. } = inserted;
    let cluster_size = inserted.image.cluster_size;
    Drive {
        device,
        image,
        format: driver,
        size: inserted.image.virtual_size,
        allocated: inserted.image.actual_size,
        read_only,
        unmovable,
        node: node.map(|name| Node { name, qdev, cache, detect_zeroes, cluster_size }),
    }
}

/// Whether an image is QEMU's own overlay, whose file has no name any more.
fn is_temporary(image: &str) -> bool {
    let file = file_of(image).unwrap_or_else(|| image.to_owned());
    let file = Path::new(&file);
    let name = file.file_name().unwrap_or_default();
    name.as_encoded_bytes().starts_with(OVERLAY.as_bytes()) && !file.exists()
}

fn unmovable(inserted: &Inserted) -> Option<Unmovable> {
    let lasts = |bitmap: &Bitmap| bitmap.persistent && !bitmap.name.is_empty();
    if inserted.read_only {
        Some(Unmovable::ReadOnly)
    } else if !is_known(&inserted.driver) {
        Some(Unmovable::Format)
    } else if inserted.encrypted {
        Some(Unmovable::Encrypted)
    } else if !inserted.image.snapshots.is_empty() {
        Some(Unmovable::Snapshots)
    } else if inserted.bitmaps.iter().any(lasts) {
        Some(Unmovable::Bitmaps)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_has_the_name_that_its_owner_gave_it() {
        let named = "/machine/peripheral/vda/virtio-backend";
        let unnamed = "/machine/peripheral-anon/device[0]/virtio-backend";
        assert_eq!(device_name("", Some(named), Some("disk0")), "vda");
        assert_eq!(device_name("", Some("sda"), Some("disk0")), "sda");
        assert_eq!(device_name("d1", Some("sda"), Some("disk0")), "sda");
        assert_eq!(device_name("d1", Some(""), Some("disk0")), "d1");
        assert_eq!(device_name("d1", Some(named), None), "vda");
        assert_eq!(device_name("d1", Some(unnamed), None), "d1");
        assert_eq!(device_name("", Some(unnamed), Some("disk0")), "disk0");
        assert_eq!(device_name("", Some(unnamed), None), unnamed);
    }
}
