//! What a world is like, and what goes wrong in it.
//!
//! A test says which trouble it wants and takes the rest from [`Setup::calm`], which is a
//! transfer that nothing happens to.

use crate::random::Random;

/// Something that a driver does wrong, so that the world must find it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutation {
    /// It does not make the commit durable before the receiver is told to run the guest.
    RunsBeforeTheCommit,
    /// It does not make it durable that the guest is taken back.
    RunsBeforeItIsTakenBack,
    /// It forgets that an earlier daemon may have had the receiver run the guest.
    ForgetsThatItMayHaveRun,
    /// It takes a sending of which the source knows nothing for one that is done.
    VanishedIsDone,
    /// It takes each QEMU that stands still or waits at the socket for the receiver.
    GoesByTheSocket,
    /// It takes each process at the socket for the one that was told of the guest.
    TakesAnyProcess,
}

/// What a world is like. Numbers are "once in so many steps"; zero is never.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) by_program: bool,
    /// Which process the receiver is cannot be seen: somebody is between.
    pub(crate) hidden: bool,
    pub(crate) chaos_steps: u64,
    /// How often a part of the memory is sent.
    pub(crate) parts: u64,
    /// The guest writes faster than it is sent.
    pub(crate) busy: bool,
    pub(crate) deaths: u64,
    pub(crate) hangs: u64,
    pub(crate) cuts: u64,
    /// Commands that are answered too late, and done then.
    pub(crate) late: u64,
    pub(crate) lies: u64,
    pub(crate) refusals: u64,
    /// The source is told in the last moment that it has failed.
    pub(crate) breaks: u64,
    pub(crate) kills: u64,
    pub(crate) stops: u64,
    pub(crate) wishes: u64,
    pub(crate) people: u64,
    /// Another QEMU is started where one has ended.
    pub(crate) replaces: u64,
    pub(crate) store_fails: u64,
    pub(crate) mutation: Option<Mutation>,
    /// Its story is told.
    pub(crate) told: bool,
}

impl Setup {
    pub(crate) fn calm(random: &mut Random) -> Self {
        Setup {
            by_program: random.one_in(3),
            hidden: false,
            chaos_steps: 60 + random.below(300),
            parts: 1 + random.below(12),
            busy: random.one_in(12),
            deaths: 0,
            hangs: 0,
            cuts: 0,
            late: 0,
            lies: 0,
            refusals: 0,
            breaks: 0,
            kills: 0,
            stops: 0,
            wishes: 0,
            people: 0,
            replaces: 0,
            store_fails: 0,
            mutation: None,
            told: std::env::var_os("STERNA_CHAOS_SEED").is_some(),
        }
    }

    /// Whether nothing goes wrong, and nobody wants anything.
    pub(crate) fn is_quiet(&self) -> bool {
        self.deaths == 0 && self.keeps_what_is_left() && self.cuts == 0
    }

    /// Whether a guest of which the receiver has all is lost by no other trouble than a
    /// death.
    pub(crate) fn keeps_what_is_left(&self) -> bool {
        let others = [
            self.hangs,
            self.late,
            self.lies,
            self.refusals,
            self.breaks,
            self.kills,
            self.stops,
            self.wishes,
            self.people,
            self.replaces,
            self.store_fails,
        ];
        others.iter().all(|trouble| *trouble == 0) && self.mutation.is_none()
    }
}
