//! A machine's disk on the disk's reactor: its queues, and its requests under way.
//!
//! The reactor tells it what happened (`kicked`, `answer`), lets it `work`, and at the
//! end of the iteration `flush`. So a kick for many requests costs one system call for all of
//! their disk operations, and one interrupt for all answers of an iteration.
//!
//! **The end.** The hypervisor is gone, or the disk is to go: nothing more is taken. What
//! has started is carried out and answered, in the queue as well: the machine may live
//! and connect again. What could not be carried out any more is left under way in the
//! in-flight area, for whoever serves the machine next.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc::Sender;

use vm_memory::{Bytes, GuestAddress};

use super::chain::{Segment, length};
use super::data::{Copies, scatter};
use super::request::{Request, What, parse};
use super::ring::{Ring, RingSpec};
use super::{BYTES_MAX, IN_FLIGHT_MAX, Memory};
use crate::disk::{Answer, Client, Disk, Origin};
use crate::image::{Cx, ImageOp};
use crate::io::{Errno, Owner, Token};
use crate::slab::Slab;
use crate::timer::Alarm;

/// Statuses, as virtio has them.
const OK: u8 = 0;
const ERROR: u8 = 1;
const UNSUPPORTED: u8 = 2;

/// Requests that are taken in one iteration: more than can be under way. Some are answered at
/// once, and a guest can make them faster than we take them.
const TAKEN_MAX: usize = 2 * IN_FLIGHT_MAX;

/// Bytes of a disk's name, as virtio has them.
const NAME: usize = 20;

/// A machine's disk.
pub(crate) struct Device {
    index: u32,
    /// The number of its disk on the reactor.
    pub(crate) disk: u32,
    name: [u8; NAME],
    memory: Option<Memory>,
    /// The guest flushes when it wants to be sure; else every write is durable.
    flushes: bool,
    rings: BTreeMap<u16, Ring>,
    commands: Slab<Command>,
    /// Data of the commands, in bytes.
    bytes: usize,
    copies: Copies,
    /// A request that waits for room.
    waiting: Option<(u16, u16, Request)>,
    /// The queue that is looked at first.
    first: u16,
    /// It is to end; who waits for that.
    closing: Option<Sender<()>>,
    /// It has begun to close, and its disk has not been told.
    left: bool,
    /// The reactor has it on its list for this iteration.
    pub(crate) listed: bool,
    /// When there is something to do for one of its queues, if nothing happens before.
    alarm: Alarm,
}

/// A request under way.
struct Command {
    ring: u16,
    head: u16,
    status: GuestAddress,
    /// Where a read begins and where its bytes go, if they go by way of a copy.
    copied: Option<(u64, Vec<Segment>)>,
    /// Operations of the disk that have not been answered.
    pieces: u32,
    error: Option<Errno>,
    bytes: usize,
    /// Bytes that the guest finds written if all is well.
    written: u32,
}

impl Device {
    /// A device for the disk `disk`, which the guest knows by this name.
    pub(crate) fn new(index: u32, disk: u32, name: &str) -> io::Result<Device> {
        let mut short = [0; NAME];
        short.iter_mut().zip(name.bytes()).for_each(|(to, from)| *to = from);
        Ok(Device {
            index,
            disk,
            name: short,
            memory: None,
            flushes: false,
            rings: BTreeMap::new(),
            commands: Slab::new(),
            bytes: 0,
            copies: Copies::new()?,
            waiting: None,
            first: 0,
            closing: None,
            left: false,
            listed: false,
            alarm: Alarm::default(),
        })
    }

    /// From now on addresses are those of this memory. Gives what there was.
    pub(crate) fn set_memory(&mut self, memory: Memory) -> Option<Memory> {
        self.memory.replace(memory)
    }

    /// Whether the guest flushes.
    pub(crate) fn set_flushes(&mut self, flushes: bool) {
        self.flushes = flushes;
    }

    /// Starts a queue, in the place of one that has stopped. Says how many requests of
    /// it are carried out once more.
    pub(crate) fn start_ring(
        &mut self,
        number: u16,
        spec: RingSpec,
    ) -> Result<usize, String> {
        let memory = self.memory.as_ref().ok_or("there is no memory")?;
        if self.rings.contains_key(&number) {
            return Err("it runs already".into());
        }
        let ring = Ring::start(memory, spec).map_err(|error| error.to_string())?;
        let repeated = ring.repeated();
        self.rings.insert(number, ring);
        Ok(repeated)
    }

    /// Whether requests are taken out of a queue.
    pub(crate) fn enable_ring(&mut self, number: u16, enabled: bool) {
        if let Some(ring) = self.rings.get_mut(&number) {
            ring.enabled = enabled;
        }
    }

    /// How the guest is told of answers.
    pub(crate) fn set_call(&mut self, number: u16, call: Option<OwnedFd>) {
        if let Some(ring) = self.rings.get_mut(&number) {
            ring.set_call(call);
        }
    }

    /// Stops a queue. It says where it was when the last request is answered; nothing,
    /// if it does not run.
    pub(crate) fn stop_ring(&mut self, cx: &mut Cx, number: u16, done: Sender<u16>) {
        let token = self.token(number);
        if let Some(ring) = self.rings.get_mut(&number) {
            ring.stop(cx, token, done);
        }
    }

    /// Whether a queue is to stop: the machine stands still until it has, so what it
    /// has asked for waits for nothing any more. That goes for all of its queues: they
    /// share the room that a request needs, and are all about to stop.
    pub(crate) fn is_stopping(&self) -> bool {
        self.rings.values().any(Ring::is_stopping)
    }

    /// Ends the device.
    pub(crate) fn close(&mut self, cx: &mut Cx, done: Sender<()>) {
        self.closing = Some(done);
        self.left = true;
        if let Some((number, ..)) = self.waiting.take()
            && let Some(ring) = self.rings.get_mut(&number)
        {
            ring.leave();
        }
        for number in self.rings.keys().copied().collect::<Vec<_>>() {
            let token = self.token(number);
            if let Some(ring) = self.rings.get_mut(&number) {
                ring.end(cx, token);
            }
        }
    }

    /// Whether it has begun to close since this was last asked: what waits on its disk
    /// for it is to be dropped.
    pub(crate) fn has_left(&mut self) -> bool {
        std::mem::take(&mut self.left)
    }

    /// Whether it is to end.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.is_some()
    }

    /// Whether nothing of it is in flight and it can be dropped.
    pub(crate) fn is_gone(&self) -> bool {
        self.closing.is_some() && self.rings.is_empty() && self.commands.is_empty()
    }

    /// The guest has something for us.
    pub(crate) fn kicked(&mut self, tag: u32) {
        let ring = u16::try_from(tag).ok().and_then(|number| self.rings.get_mut(&number));
        if let (Some(ring), Some(memory)) = (ring, &self.memory) {
            ring.kicked(memory);
        }
    }

    /// The moment has come at which there is something to do.
    pub(crate) fn woken(&mut self) {
        self.alarm.fired();
    }

    /// Takes requests out of the queues, in turn, as far as there is room.
    pub(crate) fn work(&mut self, cx: &mut Cx, disk: &mut Disk) {
        let Some(memory) = self.memory.clone() else { return };
        if let Some((ring, head, request)) = self.waiting.take() {
            self.begin(cx, disk, &memory, ring, head, request);
        }
        let (mut empty, mut taken) = (0, 0);
        while empty < self.rings.len() && self.has_room() {
            if taken == TAKEN_MAX {
                // The others on this reactor come first; then it goes on.
                self.rings.values().for_each(Ring::kick_self);
                return;
            }
            let Some(number) = self.next_ring() else { return };
            let Some(ring) = self.rings.get_mut(&number) else { return };
            let Some(head) = ring.take(&memory, cx.now) else {
                empty += 1;
                continue;
            };
            (empty, taken) = (0, taken + 1);
            disk.core.hears(cx.now, Client::Device(self.index));
            let chain = ring.chain(&memory, head);
            match chain.and_then(|chain| parse(&memory, chain, disk.core.size)) {
                Some(request) => {
                    self.begin(cx, disk, &memory, number, head, request);
                }
                // There is nowhere to say what is wrong with it.
                None => ring.answer(&memory, head, 0),
            }
        }
    }

    fn has_room(&self) -> bool {
        self.waiting.is_none()
            && self.commands.len() < IN_FLIGHT_MAX
            && self.bytes < BYTES_MAX
    }

    fn next_ring(&mut self) -> Option<u16> {
        let after = self.rings.range(self.first..).next();
        let (number, _) = after.or_else(|| self.rings.first_key_value())?;
        let number = *number;
        self.first = number.wrapping_add(1);
        Some(number)
    }

    /// Begins a request; it waits if there is no memory for its copy.
    fn begin(
        &mut self,
        cx: &mut Cx,
        disk: &mut Disk,
        memory: &Memory,
        ring: u16,
        head: u16,
        request: Request,
    ) {
        let bytes = match &request.what {
            What::Read { to: data, .. } | What::Write { from: data, .. } => length(data),
            _ => 0,
        };
        let Some(ops) = self.operations(memory, &request.what) else {
            if self.commands.is_empty() {
                // Nobody will give memory back.
                return self.refuse(memory, ring, head, &request, ERROR);
            }
            self.waiting = Some((ring, head, request));
            return;
        };
        let written = match &request.what {
            What::Read { .. } => u32::try_from(bytes).unwrap_or(u32::MAX - 1),
            What::Name { to } => self.tell_name(memory, to),
            What::Wrong => return self.refuse(memory, ring, head, &request, ERROR),
            What::Unknown => {
                return self.refuse(memory, ring, head, &request, UNSUPPORTED);
            }
            _ => 0,
        };
        let own =
            |op: &ImageOp| matches!(op, ImageOp::Read { buf, .. } if !buf.is_shared());
        let copied = match request.what {
            What::Read { offset, to } if ops.iter().any(own) => Some((offset, to)),
            _ => None,
        };
        let (pieces, bytes) = (ops.len() as u32, bytes as usize);
        let status = request.status;
        let command =
            Command { ring, head, status, copied, pieces, error: None, bytes, written };
        let key = self.commands.insert(command);
        self.bytes += bytes;
        if pieces == 0 {
            self.finish(memory, key);
        }
        let origin = Origin { client: Client::Device(self.index), command: key };
        for op in ops {
            disk.submit(cx, origin, op, cx.now);
        }
    }

    /// The operations of the disk that a request comes to; none if there is no memory.
    fn operations(&self, memory: &Memory, what: &What) -> Option<Vec<ImageOp>> {
        let (fua, alone) = (!self.flushes, self.commands.is_empty());
        Some(match what {
            What::Read { offset, to } => self
                .copies
                .pieces(memory, *offset, to, false, alone)?
                .map(|(offset, buf)| ImageOp::Read { offset, buf })
                .collect(),
            What::Write { offset, from } => self
                .copies
                .pieces(memory, *offset, from, true, alone)?
                .map(|(offset, buf)| ImageOp::Write { offset, buf, fua })
                .collect(),
            What::Flush => vec![ImageOp::Flush],
            What::Zero(ranges) => ranges
                .iter()
                .map(|range| ImageOp::Zero {
                    offset: range.offset,
                    len: range.len,
                    unmap: range.unmap,
                    fua,
                    fast: false,
                })
                .collect(),
            What::Name { .. } | What::Wrong | What::Unknown => Vec::new(),
        })
    }

    fn tell_name(&self, memory: &Memory, to: &[Segment]) -> u32 {
        let len = (length(to) as usize).min(NAME);
        match scatter(memory, to, 0, &self.name[..len]) {
            Some(()) => len as u32,
            None => 0,
        }
    }

    /// The disk has answered an operation.
    pub(crate) fn answer(&mut self, answer: &Answer) {
        let Some(memory) = self.memory.clone() else { return };
        let key = answer.origin.command;
        let Some(command) = self.commands.get_mut(key) else { return };
        match (&answer.result, &answer.op, &command.copied) {
            (Err(errno), ..) => {
                command.error = Some(errno.or_worse(command.error));
            }
            (Ok(_), ImageOp::Read { offset, buf }, Some((begin, to))) => {
                let skip = (offset - begin) as usize;
                if scatter(&memory, to, skip, &buf.bytes()).is_none() {
                    command.error.get_or_insert(Errno(libc::EFAULT));
                }
            }
            _ => {}
        }
        command.pieces -= 1;
        if command.pieces == 0 {
            self.finish(&memory, key);
        }
    }

    /// All of a request is done.
    fn finish(&mut self, memory: &Memory, key: u32) {
        let Some(command) = self.commands.remove(key) else { return };
        self.bytes -= command.bytes;
        let Some(ring) = self.rings.get_mut(&command.ring) else { return };
        let (status, written) = match command.error {
            None => (OK, command.written),
            // It has not been carried out because we end: whoever comes next does it.
            Some(_) if self.closing.is_some() => return ring.leave(),
            Some(errno) if errno.0 == libc::EOPNOTSUPP => (UNSUPPORTED, 0),
            Some(_) => (ERROR, 0),
        };
        // A guest whose memory is gone does not look.
        let _ = memory.write_obj(status, command.status);
        ring.answer(memory, command.head, written + 1);
    }

    /// Answers a request that cannot be carried out.
    fn refuse(
        &mut self,
        memory: &Memory,
        ring: u16,
        head: u16,
        request: &Request,
        status: u8,
    ) {
        let _ = memory.write_obj(status, request.status);
        if let Some(ring) = self.rings.get_mut(&ring) {
            ring.answer(memory, head, 1);
        }
    }

    /// The end of an iteration: tells the guest of its answers.
    pub(crate) fn flush(&mut self, cx: &mut Cx) {
        let owner = Owner::Device(self.index);
        if let Some(memory) = &self.memory {
            for (number, ring) in &mut self.rings {
                let token = Token { owner, tag: u32::from(*number) };
                ring.flush(cx, memory, token);
            }
        }
        self.rings.retain(|_, ring| {
            let over = ring.is_over();
            if over {
                ring.forget(cx);
            }
            !over
        });
        let next = self.rings.values().filter_map(Ring::next_moment).min();
        self.alarm.set(&mut cx.timers, next, Token { owner, tag: 0 });
    }

    fn token(&self, ring: u16) -> Token {
        Token { owner: Owner::Device(self.index), tag: u32::from(ring) }
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        if let Some(done) = self.closing.take() {
            // Who asked may have gone.
            let _ = done.send(());
        }
    }
}
