//! Decisions: the mirror's state machine, units and ids. Pure: no I/O, no clock, no thread.
