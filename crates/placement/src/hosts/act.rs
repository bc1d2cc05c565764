//! What is done about recommendations without being asked for.
//!
//! **One at a time.** What a move has brought is seen before the next one is chosen: a
//! recommendation counts on those before it, and on loads that nobody has seen yet. So the
//! first is carried out, when nothing is on its way, and the rest is thought of anew.
//!
//! Who moves VMs is somebody else ([`Carrier`]): QEMU, or virtual time. What it refuses,
//! or fails to do, is for [`Cooldowns`](super::Cooldowns) to remember.

use super::Goal;
use super::advise::{Advice, Recommended};

/// Who moves VMs between hosts.
pub trait Carrier {
    /// Begins to move the VM of a recommendation, and the one that comes back in its
    /// place; or says why neither can be.
    fn carry(&mut self, one: &Recommended) -> Result<(), String>;
}

/// What is wished to be done without being asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Nothing.
    Nothing,
    /// What is wrong is put right: rules that must hold, and hosts that have too little.
    Repairs,
    /// All that is recommended.
    All,
}

impl Wish {
    fn has(self, goal: Goal) -> bool {
        match self {
            Wish::Nothing => false,
            Wish::Repairs => matches!(goal, Goal::Must(_) | Goal::Relieve(_)),
            Wish::All => true,
        }
    }
}

/// What was done.
#[derive(Clone, Debug, PartialEq)]
pub enum Acted {
    /// Nothing is to be done, or not yet.
    Nothing,
    /// This is on its way.
    Begun(Recommended),
    /// This could not begin, and why.
    Refused(Recommended, String),
}

/// Whether a move waits until something was not right for some rounds.
pub fn waits(goal: Goal) -> bool {
    !matches!(goal, Goal::Must(_))
}

/// Has the first recommendation carried out, if it is wished and its time has come: `held`
/// says whether something was not right for long enough, `under_way` how many moves have
/// not ended.
pub fn act(
    advice: &Advice,
    wish: Wish,
    held: bool,
    under_way: usize,
    carrier: &mut dyn Carrier,
) -> Acted {
    let first = advice.moves.first();
    let due = first.filter(|one| wish.has(one.goal) && (held || !waits(one.goal)));
    let Some(one) = due.filter(|_| under_way == 0) else { return Acted::Nothing };
    match carrier.carry(one) {
        Ok(()) => Acted::Begun(*one),
        Err(why) => Acted::Refused(*one, why),
    }
}
