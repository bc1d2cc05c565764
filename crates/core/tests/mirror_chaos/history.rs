//! What a block may hold: the writes to it, and when each was issued and ended.
//!
//! A value is possible at a moment if its write was issued before, and no write
//! that was issued after the value's own was acknowledged has been acknowledged
//! by then. Writes that failed or whose answer was lost in a crash may have
//! happened or not.

/// One write to one block.
#[derive(Clone, Debug)]
struct Entry {
    request: u64,
    value: u64,
    issued: u64,
    /// When it ended, and whether with success.
    ended: Option<(u64, bool)>,
}

/// The writes to one block that still matter.
#[derive(Clone, Debug)]
pub(crate) struct History {
    entries: Vec<Entry>,
}

impl History {
    /// A block that holds `value` since before time began.
    pub(crate) fn new(value: u64) -> Self {
        History {
            entries: vec![Entry { request: 0, value, issued: 0, ended: Some((0, true)) }],
        }
    }

    pub(crate) fn issue(&mut self, at: u64, request: u64, value: u64) {
        self.entries.push(Entry { request, value, issued: at, ended: None });
    }

    pub(crate) fn end(&mut self, at: u64, request: u64, ok: bool) {
        let entry =
            self.entries.iter_mut().find(|e| e.request == request && e.ended.is_none());
        if let Some(entry) = entry {
            entry.ended = Some((at, ok));
        }
        self.prune();
    }

    /// The crash took the guest with it: what was not answered never will be.
    pub(crate) fn forget_open(&mut self, at: u64) {
        for entry in &mut self.entries {
            entry.ended.get_or_insert((at, false));
        }
    }

    fn superseded(&self, entry: &Entry) -> bool {
        entry.ended.is_some_and(|(ended, _)| {
            self.entries.iter().any(|later| {
                later.issued > ended && matches!(later.ended, Some((_, true)))
            })
        })
    }

    fn prune(&mut self) {
        let keep: Vec<bool> = self.entries.iter().map(|e| !self.superseded(e)).collect();
        let mut keep = keep.into_iter();
        self.entries.retain(|_| keep.next().unwrap());
    }

    /// The values that a read may return now.
    pub(crate) fn possible(&self) -> Vec<u64> {
        self.entries.iter().map(|entry| entry.value).collect()
    }
}
