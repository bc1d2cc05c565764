//! What may be wrong with the destination of a move, in words: whose fault it is, and what to do.

use std::fmt;

use sterna_engine::Astray;
use sterna_state::Blame;

use crate::view::then_resume;

/// What is wrong with a destination.
#[derive(Clone, Debug)]
pub(crate) struct Wrong {
    /// What has become of it.
    pub(super) astray: Option<Astray>,
    /// Somebody else has written to it.
    pub(super) written: bool,
}

impl Wrong {
    /// What to do about it, as far as the migration is concerned.
    pub(super) fn hint(&self, id: u64) -> String {
        match self.astray {
            Some(Astray::Nameless) => format!(
                "`sterna migration cancel {id}` cancels the migration; then start it again"
            ),
            Some(Astray::Renamed) => then_resume("restore its name", id),
            Some(Astray::Replaced) => {
                then_resume("move the other file away, and put the right one back", id)
            }
            Some(Astray::Unseen(_)) => then_resume("check its datastore", id),
            Some(Astray::Shortened { .. }) | None => format!(
                "find and stop the program that writes there; `sterna migration resume \
                 {id}` compares both images and copies the differences, `sterna \
                 migration cancel {id}` cancels the migration"
            ),
        }
    }

    pub(super) fn blame(&self) -> Blame {
        match self.astray {
            Some(Astray::Unseen(_)) => Blame::Away,
            Some(Astray::Nameless | Astray::Renamed | Astray::Replaced) => {
                Blame::Destination
            }
            Some(Astray::Shortened { .. }) | None => Blame::Untrue,
        }
    }

    /// Whether what was copied may not be there any more.
    pub(super) fn spoils(&self) -> bool {
        self.written || matches!(self.astray, Some(Astray::Shortened { .. }))
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.astray {
            Some(astray) => astray.fmt(f),
            None => f.write_str("another program has written to it"),
        }
    }
}
