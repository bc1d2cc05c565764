//! One thread, one `Io`, and the disks and connections that live on it.
//!
//! An iteration of the loop:
//!
//! 1. `wait` submits everything of the last iteration and brings completions.
//! 2. Each goes to its owner; then timers that are due; then letters.
//! 3. Until nothing moves any more: answers of images go to their disks,
//!    answers of disks to their connections, and connections that were touched
//!    work off what they have.
//! 4. Connections that were touched send and receive.
//! 5. If memory is free, those in line for it go on, in order.
//!
//! There is no lock on this way, and an object is only ever changed by the
//! reactor that owns it. Objects never call each other directly where that
//! could come back to the caller: they leave answers in queues, which the loop
//! delivers.

mod accept;
mod backpressure;
mod devices;
mod letters;
mod shared;

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use sterna_core::Nanos;

use crate::buffer::Pool;
use crate::disk::{Answer, Client, Disk};
use crate::export::connection::Connection;
use crate::export::handshake::Handshake;
use crate::export::memory::{self, Refusal};
use crate::export::vhost::device::Device;
use crate::image::Cx;
use crate::io::{self, Completion, Fd, IoChoice, IoKind, Owner, Token};
use crate::listener::Bound;
use crate::qos::{self, Item, Qos};
use crate::slab::Slab;

pub(crate) use shared::{Shared, TurnedAway};

/// Timers that fire in one iteration. More wait for the next one, which comes at once;
/// so that one that is set again and again cannot keep the kernel from being asked.
const FIRES_MAX: usize = 1024;

/// How long the end of a reactor waits for its disks' operations and their last flush
/// (`image::LEAVE_WITHIN`). Nobody has been told that what takes longer is done.
pub(crate) const LINGER: Duration = Duration::from_secs(6);

/// Tags of the reactor's own operations and timers.
const MAILBOX: u32 = 0;
const STALL_TIMER: u32 = 1;

pub(crate) struct Reactor {
    pub(crate) cx: Cx,
    number: usize,
    shared: Arc<Shared>,
    mailbox: Fd,
    disks: Slab<Disk>,
    connections: Slab<Connection>,
    devices: Slab<Device>,
    handshakes: Slab<Handshake>,
    listeners: Slab<Bound>,
    /// Connections to be worked on in this iteration.
    touched: VecDeque<u32>,
    /// Connections to be flushed in this iteration.
    worked: Vec<u32>,
    /// Machines' disks to be worked on in this iteration, and then to be flushed.
    stirred: VecDeque<u32>,
    drained: Vec<u32>,
    /// Connections that wait for memory, in order of their coming.
    memory_line: VecDeque<u32>,
    /// Disks where less waits than before, and connections stand behind that.
    eased: Vec<u32>,
    /// Connections that wait for the portion of their datastore, by its number, in order
    /// of their coming.
    portion_lines: BTreeMap<u32, VecDeque<u32>>,
    watches_stalls: bool,
    answers: Vec<Answer>,
    /// When the disks' windows were last taken.
    counted: Nanos,
    /// Disks that are being detached, and who waits for that.
    closing: Vec<(u32, Box<dyn FnOnce() + Send>)>,
    stopping: bool,
}

impl Reactor {
    /// Opens what a reactor needs, on the thread that will `run` it.
    pub(crate) fn open(
        number: usize,
        shared: Arc<Shared>,
        choice: IoChoice,
        memory: usize,
    ) -> std::io::Result<(Reactor, IoKind)> {
        let buffers = Pool::new(memory)?;
        let others = [memory::newcomers()?, memory::links()?];
        let (io, kind) = io::open(choice, shared.keep.as_deref().map(AsFd::as_fd))?;
        let mailbox = shared.mailboxes[number].as_fd().try_clone_to_owned()?;
        let qos = Qos::new(number, shared.classes.migration());
        let cx = Cx::new(io, buffers, others, qos, shared.voucher.clone());
        let cx = cx.ok_or(std::io::ErrorKind::OutOfMemory)?;
        let reactor = Reactor {
            cx,
            number,
            shared,
            mailbox: mailbox.into(),
            disks: Slab::new(),
            connections: Slab::new(),
            devices: Slab::new(),
            handshakes: Slab::new(),
            listeners: Slab::new(),
            touched: VecDeque::new(),
            worked: Vec::new(),
            stirred: VecDeque::new(),
            drained: Vec::new(),
            memory_line: VecDeque::new(),
            eased: Vec::new(),
            portion_lines: BTreeMap::new(),
            watches_stalls: false,
            answers: Vec::new(),
            counted: Nanos(0),
            closing: Vec::new(),
            stopping: false,
        };
        Ok((reactor, kind))
    }

    /// The loop.
    pub(crate) fn run(mut self) {
        let mut completions = Vec::new();
        let mut deadline = None;
        self.watch_mailbox();
        while !self.is_over(&mut deadline) {
            let timeout = self.timeout();
            self.cx.io.wait(timeout, &mut completions);
            self.cx.now = Nanos::from(self.shared.epoch.elapsed());
            for completion in completions.drain(..) {
                self.dispatch(completion);
            }
            for _ in 0..FIRES_MAX {
                let Some(token) = self.cx.timers.due(self.cx.now) else { break };
                self.fire(token);
            }
            self.settle();
        }
        self.shared.mailboxes[self.number].close();
    }

    fn timeout(&self) -> Option<Duration> {
        if self.stopping {
            return Some(Duration::from_millis(10));
        }
        let next = self.cx.timers.next()?;
        let now = Nanos::from(self.shared.epoch.elapsed());
        Some(next.since(now).into())
    }

    /// Whether the reactor was told to stop and has nothing left to wait for.
    fn is_over(&self, deadline: &mut Option<Instant>) -> bool {
        if !self.stopping {
            return false;
        }
        let deadline = *deadline.get_or_insert_with(|| Instant::now() + LINGER);
        self.disks.is_empty() || Instant::now() > deadline
    }

    fn dispatch(&mut self, completion: Completion) {
        match completion.token.owner {
            Owner::Connection(key) => {
                let Some(connection) = self.connections.get_mut(key) else { return };
                let Some(disk) = self.disks.get_mut(connection.disk) else { return };
                connection.completed(&mut self.cx, disk, completion);
                self.touch(key);
            }
            Owner::Device(key) => self.kicked(key, completion.token.tag),
            Owner::Image(id) => {
                if let Some(disk) = self.disks.get_mut(id.disk) {
                    disk.core.image_completed(&mut self.cx, id.image, completion);
                }
            }
            Owner::Handshake(key) => self.handshake(key, Some(completion)),
            Owner::Listener(key) => self.accept(key),
            Owner::Reactor => self.read_letters(),
            Owner::Disk(_) => {}
        }
    }

    fn fire(&mut self, token: Token) {
        match token.owner {
            Owner::Image(id) => {
                if let Some(disk) = self.disks.get_mut(id.disk) {
                    disk.core.image_timer(&mut self.cx, id.image, token.tag);
                }
            }
            Owner::Disk(key) => {
                if let Some(disk) = self.disks.get_mut(key) {
                    disk.timer(&mut self.cx, token.tag);
                    self.deliver_disk(key);
                }
            }
            Owner::Handshake(key) => {
                if let Some(handshake) = self.handshakes.get_mut(key) {
                    handshake.abort();
                }
            }
            Owner::Listener(key) => self.listen_on(key),
            Owner::Reactor if token.tag == qos::TIMER => self.cx.qos.fired(self.cx.now),
            Owner::Reactor => self.close_stalled(),
            Owner::Device(key) => self.wake_device(key),
            Owner::Connection(_) => {}
        }
    }

    /// Delivers answers and lets connections work, until nothing moves.
    fn settle(&mut self) {
        loop {
            self.start_ready();
            self.deliver();
            if let Some(key) = self.touched.pop_front() {
                self.work(key);
            } else if let Some(key) = self.stirred.pop_front() {
                self.work_device(key);
            } else if let Some(disk) = self.eased.pop() {
                self.serve_behind_disk(disk);
            } else if self.is_quiet()
                && !self.serve_memory_line()
                && !self.serve_portion_lines()
                && self.is_quiet()
            {
                break;
            }
        }
        self.cx.qos.set_timer(self.cx.now, &mut self.cx.timers);
        self.wake_others();
        for key in std::mem::take(&mut self.worked) {
            self.flush(key);
        }
        for key in std::mem::take(&mut self.drained) {
            self.flush_device(key);
        }
        if !self.closing.is_empty() {
            self.close_disks();
        }
    }

    /// Whether nothing is left to do in this iteration. Who could not go on may have begun
    /// something all the same.
    fn is_quiet(&self) -> bool {
        self.cx.finished.is_empty()
            && self.cx.qos.is_settled()
            && self.touched.is_empty()
            && self.stirred.is_empty()
            && self.eased.is_empty()
    }

    /// Gives their disks what may start now.
    fn start_ready(&mut self) {
        while let Some((item, admission)) = self.cx.qos.next_ready() {
            let (Item::Guest { disk: key, .. } | Item::Copy { disk: key, .. }) = item;
            let Some(disk) = self.disks.get_mut(key) else {
                self.cx.qos.done(self.cx.now, admission);
                continue;
            };
            match item {
                Item::Guest { request, .. } => {
                    disk.start(&mut self.cx, request, Some(admission));
                }
                Item::Copy { image, ticket, .. } => {
                    disk.start_copy(&mut self.cx, image, ticket, admission);
                }
            }
            self.deliver_disk(key);
            self.serve_behind_disk(key);
        }
    }

    /// Other reactors wait for places that were given back here.
    fn wake_others(&mut self) {
        let mut wakes = self.cx.qos.take_wakes();
        while wakes != 0 {
            let number = wakes.trailing_zeros() as usize;
            wakes &= wakes - 1;
            if let Some(mailbox) = self.shared.mailboxes.get(number) {
                mailbox.post(|reactor| reactor.cx.qos.look_again(reactor.cx.now));
            }
        }
    }

    fn deliver(&mut self) {
        // Answers may bring new ones, at once; those are for the next round.
        let mut finished = std::mem::take(&mut self.cx.finished);
        for (ticket, result) in finished.drain(..) {
            let Some(disk) = self.disks.get_mut(ticket.disk) else { continue };
            disk.finished(&mut self.cx, ticket.id, result);
            self.deliver_disk(ticket.disk);
        }
        if self.cx.finished.is_empty() {
            self.cx.finished = finished;
        }
    }

    /// Takes a disk's answers to its connections.
    pub(crate) fn deliver_disk(&mut self, key: u32) {
        let Some(disk) = self.disks.get_mut(key) else { return };
        if disk.go_on(&mut self.cx) && !self.eased.contains(&key) {
            self.eased.push(key);
        }
        let mut answers = disk.take_answers(std::mem::take(&mut self.answers));
        for answer in answers.drain(..) {
            match answer.origin.client {
                Client::Connection(key) => {
                    if let Some(connection) = self.connections.get_mut(key) {
                        connection.answer(&mut self.cx, disk, answer);
                        touch(connection, &mut self.touched, key);
                    }
                }
                Client::Device(key) => {
                    if let Some(device) = self.devices.get_mut(key) {
                        device.answer(&answer);
                        devices::stir(device, &mut self.stirred, key);
                    }
                }
            }
        }
        self.answers = answers;
    }

    fn touch(&mut self, key: u32) {
        if let Some(connection) = self.connections.get_mut(key) {
            touch(connection, &mut self.touched, key);
        }
    }

    fn work(&mut self, key: u32) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        connection.listed = false;
        let Some(disk) = self.disks.get_mut(connection.disk) else { return };
        let refusal = connection.work(&mut self.cx, disk);
        let left = connection.has_left();
        if left {
            disk.abandon(&mut self.cx, Client::Connection(key));
        }
        let disk = connection.disk;
        self.worked.push(key);
        match refusal {
            Some(Refusal::Memory) => self.wait_for_memory(key),
            Some(Refusal::Admission) => self.wait_behind_disk(key),
            Some(Refusal::Datastore) => self.wait_for_portion(key),
            None => {}
        }
        // A driver may have answered at once.
        self.deliver_disk(disk);
        if left {
            self.serve_behind_disk(disk);
        }
    }

    fn flush(&mut self, key: u32) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        connection.flush(&mut self.cx);
        if connection.is_gone() {
            let disk = connection.disk;
            self.stop_waiting_for_portion(key);
            self.connections.remove(key);
            self.memory_line.retain(|waiting| *waiting != key);
            self.shared.connections.fetch_sub(1, Ordering::Relaxed);
            if let Some(disk) = self.disks.get_mut(disk) {
                disk.core.has_gone(self.cx.now, Client::Connection(key));
                disk.core.behind.retain(|waiting| *waiting != key);
            }
        }
    }
}

fn touch(connection: &mut Connection, touched: &mut VecDeque<u32>, key: u32) {
    if !std::mem::replace(&mut connection.listed, true) {
        touched.push_back(key);
    }
}

#[cfg(test)]
mod tests;
