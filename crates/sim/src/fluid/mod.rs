//! Scenarios: many machines on shared arrays, for hours or days, in virtual time.
//!
//! The [`World`](crate::World) goes from request to request, and so an hour of a busy
//! array is millions of steps. Here nothing is followed but rates: between two changes
//! (a copy begins or ends, a schedule opens, an array fails) every load and every copy
//! goes as fast as it does, and `solve` finds how fast that is. Twelve hours of 250
//! machines take well under a second.
//!
//! **What is `core`'s.** The arrays are its models, with the same numbers; what they
//! become as time of spindles is `pool`. Waves are predicted by `core::predict`, from the
//! moves that there were. Schedules are its own.
//!
//! **What is here.** `scenario` is what there is to simulate, `text` and `names` read it
//! as people write it; `flows` says what loads and copies ask of which station; `waves`
//! which machine moves when; `account` who got what; `run` goes from change to change.
//! [`nas250`] is one published experiment.
//!
//! **Known gaps.** All is means: there is no chance, and no burst. A write cache is full
//! or not, and does not take minutes to fill. A stream that is not alone pays a seek for
//! each run, however many there are. Links of hosts carry copies only. A mirrored write
//! costs the destination, and its guest nothing. A copy keeps its chunks under way and
//! yields to nobody but by waiting as all do: no guard is modelled. What is fetched ahead
//! is always of use.

mod account;
mod flows;
mod names;
pub mod nas250;
mod outcome;
mod pool;
mod run;
mod scenario;
mod solve;
mod text;
mod waves;

pub use outcome::{Done, Foretold, Outcome, Phase, Sample};
pub use run::Run;
pub use scenario::{
    ArrayPlan, Copier, Datastore, Failure, LinkPlan, Profile, Scenario, Vm, Wave,
};
