//! Service levels: who may start when.
//!
//! `goal` and `terms` are the words; a `class` has terms in force; the `scheduler` of a
//! datastore chooses who starts next of its `flows`, by a `bucket` for each limit (which in
//! bytes is split among as many `askers` as there are) and
//! the tags and places of its `pool`; the `window` says how many places there are, fewer
//! where there is a `shortage`; how far what is reserved is `attained`. What those under
//! way at one datastore may hold of the memory is its `portion`. What people ask
//! for a class, and what that comes to in each second of the week, is `policy`; which of
//! several limits binds follows from how far each is `used`.

mod askers;
mod attained;
mod bucket;
mod class;
mod depth;
mod flows;
mod goal;
mod line;
pub mod policy;
mod pool;
mod portion;
mod reserved;
mod scheduler;
mod shortage;
mod slots;
mod terms;
mod trial;
mod used;
mod window;

pub use attained::{Attained, Attainment};
pub use bucket::Bucket;
pub use class::{Class, ClassId, Cost};
pub use goal::{Goal, ParseGoalError};
pub use pool::{Pool, SHARES_MAX, Stake};
pub use portion::{Portion, SLOW};
pub use reserved::Reserved;
pub use scheduler::{FlowId, Permit, Scheduler};
pub use slots::SCHEDULERS_MAX;
pub use terms::{Limit, NotARate, ParseRateError, Rate, SHARES, Terms};
pub use used::tightest;
pub use window::{WindowControl, threshold};
