//! What a world is like, and what goes wrong in it.
//!
//! A test says which trouble it wants and takes the rest from [`Setup::calm`], which is a
//! move that nothing happens to.

use sterna_core::mover::{Owner, Place};

use crate::random::Random;

/// Something that a driver does wrong, so that the world must find it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutation {
    /// It removes what has the copy's name.
    RemovesByName,
    /// It takes a job that is unknown for one that has switched over.
    VanishedIsMoved,
    /// It does not make the switch-over durable before QEMU is told.
    TellsBeforeItIsDurable,
    /// After a restart it takes what has the copy's name for the copy.
    KnowsByName,
}

/// What a world is like. Numbers are "once in so many steps"; zero is never.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) owner: Owner,
    pub(crate) place: Place,
    pub(crate) blocks: usize,
    pub(crate) chaos_steps: u64,
    /// How often the guest writes.
    pub(crate) writes: u64,
    /// A drive of the old kind: QEMU ends its jobs when it is unplugged.
    pub(crate) old_drive: bool,
    pub(crate) deaths: u64,
    pub(crate) hangs: u64,
    pub(crate) cuts: u64,
    /// Commands that are answered too late, and done then.
    pub(crate) late: u64,
    pub(crate) kills: u64,
    pub(crate) stops: u64,
    pub(crate) wishes: u64,
    pub(crate) people: u64,
    /// How often somebody else has QEMU switch over, where that can be.
    pub(crate) completes: u64,
    pub(crate) unplugs: u64,
    /// What is unplugged may come back, or another disk in its place.
    pub(crate) plugs_again: bool,
    pub(crate) lies: u64,
    pub(crate) refusals: u64,
    pub(crate) store_fails: u64,
    pub(crate) image_fails: u64,
    pub(crate) replaces: u64,
    /// A file that is somebody else's, with nothing in it, has the destination's name from
    /// the beginning.
    pub(crate) occupied: bool,
    /// The state has no room for which file was made, as that of an older Sterna.
    pub(crate) forgets_files: bool,
    pub(crate) mutation: Option<Mutation>,
    /// Its story is told.
    pub(crate) told: bool,
}

impl Setup {
    pub(crate) fn calm(random: &mut Random) -> Self {
        Setup {
            owner: if random.one_in(3) { Owner::Libvirt } else { Owner::Qemu },
            place: if random.one_in(2) { Place::Disk } else { Place::File },
            blocks: 2 + random.below(12) as usize,
            chaos_steps: 100 + random.below(500),
            writes: 2 + random.below(10),
            old_drive: random.one_in(3),
            deaths: 0,
            hangs: 0,
            cuts: 0,
            late: 0,
            kills: 0,
            stops: 0,
            wishes: 0,
            people: 0,
            completes: 0,
            unplugs: 0,
            plugs_again: true,
            lies: 0,
            refusals: 0,
            store_fails: 0,
            image_fails: 0,
            replaces: 0,
            occupied: false,
            forgets_files: false,
            mutation: None,
            told: std::env::var_os("STERNA_CHAOS_SEED").is_some(),
        }
    }
}
