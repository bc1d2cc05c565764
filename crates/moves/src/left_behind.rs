//! What the end of a migration says of an image that could not be put away.
//!
//! An image goes before its sidecar. So if something fails, the image stays, or its sidecar
//! alone: people must not count on a way back that is not there.

use sterna_api::Error;
use sterna_state::Place;

use crate::Moves;

impl Moves {
    /// Of the source: the destination is the truth.
    pub(super) fn source_left(&self, source: &Place, error: &Error) -> String {
        match self.has_no_file(source) {
            true => format!("the old image is removed, and {}", sidecar_stays(error)),
            false => format!(
                "the old image stays at {}: {error}; check the file before you remove it by \
                 hand",
                self.place(source)
            ),
        }
    }

    /// Of the copy: the source is the truth.
    pub(super) fn copy_left(&self, copy: &Place, error: &Error) -> String {
        match self.has_no_file(copy) {
            true => format!("the copy is removed, and {}", sidecar_stays(error)),
            false => format!(
                "Sterna kept the image {}: {error}; `sterna disk recover --dry-run` shows \
                 whether a disk needs the image; if not, remove it by hand",
                self.place(copy)
            ),
        }
    }

    fn has_no_file(&self, place: &Place) -> bool {
        let on = self.storage.handle(&place.datastore);
        on.is_ok_and(|on| on.has_no_file(&place.image))
    }
}

fn sidecar_stays(error: &Error) -> String {
    format!("its sidecar stays: {error}; remove the sidecar by hand")
}
