//! What a hypervisor says of its machine, message by message.
//!
//! It is gathered here, and told to the device on its reactor when a queue starts
//! (`SET_VRING_KICK`) or stops (`GET_VRING_BASE`, which is answered when the last request
//! is: none of them waits for admission any more then). A message that makes no sense is
//! an error, which ends the connection; so is the end of a queue whose last request is not
//! answered before the server ends.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use vhost::VhostUserMemoryRegionBase;
use vhost::vhost_user::message::{
    VhostTransferStateDirection, VhostTransferStatePhase, VhostUserConfigFlags,
    VhostUserInflight, VhostUserLog, VhostUserMemoryRegion, VhostUserProtocolFeatures,
    VhostUserShMemConfig, VhostUserSharedMsg, VhostUserSingleMemoryRegion,
    VhostUserVirtioFeatures, VhostUserVringAddrFlags, VhostUserVringState,
};
use vhost::vhost_user::{Error, GpuBackend, Result, VhostUserBackendReqHandlerMut};
use virtio_bindings::virtio_blk::VIRTIO_BLK_F_FLUSH;
use virtio_bindings::virtio_ring::VIRTIO_RING_F_EVENT_IDX;

use super::device::Device;
use super::devices::Devices;
use super::inflight::Area;
use super::regions::Regions;
use super::ring::RingSpec;
use super::{QUEUE_SIZE_MAX, QUEUES_MAX, config};
use crate::mailbox::Mailbox;

/// How often it looks whether the server is to end.
const LOOK: Duration = Duration::from_millis(100);

/// The disk that is served.
pub(crate) struct Served<D> {
    /// The way to its reactor.
    pub(crate) mailbox: Arc<Mailbox<D>>,
    /// Its number there.
    pub(crate) index: u32,
    pub(crate) name: String,
    pub(crate) size: u64,
    /// The server is to end: nobody connects again.
    pub(crate) ending: Arc<AtomicBool>,
}

impl<D: Devices> Served<D> {
    /// Does something on the disk's reactor and waits for it.
    fn ask<T: Send + 'static>(
        &self,
        f: impl FnOnce(&mut D) -> T + Send + 'static,
    ) -> Result<T> {
        self.mailbox.ask(f).ok_or(Error::BackendInternalError)
    }
}

/// What a hypervisor has said so far.
pub(super) struct Control<D: Devices> {
    disk: Arc<Served<D>>,
    /// The device's number on the reactor.
    device: u32,
    features: u64,
    regions: Regions,
    area: Option<Area>,
    queues: Vec<Queue>,
}

/// What it has said of a queue.
#[derive(Clone, Default)]
struct Queue {
    size: u16,
    table: u64,
    avail: u64,
    used: u64,
    base: u16,
    enabled: bool,
    runs: bool,
    call: Option<Arc<OwnedFd>>,
}

impl<D: Devices> Control<D> {
    pub(super) fn new(disk: &Arc<Served<D>>) -> Result<Control<D>> {
        let (index, name) = (disk.index, disk.name.clone());
        let added = disk.ask(move |reactor| reactor.add_device(index, &name))?;
        let device = added.map_err(Error::ReqHandlerError)?;
        let queues = vec![Queue::default(); usize::from(QUEUES_MAX)];
        let (features, regions, area) = (0, Regions::default(), None);
        let disk = Arc::clone(disk);
        Ok(Control { disk, device, features, regions, area, queues })
    }

    fn queue(&mut self, index: u32) -> Result<&mut Queue> {
        self.queues.get_mut(index as usize).ok_or(Error::InvalidParam)
    }

    /// Does something with the device on its reactor.
    fn on_device<T: Send + 'static>(
        &self,
        f: impl FnOnce(&mut Device) -> T + Send + 'static,
    ) -> Result<T> {
        let key = self.device;
        let found = self
            .disk
            .ask(move |reactor| reactor.device(key).map(|(device, _)| f(device)))?;
        found.ok_or(Error::BackendInternalError)
    }

    /// When memory that was taken away is to be let go, if any is.
    pub(super) fn settles_at(&self) -> Option<Instant> {
        self.regions.settles_at()
    }

    /// Lets it go.
    pub(super) fn settle(&mut self) -> Result<()> {
        let running = self.queues.iter().filter(|queue| queue.runs);
        let needed = running.flat_map(|queue| [queue.table, queue.avail, queue.used]);
        self.regions.settle(&needed.collect::<Vec<u64>>());
        self.tell_memory()
    }

    /// The device works in the memory that there is now. What there was is unmapped here,
    /// which may take its time, unless a request still works in it.
    fn tell_memory(&self) -> Result<()> {
        let memory = self.regions.memory()?;
        self.on_device(move |device| device.set_memory(memory)).map(drop)
    }

    /// What the reactor says in the end; nothing, if it drops the question. Where the
    /// server is to end, a datastore that hangs holds nobody up for ever.
    fn wait<T>(&self, answer: &Receiver<T>) -> Option<T> {
        let mut left = D::LINGER;
        while !left.is_zero() {
            match answer.recv_timeout(LOOK) {
                Ok(answer) => return Some(answer),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {}
            }
            if self.disk.ending.load(Ordering::SeqCst) {
                left = left.saturating_sub(LOOK);
            }
        }
        None
    }

    fn enables_queues(&self) -> bool {
        self.features & VhostUserVirtioFeatures::PROTOCOL_FEATURES.bits() != 0
    }
}

impl<D: Devices> Drop for Control<D> {
    fn drop(&mut self) {
        let (key, (done, gone)) = (self.device, mpsc::channel());
        self.disk.mailbox.post(move |reactor| reactor.remove_device(key, done));
        // The next hypervisor must find nothing under way: a write that is late would undo
        // what it has written. Where this is not waited for to the end, it is turned away
        // (`Devices::add_device`).
        self.wait(&gone);
    }
}

/// A descriptor that a hypervisor has given to us is for nobody that this process starts:
/// it may be the guest's memory. The protocol's library takes it without that flag, so a
/// program that is started in the moment between the two has it.
fn ours(file: &File) -> Result<()> {
    // SAFETY: changes a flag of a descriptor that is open.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC) } {
        -1 => Err(Error::ReqHandlerError(io::Error::last_os_error())),
        _ => Ok(()),
    }
}

/// An event of a queue. Whatever it really is, nobody waits for it.
fn event(file: File) -> Result<OwnedFd> {
    ours(&file)?;
    let fd = file.as_raw_fd();
    // SAFETY: changes a flag of an open file.
    let set = unsafe {
        let flags = libc::fcntl(fd, libc::F_GETFL);
        libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK)
    };
    if set < 0 {
        return Err(Error::ReqHandlerError(io::Error::last_os_error()));
    }
    Ok(file.into())
}

impl<D: Devices> VhostUserBackendReqHandlerMut for Control<D> {
    fn set_owner(&mut self) -> Result<()> {
        Ok(())
    }

    fn reset_owner(&mut self) -> Result<()> {
        Ok(())
    }

    fn reset_device(&mut self) -> Result<()> {
        Err(unsupported("resetting the device"))
    }

    fn get_features(&mut self) -> Result<u64> {
        Ok(config::features())
    }

    fn set_features(&mut self, features: u64) -> Result<()> {
        if features & !config::features() != 0 {
            return Err(Error::FeatureMismatch);
        }
        self.features = features;
        let flushes = config::has(features, VIRTIO_BLK_F_FLUSH);
        self.on_device(move |device| device.set_flushes(flushes))
    }

    fn set_mem_table(
        &mut self,
        regions: &[VhostUserMemoryRegion],
        files: Vec<File>,
        _postcopy: Option<bool>,
    ) -> Result<Option<Vec<VhostUserMemoryRegionBase>>> {
        files.iter().try_for_each(ours)?;
        self.regions = Regions::of(regions, files)?;
        self.tell_memory()?;
        Ok(None)
    }

    fn set_vring_num(&mut self, index: u32, num: u32) -> Result<()> {
        let size = u16::try_from(num).map_err(|_| Error::InvalidParam)?;
        if size == 0 || size > QUEUE_SIZE_MAX || !size.is_power_of_two() {
            return Err(Error::InvalidParam);
        }
        self.queue(index)?.size = size;
        Ok(())
    }

    fn set_vring_addr(
        &mut self,
        index: u32,
        _flags: VhostUserVringAddrFlags,
        descriptor: u64,
        used: u64,
        available: u64,
        _log: u64,
    ) -> Result<()> {
        let table = self.regions.translate(descriptor)?;
        let avail = self.regions.translate(available)?;
        let used = self.regions.translate(used)?;
        let queue = self.queue(index)?;
        (queue.table, queue.avail, queue.used) = (table, avail, used);
        Ok(())
    }

    fn set_vring_base(&mut self, index: u32, base: u32) -> Result<()> {
        self.queue(index)?.base = u16::try_from(base).map_err(|_| Error::InvalidParam)?;
        Ok(())
    }

    fn get_vring_base(&mut self, index: u32) -> Result<VhostUserVringState> {
        let number = u16::try_from(index).map_err(|_| Error::InvalidParam)?;
        let (key, (done, stopped)) = (self.device, mpsc::channel());
        self.disk.ask(move |reactor| {
            if let Some((device, cx)) = reactor.device(key) {
                device.stop_ring(cx, number, done);
            }
        })?;
        let base = self.wait(&stopped);
        let queue = self.queue(index)?;
        queue.base = match base {
            Some(base) => base,
            // Where it would go on is not known: with the base that it began with, all
            // that has been answered since would be carried out once more.
            None if queue.runs => return Err(Error::BackendInternalError),
            // It is where it was to begin.
            None => queue.base,
        };
        (queue.runs, queue.call) = (false, None);
        Ok(VhostUserVringState::new(index, u32::from(queue.base)))
    }

    fn set_vring_kick(&mut self, index: u8, file: Option<File>) -> Result<()> {
        let number = u16::from(index);
        // Without an event we would have to poll.
        let kick = event(file.ok_or(Error::InvalidParam)?)?;
        let (features, enables) = (self.features, self.enables_queues());
        let area = self.area.clone();
        let queue = self.queue(u32::from(index))?;
        queue.enabled |= !enables;
        let tracked = match &area {
            Some(area) => {
                Some(area.queue(number, queue.size).ok_or(Error::InvalidParam)?)
            }
            None => None,
        };
        let call = queue.call.as_ref().map(|call| call.try_clone()).transpose();
        let spec = RingSpec {
            size: queue.size,
            table: queue.table,
            avail: queue.avail,
            used: queue.used,
            base: queue.base,
            event_idx: config::has(features, VIRTIO_RING_F_EVENT_IDX),
            enabled: queue.enabled,
            kick,
            call: call.map_err(Error::ReqHandlerError)?,
            tracked,
        };
        let name = self.disk.name.clone();
        match self.on_device(move |device| device.start_ring(number, spec))? {
            Ok(0) => {}
            Ok(repeated) => {
                tracing::info!(disk = name, queue = number, repeated, "requests resumed");
            }
            Err(error) => {
                tracing::warn!(
                    disk = name,
                    queue = number,
                    error,
                    "cannot start a queue"
                );
                return Err(Error::InvalidParam);
            }
        }
        self.queue(u32::from(index))?.runs = true;
        Ok(())
    }

    fn set_vring_call(&mut self, index: u8, file: Option<File>) -> Result<()> {
        let event = file.map(event).transpose()?.map(Arc::new);
        self.queue(u32::from(index))?.call.clone_from(&event);
        let call = event.map(|event| event.try_clone()).transpose();
        let call = call.map_err(Error::ReqHandlerError)?;
        self.on_device(move |device| device.set_call(u16::from(index), call))
    }

    fn set_vring_err(&mut self, _index: u8, _file: Option<File>) -> Result<()> {
        Ok(())
    }

    fn get_protocol_features(&mut self) -> Result<VhostUserProtocolFeatures> {
        Ok(VhostUserProtocolFeatures::MQ
            | VhostUserProtocolFeatures::CONFIG
            | VhostUserProtocolFeatures::CONFIGURE_MEM_SLOTS
            | VhostUserProtocolFeatures::INFLIGHT_SHMFD)
    }

    fn set_protocol_features(&mut self, _features: u64) -> Result<()> {
        Ok(())
    }

    fn get_queue_num(&mut self) -> Result<u64> {
        Ok(u64::from(QUEUES_MAX))
    }

    fn set_vring_enable(&mut self, index: u32, enable: bool) -> Result<()> {
        self.queue(index)?.enabled = enable;
        let number = u16::try_from(index).map_err(|_| Error::InvalidParam)?;
        self.on_device(move |device| device.enable_ring(number, enable))
    }

    fn get_config(
        &mut self,
        offset: u32,
        size: u32,
        _flags: VhostUserConfigFlags,
    ) -> Result<Vec<u8>> {
        // What virtio added after our time reads as zeroes.
        let space = config::space(self.disk.size).into_iter();
        let from = space.chain(std::iter::repeat(0)).skip(offset as usize);
        Ok(from.take(size as usize).collect())
    }

    fn set_config(
        &mut self,
        _offset: u32,
        _bytes: &[u8],
        _flags: VhostUserConfigFlags,
    ) -> Result<()> {
        Err(unsupported("changing the configuration"))
    }

    fn get_inflight_fd(
        &mut self,
        asked: &VhostUserInflight,
    ) -> Result<(VhostUserInflight, File)> {
        let (queues, size) = (asked.num_queues, asked.queue_size);
        let file = Area::create(queues, size).map_err(Error::ReqHandlerError)?;
        let area = VhostUserInflight::new(Area::len(queues, size), 0, queues, size);
        Ok((area, file))
    }

    fn set_inflight_fd(&mut self, area: &VhostUserInflight, file: File) -> Result<()> {
        ours(&file)?;
        let opened = Area::open(file, area.mmap_offset, area.num_queues, area.queue_size);
        self.area = Some(opened.map_err(Error::ReqHandlerError)?);
        Ok(())
    }

    fn set_gpu_socket(&mut self, _socket: GpuBackend) -> Result<()> {
        Err(unsupported("graphics"))
    }

    fn get_shared_object(&mut self, _object: VhostUserSharedMsg) -> Result<File> {
        Err(unsupported("shared objects"))
    }

    fn get_max_mem_slots(&mut self) -> Result<u64> {
        Ok(Regions::MAX)
    }

    fn add_mem_region(
        &mut self,
        region: &VhostUserSingleMemoryRegion,
        file: File,
        _postcopy: Option<bool>,
    ) -> Result<Option<VhostUserMemoryRegionBase>> {
        ours(&file)?;
        self.regions.add(region, file)?;
        self.tell_memory()?;
        Ok(None)
    }

    fn remove_mem_region(&mut self, region: &VhostUserSingleMemoryRegion) -> Result<()> {
        // The device works in what leaves until that has left.
        self.regions.remove(region)
    }

    fn set_device_state_fd(
        &mut self,
        _direction: VhostTransferStateDirection,
        _phase: VhostTransferStatePhase,
        _file: File,
    ) -> Result<Option<File>> {
        Err(unsupported("moving the device's state"))
    }

    fn check_device_state(&mut self) -> Result<()> {
        Err(unsupported("moving the device's state"))
    }

    fn get_shmem_config(&mut self) -> Result<VhostUserShMemConfig> {
        Err(unsupported("shared memory"))
    }

    fn set_log_base(&mut self, _log: &VhostUserLog, _file: File) -> Result<()> {
        Err(unsupported("logging what changes"))
    }
}

/// Nobody has offered this.
fn unsupported(what: &'static str) -> Error {
    Error::InvalidOperation(what)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The flags of a descriptor.
    fn flags(file: &File) -> i32 {
        // SAFETY: asks for flags of a descriptor that is open.
        unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETFD) }
    }

    #[test]
    fn what_a_hypervisor_gives_is_for_no_program_that_is_started() {
        let file = tempfile::tempfile().expect("a file");
        // SAFETY: changes a flag of a descriptor that is open.
        unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFD, 0) };
        ours(&file).expect("it is open");
        assert_eq!(flags(&file), libc::FD_CLOEXEC);
    }
}
