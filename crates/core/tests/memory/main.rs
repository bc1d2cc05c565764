//! Memory that goes out to swap and comes back: what is known of it, its order, and wakes.

mod balloons;
mod granules;
mod order;
mod paces;
mod reclaims;
mod scores;
mod speeds;
mod stirring;
mod wakes;
