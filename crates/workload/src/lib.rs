//! What applications do to a disk.
//!
//! The room holds one application so far: the *checker*, which writes, logs
//! every write that the server acknowledged, and afterwards says of each of
//! them whether it is still there. It speaks NBD over ordinary sockets and
//! shares no code with the server's data path, so that it can stand witness.
#![forbid(unsafe_code)]

pub mod checker;
pub mod random;
