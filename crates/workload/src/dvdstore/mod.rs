//! A store that sells DVDs, on PostgreSQL: a database at work, measured in orders.
//!
//! The workload is that of DVD Store 2, made anew from its published description:
//! customers log in or register, search, and buy. A *size* says how much there is, a
//! *population* follows from it and a seed, [`load`] puts it into a database. In a
//! [`run`] users shop (`shopper` says what they do, `pace` when, `session` does it),
//! `tally` counts, and a [`Report`] says what it came to. Orders that the server has
//! acknowledged are noted in a file, and [`check`] asks for each of them: so the store
//! can stand witness when disks are moved under it, or its machine is killed.
//!
//! Unlike the original, a purchase of something that is not in stock is rolled back as
//! a whole, chance decides each question on its own, and response times have
//! percentiles; with a rate of orders they count from the moment at which each was due.

mod check;
mod copy;
mod cpu;
mod error;
mod ledger;
mod load;
mod names;
mod pace;
mod population;
mod report;
mod run;
mod schema;
mod server;
mod session;
mod shopper;
mod size;
mod tally;

pub use check::{Missing, Verdict, check};
pub use cpu::{CpuCost, cycles_per_order};
pub use error::StoreError;
pub use ledger::Acknowledged;
pub use load::{LoadOptions, Loading, load};
pub use pace::Pace;
pub use population::{Cost, Line};
pub use report::{Report, RunFacts, ServerFacts, TimesByKind};
pub use run::{Ready, RunOptions, ready, run};
pub use schema::Tablespaces;
pub use server::{Server, Store};
pub use size::{Size, SizeError};
pub use tally::{Times, Trouble, Window};
