//! An emulated array: the model of a datastore, shared by all of its images.
//!
//! The images are on several reactors, and the model is one: it is behind a lock. An
//! emulator is not the product's way of I/O; who adds one wants to see what a slow
//! array does, and the lock is held for microseconds.
//!
//! Whoever looks moves the model on to its own moment, so an image may find that
//! another has moved it past its own requests' answers: those are kept here until it
//! looks. It looks at every event of the model while it has something under way,
//! and so misses none by more than its timer does: what answers a request is either
//! the model's next event or comes after it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sterna_core::Nanos;
use sterna_core::array::{Array, Completion, Kind, Model, Request};

/// The seed of every emulated array: it shall be the same array each time.
const SEED: u64 = 1;

/// The array of a datastore.
#[derive(Debug)]
pub(crate) struct Emulator(Mutex<State>);

#[derive(Debug)]
struct State {
    array: Array,
    /// By the model's number: the image and its own number of the request.
    under_way: BTreeMap<u64, (u32, u64)>,
    /// The numbers of each image's requests that are answered.
    answered: BTreeMap<u32, Vec<u64>>,
    /// What requests and images are called next.
    next: u64,
    next_image: u32,
}

impl Emulator {
    pub(super) fn new(model: Model) -> Emulator {
        Emulator(Mutex::new(State {
            array: Array::new(model, SEED),
            under_way: BTreeMap::new(),
            answered: BTreeMap::new(),
            next: 0,
            next_image: 0,
        }))
    }

    /// Lets an image in: gives the LUN that it is.
    pub(super) fn enter(&self) -> u32 {
        let mut state = self.state();
        let lun = state.next_image;
        state.next_image = lun.wrapping_add(1);
        state.answered.insert(lun, Vec::new());
        lun
    }

    /// An image has gone.
    pub(super) fn leave(&self, lun: u32) {
        self.state().answered.remove(&lun);
    }

    /// Takes a request that the image calls `id`.
    pub(super) fn submit(
        &self,
        now: Nanos,
        lun: u32,
        id: u64,
        kind: Kind,
        offset: u64,
        bytes: u64,
    ) {
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        state.under_way.insert(number, (lun, id));
        state.array.submit(now, Request { id: number, lun, kind, offset, bytes });
    }

    /// What of an image has been answered by now, and when to look again.
    pub(super) fn look(&self, now: Nanos, lun: u32) -> (Vec<u64>, Option<Nanos>) {
        let mut state = self.state();
        let mut completions: Vec<Completion> = Vec::new();
        state.array.advance(now, &mut completions);
        for completion in completions {
            let Some((lun, id)) = state.under_way.remove(&completion.id) else {
                continue;
            };
            if let Some(answered) = state.answered.get_mut(&lun) {
                answered.push(id);
            }
        }
        let answered = state.answered.get_mut(&lun).map(std::mem::take);
        (answered.unwrap_or_default(), state.array.next_event())
    }

    /// A thread that died with the lock leaves a model that is whole: it has no
    /// invariants across calls but its own.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
