//! Service levels: who may start when.
//!
//! `goal` and `terms` are the words; a `class` has terms in force; the `scheduler`
//! of a datastore chooses who starts next, by a `bucket` for each limit and the tags
//! and places of its `pool`.

mod bucket;
mod class;
mod goal;
mod pool;
mod scheduler;
mod slots;
mod terms;

pub use bucket::Bucket;
pub use class::{Class, ClassId, Cost};
pub use goal::{Goal, ParseGoalError};
pub use pool::{Pool, SHARES_MAX, Stake};
pub use scheduler::{FlowId, Permit, Scheduler};
pub use slots::SCHEDULERS_MAX;
pub use terms::{Limit, Rate, SHARES, Terms};
