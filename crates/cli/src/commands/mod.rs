//! The commands, by the thing that they are about.
//!
//! Each says what it can be told (clap), what it asks the daemon for, and how the answer
//! is shown. Options that several commands share are in [`crate::common`].

pub(crate) mod activity;
pub(crate) mod advise;
#[cfg(feature = "bench")]
pub(crate) mod bench;
pub(crate) mod class;
pub(crate) mod dashboard;
pub(crate) mod datastore;
pub(crate) mod disk;
pub(crate) mod drs;
pub(crate) mod host;
pub(crate) mod memory;
pub(crate) mod migrate;
pub(crate) mod migration;
pub(crate) mod plan;
pub(crate) mod policy;
pub(crate) mod predict;
pub(crate) mod serve;
#[cfg(feature = "sim")]
pub(crate) mod sim;
pub(crate) mod status;
pub(crate) mod storage_drs;
pub(crate) mod swap;
pub(crate) mod top;
pub(crate) mod vm;
