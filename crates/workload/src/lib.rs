//! What applications do to a disk.
//!
//! Three kinds of applications live here. The *checker* writes, logs every write that
//! the server acknowledged, and afterwards says of each of them whether it is still
//! there. The *load* makes the requests of a database, a backup or a log, and says how
//! fast they were answered. Both speak NBD over ordinary sockets and share no code
//! with the server's data path, so that they can stand witness. The *store* works with
//! a real database, wherever that keeps its files.
#![forbid(unsafe_code)]

pub mod checker;
mod connection;
#[cfg(feature = "dvdstore")]
pub mod dvdstore;
pub mod load;
pub mod random;
