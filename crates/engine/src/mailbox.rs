//! The way from other threads to something that lives on one thread, a reactor: letters,
//! and an event that wakes it.
//!
//! A letter is something to do with the mailbox's owner. So there is one kind of letter, and
//! whoever adds a control call needs no new type for it; and the mailbox knows nothing of
//! its owner.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, mpsc};

use crate::io::{drain, eventfd, signal};

/// Something to do with the owner of a mailbox.
pub(crate) type Letter<T> = Box<dyn FnOnce(&mut T) + Send>;

pub(crate) struct Mailbox<T> {
    inbox: Mutex<Inbox<T>>,
    event: OwnedFd,
}

struct Inbox<T> {
    waiting: Vec<Letter<T>>,
    /// The owner has ended; nothing is taken any more.
    closed: bool,
}

impl<T> Mailbox<T> {
    pub(crate) fn new() -> std::io::Result<Mailbox<T>> {
        let inbox = Inbox { waiting: Vec::new(), closed: false };
        Ok(Mailbox { inbox: Mutex::new(inbox), event: eventfd()? })
    }

    /// Hands a letter over. If the owner has ended, the letter is dropped.
    pub(crate) fn post(&self, letter: impl FnOnce(&mut T) + Send + 'static) {
        let letter: Letter<T> = Box::new(letter);
        let mut inbox = self.inbox.lock().expect("nothing panics with the lock");
        if inbox.closed {
            return;
        }
        inbox.waiting.push(letter);
        let first = inbox.waiting.len() == 1;
        drop(inbox);
        if first {
            signal(&self.event);
        }
    }

    /// Does something with the owner and waits for what comes of it; nothing, if the owner
    /// has ended.
    pub(crate) fn ask<R: Send + 'static>(
        &self,
        f: impl FnOnce(&mut T) -> R + Send + 'static,
    ) -> Option<R> {
        let (answer, answered) = mpsc::sync_channel(1);
        self.post(move |owner| drop(answer.send(f(owner))));
        answered.recv().ok()
    }

    /// Takes all letters, in order.
    pub(crate) fn take(&self) -> Vec<Letter<T>> {
        drain(&self.event);
        std::mem::take(
            &mut self.inbox.lock().expect("nothing panics with the lock").waiting,
        )
    }

    /// No more letters. Those that wait are dropped, which tells their senders.
    pub(crate) fn close(&self) {
        let mut inbox = self.inbox.lock().expect("nothing panics with the lock");
        inbox.closed = true;
        let dropped = std::mem::take(&mut inbox.waiting);
        drop(inbox);
        drop(dropped);
    }
}

impl<T> AsFd for Mailbox<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}
