//! A load on a disk over vhost-user-blk, put there by a driver in user space, for
//! benchmarks: what a server can do if no guest stands between.
//! `vhost-load SOCKET read|write BYTES DEPTH SECONDS` asks at random places, and prints
//! a line of JSON: I/Os, seconds, and I/Os a second.

use std::error::Error;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use virtio_driver::{
    VhostUser, VirtioBlkQueue, VirtioBlkTransport, VirtioFeatureFlags as Features,
};
use vm_memory::{FileOffset, MmapRegion};

/// Entries of the queue, as Linux has them.
const ENTRIES: u16 = 128;

/// Random enough for places on a disk: xorshift64 (Marsaglia, 2003).
fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// A server may have made the event one that nobody can wait in.
fn wait_readable(event: &impl AsRawFd) {
    let (fd, events) = (event.as_raw_fd(), libc::POLLIN);
    let mut asked = libc::pollfd { fd, events, revents: 0 };
    // SAFETY: it is given one entry, which lives as long as the call.
    unsafe { libc::poll(&raw mut asked, 1, -1) };
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [socket, way, bytes, depth, seconds] = arguments.as_slice() else {
        return Err("vhost-load SOCKET read|write BYTES DEPTH SECONDS".into());
    };
    let writes = match way.as_str() {
        "read" => false,
        "write" => true,
        _ => return Err("it is `read` or `write`".into()),
    };
    let (bytes, depth): (usize, usize) = (bytes.parse()?, depth.parse()?);
    let span = Duration::from_secs_f64(seconds.parse()?);

    let features =
        Features::VERSION_1 | Features::RING_EVENT_IDX | Features::RING_INDIRECT_DESC;
    let mut device: Box<VirtioBlkTransport> =
        Box::new(VhostUser::new(socket, features.bits())?);
    let sectors = device.get_config()?.capacity;
    let places = u64::from(sectors) * 512 / bytes as u64;
    let file = tempfile::tempfile_in("/dev/shm")?;
    file.set_len((bytes * depth) as u64)?;
    let fd = file.as_raw_fd();
    let memory = MmapRegion::<()>::from_file(FileOffset::new(file, 0), bytes * depth)?;
    device.map_mem_region(memory.as_ptr() as usize, memory.size(), fd, 0)?;
    let mut queue =
        VirtioBlkQueue::<usize>::setup_queues(&mut *device, 1, ENTRIES)?.remove(0);
    queue.set_used_notif_enabled(true);
    let (kick, answered) =
        (device.get_submission_notifier(0), device.get_completion_fd(0));

    let mut state = 0x9e37_79b9_7f4a_7c15;
    let (mut free, mut done, began): (Vec<usize>, u64, _) =
        ((0..depth).collect(), 0, Instant::now());
    while began.elapsed() < span {
        for slot in free.drain(..) {
            let place = random(&mut state) % places * bytes as u64;
            // SAFETY: a slot is a part of the mapped memory.
            let buffer = unsafe { memory.as_ptr().add(slot * bytes) };
            // SAFETY: that part is nobody else's until the request is answered.
            unsafe {
                match writes {
                    true => queue.write_raw(place, buffer, bytes, slot)?,
                    false => queue.read_raw(place, buffer, bytes, slot)?,
                }
            }
        }
        if queue.avail_notif_needed() {
            kick.notify()?;
        }
        wait_readable(&*answered);
        answered.read()?;
        for answer in queue.completions() {
            if answer.ret != 0 {
                return Err(format!("the disk says {}", answer.ret).into());
            }
            free.push(answer.context);
        }
        done += free.len() as u64;
    }
    let took = began.elapsed().as_secs_f64();
    let iops = done as f64 / took;
    println!(r#"{{"ios": {done}, "seconds": {took:.3}, "iops": {iops:.0}}}"#);
    Ok(())
}
