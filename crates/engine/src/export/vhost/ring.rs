//! One queue of a device: what comes out of it, and how answers go back.
//!
//! The queue itself is rust-vmm's (`virtio_queue::Queue`): the indices, and who wants
//! to be told of what. Here is when it runs. It is started with the events that go with
//! it; it is enabled and disabled; it stops when the last of its requests is answered,
//! and says where it was. A queue whose indices make no sense is broken: nothing more is
//! taken out of it until it is started anew.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;

use sterna_core::Nanos;
use virtio_queue::{Error, Queue, QueueOwnedT, QueueT};
use vm_memory::{GuestAddress, GuestMemoryMmap};

use super::QUEUE_SIZE_MAX;
use super::chain::Chain;
use super::inflight::Tracked;
use super::moderation::{Iteration, Moderation};
use crate::image::Cx;
use crate::io::{Fd, Op, Token, drain, signal};

/// A queue as the hypervisor has described it.
#[derive(Debug)]
pub(crate) struct RingSpec {
    pub(super) size: u16,
    /// Where the descriptors and the two rings are, in the guest's memory.
    pub(super) table: u64,
    pub(super) avail: u64,
    pub(super) used: u64,
    /// The next request to be taken.
    pub(super) base: u16,
    pub(super) event_idx: bool,
    pub(super) enabled: bool,
    /// Tells us of requests.
    pub(super) kick: OwnedFd,
    /// Tells the guest of answers.
    pub(super) call: Option<OwnedFd>,
    pub(super) tracked: Option<Tracked>,
}

/// A queue that runs.
pub(super) struct Ring {
    queue: Queue,
    kick: Fd,
    call: Option<OwnedFd>,
    tracked: Option<Tracked>,
    pub(super) enabled: bool,
    /// We wait for a kick.
    polled: bool,
    /// Requests that were under way before our time.
    again: VecDeque<u16>,
    /// Requests that have been taken and not answered.
    pub(super) under_way: u32,
    /// What happens in this iteration.
    iteration: Iteration,
    moderation: Moderation,
    broken: bool,
    /// It is to stop; who waits for where it was.
    stopping: Option<Sender<u16>>,
    /// It is to end without being asked where it was.
    pub(super) ending: bool,
}

impl Ring {
    /// Starts a queue.
    pub(super) fn start(
        memory: &GuestMemoryMmap<()>,
        spec: RingSpec,
    ) -> Result<Ring, Error> {
        let mut queue = Queue::new(QUEUE_SIZE_MAX)?;
        queue.try_set_size(spec.size)?;
        queue.try_set_desc_table_address(GuestAddress(spec.table))?;
        queue.try_set_avail_ring_address(GuestAddress(spec.avail))?;
        queue.try_set_used_ring_address(GuestAddress(spec.used))?;
        queue.set_event_idx(spec.event_idx);
        queue.set_ready(true);
        if !queue.is_valid(memory) {
            return Err(Error::QueueNotReady);
        }
        let used = queue.used_idx(memory, Ordering::Acquire)?.0;
        queue.set_next_used(used);
        queue.set_next_avail(spec.base);
        let mut tracked = spec.tracked;
        let mut again = VecDeque::new();
        if let Some(tracked) = &mut tracked {
            again.extend(tracked.recover(used));
            // What is neither answered nor under way has not been taken.
            queue.set_next_avail(used.wrapping_add(again.len() as u16));
        }
        // Whoever served the queue before us may have answered and not said so.
        if let Some(call) = &spec.call {
            signal(call);
        }
        Ok(Ring {
            queue,
            kick: spec.kick.into(),
            call: spec.call,
            tracked,
            enabled: spec.enabled,
            polled: false,
            again,
            under_way: 0,
            iteration: Iteration::default(),
            moderation: Moderation::default(),
            broken: false,
            stopping: None,
            ending: false,
        })
    }

    /// Requests that are carried out once more.
    pub(super) fn repeated(&self) -> usize {
        self.again.len()
    }

    /// The next request: where its descriptors begin.
    pub(super) fn take(
        &mut self,
        memory: &GuestMemoryMmap<()>,
        now: Nanos,
    ) -> Option<u16> {
        if self.ending {
            return None;
        }
        if let Some(head) = self.again.pop_front() {
            self.under_way += 1;
            return Some(head);
        }
        if !self.enabled || self.broken || self.stopping.is_some() {
            return None;
        }
        match self.next(memory, now) {
            Ok(head) => {
                let head = head?;
                if let Some(tracked) = &mut self.tracked {
                    tracked.start(head);
                }
                self.under_way += 1;
                self.iteration.found += 1;
                Some(head)
            }
            Err(error) => {
                tracing::warn!(%error, "a guest's queue is invalid: Sterna stops serving \
                                        the queue");
                self.broken = true;
                None
            }
        }
    }

    fn next(
        &mut self,
        memory: &GuestMemoryMmap<()>,
        now: Nanos,
    ) -> Result<Option<u16>, Error> {
        // Between the look and the wish to be told there may have come one: then a second
        // look finds it.
        for _ in 0..2 {
            let first = self.queue.iter(memory)?.next().map(|chain| chain.head_index());
            match first {
                Some(head) if head >= self.queue.size() => break,
                Some(head) => return Ok(Some(head)),
                None if !self.moderation.wants_kicks(now) => return Ok(None),
                None if !self.queue.enable_notification(memory)? => return Ok(None),
                None => self.queue.disable_notification(memory)?,
            }
        }
        Err(Error::InvalidDescriptorIndex)
    }

    /// What a request consists of.
    pub(super) fn chain(&self, memory: &GuestMemoryMmap<()>, head: u16) -> Option<Chain> {
        Chain::walk(memory, self.queue.desc_table(), self.queue.size(), head)
    }

    /// Puts an answer into the queue, of so many bytes that were written.
    pub(super) fn answer(&mut self, memory: &GuestMemoryMmap<()>, head: u16, len: u32) {
        self.under_way -= 1;
        if let Some(tracked) = &mut self.tracked {
            tracked.answer(head);
        }
        if let Err(error) = self.queue.add_used(memory, head, len) {
            tracing::warn!(%error, "a guest's queue accepts no answer: Sterna stops \
                                    serving the queue");
            self.broken = true;
            return;
        }
        self.iteration.answered += 1;
        if let Some(tracked) = &mut self.tracked {
            tracked.answered(head, self.queue.next_used());
        }
    }

    /// A request is left to whoever serves the queue next.
    pub(super) fn leave(&mut self) {
        self.under_way -= 1;
    }

    /// Tells the guest of answers, if it is time and if it wants to know, and waits for the
    /// next kick.
    pub(super) fn flush(
        &mut self,
        cx: &mut Cx,
        memory: &GuestMemoryMmap<()>,
        token: Token,
    ) {
        let iteration = Iteration {
            under_way: self.under_way,
            ..std::mem::take(&mut self.iteration)
        };
        if self.moderation.tells(cx.now, iteration)
            && self.queue.needs_notification(memory).unwrap_or(true)
        {
            self.call();
        }
        let runs = self.stopping.is_none() && !self.ending;
        if runs && !std::mem::replace(&mut self.polled, true) {
            cx.io.submit(token, Op::Readable { fd: self.kick.clone() });
        }
    }

    /// When there is something to do, if nothing happens before.
    pub(super) fn next_moment(&self) -> Option<Nanos> {
        self.moderation.next()
    }

    fn call(&self) {
        if let Some(call) = &self.call {
            signal(call);
        }
    }

    /// It is looked at again in the next iteration.
    pub(super) fn kick_self(&self) {
        signal(&self.kick);
    }

    /// It is about to be dropped.
    pub(super) fn forget(&self, cx: &mut Cx) {
        cx.io.forget(&self.kick);
    }

    /// The guest is told in another way from now on. What it was told in the old one it
    /// may have missed.
    pub(super) fn set_call(&mut self, call: Option<OwnedFd>) {
        self.call = call;
        self.call();
    }

    /// There was a kick, or the wait for it has been given up.
    pub(super) fn kicked(&mut self, memory: &GuestMemoryMmap<()>) {
        self.polled = false;
        drain(&self.kick);
        // Until we have looked, there is no need to be told of more.
        if self.queue.disable_notification(memory).is_err() {
            self.broken = true;
        }
    }

    /// Makes it stop; it says to whom it may concern where it was.
    pub(super) fn stop(&mut self, cx: &mut Cx, token: Token, done: Sender<u16>) {
        self.stopping = Some(done);
        self.stop_polling(cx, token);
    }

    /// Whether it has been told to stop.
    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.is_some()
    }

    /// Makes it end.
    pub(super) fn end(&mut self, cx: &mut Cx, token: Token) {
        self.ending = true;
        self.stop_polling(cx, token);
    }

    fn stop_polling(&self, cx: &mut Cx, token: Token) {
        if self.polled {
            cx.io.cancel(token);
        }
    }

    /// Whether it has stopped or ended. Says where it was to whoever asked.
    pub(super) fn is_over(&mut self) -> bool {
        let idle = self.under_way == 0 && !self.polled;
        if self.ending {
            return idle;
        }
        let over = idle && self.again.is_empty() && self.stopping.is_some();
        if over && let Some(done) = self.stopping.take() {
            // Who asked may have gone.
            let _ = done.send(self.queue.next_avail());
        }
        over
    }
}
