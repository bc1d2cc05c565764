//! Which groups may begin, and which never will: looked at anew only when a group has
//! moved, or has lost a move, which happens twice to each at most.

use super::setup::Setup;

/// How far the groups of a plan are.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ready {
    /// By group: how many of its moves have not moved their disks; and one more if its
    /// workload has not started again.
    left: Vec<usize>,
    /// By group: whether a move has ended otherwise, or its workload has not started.
    lost: Vec<bool>,
    /// By group: how many of its moves have not ended.
    open: Vec<usize>,
    /// By group: whether it waits for its workload to stop.
    held: Vec<bool>,
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
        let mut open = vec![0; count];
        for group in setup.moves.iter().filter_map(|one| one.group) {
            open[group] += 1;
        }
        let left = setup.groups.iter().zip(&open);
        let left = left.map(|(group, open)| match group.is_hooked() && *open > 0 {
            true => open + 1,
            false => *open,
        });
        Ready {
            left: left.collect(),
            lost: vec![false; count],
            open,
            held: vec![false; count],
            may_begin: vec![false; count],
            missing: vec![None; count],
            stale: count > 0,
        }
    }

    /// A move of a group has ended.
    pub(super) fn ended(&mut self, group: Option<usize>, moved: bool) {
        let Some(group) = group else { return };
        self.open[group] -= 1;
        self.count(group, moved);
    }

    /// The workload of a group has started again, or never will.
    pub(super) fn workload_ended(&mut self, group: usize, started: bool) {
        self.count(group, started);
    }

    fn count(&mut self, group: usize, done: bool) {
        if done {
            self.left[group] -= 1;
            self.stale |= self.left[group] == 0;
        } else {
            self.stale |= !self.lost[group];
            self.lost[group] = true;
        }
    }

    /// Nothing of a group begins until its workload has stopped.
    pub(super) fn hold(&mut self, group: usize) {
        self.held[group] = true;
    }

    /// The workload of a group has stopped.
    pub(super) fn release(&mut self, group: usize) {
        self.held[group] = false;
        self.stale = true;
    }

    /// Whether all moves of a group have ended.
    pub(super) fn has_ended(&self, group: usize) -> bool {
        self.open[group] == 0
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

    /// Whether moves of a group may begin, or have its workload stopped; those of none
    /// always may.
    pub(super) fn may_begin(&self, group: Option<usize>) -> bool {
        group.is_none_or(|group| self.may_begin[group] && !self.held[group])
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
