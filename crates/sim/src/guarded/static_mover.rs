//! A copier with a static speed, as hypervisors have.
//!
//! It goes in runs of [`RUN`], with [`DEPTH`] chunks of [`CHUNK`] in flight, as fast as
//! the arrays take them. A run begins when the one before has, and what that was too much
//! for a slice of time, at its speed, is made up for by the next slices (QEMU's mirror,
//! its buffer and its rate limit).

use sterna_core::{ByteRange, IdMap, Nanos};

use super::stage::{Answered, Stage};

/// Bytes of a chunk.
const CHUNK: u64 = 1 << 20;

/// Bytes that are read one after the other, whatever the speed.
const RUN: u64 = 10 << 20;

/// Chunks in flight.
const DEPTH: usize = 16;

/// The time in which so many bytes may start.
const SLICE: Nanos = Nanos::from_millis(100);

pub(super) struct StaticMover {
    size: u64,
    /// Bytes in a slice.
    quota: u64,
    begun: u64,
    /// Bytes that have not begun of the present run.
    run: u64,
    /// Bytes of runs that have started in the slice that ends then.
    started: u64,
    slice: Nanos,
    in_flight: IdMap<u64, ByteRange>,
}

impl StaticMover {
    pub(super) fn new(size: u64, speed: u64) -> Self {
        let quota = (speed as f64 * SLICE.as_secs_f64()) as u64;
        StaticMover {
            size,
            quota: quota.max(1),
            begun: 0,
            run: 0,
            started: 0,
            slice: SLICE,
            in_flight: IdMap::default(),
        }
    }

    pub(super) fn run(mut self, stage: &mut Stage, until: Nanos) {
        while stage.now() < until && !self.is_done() {
            if stage.now() >= self.slice {
                // What was too much is made up for.
                self.started = self.started.saturating_sub(self.quota);
                self.slice = self.slice.plus(SLICE);
                stage.window(SLICE);
            }
            while let Some((name, kind, range)) = stage.next_request() {
                stage.ask(name, kind, range);
            }
            self.start(stage);
            for answered in stage.advance(self.slice.min(until)) {
                match answered {
                    Answered::Guest(name) => stage.answer(name),
                    Answered::Twin(_) => {}
                    Answered::Read(number) => {
                        stage.write(number, self.in_flight[&number]);
                    }
                    Answered::Write(number) => {
                        self.in_flight.remove(&number);
                    }
                }
            }
        }
    }

    fn is_done(&self) -> bool {
        self.size > 0 && self.begun >= self.size && self.in_flight.is_empty()
    }

    fn start(&mut self, stage: &mut Stage) {
        while self.in_flight.len() < DEPTH {
            if self.run == 0 && self.started < self.quota {
                self.run = RUN.min(self.size - self.begun);
                self.started += self.run;
            }
            if self.run == 0 {
                return;
            }
            let range = ByteRange::new(self.begun, CHUNK.min(self.run));
            self.in_flight.insert(self.begun, range);
            stage.read(self.begun, range);
            self.begun += range.len;
            self.run -= range.len;
        }
    }
}
