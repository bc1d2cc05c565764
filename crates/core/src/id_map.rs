//! Maps by numbers that Sterna itself gives out: of requests, regions, operations.

use std::collections::HashMap;

use foldhash::fast::FixedState;

/// A map by such a number, or by several. Nobody outside chooses them, so nothing has to
/// be done against keys that were chosen to collide. It is the same in each run.
pub type IdMap<K, V> = HashMap<K, V, FixedState>;
