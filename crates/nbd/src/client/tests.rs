//! Tests of the client's side.
