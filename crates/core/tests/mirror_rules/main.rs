//! The mirror's rules, one by one: what it asks for in the situations that the
//! design names.

mod ahead;
mod bad_sectors;
mod bench;
mod converging;
mod copying;
mod destination;
mod guest;
mod keeping;
mod late_errors;
mod order;
mod switch_over;
mod trust;
mod yielding;
