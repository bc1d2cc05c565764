//! All black-box tests, one file for each thing that they are about.
//!
//! They are one program, so that it is linked once, and a test that waits leaves the
//! processors to others. One file: `cargo test -p sterna-tests --test black_box killing::`.

mod adopting;
mod advising;
mod api_manners;
mod arrays;
mod bad_input;
mod bad_sectors;
mod classes;
mod cli;
mod drs;
mod dvdstore;
mod endurance;
mod faults;
mod forgetting;
mod guards;
mod guests;
mod hanging;
mod hooks;
mod killing;
mod killing_parts;
mod lab;
mod machines;
mod meddling;
mod mounts;
mod moving;
mod names_taken;
mod plans;
mod predicting;
mod recovering;
mod replaced;
mod servers_that_forget;
mod serving;
mod shares;
mod simulating;
mod sparse;
mod standing_still;
mod state;
mod storage_drs;
mod strangers;
mod surroundings;
mod telling;
mod thick;
mod transfers;
mod unplugging;
mod vms;
mod watching;
