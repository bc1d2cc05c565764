//! The moves of a plan, and which of them have changed: what is kept of where they are
//! (`queue`) is brought up to date with these alone.

use std::ops::{Index, IndexMut};

use super::task::Task;

/// The moves of a plan, as far as they are.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tasks {
    all: Vec<Task>,
    /// Those that may have changed, some more than once.
    changed: Vec<usize>,
}

impl Tasks {
    /// None of these has changed.
    pub(super) fn new(all: Vec<Task>) -> Tasks {
        Tasks { all, changed: Vec::new() }
    }

    /// All of them.
    pub(super) fn all(&self) -> &[Task] {
        &self.all
    }

    /// Those that may have changed since this was asked last.
    pub(super) fn take_changed(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.changed)
    }
}

impl Index<usize> for Tasks {
    type Output = Task;

    fn index(&self, at: usize) -> &Task {
        &self.all[at]
    }
}

/// Whoever asks for a move in this way is taken to change it.
impl IndexMut<usize> for Tasks {
    fn index_mut(&mut self, at: usize) -> &mut Task {
        self.changed.push(at);
        &mut self.all[at]
    }
}
