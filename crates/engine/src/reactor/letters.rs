//! What letters to a reactor do: disks come and go, and the reactor ends.

use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};

use super::{MAILBOX, Reactor};
use crate::account::Keep;
use crate::directory::Place;
use crate::disk::{Disk, Placed};
use crate::export::vhost::Devices;
use crate::image::{Cx, Image, ImageInfo};
use crate::io::{Op, Owner, Token};
use crate::stats::DiskWindow;
use crate::troubles::{Trouble, TroubleKind};
use sterna_core::durability::Keeper;
use sterna_core::{DiskId, Nanos};

/// Somebody is told of a client that has not read for so long: a guest that is saved or
/// migrated may stand still for seconds.
const UNREAD_TOLD: Nanos = Nanos::from_secs(10);

impl Reactor {
    pub(super) fn watch_mailbox(&mut self) {
        let token = Token { owner: Owner::Reactor, tag: MAILBOX };
        self.cx.io.submit(token, Op::Readable { fd: self.mailbox.clone() });
    }

    pub(super) fn read_letters(&mut self) {
        for letter in self.shared.mailboxes[self.number].take() {
            letter(self);
        }
        self.watch_mailbox();
    }

    /// Puts a disk on this reactor, and says what is known of its image.
    pub(crate) fn attach(
        &mut self,
        id: DiskId,
        name: String,
        size: u64,
        image: Placed,
        keep: Option<Arc<Keep>>,
    ) -> (Place, ImageInfo) {
        let key = self.disks.next_key();
        let mut disk = Disk::new(key, id, name, size);
        let image = disk.core.add_image(&mut self.cx, image);
        disk.core.set_current(&mut self.cx, image);
        if let Some(keep) = keep {
            disk.core.keep_account(self.cx.now, keep);
        }
        let info = disk.core.image(image).map(Image::info).expect("just added");
        let inserted = self.disks.insert(disk);
        debug_assert_eq!(inserted, key);
        (Place { reactor: self.number, index: key }, info)
    }

    /// A disk of this reactor, and what its methods need. Whatever they start
    /// is delivered at the end of the iteration.
    pub(crate) fn disk(&mut self, key: u32) -> Option<(&mut Disk, &mut Cx)> {
        Some((self.disks.get_mut(key)?, &mut self.cx))
    }

    /// The windows of the disks where something was, since the last time.
    pub(crate) fn take_windows(&mut self) -> Vec<DiskWindow> {
        let span = self.cx.now.since(std::mem::replace(&mut self.counted, self.cx.now));
        let mut taken = Vec::new();
        // What waits for a client to read does not wait for the disk.
        let unread = self.await_clients();
        for key in self.disks.keys() {
            let Some(Disk { core, .. }) = self.disks.get_mut(key) else { continue };
            let unread = unread.get(&key).copied().unwrap_or(0);
            let under_way = core.in_flight() + core.ahead.saturating_sub(unread);
            let in_flight = u32::try_from(under_way).unwrap_or(u32::MAX);
            if let Some(window) = core.counters.take_window(span, in_flight)
                && let Some(datastore) = core.datastore().cloned()
            {
                taken.push(DiskWindow { disk: core.id, datastore, window });
            }
        }
        taken
    }

    /// The disks that somebody should look at.
    pub(crate) fn troubles(&mut self) -> Vec<(DiskId, Trouble)> {
        let now = self.cx.now;
        let disks = self.disks.iter();
        let all = disks.flat_map(|(_, disk)| {
            let troubles = disk.core.troubles(now);
            troubles.map(|trouble| (disk.core.id, trouble))
        });
        let mut all: Vec<(DiskId, Trouble)> = all.collect();
        all.extend(self.unread().into_iter().filter_map(|(key, (clients, since))| {
            let age = now.since(since).into();
            let trouble = Trouble { kind: TroubleKind::Unread { clients }, age };
            Some((self.disks.get(key)?.core.id, trouble))
        }));
        all
    }

    /// By disk, if there are any: how many commands wait for nothing but that their clients
    /// read.
    fn await_clients(&self) -> BTreeMap<u32, usize> {
        let mut all = BTreeMap::new();
        for (_, connection) in self.connections.iter() {
            let waiting = connection.await_client(self.cx.now);
            if waiting > 0 {
                *all.entry(connection.disk).or_insert(0) += waiting;
            }
        }
        all
    }

    /// By disk: how many of its clients do not read what they are answered, and since when.
    fn unread(&self) -> BTreeMap<u32, (usize, Nanos)> {
        let now = self.cx.now;
        let mut unread: BTreeMap<u32, (usize, Nanos)> = BTreeMap::new();
        for (_, connection) in self.connections.iter() {
            let since = connection.unread_since(now);
            if let Some(since) = since.filter(|it| now.since(*it) >= UNREAD_TOLD) {
                let (clients, oldest) =
                    unread.entry(connection.disk).or_insert((0, since));
                *clients += 1;
                *oldest = (*oldest).min(since);
            }
        }
        unread
    }

    /// The images without a line in their disk's account.
    pub(crate) fn without_line(&self) -> Vec<(DiskId, u16, Keeper)> {
        let all = self.disks.iter().flat_map(|(_, disk)| {
            let lacking = disk.core.without_line();
            lacking.map(|(image, keeper)| (disk.core.id, image, keeper))
        });
        all.collect()
    }

    /// Ends a disk's connections, waits for its operations, and calls `done`
    /// when it is gone.
    pub(crate) fn detach(&mut self, key: u32, done: Box<dyn FnOnce() + Send>) {
        let Some(disk) = self.disks.get_mut(key) else { return done() };
        disk.core.closing = true;
        for connection in self.connections.keys() {
            if let Some(found) = self.connections.get_mut(connection)
                && found.disk == key
            {
                found.close();
                self.touch(connection);
            }
        }
        self.closing.push((key, done));
    }

    pub(super) fn close_disks(&mut self) {
        let mut at = 0;
        while at < self.closing.len() {
            let key = self.closing[at].0;
            let gone =
                self.disks.get_mut(key).is_none_or(|disk| disk.core.close(&mut self.cx));
            if gone {
                self.disks.remove(key);
                let (_, done) = self.closing.swap_remove(at);
                done();
            } else {
                at += 1;
            }
        }
    }

    /// Ends the reactor: no new connections, no more requests of devices (whose servers are
    /// ending), all disks detached.
    pub(crate) fn stop(&mut self) {
        self.stopping = true;
        for key in self.devices.keys() {
            let (nobody, _) = mpsc::channel();
            self.remove_device(key, nobody);
        }
        for key in self.listeners.keys() {
            self.listeners.remove(key);
            self.cx.io.cancel(Token { owner: Owner::Listener(key), tag: 0 });
        }
        for key in self.handshakes.keys() {
            if let Some(handshake) = self.handshakes.get_mut(key) {
                handshake.abort();
            }
        }
        for key in self.disks.keys() {
            if !self.closing.iter().any(|(closing, _)| *closing == key) {
                self.detach(key, Box::new(|| ()));
            }
        }
    }
}
