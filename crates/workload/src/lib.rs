//! What applications do: a generator that logs every acknowledged write, and its checker.
