//! Reads that somebody waits for, to find out whether they come to this disk.
//!
//! To find out whether a server passes on the bytes of a disk, Sterna reads a few places of the
//! server, picked by chance, and sees whether (nearly) all of these reads come to the disk
//! meanwhile. A cache on the way, or a read that is joined with others, may keep one in
//! [`MISSING`] of them away. An application that reads the same places itself, in those
//! milliseconds, is taken for the server; nothing else is.

use std::ops::Range;

use crate::image::ImageOp;

/// A server may ask for more than it is asked for (whole blocks, some ahead), up to this.
const WIDEST: usize = 256 << 10;

/// One read in so many need not come.
const MISSING: usize = 4;

/// The reads of one question.
#[derive(Debug)]
pub(crate) struct Watch {
    id: u64,
    asked: usize,
    left: Vec<Range<u64>>,
}

/// All questions at this disk.
#[derive(Debug, Default)]
pub(crate) struct Watches(Vec<Watch>);

impl Watches {
    pub(crate) fn begin(&mut self, id: u64, reads: Vec<Range<u64>>) {
        self.0.push(Watch { id, asked: reads.len(), left: reads });
    }

    /// Ends a question; says whether (nearly) all of its reads have come.
    pub(crate) fn end(&mut self, id: u64) -> bool {
        let at = self.0.iter().position(|watch| watch.id == id);
        let ended = at.map(|at| self.0.swap_remove(at));
        ended.is_some_and(|watch| watch.left.len() <= watch.asked / MISSING)
    }

    /// A request has come.
    pub(super) fn comes(&mut self, op: &ImageOp) {
        if self.0.is_empty() {
            return;
        }
        let ImageOp::Read { offset, buf } = op else { return };
        let read = *offset..*offset + buf.len() as u64;
        if buf.len() > WIDEST {
            return;
        }
        for watch in &mut self.0 {
            watch.left.retain(|it| it.start < read.start || it.end > read.end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::Pool;

    #[test]
    fn all_reads_of_a_question_must_come_within_others() {
        let pool = Pool::new(1 << 20).unwrap();
        let mut watches = Watches::default();
        let read = |watches: &mut Watches, offset: u64, len: usize| {
            let buf = pool.get(len).unwrap().slice(0, len);
            watches.comes(&ImageOp::Read { offset, buf });
        };
        watches.begin(1, vec![512..1024, 8192..9216]);
        watches.begin(2, vec![512..1024, 0..512]);
        read(&mut watches, 0, 4096);
        assert!(watches.end(2));
        read(&mut watches, 8192, 512);
        read(&mut watches, 0, 512 << 10);
        watches.begin(3, vec![0..512, 512..1024]);
        assert!(!watches.end(1) && !watches.end(3), "a part, and too wide a read");
        watches.begin(4, vec![512..1024, 8192..9216]);
        read(&mut watches, 8192, 4096);
        read(&mut watches, 512, 512);
        assert!(watches.end(4));
        assert!(!watches.end(4), "it is over");
    }

    #[test]
    fn a_cache_on_the_way_may_answer_a_quarter_of_the_reads() {
        let pool = Pool::new(1 << 20).unwrap();
        for (come, is_it) in [(8, true), (6, true), (5, false)] {
            let mut watches = Watches::default();
            watches.begin(1, (0..8).map(|at| at * 4096..at * 4096 + 512).collect());
            for at in 0..come {
                let buf = pool.get(4096).unwrap().slice(0, 4096);
                watches.comes(&ImageOp::Read { offset: at * 4096, buf });
            }
            assert_eq!(watches.end(1), is_it, "{come} of 8");
        }
    }
}
