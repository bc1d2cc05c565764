//! Tests of URIs.
