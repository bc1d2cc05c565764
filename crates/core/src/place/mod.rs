//! Where things should be, and in which order they get there.
//!
//! - [`hosts`]: which VMs should be on other hosts (DRS).
//! - [`storage`]: which disks should be on other datastores (Storage DRS).
//! - [`waves`]: how one disk or thousands get elsewhere: where to, in which order, and
//!   how many at once.
//!
//! All of it obeys one rule, "no harm": a move that does not pay for itself, or that
//! pushes somebody else over a bound, is refused, and the reason is said.

pub mod hosts;
pub mod storage;
pub mod waves;

/// Whether two datastores have their room from one place, so that what one takes is gone
/// for both: by the numbers of their rooms, of which those have none whose room is their
/// own.
pub fn share_room(one: Option<u64>, other: Option<u64>) -> bool {
    one.is_some() && one == other
}
