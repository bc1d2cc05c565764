//! Room that datastores have in common: two directories of one file system fill up together.

/// Whether two datastores have their room from one place, so that what one takes is gone
/// for both: by the numbers of their rooms, of which those have none whose room is their
/// own.
pub fn share_room(one: Option<u64>, other: Option<u64>) -> bool {
    one.is_some() && one == other
}
