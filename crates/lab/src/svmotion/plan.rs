//! Which disks move, in which state of the guest, and how large all of it is.

use std::fmt;

use clap::ValueEnum;

use crate::guest::Link;

/// A disk of the guest. Its name is its serial number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Disk {
    /// The tables.
    Data,
    /// The indexes.
    Index,
    /// The log.
    Wal,
}

impl Disk {
    pub(super) const ALL: [Disk; 3] = [Disk::Data, Disk::Index, Disk::Wal];

    pub(super) fn name(self) -> &'static str {
        match self {
            Disk::Data => "data",
            Disk::Index => "index",
            Disk::Wal => "wal",
        }
    }

    /// The emulated array that it leaves, and the one that it goes to, as the study has
    /// their spindles. Caches are as small against the disks as they were there.
    pub(super) fn arrays(self) -> [&'static str; 2] {
        match self {
            Disk::Data => [
                "old-fc?spindles=7&cache=4M&write-cache=16M",
                "new-fc?spindles=6&cache=8M&write-cache=48M",
            ],
            Disk::Index => ["old-fc?spindles=8&cache=4M&write-cache=16M", "sata-ssd"],
            Disk::Wal => [
                "old-fc?spindles=4&cache=4M&write-cache=16M",
                "new-fc?spindles=4&cache=8M&write-cache=48M",
            ],
        }
    }

    /// Its published size. (There were four index disks of 80 GB, striped: here they are
    /// one.)
    fn published(self) -> u64 {
        match self {
            Disk::Data => 600 << 30,
            Disk::Index => 320 << 30,
            Disk::Wal => 50 << 30,
        }
    }

    /// What its contents need: the database's log does not shrink with its data.
    fn least(self) -> u64 {
        match self {
            Disk::Data => 160 << 20,
            Disk::Index => 64 << 20,
            Disk::Wal => 128 << 20,
        }
    }
}

impl fmt::Display for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What the guest does while a disk moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum State {
    /// The machine is off.
    Off,
    /// The server runs, and nobody asks it for anything.
    Idle,
    /// A fifth of the orders of the high load come, at their own pace.
    Low,
    /// As many orders as the guest can take.
    High,
}

impl State {
    pub(super) const ALL: [State; 4] = [State::Off, State::Idle, State::Low, State::High];

    pub(super) fn name(self) -> &'static str {
        match self {
            State::Off => "off",
            State::Idle => "idle",
            State::Low => "low",
            State::High => "high",
        }
    }

    /// Whether customers shop in it.
    pub(super) fn is_busy(self) -> bool {
        matches!(self, State::Low | State::High)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Who serves the guest's disks, and who moves them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Way {
    /// The daemon serves them over vhost-user, and moves them under its guard.
    VhostUser,
    /// The daemon serves them over NBD, and moves them under its guard.
    Nbd,
    /// The daemon serves them over NBD, and QEMU's own mirror moves them, unguarded.
    Mirror,
}

impl Way {
    pub(super) const ALL: [Way; 3] = [Way::VhostUser, Way::Nbd, Way::Mirror];

    pub(super) fn name(self) -> &'static str {
        match self {
            Way::VhostUser => "vhost-user",
            Way::Nbd => "NBD",
            Way::Mirror => "QEMU's mirror",
        }
    }

    /// How the guest reaches its disks.
    pub(super) fn link(self) -> Link {
        match self {
            Way::VhostUser => Link::VhostUser,
            Way::Nbd | Way::Mirror => Link::Nbd,
        }
    }

    /// Whether what must hold for the guest is asked of whoever moves its disks.
    pub(super) fn is_guarded(self) -> bool {
        self != Way::Mirror
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// As much without a migration as one took, in seconds, but no more than this: orders
/// differ from minute to minute, and over five of them the mean is within about 3 %.
const CALM_MOST: f64 = 300.0;

/// How long it is looked at a guest that does nothing, in seconds.
const QUIET: f64 = 3.0;

/// About how long the guest takes to make its database, in seconds.
const DATABASE: f64 = 100.0;

/// About how long it takes to look for what is lost, in seconds.
pub(super) const CHECK: f64 = 50.0;

/// What is done, and how large it is.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Plan {
    /// The disks that move.
    pub(super) disks: Vec<Disk>,
    /// The states in which they do, in their order.
    pub(super) states: Vec<State>,
    /// The ways in which they do in each of them.
    pub(super) ways: Vec<Way>,
    /// Of the published sizes, one so many-th.
    pub(super) scale: u32,
    /// How often each of them is repeated.
    pub(super) repeats: u32,
    /// Seconds of orders without a migration, before and after each of them.
    calm: f64,
    /// The most of them after one that took long.
    calm_most: f64,
    /// Seconds of orders before anything is measured.
    pub(super) warm_up: f64,
}

impl Plan {
    /// Everything, at this scale.
    pub(super) fn full(scale: u32) -> Plan {
        Plan {
            disks: Disk::ALL.into(),
            states: State::ALL.into(),
            ways: Way::ALL.into(),
            scale,
            repeats: 1,
            calm: 20.0,
            calm_most: CALM_MOST,
            warm_up: 10.0,
        }
    }

    /// As little as shows that it works.
    pub(super) fn quick(scale: u32) -> Plan {
        Plan {
            disks: vec![Disk::Data],
            states: vec![State::Idle, State::High],
            ways: vec![Way::VhostUser, Way::Mirror],
            scale,
            repeats: 1,
            calm: 6.0,
            calm_most: 6.0,
            warm_up: 3.0,
        }
    }

    /// Of it, only what has these disks, states and ways; all of those of which none is
    /// named.
    pub(super) fn only(mut self, disks: &[Disk], states: &[State], ways: &[Way]) -> Plan {
        self.disks.retain(|disk| disks.is_empty() || disks.contains(disk));
        self.states.retain(|state| states.is_empty() || states.contains(state));
        self.ways.retain(|way| ways.is_empty() || ways.contains(way));
        self
    }

    /// Whether nothing moves in it: a machine that is off is only looked at once.
    pub(super) fn is_empty(&self) -> bool {
        let moves =
            |link| !self.ways_over(link).is_empty() && !self.states_over(link).is_empty();
        !moves(Link::VhostUser) && !moves(Link::Nbd)
    }

    /// About how long it takes, in seconds: a guard may make it longer.
    pub(super) fn seconds(&self) -> f64 {
        DATABASE + self.rounds().iter().map(|round| round.2).sum::<f64>() + CHECK
    }

    /// The same from the moment at which a guest with this link comes to this state.
    pub(super) fn seconds_from(&self, link: Link, state: State) -> f64 {
        let rounds = self.rounds().into_iter();
        let left = rounds.skip_while(|round| (round.0, round.1) != (link, state));
        left.map(|round| round.2).sum::<f64>() + CHECK
    }

    /// The states of the guests in their order, and about how long each takes, in seconds.
    fn rounds(&self) -> Vec<(Link, State, f64)> {
        // What a guest under load leaves of an array.
        const RATE: f64 = 30e6;
        let moves = |disk: &Disk| 2.0 * self.size(*disk) as f64 / RATE;
        let moves: f64 = self.disks.iter().map(moves).sum();
        let longest = moves / 2.0 / self.disks.len() as f64;
        let mut rounds = Vec::new();
        for link in [Link::VhostUser, Link::Nbd] {
            let ways = self.ways_over(link).len() as f64 * f64::from(self.repeats);
            if ways == 0.0 {
                continue;
            }
            let calms = (1.0 + 2.0 * ways) * self.disks.len() as f64;
            for state in self.states_over(link) {
                let calm = calms * self.calm_after(state, longest) + self.warm_up;
                rounds.push((link, state, calm + ways * moves));
            }
        }
        rounds
    }

    /// The ways of those guests that reach their disks so.
    pub(super) fn ways_over(&self, link: Link) -> Vec<Way> {
        self.ways.iter().copied().filter(|way| way.link() == link).collect()
    }

    /// The states that such a guest goes through. To a machine that is off it is all one
    /// how it would reach its disks.
    pub(super) fn states_over(&self, link: Link) -> Vec<State> {
        let tells = |state: &State| link == Link::VhostUser || *state != State::Off;
        self.states.iter().copied().filter(tells).collect()
    }

    /// Seconds without a migration, before and after each of them. Where there are no
    /// orders only processors are measured.
    pub(super) fn calm(&self, state: State) -> f64 {
        if state.is_busy() { self.calm } else { QUIET }
    }

    /// The same after migrations of which the longest took so long, in seconds: as many
    /// orders as can be made differ from minute to minute, and a long one is compared with
    /// as much.
    pub(super) fn calm_after(&self, state: State, took: f64) -> f64 {
        let longer = if state == State::High { took.min(self.calm_most) } else { 0.0 };
        self.calm(state).max(longer)
    }

    /// How large a disk is.
    pub(super) fn size(&self, disk: Disk) -> u64 {
        let mib = (disk.published() / u64::from(self.scale)) >> 20;
        (mib << 20).max(disk.least())
    }

    /// How large the store is. Its tables and their growth take a part of the data disk,
    /// and its indexes, about half as large, fit theirs.
    pub(super) fn store(&self) -> u64 {
        (self.size(Disk::Data) / 5).min(self.size(Disk::Index) / 3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_sizes_are_those_of_scale_one() {
        let plan = Plan::full(1);
        assert_eq!(Disk::ALL.map(|disk| plan.size(disk) >> 30), [600, 320, 50]);
    }

    #[test]
    fn what_is_named_is_all_that_moves() {
        let plan = Plan::full(600).only(&[Disk::Wal], &[], &[Way::Nbd, Way::Mirror]);
        assert_eq!((plan.disks, plan.states.len()), (vec![Disk::Wal], 4));
        assert_eq!(plan.ways, [Way::Nbd, Way::Mirror]);
    }

    #[test]
    fn that_a_machine_is_off_is_nothing_to_those_who_would_reach_its_disks() {
        let off = Plan::full(600).only(&[], &[State::Off], &[]);
        assert!(!off.is_empty());
        assert!(off.only(&[], &[], &[Way::Nbd]).is_empty());
    }

    #[test]
    fn what_is_left_gets_less_state_by_state_down_to_the_check() {
        let plan = Plan::full(600);
        let rounds = [Link::VhostUser, Link::Nbd].map(|link| {
            let states = plan.states_over(link).into_iter();
            states.map(move |state| (link, state)).collect::<Vec<_>>()
        });
        let left = rounds.concat().into_iter();
        let left: Vec<f64> =
            left.map(|(link, state)| plan.seconds_from(link, state)).collect();
        assert!((left[0] + DATABASE - plan.seconds()).abs() < 1e-6, "{left:?}");
        assert!(left.windows(2).all(|two| two[0] > two[1]), "{left:?}");
        assert!(left.last().is_some_and(|last| *last > CHECK), "{left:?}");
    }

    #[test]
    fn what_must_be_there_fits_at_every_scale() {
        for scale in [1, 600, 1000, 100_000] {
            let plan = Plan::full(scale);
            for disk in Disk::ALL {
                assert!(plan.size(disk) >= disk.least(), "{disk} at {scale}");
                assert_eq!(plan.size(disk) % 512, 0);
            }
            assert!(plan.store() >= 8 << 20, "{scale}");
        }
    }
}
