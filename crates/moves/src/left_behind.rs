//! What the end of a migration says of an image that could not be put away.
//!
//! An image goes before its sidecar. So if something fails, the image stays, or its sidecar
//! alone: people must not count on a way back that is not there.

use sterna_api::Error;
use sterna_state::Place;
use sterna_storage::handle::Gone;

use crate::Moves;

impl Moves {
    /// Of the source: the destination is the truth.
    pub(super) fn source_left(&self, source: &Place, error: &Error) -> String {
        let place = self.place(source);
        let on = self.storage.handle(&source.datastore).ok();
        match on.and_then(|on| on.removal_command(&source.image)) {
            Some(command) => format!(
                "the old image stays at {place}: {error}; once that is over, {command} \
                 removes it"
            ),
            None => format!("the old image stays at {place}: {error}"),
        }
    }

    /// Of the copy: the source is the truth.
    pub(super) fn copy_left(&self, copy: &Place, error: &Error) -> String {
        format!(
            "Sterna kept the image {}: {error}; `sterna disk recover --dry-run` shows whether \
             a disk needs the image; if not, remove it by hand",
            self.place(copy)
        )
    }
}

/// The same of an image of which only the sidecar is left, if anything is.
pub(super) fn sidecar_left(image: &str, gone: Gone) -> Option<String> {
    let error = gone.wholly().err()?;
    Some(format!(
        "the {image} is removed, and its sidecar stays: {error}; remove the sidecar by hand"
    ))
}
