//! Connections that wait for memory: they stand in line.

use sterna_core::Nanos;

use super::{LOOK_TIMER, Reactor};
use crate::io::{Owner, Token};

/// How often those that hold memory are looked at while others wait for it.
const LOOK: Nanos = Nanos::from_secs(5);

impl Reactor {
    /// Lets those in line for memory try again; true if one of them is served.
    /// The first is not overtaken, unless it holds memory itself: then what it
    /// waits for is its own, and the others need not wait with it.
    pub(super) fn feed(&mut self) -> bool {
        self.cx.buffers.set_reserved(false);
        for at in 0..self.line.len() {
            let key = self.line[at];
            let Some(connection) = self.connections.get_mut(key) else { continue };
            let Some(disk) = self.disks.get_mut(connection.disk) else { continue };
            let starved = connection.work(&mut self.cx, disk);
            self.worked.push(key);
            if !starved {
                connection.in_line = false;
                self.line.remove(at);
                return true;
            }
            if !connection.holds_memory() {
                self.cx.buffers.set_reserved(true);
                return false;
            }
        }
        false
    }

    pub(super) fn start_looking(&mut self) {
        if !std::mem::replace(&mut self.looking, true) {
            let token = Token { owner: Owner::Reactor, tag: LOOK_TIMER };
            self.cx.timers.set(self.cx.now.plus(LOOK), token);
        }
    }

    /// While someone waits for memory, closes connections that sit on theirs.
    pub(super) fn look(&mut self) {
        self.looking = false;
        if self.line.is_empty() {
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
        self.start_looking();
    }
}
