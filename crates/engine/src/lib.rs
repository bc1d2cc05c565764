//! The data path: reactor, datastores, exports, the mirror's driver.

pub mod boot;
mod buddy;
mod buffer;
mod classes;
pub mod datastore;
mod directory;
mod disk;
mod engine;
mod export;
mod figures;
mod ground;
mod holds;
mod image;
mod io;
mod listener;
mod mailbox;
mod migrate;
pub mod mirror;
mod origin;
pub mod place;
mod plain;
mod qos;
mod qos_control;
mod reactor;
pub mod sidecar;
mod slab;
mod stats;
mod timer;
mod times;
mod troubles;
mod watching;

#[cfg(fuzzing)]
pub use export::vhost::fuzzing;

pub use directory::description;
pub use engine::{Config, DiskSpec, Engine, EngineError};
pub use figures::DiskWindow;
pub use ground::{Ground, Shared};
pub use image::{
    Astray, Beside, Budget, FileIdentity, Found, HeldFile, ImageSpec, OpenError, Opener,
    is_used, opened_by_others,
};
pub use io::{Errno, IoChoice, IoKind};
pub use listener::Listener;
pub use migrate::MigrateError;
pub use plain::keep_descriptors;
pub use stats::{DiskProfile, DiskStats, Requests};
pub use times::Times;
pub use troubles::{Trouble, TroubleKind};
pub use watching::WatchedReads;
