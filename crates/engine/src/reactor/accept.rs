//! Accepting connections: listening, shaking hands, and handing over to a disk's reactor.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::Ordering;

use sterna_nbd::Session;

use super::Reactor;
use crate::disk::Client;
use crate::export::connection::Connection;
use crate::export::handshake::{Handshake, Progress};
use crate::export::{ACCEPTS_MAX, CONNECTIONS_MAX, HANDSHAKES_MAX};
use crate::io::{Completion, Fd, Op, Owner, Token};
use crate::listener::{Accepted, Bound};

impl Reactor {
    /// Starts to accept connections.
    pub(crate) fn listen(&mut self, socket: Bound) {
        let key = self.listeners.insert(socket);
        self.listen_on(key);
    }

    pub(super) fn listen_on(&mut self, key: u32) {
        if let Some(listener) = self.listeners.get(key) {
            let token = Token { owner: Owner::Listener(key), tag: 0 };
            self.cx.io.submit(token, Op::Readable { fd: listener.fd().clone() });
        }
    }

    pub(super) fn accept(&mut self, key: u32) {
        for _ in 0..ACCEPTS_MAX {
            let Some(listener) = self.listeners.get(key) else { return };
            match listener.accept() {
                Accepted::Socket(socket) => self.greet(socket),
                Accepted::Nothing => return self.listen_on(key),
                Accepted::TryAgain(pause) => {
                    let token = Token { owner: Owner::Listener(key), tag: 0 };
                    self.cx.timers.set(self.cx.now.plus(pause), token);
                    return;
                }
            }
        }
        self.listen_on(key);
    }

    /// Begins a handshake. Without a place or memory for it the socket is closed.
    pub(super) fn greet(&mut self, socket: OwnedFd) {
        if self.stopping {
            return;
        }
        if self.handshakes.len() >= HANDSHAKES_MAX {
            self.drop_oldest_handshake();
        }
        let connections = self.shared.connections.load(Ordering::Relaxed);
        let full = connections >= CONNECTIONS_MAX
            || self.handshakes.len() >= 2 * HANDSHAKES_MAX
            || socket.as_raw_fd() >= self.shared.descriptors;
        let key = self.handshakes.next_key();
        let begun = (!full).then(|| Handshake::new(&mut self.cx, key, socket)).flatten();
        let Some(handshake) = begun else { return self.refused() };
        let inserted = self.handshakes.insert(handshake);
        debug_assert_eq!(inserted, key);
        self.handshake(key, None);
    }

    /// There is no place for somebody.
    fn refused(&self) {
        self.shared.turned_away.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Makes room for a newcomer.
    fn drop_oldest_handshake(&mut self) {
        let all = self.handshakes.iter();
        let since = all.filter_map(|(key, one)| one.since().map(|since| (since, key)));
        let Some((_, oldest)) = since.min() else { return };
        if let Some(handshake) = self.handshakes.get_mut(oldest) {
            handshake.abort();
            self.shared.turned_away.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn handshake(&mut self, key: u32, completion: Option<Completion>) {
        let Some(handshake) = self.handshakes.get_mut(key) else { return };
        let directory = &self.shared.directory;
        let progress = match completion {
            Some(completion) => handshake.completed(&mut self.cx, directory, completion),
            None => handshake.advance(&mut self.cx, directory),
        };
        let ready = match progress {
            Progress::Going => return,
            Progress::Failed => None,
            Progress::Ready(ready) => Some(ready),
        };
        let Some(handshake) = self.handshakes.remove(key) else { return };
        let socket = handshake.into_socket(&mut self.cx);
        let (Some(ready), Some(socket)) = (ready, socket) else { return };
        // The disk may have gone in the meantime; then so does the client.
        let Some((_, place)) = self.shared.directory.find(&ready.name) else { return };
        let (session, leftover) = (ready.session, ready.leftover);
        self.shared.mailboxes[place.reactor].post(move |reactor| {
            reactor.adopt(place.index, socket, session, &leftover);
        });
    }

    /// Takes over a connection that has shaken hands.
    pub(super) fn adopt(
        &mut self,
        disk: u32,
        socket: OwnedFd,
        session: Session,
        leftover: &[u8],
    ) {
        let Some(home) = self.disks.get_mut(disk) else { return };
        if home.core.closing || home.core.size != session.size {
            return;
        }
        let key = self.connections.next_key();
        let fd = Fd::from(socket);
        let Some(connection) =
            Connection::new(&self.cx, key, disk, fd, session, leftover, &home.core.holds)
        else {
            return self.refused();
        };
        let inserted = self.connections.insert(connection);
        debug_assert_eq!(inserted, key);
        home.core.has_come(self.cx.now, Client::Connection(key));
        self.shared.connections.fetch_add(1, Ordering::Relaxed);
        self.touch(key);
    }
}
