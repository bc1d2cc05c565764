//! The way from other threads to a reactor: messages, and an event that wakes it.
//!
//! A message is something to do on the reactor. There is one kind of message, so
//! whoever adds a control call needs no new message type; what a message may do
//! is what `Reactor` offers.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Mutex;

use crate::io::{drain, eventfd, signal};
use crate::reactor::Reactor;

/// Something to do on a reactor.
pub(crate) type ReactorMessage = Box<dyn FnOnce(&mut Reactor) + Send>;

pub(crate) struct Mailbox {
    inbox: Mutex<Inbox>,
    event: OwnedFd,
}

struct Inbox {
    waiting: Vec<ReactorMessage>,
    /// The reactor has ended; nothing is taken any more.
    closed: bool,
}

impl Mailbox {
    pub(crate) fn new() -> std::io::Result<Mailbox> {
        let inbox = Inbox { waiting: Vec::new(), closed: false };
        Ok(Mailbox { inbox: Mutex::new(inbox), event: eventfd()? })
    }

    /// Hands a message over; false (and the message is dropped) if the reactor has
    /// ended.
    pub(crate) fn post(&self, message: ReactorMessage) -> bool {
        let mut inbox = self.inbox.lock().expect("nothing panics with the lock");
        if inbox.closed {
            return false;
        }
        inbox.waiting.push(message);
        let first = inbox.waiting.len() == 1;
        drop(inbox);
        if first {
            signal(&self.event);
        }
        true
    }

    /// Takes all messages, in order.
    pub(crate) fn take(&self) -> Vec<ReactorMessage> {
        drain(&self.event);
        std::mem::take(
            &mut self.inbox.lock().expect("nothing panics with the lock").waiting,
        )
    }

    /// No more messages. Those that wait are dropped, which tells their senders.
    pub(crate) fn close(&self) {
        let mut inbox = self.inbox.lock().expect("nothing panics with the lock");
        inbox.closed = true;
        let dropped = std::mem::take(&mut inbox.waiting);
        drop(inbox);
        drop(dropped);
    }
}

impl AsFd for Mailbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}
