//! Which disks are hurt: their requests take longer than usual, or than is promised.
//!
//! **Rule.** A disk is compared with itself alone ([`Usual`]): reads with its reads, long
//! requests with its long ones. A disk that asks for less than usual is not hurt, and one
//! that asks for more is not either; only time counts. A disk is hurt once two steps in a row
//! were slow, and no more once six in a row were not ([`Watch`]): in between, nothing is said.
//! How often something is said is bounded, for each disk and for all together ([`Budget`]);
//! what is not said is counted.
//!
//! A disk that takes twice as long as usual, or longer, is slower than usual ([`Slower`]): that
//! is the stage before, which is shown and not said.
//!
//! A disk that waits for a policy's sake is slowed on purpose ([`Slowed`]), and not hurt by
//! that; what it takes then is not learned.
//!
//! By what a disk is hurt follows from what shares its device with it ([`Cause`]), and what
//! would help from what is known of that device ([`Help`]). Which of several ways is advised,
//! and for how long, [`choose`] decides, and [`SteadyLimit`] which of several figures. Whom
//! something has helped that somebody did, [`Deeds`] knows.
//!
//! What is usual is known after five minutes of load, and kept over a restart of the daemon
//! ([`KeptUsual`]).
//!
//! **Known gaps.** A disk whose application begins to ask at random where it asked in
//! order counts as hurt until the new times are usual. A disk that turns slow for good counts
//! as hurt until the slow steps, a tenth of a step each, are the greater part of what was
//! learned. While a promise is missed nothing is learned once it is known what is usual: it
//! stays what it was, however long that lasts.

mod budget;
mod cause;
mod deeds;
mod held;
mod help;
mod remedy;
mod slower;
mod steady;
mod usual;
mod watch;
mod watches;

pub use budget::Budget;
pub use cause::{Cause, Share, Shared, cause};
pub use deeds::{Again, Deed, Deeds, Effect, Kind, Proven, State, harms, helps};
pub use held::{Did, Held, Slowed};
pub use help::{Help, Neighbour, help, help_at};
pub use remedy::{Choice, Destination, Given, Offer, choose};
pub use slower::Slower;
pub use steady::SteadyLimit;
pub use usual::{KeptUsual, Usual, UsualKind};
pub use watch::{End, Hurt, STEP, Turn, Watch};
pub use watches::{Said, Watches};
