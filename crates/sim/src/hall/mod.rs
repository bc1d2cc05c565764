//! Halls: hosts, and machines that DRS moves between them, for days, in virtual time.
//!
//! **What is `core`'s.** What is recommended, what is waited for, and what is done by itself
//! (`placement::hosts`): the code that the daemon runs, told as much as the daemon is
//! told. It sees what machines have used over the last rounds, and not what they would ask
//! for; it is not told of hosts that are away.
//!
//! **What is here.** `scenario` is what there is, `text` and `names` read it as people
//! write it. `load` says what machines ask for, `world` where they are and what they get,
//! `copies` how they move, `drs` looks at them and has them moved, `restart` starts those of
//! hosts that fail, `books` reckons who got what, and `run` goes from minute to minute,
//! once with DRS and once without, at the same loads.
//!
//! **Laws.** The same scenario gives the same outcome. What machines on a host get, and
//! what is copied to it, is never more than it has. Nothing is moved to where its memory
//! has no room.
//!
//! **What a host gives** is what a kernel gives: everyone what he asks for while there is
//! enough, else all the same until each has that. Pools are known to DRS alone.
//!
//! **Known gaps.** What a machine writes to its memory while it is copied is not copied
//! again, and it does not stand still at the end. Who lacks memory is not slower for it.
//! Links carry moves alone.

mod books;
mod copies;
mod drs;
mod load;
mod names;
mod outcome;
mod restart;
mod run;
mod scenario;
mod text;
mod world;

pub use outcome::{Made, Outcome, Period, Sample, Side, Total};
pub use run::run;
pub use scenario::{Failure, Host, Profile, Scenario, Settings, Shape, Vm};
