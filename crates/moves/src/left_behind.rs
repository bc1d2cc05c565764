//! What the end of a migration says of an image that could not be put away.
//!
//! An image goes before its sidecar. So if something fails, the image stays, or its sidecar
//! alone: people must not count on a way back that is not there.

use sterna_api::Error;
use sterna_state::Place;
use sterna_storage::handle::Gone;

use crate::Moves;

/// How the note of a migration begins whose old image could not be put away (`overdue`).
pub(super) const STAYS: &str = "the old image stays at";

impl Moves {
    /// Of the source: the destination is the truth.
    pub(super) fn source_left(&self, source: &Place, error: &Error) -> String {
        let place = self.place(source);
        let on = self.storage.handle(&source.datastore).ok();
        match on.and_then(|on| on.removal_command(&source.image)) {
            Some(command) => format!(
                "{STAYS} {place}: {error}; once that is over, {command} removes it"
            ),
            None => format!(
                "{STAYS} {place}: {error}; once that is over, Sterna frees the place within \
                 seconds"
            ),
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

/// The same of an image that was to be removed: what of it stays, if anything does. A file
/// that is not, or may not be, Sterna's is not to be removed on Sterna's word.
pub(super) fn not_gone(image: &str, place: &str, gone: Gone) -> Option<String> {
    Some(match gone {
        Gone::Wholly => return None,
        Gone::ButSidecar(error) => format!(
            "the {image} is removed, and its sidecar stays: {error}; remove the sidecar by hand"
        ),
        Gone::Another(_) => format!(
            "the file {place} is not Sterna's: another program has put it in the place of the \
             {image}, and Sterna left it alone. If the {image} still exists, it has another \
             name: look for it before you remove anything by hand"
        ),
        Gone::Unproven(error) => format!(
            "Sterna kept the file {place}, as it may be the {image} or the file of another \
             program: {error}. Check that before you remove it, and its sidecar, by hand"
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_sternas_is_not_said_to_be_an_image_to_remove() {
        let error = || Error::unavailable("x");
        let said = |gone| not_gone("copy", "/b/db.raw", gone).unwrap_or_default();
        assert_eq!(said(Gone::Wholly), "");
        let another = said(Gone::Another(error()));
        assert!(another.starts_with("the file /b/db.raw is not Sterna's"), "{another}");
        assert!(another.contains("it has another name"), "{another}");
        let unproven = said(Gone::Unproven(error()));
        assert!(unproven.contains("Check that before you remove it"), "{unproven}");
    }

    #[test]
    fn the_note_of_a_file_that_may_be_anothers_says_why_nobody_knows() {
        let why = Error::in_use("the file server has given /b/db.raw another handle");
        let said = not_gone("copy", "/b/db.raw", Gone::Unproven(why)).unwrap_or_default();
        assert!(said.contains("has given /b/db.raw another handle. Check"), "{said}");
    }
}
