//! Which groups may begin, and which never will: looked at anew only when a group has
//! moved, or has lost a move, which happens twice to each at most.

use super::setup::Setup;

/// How far the groups of a plan are.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ready {
    /// By group: how many of its moves have not moved their disks.
    left: Vec<usize>,
    /// By group: whether a move has ended otherwise.
    lost: Vec<bool>,
    /// By group: whether all that go before it have moved.
    may_begin: Vec<bool>,
    /// By group: one that goes before it and will not have moved.
    missing: Vec<Option<usize>>,
    /// A group has moved, or has lost a move, since the last two were looked at.
    stale: bool,
}

impl Ready {
    /// Nothing has ended.
    pub(super) fn new(setup: &Setup) -> Ready {
        let count = setup.groups.len();
        let mut left = vec![0; count];
        for group in setup.moves.iter().filter_map(|one| one.group) {
            left[group] += 1;
        }
        let (lost, may_begin) = (vec![false; count], vec![false; count]);
        Ready { left, lost, may_begin, missing: vec![None; count], stale: count > 0 }
    }

    /// A move of a group has ended.
    pub(super) fn ended(&mut self, group: Option<usize>, moved: bool) {
        let Some(group) = group else { return };
        if moved {
            self.left[group] -= 1;
            self.stale |= self.left[group] == 0;
        } else {
            self.stale |= !self.lost[group];
            self.lost[group] = true;
        }
    }

    /// Looks at the groups anew if one has changed; says whether that was so.
    pub(super) fn look_again(&mut self, setup: &Setup) -> bool {
        if !std::mem::take(&mut self.stale) {
            return false;
        }
        let moved = with_those_before(setup, |group| self.left[group] == 0);
        let whole = with_those_before(setup, |group| !self.lost[group]);
        for (at, group) in setup.groups.iter().enumerate() {
            self.may_begin[at] = group.after.iter().all(|before| moved[*before]);
            self.missing[at] = group.after.iter().copied().find(|before| !whole[*before]);
        }
        true
    }

    /// Whether moves of a group may begin; those of none always may.
    pub(super) fn may_begin(&self, group: Option<usize>) -> bool {
        group.is_none_or(|group| self.may_begin[group])
    }

    /// The group that goes before this one and will not have moved, if there is one.
    pub(super) fn missing(&self, group: Option<usize>) -> Option<usize> {
        self.missing[group?]
    }
}

/// By group, whether it is so, and all groups before it are: one of a group that has no
/// move to make waits for those all the same.
fn with_those_before(setup: &Setup, is: impl Fn(usize) -> bool) -> Vec<bool> {
    let mut all: Vec<bool> = (0..setup.groups.len()).map(is).collect();
    // Each round takes one away at least, or is the last.
    for _ in 0..=all.len() {
        let mut changed = false;
        for (at, group) in setup.groups.iter().enumerate() {
            let is = all[at] && group.after.iter().all(|before| all[*before]);
            changed |= is != all[at];
            all[at] = is;
        }
        if !changed {
            break;
        }
    }
    all
}
