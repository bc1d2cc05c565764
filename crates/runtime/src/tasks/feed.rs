//! What a task works on, if others have it: a bounded queue that wakes the task.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryIter, TrySendError, sync_channel};

use sterna_os::wake::{Sleeper, Waker};

/// The end that others have.
#[derive(Debug)]
pub struct Feed<I> {
    sender: SyncSender<I>,
    waker: Waker,
}

/// The task's end.
#[derive(Debug)]
pub struct Fed<I> {
    items: Receiver<I>,
    pub(super) sleeper: Arc<Sleeper>,
}

/// A queue that holds so many items.
pub fn feed<I>(most: usize) -> (Feed<I>, Fed<I>) {
    let (sender, items) = sync_channel(most);
    let waker = Waker::default();
    let sleeper = waker.sleeper();
    (Feed { sender, waker }, Fed { items, sleeper })
}

impl<I> Feed<I> {
    /// Hands an item over and wakes the task; false if the queue is full, and the item lost.
    /// A task that has ended takes all.
    pub fn give(&self, item: I) -> bool {
        let given = self.sender.try_send(item);
        self.waker.wake();
        !matches!(given, Err(TrySendError::Full(_)))
    }
}

impl<I> Fed<I> {
    /// The items that are there now.
    pub(super) fn items(&self) -> TryIter<'_, I> {
        self.items.try_iter()
    }
}
