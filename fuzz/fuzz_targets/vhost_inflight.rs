//! Any bytes in an area of what is under way, then requests, answers and kills: no request
//! is named twice, and after a kill exactly those are under way that were, in their order.

#![no_main]

use std::collections::HashSet;

use libfuzzer_sys::fuzz_target;
use sterna_engine::fuzzing::{Inflight, Queue};

/// Bytes before a queue's entries, of an entry, and where its count is.
const HEAD: usize = 16;
const ENTRY: usize = 16;
const COUNT: usize = 8;

fuzz_target!(|input: &[u8]| {
    let Some((shape, rest)) = input.split_first_chunk::<6>() else { return };
    let (queues, index) = (u16::from(shape[0] % 5), u16::from(shape[1] % 5));
    let (size, entries) = (u16::from(shape[2] % 33), u16::from(shape[3] % 33));
    let used = u16::from_le_bytes([shape[4], shape[5]]);
    let len = usize::from(queues) * (HEAD + usize::from(size) * ENTRY);
    let (area, steps) = rest.split_at(rest.len().min(len));
    let mut area = area.to_vec();
    // Nobody counts so far; from there on, which came first could not be told.
    for entry in 0..area.len() / ENTRY {
        if let Some(byte) = area.get_mut(HEAD + entry * ENTRY + COUNT + 7) {
            *byte &= 0x7f;
        }
    }
    let Some(inflight) = Inflight::new(queues, size, &area) else {
        assert!(queues == 0 || size == 0);
        return;
    };
    let Some((queue, heads)) = inflight.take_up(index, entries, used) else {
        assert!(index >= queues || entries > size);
        return;
    };
    let different: HashSet<u16> = heads.iter().copied().collect();
    assert_eq!(different.len(), heads.len(), "no request is named twice");
    assert!(heads.iter().all(|head| *head < entries));
    let run = Run { inflight, queue, index, entries, used, heads };
    run.all(steps);
});

struct Run {
    inflight: Inflight,
    queue: Queue,
    index: u16,
    entries: u16,
    used: u16,
    /// What is under way.
    heads: Vec<u16>,
}

impl Run {
    fn all(mut self, steps: &[u8]) {
        for step in steps {
            let head = u16::from(step >> 2) % self.entries.max(1);
            match step % 4 {
                0 if !self.heads.contains(&head) && head < self.entries => {
                    self.queue.start(head);
                    self.heads.push(head);
                }
                1 => self.answer(usize::from(head), true),
                2 => self.answer(usize::from(head), false),
                3 => self.kill(),
                _ => {}
            }
        }
        self.kill();
    }

    /// One is answered; or we are killed after the answer is in the queue.
    fn answer(&mut self, which: usize, all: bool) {
        let Some(at) = which.checked_rem(self.heads.len()) else { return };
        let head = self.heads.remove(at);
        self.queue.answer(head);
        self.used = self.used.wrapping_add(1);
        match all {
            true => self.queue.answered(head, self.used),
            false => self.kill(),
        }
    }

    fn kill(&mut self) {
        let taken = self.inflight.take_up(self.index, self.entries, self.used);
        let (queue, heads) = taken.expect("it has the shape that it had");
        assert_eq!(heads, self.heads);
        self.queue = queue;
    }
}
