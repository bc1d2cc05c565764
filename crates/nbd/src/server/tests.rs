//! Tests of the server's handshake.
