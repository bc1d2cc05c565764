//! Rules about disks: which belong together, and which do not.
//!
//! **Broken** is a matter of pairs. Of disks that are to be together, each pair on two
//! datastores breaks the rule; of disks that are to be apart, each pair on one. A move
//! makes a rule *more* broken if more pairs break it afterwards.
//!
//! No move makes a rule more broken that must hold. One that should hold gives way to a
//! bound, and only if no other move would do.

use std::collections::BTreeMap;

/// What is asked of disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// All of them on one datastore.
    Together,
    /// No two of them on one datastore.
    Apart,
}

/// How much a rule matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strength {
    /// It holds whatever else does not, and is a reason to move.
    Must,
    /// It holds where no bound is in the way. Nothing moves for it alone.
    Should,
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// What it asks.
    pub wish: Wish,
    /// How much it matters.
    pub strength: Strength,
    /// The disks, each once.
    pub disks: Vec<usize>,
}

impl Rule {
    /// Whether it must hold.
    pub(super) fn must(&self) -> bool {
        self.strength == Strength::Must
    }

    /// How many pairs of one of its disks with `others` of its would break it, were that
    /// disk at `here`; `at` says where the others are.
    pub(super) fn breaks(
        &self,
        others: impl Iterator<Item = usize>,
        here: usize,
        at: &[usize],
    ) -> usize {
        let same = |other: &usize| at[*other] == here;
        match self.wish {
            Wish::Together => others.filter(|other| !same(other)).count(),
            Wish::Apart => others.filter(same).count(),
        }
    }

    /// Whether disks that are there break it.
    pub fn is_broken(&self, at: &[usize]) -> bool {
        let pair = |(one, disk): (usize, &usize)| {
            let rest = self.disks[one + 1..].iter().copied();
            self.breaks(rest, at[*disk], at) > 0
        };
        self.disks.iter().enumerate().any(pair)
    }
}

/// Two rules that cannot both hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The one that wants two disks apart.
    pub apart: usize,
    /// One of those that want them together, by way of others perhaps.
    pub together: usize,
    /// The two disks.
    pub disks: [usize; 2],
}

/// Finds rules that can never hold, wherever the disks are: those that must, among each
/// other, and each one that should, beside all that must. (Two that should and contradict
/// each other are a matter of which gives way.)
pub fn conflict(rules: &[Rule]) -> Option<Conflict> {
    let shoulds = (0..rules.len()).filter(|at| !rules[*at].must()).map(Some);
    std::iter::once(None).chain(shoulds).find_map(|also| conflict_with(rules, also))
}

/// Those of the rules that must hold, and of one more.
fn conflict_with(rules: &[Rule], also: Option<usize>) -> Option<Conflict> {
    let counts = |at: usize| rules[at].must() || also == Some(at);
    let groups = groups(rules, counts);
    let apart = |at: &usize| counts(*at) && rules[*at].wish == Wish::Apart;
    (0..rules.len()).filter(apart).find_map(|apart| {
        let mut seen: BTreeMap<usize, usize> = BTreeMap::new();
        rules[apart].disks.iter().find_map(|disk| {
            let group = *groups.get(disk)?;
            let other = seen.insert(group, *disk)?;
            let joins = |at: &usize| {
                let rule = &rules[*at];
                counts(*at) && rule.wish == Wish::Together && rule.disks.contains(disk)
            };
            let together = (0..rules.len()).find(joins)?;
            Some(Conflict { apart, together, disks: [other, *disk] })
        })
    })
}

/// The disks that must be together, by the lowest number in each group.
pub(super) fn must_groups(rules: &[Rule]) -> BTreeMap<usize, usize> {
    groups(rules, |at| rules[at].must())
}

/// The disks that are together by those of the rules that count.
fn groups(rules: &[Rule], counts: impl Fn(usize) -> bool) -> BTreeMap<usize, usize> {
    let mut groups: BTreeMap<usize, usize> = BTreeMap::new();
    let joins = |at: &usize| counts(*at) && rules[*at].wish == Wish::Together;
    for rule in (0..rules.len()).filter(joins).map(|at| &rules[at]) {
        let known = rule.disks.iter().filter_map(|disk| groups.get(disk).copied());
        let known: Vec<usize> = known.collect();
        let Some(name) = known.iter().chain(&rule.disks).min().copied() else { continue };
        groups.values_mut().filter(|it| known.contains(it)).for_each(|it| *it = name);
        groups.extend(rule.disks.iter().map(|disk| (*disk, name)));
    }
    groups
}
