//! Backpressure: connections that cannot start their next command. They wait in line for
//! memory, behind requests that wait for admission on their disk, or in the line of a
//! datastore that holds its whole portion of memory.

use std::collections::VecDeque;

use sterna_core::Nanos;

use super::{Reactor, STALL_TIMER};
use crate::disk::Entry;
use crate::export::connection::Connection;
use crate::export::memory::Refusal;
use crate::io::{Owner, Token};

/// How often those that hold memory are looked at while others wait for it.
const STALL_CHECK: Nanos = Nanos::from_secs(5);

impl Reactor {
    /// Lets those in line for memory try again; true if one of them is served.
    /// The first is not overtaken, unless it holds memory itself: then what it
    /// waits for is its own, and the others need not wait with it.
    pub(super) fn serve_memory_line(&mut self) -> bool {
        self.cx.buffers.set_reserved(false);
        for at in 0..self.memory_line.len() {
            let key = self.memory_line[at];
            let Some(connection) = self.connections.get_mut(key) else { continue };
            let Some(disk) = self.disks.get_mut(connection.disk) else { continue };
            let refusal = connection.work(&mut self.cx, disk);
            let waits = refusal == Some(Refusal::Memory);
            connection.waits_for_memory = waits;
            let (disk, holds) = (connection.disk, connection.holds_memory());
            self.worked.push(key);
            if !waits {
                self.memory_line.remove(at);
            }
            match refusal {
                Some(Refusal::Admission) => self.wait_behind_disk(key),
                Some(Refusal::Datastore) => self.wait_for_portion(key),
                _ => {}
            }
            // What it has begun may have been answered at once.
            self.deliver_disk(disk);
            if !waits {
                return true;
            }
            if !holds {
                self.cx.buffers.set_reserved(true);
                return false;
            }
        }
        false
    }

    pub(super) fn wait_for_memory(&mut self, key: u32) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        if !std::mem::replace(&mut connection.waits_for_memory, true) {
            self.memory_line.push_back(key);
            self.watch_for_stalls();
        }
    }

    pub(super) fn wait_behind_disk(&mut self, key: u32) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let Some(disk) = self.disks.get_mut(connection.disk) else { return };
        if !std::mem::replace(&mut connection.behind, true) {
            disk.core.behind.push_back(key);
        }
    }

    /// Less waits on a disk: those behind it go on with a command each, in turn, as far as
    /// there is room. While somebody is left something waits, and will start.
    pub(super) fn serve_behind_disk(&mut self, disk: u32) {
        while let Some(core) = self.disks.get_mut(disk).map(|disk| &mut disk.core)
            && let Some(key) = core.behind.pop_front()
        {
            let Some(connection) = self.connections.get_mut(key) else { continue };
            connection.behind = false;
            if connection.is_deserted() {
                // It does not read its socket, and so has not noticed.
                connection.close();
            }
            if let Some(disk) = self.disks.get_mut(disk) {
                disk.core.entry = Entry::One;
            }
            self.work(key);
            let Some(at) = self.disks.get_mut(disk) else { return };
            let entry = std::mem::take(&mut at.core.entry);
            let starved = self.connections.get(key).and_then(Connection::starved);
            if entry == Entry::One && starved == Some(Refusal::Admission) {
                self.stay_first(disk, key);
                return;
            }
        }
    }

    /// Nothing could be done for the first of those behind a disk: it stays that.
    fn stay_first(&mut self, disk: u32, key: u32) {
        if let Some(disk) = self.disks.get_mut(disk)
            && let Some(at) = disk.core.behind.iter().position(|it| *it == key)
        {
            disk.core.behind.remove(at);
            disk.core.behind.push_front(key);
        }
    }

    /// A connection waits for the portion of its datastore.
    pub(super) fn wait_for_portion(&mut self, key: u32) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let disk = self.disks.get(connection.disk);
        let Some(store) = disk.and_then(|disk| disk.core.store()) else { return };
        if !std::mem::replace(&mut connection.waits_for_portion, true) {
            self.portion_lines.entry(store).or_default().push_back(key);
            self.watch_for_stalls();
        }
    }

    /// Lets the first of those that wait for the portion of each datastore try again;
    /// true if one of them is served.
    pub(super) fn serve_portion_lines(&mut self) -> bool {
        if self.release_moved() {
            return true;
        }
        for store in self.portion_lines.keys().copied().collect::<Vec<_>>() {
            let first = self.portion_lines.get(&store).and_then(VecDeque::front).copied();
            let Some(key) = first else { continue };
            let Some(connection) = self.connections.get_mut(key) else { continue };
            let Some(disk) = self.disks.get_mut(connection.disk) else { continue };
            disk.core.holds.set_reserved(false);
            let refusal = connection.work(&mut self.cx, disk);
            let waits = refusal == Some(Refusal::Datastore);
            if waits {
                // As in the line: what the first waits for may be its own.
                disk.core.holds.set_reserved(!connection.holds_memory());
            }
            let disk = connection.disk;
            self.worked.push(key);
            if !waits {
                self.stop_waiting_for_portion(key);
            }
            match refusal {
                Some(Refusal::Memory) => self.wait_for_memory(key),
                Some(Refusal::Admission) => self.wait_behind_disk(key),
                _ => {}
            }
            // What it has begun may have been answered at once.
            self.deliver_disk(disk);
            if !waits {
                return true;
            }
        }
        false
    }

    /// Those whose disks have moved wait for another datastore's portion than theirs, and
    /// begin anew; true if there are any.
    fn release_moved(&mut self) -> bool {
        let store_of = |key: &u32| {
            let connection = self.connections.get(*key)?;
            self.disks.get(connection.disk)?.core.store()
        };
        let portion_lines = self.portion_lines.iter();
        let strays = portion_lines.flat_map(|(store, line)| {
            line.iter().copied().filter(|key| store_of(key) != Some(*store))
        });
        let strays: Vec<u32> = strays.collect();
        for key in &strays {
            self.stop_waiting_for_portion(*key);
            self.touch(*key);
        }
        !strays.is_empty()
    }

    /// A connection waits for no portion any more.
    pub(super) fn stop_waiting_for_portion(&mut self, key: u32) {
        if let Some(connection) = self.connections.get_mut(key)
            && std::mem::take(&mut connection.waits_for_portion)
            && let Some(disk) = self.disks.get(connection.disk)
        {
            // Whoever is the first now is asked next.
            disk.core.holds.set_reserved(false);
        }
        self.portion_lines.retain(|_, line| {
            line.retain(|waiting| *waiting != key);
            !line.is_empty()
        });
    }

    fn watch_for_stalls(&mut self) {
        if !std::mem::replace(&mut self.watches_stalls, true) {
            let token = Token { owner: Owner::Reactor, tag: STALL_TIMER };
            self.cx.timers.set(self.cx.now.plus(STALL_CHECK), token);
        }
    }

    /// While someone waits for memory, closes connections that sit on theirs.
    pub(super) fn close_stalled(&mut self) {
        self.watches_stalls = false;
        if self.memory_line.is_empty() && self.portion_lines.is_empty() {
            return;
        }
        for key in self.connections.keys() {
            if let Some(connection) = self.connections.get_mut(key)
                && connection.stalls(self.cx.now)
            {
                connection.close();
                self.touch(key);
            }
        }
        self.watch_for_stalls();
    }
}
