//! The daemon: state, jobs and API around the engine.
