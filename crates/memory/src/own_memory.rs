//! QEMU's own memory, of which something may be out when a VM wakes.
//!
//! A sleep takes none of it out, but a host that is short does, and a limit of the VM's control
//! group. The guest stands still while QEMU waits for it, whatever is back of the guest's memory.
//! So it comes first, in the order of the devices' slots; there is little of it: an emulated guest
//! has 80 MiB, any other one less.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use sterna_core::memory::GRANULE;
use sterna_os::process_memory::{Mapping, PAGE, Page};
use sterna_runtime::threads;

use crate::guest_memory::GuestMemory;
use crate::work::Work;

/// More is not brought back: it is no memory that QEMU needs to run.
const PAGES_MOST: usize = (512 << 20) / PAGE as usize;

/// A mapping that is longer is an address space that is reserved, and hardly used.
const MAPPING_MOST: u64 = 64 << 30;

/// So many bytes are read at once, if they lie together.
const TOGETHER: u64 = GRANULE;

/// So many reads are begun before the first of them is waited for.
const AHEAD: usize = 8;

/// The guest's own memory waits for this long at most: a device may hang.
const WITHIN: Duration = Duration::from_secs(10);

/// How often it is looked whether the wake is to end.
const TICK: Duration = Duration::from_millis(10);

/// Brings back what is out of QEMU's own memory, and waits for it, unless that takes too long or
/// the work is to stop. So many bytes of the guest's are out.
pub(crate) fn bring_back(guest: &Arc<GuestMemory>, of_guest: u64, work: &Work) {
    // To look through all of QEMU's memory takes a moment, in which the guest waits.
    if guest.signs().is_ok_and(|signs| signs.out() <= of_guest) {
        return;
    }
    let (tell, told) = mpsc::channel();
    let guest = guest.clone();
    let began = Instant::now();
    let started = threads::start("sterna-own".into(), move || {
        let _ = tell.send(read(&guest));
    });
    // Without a thread the kernel brings it back page by page.
    while started.is_ok() && began.elapsed() < WITHIN && !work.is_to_stop() {
        match told.recv_timeout(TICK) {
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Ok(Ok(bytes)) if bytes > 0 => {
                tracing::info!(bytes, took = ?began.elapsed(), "QEMU's own memory is back");
                return;
            }
            _ => return,
        }
    }
}

/// Reads all that is out of it; gives how many bytes that were.
fn read(guest: &GuestMemory) -> io::Result<u64> {
    let (process, ram) = guest.process();
    let is_own = |mapping: &Mapping| {
        let len = mapping.range.end - mapping.range.start;
        // What a program writes to of its own file goes to swap as well.
        let is_its = mapping.writable && !mapping.shared;
        is_its && mapping.range != *ram && len <= MAPPING_MOST
    };
    let mut out: Vec<(u8, u64, u64)> = Vec::new();
    for mapping in process.mappings()?.into_iter().filter(is_own) {
        let mut address = mapping.range.start;
        // One that has gone meanwhile has nothing out.
        let _ = process.pages(mapping.range, |pages| {
            for page in pages {
                if let Page::Out { device, slot } = *page {
                    out.push((device, slot, address));
                }
                address += PAGE;
            }
        });
        if out.len() > PAGES_MOST {
            break;
        }
    }
    out.truncate(PAGES_MOST);
    out.sort_unstable();
    // All of its pages: what QEMU has not used yet would count as out.
    let wait_for = |run: Range<u64>| {
        for address in run.step_by(PAGE as usize) {
            let _ = process.wait_for(address);
        }
    };
    let mut begun: VecDeque<Range<u64>> = VecDeque::new();
    for run in runs(&out) {
        // What cannot be begun or read QEMU meets by itself.
        let _ = process.will_need(&run);
        begun.push_back(run);
        if begun.len() > AHEAD {
            begun.pop_front().into_iter().for_each(wait_for);
        }
    }
    begun.into_iter().for_each(wait_for);
    Ok(out.len() as u64 * PAGE)
}

/// The addresses of pages that lie together on a device and in memory, in the order of slots.
fn runs(out: &[(u8, u64, u64)]) -> Vec<Range<u64>> {
    let mut runs: Vec<Range<u64>> = Vec::new();
    let mut next = None;
    for one in out {
        let (device, slot, address) = *one;
        let follows = next == Some(*one);
        match runs.last_mut() {
            Some(run) if follows && run.end - run.start < TOGETHER => run.end += PAGE,
            _ => runs.push(address..address + PAGE),
        }
        next = Some((device, slot + 1, address + PAGE));
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_together_on_the_device_and_in_memory_is_read_at_once() {
        let page = |device, slot, at: u64| (device, slot, at * PAGE);
        let out = [page(0, 7, 3), page(0, 8, 4), page(0, 9, 9), page(1, 10, 10)];
        let found = runs(&out);
        let of = |range: Range<u64>| range.start * PAGE..range.end * PAGE;
        assert_eq!(found, [of(3..5), of(9..10), of(10..11)]);
        let long: Vec<_> = (0..20).map(|at| page(0, at, at)).collect();
        assert_eq!(runs(&long), [of(0..16), of(16..20)]);
        assert!(runs(&[]).is_empty());
    }
}
