//! A QEMU: a guest's memory, how new that is, and whether it runs.
//!
//! What is done here is done at once; how long it takes, and whether anybody hears of it,
//! is the driver's.

use std::collections::VecDeque;

use sterna_core::transfer::{Action, Guest, Left, Sent, Stand};

/// What QEMU calls how it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Run {
    Running,
    Paused,
    /// It waits for a guest.
    Awaits,
    HandsOver,
    HandedOver,
    /// It was started, or reset, and not told to run.
    Prelaunch,
    Shutdown,
}

/// How far it has sent its guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sending {
    Nothing,
    UnderWay {
        /// To that process.
        to: u64,
        /// Parts that are still to be sent.
        parts: u64,
        passes: u64,
    },
    /// The other one has all of it, and this one has not heard that.
    Come {
        to: u64,
    },
    All,
    Failed,
    Cancelled,
}

/// What it was told of a guest that comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Incoming {
    /// It was started with one.
    Never,
    Untold,
    Listens,
    /// It takes it in, from that process.
    Loads {
        from: u64,
    },
    Come,
}

/// One process of QEMU.
#[derive(Clone, Debug)]
pub(crate) struct Qemu {
    pub(crate) id: u64,
    pub(crate) run: Run,
    /// How new the guest's memory is, if it has the guest.
    pub(crate) memory: Option<u64>,
    pub(crate) sending: Sending,
    pub(crate) incoming: Incoming,
    /// How the guest stood before it was handed over.
    before: Run,
    pub(crate) hangs: bool,
    /// It has hung once, or did not answer in time.
    pub(crate) was_silent: bool,
    /// Somebody else has started it.
    pub(crate) foreign: bool,
    /// Something has had it run that nobody has seen yet.
    pub(crate) touched: bool,
    /// It runs the guest because we have told it to.
    pub(crate) runs_on_our_word: bool,
    /// What it was told and has not done yet, in its order.
    pub(crate) late: VecDeque<Action>,
}

impl Qemu {
    pub(crate) fn new(id: u64, run: Run, incoming: Incoming) -> Self {
        Qemu {
            id,
            run,
            memory: None,
            sending: Sending::Nothing,
            incoming,
            before: run,
            hangs: false,
            was_silent: false,
            foreign: false,
            touched: false,
            runs_on_our_word: false,
            late: VecDeque::new(),
        }
    }

    /// What a story tells of it.
    pub(crate) fn in_short(&self) -> String {
        let Qemu { id, run, memory, sending, incoming, late, .. } = self;
        let marks = [
            ("hangs", self.hangs),
            ("somebody else's", self.foreign),
            ("touched", self.touched),
        ];
        let marks: Vec<_> = marks.iter().filter(|(_, is)| *is).collect();
        format!("{id}: {run:?} {memory:?} {sending:?} {incoming:?} {marks:?} {late:?}")
    }

    pub(crate) fn runs_the_guest(&self) -> bool {
        self.run == Run::Running && self.memory.is_some()
    }

    /// Whether it has all of the guest, and stands still.
    pub(crate) fn has_come(&self) -> bool {
        self.incoming == Incoming::Come && self.run == Run::Paused && !self.foreign
    }

    pub(crate) fn sent(&self) -> Sent {
        match self.sending {
            Sending::Nothing => Sent::Nothing,
            Sending::UnderWay { passes, .. } => {
                Sent::UnderWay { passes, paused: self.run == Run::Paused }
            }
            Sending::Come { .. } => Sent::UnderWay { passes: 1, paused: false },
            Sending::All => Sent::All,
            Sending::Failed => Sent::Stayed(Some("it failed".into())),
            Sending::Cancelled => Sent::Stayed(None),
        }
    }

    pub(crate) fn left(&self) -> Left {
        match self.run {
            Run::HandsOver => Left::HandsOver,
            Run::HandedOver => Left::Stands,
            Run::Running => Left::Runs,
            run => Left::Otherwise(format!("{run:?}")),
        }
    }

    pub(crate) fn stand(&self) -> Stand {
        let guest = match self.run {
            Run::Running => Guest::Runs,
            Run::Paused => Guest::Still,
            run => Guest::Otherwise(format!("{run:?}")),
        };
        match self.incoming {
            Incoming::Never => Stand::Stranger(guest),
            Incoming::Untold => Stand::Idle,
            Incoming::Listens | Incoming::Loads { .. } => Stand::Awaits,
            Incoming::Come => Stand::Has(guest),
        }
    }

    /// Sends nothing any more, if that is still possible.
    pub(crate) fn cancels(&mut self) {
        if matches!(self.sending, Sending::UnderWay { .. } | Sending::Come { .. }) {
            self.stays(Sending::Cancelled);
        }
    }

    /// The guest goes on here, as it was.
    pub(crate) fn stays(&mut self, how: Sending) {
        self.touched |= matches!(self.sending, Sending::Come { .. });
        self.sending = how;
        if self.run == Run::HandsOver {
            self.run = self.before;
        }
    }

    /// The guest stands still for the rest.
    pub(crate) fn hands_over(&mut self) {
        self.before = self.run;
        self.run = Run::HandsOver;
    }

    /// All of a guest has come, and stands still as it was.
    pub(crate) fn takes(&mut self, other: &Qemu) {
        self.incoming = Incoming::Come;
        self.memory = other.memory;
        self.run = match other.before {
            Run::Running | Run::Paused => Run::Paused,
            otherwise => otherwise,
        };
    }
}
