//! All black-box tests, one file for each thing that they are about.
//!
//! They are one program, so that it is linked once, and a test that waits leaves the
//! processors to others. What [`timed`] has wants more of the host, and is run apart.
//! One file: `cargo test --workspace --test black_box killing::`.

mod adopting;
mod advising;
mod another_export;
mod api_manners;
mod arrays;
mod as_a_service;
mod attaching;
mod attributes;
mod bad_input;
mod bad_sectors;
mod cli;
mod crowded;
mod daemons_that_end;
mod dashboard;
mod dropped_pages;
mod drs;
mod endurance;
mod faults;
mod forgetting;
mod frozen;
mod grown;
mod hooks;
mod itself;
mod itself_devices;
mod itself_elsewhere;
mod killing;
mod killing_parts;
mod looking;
mod meddling;
mod metrics;
mod mounted_anew;
mod mounts;
mod moving;
mod names_taken;
mod old_copies;
mod older_states;
mod plans;
mod predicting;
mod recovering;
mod replaced;
mod restored_states;
mod servers_that_forget;
mod serving;
mod signalled;
mod simulating;
mod standing_still;
mod state;
mod state_elsewhere;
mod strangers;
mod surroundings;
mod swapped_while_down;
mod telling;
mod thick;
mod timed;
mod transfers;
mod unknown_exports;
mod unplugging;
mod vhost_clients;
mod vms;
mod vms_of_libvirt;
mod widths;
