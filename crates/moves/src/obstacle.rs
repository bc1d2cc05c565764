//! What stands in a migration's way, and what to do about it.

use sterna_api::Error;
use sterna_state::Blame;

use super::view::then_resume;

/// Why a migration cannot go on by itself.
#[derive(Clone)]
pub(super) struct Obstacle {
    /// What happened.
    pub(super) error: Error,
    /// What to do about it, before resuming.
    pub(super) remedy: String,
    /// Whether resuming means comparing both sides.
    pub(super) compare: bool,
    /// Whether a datastore is offline or does not answer, and nothing else is known to be
    /// wrong.
    pub(super) unreachable: bool,
    /// Whose fault it is, where not all has to be compared.
    pub(super) blame: Blame,
    /// The state directory takes nothing new.
    pub(super) is_unrecorded: bool,
    /// Nobody knows whether the file is the copy: the operator has to say so.
    pub(super) is_unproven: bool,
}

pub(super) fn obstacle(error: Error, remedy: &str, compare: bool) -> Obstacle {
    let (unreachable, blame) = (false, Blame::Destination);
    let (remedy, is_unrecorded, is_unproven) = (remedy.into(), false, false);
    Obstacle { error, remedy, compare, unreachable, blame, is_unrecorded, is_unproven }
}

impl Obstacle {
    /// The same of a migration whose mirror is there: that knows what to compare. But only a
    /// person knows whose a file is, so that no plan may let it go on.
    pub(super) fn of_a_mirror(self) -> Obstacle {
        Obstacle { compare: self.is_unproven, ..self }
    }

    /// What to do about it.
    pub(super) fn hint(&self, id: u64) -> String {
        let first = match self.remedy.as_str() {
            "" => String::new(),
            remedy => format!("{remedy}; then "),
        };
        if !self.compare {
            return then_resume(&self.remedy, id);
        }
        format!(
            "{first}`sterna migration resume {id}` compares both images and copies the \
             differences, `sterna migration cancel {id}` cancels the migration"
        )
    }
}
