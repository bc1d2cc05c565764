//! The way from other threads to a reactor: letters, and an event that wakes it.
//!
//! A letter is something to do on the reactor. There is one kind of letter, so
//! whoever adds a control call needs no new message type; what a letter may do
//! is what `Reactor` offers.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Mutex;

use crate::io::{drain, eventfd, signal};
use crate::reactor::Reactor;

/// Something to do on a reactor.
pub(crate) type Letter = Box<dyn FnOnce(&mut Reactor) + Send>;

pub(crate) struct Mailbox {
    letters: Mutex<Letters>,
    event: OwnedFd,
}

struct Letters {
    waiting: Vec<Letter>,
    /// The reactor has ended; nothing is taken any more.
    closed: bool,
}

impl Mailbox {
    pub(crate) fn new() -> std::io::Result<Mailbox> {
        let letters = Letters { waiting: Vec::new(), closed: false };
        Ok(Mailbox { letters: Mutex::new(letters), event: eventfd()? })
    }

    /// Hands a letter over; false (and the letter is dropped) if the reactor has
    /// ended.
    pub(crate) fn post(&self, letter: Letter) -> bool {
        let mut letters = self.letters.lock().expect("nothing panics with the lock");
        if letters.closed {
            return false;
        }
        letters.waiting.push(letter);
        let first = letters.waiting.len() == 1;
        drop(letters);
        if first {
            signal(&self.event);
        }
        true
    }

    /// Takes all letters, in order.
    pub(crate) fn take(&self) -> Vec<Letter> {
        drain(&self.event);
        std::mem::take(
            &mut self.letters.lock().expect("nothing panics with the lock").waiting,
        )
    }

    /// No more letters. Those that wait are dropped, which tells their senders.
    pub(crate) fn close(&self) {
        let mut letters = self.letters.lock().expect("nothing panics with the lock");
        letters.closed = true;
        let dropped = std::mem::take(&mut letters.waiting);
        drop(letters);
        drop(dropped);
    }
}

impl AsFd for Mailbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}
