//! The REST types and the typed client.
