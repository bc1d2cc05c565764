//! The NBD protocol without I/O: codec, server and client state machines.
