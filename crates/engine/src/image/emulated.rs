//! A layer over any image that answers no sooner than its datastore's emulated array
//! would.
//!
//! Reads and writes go to the image below and to the model at once, and are answered
//! when both have answered; zeroes are a write of no bytes there. Flushes and
//! questions go to the image below alone: the modelled write cache keeps what it has
//! acknowledged. An error is answered at once.
//!
//! The image below must be quicker than the model for the emulation to be true;
//! where it is not, its own time shows.

use std::collections::HashMap;
use std::sync::Arc;

use sterna_core::Nanos;
use sterna_core::array::Kind;

use super::emulator::Emulator;
use super::layer::{Answer, Layer, Request, under};
use super::{ImageOp, Opened};

/// `opened`, no quicker than the array.
pub(super) fn emulated(
    opened: Box<dyn Opened>,
    array: &Arc<Emulator>,
) -> Box<dyn Opened> {
    let array = Arc::clone(array);
    under(opened, move || Emulated::new(array))
}

struct Emulated {
    array: Arc<Emulator>,
    lun: u32,
    /// What requests are called to the model: an answered ticket may come again.
    next: u64,
    /// What the image below has not answered, by the ticket's number.
    below: HashMap<u64, u64>,
    /// What the model has not answered, with the answer that waits for it.
    modelled: HashMap<u64, Option<Answer>>,
}

impl Emulated {
    fn new(array: Arc<Emulator>) -> Emulated {
        let lun = array.enter();
        let (below, modelled) = (HashMap::new(), HashMap::new());
        Emulated { array, lun, next: 0, below, modelled }
    }
}

impl Layer for Emulated {
    const TAG: u32 = u32::MAX - 1;

    fn arrived(&mut self, now: Nanos, request: Request) -> Option<Request> {
        let modelled = match &request.1 {
            ImageOp::Read { offset, buf } => Some((Kind::Read, *offset, buf.len())),
            ImageOp::Write { offset, buf, .. } => Some((Kind::Write, *offset, buf.len())),
            ImageOp::Zero { offset, .. } => Some((Kind::Write, *offset, 0)),
            _ => None,
        };
        if let Some((kind, offset, bytes)) = modelled {
            let bytes = bytes as u64;
            let id = self.next;
            self.next += 1;
            self.array.submit(now, self.lun, id, kind, offset, bytes);
            self.modelled.insert(id, None);
            self.below.insert(request.0.id, id);
        }
        Some(request)
    }

    fn answered(&mut self, _now: Nanos, answer: Answer) -> Option<Answer> {
        let id = self.below.remove(&answer.0.id);
        match id.and_then(|id| self.modelled.get_mut(&id)) {
            Some(kept) if answer.1.is_ok() => *kept = Some(answer),
            _ => return Some(answer),
        }
        None
    }

    fn release(&mut self, now: Nanos, answers: &mut Vec<Answer>) -> Option<Nanos> {
        let (answered, next) = self.array.look(now, self.lun);
        answers.extend(answered.iter().filter_map(|id| self.modelled.remove(id)?));
        next.filter(|_| !self.modelled.is_empty())
    }

    fn in_flight(&self) -> usize {
        self.modelled.values().flatten().count()
    }

    /// An error is answered before the model has answered.
    fn is_idle(&self) -> bool {
        self.modelled.is_empty()
    }
}

impl Drop for Emulated {
    fn drop(&mut self) {
        self.array.leave(self.lun);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::layer::Under;
    use crate::image::rig::Rig;
    use crate::image::{Budget, Cx, Image, ImageInfo, Ticket};
    use crate::io::{Completion, Errno, ImageId};

    /// A disk that takes 1 ms and 1 s for each GiB; a write 2 ms.
    const PLAIN: &str = "old-fc?spindles=1&seek=0s&revolution=0s&overhead=1ms&cache=0\
                         &ack=2ms&media=1G&link=1T";

    fn rig(shape: &str, model: &str) -> Rig {
        let budget = Budget::new(shape.parse().unwrap());
        Rig::new(budget.emulating(model.parse().unwrap()))
    }

    #[test]
    fn reads_of_all_images_wait_for_one_array() {
        let mut rig = rig("none", PLAIN);
        rig.read_from(0, 1, 65536);
        rig.read_from(1, 2, 65536);
        rig.read_from(0, 3, 65536);
        // 61 us for each, one after the other, and 1 ms.
        assert_eq!(rig.run(), [(1, 1061), (2, 1122), (3, 1183)]);
    }

    #[test]
    fn writes_and_zeroes_take_what_the_write_cache_takes_and_a_flush_passes() {
        let mut rig = rig("none", PLAIN);
        let buf = rig.buffer.part(0, 4096);
        rig.submit(1, ImageOp::Write { offset: 0, buf, fua: false });
        let (offset, len) = (4096, 1 << 29);
        rig.submit(
            2,
            ImageOp::Zero { offset, len, unmap: true, fua: false, fast: false },
        );
        rig.submit(3, ImageOp::Flush);
        assert_eq!(rig.run(), [(3, 0), (1, 2000), (2, 2000)]);
    }

    #[test]
    fn a_ticket_may_come_again_once_it_is_answered() {
        let mut rig = rig("none", PLAIN);
        for _ in 0..3 {
            rig.read(7, 512);
            assert_eq!(rig.run().len(), 1);
        }
    }

    #[test]
    fn a_shape_holds_before_the_array() {
        // 100 IO/s: the third waits for 10 ms, and then for the array.
        let mut rig = rig("iops=100,latency=1ms", PLAIN);
        for id in 1..=3 {
            rig.read(id, 0);
        }
        assert_eq!(rig.run(), [(1, 2000), (2, 2000), (3, 12_000)]);
    }

    #[test]
    fn nothing_goes_past_the_array_by_reference() {
        let mut rig = rig("none", PLAIN);
        let from = std::fs::File::open("/dev/null").unwrap();
        let from = Arc::new(crate::io::Stored::new(from, &Arc::default(), true));
        rig.submit(1, ImageOp::Clone { offset: 0, len: 4096, from });
        let refused = Err(Errno(libc::EOPNOTSUPP));
        assert_eq!(rig.cx.finished, [(Ticket { disk: 1, id: 1 }, refused)]);
        assert!(rig.images[0].file().is_none());
    }

    /// An image below that fails.
    struct Broken;

    impl Image for Broken {
        fn submit(&mut self, cx: &mut Cx, ticket: Ticket, _op: ImageOp) {
            cx.finished.push((ticket, Err(Errno(libc::EIO))));
        }

        fn completed(&mut self, _cx: &mut Cx, _completion: Completion) {}

        fn info(&self) -> ImageInfo {
            let (size, min_block) = (1 << 30, 1);
            let (direct, finds_holes, fast_zero) = (false, false, true);
            ImageInfo { size, min_block, direct, finds_holes, fast_zero }
        }

        fn in_flight(&self) -> usize {
            0
        }
    }

    #[test]
    fn an_error_is_answered_at_once_and_once() {
        let mut rig = rig("none", PLAIN);
        let array = Arc::new(Emulator::new(PLAIN.parse().unwrap()));
        let id = ImageId { disk: 1, image: 0 };
        let layered = Under::new(Box::new(Broken), Emulated::new(array), id);
        rig.images[0] = Box::new(layered);
        rig.read(1, 512);
        assert!(matches!(rig.cx.finished[..], [(_, Err(Errno(libc::EIO)))]));
        assert_eq!(rig.run(), [(1, 0)]);
    }
}
